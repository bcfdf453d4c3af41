"""Sums and maxima taken apart, for a page to draw: which formulas are a bar, and of which pieces.

A formula is looked at as the JavaScript that pages evaluate, since a stored calculator may hold nothing else of it.
"""

import re
from collections.abc import Mapping

from scalebook.display.meanings import SHADES, Part, meaning

from .scheme import UNKNOWN

__all__ = ["addends", "alternatives", "bars"]

MEASURES = ("s", "B")  # times and memory add up to what a person looks for; shares and counts seldom do
LONGEST = 60  # of a piece that is no letter, as it is written
WIDEST = 28  # of what a bar's piece is called


def bars(formulas: Mapping[str, dict], asked, limits: Mapping[str, str], letter) -> list[dict]:
    """One bar for time and one for memory, of the first letters `asked` for that are a sum or a maximum.

    limits: the letter of the line that a bar must not pass; letter: what a letter means.
    """
    found = {}
    for name in asked:
        unit = letter(name).unit
        if unit in MEASURES and unit not in found and (rows := _rows(name, formulas, letter)):
            found[unit] = dict(letter=name, unit=unit, meaning=letter(name).meaning, rows=rows)
            if name in limits:
                found[unit]["line"] = dict(letter=limits[name], meaning=letter(limits[name]).meaning)
    return list(found.values())


def _rows(name, formulas, letter):
    """A row for each alternative of a maximum, one for a sum; none for what is neither."""
    if name not in formulas:
        return []
    several = alternatives(formulas[name]["js"])
    if several:
        pieces = [_short(addends(formulas[x]["js"])) or [x] if x in formulas else [x] for x in several]
    else:
        several, pieces = [name], [_short(addends(formulas[name]["js"]))]
    if not all(pieces) or not _short(several):
        return []
    return [
        dict(label=_called(x, letter).word, title=_word(x, letter), pieces=_ordered(own, letter))
        for x, own in zip(several, pieces, strict=True)
    ]


def _ordered(pieces, letter):
    """Parts of one kind beside each other: arithmetic, memory, network, waiting."""
    kinds = [*SHADES, "other"]
    found = [_piece(x, i, letter) for i, x in enumerate(pieces)]
    return sorted(found, key=lambda x: (kinds.index(x["kind"]), x["shade"]))


def _piece(js, place, letter):
    """A piece as a bar shows it: a short name, its colour, and in full what it is."""
    part = _called(js, letter, place)
    return dict(js=js, label=part.word, title=_word(js, letter), kind=part.kind, shade=part.shade)


def _called(js, letter, place=0) -> Part:
    """What a part is; what the book gives no meaning has a name of its own, and a colour by its place."""
    if found := meaning(re.findall(r"[A-Za-z_]\w*", js)):
        return found
    said = letter(js).meaning if re.fullmatch(r"\w+", js) else ""
    return Part(said if 0 < len(said) <= WIDEST else f"part {place + 1}", "other", place % len(UNKNOWN))


def _short(expressions):
    """The expressions, if each can be named."""
    return expressions if all(len(x) <= LONGEST for x in expressions) else []


def _word(js, letter):
    """A letter's meaning; an expression by its word where it has one, else as it is written."""
    if re.fullmatch(r"\w+", js):
        return letter(js).meaning
    part = _called(js, letter)
    return js.replace("Math.", "").replace("*", " · ") if part.kind == "other" else part.word


def addends(js: str) -> list[str]:
    """The terms of a sum, [] for what is none or subtracts.

    >>> addends("a + Math.max(b, c + d) + 2*e"), addends("a - b"), addends("a*b")
    (['a', 'Math.max(b, c + d)', '2*e'], [], [])
    """
    js = _bare(js)
    terms = _split(js, " + ")
    return (
        terms if len(terms) > 1 and not any(len(_split(f"{x} ", " - ")) > 1 or x.startswith("-") for x in terms) else []
    )


def alternatives(js: str) -> list[str]:
    """What a maximum is the largest of, [] for what is none.

    >>> alternatives("Math.max(a, b + Math.max(c, d))"), alternatives("2*Math.max(a, b)"), alternatives("Math.max(0)")
    (['a', 'b + Math.max(c, d)'], [], [])
    """
    js = _bare(js)
    if not js.startswith("Math.max(") or _closed(js, len("Math.max")) != len(js) - 1:
        return []
    found = _split(js[len("Math.max(") : -1], ", ")
    return [] if any(re.fullmatch(r"[\d.]+", x) for x in found) else found


def _bare(js):
    """An expression without the condition under which it holds."""
    js = " ".join(js.split())
    found = re.fullmatch(r"\(\((?:(?!\?).)*\) \? \( (.*) \) : \( NaN \)\)", js)
    return found[1] if found else js


def _split(js, at):
    """The parts of an expression between separators that stand in no bracket."""
    parts, depth, begin, i = [], 0, 0, 0
    while i < len(js):
        depth += (js[i] in "([") - (js[i] in ")]")
        if not depth and js.startswith(at, i):
            parts.append(js[begin:i].strip())
            i = begin = i + len(at)
            continue
        i += 1
    return [*parts, js[begin:].strip()]


def _closed(js, opened):
    """Where the bracket that opens there closes."""
    depth = 0
    for i in range(opened, len(js)):
        depth += (js[i] in "([") - (js[i] in ")]")
        if not depth:
            return i
    return -1
