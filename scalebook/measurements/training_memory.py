"""The memory of training as published: Korthikanti's figures, Megatron-LM's own tests, and nanotron's sweep.

What is confronted is the training step's memory, and nothing summed beside it (`scalebook.training.memory_sheet`).
Megatron's tests record what is allocated between steps and at the peak, on the last pipeline stage;
nanotron's sweep the peak, on up to 512 H100, and which runs failed.
"""

from functools import cache

import numpy as np

from scalebook import pipeline
from scalebook.block import GPT, LLAMA, parse
from scalebook.memory import replicated, zero1
from scalebook.tables import accelerators
from scalebook.training import memory_sheet
from scalebook.training.memory import dummy_gradients_kept

from .confrontation import Confrontation, Readings
from .rows import number, optional

__all__ = [
    "CALCULON",
    "CONFRONTATIONS",
    "COPIES",
    "DETERMINISTIC",
    "WORKSPACE",
    "calculon",
    "nanotron_verdict",
]

GIB = 2**30
MIXED = dict(weight_bits=16, gradient_bits=32, optimizer_bits=96)  # Megatron's 18 bytes, with bf16 or fp16 weights

# Korthikanti et al.: a GPT block with dropout, 16 bits, as many values as queries, four times as wide inside.

KEPT = {
    "baseline(TP only)": dict(sequence_parallel=False), "SP": {},
    "selective": dict(recompute="selective", sequence_parallel=False), "SP+selective": dict(recompute="selective"),
    "full recompute": dict(recompute="full", sequence_parallel=False),
}  # fmt: skip

# What Calculon (isaev2023, at caa4b11) gives for the same rows, from its shipped validation runs: bytes of weights,
# gradients and optimizer state; bytes of activations and checkpoints.  Of each model and mode in its order of KEPT.
CALCULON = {
    "GPT-22B": (43618713600, (63820529664, 42706403328, 27548188672, 11165237248, 6358564864)),
    "GPT-175B": (43949064192, (71873593344, 44581257216, 34728837120, 13627293696, 6920601600)),
    "GPT-530B": (31461376000, (122599505920, 71607255040, 64718110720, 25302138880, 12708741120)),
    "GPT-1T": (33426841600, (141138329600, 82444288000, 74553753600, 29176627200, 14732492800)),
}


def _gpt(row):
    heads, hidden = number(row, "heads"), number(row, "hidden")
    return dict(
        hidden=hidden,
        ffn=4 * hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden / heads,
        batch=number(row, "mbs"),
        seq=number(row, "seq_len"),
        activation_bits=16,
        mask_bits=8,
        tp=number(row, "tp"),
    )


def _stage(block, letters, *others, attention="unfused", **words):
    """What a stage holds; of chunks it is interleaved, and without them a pipeline is plain 1F1B."""
    schedule = "interleaved" if letters.get("chunks", 1) > 1 else "1f1b"
    sheet = memory_sheet(block, schedule=schedule, attention=attention, **words)
    sheet = sheet.using(*others) if others else sheet
    return sheet(**{x: value for x, value in letters.items() if x in sheet.letters})


def _first_stage(row, mode):
    """All micro-batches in flight; there are always enough of them."""
    shape = dict(layers=number(row, "layers"), pp=number(row, "pp"), chunks=number(row, "vpp"))
    return _stage(GPT, _gpt(row) | shape | dict(cp=1, stage=1, microbatches=1e6), **KEPT[mode])


def _activations(row, mode):
    return _first_stage(row, mode).activation_memory


def _korthikanti_state(rows):
    """GiB of the blocks alone, without embeddings: the figure's digits are theirs."""

    def state(row):
        held = _first_stage(row, "SP")
        return held.block_params * held.stage_blocks * replicated(**MIXED) / 8

    return np.array([state(row) for row in rows]) / GIB


def _korthikanti_memory(rows):
    return np.array([_activations(row, row["mode"]) for row in rows]) / GIB


def _korthikanti_share(rows):
    shares = [_activations(row, row["mode"]) / _activations(row, "baseline(TP only)") for row in rows]
    return 100 * np.array(shares)


def _lacks(column):
    def left_out(row):
        if row["mode"] not in KEPT:
            return "of a way to recompute that is not described here"
        return "" if row[column] else "whose figure does not give it"

    return left_out


def calculon(name: str) -> np.ndarray:
    """Calculon's relative errors on the rows of the package's file that `name` confronts."""
    result = CONFRONTATIONS[name]()
    found = []
    for row in result.rows:
        state, kept = CALCULON[row["model"]]
        bytes_kept = kept[list(KEPT).index(row["mode"])]
        values = dict(korthikanti_state=state / GIB, korthikanti_memory=bytes_kept / GIB)
        found.append(values.get(name, 100 * bytes_kept / kept[0]))
    return np.array(found) / result.measured - 1


# Megatron-LM

# What its runs hold beyond the model, in bytes: libraries' work space and buffers.  Medians over the runs without
# tensor and pipeline parallelism; a test takes them again.
WORKSPACE = {"A100": 70.1e6, "H100": 99.5e6, "GB200": 99.0e6}
# Bytes for each parameter of the vocabulary's matrix that runs with Megatron's own layers hold besides; fitted on those
# without tensor parallelism, the cause not known.
LOCAL = 3
# Of the work space what deterministic runs have more, not on the H100: cuBLAS and cuBLASLt get 32 MiB each by
# CUBLAS_WORKSPACE_CONFIG=:4096:8, as they do on the H100 anyway, in place of :4096:2:16:8, PyTorch's usual.
DETERMINISTIC = 2 * (8 * 4096 - 2 * 4096 - 8 * 16) * 1024
PRECISIONS = {  # its README: 18, 20 and 16 bytes a parameter
    "bf16": MIXED, "fp16": dict(weight_bits=16, gradient_bits=16, optimizer_bits=128),
    "fp32": dict(weight_bits=32, gradient_bits=32, optimizer_bits=64),
}  # fmt: skip


def _no_golden(row):
    if row["family"] != "gpt" or row["num_experts"]:
        return "of a model that is not a dense GPT"
    if not all(row[x] for x in ("layers", "hidden", "heads", "seq_len", "mbs", "gbs", "mem_alloc_bytes_steady")):
        return "whose shape, batch or memory is not stated"
    if row["fsdp"] or row["fp8"] or row["optimizer"] != "adam":
        return "with fully sharded, 8-bit or other than Adam's state"
    if any(x in row["test"] for x in ("account_for_embedding", "uneven", "distill", "grpo")):
        return "with uneven stages or more than one model"
    if "multi_dist_optimizer" in row["test"]:
        return "with the optimizer sharded over a part of the devices that is not stated"
    if not (row["vocab"] or row["vocab_file"].endswith("bpe/vocab.json")):
        return "whose vocabulary is not stated"
    if row["dist_opt"] == "True" and not row["n_gpus"]:
        return "with a sharded optimizer on an unstated number of devices"
    return "" if row["gpu"] in WORKSPACE else "on an unstated GPU"


def _no_peak(row):
    if reason := _no_golden(row):
        return reason
    if row["attn"] not in ("unfused", "flash") and row["transformer_impl"] != "local":
        return "whose attention kernel is not stated"
    if row["attn"] != "flash" and row["cp"] != "1":
        return "with unfused attention under context parallelism"
    if row["recompute_granularity"] or row["swiglu"] == "True":
        return "with recomputation or a gated block under dropout"
    return "" if row["mem_max_alloc_bytes"] else "without a peak in the file"


def golden_letters(row) -> dict[str, float]:
    """The letters of a row of megatron_memory.csv, for the last stage."""
    tp, pp = number(row, "tp"), number(row, "pp")
    padded = optional(row, "make_vocab_div", 128) * tp  # Megatron pads the vocabulary
    per_chunk = optional(row, "vpp", number(row, "layers") / pp)
    devices = optional(row, "n_gpus", tp * pp)
    cp = number(row, "cp")
    dp = devices / (tp * pp * cp)
    letters = _gpt(row) | dict(
        kv_heads=optional(row, "kv_heads", number(row, "heads")),
        ffn=optional(row, "ffn", 4 * number(row, "hidden")),
        layers=number(row, "layers"),
        pp=pp,
        stage=pp,
        vocab=np.ceil(optional(row, "vocab", 50257) / padded) * padded,
        embeddings=1 if row["tie_embed"] == "True" else 2,
        chunks=number(row, "layers") / pp / per_chunk,
        microbatches=max(1, number(row, "gbs") / (dp * number(row, "mbs"))),
        shards=dp * cp if row["dist_opt"] == "True" else 1,
        logit_bits=48,
        fp32_bits=32,
        cp=cp,
        ep=1,
    )
    return letters | PRECISIONS[row["precision"]]


def _last_stage(row):
    words = dict(sequence_parallel=row["sp"] == "True", attention="flash" if row["attn"] == "flash" else "unfused")
    others = [dummy_gradients_kept] if row["transformer_impl"] == "transformer_engine" else []
    return _stage(LLAMA if row["swiglu"] == "True" else GPT, golden_letters(row) | dict(experts=1), *others, **words)


def static_bytes(row) -> float:
    """What a run of megatron_memory.csv holds between steps, work space aside."""
    held, x = _last_stage(row), golden_letters(row)
    positions = 0  # learned ones, with the embedding
    if x["pp"] == 1 and not row["pos"]:
        positions = x["seq"] * x["hidden"] * zero1(**PRECISIONS[row["precision"]], dp=x["shards"]) / 8
    return held.weight_memory + held.gradient_memory + held.optimizer_memory + positions


def peak_bytes(row) -> float:
    """What is added at the peak: what the last stage keeps of its micro-batches in flight, and the logits."""
    held = _last_stage(row)
    return held.activation_memory + held.logits_memory


def _workspace(row):
    lacks = row["deterministic"] == "False" and row["gpu"] != "H100"
    x = golden_letters(row)
    own = LOCAL * x["vocab"] * x["hidden"] / x["tp"] if row["transformer_impl"] == "local" else 0
    return WORKSPACE[row["gpu"]] - DETERMINISTIC * lacks + own


def _golden(rows):
    return np.array([static_bytes(row) + _workspace(row) for row in rows])


def _golden_peak(rows):
    return np.array([static_bytes(row) + _workspace(row) + peak_bytes(row) for row in rows])


def _ways(row):
    return f"{row['gpu']}, ZeRO-1" if row["dist_opt"] == "True" else row["gpu"]


# nanotron

# Its gate is opened and multiplied in two steps (GLUActivation), of which what lies between is kept too.
NANOTRON_BLOCK = parse(
    str(LLAMA).replace(
        "active[batch seq ffn] = swiglu(up[batch seq ffn], gate[batch seq ffn])",
        "open[batch seq ffn] = gelu(gate[batch seq ffn])\n"
        "active[batch seq ffn] = gate(up[batch seq ffn], open[batch seq ffn])",
    )
)
# Tensors as wide as the block that a token keeps over those of that listing: copies in another layout.  Fitted on
# runs of the 3.57B model without tensor parallelism, by least squares of predicted/measured - 1; a test does it again.
COPIES = 4.0
NANOTRON = dict(weight_bits=16, gradient_bits=48, optimizer_bits=96)  # gradients in bf16, and summed in fp32
LOGIT_BITS = 96  # three copies in fp32: logits, logits less their maximum, exponentials


@cache
def nanotron_stages(layers: int, hidden: int, ffn: int, vocab: int, pp: int) -> tuple[tuple[int, bool, bool], ...]:
    """How nanotron deals its blocks out: layers, whether with the embedding and with the head, for each stage.

    A stage is full once its share of the arithmetic is exceeded; the head counts as its matrix does.

    >>> nanotron_stages(16, 2048, 8192, 131072, 4)
    ((6, True, False), (5, False, False), (5, False, False), (0, False, True))
    """
    block, head = 4 * hidden**2 + 3 * hidden * ffn, vocab * hidden
    total, done, stage = layers * block + head, 0, 0
    found = [[0, i == 0, False] for i in range(pp)]
    for _ in range(layers):
        found[stage][0] += 1
        done += block
        stage += done * pp > total * (stage + 1)
    found[min(stage, pp - 1)][2] = True
    return tuple(map(tuple, found))


def nanotron_peak(rows, copies: float = COPIES, gathered: float = 0, first: bool = False) -> np.ndarray:
    """Bytes on the fullest stage of each run, or on the first.

    `gathered` is the share of what tensor parallelism gathers for a block's two first products that is kept for the
    backward pass instead of gathered again: none as its `tp_recompute_allgather` is, all in its first versions.
    """
    columns = (
        "layers",
        "hidden",
        "heads",
        "kv_heads",
        "ffn",
        "vocab",
        "tp",
        "pp",
        "dp",
        "zero_stage",
        "mbs",
        "grad_acc",
        "seq_len",
    )
    given = [{c: int(float(row[c])) for c in columns} for row in rows]
    stages = [nanotron_stages(*(g[c] for c in ("layers", "hidden", "ffn", "vocab", "pp"))) for g in given]
    stages = [x[: 1 + [last for *_, last in x].index(True)] for x in stages]  # behind the head nothing is held
    which = np.repeat(np.arange(len(rows)), [len(s) for s in stages])
    of = {c: np.array([g[c] for g in given], float)[which] for c in columns}
    stage = np.concatenate([np.arange(1, len(s) + 1) for s in stages])
    layers = np.array([n for x in stages for n, *_ in x], float)
    tied = np.array([row["tied_embed"] == "True" for row in rows])[which]
    shape = {x: of[x] for x in ("hidden", "heads", "kv_heads", "ffn", "vocab", "tp")}
    held = memory_sheet(NANOTRON_BLOCK)(
        **shape, **NANOTRON,
        head_dim=of["hidden"] / of["heads"], batch=of["mbs"], seq=of["seq_len"], cp=1, ep=1, stage=stage,
        pp=np.array([len(x) for x in stages])[which],  # the last that holds anything
        stage_blocks=np.maximum(layers, 1), last_blocks=layers,  # the last may have none
        embeddings=np.where(tied, 1, 2),
        held_microbatches=pipeline.held_1f1b(microbatches=of["grad_acc"], pp=of["pp"], stage=stage),
        shards=np.where(of["zero_stage"] > 0, of["dp"], 1), activation_bits=16, fp32_bits=32, logit_bits=LOGIT_BITS,
    )  # fmt: skip
    tensor = of["mbs"] * of["seq_len"] * of["hidden"] * held.activation_bits / 8
    again = (copies + 2 * gathered * (of["tp"] - 1)) * tensor / of["tp"] / held.saved_activations
    at_work = np.where(of["tp"] > 1, 2 * tensor, 0)  # one that is gathered, and its gradient
    peak = held.train_memory + again * held.activation_memory + at_work
    if first:
        return peak[stage == 1]
    fullest = np.zeros(len(rows))
    np.maximum.at(fullest, which, peak)
    return fullest


def _nanotron(rows):
    return nanotron_peak(rows, first=True) / GIB


def _nanotron_readings(rows):
    """Of what a block's two first products gather none, one or both are kept: rows do not say which."""
    predicted = np.array([nanotron_peak(rows, gathered=x, first=True) / GIB for x in (0, 0.5, 1)])
    return Readings(predicted, np.full(predicted.shape, 1 / 3))


def _no_nanotron(row):
    if row["status"] != "ok":
        return "that failed, for lack of memory or otherwise"
    return "" if row["gbs_consistent"] == "True" else "whose batch does not multiply out"


def nanotron_verdict(rows, room: float = accelerators.h100.hbm_capacity) -> dict[str, tuple[int, int]]:
    """Of the runs that succeeded and of those that failed, how many are predicted to fit an H100, and how many there
    are.  A run may fail for other reasons than memory.  `room` is in bytes:
    80 GB as the tables have it, if not said."""
    fits = nanotron_peak(rows) <= room
    ok, failed = (np.array([row["status"] == x for row in rows]) for x in ("ok", "failed_oom_or_crash"))
    return {"ran": (int(fits[ok].sum()), int(ok.sum())), "failed": (int(fits[failed].sum()), int(failed.sum()))}


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "korthikanti_state",
            "korthikanti_memory.csv",
            "Parameters and optimizer state on one GPU, first stage.",
            _korthikanti_state,
            "param_opt_gib",
            "GiB",
            ("korthikanti2022",),
            _lacks("param_opt_gib"),
            lambda row: row["model"],
        ),
        Confrontation(
            "korthikanti_memory",
            "korthikanti_memory.csv",
            "Activations on one GPU of the first stage.",
            _korthikanti_memory,
            "act_gib",
            "GiB",
            ("korthikanti2022",),
            _lacks("act_gib"),
            lambda row: row["mode"],
        ),
        Confrontation(
            "korthikanti_share",
            "korthikanti_memory.csv",
            "Activations as a share of those of tensor parallelism alone.",
            _korthikanti_share,
            "act_pct_of_tp_baseline",
            "%",
            ("korthikanti2022",),
            _lacks("act_pct_of_tp_baseline"),
            lambda row: row["mode"],
        ),
        Confrontation(
            "megatron_memory",
            "megatron_memory.csv",
            "Memory allocated between steps in Megatron-LM's tests, last stage.",
            _golden,
            "mem_alloc_bytes_steady",
            "B",
            ("megatron-golden",),
            _no_golden,
            _ways,
            "one work space per kind of GPU, on the runs without tensor and pipeline parallelism",
            lambda row: row["tp"] == row["pp"] == "1",
        ),
        Confrontation(
            "megatron_peak",
            "megatron_memory.csv",
            "Peak memory in Megatron-LM's tests: the same, activations and logits.",
            _golden_peak,
            "mem_max_alloc_bytes",
            "B",
            ("megatron-golden",),
            _no_peak,
            _ways,
            "the work spaces of megatron_memory",
            lambda row: row["tp"] == row["pp"] == "1",
        ),
        Confrontation(
            "nanotron_memory",
            "nanotron_memory.csv",
            "Peak memory on the first stage, whose first process writes it down, 8 to 512 H100, four Llamas.",
            _nanotron,
            "gpu_mem_gb",
            "GiB",
            ("nanotron-ultrascale",),
            _no_nanotron,
            lambda row: row["model"],
            "how many copies a block keeps, on the runs of the 3.57B model without tensor parallelism",
            lambda row: row["model"] == "llama-3.57B" and row["tp"] == "1",
            readings=_nanotron_readings,
        ),
    )
}
