"""Units: read `8 TB/s`, write it back, and check a formula by changing its units.

Internally everything is in bytes, seconds, joules and dollars; FLOP, tokens, parameters and tonnes are counts.  Prices
per hour or per megawatt-hour keep that unit: a price of 2 $/h is 2.  Prefixes are only for reading and writing.
"""

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache
from numbers import Real

import numpy as np
import sympy

from .notation import NOTATION, Letter, quoted, word
from .stanzas import tables_of

__all__ = ["BASE", "Quantity", "check", "dimension", "numbers", "parse", "show", "show_tex"]

BASE = ("B", "s", "J", "$")
_STATED = tables_of(__package__, "units.toml")
_UP, _DOWN, _COUNTS, _COUNTED, _LONG = (_STATED["shown"][x] for x in ("up", "down", "counts", "counted", "long"))
_PREFIXES = {p: 1e3**i for i, p in enumerate(_UP)} | {"m": 1e-3, "u": 1e-6, "µ": 1e-6, "n": 1e-9, "p": 1e-12}
_PREFIXES |= {f"{p}i": 1024.0**i for i, p in enumerate("KMGT", 1)}
_DIGITS = Context(prec=4, rounding=ROUND_HALF_UP)
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def is_masked(value) -> bool:
    """Return True for a NumPy masked array. Only an array makes NumPy import its masked arrays, which takes 10 ms."""
    return isinstance(value, np.ndarray) and isinstance(value, np.ma.MaskedArray)


def numbers(value) -> np.ndarray:
    """Return numbers as a new array of floats. Raises TypeError for what is no number, OverflowError if too large."""
    try:
        array = np.asarray(value)
        kinds = (Real, Decimal, sympy.Expr)
        is_objects = array.dtype.kind == "O" and all(isinstance(x, kinds) and type(x) is not bool for x in array.flat)
        if is_objects or array.dtype.kind in "iuf":
            with np.errstate(over="ignore"):
                return array.astype(float)  # copy, so that a row does not change if the caller's array does
    except OverflowError:
        raise
    except (TypeError, ValueError, ArithmeticError, RecursionError):  # raised for arrays of objects and deep lists
        pass
    raise TypeError(f"numbers are expected, not {quoted(value)}")


def dimension(unit: str) -> tuple[int, ...]:
    """Return the powers of byte, second, joule and dollar in a unit: (1, -1, 0, 0) for "B/s"."""
    return _dimension(word(unit, "a unit"))


@cache
def _dimension(unit):
    powers = dict.fromkeys(BASE, 0)
    for sign, part in zip((1, -1), unit.split("/"), strict=False):
        if part not in _STATED["powers"] or unit.count("/") > 1:
            known = ", ".join(sorted(filter(None, _STATED["powers"])))
            raise ValueError(f"{quoted(unit)} is not a unit; there are: {known}, and one over another (B/s)")
        for base, power in _STATED["powers"][part].items():
            powers[base] += sign * power
    return tuple(powers.values())


def parse(quantity: str, unit: str) -> float:
    """Read a text such as "8 TB/s" as a number in base units.  It must carry `unit`, which counts may leave out.

    >>> parse("8 TB/s", "B/s"), parse("480 GiB", "B"), parse("1.5 us", "s"), parse("2022-07", "year")
    (8000000000000.0, 515396075520.0, 1.5e-06, 2022.5)
    >>> parse("15 trillion tokens", "token") == parse("15T", "token"), parse("10 days", "s"), parse("$2/hour", "$/h")
    (True, 864000.0, 2.0)
    >>> parse("5 years", "s"), parse("400 Gbit/s", "B/s"), parse("$2", "$/h"), parse("0.8", "%")
    (157680000.0, 50000000000.0, 2.0, 0.8)
    >>> parse("200", "request/s"), parse("200/s", "request/s"), parse("200 req/s", "request/s")
    (200.0, 200.0, 200.0)
    >>> parse("80 GB", "B/s")
    Traceback (most recent call last):
        ...
    ValueError: '80 GB' is not a number with the unit B/s (such as '3.35 TB/s')
    """
    dimension(unit)  # refuses what is no unit
    text = quantity.strip() if isinstance(quantity, str) else ""
    for other, ours in _STATED["spelled"].items() if unit != "year" else ():
        text = re.sub(other, ours, text)
    number, rest = re.match(r"([-+.\d]*(?:[eE][-+]?\d{1,4})?) ?(.*)", text).groups()
    try:
        if unit == "%" and rest == unit:
            if not math.isfinite(value := float(Decimal(number) / 100)):
                raise ValueError
            return value
        if unit == "year":
            year, _, month = number.partition("-")
            if rest or not 1 <= int(month or 1) <= 12:
                raise ValueError
            return int(year) + (int(month or 1) - 1) / 12
        times, rest = _times(rest, unit)
        rest = unit if rest in _STATED["short"].get(unit, ()) else rest
        prefix = rest.removesuffix(unit) if rest.endswith(unit) else None
        if prefix not in _PREFIXES or (not unit and prefix):
            raise ValueError
        # "80 mB" is a typing error for "80 MB", and only bytes have binary prefixes.
        small, binary = _PREFIXES[prefix] < 1, prefix.endswith("i")
        if (small and unit not in ("s", "J", "W")) or (binary and not unit.startswith("B")):
            raise ValueError
        if not math.isfinite(value := float(Decimal(number) * Decimal(str(_PREFIXES[prefix])) * Decimal(str(times)))):
            raise ValueError
        return value
    except (ValueError, ArithmeticError):
        hint = f"such as {_STATED['examples'].get(unit, '3 ' + unit)!r}"
        wanted = f"a number with the unit {unit} ({hint})" if unit else "a plain number, which this letter needs"
        raise ValueError(f"{quoted(quantity)} is not {wanted}") from None


def _times(rest: str, unit: str) -> tuple[float, str]:
    """Return what a word behind a number multiplies it by, such as "trillion" or "days", and the unit behind it."""
    times, spans = _STATED["times"], _STATED["spans"]
    first, _, others = rest.partition(" ")
    if unit in ("s", "h") and (span := spans.get(rest) or spans.get(rest.removesuffix("s"))):
        return span / spans.get(unit, 1), unit
    if unit in ("B", "B/s") and "bit" in rest:
        return 1 / 8, rest.replace("bit", "B")
    if unit in _COUNTED and unit != "%" and first != unit and first.lower() in times:
        return times[first.lower()], others
    return 1, rest


def _round(value: float) -> float:
    """Round to four significant digits, halves away from zero; twelve digits first, against the noise of summation."""
    return float(_DIGITS.create_decimal(float(f"{value:.12g}")))


def _plain(value: float) -> str:
    digits = repr(value).removesuffix(".0")
    whole, dot, rest = digits.partition(".")
    return f"{int(whole):,}{dot}{rest}" if abs(value) >= 1000 else digits


def show(value: float, unit: str = "") -> str:
    """Write a number with four digits, a prefix and its unit: "3.35 TB/s".

    >>> show(3.35e12, "B/s"), show(1.5e-6, "s"), show(7200, "s"), show(32768), show(6.738e9)
    ('3.35 TB/s', '1.5 µs', '2 h', '32,768', '6.738 billion')
    >>> show(2.5, "$/h"), show(0.109375), show(0.109375, "%"), show(2022.5, "year"), show(1.5e28, "FLOP")
    ('2.5 $/h', '0.1094', '10.94 %', '2022-07', '1.5×10²⁸ FLOP')
    >>> show(282.67 * 86400, "s")
    '282.7 days'

    Raises TypeError for anything that is not a number, and ValueError for NaN, infinity or an unknown unit.
    """
    dimension(unit)  # refuses what is no unit
    try:
        if type(value) is not float:
            is_one = not isinstance(value, str | bytes | bytearray) and not is_masked(value) and not np.ndim(value)
            value = float(value) if is_one else None
    except (TypeError, ValueError, ArithmeticError, RecursionError):
        value = None
    if value is None:
        raise TypeError("only a number can be shown with a unit")
    if not math.isfinite(value):
        raise ValueError(f"a number is shown, and {value} is none")
    if unit == "year":
        months = round(value * 12)
        return f"{months // 12}-{months % 12 + 1:02d}"
    if unit == "%":
        if abs(value) > 1e306:
            raise ValueError(f"a share of {value:g} is too large to be shown in percent")
        value *= 100
    if unit == "" and value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    exact, value = value, _round(value)
    size, spaced, limit = 1.0, f" {unit}" if unit else "", 1e6
    if unit in _COUNTED and 1e6 <= abs(value) < 1e18:
        step = sum(abs(value) >= 1000.0**k for k in range(3, 6))
        size, spaced = 1000.0 ** (step + 2), f" {_COUNTS[step]}{spaced}"
    elif unit == "s" and abs(value) >= 120:
        size, name = next(x for x in _LONG if abs(value) >= 2 * x[0])
        spaced = f" {name}"
    elif unit not in _COUNTED and value:
        low, high = (-4 if unit in ("s", "J") else 0), (0 if unit == "s" else 6)
        step = sum(abs(value) >= 1000.0**k for k in range(low + 1, high + 1)) + low
        prefix = _UP[step] if step >= 0 else _DOWN[-step]
        size, spaced, limit = 1000.0**step, f" {prefix}{unit}", 1e4
    # 60 and 86,400 are no powers of ten, so what they divide has not been rounded before
    scaled = _round((exact if size in dict(_LONG) else value) / size)
    if scaled and not 1e-3 <= abs(scaled) < limit:
        scaled, power = map(float, f"{value:.3e}".split("e"))
        spaced = f"×10{str(int(power)).translate(_RAISED)}" + (f" {unit}" if unit else "")
    return _plain(scaled) + spaced


class Quantity(float):
    """A number in base units that knows its unit: a notebook shows it as a person would write it.

    It is a float in every other way. What is computed from it is a plain float again.

    >>> from scalebook.machine.roofline import ridge_intensity
    >>> ridge = ridge_intensity(peak_flops="1 PFLOP/s", hbm_bandwidth="4 TB/s")
    >>> ridge, ridge.unit, 2 * ridge
    (250.0, 'FLOP/B', 500.0)
    """

    __slots__ = ("unit",)

    def __new__(cls, value: float, unit: str):
        made = super().__new__(cls, value)
        made.unit = unit
        return made

    def __getnewargs__(self):
        return float(self), self.unit

    def _repr_pretty_(self, printer, cycle):
        printer.text(show(self, self.unit))


def show_tex(value: float, unit: str = "") -> str:
    r"""Write a number with its unit, as `show` does, in TeX.

    >>> print(show_tex(3.35e12, "B/s"), show_tex(32768))
    3.35\,\mathrm{TB/s} 32{,}768
    """
    number, _, rest = show(value, unit).partition(" ")
    if "×10" in number:
        number, _, power = number.partition("×10")
        number += rf"\times 10^{{{power.translate({v: chr(k) for k, v in _RAISED.items()})}}}"
    unit_tex = rest.replace("$", r"\$").replace("%", r"\%").replace(" ", r"\ ").replace("µ", r"\mu ")
    return number.replace(",", "{,}") + (rf"\,\mathrm{{{unit_tex}}}" if rest else "")


def check(formula, trials: int = 64, seed: int = 0) -> None:
    """Raise ValueError unless the formula holds in every system of units.

    It computes the same quantities in random other units of bytes, seconds, joules and dollars.  The right-hand side
    must change exactly as the left-hand side does, so Max, ceiling and Piecewise need no rules of their own.
    """
    if not formula.inputs:
        return
    rng = np.random.default_rng(seed)
    change = rng.uniform(-3, 3, (trials, len(BASE)))

    def factor(letter: Letter):
        return np.exp(change @ dimension(letter.unit))

    letters = [NOTATION[x] for x in formula.inputs]
    old = np.exp(rng.uniform(-4, 4, (len(letters), trials)))  # values below 1 too, because some letters are shares
    new = [x * factor(letter) for x, letter in zip(old, letters, strict=True)]
    with np.errstate(all="ignore"):
        expected = formula.numpy(*old) * factor(NOTATION[formula.letter])
        got = formula.numpy(*new) * np.ones(trials)
    if not (np.isfinite(expected) & (expected != 0)).any():
        raise ValueError(f"{formula.name} cannot be checked: it has no value at any of {trials} random points")
    if not np.allclose(got, expected, rtol=1e-9, atol=0, equal_nan=True):
        raise ValueError(f"{formula.name} does not have the unit of {formula.letter}, {NOTATION[formula.letter].unit}")


def words_in(text: str, replace) -> str:
    """Replace every name in the text of an expression by `replace(name)`."""
    return re.sub(r"[A-Za-z_]\w*", lambda m: replace(m.group()), text)
