r"""The notation: quantities of the book, which code calls letters, each with a unit, a meaning and a printed form.

The name of a quantity, such as `hbm_bandwidth`, is the same everywhere: function parameter, keyword, TOML key, slider,
JavaScript argument, column.  Its symbol is a plain SymPy symbol, so its meaning is looked up here.

>>> NOTATION["hbm_bandwidth"], symbol("hidden")
(hbm_bandwidth (B/s): memory bandwidth of one device, hidden)
"""

import keyword
import re
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from numbers import Real
from typing import NoReturn

import sympy
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter
from sympy.utilities.iterables import sift

from scalebook import _shown_by

from .stanzas import Stanzas, file_of, tables_of
from .tabular import aligned, folded, page_table, styled

__all__ = [
    "GROUPS", "NOTATION", "Latex", "Letter", "Text", "UnknownKey", "brief", "either", "expression", "found_by", "free",
    "in_letters", "known_as", "letter", "letters_of", "listed", "nearest", "no_attribute", "quoted", "refuse_stray",
    "replaced", "root", "symbol", "tex", "unused", "word",
]  # fmt: skip


def either(words: Iterable[str]) -> str:
    """Join words into "a, b or c"."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def quoted(value) -> str:
    """Format a value for an error message: on one line, shortened if it is long, and rows of tables by their names."""
    rows = value if isinstance(value, list | tuple) else [value]
    if rows and all(hasattr(x, "cells") for x in rows):
        said = ", ".join(x.name for x in rows)
        return _shortened(said if rows is not value else f"[{said}]")
    try:
        return _shortened(re.sub(r"\s*\n\s*", " ", repr(value)[:1000]))
    except (ValueError, RecursionError):  # more digits than Python prints, or a list that contains itself
        return f"a very large {type(value).__name__}"


def brief(error: Exception) -> str:
    """Return an error's message for use inside a sentence: on one line, shortened if it is long."""
    return _shortened(" ".join(str(error).split()) or type(error).__name__)


def _shortened(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:159]}…"


def word(name, kind: str = "a letter") -> str:
    """Return a name, or the name of a SymPy symbol, as a string.  Raises TypeError, with `kind`, for anything else."""
    if isinstance(name, sympy.Symbol):
        return name.name
    if not isinstance(name, str):
        example = ", such as 'hidden'" if kind == "a letter" else ""
        raise TypeError(f"{kind} is named by a word{example}, not by {quoted(name)}")
    return str(name)


def listed(words, kind: str = "a letter") -> list:
    """Return names as a list, from one name or from a list, tuple, set or mapping; otherwise raise TypeError."""
    if not isinstance(words, str | sympy.Symbol | list | tuple | set | frozenset | Mapping):
        raise TypeError(f"{kind} is named by a word, several by a list of them, not by {quoted(words)}")
    return [words] if isinstance(words, str | sympy.Symbol) else list(words)


class UnknownKey(KeyError):
    """A KeyError that is shown as its plain sentence, without the quotation marks of a key.

    >>> print(UnknownKey("frameworks has no 'abc'"))
    frameworks has no 'abc'
    """

    __str__ = Exception.__str__


def no_attribute(sentence: str) -> AttributeError:
    """Return an AttributeError with exactly this message, to which Python adds no hint of its own."""
    return AttributeError(sentence, name="", obj=None)


_NAMES = tables_of(__package__, "names.toml")
OTHERS, _ROWS = ({x: said for said, own in _NAMES[n].items() for x in own.split()} for n in ("names", "rows"))


def nearest(word, words: Iterable[str], own: Iterable[str] = ()) -> str:
    """Return the end of an error message about a mistyped name: its usual word here, or the three most similar names.

    Names in `own` need less similarity, because they would work where the name was given.

    >>> nearest("h10", ["h100", "a100", "h200", "tpu_v4"]), nearest("world_size", ["devices"])
    ("did you mean 'h100', 'h200' or 'a100'?", "here it is 'devices'")
    """
    from difflib import SequenceMatcher  # here, so that an import is quick

    own, known, word = {*own}, {*words, *own}, str(word)[:80].lower().strip("'")  # the word may be quoted
    if OTHERS.get(word) in known:
        return f"here it is {OTHERS[word]!r}"
    matcher = SequenceMatcher(b=word)

    def similarity(name):
        matcher.set_seq1(name.lower())
        return matcher.ratio() + 0.2 * (name in own), name  # of equals the last: `llama3` is newer than `llama2`

    close = sorted(known, key=similarity, reverse=True)[:3]
    return f"did you mean {either(map(repr, close))}?" if close else "there are none"


def known_as(name, names: Iterable):
    """Return the one of `names` that is meant by another case or common name, such as "AdamW"; or else the name."""
    lower = name.lower() if isinstance(name, str) and name not in names else name
    return next((x for x in (lower, OTHERS.get(lower)) if x in names), name) if lower is not name else name


def unused(name: str, letter: str, letters: Iterable[str]) -> str:
    """Return an error message: `name`, whose inputs are `letters`, has no input `letter`; up to three other things do.

    >>> unused("decoding", "tp", ["batch", "top_k"])
    'decoding does not use tp, which is of training_step, serve and decode_step'
    """
    others = [*_shown_by("things_with")(letter)]
    if name.replace(" ", "_") in others:  # a sheet's name has spaces
        meaning = getattr(NOTATION.get(letter), "meaning", "")
        where = (x for part, x in _NAMES["uses"].items() if part in meaning and part + "s" not in letters)
        return f"{name} does not use {letter} here, only {next(where, 'for other models or with other options')}"
    own = sorted(x for x in letters if x.endswith(f"_{letter}"))[:4]
    whose = f", which is of {either(others[:3]).replace(' or ', ' and ')}" if others else ""
    if own:
        near = f"; it has {either(own).replace(' or ', ' and ')}"
    else:
        near = "" if others else f"; {nearest(letter, letters)}"
    return f"{name} does not use {letter}{whose}{near}"


def refuse_stray(name: str, letter: str, letters: Iterable[str]) -> NoReturn:
    """Raise for a call of `name`, which takes `letters`, with another word: whose it is, or which are near."""
    if letter in NOTATION or (letter not in _ROWS and _shown_by("things_with")(letter)):
        raise TypeError(unused(name, letter, letters))
    raise _no_letter(letter, letters)


def _no_letter(name, own: Iterable[str] = ()) -> LookupError:
    """Return the error for a name that is no letter.  Near names in `own` come first."""
    from .words import WORDS  # which imports this module

    others = _shown_by("things_with")(word(name))
    option = f"it is an option of {either(others[:3]).replace(' or ', ' and ')}, and not a quantity" if others else ""
    hint = _ROWS.get(name) or option or nearest(name, {*NOTATION, *WORDS, *_ROWS}, own)
    return LookupError(f"no letter is called {quoted(name)}; {hint}")


def found_by(name: str, letter: str, value) -> str:
    """Return an error message: a call gives a letter that `name` finds, which a search can limit.

    >>> found_by("training_step", "mfu", 0.4)
    "training_step finds mfu: leave it out, or limit it in a search, search(training_step, ..., mfu='> 0.4')"
    """
    unit, text = NOTATION[letter].unit, str(value).lstrip(" <>=≤≥")  # of a value, or of a limit
    text += " s" * (unit == "s" and text[-1:].isdigit())
    limit = quoted(f"{'<' if unit in ('s', 'B', '$', 'J') else '>'} {text}")
    how = f"limit it in a search, search({name}, ..., {letter}={limit})"
    return f"{name} finds {letter}: leave it out, or {how}"


@dataclass(frozen=True)
class Letter:
    """The entry of a quantity in the notation: name, unit, meaning, printed form in TeX, and sign."""

    name: str
    unit: str
    meaning: str
    tex: str
    sign: str = "positive"  # one of SIGNS
    whole: bool = False  # True for counts in a model or machine; averages and solutions may still be fractions

    @cached_property
    def symbol(self) -> sympy.Symbol:
        return sympy.Symbol(self.name, **{"nonnegative" if self.sign == "share" else self.sign: True})

    @property
    def short(self) -> str:
        """The meaning in a few words: cut at a comma, colon or bracket."""
        return re.split(r"[:,]| \(", self.meaning)[0].removesuffix(" per step")

    def __repr__(self):
        return f"{self.name} ({self.unit or 'count'}): {self.meaning}"


class Notation(dict):
    """The entries of all quantities by name.  Looking up an unknown name raises LookupError with the nearest names."""

    def __missing__(self, name) -> NoReturn:
        raise _no_letter(name)

    def __repr__(self):
        return aligned(([x.name, x.unit or "count", x.meaning] for x in self.values()), gap="  ")

    def _repr_html_(self):
        lines = ([x.name, x.unit or "count", x.meaning] for x in self.values())
        return styled(folded(page_table(["letter", "unit", "meaning"], lines, kind="sb-row"), f"{len(self)} letters"))


NOTATION = Notation()
GROUPS: dict[str, list[str]] = {}  # letters by the group in which a package's `letters.toml` has them
SIGNS = ("positive", "nonnegative", "real", "share")  # a share lies between 0 and 1


def letter(
    name: str, unit: str, meaning: str, tex: str | None = None, sign: str = "positive", whole=False
) -> sympy.Symbol:
    """Enter a quantity into the notation and return its SymPy symbol.  Entering the same one twice is harmless.

    Raises ValueError for a name that cannot be a parameter or has another meaning, and TypeError for what is not text.

    >>> letter("layers", "", "birds in a tree")
    Traceback (most recent call last):
        ...
    ValueError: 'layers' already means 'transformer blocks'
    """
    if not (name := word(name)).isidentifier() or not name.isascii() or keyword.iskeyword(name) or len(name) > 99:
        raise ValueError(f"{quoted(name)} cannot be a letter: its word is a parameter too, such as hbm_bandwidth")
    for what, text in {
        "unit": unit,
        "meaning": meaning,
        "printed form": "" if tex is None else tex,
        "sign": sign,
    }.items():
        if not isinstance(text, str):
            raise TypeError(f"the {what} of {name} is text, not {quoted(text)}")
    if not isinstance(whole, bool):
        raise TypeError(f"whole says whether {name} is a whole number, True or False, not {quoted(whole)}")
    named = rf"\mathrm{{{name.replace('_', chr(92) + '_')}}}"
    return _entered(Letter(name, unit, meaning, tex or named, sign, whole)).symbol


def _entered(new: Letter) -> Letter:
    """Enter a letter whose symbol is made when it is first asked for, so that an import is quick."""
    if new.sign not in SIGNS:
        raise ValueError(f"the sign of {new.name} is {either(map(repr, SIGNS))}, not {quoted(new.sign)}")
    if (old := NOTATION.setdefault(new.name, new)) is not new and old != new:
        raise ValueError(f"{new.name!r} already means {old.meaning!r}")
    return new


# A line of letters.toml with its unit, meaning, printed form in either kind of quotes, sign and `true`.
_LINE = re.compile(
    r"""^(\w+) = \["([^"\\]*)", "([^"\\]*)", (?:'([^'\n]*)'|"([^"\\]*)")(?:, "(\w+)")?(?:, (true))?\]$""", re.M
)


def _group(text: str) -> dict[str, list]:
    """Parse a group of letters: `tomllib` would need a tenth of the package's import for the plain lines."""
    lines = _LINE.findall(text)
    if len(lines) != len(re.findall(r"^\w+ *=", text, re.M)):
        return tomllib.loads(text)
    return {
        name: [unit, meaning, one or two, *([sign] if sign else []), *([True] if whole else [])]
        for name, unit, meaning, one, two, sign, whole in lines
    }


def letters_of(package: str) -> None:
    """Enter the quantities of a package's `letters.toml`: name = [unit, meaning, printed form, sign, whole].

    In a group with `members`, `#` stands for each member: its name, in meanings its description, in printed forms its
    mark.
    """
    groups = Stanzas("letters.toml", file_of(package, "letters.toml").read_text("utf-8"), _group)
    for head, group in groups.items():
        for member, called, mark in group.pop("members", [("", "", "")]):
            for name, (unit, meaning, tex, *rest) in group.items():
                said = name.replace("#", member), unit, meaning.replace("#", called), tex.replace("#", mark)
                GROUPS.setdefault(head, []).append(_entered(Letter(*said, *rest)).name)


def symbol(name: str) -> sympy.Symbol:
    """Return the SymPy symbol of a quantity.  Raises LookupError, with the nearest names, for an unknown one."""
    return NOTATION[word(name)].symbol


class _Ordered:
    """Print a sum with a positive term first: 1 - x, not -x + 1."""

    def _as_ordered_terms(self, expr, order=None):
        return sorted(super()._as_ordered_terms(expr, order=order), key=lambda term: term.could_extract_minus_sign())


class Latex(_Ordered, LatexPrinter):
    """LaTeX printer, for MathJax and KaTeX, that gives each term the colour that `inks` has for it."""

    def __init__(self, settings=None, inks: Mapping[sympy.Expr, str] | None = None):
        super().__init__(settings)
        self._inks, self._around = inks or {}, None

    def _print_Float(self, expr):
        """Name Euler's constant, whose digits say nothing to a reader."""
        named = {1: r"\gamma_{\mathrm{E}}", 2: r"\frac{\gamma_{\mathrm{E}}}{2}"}
        found = (text for part, text in named.items() if abs(part * expr - sympy.EulerGamma) < 1e-15)
        return next(found, None) or super()._print_Float(expr)

    def _print(self, expr, **kwargs):
        ink = self._inks.get(expr) if self._inks and isinstance(expr, sympy.Expr) else None
        if not ink or ink == self._around:
            return super()._print(expr, **kwargs)
        around, self._around = self._around, ink
        text = super()._print(expr, **kwargs)
        self._around = around
        return rf"\textcolor{{{ink}}}{{{text}}}"


class Text(_Ordered, StrPrinter):
    pass


def free(expr: sympy.Basic) -> frozenset[sympy.Symbol]:
    """Return the free symbols of an expression.  Faster than SymPy's: each subexpression is visited only once."""
    if expr.is_Symbol:
        return frozenset([expr])
    if isinstance(expr, sympy.Tuple):  # also a case of a Piecewise: hashing it takes longer than visiting its parts
        return frozenset().union(*map(free, expr.args))
    return _free(expr) if expr.args else frozenset()


@lru_cache(1 << 15)
def _free(expr):
    if isinstance(expr, ExprWithLimits):  # the index of a sum is not free
        return frozenset(expr.free_symbols)
    return frozenset().union(*map(free, expr.args))


_NO_NUMBERS = frozenset([sympy.nan, sympy.oo, -sympy.oo, sympy.zoo, sympy.I])


@lru_cache(1 << 15)
def _is_real(expr):
    """Return True if no subexpression is infinite, imaginary or NaN.  Visits each subexpression only once."""
    return all(_is_real(x) if x.args else x.is_Symbol or x not in _NO_NUMBERS for x in expr.args or [expr])


def expression(value) -> sympy.Basic:
    """Convert a number, a formula or an expression to SymPy.  Raises TypeError for text: SymPy would run it as code.

    >>> expression("2 * hidden")
    Traceback (most recent call last):
        ...
    TypeError: an expression is made of letters and numbers, such as 2 * symbol('hidden'), not '2 * hidden'
    """
    if hasattr(type(value), "_sympy_"):  # a formula
        return value._sympy_()
    if not isinstance(value, (sympy.Expr, bool)) and isinstance(value, Real):
        with suppress(sympy.SympifyError):  # NumPy's timedelta counts as a number
            value = sympy.sympify(value, strict=True)
    if not isinstance(value, sympy.Expr) or not _is_real(value):
        made_of = "letters and numbers, such as 2 * symbol('hidden')"
        raise TypeError(f"an expression is made of {made_of}, not {quoted(value)}")
    if value.is_Rational and max(abs(value.p), value.q) >= 10**4300:  # Python prints no more digits
        raise TypeError("an expression's numbers have fewer than 4,300 digits")
    return value


def in_letters(expr: sympy.Expr) -> sympy.Expr:
    """Replace each symbol of an expression by the notation's symbol of that name, or raise LookupError."""
    strange = {x: letter for x in free(expr) if x != (letter := symbol(x.name))}
    return expr.xreplace(strange) if strange else expr  # rebuilding an expression makes SymPy compare its Max again


def _is_share_of_sum(part: sympy.Expr) -> bool:
    return part.is_Mul and len(part.args) == 2 and part.args[0].is_Number and part.args[1].is_Add


_KEPT = (sympy.Max, sympy.Min, sympy.ceiling, sympy.floor)


def replaced(expr: sympy.Expr, places: Mapping, kept: tuple = _KEPT) -> sympy.Expr:
    """Replace symbols as `places` says.  Functions in `kept` are not evaluated again, which would take SymPy seconds.

    >>> replaced(sympy.Max(symbol("hidden"), symbol("ffn")), {symbol("ffn"): 4 * symbol("hidden")})
    Max(hidden, 4*hidden)
    """
    made = {}

    def again(part):
        if part in places or not part.args:
            return places.get(part, part)
        if part not in made:
            args = [again(x) for x in part.args]
            if tuple(args) == part.args:  # compared, not by identity, which depends on what was built before
                made[part] = part
            else:
                # a power of a sum stays as it is, after SymPy has asked whether each term is infinite, and so does a
                # share of a sum, which SymPy would multiply into each term
                is_kept = isinstance(part, kept) or (part.is_Pow and args[0].is_Add) or _is_share_of_sum(part)
                made[part] = part.func(*args, evaluate=False) if is_kept else part.func(*args)
        return made[part]

    return again(expr)


def root(product: sympy.Expr) -> sympy.Expr:
    """Return the square root of a product, factor by factor, since SymPy is slow at a whole product's sign.

    >>> root(symbol("hidden") * symbol("ffn"))
    sqrt(ffn)*sqrt(hidden)
    """
    letters, others = sift(sympy.Mul.make_args(product), _is_of_letters, binary=True)
    return sympy.Mul(*map(sympy.sqrt, letters), sympy.sqrt(sympy.Mul(*others)))


def _is_of_letters(factor: sympy.Expr) -> bool:
    """Return True if a factor is built from nonnegative letters and numbers by Max, Min, sums or powers only."""
    base = factor.base if factor.is_Pow else factor
    if base.func in (sympy.Max, sympy.Min, sympy.Add):
        return all(map(_is_of_letters, base.args))
    return bool((base.is_Symbol or base.is_Number) and base.is_nonnegative)


def tex(expr, names: dict | None = None, inks: Mapping[sympy.Expr, str] | None = None) -> str:
    r"""Return an expression as TeX in the book's notation.  `names` overrides printed forms; `inks` colours terms.

    >>> tex(symbol("peak_flops") / symbol("hbm_bandwidth"))
    '\\frac{F}{W_{\\mathrm{hbm}}}'
    """
    expr = expression(expr)
    printed = {x: NOTATION[x.name].tex for x in expr.free_symbols if x.name in NOTATION}
    return Latex({"symbol_names": printed | (names or {})}, inks).doprint(expr)


letters_of(__package__)
