"""A pipeline's schedule as a chart: one row a device, time to the right."""

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb

from scalebook.schedule import Run

from . import figures

__all__ = ["gantt"]

KINDS = {
    "F": ("forward", "#56B4E9"),
    "B": ("input gradient", "#E69F00"),
    "W": ("weight gradient", "#009E73"),
    "BW": ("whole backward", "#D55E00"),
    "FBW": ("forward beside backward", "#CC79A7"),
}
SECOND = 0.55  # how much of its colour a later chunk, or the second direction, keeps


def gantt(run: Run, ax: Axes | None = None, numbers: bool | None = None, until: float | None = None) -> Axes:
    """Who works when.  White is idle; later chunks, and DualPipe's second direction, are paler.

    numbers: write micro-batches into the bars that are wide enough (up to 8 devices, if not said).
    until: the end of the axis, to compare charts at one scale.

    >>> from scalebook.schedule import simulate
    >>> gantt(simulate("1f1b", pp=4, microbatches=8)).get_title(loc="left")
    '1f1b: bubble 37.5 % of the work, 4 micro-batches in flight'
    """
    ax = ax or figures.plt.gca()
    end = until or float(run.makespan)
    numbers = run.pp <= 8 if numbers is None else numbers
    shapes = {kind: [] for kind in KINDS}
    tints = {kind: [] for kind in KINDS}
    for slot in run.slots:
        kind = "".join(x.kind for x in slot.operations)
        first = slot.operations[0]
        a, b, y = float(slot.start), float(slot.end), slot.device
        shapes[kind].append([(a, y - 0.42), (b, y - 0.42), (b, y + 0.42), (a, y + 0.42)])
        half = run.schedule == "dualpipe" and 2 * first.microbatch >= run.microbatches
        later = first.stage // run.pp / max(run.chunks - 1, 1)
        tints[kind].append(1 - (1 - SECOND) * max(later, half))
        if numbers and b - a > 0.02 * end:
            said = "\n".join(str(x.microbatch + 1) for x in slot.operations if x.kind != "W" or kind == "W")
            ax.text((a + b) / 2, y, said, ha="center", va="center", fontsize=7, linespacing=0.9, clip_on=True)
    for kind, (label, colour) in KINDS.items():
        if shapes[kind]:
            colours = [_paler(colour, x) for x in tints[kind]]
            ax.add_collection(PolyCollection(shapes[kind], facecolors=colours, edgecolors="white", linewidths=0.5))
            ax.plot([], [], "s", color=colour, markersize=8, label=label)
    ax.set(xlim=(0, end), ylim=(run.pp - 0.5, -0.5), ylabel="device")
    ax.set_xlabel("time", loc="right")
    ax.set_yticks(range(run.pp), [str(i + 1) for i in range(run.pp)])
    ax.grid(False)
    ax.set_title(
        f"{run.schedule}: bubble {float(run.bubble):.1%} of the work, {float(max(run.in_flight)):g} micro-batches in flight"
        .replace("%", " %"),
        fontsize=10.5,
    )  # fmt: skip
    below = (0, -0.16 - 0.3 / run.pp)
    ax.legend(loc="upper left", bbox_to_anchor=below, ncols=5, fontsize=8.5, columnspacing=1.2, handletextpad=0.3)
    return ax


def _paler(colour, keep):
    return tuple(1 - keep * (1 - x) for x in to_rgb(colour))
