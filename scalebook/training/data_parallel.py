"""Data parallelism: gradients summed over devices that hold other tokens, and state sharded among them (ZeRO, FSDP).

Context-parallel devices hold other tokens too, so they share gradients and state with the data-parallel ones; an
expert's are shared by fewer.  A collective is charged to the scale-up network as far as its group lies within one
domain, ranks being dealt to tensor, context, expert and data parallelism in this order.

>>> shards(dp=16, cp=2)
32.0
"""

from functools import cache

from sympy import Expr, Max, Min, S

from scalebook.language import Formula, formula, symbol
from scalebook.machine.collectives import collective, near_of, port_times
from scalebook.training.parts import with_waits
from scalebook.training.shardings import SHARDINGS, Exchange, Sharding

__all__ = [
    "data_parallel_formulas", "dp_exposed", "dp_passes_all", "dp_passes_once", "dp_unhidden_all", "dp_unhidden_once",
    "dp_window", "dp_window_back", "dp_window_through", "last_window", "last_window_back", "optimizer_time_hybrid",
    "optimizer_time_replicated", "optimizer_time_sharded", "reduce_bits_gradient", "routed_shards", "shards",
    "shards_dualpipe",
]  # fmt: skip


@formula("shards", "llama3-2024 §3.3.2")
def shards(dp, cp):
    """Devices that hold the same weights for other tokens.

    >>> shards(dp=16, cp=2)
    32.0
    """
    return dp * cp


@formula("shards", "deepseek2024-v3 table 2")
def shards_dualpipe(dp, cp):
    """DualPipe feeds a pipeline from both ends: two of its devices hold the same stage.

    >>> shards_dualpipe(dp=16, cp=2)
    64.0
    """
    return 2 * dp * cp


@formula("routed_shards", "lepikhin2020 §3", "liu2025-folding")
def routed_shards(shards, tp, etp, ep):
    """Devices that hold the same part of the same experts:
    all that share a stage, but those that experts are dealt out to.

    >>> routed_shards(shards=32, tp=1, etp=1, ep=8), routed_shards(shards=1, tp=8, etp=1, ep=8)
    (4.0, 1.0)
    """
    return shards * tp / (etp * ep)


@formula("reduce_bits", "narayanan2021 §5.1")
def reduce_bits_gradient(gradient_bits):
    """Gradients are summed as wide as they are stored.

    >>> reduce_bits_gradient(gradient_bits=32)
    32.0
    """
    return gradient_bits


@formula("dp_passes", "data-parallelism")
def dp_passes_once(pp, chunks):
    """What a step does once: gradients are summed under the last backward pass,
    weights gathered under the first forward.

    Of several chunks each is complete pp/chunks passes before the next; the last has its own pass.

    >>> dp_passes_once(pp=8, chunks=1), dp_passes_once(pp=8, chunks=4)
    (1.0, 6.25)
    """
    return (1 + pp * (chunks - 1)) / chunks


@formula("dp_passes", "zero2020 §7.2")
def dp_passes_all(microbatches):
    """What every micro-batch does again may run beside the arithmetic of all of them.

    >>> dp_passes_all(microbatches=10)
    10.0
    """
    return microbatches


@formula("dp_window", "narayanan2021 §2.2")
def dp_window_back(dp_passes, input_gradient_time, weight_gradient_time):
    """Where nothing is gathered the forward pass hides nothing.

    >>> dp_window_back(dp_passes=1, input_gradient_time="72 ms", weight_gradient_time="48 ms")
    0.12
    """
    return dp_passes * (input_gradient_time + weight_gradient_time)


@formula("dp_window", "narayanan2021 §2.2")
def dp_window(dp_passes, forward_time, input_gradient_time, weight_gradient_time):
    """So many passes of a stage, forward and backward.

    >>> dp_window(dp_passes=10, forward_time="60 ms", input_gradient_time="72 ms", weight_gradient_time="48 ms")
    1.8
    """
    return dp_passes * (forward_time + input_gradient_time + weight_gradient_time)


@formula("dp_window", "narayanan2021 §2.2", "data-parallelism")
def dp_window_through(dp_passes, forward_time, input_gradient_time, weight_gradient_time, bubble_time):
    """What every micro-batch repeats runs on while its stage waits for the pipeline:
    a step is never shorter than its collectives.

    >>> dp_window_through(dp_passes=10, forward_time="60 ms", input_gradient_time="72 ms", weight_gradient_time="48 ms",
    ...                   bubble_time="0.2 s")
    2.0
    """
    return dp_passes * (forward_time + input_gradient_time + weight_gradient_time) + bubble_time


@formula("last_window", "narayanan2021 §2.2")
def last_window_back(input_gradient_time, weight_gradient_time):
    """The last micro-batch's backward pass of a stage: the forward pass hides nothing where nothing is gathered.

    >>> last_window_back(input_gradient_time="72 ms", weight_gradient_time="48 ms")
    0.12
    """
    return input_gradient_time + weight_gradient_time


@formula("last_window", "narayanan2021 §2.2")
def last_window(forward_time, input_gradient_time, weight_gradient_time):
    """The last micro-batch's pass of a stage, and the first of the next step.

    >>> last_window(forward_time="60 ms", input_gradient_time="72 ms", weight_gradient_time="48 ms")
    0.18
    """
    return forward_time + input_gradient_time + weight_gradient_time


def _waiting(window: Formula) -> Formula:
    """A window where blocks wait for a second tier: waits hide as arithmetic does,
    since hosts and networks have ports of their own.

    The last micro-batch waits longer than the others, since with it the optimizer's state moves.
    """
    f = with_waits(window)
    longer = symbol("stage_blocks") * (symbol("backward_wait") - symbol("between_wait"))
    return Formula(f.name, f.letter, f.rhs + longer, f.sources, f.__doc__)


def _unhidden(dp_reduce, dp_gather, dp_overlap, stage_blocks, collective_cores, *left):
    bare = 1 - dp_overlap + dp_overlap / stage_blocks
    beside = bare + collective_cores * (1 - bare)  # collectives take cores from what runs beside them
    return Max(beside * (dp_reduce + dp_gather), *left, evaluate=False)


@formula("dp_unhidden", "narayanan2021 §2.2")
def dp_unhidden_all(dp_reduce, dp_gather, dp_window, dp_overlap, stage_blocks, collective_cores):
    """What may not run beside arithmetic and what the rest costs it, or what there is too little arithmetic for.

    Buckets of a block each: the last gradients are ready, and the first weights wanted,
    when nothing else is left to do.

    >>> dp_unhidden_all(dp_reduce="1 s", dp_gather="0.5 s", dp_window="1.2 s", dp_overlap=1, stage_blocks=10,
    ...                 collective_cores=0)
    0.30000000000000004
    """
    left = dp_reduce + dp_gather - (1 - collective_cores) * dp_window
    return _unhidden(dp_reduce, dp_gather, dp_overlap, stage_blocks, collective_cores, left)


@formula("dp_unhidden", "narayanan2021 §2.2", "data-parallelism")
def dp_unhidden_once(dp_reduce, dp_gather, dp_window, last_window, chunks, dp_overlap, stage_blocks, collective_cores):
    """Where it is done once a step, the last chunk has but its own pass, however early the others were done.

    Chunks queue: either all of them fill the window, or the last alone outlasts its pass.

    >>> dp_unhidden_once(dp_reduce="1 s", dp_gather="0.5 s", dp_window="2.5 s", last_window="0.4 s", chunks=4,
    ...                  dp_overlap=1,
    ...                  stage_blocks=48, collective_cores=0)
    0.275
    """
    total, beside = dp_reduce + dp_gather, 1 - collective_cores
    left = total - beside * dp_window, (total - beside * last_window) / chunks
    return _unhidden(dp_reduce, dp_gather, dp_overlap, stage_blocks, collective_cores, *left)


@formula("dp_exposed", "narayanan2021 §2.2", "interconnects-and-memory-tiers")
def dp_exposed(dp_unhidden, dp_contention):
    """What nothing hides, and what the hidden rest costs other collectives on the same links.

    >>> dp_exposed(dp_unhidden="0.3 s", dp_contention="20 ms")
    0.32
    """
    return dp_unhidden + dp_contention


def _updated(weight_bits, gradient_bits, optimizer_bits):
    """Bytes for each parameter: gradients are read for their norm, scaled (read and written), read by Adam, and set to
    zero; state is read and written, and weights are written.
    """
    return (weight_bits + 5 * gradient_bits + 2 * optimizer_bits) / 8


@formula("optimizer_time", "kingma2014 algorithm 1")
def optimizer_time_replicated(
    dense_params, routed_params, weight_bits, gradient_bits, optimizer_bits, hbm_bandwidth, stream_efficiency
):
    """Adam after clipping: five passes over the gradients, two over the state, and the weights written.

    >>> optimizer_time_replicated(dense_params=1e9, routed_params=0, weight_bits=16, gradient_bits=32,
    ...     optimizer_bits=96, hbm_bandwidth="2 TB/s", stream_efficiency=0.75)
    0.030666666666666665
    """
    moved = _updated(weight_bits, gradient_bits, optimizer_bits)
    return (dense_params + routed_params) * moved / (hbm_bandwidth * stream_efficiency)


@formula("optimizer_time", "zero2020 §5.1")
def optimizer_time_sharded(
    dense_params,
    routed_params,
    shards,
    routed_shards,
    weight_bits,
    gradient_bits,
    optimizer_bits,
    hbm_bandwidth,
    stream_efficiency,
):
    """Each device updates its share.

    >>> optimizer_time_sharded(dense_params=1e9, routed_params=0, shards=4, routed_shards=1, weight_bits=16,
    ...     gradient_bits=32, optimizer_bits=96, hbm_bandwidth="2 TB/s", stream_efficiency=0.75)
    0.007666666666666666
    """
    moved = _updated(weight_bits, gradient_bits, optimizer_bits)
    return (dense_params / shards + routed_params / routed_shards) * moved / (hbm_bandwidth * stream_efficiency)


@formula("optimizer_time", "zhao2023 §3.2")
def optimizer_time_hybrid(
    dense_params,
    routed_params,
    shards,
    routed_shards,
    shard_group,
    weight_bits,
    gradient_bits,
    optimizer_bits,
    hbm_bandwidth,
    stream_efficiency,
):
    """Each device updates its share within its group, which is no larger than the devices that share anything.

    >>> optimizer_time_hybrid(dense_params=1e9, routed_params=0, shards=32, routed_shards=4, shard_group=4,
    ...     weight_bits=16, gradient_bits=32, optimizer_bits=96, hbm_bandwidth="2 TB/s", stream_efficiency=0.75)
    0.007666666666666666
    """
    dense, routed = (Min(x, shard_group, evaluate=False) for x in (shards, routed_shards))
    moved = _updated(weight_bits, gradient_bits, optimizer_bits)
    return (dense_params / dense + routed_params / routed) * moved / (hbm_bandwidth * stream_efficiency)


def _held(exchange: Exchange, copies: int) -> list[tuple[Expr, Expr, Expr, Expr]]:
    """What a device shares with others: how often, bytes, devices, and neighbours of other dimensions;
    experts with fewer.

    Whole, or block by block.  Of the stages that a device holds (`copies`) a micro-batch passes one.
    """
    x = symbol
    stages = copies if exchange.is_each else 1  # of those that it holds, one
    dense, routed = (x("shards"), x("tp")), (x("routed_shards"), x("etp") * x("ep"))
    some = Min(1, x("block_routed_params"), evaluate=False)  # without experts nothing starts
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
    """Seconds of one exchange of what a device holds, and seconds that it keeps its scale-up and scale-out ports busy.

    State shared in groups is shared among `shard_group` devices, and its sums go on over the groups, each its share.
    """
    total = [S.Zero] * 3
    for often, held, ways, inner in _held(exchange, copies):
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


# The optimizer's time, by whom its state is dealt out to.
_OPTIMIZER = {"one": optimizer_time_replicated, "group": optimizer_time_hybrid, "all": optimizer_time_sharded}


@cache
def data_parallel_formulas(
    sharding: Sharding = SHARDINGS["zero1"], copies: int = 1, offload: bool = False
) -> tuple[Formula, ...]:
    """What data parallelism adds to a step, by how state is sharded and how many stages a device holds.

    Replicated gradients are all-reduced; sharded ones reduce-scattered, and weights gathered: once a step, or (ZeRO 2
    gradients, ZeRO 3 both, its weights forward and backward) once a micro-batch.

    >>> [f.letter for f in data_parallel_formulas(SHARDINGS["zero3"])][:2]
    ['dp_reduce', 'dp_gather']
    """
    found = [(x, _over_shards(x, copies)) for x in sharding.exchanges]

    def made(letter, which, doc, of=("dp_reduce", "dp_gather")):
        total = sum((x.times * costs[which] for x, costs in found if x.letter in of), S.Zero)
        return Formula(f"{letter}_{sharding}", letter, total, [sharding.source], doc)

    if sharding.is_each:
        passes, unhidden, windows = dp_passes_all, dp_unhidden_all, [dp_window_through]
    else:
        passes, unhidden = dp_passes_once, dp_unhidden_once
        windows = [dp_window, last_window] if sharding.gathers else [dp_window_back, last_window_back]
    return (
        made("dp_reduce", 0, "Gradients summed over devices.", ("dp_reduce",)),
        made("dp_gather", 0, "Weights gathered from devices.", ("dp_gather",)),
        made("dp_scaleup_time", 1, "Both, as the scale-up ports of a device see them."),
        made("dp_scaleout_time", 2, "Both, as the scale-out ports of a device see them."),
        passes,
        *(map(_waiting, windows) if offload else windows),
        unhidden,
        dp_exposed,
        _OPTIMIZER[sharding.parts("optimizer")[0]],
        shards_dualpipe if copies > 1 else shards,
        routed_shards,
        reduce_bits_gradient,
    )
