"""Figures of requests served: what each waited for, and where a closed form ends."""

from collections.abc import Callable, Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from scalebook.display import figures
from scalebook.display.timeline import Bar, timeline
from scalebook.inference.served import Served
from scalebook.inference.simulation import simulate_serving
from scalebook.language import NOTATION, quantity, show

__all__ = ["queue_curve", "request_timeline"]


def queue_curve(
    closed: Callable[[float], float],
    loads: Iterable[float],
    name: str = "tpot",
    label: str = "closed form",
    ax: Axes | None = None,
    **engine,
) -> Axes:
    """How far a closed form is from the simulated mean of "ttft", "tpot" or "end_to_end", against the load.

    `closed` gives seconds at a rate; `engine` is what `simulate_serving` takes beside the rate, with `prompt_time` or
    `sequence_time`.  The load is the rate times what a request adds to steps, prompt_time + output * sequence_time.

    >>> engine = dict(prompt=1000, output=200, base_time=10e-3, sequence_time=50e-6, prompt_time=30e-3)
    >>> ax = queue_curve(lambda rate: 10e-3 / (1 - rate * 40e-3), [0.2, 0.4, 0.6, 0.9], **engine, requests=500)
    >>> ax.get_title(loc="left")
    'Closed form over simulation: within 5 % up to a load of 60 %'
    >>> ax.lines[0].get_ydata().round(2)
    array([-0.02, -0.03, -0.05,  0.22])
    """
    ax, loads = ax or figures.plt.gca(), np.array(list(loads), float)
    added = sum(
        times * quantity(letter, engine.get(letter, 0))
        for times, letter in ((1, "prompt_time"), (engine["output"], "sequence_time"))
    )
    if not added:
        raise ValueError("a load needs what a request adds to steps: prompt_time, sequence_time or both")
    simulated = [simulate_serving(**engine, rate=x / added).statistics(name)["mean"] for x in loads]
    error = np.array([closed(x / added) for x in loads]) / simulated - 1
    ax.plot(loads, error, "o-", label=label)
    ax.axhspan(-0.05, 0.05, color="#E3E6EA", label="_within")
    beyond = [*(np.abs(error) > 0.05).nonzero()[0], len(loads)][0]
    within = f"within 5 % up to a load of {show(loads[beyond - 1], '%')}" if beyond else "beyond 5 % at every load"
    ax.set_title(f"{label.capitalize()} over simulation: {within}")
    ax.set_xlabel("load (time that a second's requests add to steps)")
    ax.set_ylabel(f"{NOTATION[name].meaning}:\nclosed form over simulation, less 1")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda x, _: show(x, "%")))
    return ax


def request_timeline(run: Served, first: int = 1, number: int = 30, ax: Axes | None = None) -> Axes:
    """What some of the requests waited for: a lane each, from when it came to its last token.

    >>> from scalebook.inference import simulate_serving
    >>> run = simulate_serving(prompt=1000, output=20, users=12, base_time="10 ms", prompt_time="30 ms", chunk=2000)
    >>> ax = request_timeline(run, number=24)
    >>> ax.get_legend_handles_labels()[1], len(ax.get_yticks())
    (['waiting', 'prompt read', 'decoding'], 24)
    """
    chosen = range(first - 1, min(first - 1 + number, len(run.ends)))
    if first < 1 or not chosen:
        raise ValueError(f"the run has requests 1 to {len(run.ends)}, and none of {number} from {first} on")
    bars = []
    for i in chosen:
        moments = [float(x[i]) for x in (run.arrivals, run.starts, run.firsts, run.ends)]
        for kind, start, end in zip(("waiting", "prompt read", "decoding"), moments, moments[1:], strict=False):
            bars.append(Bar(str(i + 1), start, end - start, kind))
    ax = timeline(bars, ax, title=f"{len(chosen)} requests")
    ax.set_ylabel("request, in the order sent")
    return ax
