"""Inputs that nobody should give, and what became of each: a value, a clear sentence, an error from inside, or a hang.

An error is clear where a `raise` of the package raised it, with one sentence: what `float` or a missing key says from
inside names neither the letter nor what would have worked.
"""

import dis
import fractions
import math
import random
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import numpy as np
import sympy

import scalebook
from scalebook.inference.tokens import decoding
from scalebook.language import Formula, Sheet
from scalebook.memory.serving import weight_memory
from scalebook.tables import accelerators, models

FOLDER = str(Path(scalebook.__file__).parent)
CLEAR = (ValueError, TypeError, LookupError, AttributeError, OSError)
LONGEST = 1500  # characters of a sentence


class Hang(BaseException):
    """Raised by the alarm; no `except` of the package catches it."""


def _alarm(*_):
    raise Hang


def nested(depth):
    inside = []
    for _ in range(depth):
        inside = [inside]
    return inside


def _round():
    inside = [1]
    inside.append(inside)
    return inside


_hidden = sympy.Symbol("hidden")
ODD = [  # made anew for each input: a list, an iterator
    lambda: None, lambda: True, lambda: False, lambda: 0, lambda: -0.0, lambda: -1, lambda: 1, lambda: 2, lambda: 2.5,
    lambda: 7, lambda: 0.1, lambda: -1e-300, lambda: 5e-324, lambda: 1e308, lambda: 1e300, lambda: 10**9,
    lambda: 10**19, lambda: 10**30, lambda: 10**400, lambda: -(10**400), lambda: 10**5000,
    lambda: fractions.Fraction(10**500), lambda: fractions.Fraction(1, 3), lambda: Decimal("1e400"),
    lambda: Decimal("NaN"), lambda: Decimal("sNaN"), lambda: math.inf, lambda: -math.inf, lambda: math.nan, lambda: 1j,
    lambda: complex("nan"), lambda: "", lambda: " ", lambda: "x", lambda: "80 GB", lambda: "90 %", lambda: "3.35 TB/s",
    lambda: "1e9999 B", lambda: "-5 GB", lambda: "nan B", lambda: "٣ GB", lambda: "\x00", lambda: "a" * 100_000,
    lambda: "1" * 5000, lambda: "2024-13", lambda: "<b>&", lambda: "__import__('os')", lambda: b"80 GB",
    lambda: bytearray(b"1"), list, tuple, dict, set, lambda: [[]], lambda: [1, 2], lambda: [1, 2, 3],
    lambda: [1, [2, 3]], lambda: [None], lambda: ["a"], lambda: ["full", "none"], lambda: [["full"]],
    lambda: [1, math.nan], lambda: [True], lambda: [1, -2], lambda: [[1, 2], [3, 4]], lambda: range(3), lambda: {1, 2},
    lambda: frozenset({1}), lambda: {"layers": 3}, lambda: {1: 2}, lambda: {None: 3}, lambda: {"hiden": 3},
    lambda: {"hidden": [1]}, lambda: iter([1, 2]), lambda: (x for x in [1, 2]), lambda: object(), lambda: int,
    lambda: len, lambda: NotImplemented, lambda: ..., lambda: memoryview(b"ab"), lambda: nested(50),
    lambda: nested(3000), _round, lambda: np.float32(3), lambda: np.float64("nan"), lambda: np.int64(4),
    lambda: np.bool_(True), lambda: np.longdouble("1e4000"), lambda: np.datetime64("2024-01-01"),
    lambda: np.timedelta64(3, "s"), lambda: np.str_("80 GB"), lambda: np.array([]), lambda: np.array(5),
    lambda: np.array([[1, 2], [3, 4]]), lambda: np.array(["full", "none"]), lambda: np.array(["1"]),
    lambda: np.array([object()]), lambda: np.array([1, [2, 3]], dtype=object), lambda: np.zeros((0, 3)),
    lambda: np.ma.array([1.0, 999.0], mask=[0, 1]), lambda: np.ma.masked, lambda: np.array([1, np.nan]),
    lambda: np.array([1j]), lambda: np.zeros(1, [("a", int)]), lambda: np.array([b"1"]),
    lambda: np.arange(3)[:, None, None], lambda: sympy.oo, lambda: sympy.nan, lambda: sympy.zoo, lambda: sympy.I,
    lambda: sympy.Rational(1, 3), lambda: sympy.Integer(10) ** 500, lambda: _hidden, lambda: sympy.Symbol("zz"),
    lambda: _hidden + sympy.I, lambda: _hidden * sympy.oo, lambda: sympy.true, lambda: sympy.Eq(_hidden, 1),
    lambda: _hidden > 2, lambda: sympy.Matrix([1, 2]), lambda: sympy.Integral(_hidden, _hidden),
    lambda: sympy.Function("f")(_hidden), lambda: sympy.Max(_hidden, 3), lambda: sympy.Symbol("a b"),
    lambda: accelerators.h100, lambda: models.llama3_8b, lambda: accelerators, lambda: weight_memory, lambda: decoding,
    lambda: Mapping, lambda: Path("no such file"),
]  # fmt: skip


def odd(rng: random.Random):
    return rng.choice(ODD)()


def described(value, most=160):
    """A value as the list of offenders prints it, whatever its own repr does."""
    try:
        text = f"{type(value).__name__} {value!r}"
    except (ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= most else text[: most - 1] + "…"


def _raised(error) -> str:
    """Where an error came from: "" for a `raise` of the package."""
    step = error.__traceback__
    while step.tb_next:
        step = step.tb_next
    code = step.tb_frame.f_code
    said = str(error)
    if (
        step is error.__traceback__.tb_next
        and isinstance(error, TypeError)
        and ("required" in said or "unexpected keyword" in said)
    ):
        return ""  # Python itself names the parameter of the entry's own signature
    name = next((x.opname for x in dis.get_instructions(code) if x.offset == step.tb_lasti), "")
    here = f"{code.co_filename.removeprefix(FOLDER + '/')}:{step.tb_lineno}"
    if not code.co_filename.startswith(FOLDER):
        frames, step = [], error.__traceback__
        while step:
            if step.tb_frame.f_code.co_filename.startswith(FOLDER):
                frames.append(f"{step.tb_frame.f_code.co_filename.removeprefix(FOLDER + '/')}:{step.tb_lineno}")
            step = step.tb_next
        return f"{here} (from {frames[-1] if frames else 'outside'})"
    return "" if name == "RAISE_VARARGS" else here


def _unclear(error) -> str:
    """What is wrong with an error, or nothing."""
    place = _raised(error)
    said = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if place or not isinstance(error, CLEAR) or isinstance(error, NotImplementedError):
        return f"{type(error).__name__} {said[:120]!r} at {place or 'a raise of the package'}"
    if not said.strip() or "\n" in said or len(said) > LONGEST:
        step = error.__traceback__
        while step.tb_next:
            step = step.tb_next
        here = f"{step.tb_frame.f_code.co_filename.removeprefix(FOLDER + '/')}:{step.tb_lineno}"
        return f"{type(error).__name__} with {len(said):,} characters, {said[:60]!r}, at {here}"
    return ""


def _strange(value, depth=0) -> str:
    """What in a result is no value: NaN, infinity."""
    if isinstance(value, (float, np.floating, int, np.integer, fractions.Fraction)):
        return "" if math.isfinite(value) else f"gave {value}"
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return "" if np.isfinite(value).all() else "gave an array with NaN or infinity"
    if isinstance(value, sympy.Basic):
        return "gave " + str(value) if value.has(sympy.nan, sympy.oo, sympy.zoo) else ""
    if isinstance(value, Formula):
        return "" if value.method == "numeric" else _strange(value.rhs)
    if isinstance(value, Sheet) or depth > 3:
        return ""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return next(filter(None, (_strange(x, depth + 1) for x in value)), "")
    return ""


class Record:
    """What became of many inputs: counts by outcome, and the offenders."""

    def __init__(self):
        self.counts, self.offenders, self.places = Counter(), [], Counter()

    def __call__(self, entry, given, call, limit=10.0):
        """Try one input: `call` makes a result, which must be finite and must show itself."""
        before = signal.signal(signal.SIGPROF, _alarm)
        signal.setitimer(signal.ITIMER_PROF, limit)
        wrong = ""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                result = call()
                outcome = "value"
                if wrong := _strange(result):
                    outcome = "NaN or infinity"
                else:
                    for view in ("__repr__", "_repr_html_", "_repr_latex_"):
                        if hasattr(type(result), view) and not isinstance(result, type):
                            getattr(result, view)()
        except Hang:
            outcome, wrong = "hang", f"not back after {limit:g} s"
        except Exception as error:
            wrong = _unclear(error)
            outcome = "from inside" if wrong else "clear sentence"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)
        self.counts["inputs"] += 1
        self.counts[outcome] += 1
        if wrong:
            self.places[wrong.rpartition(" at ")[2]] += 1
            self.offenders.append(f"{entry}({described(given, 400)}): {wrong}")

    def __repr__(self):
        return ", ".join(f"{n:,} {what}" for what, n in self.counts.items())

    def check(self, at_least):
        """Fail, with the first offenders, unless every input got a value or a clear sentence."""
        print(self, file=sys.stderr)
        assert self.counts["inputs"] >= at_least
        shown = "\n".join(self.offenders[:12])
        assert not self.offenders, f"{self!r}; {len(self.places)} places; the first:\n{shown}"
        assert self.counts["value"] and self.counts["clear sentence"], "one of the two never came: what was tried?"
