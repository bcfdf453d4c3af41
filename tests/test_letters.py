"""One notation: what prose calls by a letter is what the equations of the chapter call so."""

import re
from functools import cache

import nbformat
import pytest

import scalebook.inference
import scalebook.training  # noqa: F401  (their letters)
from scalebook.language import FORMULAS, NOTATION
from tools.notebooks import notebooks

from .support import cases

MATH = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)
WORDS = re.compile(r"(?<![_{])\\(?:text|operatorname|begin|end)\{[^}]*\}")
SCRIPT = r"(?:\\mathrm\{[^}]*\}|\{(?:[^{}]|\{[^{}]*\})*\}|\\[a-z]+|[A-Za-z0-9])"
LETTER = re.compile(rf"(?:\\(?:hat|bar)\s*\{{?\s*)?(?:\\[A-Za-z]+|[A-Za-z])(?:\}}?\s*[_^]\s*{SCRIPT})*")
COMMANDS = {
    "frac", "tfrac", "sqrt", "left", "right", "cdot", "times", "max", "min", "log", "ln", "sum", "le", "ge", "to",
    "dots", "qquad", "approx", "binom", "pm", "ll", "lceil", "rceil",
}  # fmt: skip
# Mathematics, and what a chapter explains where it says it: products of matrices, weights of a mean, orders of growth.
OWN = cases("letters of a chapter's own", globals())
FREE = {"i", "j", "k", "n", "x", "\\pi", "\\gamma", "e"}  # what is counted, or any number
# Said with the notation's meaning where no formula of the chapter has them.
MEANT = {"memory-wall-of-inference": "p", "start": "p h"}


def bare(tex):
    return re.sub(r"\\(?:mathrm|text)|[\s{}]", "", tex)


@cache
def known():
    return {bare(x.tex) for x in NOTATION.values()}


def of_code(sources):
    """Letters that the chapter's derivations have themselves."""
    said = re.findall(r'sympy\.(?:symbols|Symbol)\(\s*"([^"]+)"', "\n".join(sources))
    plain = {x.replace(",", "") for text in said for x in text.split()}
    return {re.sub(r"^([a-z]{2,})(?=_|$)", r"\\\1", x) for x in plain}  # names of more than one letter are Greek


def letters(text):
    text = re.sub(r"```.*?```|`[^`]*`", "", text.replace(r"\$", ""), flags=re.DOTALL)
    for found in MATH.finditer(text):
        for letter in LETTER.findall(WORDS.sub("", found[1] or found[2])):
            if letter.startswith("\\") and re.match(r"\\([A-Za-z]+)", letter)[1] in COMMANDS:
                continue
            yield bare(letter)


def is_known(letter, own):
    if letter in own or letter in known():
        return True
    base, _, power = letter.partition("^")
    return bool(power) and base in own | known()  # a power of it


@pytest.mark.parametrize("path", notebooks(), ids=lambda x: x.stem)
def test_every_letter_in_prose_is_one_of_the_notation_or_of_the_chapters_derivations(path):
    cells = nbformat.read(path, as_version=4).cells
    own = of_code([x.source for x in cells if x.cell_type == "code"]) | set(OWN.get(path.stem, "").split())
    own |= FREE
    strange = {
        x for cell in cells if cell.cell_type == "markdown" for x in letters(cell.source) if not is_known(x, own)
    }
    assert not strange, f"no equation here knows {', '.join(sorted(strange))}: write what the notation has"


def meant(sources):
    """The printed forms of the letters that a chapter's code names, and of those in the formulas that it names."""
    words = set(re.findall(r"\w+", "\n".join(sources)))
    within = {x.name for word in words & FORMULAS.keys() for x in FORMULAS[word].rhs.free_symbols}
    return {bare(NOTATION[word].tex) for word in (words | within) & NOTATION.keys()}


@pytest.mark.parametrize("path", notebooks(), ids=lambda x: x.stem)
def test_a_letter_alone_means_in_prose_what_it_means_in_the_chapters_formulas(path):
    """`m` for the nodes of a limit, where the notation has micro-batches, misleads whoever has learnt the notation."""
    cells = nbformat.read(path, as_version=4).cells
    code = [x.source for x in cells if x.cell_type == "code"]
    said = set(f"{OWN.get(path.stem, '')} {MEANT.get(path.stem, '')}".split()) | of_code(code) | meant(code)
    alone = {
        x for cell in cells if cell.cell_type == "markdown" for x in letters(cell.source) if not set(x) & set("_^")
    }
    other = (alone & known()) - said - (FREE - {"n"})
    assert not other, f"the notation has {', '.join(sorted(other))} for what no formula of this chapter is about"
