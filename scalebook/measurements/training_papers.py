"""More training steps as published, of which nothing is fitted: MegaScale beside Megatron-LM, and ZeRO 3 beside pipelines."""

from .confrontation import Confrontation, number
from .runs import MEGATRON_2021, MEGATRON_2022, OVERLAPPED, device, gpt, step

__all__ = ["CONFRONTATIONS"]


def _run(row, gpu, **letters):
    shape = (number(row, x) for x in ("layers", "hidden", "heads", "vocab"))
    ways = {x: number(row, x) for x in ("tp", "pp", "dp")}
    return step(gpt(*shape), gpu, **ways, global_batch=number(row, "gbs"), seq=number(row, "seq_len"), **letters)


def _megascale(rows):
    """Megatron-LM as in 2022; MegaScale with its overlaps and FlashAttention, its blocks and windows left aside."""

    def time(row):
        overlaps = OVERLAPPED | dict(tp_overlap=1 - 1 / number(row, "tp"))
        software = overlaps if row["software"] == "MegaScale" else MEGATRON_2022 | dict(recompute="selective")
        return _run(row, device("A100").at("bf16"), **software, chunks=number(row, "vpp")).step_time

    return [time(row) for row in rows]


def _narayanan_days(rows):
    """Days for 300 billion tokens; one chunk a stage, as none is stated; ZeRO 3 gathers beside arithmetic."""

    def days(row):
        zero = dict(attention="unfused", sharding="zero3", dp_overlap=1)
        software = zero if row["zero"].startswith("3") else MEGATRON_2021
        letters = dict(batch=number(row, "mbs"), recompute="full", sequence_parallel=False)
        run = _run(row, device("A100").at("fp16"), **software, **letters)
        return 300e9 / run.train_rate / 86400

    return [days(row) for row in rows]


def _is_set(name):
    return lambda row: "" if row["set"] == name else "of another table of the same file"


CONFRONTATIONS = {c.name: c for c in (
    Confrontation(
        "megascale", "training_megascale.csv",
        "Time of a step of a GPT of 175B on 512 to 12,288 A100, in Megatron-LM (scores kept apart and run again) and MegaScale.",
        _megascale, "step_time_s", "s", ("jiang2024-megascale",), _is_set("megascale_table2"), lambda row: row["software"].split()[0],
    ),
    Confrontation(
        "narayanan_table2", "training_megascale.csv",
        "Days of training with tensor and pipeline parallelism, and with ZeRO 3 alone.",
        _narayanan_days, "days_300B_tokens", "d", ("narayanan2021",), _is_set("narayanan2021_table2"),
        lambda row: "ZeRO 3" if row["zero"].startswith("3") else "tensor and pipeline parallel",
    ),
)}  # fmt: skip
