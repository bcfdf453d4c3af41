"""Training steps as published: Megatron's papers, Llama 3, MLPerf training and BLOOM's search for a topology.

Nothing is fitted to them but, on half of BLOOM's rows, what its software takes beside kernels.  What a row does not
state is taken as its authors describe their software, or, where they tuned it, as our own fastest choice that fits;
`what` says which.
"""

from scalebook.search.space import divisors
from scalebook.tables import models

from .confrontation import Confrontation
from .rows import is_even, number, optional
from .runs import (
    DEEPSPEED,
    LIBRARIES_2021,
    MEGATRON_2021,
    MEGATRON_2022,
    OVERLAPPED,
    block_passes,
    device,
    gpt,
    gpt_of,
    of_set,
    peaks,
    rated,
    rerun_flops,
    step,
    timed,
    tuned,
)

__all__ = ["CONFRONTATIONS"]


def _recompute(row):
    return next((word for word in ("full", "selective") if row["recompute"].startswith(word)), "none")


def _korthikanti(row):
    pp, dp, batch = number(row, "pp"), number(row, "dp"), number(row, "mbs")
    return step(
        gpt_of(row),
        device("A100").at("fp16"),
        **MEGATRON_2022,
        recompute=_recompute(row),
        sequence_parallel=row["sp"] == "True",
        tp=number(row, "tp"),
        pp=pp,
        dp=dp,
        batch=batch,
        chunks=optional(row, "vpp", 1),
        global_batch=number(row, "gbs"),
        seq=number(row, "seq_len"),
    )


def _narayanan(row):
    """The micro-batch and the chunks were tuned: our fastest that fits."""
    pp, dp, layers, global_batch = (number(row, x) for x in ("pp", "dp", "layers", "gbs"))
    chunks = [n for n in divisors(layers / pp) if n <= 4] if pp > 1 else [1]
    options = [
        dict(batch=b, chunks=c)
        for b in (1, 2, 4, 8, 16)
        for c in chunks
        if global_batch % (dp * b) == 0 and (c == 1 or global_batch / (dp * b) % pp == 0)
    ]
    gpu = device("A100").at("fp16")
    return tuned(
        gpt_of(row),
        gpu,
        options,
        gpu.hbm_capacity,
        **MEGATRON_2021,
        **LIBRARIES_2021,
        recompute="full",
        sequence_parallel=False,
        tp=number(row, "tp"),
        pp=pp,
        dp=dp,
        global_batch=global_batch,
        seq=number(row, "seq_len"),
    )


def _narayanan_rate(rows):
    """TFLOP/s as the paper counts them: its equation 3, with the forward pass that is run again."""
    found = [rerun_flops(row) / (_narayanan(row).step_time * number(row, "n_gpus")) / 1e12 for row in rows]
    return rated(found, [device("A100").at("fp16").peak_flops / 1e12] * len(rows))


def _llama3_rate(rows):
    """TFLOP/s of the arithmetic that a causal model asks for: half of the query-key pairs."""
    found = []
    for row in rows:
        cp, seq, pp = optional(row, "cp", 1), number(row, "seq_len"), number(row, "pp")
        run = step(
            models.llama3_405b,
            device(row["gpu"]).at("bf16"),
            **OVERLAPPED,
            sharding="zero2",
            tp=number(row, "tp"),
            pp=pp,
            cp=cp,
            dp=number(row, "dp"),
            global_batch=number(row, "gbs"),
            seq=seq,
            chunks=8,
            cp_overlap=0,
        )
        pairs = 12 * run.layers * run.heads * run.head_dim * seq * run.global_batch * seq
        found.append((run.model_flops - pairs / 2) / (run.step_time * run.devices) / 1e12)
    return rated(found, peaks(rows))


def _mlperf(rows):
    found = []
    for row in rows:
        tp, pp, cp = (number(row, x) for x in ("tp", "pp", "cp"))
        gpu = device(row["accelerator"]).at("fp8" if row["fp8"] == "True" else "bf16")
        run = step(
            models.llama3_405b,
            gpu,
            **OVERLAPPED,
            tp=tp,
            pp=pp,
            cp=cp,
            dp=number(row, "n_accel") / (tp * pp * cp),
            batch=number(row, "mbs"),
            chunks=optional(row, "vp", 1),
            global_batch=number(row, "gbs"),
            seq=number(row, "seq_len"),
            tp_overlap=1 - 1 / tp,
            cp_overlap=1 - 1 / cp,
        )
        found.append(run)
    return timed(found)


def _no_mlperf(row):
    if row["benchmark"] != "llama31_405b":
        return "of another benchmark than the pretraining of Llama 3.1 405B"
    if not all(row[x] for x in ("tp", "pp", "cp", "mbs", "step_time_s_median")):
        return "without its strategy or its time"
    return "" if device(row["accelerator"]) else "on a device that is not in the table"


def _bloom(rows):
    """Megatron-DeepSpeed on A100 with four Omni-Path ports of 100 Gb/s for eight devices;
    nothing runs beside anything else.
    """

    def run(row):
        layers, hidden, heads = (number(row, x) for x in ("layers", "hidden", "heads"))
        return step(
            gpt(layers, hidden, heads, number(row, "vocab")),
            device(row["gpu"]).at("bf16"),
            attention="unfused",
            tp_beside=0,
            recompute="full",
            sequence_parallel=False,
            sharding="zero1",
            tp=number(row, "tp"),
            pp=number(row, "pp"),
            dp=number(row, "dp"),
            batch=number(row, "mbs"),
            seq=number(row, "seq_len"),
            scaleout_bandwidth="6.25 GB/s",
            microbatches=max(1, number(row, "gbs") // (number(row, "dp") * number(row, "mbs"))),
        )

    runs = [run(row) for row in rows]
    beside = (DEEPSPEED * block_passes(x.microbatches, x.pp, x.layers) for x in runs)
    return timed(runs, [x.step_time + more for x, more in zip(runs, beside, strict=True)])


def _no_bloom(row):
    if not all(row[x] for x in ("layers", "hidden", "heads")):
        return "whose shape is not printed"
    if not row["step_time_s"]:
        return "without a time: out of memory, or not printed"
    if number(row, "tp") * number(row, "pp") * number(row, "dp") != number(row, "n_gpus"):
        return "whose dimensions do not multiply to its devices"
    return ""


def _size(row):
    return row["model"] + (", full" if row["recompute"].startswith("full") else ", selective")


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "korthikanti_table5",
            "training_papers.csv",
            "Time of a step of Megatron-LM on A100; nothing of the table is fitted, "
            "one constant is to table 4 of the paper.",
            lambda rows: timed(map(_korthikanti, rows)),
            "step_time_s",
            "s",
            ("korthikanti2022",),
            of_set("korthikanti2022_table5", "korthikanti2022_s6.3"),
            _size,
        ),
        Confrontation(
            "narayanan_table1",
            "training_papers.csv",
            "Rate of Megatron-LM on A100; micro-batch and chunks, which the paper tuned, as we find them fastest.",
            _narayanan_rate,
            "tflops_gpu",
            "TFLOP/s",
            ("narayanan2021",),
            of_set("narayanan2021_table1"),
            lambda row: row["model"],
        ),
        Confrontation(
            "llama3",
            "training_papers.csv",
            "Rate of Llama 3 405B on 16,384 H100, eight chunks a stage (two blocks fewer than 128 suggest them).",
            _llama3_rate,
            "tflops_gpu",
            "TFLOP/s",
            ("llama3-2024",),
            of_set("llama3_table4"),
            lambda row: f"sequences of {row['seq_len']}",
        ),
        Confrontation(
            "mlperf_training",
            "training_mlperf.csv",
            "Time of a step of Llama 3.1 405B in MLPerf training 5.0, 8-bit products, "
            "collectives overlapped piece by piece.",
            _mlperf,
            "step_time_s_median",
            "s",
            ("mlperf-training-v5",),
            _no_mlperf,
            lambda row: row["accelerator"],
            optional=(
                "step_time_s_runs",
                "samples_s_median",
                "time_to_train_min_median",
                "n_runs",
                "framework",
                "config_note",
            ),
        ),
        Confrontation(
            "bloom_topology",
            "training_bloom.csv",
            "Time of a step in BLOOM's search for a topology: Megatron-DeepSpeed on A100, everything run again.",
            _bloom,
            "step_time_s",
            "s",
            ("bloom-chronicles",),
            _no_bloom,
            lambda row: f"tp {row['tp']}, micro-batch {row['mbs']}",
            "on rows of an even number, what a block takes beside its kernels",
            is_even,
            ("mem_gb", "row_note", "date", "tflops_gpu"),
        ),
    )
}
