"""Schedules: one object holds everything about a pipeline schedule, and a registry holds them all.

>>> SCHEDULES["zb_v"].held(microbatches=32, pp=8), SCHEDULES["zb_v"].chunks
(8.5, 2)
"""

from collections.abc import Callable
from dataclasses import dataclass

from scalebook.language import Formula
from scalebook.language.words import Named
from scalebook.pipeline import bubbles, orders, stages

__all__ = ["SCHEDULES", "Schedule"]


@dataclass(frozen=True, eq=False, repr=False)
class Schedule(Named):
    """A pipeline schedule: its bubble, memory and messages, its order of passes, and its placement on devices.

    Creating one enters it in `SCHEDULES`. The bubble is an upper bound if `is_exact` is false for the times of the
    passes.
    """

    name: str
    source: str
    bubble: Formula  # idle over busy time; its domain says what the schedule can run
    held: Formula  # micro-batches that a stage keeps
    messages: Formula  # tensors that a device sends
    order: Callable  # fills a device's order: (order, device, pp, microbatches, chunks)
    exposed: Formula = stages.pp_exposed  # time of transfers that nothing hides
    chunks: int | None = 1  # parts of the model on a device; None: the strategy says how many
    plain: str | None = None  # the name of the same schedule with one chunk
    ends: str = "apart"  # the two ends of the model: "apart", on the "first" device, or on the first and last, "both"
    is_exact: Callable = lambda forward, input_gradient, weight_gradient: True

    @property
    def copies(self) -> int:
        """Stages that a device holds: two if micro-batches enter at both ends, else one."""
        return 2 if self.ends == "both" else 1

    @property
    def passes(self) -> int:
        """Forward trips of a micro-batch along the devices: one down, or one down and one back up."""
        return 2 if self.ends == "first" else 1


SCHEDULES = Schedule.known  # by name, the default first; of equals, the one with the least memory


Schedule(
    "1f1b", "narayanan2021 §2.2.1", bubbles.bubble_1f1b, stages.held_1f1b, stages.messages_loop, orders.one_f_one_b,
)  # fmt: skip
Schedule(
    "interleaved", "narayanan2021 §2.2.2", bubbles.bubble_interleaved, stages.held_chunks, stages.messages_interleaved,
    orders.interleaved, chunks=None, plain="1f1b",
)  # fmt: skip
Schedule("gpipe", "huang2019 §2.3", bubbles.bubble_gpipe, stages.held_gpipe, stages.messages_loop, orders.gpipe)
Schedule("zb_h1", "qi2024 §3", bubbles.bubble_zb_h1, stages.held_zb_h1, stages.messages_loop, orders.zb_h1)
Schedule("zb_h2", "qi2024 §3", bubbles.bubble_zb_h2, stages.held_zb_h2, stages.messages_loop, orders.zb_h2)
Schedule(
    "zb_v", "qi2024 §6", bubbles.bubble_zb_v, stages.held_zb_v, stages.messages_zb_v, orders.zb_v,
    exposed=stages.pp_exposed_v, chunks=2, ends="first", is_exact=lambda f, b, w: w <= min(f, b),
)  # fmt: skip
Schedule(
    "dualpipe", "deepseek2024-v3 table 2", bubbles.bubble_dualpipe, stages.held_dualpipe, stages.messages_dualpipe,
    orders.dualpipe, ends="both", is_exact=lambda f, b, w: b <= f,
)  # fmt: skip
