"""An interactive chart of a pipeline's schedule: choose a schedule, change the times, see which device waits."""

from importlib.resources import files

import anywidget
import traitlets

from scalebook.display.live import Calculator, stored
from scalebook.pipeline.orders import orders
from scalebook.pipeline.schedules import SCHEDULES

from .gantt import KINDS, SECOND

__all__ = ["LiveGantt", "live_gantt"]

_HERE = files(__name__.rpartition(".")[0])
SIZES = {f"{pp} devices, {m} micro-batches": (pp, m) for pp, m in [(4, 8), (4, 16), (8, 16), (16, 32)]}
LABELS = {"F": "forward", "B": "gradient of the input", "W": "gradient of the weights"}


class LiveGantt(anywidget.AnyWidget):
    """The widget that `live_gantt` returns: `pipeline` holds the schedules, the controls and the colours."""

    _esm = (_HERE / "live_gantt.js").read_text("utf-8")
    _css = Calculator._css + (_HERE / "live_gantt.css").read_text("utf-8")
    pipeline = traitlets.Dict().tag(sync=True)

    def __repr__(self):
        return f"LiveGantt({', '.join(self.pipeline['schedules'])})"

    def _repr_mimebundle_(self, **kwargs):
        """Return the widget, marked as made of the package alone."""
        return stored(self, super()._repr_mimebundle_(**kwargs), {"live_gantt": {}})


def live_gantt() -> LiveGantt:
    """Return an interactive chart of every pipeline schedule in a few sizes, with sliders for the times of passes.

    >>> live_gantt()
    LiveGantt(1f1b, interleaved, gpipe, zb_h1, zb_h2, zb_v, dualpipe, dualpipe_v, eager_1f1b)
    """
    schedules = {}
    for name, schedule in SCHEDULES.items():
        chunks = schedule.chunks or 2
        sizes = {
            text: [_text(*x) for x in enumerate(orders(schedule.order, *size, chunks))] for text, size in SIZES.items()
        }
        schedules[name] = dict(chunks=chunks, orders=sizes)
    pace = dict(min=0.2, max=3, step=0.1, value=1)
    controls = [
        dict(name="schedule", label="schedule", options=list(schedules)),
        dict(name="size", label="size", options=list(SIZES)),
        *(dict(name=kind, label=label, **pace) for kind, label in LABELS.items()),
        dict(name="transfer", label="transfer between devices", min=0, max=1, step=0.05, value=0),
        dict(name="slow", label="last stage beside the others", min=0.5, max=2, step=0.1, value=1),
    ]
    kinds = {kind: dict(name=x.word, look=f"--sb-{x.kind}-{x.shade}") for kind, x in KINDS.items()}
    return LiveGantt(pipeline=dict(schedules=schedules, controls=controls, kinds=kinds, second=SECOND))


def _text(device, order):
    """Write an order as the page reads it: a stage is named if it is not the device's own."""
    return " ".join("+".join(repr(x).removesuffix(f".{device}") for x in slot) for slot in order)
