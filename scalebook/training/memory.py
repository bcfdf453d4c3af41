"""Memory of a training step, in device memory and offloaded, for every pipeline stage and for the fullest.

The last norm, the batch, fragmentation and communication buffers are left out because they are small.
"""

from functools import cache

from sympy import Add, Expr, Ge, Le, Max, Min, Piecewise, S
from sympy.logic.boolalg import Boolean

from scalebook import offload
from scalebook.language import Formula, formula, symbol
from scalebook.pipeline.schedules import SCHEDULES, Schedule
from scalebook.training import parts
from scalebook.training.optimizers import OPTIMIZERS, Optimizer
from scalebook.training.shardings import SHARDINGS, Sharding
from scalebook.training.totals import link_of_host

__all__ = [
    "bytes_of", "dummy_gradients_kept", "filled", "fullest_stage", "host_filled", "memory_formulas", "offload_formulas",
    "sharing", "work_memory",
]  # fmt: skip

_SOURCE = ("zero2020 §5", "korthikanti2022 §4", "isaev2023-calculon §2")


@formula("stage", "korthikanti2022 §4.2.3")
def fullest_stage(first_memory, last_memory, pp):
    """Number of the fullest stage: 1, which holds the most micro-batches, or `pp` (the last), which holds the logits.

    >>> fullest_stage(first_memory="60 GB", last_memory="50 GB", pp=8)
    1.0
    """
    return Piecewise((1, Ge(first_memory, last_memory, evaluate=False)), (pp, True), evaluate=False)


@formula("filled", "korthikanti2022 §1")
def filled(train_memory, hbm_capacity):
    """Share of device memory that is used. Above 1 the stage does not fit.

    >>> filled(train_memory="60 GB", hbm_capacity="80 GB")
    0.75
    """
    return train_memory / hbm_capacity


@formula("host_filled", "rajbhandari2021 §3")
def host_filled(offload_memory, host_capacity):
    """Share of a device's part of host memory that offloaded tensors use. Above 1 they do not fit.

    >>> host_filled(offload_memory="64 GB", host_capacity="256 GB")
    0.25
    """
    return offload_memory / host_capacity


@formula("dummy_gradients", "transformer-engine")
def dummy_gradients_kept(dummy_share, block_params, weight_bits):
    """Bytes of TransformerEngine's dummy gradients: one buffer per distinct weight shape, so one block's weights.

    >>> dummy_gradients_kept(dummy_share=1, block_params=12 * 4096**2, weight_bits=16) / 1e6
    402.653184
    """
    return dummy_share * block_params * weight_bits / 8


@formula("work_memory", "megatron-golden", "nanotron-ultrascale")
def work_memory(library_memory, vocab_bits, vocab, hidden, tp, gathered_tensors, batch, seq, cp, activation_bits):
    """Bytes of libraries' work space, of vocabulary matrices' extra tensors, and of tensors gathered for one block.

    >>> at = dict(tp=1, batch=1, seq=1024, cp=1, activation_bits=16, vocab_bits=24, vocab=50304, hidden=1024)
    >>> work_memory(at, library_memory="0.1 GB", gathered_tensors=2) / 1e9
    0.254533888
    """
    gathered = gathered_tensors * Min(1, tp - 1, evaluate=False) * batch * seq / cp * hidden * activation_bits / 8
    return library_memory + vocab_bits * vocab * hidden / tp / 8 + gathered


# Defaults are zero; a framework's cell takes precedence.
_NONE = tuple(
    Formula(f"{letter}_none", letter, S.Zero, ("scalebook",))
    for letter in ("learned_positions", "dummy_share", "library_memory", "vocab_bits", "gathered_tensors")
)


def bytes_of(
    what: str, sharding: Sharding, dense: Expr, routed: Expr, optimizer: Optimizer = OPTIMIZERS["adam"]
) -> Expr:
    """Return the bytes of "weight", "gradient" or "optimizer" state, for parameters outside and in experts."""
    among = sharding.parts(what)
    parts = (dense / sharing("shards", x) + routed / sharing("routed_shards", x) for x in among)
    held = Add(*parts) * (symbol(f"{what}_bits") / 8)
    return optimizer.state(held) if what == "optimizer" else held


@cache
def sharing(shards: str, among: str) -> Expr:
    """Return the number of devices that share one copy, for `among`: "one", a "group" of them, or "all" `shards`."""
    every = symbol(shards)
    return {"one": S.One, "group": Min(every, symbol("shard_group"), evaluate=False), "all": every}[among]


def _where(condition: Boolean, value: Expr = S.One) -> Expr:
    """Return the value if a condition holds, else 0. It is left unevaluated, because SymPy's evaluation is slow."""
    return Piecewise((value, condition), (0, True), evaluate=False)


def _at_start(stage: Expr) -> Expr:
    alone = _where(Le(symbol("pp"), 1, evaluate=False))
    return {S.One: S.One, symbol("pp"): alone}.get(stage) or _where(Le(stage, 1, evaluate=False))


@cache
def _stage(stage: Expr, schedule: Schedule) -> tuple[Expr, Expr, Expr]:
    """Return what a device of a stage holds: blocks, embedding matrices, and 1 if it makes the logits, else 0."""
    x = symbol
    is_alone = Le(x("pp"), 1, evaluate=False)
    at_end = {S.One: _where(is_alone), x("pp"): S.One}.get(stage) or _where(Le(x("pp"), stage, evaluate=False))
    at_start = _at_start(stage)
    tied = _where(is_alone, 2 - x("embeddings"))
    if schedule.ends == "apart":
        return x("stage_blocks") + at_end * (x("last_blocks") - x("stage_blocks")), at_start + at_end - tied, at_end
    # the model's end is on a device with its beginning
    at_end = at_start if schedule.ends == "first" else at_start + at_end - at_start * at_end
    return x("stage_blocks"), x("embeddings") * at_end, at_end


def _kept_microbatches(schedule: Schedule, stage: Expr) -> Expr:
    held = schedule.held
    return held.of(stage=stage) if "stage" in held.inputs else held.rhs


@cache
def _params(stage: Expr, schedule: Schedule, has_matrices: bool = True) -> tuple[Expr, Expr]:
    """Return the parameters on a device of a stage, as a pair: all except routed experts, and routed experts."""
    blocks, matrices, _ = _stage(stage, schedule)
    blocks, matrices = blocks * schedule.copies, matrices if has_matrices else S.Zero
    dense = blocks * symbol("block_params") + matrices * symbol("vocab") * symbol("hidden") / symbol("tp")
    return dense, blocks * symbol("block_routed_params")


def _gathered(sharding: Sharding, matrices: Expr) -> Expr:
    """Bytes gathered temporarily if weights are sharded: for two blocks and one's gradients, or a vocabulary matrix."""
    if not sharding.is_gathered:
        return S.Zero
    x = symbol
    blocks = (x("block_params") + x("block_routed_params")) * (2 * x("weight_bits") + x("gradient_bits")) / 8
    matrix = x("vocab") * x("hidden") / x("tp") * (x("weight_bits") + x("gradient_bits")) / 8
    whole = Max(blocks, Min(1, matrices, evaluate=False) * matrix, evaluate=False)
    return whole * Min(1, x("shards") - 1, evaluate=False)  # a device that shares with no other gathers nothing


_OFFLOADED = {"weight": "weight", "gradient": "optimizer", "optimizer": "optimizer"}  # each kind's offloaded share


def _state(stage: Expr, sharding: Sharding, schedule: Schedule, is_frozen: bool, optimizer: Optimizer):
    found = {}
    for what in _OFFLOADED:
        has_matrices = what == "weight" or not is_frozen
        dense, routed = _params(stage, schedule, has_matrices)
        dense += _at_start(stage) * symbol("learned_positions") * symbol("hidden") if has_matrices else S.Zero
        found[what] = bytes_of(what, sharding, dense, routed, optimizer)
    return found


def _parts(stage: Expr, held: Expr, offload: bool, *strategy) -> dict[str, Expr]:
    sharding, schedule, _, optimizer = strategy
    x, (blocks, matrices, at_end) = symbol, _stage(stage, schedule)

    def near(total, what, count, one):
        """Return the part of a total that is not offloaded, plus the offloaded part of `near_blocks` blocks."""
        if not offload:
            return total
        away = x(f"{what}_offload")
        return (1 - away) * total + away * Min(x("near_blocks"), count, evaluate=False) * one

    found = {}
    for what, total in _state(stage, *strategy).items():
        one = bytes_of(what, sharding, x("block_params"), x("block_routed_params"), optimizer)
        found[f"{what}_memory"] = near(total, _OFFLOADED[what], schedule.copies * blocks, one)
    found["gradient_memory"] += x("dummy_gradients")
    kept, saved = held * blocks, x("saved_activations")
    found["activation_memory"] = near(kept, "activation", kept, S.One) * saved
    found["logits_memory"] = x("batch") * x("seq") * x("vocab") / (x("tp") * x("cp")) * x("logit_bits") / 8 * at_end
    some = Min(1, blocks, evaluate=False)  # the last stage may have none
    found["buffer_memory"] = some * (x("working_activations") - saved) + _gathered(sharding, matrices)
    found["buffer_memory"] += x("work_memory")
    return found


@cache
def memory_formulas(
    sharding: Sharding = SHARDINGS["zero1"], schedule: Schedule = SCHEDULES["1f1b"], offload: bool = False, is_frozen:
    bool = False, optimizer: Optimizer = OPTIMIZERS["adam"],
) -> tuple[Formula, ...]:  # fmt: skip
    """Return formulas for the memory of a training step on a device of pipeline `stage`: each kind, and the total."""
    strategy = sharding, schedule, is_frozen, optimizer
    here = symbol("stage"), symbol("held_microbatches")

    def total(at):
        return Add(*_parts(at, _kept_microbatches(schedule, at), offload, *strategy).values())

    parts = _parts(*here, offload, *strategy)
    first, last = symbol("first_memory"), symbol("last_memory")
    dense, routed = _params(S.One, schedule)
    made = parts | {
        "dense_params": dense,
        "routed_params": routed,
        "train_memory": Add(*map(symbol, parts)),
        "first_memory": total(S.One),  # it keeps most micro-batches
        "last_memory": total(symbol("pp")),  # it makes the logits
        "memory": Max(first, last, evaluate=False),
    }
    if offload:
        away = _away(*here, *strategy)
        most = Add(*_away(S.One, _kept_microbatches(schedule, S.One), *strategy).values())
        made |= away | {"train_away": Add(*map(symbol, away)), "offload_memory": most}
    built = (Formula(f"{letter}_{sharding}", letter, expr, _SOURCE) for letter, expr in made.items())
    return (*built, schedule.held, fullest_stage, dummy_gradients_kept, work_memory, *_NONE)


def _away(stage: Expr, held: Expr, *strategy) -> dict[str, Expr]:
    x, (blocks, _, _) = symbol, _stage(stage, strategy[1])
    state = _state(stage, *strategy)
    found = {f"{what}_away": x(f"{_OFFLOADED[what]}_offload") * total for what, total in state.items()}
    return found | {"activation_away": x("activation_offload") * held * blocks * x("saved_activations")}


def offload_formulas(sharding: Sharding, schedule: Schedule, optimizer: Optimizer) -> list[Formula]:
    """Return the formulas for the bytes that a block moves to and from a second memory, and the time that this adds."""
    block = symbol("block_params"), symbol("block_routed_params")
    weights, gradients, state = (bytes_of(x, sharding, *block, optimizer) for x in ("weight", "gradient", "optimizer"))
    between, whole = offload.offload_bandwidth.of(block_states=gradients), offload.offload_bandwidth.rhs
    hiding = between + Max(0, 2 - symbol("microbatches"), evaluate=False) * (whole - between)
    made = (
        ("block_weights_held", "block_weights", weights),
        ("block_states_held", "block_states", gradients + state),
        # before the last micro-batch gradients come in to be accumulated, and optimizer state does not move
        ("wait_of_gradients", "between_wait", offload.backward_wait.of(block_states=gradients)),
        ("exposed_of_gradients", "exposed_between", offload.exposed_time.of(backward_wait=symbol("between_wait"))),
        ("bandwidth_between", "offload_bandwidth", hiding),
    )
    return [
        *(Formula(name, letter, rhs, ["rajbhandari2021 §3"]) for name, letter, rhs in made),
        offload.forward_wait,
        offload.backward_wait,
        offload.exposed_time,
        parts.offload_exposed_both if schedule.copies > 1 else parts.offload_exposed,
        link_of_host,
        host_filled,
    ]
