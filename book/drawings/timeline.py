"""A timeline: bars on horizontal lanes, such as pipeline stages or a device's engine and links."""

from collections.abc import Iterable
from typing import NamedTuple

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter
from scalebook.book.drawings import figures  # noqa: F401  (sets the house style)
from scalebook.book.drawings.looks import SIZE, hues

from scalebook.display.scheme import ink_on
from scalebook.language import show

__all__ = ["Bar", "timeline"]


class Bar(NamedTuple):
    """One bar of a timeline: its lane, its start and length, a `kind` that sets the colour, and a text inside."""

    lane: str
    start: float
    length: float
    kind: str = ""
    text: str = ""


def timeline(bars: Iterable[Bar], ax: Axes | None = None, unit: str = "s", title: str = "") -> Axes:
    """Draw bars on horizontal lanes, first lane on top, along time in `unit`; with `unit=""` the axis counts steps.

    A bar that is too narrow has no text. Raises ValueError if there are no bars.

    >>> timeline([Bar("compute", 0, 2, "forward", "1"), Bar("in", 0, 1, "weights", "2")]).get_xlabel()
    'time (s)'
    """
    bars = [Bar(*x) for x in bars]
    if not bars:
        raise ValueError("a timeline needs at least one bar")
    ax = ax or plt.gca()
    lanes = list(dict.fromkeys(x.lane for x in bars))
    kinds = list(dict.fromkeys(x.kind for x in bars))
    colors = hues(kinds)
    first, last = min(x.start for x in bars), max(x.start + x.length for x in bars)
    for kind in kinds:
        mine = [x for x in bars if x.kind == kind]
        at, lengths, starts = ([lanes.index(x.lane) for x in mine], [x.length for x in mine], [x.start for x in mine])
        look = dict(height=0.8, color=colors[kind], edgecolor="white", linewidth=0.6)
        ax.barh(at, lengths, left=starts, label=kind or "_", **look)
    wide = ax.get_window_extent().width / ax.figure.dpi * 72 / (last - first)  # points for a unit of time
    for x in bars:
        if x.text and x.length * wide > 0.7 * SIZE * len(x.text):
            ink = ink_on(colors[x.kind])
            ax.text(x.start + x.length / 2, lanes.index(x.lane), x.text, ha="center", va="center", color=ink)
    ax.set_yticks(range(len(lanes)), lanes)
    ax.invert_yaxis()
    ax.grid(False)
    ax.set_xlim(first, last)
    ax.set_xlabel(f"time ({unit})" if unit else "time")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda t, _: show(t, unit)))
    if title:
        ax.set_title(title)
    if len(kinds) > 1:
        below = -0.5 * ax.figure.dpi / ax.get_window_extent().height  # half an inch: under ticks and label
        ax.legend(loc="upper left", bbox_to_anchor=(0, below), ncols=len(kinds), borderaxespad=0)
    return ax
