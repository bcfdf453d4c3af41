"""Single-kernel measurements: products by shape, streams by size, launches, copies between tiers, collectives."""

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import NamedTuple

from scalebook.measure.backends import BITS, Backend
from scalebook.measure.clock import Sample, taken, together

__all__ = ["Measurement", "Probe", "plan"]

# Seconds that one product may take, and bytes of the largest streamed tensor, by `quick`.
_LONGEST = {True: 2e-3, False: 0.1}
_LARGEST = {True: 2**24, False: 2**28}
_ROWS = {True: (1, 16), False: (1, 2, 4, 8, 16, 32, 64, 128, 256)}
_STEP = 4  # factor from one stream size to the next
_TIMES = 9
_TRIED = 3  # tries of a larger square, since one may be disturbed


@dataclass(frozen=True)
class Measurement:
    """A timed kernel: a product of rows x inner by inner x columns, or a kernel that moves `traffic` bytes."""

    kind: str
    precision: str
    rows: int
    columns: int
    inner: int
    copies: int
    traffic: float
    sample: Sample

    @property
    def flops(self) -> float:
        return 2.0 * self.copies * self.rows * self.columns * self.inner

    @property
    def intensity(self) -> float:
        return self.flops / self.traffic

    def rate(self, seconds: float) -> float:
        """Return FLOP/s of a product or of attention, B/s of anything else."""
        return (self.flops if self.kind in ("product", "attention") else self.traffic) / seconds


class Probe(NamedTuple):
    """A part of the measurement: its name while it runs, and the function that runs it."""

    name: str
    run: Callable[..., list[Measurement]]


def plan(on: Backend, quick: bool = False) -> list[Probe]:
    """Return the probes in order; each returns its measurements when it is run."""
    parts = [(f"products in {x}", partial(_products, precision=x)) for x in on.precisions[: 1 if quick else None]]
    parts += [("streams", _streams), ("launches", _launches), ("attention", _attention)]
    parts += [("copies from and to the host", _copies)] if on.has_host else []
    parts += [("collectives", _collectives)] if on.devices > 1 else []
    return [Probe(name, partial(run, on, quick)) for name, run in [*parts, ("a file", _files)]]


def _products(on, quick, times=_TIMES, *, precision):
    """Time square products up to the largest that time allows (at least two), and thin ones on the way."""
    side, squares = 64, []
    while len(squares) < 2 or (squares[-1].sample.best * 8 < _LONGEST[quick] and side < 16384):
        side *= 2
        squares += _together(on, precision, [(side, side, side)], _TRIED)
    sides = [x.rows for x in squares]
    thin = min(sides[-1] * 2, 2048 if on.is_cpu else 8192)  # weights larger than most caches
    shapes = [(x, x, x) for x in sides] + [(x, thin, thin) for x in _ROWS[quick]]
    shapes += [] if quick else [(sides[-1], sides[-2], sides[-2]), (sides[-2], sides[-1], sides[-2])]
    return _together(on, precision, shapes, times)


def _together(on, precision, shapes, times):
    tensors = [(on.tensor((m, k), precision), on.tensor((k, n), precision)) for m, n, k in shapes]
    samples = together([on.product(*x) for x in tensors], on.wait, times)
    traffic = [(m * k + k * n + m * n) * BITS[precision] / 8 for m, n, k in shapes]
    each = zip(shapes, traffic, samples, strict=True)
    return [Measurement("product", precision, *shape, 1, moved, sample) for shape, moved, sample in each]


def _moved(kind, traffic, sample, precision=""):
    return Measurement(kind, precision, 0, 0, 0, 0, traffic, sample)


def _streams(on, quick, times=_TIMES):
    found, size = [], 2**14
    while size <= min(_LARGEST[quick], on.memory // 16):
        x, y = (on.tensor((size // 4,), "fp32") for _ in range(2))
        runs = {"read": (on.read(x), 1), "copy": (on.copy(x), 2), "add": (on.add(x, y), 3)}
        if wide := on.wide_copy and on.wide_copy(x):
            runs["wide copy"] = (wide, 2)
        samples = together([run for run, _ in runs.values()], on.wait, times)
        found += [_moved(k, n * size, s, "fp32") for (k, (_, n)), s in zip(runs.items(), samples, strict=True)]
        size *= _STEP
    return found


def _launches(on, quick, times=_TIMES):
    a, x = on.tensor((8, 8), "fp32"), on.tensor((8,), "fp32")
    samples = together([on.product(a, a), on.add(x, x)], on.wait, 3 * times)
    return [_moved("launch", 0.0, sample, "fp32") for sample in samples]


def _attention(on, quick, times=_TIMES):
    heads, tokens, width = (2, 128, 64) if quick else (8, 512, 64) if on.is_cpu else (32, 4096, 128)
    precision = on.precisions[0]
    made = [on.tensor((1, heads, tokens, width), precision) for _ in range(3)]
    [sample] = together([on.attention(*made)], on.wait, times)
    moved = 4 * heads * tokens * width * BITS[precision] / 8
    return [Measurement("attention", precision, tokens, tokens, 2 * width, heads, moved, sample)]


def _copies(on, quick, times=_TIMES):
    size = _LARGEST[quick]
    return [_moved("host", size, sample) for sample in together(on.host_copies(size), on.wait, times)]


def _collectives(on, quick, times=_TIMES):
    """Time all-gathers of small to large sizes; traffic is the bytes received from others."""
    share = (on.devices - 1) / on.devices
    sizes = [2**k for k in range(10, 25 if quick else 31, 4)]
    samples = [together([on.all_gather(n)], on.wait, times)[0] for n in sizes]
    return [_moved("all_gather", share * n, sample) for n, sample in zip(sizes, samples, strict=True)]


def _files(on, quick, times=_TIMES):
    size, seconds = _LARGEST[quick], []
    data = os.urandom(2**20)
    with tempfile.TemporaryFile() as file:
        for _ in range(min(times, 5)):
            start = perf_counter()
            file.seek(0)
            for _ in range(size // len(data)):
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
            seconds.append(perf_counter() - start)
    return [_moved("write", size, taken(seconds))]
