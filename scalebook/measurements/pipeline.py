"""Pipelines as published: schedules on up to 32 A100, GPipe on TPUs and P100, and another simulator's totals.

Nothing is calibrated.  The runs on A100 come with the times of their passes, so a step is executed
with these times by `scalebook.pipeline.simulation`; GPipe's throughput follows from its bubble alone.
"""

import re
from functools import cache
from importlib.resources import files

import numpy as np

from scalebook.language import OutsideDomain
from scalebook.pipeline.bubbles import bubble_gpipe, equal_input_gradient, equal_weight_gradient, pipeline_idle
from scalebook.pipeline.schedules import SCHEDULES
from scalebook.pipeline.simulation import simulate

from .confrontation import Confrontation
from .rows import number, read_rows

__all__ = ["CONFRONTATIONS"]

# ZB-1p and ZB-2p are orders that the authors' program searches for within the memory of H1 and H2.
ORDERS = {"1F1B": "1f1b", "1F1B-I": "interleaved", "ZB-H1": "zb_h1", "ZB-1p": "zb_h1", "ZB-H2": "zb_h2",
          "ZB-2p": "zb_h2", "ZB-2p*": "zb_h2", "ZB-V": "zb_v"}  # fmt: skip
TIMES = {"t_f_ms": "forward_time", "t_b_ms": "input_gradient_time", "t_w_ms": "weight_gradient_time",
         "t_comm_ms": "transfer_time"}  # fmt: skip


@cache
def _timed():
    """The rows of the package's file whose passes were timed."""
    rows, _ = read_rows(files("scalebook.measurements") / "pipeline_zero_bubble.csv")
    return [row for row in rows if row["t_f_ms"]]


def _blocks(row):
    """Transformer blocks of a whole stage; the first and the last stage have one fewer."""
    return (number(row, "layers") + 2) / number(row, "p")


def _times(row):
    """Milliseconds of the passes of a row, or of the same model's nearest row with times, in proportion to the work."""
    if row["t_f_ms"]:
        return {letter: number(row, column) for column, letter in TIMES.items()}
    keys = ("p", "mbs", "microbatches")
    near = [x for x in _timed() if x["model"] == row["model"]]
    best = min(near, key=lambda x: [abs(np.log(number(x, k) / number(row, k))) for k in keys])
    tokens = number(row, "mbs") / number(best, "mbs")
    work = tokens * _blocks(row) / _blocks(best)
    return {y: number(best, c) * (tokens if y == "transfer_time" else work) for c, y in TIMES.items()}


def _order(row):
    return row["schedule"].removesuffix(" post-validation").removesuffix(" all-reduce sync")


def _run(row):
    name = ORDERS[_order(row)]
    chunks = round(_blocks(row)) if name == "interleaved" else None  # one block a chunk
    return _executed(name, round(number(row, "p")), round(number(row, "microbatches")), chunks, *_times(row).items())


@cache
def _executed(name, pp, microbatches, chunks, *times):
    """Milliseconds of a step, the same where the optimizer waits for all, and the bubble."""
    run = simulate(name, pp, microbatches, chunks, **dict(times))
    return float(run.interval), float(run.makespan), float(run.bubble)


def _samples(rows):
    """Samples a second and device."""

    def rate(row):
        step = _run(row)[row["schedule"].endswith("sync")]
        return number(row, "mbs") * number(row, "microbatches") / step * 1e3 / number(row, "p")

    return np.array([rate(row) for row in rows])


def _rates(rows):
    return np.array([pipeline_idle(bubble=_run(row)[2]) for row in rows])


def _unknown(row):
    if _order(row) not in ORDERS:
        return f"of {row['schedule']}, which is not executed here"
    if not row["t_f_ms"] and all(x["model"] != row["model"] for x in _timed()):
        return "of a model whose passes were not timed"
    return ""


def _no_samples(row):
    return _unknown(row) or ("" if row["samples_s_gpu"] else "without a measured throughput")


def _no_rate(row):
    if not row["bubble_rate_calc"]:
        return "without a bubble"
    if not row["t_f_ms"]:
        return "without times of its own"
    if _order(row) in ("ZB-2p", "ZB-2p*"):
        return "of ZB-2p, an order that a program searches for"
    return _unknown(row)


def _schedule(row):
    return row["schedule"] + ("" if row["t_f_ms"] else ", times in proportion")


# GPipe


def _rate(k, m):
    """Work per time of `k` stages, in any unit."""
    return k / (1 + bubble_gpipe(pp=k, microbatches=m))


def _base(row):
    return tuple(float(x) for x in re.fullmatch(r"K=(\d+),M=(\d+)", row["baseline"]).groups())


def _setting(row):
    return number(row, "partitions_K"), number(row, "microbatches_M")


def _gpipe(rows):
    return np.array([_rate(*_setting(row)) / _rate(*_base(row)) for row in rows])


def _no_gpipe(row):
    if "Transformer" not in row["model"]:
        return "of AmoebaNet, whose stages are not equal"
    return "that the others are relative to" if _setting(row) == _base(row) else ""


# Another simulator, with equal times

SCHEDULE = "schedule (Victarry/PP-Schedule-Visualization)"
FOLDED = "_v"  # DualPipeV is DualPipe on twice the devices, cut in half: of two that mirror each other one is left


def _their_schedule(row):
    """Ours of its name, or None."""
    name = row[SCHEDULE].split()[0].removesuffix(FOLDED)
    return SCHEDULES.get({"zb1p": "zb_h1"}.get(name, name))


def _bubble(row):
    pp, m, chunks = number(row, "devices"), number(row, "microbatches"), number(row, "stages") / number(row, "devices")
    if row[SCHEDULE].split()[0].endswith(FOLDED):
        pp, m, chunks = 2 * pp, 2 * m, chunks / 2
    bubble, letters = _their_schedule(row).bubble, dict(pp=pp, microbatches=m, chunks=chunks)
    equal = [x for x in (equal_input_gradient, equal_weight_gradient) if x.letter in bubble.inputs]
    return bubble(*equal, {x: value for x, value in letters.items() if x in bubble.inputs})


def _fractions(rows):
    return np.array([pipeline_idle(bubble=_bubble(row)) for row in rows])


def _no_formula(row):
    if _their_schedule(row) is None:
        return f"of {row[SCHEDULE]}, which has no formula here"
    try:
        _bubble(row)
    except OutsideDomain:
        return f"of {row[SCHEDULE]}, whose formula does not hold there"
    return ""


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "pipeline_zero_bubble",
            "pipeline_zero_bubble.csv",
            "Samples a second and device on A100 against the execution of the schedule with the times of its passes.",
            _samples,
            "samples_s_gpu",
            "sample/s",
            ("qi2024",),
            _no_samples,
            _schedule,
        ),
        Confrontation(
            "pipeline_bubble_rate",
            "pipeline_zero_bubble.csv",
            "The bubble as a share of the step, which the authors computed from the times of the passes, against ours.",
            _rates,
            "bubble_rate_calc",
            "share",
            ("qi2024",),
            _no_rate,
            _schedule,
        ),
        Confrontation(
            "pipeline_gpipe",
            "pipeline_gpipe.csv",
            "Throughput of GPipe beside a run of fewer stages, against its bubble.",
            _gpipe,
            "normalized_throughput",
            "times",
            ("huang2019",),
            _no_gpipe,
            lambda row: f"{number(row, 'microbatches_M'):g} micro-batches",
        ),
        Confrontation(
            "pipeline_schedules",
            "pipeline_schedules.csv",
            "Idle share of five schedules with equal times, by another simulator, against the closed forms.",
            _fractions,
            "bubble_fraction_of_total",
            "share",
            ("pp-schedule-visualization",),
            _no_formula,
            lambda row: row[SCHEDULE],
            optional=("row_id", "source"),
        ),
    )
}
