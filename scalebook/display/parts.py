"""Split sums and maxima, given as JavaScript, into parts that a page draws as bars."""

import re
from collections.abc import Mapping

from scalebook.display.meanings import SHADES, Part, meaning

from .scheme import UNKNOWN

__all__ = ["addends", "alternatives", "bars"]

MEASURES = ("s", "B")  # only times and memory are drawn as bars; shares and counts seldom add up
LONGEST = 60  # characters of a piece that is not a letter
WIDEST = 28  # characters of a piece's name


def bars(formulas: Mapping[str, dict], asked, limits: Mapping[str, str], letter) -> list[dict]:
    """Return one bar for time and one for memory: the first of the `asked` quantities that are sums or maxima.

    `limits` maps a quantity to the one that it must not exceed, drawn as a line. `letter` is called with a quantity's
    name and returns its entry in the notation.
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
    """Return a row for each alternative of a maximum, one row for a sum, and none for anything else."""
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
    kinds = [*SHADES, "other"]
    found = [_piece(x, i, letter) for i, x in enumerate(pieces)]
    return sorted(found, key=lambda x: (kinds.index(x["kind"]), x["shade"]))


def _piece(js, place, letter):
    part = _called(js, letter, place)
    return dict(js=js, label=part.word, title=_word(js, letter), kind=part.kind, shade=part.shade)


def _called(js, letter, place=0) -> Part:
    """Return the part that an expression stands for; unknown ones get a number and a colour by position."""
    if found := meaning(re.findall(r"[A-Za-z_]\w*", js)):
        return found
    said = letter(js).meaning if re.fullmatch(r"\w+", js) else ""
    return Part(said if 0 < len(said) <= WIDEST else f"part {place + 1}", "other", place % len(UNKNOWN))


def _short(expressions):
    return expressions if all(len(x) <= LONGEST for x in expressions) else []


def _word(js, letter):
    if re.fullmatch(r"\w+", js):
        return letter(js).meaning
    part = _called(js, letter)
    return js.replace("Math.", "").replace("*", " · ") if part.kind == "other" else part.word


def addends(js: str) -> list[str]:
    """Return the terms of a sum in JavaScript, or [] if the expression is not a sum or subtracts something."""
    terms = _split(_bare(js), " + ")
    subtracts = any(len(_split(f"{x} ", " - ")) > 1 or x.startswith("-") for x in terms)
    return terms if len(terms) > 1 and not subtracts else []


def alternatives(js: str) -> list[str]:
    """Return the arguments of a JavaScript Math.max, or [] if the expression is not one."""
    js = _bare(js)
    if not js.startswith("Math.max(") or _closed(js, len("Math.max")) != len(js) - 1:
        return []
    found = _split(js[len("Math.max(") : -1], ", ")
    return [] if any(re.fullmatch(r"[\d.]+", x) for x in found) else found


def _bare(js):
    js = " ".join(js.split())
    found = re.fullmatch(r"\(\((?:(?!\?).)*\) \? \( (.*) \) : \( NaN \)\)", js)
    return found[1] if found else js


def _split(js, at):
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
    depth = 0
    for i in range(opened, len(js)):
        depth += (js[i] in "([") - (js[i] in ")]")
        if not depth:
            return i
    return -1
