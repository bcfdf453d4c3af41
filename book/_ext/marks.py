r"""Mark the letters of an equation, so that a page can say what each means (book/_static/letters.js).

No two letters are printed alike, so the equations that the package prints tell theirs.  In a chapter's prose a plain
$x$ may be something of its own: there a letter is marked if it carries something, as in $N_{\mathrm{act}}$.
"""

import re

from scalebook.language import NOTATION

TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\S")
BLOCK = re.compile(r'<div class="sb-(?:formula|sheet|table sb-sheet)\b')  # what the package prints in a notebook
# What stands in braces behind these is no letter: words, colours, what a letter that nobody knows carries.
UNREAD = {"_", r"\mathrm", r"\text", r"\textcolor", r"\begin", r"\end", r"\operatorname", r"\tag", r"\hspace"}

TAKES = {"^", r"\hat", r"\bar", r"\tilde", r"\dot", r"\sqrt", r"\frac"}  # what follows without braces is taken whole


def tokens(tex: str) -> list[tuple[str, int]]:
    return [(found[0], found.start()) for found in TOKEN.finditer(tex)]


def after(line, at: int) -> int:
    """Where what follows at a place ends: a token, or all that stands in braces."""
    depth = 0
    while at < len(line):
        depth += {"{": 1, "}": -1}.get(line[at][0], 0)
        at += 1
        if depth <= 0:
            break
    return at


class Marks:
    r"""Letters by their TeX: `all` that the package prints, and those that prose can only mean so.

    >>> marks = Marks({r"N": "params", r"N_{\mathrm{act}}": "active_params", r"h": "hidden"})
    >>> marks.marked(r"N_{\mathrm{act}} + h^{2} + N_x", marks.all)
    '\\htmlData{l=active_params}{N_{\\mathrm{act}}} + \\htmlData{l=hidden}{h}^{2} + N_x'
    >>> marks.marked(r"N_{\mathrm{act}} h", marks.prose)
    '\\htmlData{l=active_params}{N_{\\mathrm{act}}} h'
    """

    def __init__(self, names: dict[str, str]):
        self.all, self.prose = {}, {}
        self.printed = self.within = False
        for tex, name in names.items():
            words = tuple(x for x, _ in tokens(tex))
            self.all.setdefault(words[0], []).append((words, name))
        for of in self.all.values():
            of.sort(key=lambda x: -len(x[0]))
        for first, of in self.all.items():
            self.prose[first] = [x for x in of if len(x[0]) > 1]

    @classmethod
    def of_package(cls):
        return cls({x.tex: name for name, x in NOTATION.items()})

    def page(self, path) -> "Marks":
        """For the equations of a page: those of the reference are all printed by the package."""
        self.printed, self.within = path.parts[:2] == ("book", "reference"), False
        return self

    def see(self, tag: str) -> None:
        """A tag between equations: what the package prints in a notebook begins and ends with a box."""
        if self.within:
            self.within = tag != "</div>"
        else:
            self.within = BLOCK.match(tag) is not None

    def put(self, tex: str) -> str:
        return self.marked(tex, self.all if self.printed or self.within else self.prose)

    def marked(self, tex: str, letters) -> str:
        line, pieces, done, at = tokens(tex), [], 0, 0
        while at < len(line):
            token, place = line[at]
            words, name = self._found(line, at, letters)
            if not name:
                at = after(line, at + 1) if token in UNREAD else at + 1
                if token in TAKES and at < len(line) and line[at][0] != "{":
                    at += 1
                continue
            end = line[at + len(words)][1] if at + len(words) < len(line) else len(tex)
            body = tex[place:end].rstrip()
            pieces += [tex[done:place], rf"\htmlData{{l={name}}}{{{body}}}", tex[place + len(body) : end]]
            done, at = end, at + len(words)
        return "".join([*pieces, tex[done:]])

    def _found(self, line, at, letters):
        # Another letter goes on below the line; e to the power of something is Euler's number.
        for words, name in letters.get(line[at][0], ()):
            end = at + len(words)
            following = line[end][0] if end < len(line) else ""
            if tuple(x for x, _ in line[at:end]) == words and following != "_" and (*words, following) != ("e", "^"):
                return words, name
        return (), None
