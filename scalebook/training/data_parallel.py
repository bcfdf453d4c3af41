"""Data parallelism: gradients summed over devices with different tokens, and state sharded over them (ZeRO, FSDP).

Context-parallel devices hold different tokens too, so they share gradients and state with the data-parallel devices.
Ranks fill a scale-up domain in the order tensor, context, expert and data parallelism.
"""

from functools import cache

from sympy import Expr, Max, Min, S

from scalebook.language import Formula, formula, symbol
from scalebook.language.defaults import equations
from scalebook.machine.collectives import collective, near_of, port_times
from scalebook.training.assumptions import dp_passes_all, reduce_bits_gradient
from scalebook.training.parts import with_waits
from scalebook.training.shardings import SHARDINGS, Exchange, Sharding

_OWN = equations(__name__)  # those of data_parallel.toml

__all__ = ["data_parallel_formulas", _OWN.dp_passes_once.name, "dp_unhidden_once", "optimizer_time_sharded"]


def _waiting(window: Formula) -> Formula:
    """Extend a window by the blocks' waits for a second tier, which hide collectives as arithmetic does."""
    f = with_waits(window)
    longer = symbol("stage_blocks") * (symbol("backward_wait") - symbol("between_wait"))
    return Formula(f.name, f.letter, f.rhs + longer, f.sources, f.__doc__)


def _unhidden(dp_reduce, dp_gather, dp_overlap, stage_blocks, collective_cores, *left):
    bare = 1 - dp_overlap + dp_overlap / stage_blocks
    beside = bare + collective_cores * (1 - bare)  # collectives take cores from the kernels that overlap with them
    return Max(beside * (dp_reduce + dp_gather), *left, evaluate=False)


@formula("dp_unhidden", "narayanan2021 §2.2")
def dp_unhidden_all(dp_reduce, dp_gather, dp_window, dp_overlap, stage_blocks, collective_cores):
    """Data-parallel time that is not hidden, if every micro-batch exchanges. Each block is one bucket.

    >>> dp_unhidden_all(dp_reduce=3, dp_gather=1, dp_window=3.5, dp_overlap=1, stage_blocks=10, collective_cores=0)
    0.5
    """
    left = dp_reduce + dp_gather - (1 - collective_cores) * dp_window
    return _unhidden(dp_reduce, dp_gather, dp_overlap, stage_blocks, collective_cores, left)


@formula("dp_unhidden", "narayanan2021 §2.2", "data-parallelism")
def dp_unhidden_once(dp_reduce, dp_gather, dp_window, last_window, chunks, dp_overlap, stage_blocks, collective_cores):
    """Data-parallel time that is not hidden, if exchanges run once per step. A chunk waits for the one before it.

    >>> at = dict(dp_window=25, last_window=4, chunks=4, dp_overlap=1, stage_blocks=48, collective_cores=0)
    >>> dp_unhidden_once(at, dp_reduce=10, dp_gather=5)
    2.75
    """
    total, beside = dp_reduce + dp_gather, 1 - collective_cores
    left = total - beside * dp_window, (total - beside * last_window) / chunks
    return _unhidden(dp_reduce, dp_gather, dp_overlap, stage_blocks, collective_cores, *left)


def _updated(weight_bits, gradient_bits, optimizer_bits):
    """Bytes that an update moves per parameter: five passes over gradients, two over state, one over weights."""
    return (weight_bits + 5 * gradient_bits + 2 * optimizer_bits) / 8


@formula("optimizer_time", "zero2020 §5.1")
def optimizer_time_sharded(
    dense_params, routed_params, shards, routed_shards, weight_bits, gradient_bits, optimizer_bits, hbm_bandwidth,
    stream_efficiency,
):  # fmt: skip
    """Time of Adam with gradient clipping if each device updates its shard.

    >>> optimizer_time_sharded(dense_params=1e9, routed_params=0, shards=4, routed_shards=1, weight_bits=16,
    ...     gradient_bits=32, optimizer_bits=96, hbm_bandwidth="2 TB/s", stream_efficiency=0.75)
    0.007666666666666666
    """
    moved = _updated(weight_bits, gradient_bits, optimizer_bits)
    return (dense_params / shards + routed_params / routed_shards) * moved / (hbm_bandwidth * stream_efficiency)


@formula("optimizer_time", "zhao2023 §3.2")
def optimizer_time_hybrid(
    dense_params, routed_params, shards, routed_shards, shard_group, weight_bits, gradient_bits, optimizer_bits,
    hbm_bandwidth, stream_efficiency,
):  # fmt: skip
    """Time of Adam with gradient clipping if state is sharded within groups of at most `shard_group` devices.

    >>> optimizer_time_hybrid(dense_params=1e9, routed_params=0, shards=32, routed_shards=4, shard_group=4,
    ...     weight_bits=16, gradient_bits=32, optimizer_bits=96, hbm_bandwidth="2 TB/s", stream_efficiency=0.75)
    0.007666666666666666
    """
    dense, routed = (Min(x, shard_group, evaluate=False) for x in (shards, routed_shards))
    moved = _updated(weight_bits, gradient_bits, optimizer_bits)
    return (dense_params / dense + routed_params / routed) * moved / (hbm_bandwidth * stream_efficiency)


def _exchanged(exchange: Exchange, copies: int) -> list[tuple[Expr, Expr, Expr, Expr]]:
    """Return what a device exchanges, dense and routed: repetitions, bytes, devices, and ways of inner dimensions."""
    x = symbol
    stages = copies if exchange.is_each else 1  # one of the stages that it holds
    dense, routed = (x("shards"), x("tp")), (x("routed_shards"), x("etp") * x("ep"))
    some = Min(1, x("block_routed_params"), evaluate=False)  # without experts no collective starts
    if exchange.by_block:
        blocks = x("stage_blocks") * copies / stages
        outside = x("dense_params") / stages - blocks * x("block_params")  # embeddings
        parts = [
            (blocks, x("block_params"), dense),
            (S.One, outside, dense),
            (some * blocks, x("block_routed_params"), routed),
        ]
    else:
        parts = [(S.One, x("dense_params") / stages, dense), (some, x("routed_params") / stages, routed)]
    return [(often, params * x(exchange.bits) / 8, *group) for often, params, group in parts]


def _over_shards(exchange: Exchange, copies: int) -> tuple[Expr, Expr, Expr]:
    """Return the seconds of one exchange, and how long it keeps the scale-up and scale-out ports busy."""
    total = [S.Zero] * 3
    for often, held, ways, inner in _exchanged(exchange, copies):
        group = Min(ways, symbol("shard_group"), evaluate=False)
        held, ways, inner = {
            "all": (held, ways, inner),
            "group": (held, group, inner),
            "groups": (held / group, ways / group, inner * group),
        }[exchange.among]
        each = (held, ways, near_of(ways, inner))
        costs = collective(exchange.kind, *each), *port_times(exchange.kind, *each)
        total = [a + often * b for a, b in zip(total, costs, strict=True)]
    return tuple(total)


_REPLICATED = Formula(
    "optimizer_time_replicated", "optimizer_time", lambda: optimizer_time_sharded.of(shards=1, routed_shards=1),
    ["kingma2014 algorithm 1"], "Time of Adam with gradient clipping if every device updates all state that it holds.",
)  # fmt: skip
# The optimizer's time, by which devices share its state.
_OPTIMIZER = {"one": _REPLICATED, "group": optimizer_time_hybrid, "all": optimizer_time_sharded}


@cache
def data_parallel_formulas(
    sharding: Sharding = SHARDINGS["zero1"], copies: int = 1, offload: bool = False
) -> tuple[Formula, ...]:
    """Return the formulas of data-parallel time, for a sharding and a number of stages per device (`copies`)."""
    found = [(x, _over_shards(x, copies)) for x in sharding.exchanges]

    def made(letter, which, of=("dp_reduce", "dp_gather")):
        total = sum((x.times * costs[which] for x, costs in found if x.letter in of), S.Zero)
        return Formula(f"{letter}_{sharding}", letter, total, [sharding.source])

    if sharding.is_each:
        passes, unhidden, windows = dp_passes_all, dp_unhidden_all, [_OWN.dp_window_through]
    else:
        passes, unhidden = _OWN.dp_passes_once, dp_unhidden_once
        windows = (
            [_OWN.dp_window, _OWN.last_window] if sharding.gathers else [_OWN.dp_window_back, _OWN.last_window_back]
        )
    return (
        made("dp_reduce", 0, ("dp_reduce",)), made("dp_gather", 0, ("dp_gather",)), made("dp_scaleup_time", 1),
        made("dp_scaleout_time", 2),
        passes, *(map(_waiting, windows) if offload else windows), unhidden, _OWN.dp_exposed,
        _OPTIMIZER[sharding.parts("optimizer")[0]], _OWN.shards_dualpipe if copies > 1 else _OWN.shards,
        _OWN.routed_shards, reduce_bits_gradient,
    )  # fmt: skip
