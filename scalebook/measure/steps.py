"""Timed steps of a small transformer, used to test formulas that know only the machine's kernels."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from scalebook.measure.backends import Backend
from scalebook.measure.clock import Sample, taken
from scalebook.measure.transformer import Shape, adam, decode, train, turns

__all__ = ["DECODED", "Timed", "shapes", "timed"]


DECODED = (1, 8)  # batch sizes of decoding


@dataclass(frozen=True)
class Timed:
    """A timed part of a step, by its letter ("products" for all products of a step), with model, tokens and times."""

    letter: str
    shape: Shape
    batch: int
    seq: int
    precision: str
    sample: Sample


def shapes(on: Backend, quick: bool = False) -> tuple[Shape, Shape, int]:
    """Return the model to train, the model to decode (too large for caches), and the tokens of a sequence."""
    if quick:
        return Shape(2, 128, 2, 352, 256), Shape(4, 128, 2, 352, 256), 128
    if on.is_cpu:
        return Shape(2, 1024, 16, 2816, 2048), Shape(8, 1024, 16, 2816, 2048), 512
    return Shape(4, 4096, 32, 11008, 32000), Shape(8, 4096, 32, 11008, 32000), 2048


def timed(on: Backend, trained: Shape, decoded: Shape, seq: int, times: int = 5, told: Callable = str) -> list[Timed]:
    """Time training steps of one sequence, and decode steps of one and several sequences after `seq` tokens.

    The first step warms up. `told` is called after each step, for a progress bar.
    """
    precision = on.precisions[0]
    steps = _trained(on, trained, seq, precision, times, told)
    found = [Timed(letter, trained, 1, seq, precision, taken(x)) for letter, x in steps.items()]
    for batch in DECODED:
        seconds = _decoded(on, decoded, batch, seq, precision, 3 * times)
        told()
        found.append(Timed("pass_time", decoded, batch, seq, precision, taken(seconds)))
    return found


def _turn(on, shape, seq, first, precision):
    return tuple(on.given(x, precision) for x in turns(np, seq, shape.hidden // shape.heads, first))


class _Clocked:
    """A library wrapper that times matrix products, for a library that runs synchronously with Python."""

    def __init__(self, library):
        self.library, self.seconds = library, 0.0

    def __getattr__(self, name):
        return getattr(self.library, name)

    def matmul(self, a, b):
        start = perf_counter()
        made = self.library.matmul(a, b)
        self.seconds += perf_counter() - start
        return made


class _Laps:
    def __init__(self, wait):
        self.wait, self.seconds, self.running, self.since = wait, {"forward": 0.0, "backward": 0.0}, "", 0.0

    def __call__(self, what):
        self.wait()
        now = perf_counter()
        if self.running:
            self.seconds[self.running] += now - self.since
        self.running, self.since = what, now


def _trained(on, shape, seq, precision, times, told):
    rng = np.random.default_rng(0)
    xp, kept = on.library, {}
    w = shape.weights(lambda *size: on.tensor(size, precision))
    first, second = (shape.weights(lambda *size: on.tensor(size, precision) * 0) for _ in range(2))
    tokens = on.given(rng.permutation(shape.vocab)[:seq])
    hot = on.given(np.eye(shape.vocab)[rng.integers(0, shape.vocab, seq)], precision)
    turn = _turn(on, shape, seq, 0, precision)
    update = on.compiled(lambda *state: adam(xp, *state))
    whole = on.compiled(lambda w, *data: train(xp, w, *data, shape.heads, turn=turn))
    for i in range(times + 1):
        clocked, laps = _Clocked(xp), _Laps(on.wait)
        start = perf_counter()
        if on.is_eager:
            _, gradients = train(clocked, w, tokens, hot, shape.heads, turn=turn, on_block=laps)
        else:
            _, gradients = whole(w, tokens, hot)
        on.wait()
        between = perf_counter()
        w, first, second = update(w, gradients, first, second)
        on.wait()
        end = perf_counter()
        seconds = {f"block_{x}": took / shape.layers for x, took in laps.seconds.items()} if on.is_eager else {}
        seconds |= {"products": clocked.seconds} if on.is_eager and on.is_cpu else {}
        seconds |= {"optimizer_time": end - between, "step_time": end - start}
        told()
        for letter, took in seconds.items() if i else ():
            kept.setdefault(letter, []).append(took)
    return kept


def _decoded(on, shape, batch, seq, precision, times):
    xp, seconds = on.library, []
    w = shape.weights(lambda *size: on.tensor(size, precision))
    size = (batch, shape.heads, seq, shape.hidden // shape.heads)
    keys, values = ([on.tensor(size, precision) for _ in range(shape.layers)] for _ in range(2))
    turn, tokens = _turn(on, shape, 1, seq - 1, precision), on.given(np.arange(batch))
    run = on.compiled(lambda w, keys, values: decode(xp, w, keys, values, tokens, shape.heads, turn))
    for i in range(times + 1):
        start = perf_counter()
        run(w, keys, values)
        on.wait()
        if i:
            seconds.append(perf_counter() - start)
    return seconds
