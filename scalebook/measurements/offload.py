"""Offloading as Calculon, another model of training, works it out: the bandwidths and the memory it asks for.

These are predictions, not measurements: no published run of offloaded training states its bandwidths.
What is confronted is our account of the bytes and of the time they hide in with an independent one,
which sums every operation of a block at an efficiency that depends on its size.
"""

from math import ceil

import numpy as np

from scalebook.calculon import application, library
from scalebook.language import Row
from scalebook.offload.bandwidth import MIXED, offload_bandwidth
from scalebook.offload.block import (
    block_backward,
    block_forward,
    block_forward_collectives,
    block_states,
    block_weights,
    saved_activations_kept,
)
from scalebook.offload.tiers import held_interleaved_first, offload_memory

from .confrontation import Confrontation
from .rows import number

__all__ = ["CONFRONTATIONS", "FLOPS_EFFICIENCY", "LINK_EFFICIENCY", "block_seconds"]

# Fitted by least squares of predicted/reported time - 1 on the A100 runs; a test fits them again.
FLOPS_EFFICIENCY = 0.902
LINK_EFFICIENCY = 0.515


def _is(row, column):
    return row[column] == "True"


def _slower(row, tp) -> float:
    """How much less than the first network that of tensor parallelism gives: 1 where it runs on the first.

    Without a column that says on which, it runs on the first that is large enough.
    """
    networks = library.systems[row["system"]].networks
    fits = (i for i, network in enumerate(networks) if network.size >= tp)
    first, used = networks[0], networks[int(row.get("tensor_par_net") or next(fits, len(networks) - 1))]
    sent = [{name: scale * (1 + offset / max(2, tp)) for name, scale, offset in x.ops} for x in (used, first)]
    rates = [x.bandwidth / y["all_gather"] for x, y in zip((used, first), sent, strict=True)]
    return rates[0] / rates[1]


def _shape(row) -> Row:
    return application(library.models[row["model"]], row["model"])


def _known(row):
    """The letters of a run."""
    shape, system = _shape(row), library.systems[row["system"]]
    tp, pp = number(row, "tensor_par"), number(row, "pipeline_par")
    kv_heads = 1 if row["attention_type"] == "multiquery" else shape.heads
    params = 2 * shape.hidden * (shape.head_dim * (shape.heads + kv_heads) + shape.ffn)
    return MIXED | dict(
        hidden=shape.hidden,
        seq=shape.seq,
        heads=shape.heads,
        head_dim=shape.head_dim,
        tp=tp,
        pp=pp,
        batch=number(row, "microbatch_size"),
        layers=pp * ceil(shape.layers / pp),
        block_params=params,
        block_active_params=params,
        peak_flops=system.matrix["float16"].peak,
        link_achieved=system.networks[0].printed * _slower(row, tp),
        chunks=number(row, "pipeline_interleaving"),
        dp=number(row, "data_par") if _is(row, "optimizer_sharding") else 1,
    )


def block_seconds(row, efficiency=FLOPS_EFFICIENCY, link=LINK_EFFICIENCY) -> tuple[float, float]:
    """Seconds of a block forward and back on one device; as many collectives run back as forward."""
    known = _known(row) | {"flops_efficiency": efficiency}
    arithmetic = block_forward(known)
    collectives = block_forward_collectives(known | {"link_achieved": link * known["link_achieved"]}) - arithmetic
    if row["tensor_par_overlap"] != "none":
        collectives = _exposed(row, known, arithmetic, collectives)
    back = block_backward(block_forward=arithmetic, recomputed=_recomputed(row, known))
    return arithmetic + collectives, back + collectives


def _exposed(row, known, arithmetic, collectives):
    """Each of four collectives overlaps with the product next to it only; a pipe shows its first of tp parts too."""
    hidden, ffn = known["hidden"], _shape(row).ffn
    width = known["heads"] * known["head_dim"]
    into = known["block_params"] - hidden * width - 2 * hidden * ffn  # queries, keys and values
    rate = arithmetic / (known["block_params"] + 2 * known["seq"] * width)
    products = [rate * params for params in (into, hidden * width, hidden * ffn, hidden * ffn)]
    first = collectives / known["tp"] if row["tensor_par_overlap"] == "pipe" else 0
    return first + sum(max(0, collectives / 4 - product) for product in products)


def _recomputed(row, known):
    attention = 2 * known["seq"] * known["heads"] * known["head_dim"]
    core = attention / (known["block_params"] + attention)
    return {"full": 1, "attn_only": core, "none": 0}[row["activation_recompute"]]


def _kept(row, known):
    """Values kept per token and unit of width, on all tensor-parallel devices together.

    Only the input, and whole on each device, if everything runs again.  Else 17, or 13 where fused kernels make the
    input of the GELU again; scores, weights and their mask if the core of attention is not run again; and the
    gathered inputs, whole on each device, if they are kept instead of being gathered again.
    """
    tp, recompute = known["tp"], row["activation_recompute"]
    if recompute == "full":
        return tp
    kept = 13 if _is(row, "fused_activation") else 17
    whole = tp > 1 and row["tensor_par_overlap"] == "none" and not _is(row, "seq_par_ag_redo")
    if recompute == "none":
        return kept + 2.5 * known["heads"] * known["seq"] / known["hidden"] + 2 * whole * tp
    return kept + whole * tp


def _block(row):
    """A run's letters, and what there is to move for one of its blocks and the time for it."""
    known = _known(row)
    forward, back = block_seconds(row)
    known |= {"kept_values": _kept(row, known), "block_forward": forward, "block_backward": back}
    return known | {
        "block_weights": block_weights(known),
        "block_states": block_states(known),
        "saved_activations": saved_activations_kept(known),
    }


def _shares(row):
    columns = {
        "weight_offload": "weight_offload",
        "activation_offload": "activations_offload",
        "optimizer_offload": "optimizer_offload",
    }
    return {letter: float(_is(row, column)) for letter, column in columns.items()}


def _each(function):
    return lambda rows: np.array([function(row, _block(row)) for row in rows])


_mix = _each(lambda row, block: offload_bandwidth(block, **_shares(row)))
_weights = _each(lambda row, block: block["block_weights"] / block["block_forward"])
_activations = _each(lambda row, block: block["saved_activations"] / block["block_forward"])
_states = _each(lambda row, block: block["block_states"] / block["block_backward"])
_memory = _each(lambda row, block: offload_memory(block | {"held_microbatches": _held(row, block)}, **_shares(row)))


def _held(row, known):
    microbatches = number(row, "batch_size") / number(row, "data_par") / known["batch"]
    return min(microbatches, held_interleaved_first(known))


def _left_out(column, keeps):
    def reason(row):
        if not row[column] or float(row[column]) == 0:
            return "that offload nothing, or that Calculon refuses"
        if row["model"] not in library.models or row["system"] not in library.systems:
            return "of a model or a system whose description is not here"
        if row["datatype"] != "float16" or not _is(row, "training"):
            return "of inference, or in fp8"
        if keeps and row["tensor_par_comm_type"] != "rs_ag" and number(row, "tensor_par") > 1:
            return "without sequence parallelism, which keeps other activations"
        return ""

    return reason


def _group(row):
    if row["model"].startswith("poster"):
        return "1T to 128T"
    overlap = "" if row["tensor_par_overlap"] == "none" else ", overlap"
    return row["system"].partition("_")[0].capitalize() + overlap


def _calibrates(row):
    return row["system"] in ("a100_80g", "a100_80e") and row["tensor_par_overlap"] == "none"


_FITTED = "one arithmetic and one network efficiency, on the time of the forward pass in the A100 runs"


def _confrontation(name, what, predict, column, unit, keeps, fitted=_FITTED):
    reason = _left_out(column, keeps)
    return Confrontation(
        name,
        "offload_calculon.csv",
        f"{what} Calculon's are predictions too, not measurements.",
        predict,
        column,
        unit,
        ("calculon-runs",),
        reason,
        _group,
        fitted,
        _calibrates if fitted else (lambda row: False),
        optional=("row_id", "source"),
    )


CONFRONTATIONS = {
    c.name: c
    for c in (
        _confrontation(
            "offload_calculon",
            "Bandwidth that hides all that is offloaded, against Calculon's.",
            _mix,
            "offload_mem_bw_req",
            "B/s",
            True,
        ),
        _confrontation(
            "offload_calculon_weights",
            "Bandwidth that hides the weights, against Calculon's.",
            _weights,
            "weight_offload_bw_req",
            "B/s",
            False,
        ),
        _confrontation(
            "offload_calculon_activations",
            "Bandwidth that hides the activations, against Calculon's.",
            _activations,
            "act_offload_bw_req",
            "B/s",
            True,
        ),
        _confrontation(
            "offload_calculon_states",
            "Bandwidth that hides gradients and optimizer state, against Calculon's.",
            _states,
            "optim_offload_bw_req",
            "B/s",
            False,
        ),
        _confrontation(
            "offload_calculon_memory",
            "Memory taken in the second tier, against Calculon's.",
            _memory,
            "proc_mem_tier2_cap_req",
            "B",
            True,
            "",
        ),
    )
}
