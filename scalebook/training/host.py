"""Costs that a framework adds to a step: eager kernels, older libraries, collectives in pieces, waits for the host.

Their inputs come from rows of `tables.frameworks`, `tables.libraries` or `tables.clusters`, or from the call.
"""

from functools import cache

from sympy import Gt, Lt, Max, Min, Or, Piecewise, Pow, Rational, floor
from sympy.core.relational import Relational

from scalebook.block.work import REACHED
from scalebook.language import Formula, formula, symbol
from scalebook.language.defaults import equations
from scalebook.language.notation import replaced
from scalebook.language.renamed import renamed
from scalebook.language.stanzas import tables_of
from scalebook.machine.collectives import any_slow
from scalebook.pipeline.schedules import Schedule
from scalebook.training import assumptions

__all__ = [
    "DEFAULT_LETTERS", "EXPOSED", "FRAMEWORK", "REACHED", "as_run", "host_launch", "of_framework", "overlap_of",
    "sent_once",
]  # fmt: skip

__getattr__ = renamed(__name__)


_OWN = equations(__name__)  # those of host.toml
DEFAULT_LETTERS = tables_of(__package__, "defaults.toml")["framework"]


# Kernels


@formula("attention_reached", "flash-attention-figures")
def attention_reached_length(attention_short, attention_long, seq):
    """Attention efficiency by sequence length: interpolated between 4,096 and 16,384 tokens, constant outside.

    >>> attention_reached_length(attention_short=0.30, attention_long=0.33, seq=8192)
    0.31
    """
    return attention_short + (attention_long - attention_short) * _between(seq, 4096, 16384)


@formula("attention_reached", "flash-attention-figures")
def attention_reached_heads(attention_short, attention_long, attention_narrow, seq, head_dim):
    """Attention efficiency by sequence length, lowered for heads narrower than 128.

    >>> attention_reached_heads(attention_short=0.30, attention_long=0.33, attention_narrow=0.9, seq=4096, head_dim=64)
    0.27
    """
    lost = (1 - attention_narrow) * (1 - _between(head_dim, 64, 128))
    wide = attention_reached_length.of(attention_short=attention_short, attention_long=attention_long, seq=seq)
    return wide * (1 - lost)


def _between(x, low, high):
    """Return 0 up to `low`, 1 from `high` on, and a linear ramp in between."""
    return Max(0, Min(1, (x - low) / (high - low), evaluate=False), evaluate=False)


# Collectives


@formula("pp_overlap", "narayanan2021 §2.2", "megatron-bridge")
def overlap_of_chunks(chunks):
    """Share of stage-to-stage transfers that is hidden: all if a stage has several chunks, none with one.

    >>> overlap_of_chunks(chunks=1), overlap_of_chunks(chunks=4)
    (0.0, 1.0)
    """
    return Min(1, chunks - 1, evaluate=False)


@formula("sent_share", "megatron-bridge", "deepseek2024-v3 §3.2.2")
def sent_once(ep, scaleup_size, top_k):
    """Share of a token's `top_k` copies sent, if each device (over several domains: each domain) gets only one copy.

    >>> sent_once(ep=8, scaleup_size=8, top_k=8).__round__(2), sent_once(ep=32, scaleup_size=8, top_k=8).__round__(2)
    (0.66, 0.45)
    """
    places = Piecewise((ep / scaleup_size, Gt(ep, scaleup_size)), (ep, True))
    return places * (1 - (1 - 1 / places) ** top_k) / top_k


# The host


@formula("host_launch", "nanotron-ultrascale")
def host_launch(block_launch, split_launch, stage_launch, domain_launch, tp, pp, dp, scaleup_size):
    """Least time in which the host launches a block: more with tensor parallelism, and over several domains.

    >>> at = dict(block_launch=0, split_launch="4.6 ms", stage_launch="2.8 ms", domain_launch="3.5 ms", scaleup_size=8)
    >>> host_launch(at, tp=4, pp=2, dp=2), host_launch(at, tp=16, pp=1, dp=2)
    (0.0158, 0.0081)
    """
    is_split, is_staged = Min(1, tp - 1, evaluate=False), Min(1, pp - 1, evaluate=False)
    is_wide = Min(1, floor(tp * pp * dp / (scaleup_size + Rational(1, 2)), evaluate=False), evaluate=False)
    further = Max(0, tp / scaleup_size - 1, evaluate=False)
    outside = stage_launch * tp * is_staged * is_wide + domain_launch * further * (1 - is_staged)
    return block_launch + split_launch * is_split + outside


@formula("received_tensors", "narayanan2021 §2.2")
def received_tensors(pp):
    """Tensors per micro-batch that the busiest stage receives: up to one forward and one backward.

    >>> received_tensors(pp=1), received_tensors(pp=2), received_tensors(pp=8)
    (0.0, 1.0, 2.0)
    """
    return Min(2, pp - 1, evaluate=False)


@formula("stall_exposed", "nanotron-ultrascale", "dean2013")
def stall_exposed(stall_time, stall_ways, slow_share, received_tensors, microbatches, tp, pp, dp, cp, scaleup_size):
    """Time that stalls add to a step. Stalls occur if a slow node among the hosts is more likely than not.

    Every received tensor then stalls. With `tp` above `stall_ways` stalls always occur.

    >>> at = dict(stall_time=0.5, stall_ways=16, slow_share=0.018, microbatches=7, received_tensors=1, pp=2, cp=1)
    >>> stall_exposed(at, scaleup_size=8, tp=8, dp=4), stall_exposed(at, scaleup_size=8, tp=32, dp=1)
    (0.0, 4.0)
    """
    none_slow = 1 - any_slow.of(slow_share=slow_share, ways=tp * pp * dp * cp / scaleup_size)
    stalled = stall_time * received_tensors * (microbatches + pp - 1)
    stalls = Or(Lt(stall_ways, tp, evaluate=False), Lt(none_slow, Rational(1, 2), evaluate=False), evaluate=False)
    return Piecewise((stalled, stalls), (0, True), evaluate=False)


EXPOSED = (_OWN.host_exposed, received_tensors, stall_exposed)
FRAMEWORK: tuple[Formula, ...] = (
    _OWN.stream_reached_passes, _OWN.sustained_reached_library, assumptions.attention_same_short,
    assumptions.attention_same_long, _OWN.overlap_of_pieces, sent_once, host_launch,
)  # fmt: skip


@cache
def as_run(f: Formula, is_tiled: bool = False) -> Formula:
    """Return a formula with best-case efficiencies replaced by what a framework reaches; `is_tiled` attention too."""
    names = REACHED | ({"attention_backward": "backward_reached"} if is_tiled else {})
    if names.keys().isdisjoint(f.inputs):
        return f
    places = {symbol(x): symbol(y) for x, y in names.items()}
    return Formula(f.name, f.letter, replaced(f.rhs, places, _KEPT), f.sources, f.__doc__, domain=f.domain)


# What SymPy would evaluate again, for tenths of a second a block, though letters with other names have the same sign.
_KEPT = (Max, Min, Relational, Piecewise, Pow)


def overlap_of(schedule: Schedule) -> Formula:
    """Return the formula for the share of a pipeline schedule's transfers between stages that arithmetic hides."""
    if schedule.chunks is None:
        return overlap_of_chunks
    return assumptions.overlap_of_two if schedule.chunks * schedule.copies > 1 else assumptions.overlap_of_one


def of_framework(has_experts: bool, schedule: Schedule, used: set[str]) -> list[Formula]:
    """Return the formulas for what a framework reaches: efficiency, overlap and launches.

    `used` are the inputs of the other formulas of the step.
    """
    return [
        *FRAMEWORK,
        overlap_of(schedule),
        attention_reached_heads if "head_dim" in used else attention_reached_length,
        _OWN.launched_blocks_moe if has_experts else _OWN.launched_blocks_all,
        _OWN.experts_eager if has_experts else assumptions.experts_fused,
    ]
