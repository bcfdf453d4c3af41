"""A training step as a profiler would show it: every kernel of a block and of the head, its count and its time.

>>> from scalebook.tables import accelerators, models
>>> shown = profile(models.llama3_8b, accelerators.h100.at("bf16"), tp=2, dp=4, global_batch=64, seq=8192)
>>> shown.lines[0].name, round(sum(line.share for line in shown.lines), 1) <= 1
('flash_backward', True)
"""

from dataclasses import replace
from typing import NamedTuple

from sympy import S

from scalebook.block import Block, backward, kinds_of, read_and_unread
from scalebook.block.work import Work, both_passes, work
from scalebook.language import Formula, Row, show, symbol
from scalebook.language.tabular import aligned, page_table, styled
from scalebook.training.block_costs import head, of_kind
from scalebook.training.host import REACHED
from scalebook.training.step import training_step

__all__ = ["Line", "Profile", "profile"]


class Line(NamedTuple):
    """A kernel of a training step on one device: its count, FLOPs, traffic, and the total time of all its runs."""

    name: str
    phase: str
    kind: str
    calls: float
    flops: float
    traffic: float
    time: float
    share: float
    achieved: float


class Profile:
    """The kernels of a training step: `lines`, one per kernel with the longest first, and `run`, the step's row."""

    def __init__(self, run: Row, lines: list[Line]):
        self.run, self.lines = run, sorted(lines, key=lambda line: -line.time)

    def _table(self):
        head = ["kernel", "phase", "kind", "calls", "FLOP", "bytes", "time", "of the step", "of the peak"]
        rows = []
        for x in self.lines:
            flops, achieved = (show(x.flops, "FLOP"), f"{x.achieved:.0%}") if x.flops else ("", "")
            moved, time = show(x.traffic, "B"), show(x.time, "s")
            calls, phase = f"{x.calls:,.0f}", x.phase.replace("_", " ")
            rows.append([x.name, phase, x.kind, calls, flops, moved, time, f"{x.share:.1%}", achieved])
        return head, rows

    def __repr__(self):
        head, rows = self._table()
        return aligned([head, *rows], gap="  ")

    def _repr_html_(self):
        head, rows = self._table()
        return styled(page_table(head, rows))


def profile(*knowns, **letters) -> Profile:
    """Return a training step's kernels (not collectives) with counts and seconds. Call it like `training_step`."""
    run = training_step(*knowns, **letters)
    planned = training_step.plan(knowns, dict(letters))
    strategy, dense, moe = planned.strategy, planned.dense, planned.moe
    values = dict(run) | {best: run[reached] for best, reached in REACHED.items() if reached in run}
    parts = [(block, run["microbatches"] * run["stage_blocks"]) for block in (dense, moe) if block]
    if dense and moe:
        share = run["stage_moe_blocks"] / run["stage_blocks"]
        parts = [(dense, parts[0][1] * (1 - share)), (moe, parts[1][1] * share)]
    lines = []
    for kind, calls in ((kind, calls) for block, calls in parts for kind in kinds_of(block)):
        calls *= float(S(kind.share).xreplace({symbol(x): values.get(x, 0) for x in ("linear_layers", "layers")}))
        for w, share in _kernels(strategy.transformed(kind.block), strategy.quantized, values.get("unread_rerun")):
            own = replace(w, **{x: of_kind(kind, getattr(w, x)) for x in ("flops", "traffic", "time", "rate")})
            lines.append(_line(own, calls * share, values, strategy))
    lines += [_line(w, run["microbatches"], values, strategy) for w in both_passes(head(), strategy.quantized)]
    return Profile(run, lines)


def _kernels(forward: Block, quantized: bool, unread_share: float) -> list[tuple[Work, float]]:
    """Return the kernels of a block's two passes, each with 1, or the share of what nothing reads that is run."""
    read, unread = read_and_unread(backward(forward))
    once = *work(forward, "forward", quantized), *work(read, quantized=quantized)
    return [*((w, 1) for w in once), *((w, unread_share) for w in work(unread, quantized=quantized))]


def _line(w, calls, values, strategy) -> Line:
    seconds = w.ideal if strategy.kernels == "ideal" else w.time
    flops, traffic, time = (
        Formula(w.name, letter, expr)(values) if expr != 0 else 0.0
        for letter, expr in (("flops", w.flops), ("traffic", w.traffic), ("roofline_time", seconds))
    )
    done = flops
    if w.kind == "attention":  # its rate is of all pairs, of which it computes some
        done *= values["attention_peak"] / Formula(w.name, "peak_flops", w.rate)(values)
    share, achieved = calls * time / values["step_time"], done / time / values["peak_flops"]
    return Line(w.name, w.phase, w.kind, calls, calls * flops, calls * traffic, calls * time, share, achieved)
