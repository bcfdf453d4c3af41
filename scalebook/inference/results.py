"""Results of a serving simulation: request times, their means and percentiles, and throughput."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from scalebook.language.notation import quoted

__all__ = ["Served", "Steps"]


class Steps(NamedTuple):
    """Consecutive equal steps in which `batch` sequences decode; `tokens` is the number that all these steps output."""

    start: float
    seconds: float
    batch: int
    tokens: int


@dataclass(frozen=True, eq=False, repr=False)
class Served:
    """The result of a simulation: times of each request in seconds; results leave out the first `warmup` requests."""

    outputs: np.ndarray
    arrivals: np.ndarray
    starts: np.ndarray
    firsts: np.ndarray
    ends: np.ndarray
    steps: list[Steps]
    warmup: int = 0

    @property
    def ttft(self) -> np.ndarray:
        """Time to first token of each request, including its wait."""
        return (self.firsts - self.arrivals)[self.warmup :]

    @property
    def tpot(self) -> np.ndarray:
        """Time per output token after the first, of each answer with at least two tokens."""
        after = self.outputs[self.warmup :] - 1
        return (self.ends - self.firsts)[self.warmup :][after > 0] / after[after > 0]

    @property
    def end_to_end(self) -> np.ndarray:
        """Time from each request to its last token."""
        return (self.ends - self.arrivals)[self.warmup :]

    @property
    def throughput(self) -> float:
        """Output tokens per second, of all requests, from the arrival of the first that counts to the last token."""
        return sum(x.tokens for x in self._counted) / self._elapsed

    @property
    def utilisation(self) -> float:
        """Share of the measured time in which a step runs."""
        idle = sum(after.start - (x.start + x.seconds) for x, after in pairwise(self._counted))
        return 1 - idle / self._elapsed

    @property
    def mean_batch(self) -> float:
        """Sequences that decode in a step, averaged over the time of the steps."""
        return sum(x.batch * x.seconds for x in self._counted) / sum(x.seconds for x in self._counted)

    @cached_property
    def _counted(self):
        return [x for x in self.steps if x.start >= self.arrivals[self.warmup]]

    @property
    def _elapsed(self):
        return float(self.ends.max()) - self._counted[0].start

    def statistics(self, name: str) -> dict[str, float]:
        """Mean and percentiles of "ttft", "tpot" or "end_to_end".

        >>> from scalebook.inference import simulate_serving
        >>> simulate_serving(prompt=100, output=11, users=1, base_time="10 ms").statistics("tpot")
        {'mean': 0.01, 'p50': 0.01, 'p95': 0.01, 'p99': 0.01}
        """
        if not isinstance(name, str) or name not in ("ttft", "tpot", "end_to_end"):
            raise LookupError(f"a request has ttft, tpot and end_to_end, not {quoted(name)}")
        if not (times := getattr(self, name)).size:
            raise ValueError("no answer has a second token, so there is no time per output token after the first")
        return {"mean": float(times.mean()), **{f"p{q}": float(np.percentile(times, q)) for q in (50, 95, 99)}}

    def __repr__(self):
        mean = f"mean ttft {self.ttft.mean():.4g} s, end to end {self.end_to_end.mean():.4g} s"
        return f"{len(self.ttft)} requests at {self.throughput:.4g} token/s: {mean}"
