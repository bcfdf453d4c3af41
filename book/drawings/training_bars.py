"""Stacked bars that compare the time and the memory of training steps."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from scalebook.book.drawings import figures  # noqa: F401  (sets the house style)

from scalebook.display.grid import Grid
from scalebook.display.meanings import PARTS
from scalebook.language import Row, show
from scalebook.training.contention import TIERS

__all__ = ["away_bars", "bandwidth_table", "memory_bars", "time_bars"]

TIME = (
    "step_forward", "step_backward", "step_again", "step_head", "optimizer_time", "tp_exposed", "cp_exposed",
    "ep_exposed", "pp_exposed", "dp_exposed", "bubble_time", "offload_exposed", "host_exposed",
)  # fmt: skip
MEMORY = (
    "weight_memory", "gradient_memory", "optimizer_memory", "activation_memory", "logits_memory", "buffer_memory",
)  # fmt: skip
AWAY = ("weight_away", "gradient_away", "optimizer_away", "activation_away")


def time_bars(runs: Mapping[str, Row], ax: Axes | None = None) -> Axes:
    """Draw a stacked bar for each training step, with the parts of its time in seconds. `runs` has results by name."""
    return _stack(runs, TIME, "time of a training step (s)", "s", "Where the time goes", ax)


def memory_bars(runs: Mapping[str, Row], ax: Axes | None = None) -> Axes:
    """Draw a stacked bar for each training step, with the parts of the memory of its fullest device, in gigabytes."""
    return _stack(runs, MEMORY, "memory of the fullest device (GB)", "B", "Where the memory goes", ax)


def away_bars(runs: Mapping[str, Row], ax: Axes | None = None) -> Axes:
    """Draw the memory that each run offloads, per device, in gigabytes, in the colours of `memory_bars`."""
    title = "What lies in the second tier"
    return _stack(runs, AWAY, "memory in the second tier, per device (GB)", "B", title, ax)


def bandwidth_table(run: Row) -> Grid:
    """Return a table of the bandwidth that each parallel dimension needs for its messages to hide behind arithmetic.

    There is a column for each network, a line for all dimensions together, and one for what the device has.

    >>> from scalebook.tables import accelerators, frameworks, models
    >>> from scalebook.training import training_step
    >>> run = training_step(models.llama3_8b, accelerators.h100.at("bf16"), frameworks.plain, tp=2, dp=4,
    ...                     global_batch=64, seq=8192)
    >>> bandwidth_table(run)
    needed to hide    scale-up scale-out
    tensor parallel 50.54 GB/s         —
    data parallel   66.15 GB/s         —
    all at once     116.7 GB/s         —
    the device has    450 GB/s   50 GB/s
    """
    ways = {way: PARTS[f"{way}_exposed"].word for way in ("tp", "cp", "ep", "pp", "dp")} | {"all": "all at once"}
    rows = {said: [run[f"{way}_{tier}_needed"] for tier in TIERS] for way, said in ways.items()}
    rows = {said: x for said, x in rows.items() if any(x) or said == "all at once"}
    rows["the device has"] = [run[f"{tier}_bandwidth"] for tier in TIERS]
    columns = ([show(float(x[i]), "B/s") if x[i] else "—" for x in rows.values()] for i in range(2))
    return Grid(dict(zip(("needed to hide", "scale-up", "scale-out"), (list(rows), *columns), strict=True)))


def _stack(runs, parts, label, unit, title, ax) -> Axes:
    ax = ax or plt.gca()
    scale = 1e9 if unit == "B" else 1
    left, places = np.zeros(len(runs)), np.arange(len(runs))[::-1]
    for letter in parts:
        part = PARTS[letter]
        width = np.array([run.get(letter, 0.0) for run in runs.values()]) / scale
        if width.max() > 0.002 * max(sum(run.get(x, 0.0) for x in parts) for run in runs.values()) / scale:
            look = dict(edgecolor="white", linewidth=0.5, height=0.66)
            ax.barh(places, width, left=left, color=part.fill, label=part.word, **look)
        left = left + width
    for place, total in zip(places, left, strict=True):
        ax.annotate(show(total * scale, unit), (total, place), xytext=(5, 0), textcoords="offset points", va="center")
    ax.set_yticks(places, list(runs))
    ax.set_xlabel(label)
    ax.set_xlim(0, left.max() * 1.15)
    ax.grid(axis="y", visible=False)
    ax.set_title(title)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=4)
    return ax
