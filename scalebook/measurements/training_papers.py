"""More training steps as published, MegaScale beside Megatron-LM, and ZeRO 3 beside pipelines; and whole runs."""

from scalebook.training.largest_run import run_flops

from .confrontation import Confrontation, Priced
from .rows import is_even, number
from .runs import (
    LIBRARIES_2021,
    MEGATRON_2021,
    MEGATRON_2022,
    OVERLAPPED,
    device,
    gpt_of,
    of_set,
    rated,
    step,
    timed,
    useful_seconds,
)

__all__ = ["CONFRONTATIONS", "ZERO_3"]

# DeepSpeed's ZeRO 3 as of early 2021: 16-bit gradients, as it documents.  Fitted: what its collectives reach of the
# scale-out network, three quarters of one of a node's eight ports, and the share of them that runs beside arithmetic,
# as if gradients did not (the default of some of its versions, not of all).
ZERO_3 = dict(dp_overlap=2 / 3, reduce_bits=16, far_efficiency=0.09)


def _run(row, gpu, **letters):
    ways = {x: number(row, x) for x in ("tp", "pp", "dp")}
    return step(gpt_of(row), gpu, **ways, global_batch=number(row, "gbs"), seq=number(row, "seq_len"), **letters)


def _megascale(row):
    """Megatron-LM as in 2022; MegaScale with its overlaps and FlashAttention, its blocks and windows left aside."""
    overlaps = OVERLAPPED | dict(tp_overlap=1 - 1 / number(row, "tp"))
    software = overlaps if row["software"] == "MegaScale" else MEGATRON_2022 | dict(recompute="selective")
    return _run(row, device("A100").at("bf16"), **software, **LIBRARIES_2021, chunks=number(row, "vpp"))


def _narayanan_days(rows):
    """Days for 300 billion tokens; one chunk a stage, as none is stated."""

    def days(row):
        zero = dict(attention="unfused", sharding="zero3") | ZERO_3
        software = zero if _is_zero_3(row) else MEGATRON_2021 | LIBRARIES_2021
        letters = dict(batch=number(row, "mbs"), recompute="full", sequence_parallel=False)
        run = _run(row, device("A100").at("fp16"), **software, **letters)
        steps = 300e9 / (run.train_rate * run.step_time)
        return [300e9 / run.train_rate / 86400, *(steps * time / 86400 for time in useful_seconds(run))]

    return Priced(*zip(*map(days, rows), strict=True))


def _run_flops(row):
    return run_flops(active_params=1e9 * number(row, "params_b"), train_tokens=1e9 * number(row, "tokens_b"))


def _is_zero_3(row):
    return row["zero"].startswith("3")


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "megascale",
            "training_megascale.csv",
            "Time of a step of a GPT of 175B on 512 to 12,288 A100, "
            "in Megatron-LM (scores kept apart and run again) and MegaScale.",
            lambda rows: timed(map(_megascale, rows)),
            "step_time_s",
            "s",
            ("jiang2024-megascale",),
            of_set("megascale_table2"),
            lambda row: row["software"].split()[0],
            optional=("mfu_pct",),
        ),
        Confrontation(
            "megascale_530b",
            "training_megascale.csv",
            "MFU of a GPT of 530B on 2,240 A100 and more, in Megatron-LM and MegaScale; "
            "all query-key pairs are counted.",
            lambda rows: rated([100 * _megascale(row).mfu for row in rows], [100] * len(rows)),
            "mfu_pct",
            "%",
            ("jiang2024-megascale",),
            of_set("megascale_fig9"),
            lambda row: row["software"].split()[0],
        ),
        Confrontation(
            "narayanan_table2",
            "training_megascale.csv",
            "Days of training with tensor and pipeline parallelism, and with ZeRO 3 alone.",
            _narayanan_days,
            "days_300B_tokens",
            "d",
            ("narayanan2021",),
            of_set("narayanan2021_table2"),
            lambda row: "ZeRO 3" if _is_zero_3(row) else "tensor and pipeline parallel",
            "on rows of ZeRO 3 of an even number, what its collectives reach of the scale-out network and how many of "
            "them run beside arithmetic (the other two were seen when the form was chosen)",
            lambda row: _is_zero_3(row) and is_even(row),
        ),
        Confrontation(
            "training_runs",
            "training_runs.csv",
            "Arithmetic of whole training runs, as their papers print it.",
            lambda rows: [_run_flops(row) for row in rows],
            "train_flop",
            "FLOP",
            ("brown2020", "hoffmann2022", "llama3-2024", "deepseek2024-v3"),
            lambda row: "" if row["train_flop"] else "whose paper prints none",
            lambda row: row["model"],
            optional=("batch_tokens_m", "source"),
        ),
    )
}
