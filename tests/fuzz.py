"""Inputs that nobody should give, and what became of each: a value, a clear sentence, an error from inside, or a hang.

An error is clear where a `raise` of the package raised it, with one sentence: what `float` or a missing key says from
inside names neither the letter nor what would have worked.
"""

import decimal
import dis
import fractions
import math
import random
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import sympy

import scalebook
from scalebook import inference, memory, tables
from scalebook.language import Formula, Sheet

from .support import cases

FOLDER = str(Path(scalebook.__file__).parent)
CLEAR = (ValueError, TypeError, LookupError, AttributeError, OSError, ImportError)
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
# Functions, since each input is made anew: a list, an iterator.
NAMES = dict(globals(), decimal=decimal, inference=inference, memory=memory, tables=tables)
ODD = [*cases("what nobody should give", NAMES).values()]

EDGE = [*cases("values at the edge of what is taken", NAMES).values()]


def odd(rng: random.Random):
    return rng.choice(ODD)()


def described(value, most=160):
    """A value as the list of offenders prints it, whatever its own repr does."""
    try:
        text = f"{type(value).__name__} {value!r}"
    except (ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= most else text[: most - 1] + "…"


def _places(error) -> list[str]:
    """The file and line of each call that an error came through, the innermost last."""
    return [f"{x.filename}:{x.lineno}" for x in traceback.extract_tb(error.__traceback__)]


def _raised(error, is_keyword) -> str:
    """Where an error came from: "" for a `raise` of the package."""
    places, step = _places(error), error.__traceback__
    if len(places) == 2 and isinstance(error, TypeError) and "() " in str(error) and not is_keyword:
        return ""  # Python itself names the parameter of the entry's own signature
    while step.tb_next:
        step = step.tb_next
    inside = [x.removeprefix(FOLDER + "/") for x in places if x.startswith(FOLDER)]
    if not places[-1].startswith(FOLDER):
        return f"{places[-1]} (from {inside[-1] if inside else 'outside'})"
    return "" if dis.opname[step.tb_frame.f_code.co_code[step.tb_lasti]] == "RAISE_VARARGS" else inside[-1]


def _unclear(error, is_keyword) -> str:
    """What is wrong with an error, or nothing."""
    place = "" if isinstance(error, OSError) and error.filename else _raised(error, is_keyword)  # which names the file
    said = str(error)
    if place or not isinstance(error, CLEAR) or isinstance(error, NotImplementedError):
        return f"{type(error).__name__} {said[:120]!r} at {place or 'a raise of the package'}"
    if not said.strip() or "\n" in said or len(said) > LONGEST:
        return f"{type(error).__name__} with {len(said):,} characters, {said[:60]!r}, at {_places(error)[-1]}"
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
        value = [value[x] for x in value]
    if isinstance(value, (list, tuple)):
        return next(filter(None, (_strange(x, depth + 1) for x in value)), "")
    return ""


class Record:
    """What became of many inputs: counts by outcome, and the offenders."""

    def __init__(self):
        self.counts, self.offenders, self.places = Counter(), [], Counter()

    def __call__(self, entry, given, call, limit=10.0, is_keyword=False):
        """Try one input: `call` makes a result, which must be finite and must show itself.

        What is called by keyword says itself which keywords it takes; of all else Python says it.
        """
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
            wrong = _unclear(error, is_keyword)
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
