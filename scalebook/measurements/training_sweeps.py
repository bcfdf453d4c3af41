"""Training steps in sweeps of many configurations: MPT under FSDP, NVIDIA's Megatron Bridge and NeMo, and nanotron.

A software that does not fuse, or that waits for its host, is slower than the model of kernels: each such share is one
number for the software, calibrated on a stated part of its rows.
"""

import re
from collections import defaultdict

import numpy as np

from scalebook.inference.tail import any_slow
from scalebook.tables import accelerators, models
from scalebook.training.precision import eager_experts_time
from scalebook.training.step import training_step

from .confrontation import Confrontation, Priced, Readings
from .rows import is_even, number, optional
from .runs import RERUN, block_passes, dense, device, timed, useful_seconds
from .training_memory import nanotron_stages

__all__ = [
    "CONFRONTATIONS", "EAGER_PASSES", "HOST_TIME", "LAUNCH", "LAUNCH_IN_TURNS", "NETWORK", "PYTORCH", "SLOW_NODE",
    "STALL", "UNFUSED", "WAIT", "nanotron_modes", "sent_share", "unfused",
]  # fmt: skip


def _shape(row, gating, positions=0.0):
    """A model of blocks without biases and dropout."""
    own = {x: number(row, x) for x in ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab")}
    own |= dict(head_dim=own["hidden"] / own["heads"], embeddings=1 if row["tied_embed"] == "True" else 2)
    return dense(row["model"], "rmsnorm", "gqa", **own, gating=gating, learned_positions=positions)


# PyTorch

# PyTorch runs every element-wise step by itself, which moves so many times the bytes of fused ones.
UNFUSED = 2.2
# What its products reach within a step of what they reach alone (the A100 as in assumptions.py; the H100 with the
# libraries of 2023), and FlashAttention in Triton, forward and backward, of the peak.
PYTORCH = {
    "a100": dict(sustained_rate=0.95, attention_efficiency=0.33), "h100": dict(sustained_rate=0.75,
    attention_efficiency=0.24)
}  # fmt: skip


def unfused(gpu):
    """What element-wise steps and attention reach in PyTorch, nothing being compiled."""
    return dict(stream_efficiency=gpu.stream_efficiency / UNFUSED, attention_backward=1)


def _llm_foundry(rows):
    """Weights gathered for every pass, gradients summed in 16 bits ("PURE") or 32, both beside arithmetic."""

    def run(row):
        name = "h100" if "h100" in row["gpu"] else "a100"
        gpu = accelerators[name].at("fp8" if "fp8" in row["precision"] else "bf16")
        memory = dict(hbm_bandwidth="1555 GB/s") if "40gb" in row["gpu"] else {}
        stops = row["precision"].startswith("amp")  # runs of the later script, by when PyTorch's checkpoints stop early
        rerun = RERUN if stops else dict(recompute="full")
        return training_step(
            _shape(row, 0, number(row, "seq_len")),
            gpu,
            **PYTORCH[name],
            **unfused(gpu),
            **memory,
            dp=number(row, "n_gpus"),
            batch=number(row, "mbs_per_gpu"),
            microbatches=number(row, "grad_acc"),
            seq=number(row, "seq_len"),
            dp_overlap=1,
            sharding="zero3" if row["sharding"] == "FULL_SHARD" else "zero2",
            **(rerun if row["full_act_ckpt"] == "True" else {}),
            reduce_bits=16 if row["fsdp_mixed_precision"] == "PURE" else 32,
        )

    return timed(map(run, rows))


def _no_llm_foundry(row):
    if row["gpu"] not in ("a100_40gb", "a100_80gb", "h100_80gb"):
        return "on a device that is not in the table"
    return "with activations on the host" if row["act_cpu_offload"] == "True" else ""


# nanotron

# The cluster's network, found on its own all-gathers and reduce-scatters of 256 MiB on 2 to 64 nodes
# (collectives_published.csv, HF H100 cluster): share of 50 GB/s a device, and what every node adds to a ring.
NETWORK = dict(far_efficiency=0.55, far_latency=260e-6)
# FlashAttention-2 on the H100, causal, 4,096 tokens, forward and backward, of the peak: heads of 64 and of 128.
FLASH_2 = {64: 0.26, 128: 0.30}
# The least time that the host takes to launch a block, forward and backward: with tensor parallelism, and besides for
# every tensor-parallel device of a pipeline over several nodes, or for every further node of a stage alone.
HOST_TIME = (4.6e-3, 2.8e-3, 3.5e-3)
# Some runs lose this time in every micro-batch, more of them the more nodes they use, as if each node were slow by this
# chance.  The median run of more than 38 nodes is such a one.
STALL = 0.8
SLOW_NODE = 0.018


def nanotron_modes(rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Seconds of a step of each run in either mode, as its nodes are even and as one of them holds up all others, and
    the chance of the second, if each node is slow on its own account.

    >>> from scalebook.measurements import confront
    >>> even, held_up, chance = nanotron_modes(confront("nanotron").rows[:1])
    >>> bool((even < held_up).all()), chance.round(2).tolist()
    (True, [0.02])
    """
    even, held_up, chance, _ = _nanotron_priced(rows)
    return even, held_up, chance


def _nanotron(rows):
    """The likelier mode of each run."""
    even, held_up, chance, least = _nanotron_priced(rows)
    return Priced(np.where(chance > 0.5, held_up, even), *least)


def _nanotron_readings(rows):
    """Either mode: rows do not say whether a node was slow."""
    even, held_up, chance = nanotron_modes(rows)
    return Readings(np.array([even, held_up]), np.array([1 - chance, chance]))


def _nanotron_priced(rows):
    """Uneven stages as nanotron deals them out; nothing runs beside the collectives of a step."""
    found, least, kinds = np.zeros((3, len(rows))), np.zeros((2, len(rows))), defaultdict(list)
    for i, row in enumerate(rows):
        kinds[row["model"], row["zero_stage"]].append(i)
    for places in kinds.values():
        some = [rows[i] for i in places]
        columns = ("tp", "pp", "dp", "mbs", "grad_acc", "seq_len")
        tp, pp, dp, batch, microbatches, seq = (np.array([number(row, x) for row in some]) for x in columns)
        model, gpu = _shape(some[0], 1), accelerators.h100.at("bf16")
        shape = tuple(int(model[x]) for x in ("layers", "hidden", "ffn", "vocab"))
        stages = [nanotron_stages(*shape, int(ways)) for ways in pp]
        attention = np.interp(model.head_dim, list(FLASH_2), list(FLASH_2.values()))
        run = training_step(
            model,
            gpu,
            **NETWORK,
            **PYTORCH["h100"] | dict(attention_efficiency=attention),
            **unfused(gpu),
            tp=tp,
            pp=pp,
            dp=dp,
            batch=batch,
            microbatches=microbatches,
            seq=seq,
            sharding="zero1" if some[0]["zero_stage"] == "1" else "replicated",
            stage_blocks=np.array([max(s[0] for s in x) for x in stages], float),
            last_blocks=np.array([x[-1][0] for x in stages], float),
        )
        host = HOST_TIME[0] * (tp > 1) + HOST_TIME[1] * tp * (pp > 1) * (tp * pp * dp > 8)
        host += HOST_TIME[2] * np.maximum(0, tp / 8 - 1) * (pp == 1)
        even = np.maximum(run.step_time, host * block_passes(microbatches, pp, model.layers))
        stalled = STALL * (microbatches + pp - 1)
        found[:, places] = even, even + stalled, any_slow(slow_share=SLOW_NODE, ways=tp * pp * dp / 8)
        least[:, places] = useful_seconds(run)
    return *found, least


def _no_nanotron(row):
    if row["status"] != "ok":
        return "that failed, for lack of memory or otherwise"
    if number(row, "pp") > number(row, "layers"):
        return "with more stages than blocks"
    return "" if row["gbs_consistent"] == "True" else "whose batch does not multiply out"


def _nanotron_kind(row):
    nodes = "across nodes" if float(row["tp"]) > 8 else "within a node"
    return f"{'pipeline' if float(row['pp']) > 1 else 'one stage'}, tp {nodes}"


# Megatron Bridge and NeMo

_NAMES = {
    r"LLAMA3.1_405B": "llama3_405b", r"LLAMA3[_-]70B": "llama3_70b", r"LLAMA3[_-]8B": "llama3_8b",
    r"LLAMA2-70B": "llama2_70b",
    r"LLAMA2-13B": "llama2_13b", r"LLAMA2-7B": "llama2_7b", r"DeepSeekV3": "deepseek_v3", r"Kimi_K2": "kimi_k2",
    r"Qwen3_30B": "qwen3_30b_a3b", r"Qwen3_235B": "qwen3_235b_a22b", r"GPT OSS 120B": "gpt_oss_120b",
}  # fmt: skip
# What a block of experts waits for an x86 host, forward and backward: the host learns how many tokens each expert gets
# before it launches the rest.  Recipes for GB200 and GB300 leave the counts on the device, and so do containers since
# this one; where tokens beyond a capacity are dropped the counts are known.
WAIT, NO_WAIT = 5e-3, 26.02
# Experts of GPT OSS have biases and a clamped activation that no kernel fused at first: how often the routed tokens, as
# wide as an expert, pass through memory, forward and backward, each step a kernel of its own.  The newest recipes leave
# a part of it.
EAGER_PASSES, FUSED_PASSES = 100, 45
# The least time that an x86 host takes to launch a block of experts, forward and backward: small micro-batches wait for
# it.  Some recipes with chunks run exchanges of one micro-batch beside the arithmetic of another, block by block in
# turns, which takes the host longer; Qwen's on the H100 and the B300 did so until these releases.
LAUNCH, LAUNCH_IN_TURNS = 9e-3, 16e-3
IN_TURNS_UNTIL = {("DGX-H100", "Qwen3"): (26, 2), ("DGX-B300", "Qwen3"): (26, 2, 1), ("DGX-B200", "DeepS"): (99,)}


def _model(row):
    name = next((name for pattern, name in _NAMES.items() if re.match(pattern, row["model"])), None)
    return models[name] if name else None


def _predicts_more(row):
    """DeepSeek-V3 predicts a second token with one more block, unless a row says that it does not."""
    return "DeepSeekV3" in row["model"] and "w/o" not in row["model"]


def _no_megatron_bridge(row):
    if row["task"] != "pretrain":
        return "of fine-tuning, whose recipe differs (LoRA trains a part, SFT has sequences of many lengths)"
    if _model(row) is None:
        return "of a model that is not in the table, or that mixes state-space layers in"
    if any("(" in row[x] for x in ("fsdp", "tp", "pp", "cp", "vp", "ep")):
        return "with two strategies in one row"
    if -(-(_model(row).layers + _predicts_more(row)) // optional(row, "pp", 1)) % optional(row, "vp", 1):
        return "with unequal chunks of a stage"
    return "" if device(row["system"]) else "on a device that is not in the table"


def sent_share(ways, near, top_k):
    """Of the copies of a token, one for each expert it visits, the share that is sent.

    Dispatchers send a token once to every device, or across nodes once to every node, that has an expert for it.

    >>> float(sent_share(8, 8, 8).round(2)), float(sent_share(32, 8, 8).round(2))
    (0.66, 0.45)
    """
    places = np.where(ways > near, ways / near, ways)
    return places * (1 - (1 - 1 / places) ** top_k) / top_k


def _container(row):
    """Year and month of a container."""
    found = re.match(r"(?:NeMo)?(\d+\.\d+)", row["container"])
    return float(found[1]) if found else 0.0


def _is_fused(row):
    """Recipes since June 2026 for 8- and 4-bit mixtures of experts on GB200 and GB300:
    fused experts, a step in one graph.  Kimi's has micro-batches of one sequence, and the one before had two.
    """
    is_kimi_before = "Kimi" in row["model"] and optional(row, "mbs", 1) > 1
    is_recent = _container(row) >= 26.06 and not is_kimi_before
    return is_recent and "DGX-GB" in row["system"] and row["precision"] in ("MXFP8", "NVFP4")


def _in_turns(row):
    """Whether a recipe for an x86 host runs exchanges of experts beside the arithmetic of another micro-batch."""
    release = tuple(map(int, re.findall(r"\d+", row["container"])))[:3]
    is_chunked = bool(_model(row).experts) and optional(row, "vp", 1) > 1 and optional(row, "pp", 1) > 1
    return is_chunked and release <= IN_TURNS_UNTIL.get((row["system"], row["model"][:5]), ())


def _precision(row):
    return {"BF16": "bf16", "NVFP4": "fp4"}.get(row["precision"], "fp8")


def _bridge_kinds(row):
    """What runs must share to be evaluated at once."""
    sharding = "zero3" if row["fsdp"] not in ("", "0") else "zero1"
    return (
        _model(row),
        device(row["system"]).at(_precision(row)),
        _predicts_more(row),
        sharding,
        _is_fused(row),
        _in_turns(row),
        optional(row, "vp", 1) > 1,
    )


def _bridge_steps(model, gpu, more, sharding, fused, in_turns, _, rows):
    """Runs of one kind, as a row of arrays."""
    columns = ("tp", "pp", "cp", "ep", "vp", "seq_len", "mbs", "n_gpus", "gbs")
    tp, pp, cp, ep, chunks, seq, batch, devices, global_batch = np.array(
        [[optional(row, x, 1) for row in rows] for x in columns]
    )
    letters = {}
    if model.experts:  # where tp > 1, ep takes all devices of a row: no width is split
        hidden = 1 if in_turns else 1 - sent_share(ep, gpu.scaleup_size, model.top_k)
        letters |= dict(etp=1, ep_overlap=hidden)
        letters |= dict(grouped_hidden=1) if fused else dict(stream_efficiency=gpu.stream_efficiency / UNFUSED)
    if more:
        letters |= dict(layers=model.layers + 1, moe_layers=model.moe_layers + 1)
    if model.window_layers:  # of these, a token sees its window alone
        rest = model.layers - model.window_layers
        letters["attended_share"] = (rest / 2 + model.window_layers * model.window / seq) / model.layers
    return training_step(
        model,
        gpu,
        **letters,
        tp=tp,
        pp=pp,
        cp=cp,
        ep=ep,
        chunks=chunks,
        seq=seq,
        batch=batch,
        dp=devices / (tp * pp * cp),
        global_batch=global_batch,
        dp_overlap=1,
        pp_overlap=1,
        tp_overlap=1 - 1 / tp,
        cp_overlap=1 - 1 / cp,
        sharding=sharding,
    )


def _is_dense_fitted(row):
    return row["system"] in ("DGX-H100", "DGX-GB300") and not _model(row).experts


def _is_fitted(row):
    return (
        _is_launched(row)
        or _is_dense_fitted(row)
        or ("GPT OSS" in row["model"] and _is_fused(row) and "GB300" in row["system"])
    )


def _is_launched(row):
    """Whether an x86 host launches experts."""
    return bool(_model(row).experts) and "DGX-GB" not in row["system"]


def _waits(row):
    return _is_launched(row) and _container(row) < NO_WAIT and "tokendrop" not in row["model"]


def _eager_time(row, run):
    """What a block's experts take beside fused kernels."""
    model, gpu = _model(row), device(row["system"])
    if "GPT OSS" not in row["model"]:
        return 0.0
    passes = FUSED_PASSES if _is_fused(row) else EAGER_PASSES
    return eager_experts_time(model, gpu, expert_passes=passes, activation_bits=16, **run)


def _megatron_bridge(rows):
    found, least, kinds = np.zeros(len(rows)), np.zeros((2, len(rows))), defaultdict(list)
    for i, row in enumerate(rows):
        model, gpu, *more = _bridge_kinds(row)
        kinds[model.name, gpu.name, _precision(row), *more].append(i)
    for places in kinds.values():
        some = [rows[i] for i in places]
        run = _bridge_steps(*_bridge_kinds(some[0]), some)
        passes = block_passes(run.microbatches, run.pp, np.array([_model(row).moe_layers for row in some]))
        tokens = [dict(batch=optional(row, "mbs", 1), seq=optional(row, "seq_len", 1)) for row in some]
        more = [_eager_time(row, own) + WAIT * _waits(row) for row, own in zip(some, tokens, strict=True)]
        launched = [(LAUNCH_IN_TURNS if _in_turns(row) else LAUNCH) * _is_launched(row) for row in some]
        found[places] = np.maximum(run.step_time + more * passes, launched * passes)
        least[:, places] = useful_seconds(run)
    return Priced(found, *least)


def _bridge_kind(row):
    kind = "experts" if _model(row).experts else "dense"
    width = {"BF16": "16 bits", "NVFP4": "4 bits"}.get(row["precision"], "8 bits")
    return f"{kind}, {row['system'].removeprefix('DGX-')}, {width}"


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "llm_foundry",
            "training_llm_foundry.csv",
            "Time of a step of MPT under FSDP on 8 to 512 A100 and H100, sequences of 512 to 65,536.",
            _llm_foundry,
            "step_time_s",
            "s",
            ("llm-foundry",),
            _no_llm_foundry,
            lambda row: row["gpu"].replace("_", " ").upper() + (", fp8" if "fp8" in row["precision"] else ""),
            "on rows of an even number, the traffic of unfused steps, the rate of FlashAttention in Triton on A100 and "
            "H100, and the sustained rate of the H100",
            lambda row: is_even(row) and "fp8" not in row["precision"],
        ),
        Confrontation(
            "nanotron",
            "training_nanotron.csv",
            "Time of a step of four Llamas in nanotron, 8 to 512 H100, in the likelier of two modes, with even nodes "
            "or with a slow one; PyTorch as in llm_foundry, the network as measured there.",
            _nanotron,
            "step_time_s",
            "s",
            ("nanotron-ultrascale", "bekman-network"),
            _no_nanotron,
            _nanotron_kind,
            "on the runs of the 3.57B model, the least time of the host, and the time that slow nodes cost and their "
            "share",
            lambda row: row["model"] == "llama-3.57B",
            readings=_nanotron_readings,
        ),
        Confrontation(
            "megatron_bridge",
            "training_megatron_bridge.csv",
            "Time of a step in NVIDIA's own tables, 2024 to 2026; "
            "collectives of tensor and context parallelism overlapped piece "
            "by piece, a token sent once to each place.",
            _megatron_bridge,
            "step_time_s",
            "s",
            ("megatron-bridge",),
            _no_megatron_bridge,
            _bridge_kind,
            "on rows of an even number, the sustained rate of the H100 and the GB300, what the latter's 4-bit products "
            "reach (dense models), what blocks of experts wait for an x86 host and the least time it takes for one, "
            "and what fused experts of GPT OSS on the GB300 leave; unfused experts are as in llm_foundry",
            lambda row: is_even(row) and _is_fitted(row),
        ),
    )
}
