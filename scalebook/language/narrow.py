"""Print a wide equation as a few narrow ones: large parts get a name, and each name a line of its own.

>>> from scalebook.language import symbol
>>> a, b, c = (symbol(x) for x in ("ways", "link_latency", "collective_bytes"))
>>> whole, parts = in_parts(a / (b + c) + (b + c) ** 2 / a, most=10)
>>> whole, parts
(A*ways + B, [(A, 1/(collective_bytes + link_latency)), (B, (collective_bytes + link_latency)**2/ways)])
"""

import html
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache

import sympy

from .notation import NOTATION, replaced, tex

__all__ = ["MOST", "in_lines", "in_parts", "on_page", "width"]

MOST = 38  # about as many letters as a phone of 390 pixels shows in one line of an equation
_LEAST, _MOST_PARTS = 6, 12


@lru_cache(1 << 14)
def width(expr: sympy.Basic) -> float:
    """Estimate how wide an expression is in print, in letters: a fraction is as wide as its wider half."""
    if isinstance(expr, sympy.Dummy):
        return 1.5
    if expr.is_Symbol:
        shown = NOTATION[expr.name].tex if expr.name in NOTATION else expr.name
        base, _, raised = re.sub(r"\\(mathrm|bar|hat|tilde)|[{}\\]", "", shown).replace("^", "_").partition("_")
        return min(len(base), 2) + 0.7 * len(raised.replace("_", ""))
    if expr.is_Number:
        return len(str(expr)) if expr.is_Integer else 0.5 + max(len(str(x)) for x in expr.as_numer_denom())
    if isinstance(expr, sympy.Piecewise):
        return 3 + max(width(value) + width(holds) + 4 for value, holds in expr.args)
    over, under = expr.as_numer_denom() if expr.is_Mul or expr.is_Pow else (expr, sympy.S.One)
    if under != 1:
        return 1 + max(width(over), width(under))
    if expr.is_Pow:
        return width(expr.base) + (1.5 if expr.exp.is_Rational else 0.7 * width(expr.exp)) + 2 * expr.base.is_Add
    gap = 2.5 if expr.is_Add else 0.3 if expr.is_Mul else 1.2
    closed = sum(2 for x in expr.args if x.is_Add) if expr.is_Mul else 0 if expr.is_Add else 5
    return sum(map(width, expr.args)) + gap * (len(expr.args) - 1) + closed


@lru_cache(256)
def in_parts(expr: sympy.Basic, most: float = MOST) -> tuple[sympy.Basic, list[tuple[sympy.Symbol, sympy.Basic]]]:
    """Return an expression no wider than `most`, and its parts: pairs of a name (A, B, ...) and the meaning of it.

    A part may use the names after it. Parts that repeat, or that fill a line, are named first.
    """
    parts = []
    while width(expr) > most and len(parts) < _MOST_PARTS:
        found = Counter(x for x in sympy.preorder_traversal(expr) if x.args and isinstance(x, sympy.Expr))
        fit = [x for x in found if x != expr and _LEAST < width(x) <= most]
        if not fit:
            break
        part = max(fit, key=lambda x: (width(x) * found[x], sympy.default_sort_key(x)))
        name = sympy.Dummy(positive=True)
        expr, parts = replaced(expr, {part: name}), [(name, part), *parts]
    names = {name: sympy.Symbol(chr(ord("A") + i), positive=True) for i, (name, _) in enumerate(parts)}
    return replaced(expr, names), [(names[name], replaced(part, names)) for name, part in parts]


def in_lines(letter: str, expr: sympy.Basic, inks_of: Callable) -> str | None:
    """Return TeX that defines a quantity in narrow lines, in the colours of `inks_of`; None if one line will do."""
    if width(expr) <= MOST:
        return None
    inks = inks_of(expr)
    whole, parts = in_parts(expr)
    names = {name: rf"\mathcal{{{name}}}" for name, _ in parts}
    for name, part in reversed(parts):  # terms keep their colours
        inks = {replaced(term, {part: name}): ink for term, ink in inks.items()}
    lines = [rf"{NOTATION[letter].tex} &= {_in_rows(whole, names, inks)}"]
    lines += [rf"{names[name]} &= {tex(part, names)}" for name, part in parts]
    return r"\begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}"


def _in_rows(expr, names, inks):
    if not expr.is_Add or width(expr) <= MOST:
        return tex(expr, names, inks)
    text, filled = "", 0
    for term in sorted(expr.args, key=lambda x: x.could_extract_minus_sign()):
        own, filled = tex(term, names, inks), filled + width(term) + 2.5
        if filled > MOST:
            text, filled = rf"{text} \\ &\quad ", width(term)
        text += own if not text else f" {own}" if own.startswith("-") else f" + {own}"
    return text


def on_page(formula) -> str:
    """Return a formula as HTML: its equation, in lines that fit a phone, and the meaning of each letter."""
    said = html.escape
    words = [formula.letter, *formula.inputs]
    where = "; ".join(rf"\({said(NOTATION[x].tex)}\) <code>{x}</code> {said(NOTATION[x].meaning)}" for x in words)
    holds = f"; holds for {', '.join(said(x.words) for x in formula.domain)}" if formula.domain else ""
    whole = rf"\[{said(formula.latex)}\]"
    if formula.narrow:
        whole = rf"\[{said(formula.narrow)}\]<details><summary>In one line</summary>{whole}</details>"
    return (
        f'<div class="sb-formula mathjax_process tex2jax_process">{whole}'
        f'<p style="font-size: 85%; text-align: center">{where}{holds}</p></div>'
    )
