"""Draw a pipeline's schedule as a chart: one row per device, time to the right."""

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.transforms import ScaledTranslation
from scalebook.book.drawings import figures
from scalebook.book.drawings.looks import SIZE

from scalebook.display.meanings import PARTS, Part
from scalebook.pipeline.schedules import SCHEDULES
from scalebook.pipeline.simulation import Run

__all__ = ["gantt"]

KINDS = {  # all of it is arithmetic
    "F": PARTS["forward_time"],
    "B": PARTS["input_gradient_time"],
    "W": PARTS["weight_gradient_time"],
    "BW": PARTS["step_backward"]._replace(word="whole backward"),
    "FBW": Part("forward beside backward", "arithmetic", 5),
}
SECOND = 0.3  # opacity of later chunks and of the second direction


def gantt(run: Run, ax: Axes | None = None, numbers: bool | None = None, until: float | None = None) -> Axes:
    """Draw when each device of a simulated pipeline works; `run` is what `simulate` returned.

    White is idle; later chunks, and DualPipe's second direction, are paler. `numbers` writes micro-batches into bars
    that are wide enough (default: up to 8 devices). `until` ends the time axis, so that charts share a scale.

    >>> from scalebook.pipeline.simulation import simulate
    >>> gantt(simulate("1f1b", pp=4, microbatches=8)).get_title(loc="left")
    '1f1b: bubble 37.5 % of the work, 4 micro-batches in flight'
    """
    ax = ax or figures.plt.gca()
    end = until or float(run.makespan)
    numbers = run.pp <= 8 if numbers is None else numbers
    twice = SCHEDULES[run.schedule].copies > 1
    shapes, tints = ({kind: [] for kind in KINDS} for _ in range(2))
    for slot in run.slots:
        kind = "".join(x.kind for x in slot.operations)
        first = slot.operations[0]
        a, b, y = float(slot.start), float(slot.end), slot.device
        shapes[kind].append([(a, y - 0.42), (b, y - 0.42), (b, y + 0.42), (a, y + 0.42)])
        half = twice and 2 * first.microbatch >= run.microbatches
        later = first.stage // run.pp / max(run.chunks - 1, 1)
        tints[kind].append(1 - (1 - SECOND) * max(later, half))
    for kind, part in KINDS.items():
        if shapes[kind]:
            faces = [to_rgba(part.fill, x) for x in tints[kind]]
            edges = ["white" if x == 1 else part.fill for x in tints[kind]]
            ax.add_collection(PolyCollection(shapes[kind], facecolors=faces, edgecolors=edges, linewidths=0.5))
            ax.plot([], [], "s", color=part.fill, markersize=8, label=part.word)
    if twice or run.chunks > 1:
        second = "second direction" if twice else "second chunk" if run.chunks == 2 else "later chunks"
        grey = dict(markerfacecolor=to_rgba("#555555", SECOND), markeredgecolor="#555555")
        ax.plot([], [], "s", markersize=8, label=f"paler: {second}", **grey)
    ax.set(xlim=(0, end), ylim=(run.pp - 0.5, -0.5), ylabel="device")
    ax.set_xlabel("time", loc="right")
    ax.set_yticks(range(run.pp), [str(i + 1) for i in range(run.pp)])
    ax.grid(False)
    bubble, held = f"{float(run.bubble):.1%}".replace("%", " %"), f"{float(max(run.in_flight)):g}"
    ax.set_title(f"{run.schedule}: bubble {bubble} of the work, {held} micro-batches in flight")
    below = ax.transAxes + ScaledTranslation(0, -0.42, ax.figure.dpi_scale_trans)  # inches, under the word "time"
    place = dict(loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=below, borderaxespad=0)
    ax.legend(ncols=3 if len(ax.lines) > 5 else 5, handletextpad=0.3, **place)
    if numbers:
        _number(run, ax)
    return ax


def _number(run, ax):
    ax.figure.draw_without_rendering()  # only now is the width of the axes known
    start, end = ax.get_xlim()
    inch = ax.get_window_extent().width / ax.figure.dpi / (end - start)
    for slot in run.slots:
        kind = "".join(x.kind for x in slot.operations)
        said = [str(x.microbatch + 1) for x in slot.operations if x.kind != "W" or kind == "W"]
        room = float(slot.end - slot.start) * inch / max(map(len, said))
        if room > 0.0095 * SIZE:  # a digit is 0.64 of its size wide
            at = float(slot.start + slot.end) / 2, slot.device
            ax.text(*at, "\n".join(said), ha="center", va="center", linespacing=0.9, clip_on=True)
