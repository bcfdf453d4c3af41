r"""What each part of a sum or maximum stands for: arithmetic, memory, network or waiting, with a short name.

Bars, figures and equations take their colours from here.  A part's kind sets the hue, and the part itself the shade.

>>> meaning(["kv_cache", "cache_ways"]), meaning(["kv_cache", "queue_time"])
(Part(word='cache', kind='memory', shade=1), None)
"""

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

import sympy

from scalebook.language.stanzas import tables_of

from .colours import LIGHT, STATED, away

__all__ = ["PARTS", "SHADES", "Part", "coloured_terms", "ink_of", "meaning"]

SHADES = {kind: tuple(own) for kind, own in STATED["shades"].items()}


@cache
def ink_of(shade: str) -> str:
    """Return the text colour for a shade: the shade, darkened until its contrast with the page is at least 4.5."""
    return away(shade, LIGHT, 4.5).upper()


class Part(NamedTuple):
    """A quantity as one part of a total: a short name, and a kind ("memory").  `shade` is an index in `SHADES`."""

    word: str
    kind: str
    shade: int

    @property
    def fill(self) -> str:
        return SHADES[self.kind][self.shade]

    @property
    def ink(self) -> str:
        return ink_of(self.fill)


_FILE = tables_of(__package__, "meanings.toml")
PARTS = {name: Part(word, kind, shade) for kind, own in _FILE.items() for name, (shade, word) in own.items()}
# Rates decide the kind of a term: bytes over a link bandwidth are a network time.
_RATES = ("peak_flops", "index_peak", "hbm_bandwidth", "link_bandwidth", "link_achieved")
_PLACES = {name: i for i, name in enumerate(PARTS)}


def meaning(letters: Iterable[str]) -> Part | None:
    """Return the `Part` that a term of an equation stands for, given the names of the quantities in it.

    A rate such as `peak_flops` decides the kind; without one, the kinds must agree.  Returns None if they differ.
    """
    names = sorted(filter(PARTS.get, letters), key=_PLACES.get)
    kinds = {PARTS[x].kind for x in names if x in _RATES} or {PARTS[x].kind for x in names}
    return next(PARTS[x] for x in names if PARTS[x].kind in kinds) if len(kinds) == 1 else None


@lru_cache(1024)
def coloured_terms(expr: sympy.Expr) -> dict[sympy.Expr, str]:
    r"""Return a colour for each term of an expression's sums and maxima; none if all would have the same colour.

    >>> from scalebook.inference.tokens import token_time
    >>> sorted((x.name, ink) for x, ink in coloured_terms(token_time.rhs).items())
    [('compute_time', '#0072B2'), ('memory_time', '#00865D')]
    """
    found: dict[sympy.Expr, str] = {}
    wholes = expr.atoms(sympy.Add, sympy.Max)
    for whole in sorted(wholes, key=lambda x: (sympy.count_ops(x), str(x))):  # inner expressions come first
        terms = [-x if x.could_extract_minus_sign() else x for x in whole.args]  # the term as printed, without its sign
        # Other terms already have several colours.
        plain = [x for x in terms if x in found or not any(x.has(y) for y in found)]
        parts = {x: part.ink for x in plain if (part := meaning(y.name for y in x.free_symbols))}
        within = {ink for term, ink in found.items() if whole.has(term)}
        if len(within.union(parts.values())) > 1:
            found |= parts
    return found
