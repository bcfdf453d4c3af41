"""Offloading as Calculon, another model of training, works it out: the bandwidths and the memory it asks for.

These are predictions, not measurements: no published run of offloaded training states its bandwidths.
What is confronted is our account of the bytes and of the time they hide in with an independent one,
which sums every operation of a block at an efficiency that depends on its size.
"""

from math import ceil

import numpy as np

from scalebook.calculon import library
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

# Of each model file of Calculon: hidden, feed-forward, sequence, heads, width of a head, blocks.
SHAPES = {
    "anthropic-52B": (8192, 32768, 8192, 64, 128, 64), "chinchilla": (8192, 32768, 2048, 64, 128, 80),
    "gopher-280B": (16384, 65536, 2048, 128, 128, 80), "gpt2-1.5B": (1600, 6400, 1024, 25, 64, 48),
    "gpt3-1.3B": (2048, 8192, 2048, 16, 128, 24), "gpt3-6.7B": (4096, 16384, 2048, 32, 128, 32),
    "gpt3-13B": (5140, 20560, 2048, 40, 128, 40), "gpt3-175B": (12288, 49152, 2048, 96, 128, 96),
    "lamda": (8192, 65536, 2048, 128, 128, 64), "megatron-126M": (768, 3072, 2048, 16, 48, 12),
    "megatron-5B": (4096, 16384, 2048, 32, 128, 24), "megatron-22B": (6144, 24576, 2048, 64, 96, 48),
    "megatron-40B": (8192, 32768, 2048, 64, 128, 48), "megatron-1T": (25600, 102400, 2048, 160, 160, 128),
    "palm-540B": (18432, 73728, 2048, 48, 256, 118), "turing-530B": (20480, 81920, 2048, 128, 160, 105),
    "poster-1T": (24576, 98304, 8192, 128, 192, 128), "poster-2T": (32768, 131072, 8192, 160, 205, 160),
    "poster-4T": (40960, 163840, 8192, 192, 213, 192), "poster-7T": (50176, 200704, 8192, 224, 224, 224),
    "poster-11T": (60416, 241664, 8192, 256, 236, 256), "poster-18T": (70656, 282624, 8192, 288, 245, 288),
    "poster-26T": (81920, 327680, 8192, 320, 256, 320), "poster-37T": (94208, 376832, 8192, 352, 268, 352),
    "poster-53T": (106496, 425984, 8192, 384, 277, 384), "poster-72T": (119808, 479232, 8192, 416, 288, 416),
    "poster-96T": (134144, 536576, 8192, 448, 299, 448), "poster-128T": (148480, 593920, 8192, 480, 309, 480),
}  # fmt: skip
# Peak in fp16 and scale-up network, one direction, as its system files print them.
SYSTEMS = {"a100": (312e12, 300e9), "h100": (1000e12, 450e9), "h200": (1000e12, 450e9)}


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


def _known(row):
    """The letters of a run."""
    hidden, ffn, seq, heads, head_dim, layers = SHAPES[row["model"]]
    kv_heads = 1 if row["attention_type"] == "multiquery" else heads
    params = 2 * hidden * head_dim * (heads + kv_heads) + 2 * hidden * ffn
    peak, network = SYSTEMS[row["system"].split("_")[0]]
    ways = {name: number(row, f"{column}_par") for name, column in (("tp", "tensor"), ("pp", "pipeline"))}
    return (
        MIXED
        | ways
        | {
            "hidden": hidden,
            "seq": seq,
            "heads": heads,
            "head_dim": head_dim,
            "batch": number(row, "microbatch_size"),
            "layers": ways["pp"] * ceil(layers / ways["pp"]),
            "block_params": params,
            "block_active_params": params,
            "peak_flops": peak,
            "link_achieved": network * _slower(row, ways["tp"]),
            "chunks": number(row, "pipeline_interleaving"),
            "dp": number(row, "data_par") if _is(row, "optimizer_sharding") else 1,
        }
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
    hidden, ffn = SHAPES[row["model"]][:2]
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
        if row["model"] not in SHAPES or row["system"] not in library.systems:
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
    return f"{row['system'][0].upper()}{row['system'].split('_')[0][1:]}" + (
        "" if row["tensor_par_overlap"] == "none" else ", overlap"
    )


def _calibrates(row):
    return row["system"] in ("a100_80g", "a100_80e") and row["tensor_par_overlap"] == "none"


_FITTED = "one arithmetic and one network efficiency, on the time of the forward pass in the A100 runs"


def _confrontation(name, what, predict, column, unit, keeps, fitted=_FITTED):
    reason = _left_out(column, keeps)
    calibrates = (lambda row: not reason(row) and _calibrates(row)) if fitted else (lambda row: False)
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
        calibrates,
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
