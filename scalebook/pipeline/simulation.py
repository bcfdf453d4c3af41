"""Execute a pipeline schedule: which device works when, which waits, and what is in flight.

An operation starts when its device is free and its inputs have arrived. Times are exact fractions.

>>> run = simulate("1f1b", pp=8, microbatches=32)
>>> run.bubble, run.makespan, run.in_flight
(Fraction(7, 32), Fraction(117, 1), [8, 7, 6, 5, 4, 3, 2, 1])
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import NamedTuple

from scalebook.language.arguments import as_list, checked
from scalebook.language.notation import NOTATION, nearest, quoted
from scalebook.language.row import one_number
from scalebook.pipeline.orders import Operation, orders
from scalebook.pipeline.schedules import SCHEDULES

__all__ = ["Run", "Slot", "simulate"]

PASSES = {"F": "forward_time", "B": "input_gradient_time", "W": "weight_gradient_time"}
MOST_STAGES, MOST_PASSES = 2048, 200_000  # takes some seconds


class Slot(NamedTuple):
    """Operations that ran together on one device, from start to end."""

    device: int
    operations: tuple[Operation, ...]
    start: Fraction | int
    end: Fraction | int


@dataclass(frozen=True, eq=False)
class Run:
    """One step of a pipeline: its slots, with start and end in whole ticks. One unit of time has `ticks` ticks."""

    schedule: str
    pp: int
    microbatches: int
    chunks: int
    ticks: int
    counted: list[Slot]

    @cached_property
    def slots(self) -> list[Slot]:
        return [x._replace(start=Fraction(x.start, self.ticks), end=Fraction(x.end, self.ticks)) for x in self.counted]

    @cached_property
    def _by_device(self):
        found = [[] for _ in range(self.pp)]
        for slot in self.counted:
            found[slot.device].append(slot)
        return found

    @property
    def busy(self) -> list[Fraction]:
        return [Fraction(sum(x.end - x.start for x in slots), self.ticks) for slots in self._by_device]

    @property
    def makespan(self) -> Fraction:
        """Time from the first to the last operation on any device: the step time if optimizers wait for all devices."""
        return Fraction(max(x.end for x in self.counted), self.ticks)

    @property
    def interval(self) -> Fraction:
        """Longest time from the first to the last operation of one device: the time from one step to the next."""
        return Fraction(max(slots[-1].end - slots[0].start for slots in self._by_device), self.ticks)

    @property
    def bubble(self) -> Fraction:
        """Idle over busy time of all devices, if each device starts its next step as soon as it finishes this one."""
        return self._idle(self.interval)

    @property
    def bubble_synchronous(self) -> Fraction:
        """Idle over busy time if an optimizer waits for all devices."""
        return self._idle(self.makespan)

    def _idle(self, step):
        busy = sum(self.busy)
        return (self.pp * step - busy) / busy

    @property
    def in_flight(self) -> list[Fraction | int]:
        """Most micro-batches whose activations each device keeps at once. A chunk counts as a fraction."""
        peaks = []
        for slots in self._by_device:
            held, peak = 0, 0
            for slot in slots:
                held += sum(x.kind == "F" for x in slot.operations)
                peak = max(peak, held)
                held -= sum(x.kind == "W" for x in slot.operations)
            parts = Fraction(peak, self.chunks)
            peaks.append(parts.numerator if parts.denominator == 1 else parts)
        return peaks

    @property
    def messages(self) -> int:
        """Tensors sent from one device to another: activations forward and their gradients back."""
        place = {x: slot.device for slot in self.counted for x in slot.operations}
        last = self.pp * self.chunks - 1
        return sum(place[need] != place[x] for x in place if (need := _needs(x, last)))

    def __repr__(self):
        return (
            f"{self.schedule} of {self.microbatches} micro-batches on {self.pp} devices: "
            f"step {float(self.interval):g}, bubble {float(self.bubble):.4g}, in flight {float(max(self.in_flight)):g}"
        )


def _needs(x: Operation, last: int) -> Operation | None:
    if x.kind == "F":
        return Operation("F", x.stage - 1, x.microbatch) if x.stage else None
    if x.kind == "B":
        return Operation("B", x.stage + 1, x.microbatch) if x.stage < last else Operation("F", last, x.microbatch)
    return Operation("B", x.stage, x.microbatch)


@checked
def simulate(
    schedule: str, pp: int, microbatches: int, chunks: int | None = None, *, forward_time=1, input_gradient_time=1,
    weight_gradient_time=1, transfer_time=0, scale: Sequence | None = None,
) -> Run:  # fmt: skip
    """Execute one step of a schedule, given by its name in `SCHEDULES`.

    Times are of one micro-batch on one device, all its chunks together, in any one unit; text such as "18.5 ms" is in
    seconds. `transfer_time` passes before another device can use the result of an operation. `scale` gives the relative
    time of each stage along the model (`pp` times `chunks` numbers). Raises LookupError for an unknown schedule, and
    ValueError for numbers that it cannot run or for too many passes.

    >>> simulate("1f1b", pp=4, microbatches=8, scale=[1, 1, 1, 2]).bubble  # a slow last stage
    Fraction(9, 10)
    """
    if not isinstance(schedule, str) or schedule not in SCHEDULES:
        raise LookupError(f"no schedule is called {quoted(schedule)}; {nearest(quoted(schedule), SCHEDULES)}")
    fixed = SCHEDULES[schedule].chunks
    chunks = fixed if chunks is None else chunks
    if chunks is None:
        raise ValueError(f"{schedule} needs chunks, the number of stages on each device")
    if fixed is not None and not (isinstance(chunks, int) and chunks == fixed):
        own = f"{fixed} chunk{'s' * (fixed > 1)} a device"
        raise ValueError(f"{schedule} has {own}, not {quoted(chunks)}; interleaved takes any")
    for name, value in {"pp": pp, "microbatches": microbatches, "chunks": chunks}.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(
                f"{name} must be a whole number from 1 up, not {quoted(value)}: it is {NOTATION[name].meaning}"
            )
    if pp * chunks > MOST_STAGES or pp * chunks * microbatches > MOST_PASSES:
        raise ValueError(
            f"a schedule is executed for up to {MOST_STAGES:,} stages and {MOST_PASSES:,} forward passes in all; "
            f"pp={quoted(pp)}, chunks={quoted(chunks)} and microbatches={quoted(microbatches)} are more"
        )
    if (own := [1] * (pp * chunks) if scale is None else as_list(scale)) is None:
        raise TypeError(f"scale is a list of numbers, one a stage, not {quoted(scale)}")
    if len(own) != pp * chunks:
        raise ValueError(f"scale has {len(own)} numbers for {pp * chunks} stages")
    passes = {"F": forward_time, "B": input_gradient_time, "W": weight_gradient_time}
    times = {k: _exact(PASSES[k], t) for k, t in passes.items()}
    lasts = {(k, s): t * _exact("forward_time", x) / chunks for k, t in times.items() for s, x in enumerate(own)}
    transfer = _exact("transfer_time", transfer_time)
    unit = lcm(transfer.denominator, *(x.denominator for x in lasts.values()))  # whole numbers are faster
    ticks = {k: int(x * unit) for k, x in lasts.items()}
    ordered = orders(SCHEDULES[schedule].order, pp, microbatches, chunks)
    slots = _execute(ordered, ticks, int(transfer * unit), pp * chunks - 1)
    run = Run(schedule, pp, microbatches, chunks, unit, slots)
    if run.makespan > sys.float_info.max:
        raise ValueError("these times add up to more than a number holds: give them in another unit")
    return run


def _exact(name, value):
    number = one_number(name, value)
    return Fraction(value if isinstance(value, int | Fraction) and not isinstance(value, bool) else number)


def _execute(ordered, lasts, transfer, last):
    place = {x: device for device, order in enumerate(ordered) for slot in order for x in slot}
    needs = {x: _needs(x, last) for x in place}
    ends, free, at, slots = {}, [0] * len(ordered), [0] * len(ordered), []
    remaining = sum(map(len, ordered))
    while remaining:
        before = remaining
        for device, order in enumerate(ordered):
            while at[device] < len(order):
                slot, start = order[at[device]], free[device]
                needed = [n for x in slot if (n := needs[x]) and n not in slot]
                if any(n not in ends for n in needed):
                    break
                for n in needed:
                    start = max(start, ends[n] + transfer * (place[n] != device))
                free[device] = start + sum(lasts[x.kind, x.stage] for x in slot)
                ends.update(dict.fromkeys(slot, free[device]))
                slots.append(Slot(device, slot, start, free[device]))
                at[device] += 1
                remaining -= 1
        if remaining == before:
            waiting = ", ".join(
                f"device {d} waits before {o[i]}"
                for d, (o, i) in enumerate(zip(ordered, at, strict=True))
                if i < len(o)
            )
            raise ValueError(f"this order never ends: {waiting}")
    return slots
