"""Figures of simulated serving: what each request waited for, and up to which load closed forms hold."""

from collections.abc import Callable, Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter
from scalebook.book.drawings import figures
from scalebook.book.drawings.timeline import Bar, timeline

from scalebook.inference.results import Served
from scalebook.inference.simulation import simulate_serving
from scalebook.language import show
from scalebook.language.row import quantity

__all__ = ["queue_curve", "request_timeline"]

NEAR = 0.05


def queue_curve(
    closed: Callable[[float], float],
    loads: Iterable[float],
    name: str = "tpot",
    label: str = "closed form",
    ax: Axes | None = None,
    **engine,
) -> Axes:
    """Draw the error of a closed form against simulation, by load, for "ttft", "tpot" or "end_to_end".

    `closed` returns seconds at a rate. `engine` holds arguments of `simulate_serving` other than the rate, including
    `prompt_time` or `added_time`. The load is the rate times the work of a request: prompt_time + output * added_time.
    Near a load of 1, queues need many `requests` and a long `warmup` to reach their mean length.

    >>> engine = dict(prompt=1000, output=200, base_time=10e-3, added_time=50e-6, prompt_time=30e-3)
    >>> loads = [0.3, 0.6, 0.9]
    >>> ax = queue_curve(lambda rate: 10e-3 / (1 - rate * 40e-3), loads, **engine, requests=2000, warmup=300)
    >>> ax.lines[0].get_label(), ax.lines[0].get_ydata().round(2)
    ('closed form: within 5 % up to a load of 60 %', array([-0.01, -0.01,  0.19]))
    """
    ax, loads = ax or figures.plt.gca(), np.array(list(loads), float)
    added = quantity("prompt_time", engine.get("prompt_time", 0))
    added += engine["output"] * quantity("added_time", engine.get("added_time", 0))
    if not added:
        raise ValueError("a load needs what a request adds to steps: prompt_time, added_time or both")
    simulated = [simulate_serving(**engine, rate=x / added).statistics(name)["mean"] for x in loads]
    error = np.array([closed(x / added) for x in loads]) / simulated - 1
    beyond = next((i for i, x in enumerate(error) if abs(x) > NEAR), len(error))
    within = f"within 5 % up to a load of {show(loads[beyond - 1], '%')}" if beyond else "beyond 5 % at every load"
    if not ax.lines:
        ax.axhspan(-NEAR, NEAR, color="#E3E6EA", label="_near")
    ax.plot(loads, error, "o-", label=f"{label}: {within}")
    ax.set_title(f"Error of the mean {name}, beside a simulation")
    ax.set_xlabel("load: time that the requests of a second add to steps")
    ax.set_ylabel("closed form over simulation, less 1")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda x, _: show(x, "%")))
    ax.legend()
    return ax


def request_timeline(run: Served, first: int = 1, number: int = 30, ax: Axes | None = None) -> Axes:
    """Draw what some of the requests waited for: one lane each, from arrival to last token.

    >>> from scalebook.inference import simulate_serving
    >>> run = simulate_serving(prompt=1000, output=20, users=12, base_time="10 ms", prompt_time="30 ms", chunk=2000)
    >>> ax = request_timeline(run, number=24)
    >>> ax.get_legend_handles_labels()[1]
    ['waiting', 'prompt read', 'decoding']
    """
    chosen = range(first - 1, min(first - 1 + number, len(run.ends)))
    if first < 1 or not chosen:
        raise ValueError(f"the run has requests 1 to {len(run.ends)}, and none of {number} from {first} on")
    bars = []
    for i in chosen:
        moments = [float(x[i]) for x in (run.arrivals, run.starts, run.firsts, run.ends)]
        for kind, start, end in zip(("waiting", "prompt read", "decoding"), moments, moments[1:], strict=False):
            bars.append(Bar(str(i + 1), start, end - start, kind))
    ax = timeline(bars, ax, title="What requests wait for")
    named = range(0, len(chosen), 1 + len(chosen) // 15)  # as many as there is room for
    ax.set_yticks(named, [str(chosen[i] + 1) for i in named])
    ax.set_ylim(len(chosen) - 0.4, -0.6)
    ax.set_ylabel("request, in the order sent")
    return ax
