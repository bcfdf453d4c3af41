"""Megatron-LM from 2019 to 2024 beyond the papers' main tables; nothing is fitted to it.

What a row does not state is taken as its authors describe their software, or, where they tuned it, as our own fastest
choice that fits.
"""

from scalebook.search.space import divisors

from .confrontation import Confrontation
from .rows import number, optional
from .runs import (
    DEEPSPEED,
    LIBRARIES_2021,
    MEGATRON_2021,
    OVERLAPPED,
    block_passes,
    device,
    flash_2,
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

# A DGX-2H: sixteen V100 behind one switch, eight ports of 100 Gb/s.
_DGX2 = dict(scaleup_size=16, scaleout_bandwidth="6.25 GB/s")
# Columns that only other tables of the file use.
_OTHERS = ("tflops_gpu", "mfu_pct", "step_time_s", "scaling_eff_pct", "speedup_vs_1", "recompute", "precision")


# Megatron Core

# TransformerEngine sends a reduce-scatter in so many pieces, each beside the next piece of its product.
_PIECES = 4
# Megatron's cross entropy unfused, the default of that release: bytes a logit beside one fp32 read forward and a read
# and a write back.  It copies logits to fp32, takes the maximum, subtracts, exponentiates, sums and divides, each a
# kernel of its own, scales going back and returns to 16 bits.
_LOSS_BYTES = 40


def _bf16_overlap(tp, pp):
    """The share of tensor-parallel collectives that TransformerEngine hid on the H100 in bf16 in 2024.

    Of six that blocks wait for, two are reduce-scatters and four all-gathers.  These go round the ring beside pieces of
    their products, one for each device; in pipelines NVIDIA's launcher switched that off, for a bug.
    """
    gathered = 1 - 1 / tp if pp == 1 else 0
    return (2 * (1 - 1 / _PIECES) + 4 * gathered) / 6 if tp > 1 else 0


def _core_seconds(row, run):
    """A step with the loss as Megatron computes it, on the last stage for every micro-batch."""
    logits = run.microbatches * run.batch * run.seq * number(row, "vocab") / run.tp
    return run.step_time + logits * _LOSS_BYTES / (run.hbm_bandwidth * run.stream_efficiency)


def _core_run(row, pps, tp=8.0):
    """Micro-batch, chunks and recomputation, which its README does not print, tuned; what overlaps as said above."""
    devices, layers, global_batch = (number(row, x) for x in ("n_gpus", "layers", "gbs"))
    options = [
        dict(pp=pp, dp=devices / (tp * pp), batch=b, chunks=c, recompute=recompute, tp_overlap=_bf16_overlap(tp, pp))
        for pp in pps
        for b in (1, 2, 4)
        for c in (divisors(layers / pp) if pp > 1 else [1])
        if c <= 16
        for recompute in ("none", "full")
        if global_batch * tp * pp / (devices * b) % (pp if c > 1 else 1) == 0
    ]
    gpu = device(row["gpu"]).at("bf16")
    known = OVERLAPPED | dict(tp=tp, global_batch=global_batch, seq=number(row, "seq_len"))
    known |= flash_2(known["seq"])
    return tuned(gpt_of(row), gpu, options, gpu.hbm_capacity, **known)


def _core_rate(row, pps, *tp):
    """FLOP/s of a device."""
    run = _core_run(row, pps, *tp)
    return run.model_flops / (_core_seconds(row, run) * run.devices)


def _core_weak(rows):
    """TFLOP/s of the model's arithmetic, all query-key pairs counted, as Megatron-LM logs them."""
    return rated([_core_rate(row, [number(row, "pp")], number(row, "tp")) / 1e12 for row in rows], peaks(rows))


def _core_strong(rows):
    """MFU; the ways, which are not printed, are as in weak scaling: eight tensor-parallel, and six or twelve stages."""
    rates = [_core_rate(row, [6.0, 12.0]) / 1e12 for row in rows]
    return rated([100 * rate / peak for rate, peak in zip(rates, peaks(rows), strict=True)], [100] * len(rows))


# Earlier


def _as_of_2021(row, gpu, **letters):
    ways = {x: optional(row, x, 1) for x in ("tp", "pp", "dp")}
    known = MEGATRON_2021 | dict(recompute="full", sequence_parallel=False, seq=number(row, "seq_len"))
    return gpt_of(row), gpu, known | ways | dict(global_batch=number(row, "gbs")) | letters


def _readme_2021(rows):
    """TFLOP/s with the forward pass that is run again; the micro-batch is ours, a stage is one chunk."""
    found = []
    for row in rows:
        model, gpu, known = _as_of_2021(row, device(row["gpu"]).at("fp16"))
        options = [dict(batch=b) for b in (1, 2, 4, 8, 16) if known["global_batch"] % (known["dp"] * b) == 0]
        run = tuned(model, gpu, options, gpu.hbm_capacity, **known, **LIBRARIES_2021)
        found.append(rerun_flops(row) / (run.step_time * run.devices) / 1e12)
    return rated(found, peaks(rows, precision="fp16"))


def _older(row):
    """On V100 in DGX-2 and on the A100 of 40 GB; gradients are kept and summed in 16 bits."""
    letters = _DGX2 if "DGX-2" in row["gpu"] else dict(hbm_bandwidth="1555 GB/s")
    model, gpu, known = _as_of_2021(
        row, device(row["gpu"]).at("fp16"), batch=number(row, "mbs"), gradient_bits=16, **letters
    )
    return step(model, gpu, **known)


def _mtnlg(row):
    """Megatron-DeepSpeed, as in BLOOM's search for a topology."""
    model, gpu, known = _as_of_2021(row, device(row["gpu"]).at("bf16"), batch=number(row, "mbs"))
    run = step(model, gpu, **known)
    return run, run.step_time + DEEPSPEED * block_passes(run.microbatches, run.pp, run.layers)


def _rate(row):
    return rerun_flops(row) / (_older(row).step_time * number(row, "n_gpus"))


def _alone(row):
    """The model of 1.2 billion parameters on one device, which the others are held against."""
    return row | dict(layers="40", hidden="1536", heads="16", n_gpus="1", tp="1", dp="1", gbs=row["mbs"])


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "megatron_core",
            "training_megatron.csv",
            "Rate of Megatron Core on 48 to 6,144 H100, its overlaps as they were in bf16; "
            "micro-batch, chunks and recomputation as we find them fastest.",
            _core_weak,
            "tflops_gpu",
            "TFLOP/s",
            ("megatron-tables", "nemo-launcher"),
            of_set("megatron_core_r0.8_h100_weak"),
            lambda row: row["model"],
            optional=_OTHERS,
        ),
        Confrontation(
            "megatron_core_strong",
            "training_megatron.csv",
            "MFU of a GPT of 177B in Megatron Core, the same batch on 96 and on 4,608 H100.",
            _core_strong,
            "mfu_pct",
            "%",
            ("megatron-tables", "nemo-launcher"),
            of_set("megatron_core_r0.8_h100_strong"),
            lambda row: f"{row['n_gpus']} devices",
            optional=_OTHERS,
        ),
        Confrontation(
            "megatron_readme",
            "training_megatron.csv",
            "Rate of Megatron-LM in January 2021 on 32 to 3,072 A100, without chunks; "
            "the micro-batch as we find it fastest.",
            _readme_2021,
            "tflops_gpu",
            "TFLOP/s",
            ("megatron-tables",),
            of_set("megatron_readme_jan2021"),
            lambda row: "pipeline" if number(row, "pp") > 1 else "one stage",
            optional=_OTHERS,
        ),
        Confrontation(
            "megatron_2020",
            "training_megatron.csv",
            "Time of a step of Megatron-LM in 2020 on V100 of a DGX-2 and on A100 of 40 GB.",
            lambda rows: timed(map(_older, rows)),
            "step_time_s",
            "s",
            ("megatron-tables",),
            of_set("megatron_readme_2020_tex"),
            lambda row: row["gpu"].split("-")[0],
            optional=_OTHERS,
        ),
        Confrontation(
            "mtnlg",
            "training_megatron.csv",
            "Time of a step of the Megatron-Turing NLG of 530B on 2,240 A100 and more; a block takes as much beside "
            "its kernels as in bloom_topology, whose software it shares.",
            lambda rows: timed(*zip(*map(_mtnlg, rows), strict=True)),
            "step_time_s",
            "s",
            ("smith2022",),
            of_set("mtnlg"),
            lambda row: f"{row['n_gpus']} devices",
            optional=_OTHERS,
        ),
        Confrontation(
            "shoeybi_weak",
            "training_megatron.csv",
            "Weak scaling of tensor and data parallelism on V100: the rate of a device over that of one alone.",
            lambda rows: [100 * _rate(row) / _rate(_alone(row)) for row in rows],
            "scaling_eff_pct",
            "%",
            ("shoeybi2019",),
            of_set("shoeybi2019_fig5"),
            lambda row: f"tp {row['tp']}",
            optional=_OTHERS,
        ),
        Confrontation(
            "shoeybi_strong",
            "training_megatron.csv",
            "Strong scaling of tensor parallelism on V100: one model of 1.2B on one device to eight.",
            lambda rows: [_older(_alone(row)).step_time / _older(row).step_time for row in rows],
            "speedup_vs_1",
            "times",
            ("shoeybi2019",),
            of_set("shoeybi2019_table8"),
            lambda row: f"tp {row['tp']}",
            optional=_OTHERS,
        ),
    )
}
