"""Tables of what training frameworks' flags set, by subject, for the chapter on flags."""

from scalebook.flags.configurations import listed
from scalebook.flags.table import Flag, frameworks
from scalebook.language.arguments import checked
from scalebook.language.notation import either, quoted
from scalebook.language.sources import cite
from scalebook.language.tabular import Markup, aligned, page_table, styled

__all__ = ["SUBJECTS", "Subject", "subject"]

SUBJECTS = ("splitting", "batch", "sharding", "schedule", "recomputation", "offload", "overlap", "precision", "network")
_PAGE = "../../book/reference/formulas.html"  # base of links to chapters


def _what(entry: Flag) -> str:
    """Return the letters and words of a flag, with the flag's value for each if it has several."""
    values = {x: y for x, y in entry.means.items() if y}
    if not values or entry.letter:
        return entry.letter or ", ".join(entry.about) or "–"
    if set(values) == {"true"}:
        return listed(values["true"])
    if len(names := {tuple(y) for y in values.values()}) == 1 and len(next(iter(names))) == 1:
        return f"{entry.names[0]}: " + ", ".join(f"{next(iter(y.values()))} ({x})" for x, y in values.items())
    return "; ".join(f"{listed(y)} ({x})" for x, y in values.items())


class Subject:
    """A table of all frameworks' flags on one subject, such as "schedule". In a notebook, formulas are links."""

    def __init__(self, name: str):
        if name not in SUBJECTS:
            raise ValueError(f"a subject is {either(SUBJECTS)}, not {quoted(name)}")
        self.name = name
        self.flags = [y for x in frameworks().values() for y in x.values() if y.subject == name]

    def _lines(self, formulas) -> list[list[str]]:
        return [[x.shown, frameworks()[x.framework].name, _what(x), formulas(x), x.note] for x in self.flags]

    def __repr__(self):
        lines = self._lines(lambda entry: ", ".join(entry.formulas()))
        return aligned([["flag", "of", "letter or word", "formula", "note"], *lines], gap="  ")

    def _repr_html_(self):
        def linked(entry):
            made = [f'<a href="{_PAGE}#formula-{x.replace("_", "-")}">{x}</a>' for x in entry.formulas()]
            return Markup(f"<td>{', '.join(made)}</td>")

        sources = dict.fromkeys(cite(x.source) for x in self.flags)
        heads = ["flag", "of", "letter or word", "formula", "note"]
        return styled(page_table(heads, self._lines(linked), caption="; ".join(sources), kind="sb-row"))


@checked
def subject(name: str) -> Subject:
    """Return a table of all frameworks' flags on a subject: "splitting", "batch", "sharding", "schedule", ...

    `SUBJECTS` lists them. Raises ValueError for another name.

    >>> subject("schedule").flags[0].shown
    '--num-virtual-stages-per-pipeline-rank'
    """
    return Subject(name)
