"""Options that are themselves symbols, so that one sheet covers both cases and a search can vary the option.

An option is True or False, a symbol that is 1 or 0, or a condition such as pp > 1.

>>> pick(symbol("dp_overlap"), 0, symbol("pp")), by_tier("tp", [2, 3])
(-dp_overlap*pp + pp, Piecewise((2, Eq(tp_tier, 0)), (3, True)))
"""

from collections.abc import Sequence
from functools import cache, lru_cache

from sympy import Eq, Expr, Piecewise, S, sympify

from scalebook.language import Formula
from scalebook.language.notation import symbol

from .documents import SOURCE

__all__ = ["by", "by_tier", "pick", "plain"]


def pick(choice, yes: Expr, no: Expr) -> Expr:
    """Return `yes` or `no` if `choice` is known, otherwise an expression that selects between them by `choice`."""
    if choice in (True, False):
        return yes if choice else no
    if choice.is_Symbol:
        return no + choice * (yes - no)
    return Piecewise((yes, choice), (no, S.true), evaluate=False)


def by(choice, yes: Sequence[Formula], no: Sequence[Formula]) -> list[Formula]:
    """Combine two lists of formulas into one that selects by `choice`. A formula in one list only stays as it is."""
    if choice in (True, False):
        return list(yes if choice else no)
    a, b = ({f.letter: f for f in x} for x in (yes, no))
    return [
        *(_either(choice, f, b.get(n, f)) for n, f in a.items()),
        *(f for n, f in b.items() if n not in a),
    ]


@cache
def _either(choice, yes: Formula, no: Formula) -> Formula:
    return yes if yes.rhs == no.rhs else plain(yes.letter, pick(choice, yes.rhs, no.rhs), yes.__doc__)


def by_tier(way: str, values: Sequence) -> Expr:
    """Return an expression that picks one of several values, one per network: the network that `way` (tp, ...) uses."""
    *others, last = map(sympify, values)
    if all(x == last for x in others):
        return last
    return Piecewise(*((x, Eq(symbol(f"{way}_tier"), n)) for n, x in enumerate(others)), (last, S.true), evaluate=False)


@lru_cache(1 << 14, typed=True)
def plain(letter: str, rhs, doc: str) -> Formula:
    """Return Calculon's formula for a quantity; the same call returns the same object.

    A search's hundreds of sheets share most formulas, so each is read, checked and entered into a plan only once.
    """
    return Formula(f"calculon_{letter}", letter, rhs, (SOURCE,), doc)
