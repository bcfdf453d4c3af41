"""Matrix products and streams: bounds that hold whatever the sizes, and what the calibration rests on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import scalebook.block.models as blocks
from scalebook import accelerators, confront, models, training_step
from scalebook.block.backward import backward
from scalebook.machine import kernels
from scalebook.machine.datasheet import best_found
from scalebook.machine.kernels import matmul_time, matmul_time_ideal, matrix_product, tiles, typical_matmul_efficiency
from scalebook.machine.operators import cycled_operator, linear_operator
from scalebook.machine.tiles import aligned_share

from .every import every
from .refits import fitted_rows, off, predicted_with
from .support import H100, cases

LISTINGS = ["GPT", "LLAMA", "MOE", "MLA", "MLA_MOE", "MLA_ABSORBED", "HEAD"]
SIZES = st.integers(1, 40_000)
BITS = dict(activation_bits=16, weight_bits=16)


def run(device=H100, **sizes):
    return matrix_product(device, **dict(rows=4096, columns=4096, inner=4096, copies=1) | BITS | sizes)


# Contractions as matrix products


@pytest.mark.parametrize("name", LISTINGS)
def test_products_do_the_arithmetic_of_their_line_and_write_its_result(name):
    forward = getattr(blocks, name)
    ops = [*forward.ops, *backward(forward).ops]
    found = [op for op in ops if op.products]
    assert {op.name for op in found} == {op.name for op in ops if op.flops != 0}
    for op in found:
        assert (sum(2 * p.rows * p.columns * p.inner * p.copies for p in op.products) - op.flops).expand() == 0
        p = op.products[0]
        assert p.rows * p.columns * p.copies == op.outs[0].elements
        assert all(q[:2] == p[:2] and q.copies == p.copies for q in op.products)


# The formulas


@given(SIZES, SIZES, SIZES, st.integers(1, 64), st.sampled_from(["a100", "h100", "b200", "mi300x", "tpu_v5p"]))
def test_a_product_never_beats_the_roofline(rows, columns, inner, copies, name):
    device = accelerators[name]
    row = run(device, rows=rows, columns=columns, inner=inner, copies=copies)
    least = matmul_time_ideal(device, rows=rows, columns=columns, inner=inner, copies=copies, traffic=row.traffic)
    assert row.matmul_time >= least * (1 - 1e-12)
    assert 0 < row.matmul_share <= row.get("matmul_efficiency")


@given(SIZES, SIZES, SIZES, st.sampled_from(["rows", "columns", "inner", "copies"]))
def test_a_larger_product_never_takes_less(rows, columns, inner, grown):
    smaller = dict(rows=rows, columns=columns, inner=inner, copies=1)
    larger = smaller | {grown: smaller[grown] + 1}
    assert run(**larger).matmul_time >= run(**smaller).matmul_time * (1 - 1e-12)


@given(SIZES, SIZES, st.integers(1, 64), st.integers(1, 512), st.integers(1, 512))
def test_tiles_and_waves_are_counted_one_by_one(rows, columns, copies, high, wide):
    found = tiles(rows=rows, columns=columns, copies=copies, tile_rows=high, tile_columns=wide)
    assert found == copies * len(range(0, rows, high)) * len(range(0, columns, wide))
    assert kernels.waves(tiles=found, cores=132) == -(-found // 132)


def test_ideal_is_the_limit_without_losses_away_from_the_ridge():
    shape = dict(rows=640, columns=1280, inner=999, copies=3, peak_flops=1e15)
    shape["traffic"] = kernels.product_traffic(shape, **BITS)
    lossless = dict(
        tile_rows=1, tile_columns=1, cores=1, matmul_efficiency=1, inner_half=1e-9, stream_efficiency=1, kernel_launch=0
    )
    for bandwidth in (2e9, 2e15):
        known = shape | {"hbm_bandwidth": bandwidth}
        assert matmul_time(known, **lossless) == pytest.approx(matmul_time_ideal(known), rel=1e-6)
    stream = dict(traffic=1e9, hbm_bandwidth=2e12)
    assert kernels.stream_time(stream, stream_efficiency=1, kernel_launch=0) == 1e9 / 2e12


@given(st.floats(1e9, 1e16))
def test_arithmetic_and_traffic_hide_one_another_in_part(bandwidth):
    """More than either, less than both; most of all at the ridge, where they take as long."""
    known = dict(
        rows=640, columns=1280, inner=1280, copies=1, tile_rows=64, tile_columns=64, cores=100, peak_flops=1e15,
        matmul_efficiency=0.8, inner_half=100, traffic=1e9, hbm_bandwidth=bandwidth, stream_efficiency=0.8,
    )  # fmt: skip
    arithmetic = matmul_time(known | {"traffic": 1e-9}, kernel_launch=0)
    streamed = kernels.stream_time(known, kernel_launch=0)
    for kernel, split in ((matmul_time, {}), (kernels.matmul_time_split, {"split_time": 3e-6, "split_step": 5e-8})):
        found = kernel(known, kernel_launch=0, **split)
        assert max(arithmetic, streamed) * (1 - 1e-12) <= found < arithmetic + streamed
        assert found <= 2**0.25 * max(arithmetic, streamed) * (1 + 1e-12)
    ridge = bandwidth * streamed / arithmetic
    at = matmul_time(known | {"hbm_bandwidth": ridge}, kernel_launch=0)
    assert at == pytest.approx(2**0.25 * arithmetic, rel=1e-9)


# The table


@every(accelerators)
def test_every_device_can_be_asked(name):
    row = run(accelerators[name].at(precision(name)))
    assert 0 < row.matmul_share < 1
    assert {"matmul_efficiency", "stream_efficiency", "kernel_launch"} <= set(row)


def precision(name):
    return next(p for p in ("bf16", "fp16", "fp8", "fp4") if f"peak_{p}" in accelerators[name])


def test_a_precision_brings_its_own_share():
    assert accelerators.h100.at("fp8").matmul_efficiency == accelerators.h100.matmul_fp8
    assert accelerators.h100.matmul_efficiency == accelerators.h100.matmul_bf16
    assert accelerators.v100.matmul_efficiency == accelerators.v100.matmul_fp16
    assert "matmul_efficiency" not in accelerators.h100.at("tf32")
    assert "matmul_efficiency" not in accelerators.tpu_v5p


def measured_shares():
    """Of every device and precision; of bf16 and fp16, which have one peak, the first.

    Variants count once: those of `kin`, and those that take another device's measured shares, as the H800 does.
    """
    names = ("matmul_bf16", "matmul_fp16", "matmul_fp8", "matmul_fp4")
    measured = {tuple(row.get(x) for x in names) for row in accelerators.values() if len(row.kin) == 1}
    wide = [bf16 or fp16 for bf16, fp16, *_ in measured if bf16 or fp16]
    return wide, [x for *_, fp8, fp4 in measured for x in (fp8, fp4) if x]


def test_what_is_typical_is_about_the_median_of_what_was_measured():
    wide, narrow = measured_shares()
    assert min(wide + narrow) < typical_matmul_efficiency() < max(wide + narrow)
    # with those of two cards, the RTX PRO 6000 and the Arc Pro B60, all above 0.8, the median is 0.658
    assert typical_matmul_efficiency() == pytest.approx(np.median(wide + narrow), rel=0.09)
    said = typical_matmul_efficiency.__doc__
    for value in (min(wide), max(wide), np.median(wide), min(narrow)):
        assert f"{value:.2f}" in said
    own = [row for row in accelerators.values() if len(row.kin) == 1]
    streams = [row["stream_efficiency"] for row in own if "stream_efficiency" in row]
    assert kernels.typical_stream_efficiency() == pytest.approx(np.median(streams), rel=0.05)


# The calibration


def test_an_operator_in_16_bits_is_its_product_and_quantizing_takes_time_in_fewer():
    sizes = dict(rows=64, columns=8192, inner=8192)
    wide = linear_operator(H100, sizes)
    assert wide.operator_time == wide.matmul_time and wide.quantize_time == 0
    assert wide.matmul_time == matrix_product(H100, sizes, copies=1, **BITS).matmul_time
    for library in ("trtllm_fp8", "vllm_fp8", "sglang_fp8", "trtllm_fp8_block", "sglang_fp8_block"):
        run = linear_operator(accelerators.h100.at("fp8").running(library), sizes)
        assert run.activation_bits == run.weight_bits == 8 and 1e-6 < run.quantize_time < 12e-6


@given(SIZES, SIZES, SIZES)
def test_what_a_cache_holds_makes_a_product_no_slower(rows, columns, inner):
    device, sizes = accelerators.l40s.at("bf16"), dict(rows=rows, columns=columns, inner=inner)
    cold, warm = linear_operator(device, sizes), cycled_operator(device, sizes)
    assert 0 <= warm.cached_share <= 1 and warm.matmul_time <= cold.matmul_time


def test_products_of_xla_start_alone():
    rows, measured = fitted_rows("gemm_xla")
    device = accelerators.b200
    start = device.running("xla_alone").kernel_launch - device.kernel_launch
    known, measured = predicted_with("gemm_xla", rows) / 1e6 - start, measured / 1e6
    a, b = 1 / measured, 1 - known / measured
    assert (a @ b) / (a @ a) == pytest.approx(start, rel=0.03)
    assert 0 < len(rows) < len(confront("gemm_xla").rows)


def test_shares_of_products_that_are_not_aligned_fit_the_even_rows_and_hold_for_other_kinds_of_products():
    result = confront("gemm_eleuther")
    n, k = (np.array([float(x[c]) for x in result.rows]) for c in ("n", "k"))
    is_odd, cut = (n % 2 + k % 2) > 0, (n % 8 + k % 8) > 0
    reached = aligned_share(columns=n, inner=k) * result.measured / result.predicted  # of one that is aligned
    fitted = cut & result.fitted
    assert 0.285 < np.median(reached[fitted & is_odd]) < 0.295
    assert 0.62 < np.median(reached[fitted & ~is_odd]) < 0.66  # where the columns are not aligned, all odd rows, 0.54
    layers = confront("eleuther_layers")  # attention's products among them; nothing was calibrated on these
    odd = [i for i, x in enumerate(layers.rows) if float(x["hidden"]) / 128 % 2]
    assert len(odd) > 250 and abs(np.median(layers.errors[odd])) < 0.03


# Devices of other makers


def test_hipblaslt_in_training_is_what_steps_take():
    for precision in ("bf16", "fp8"):
        device = accelerators.mi355x.at(precision)
        assert device.running("hipblaslt_training").matmul_efficiency == device.training_efficiency


def test_the_mi300x_in_16_bits_rests_on_all_its_large_products():
    """Those of AITER, and the best that AMD found, taken as they are."""
    best, found = fitted_rows("gemm_best", device="mi300x")
    rows, measured = fitted_rows("gemm_amd", device="mi300x", precision="bf16")
    assert len(best) + len(rows) == 8

    def error(share):
        far = off("gemm_best", best, found, matmul_efficiency=share, best_found=1.0)
        return (len(best) * far + len(rows) * off("gemm_amd", rows, measured, matmul_efficiency=share)) / 8

    here = accelerators.mi300x.matmul_bf16
    assert error(here) < min(error(here * 1.08), error(here / 1.08))
    assert accelerators.mi300x.matmul_fp16 == here


def share_of_peak(row):
    return 1e12 * float(row["tflops"]) / accelerators[row["device"]][f"peak_{row['precision']}"]


def cell(row):
    kind = "training" if row["device"] == "mi355x" else "matmul"
    return accelerators[row["device"]][f"{kind}_{row['precision']}"]


def test_what_is_known_by_its_best_stands_at_the_usual_share_of_it():
    rows = confront("gemm_best").rows
    derived = ("gaudi2", "gaudi3", "mi325x")
    reached = [cell(row) / share_of_peak(row) for row in rows if row["device"] not in derived]
    assert pytest.approx(np.median(reached), rel=0.02) == best_found()
    for row in rows:
        if row["device"].startswith("gaudi"):
            assert cell(row) == pytest.approx(best_found() * share_of_peak(row), rel=0.01)
    bf16 = {row["device"]: row for row in rows if row["precision"] == "bf16" and row["clock_mhz"]}
    faster = float(bf16["mi325x"]["tflops"]) / float(bf16["mi300x"]["tflops"])
    assert cell(bf16["mi325x"]) == pytest.approx(faster * cell(bf16["mi300x"]), rel=0.02)


def test_kernels_reach_nine_tenths_of_babelstream():
    result = confront("streams")
    for name in {row["device"] for row in result.rows}:
        rates = [x for row, x in zip(result.rows, result.measured, strict=True) if row["device"] == name]
        reached = accelerators[name].stream_efficiency * accelerators[name].hbm_bandwidth / 1e9 / np.median(rates)
        assert reached == pytest.approx(best_found(), abs=0.02)


def test_a_step_on_the_mi300x_is_slower_than_the_best_product_that_amd_published():
    """708 TFLOP/s in bf16: the shares do it, nothing is clipped."""
    best = max(float(row["tflops"]) for row in confront("gemm_best").rows if row["device"] == "mi300x")
    for letters in (dict(), dict(dp_overlap=1, recompute="full")):
        run = training_step(
            models.llama3_8b, accelerators.mi300x.at("bf16"), dp=8, microbatches=8, seq=8192, sharding="zero3",
            **letters,
        )  # fmt: skip
        assert 0.4 * best < run.model_flops / run.step_time / run.devices / 1e12 < 0.85 * best


# Products of experts, and splits of the inner size

# Rows an expert, columns, inner size; what the forward product, that of the inputs' gradient and that of the weights'
# (in 32 bits) reach of a B200's peak, as SimuMax's system description lists them.
GROUPED = [*cases("products of experts on a B200", globals()).values()]


def grouped_share(rows, columns, inner, gradient=False):
    """Of the peak, 64 experts on a B200 whose products reach 0.52."""
    bits = 16 * (rows * inner + rows * columns) + (64 if gradient else 16) * inner * columns
    m, n, k = (columns, inner, rows) if gradient else (rows, columns, inner)
    time = kernels.matmul_time_grouped(
        accelerators.b200, rows=m, columns=n, inner=k, copies=64, traffic=64 * bits / 8, matmul_efficiency=0.52,
        tile_rows=64, tile_columns=64, grouped_hidden=kernels.grouped_hidden(),
    )  # fmt: skip
    return 2 * 64 * rows * columns * inner / (time * accelerators.b200.peak_bf16)


def test_products_of_experts_reach_what_was_measured_on_a_b200():
    errors = []
    for rows, columns, inner, forward, back, weights in GROUPED:
        found = grouped_share(rows, columns, inner), grouped_share(rows, inner, columns)
        errors += np.divide([*found, grouped_share(rows, columns, inner, True)], [forward, back, weights]).tolist()
    assert np.mean(np.abs(np.array(errors) - 1)) < 0.14


SMALL = dict(
    copies=1, tile_rows=64, tile_columns=64, cores=108, peak_flops=312e12, matmul_efficiency=0.84, inner_half=40,
    hbm_bandwidth=2e12, stream_efficiency=0.75, kernel_launch=3e-6,
)  # fmt: skip
SPLIT = dict(split_time=2e-6, split_step=5e-8)


@pytest.mark.parametrize("inner", [1024, 12288, 65536])
@pytest.mark.parametrize("columns", [64, 256, 2048, 65536])
def test_splitting_never_costs_and_needs_idle_cores(columns, inner):
    sizes = dict(rows=2, columns=columns, inner=inner, traffic=2 * columns * inner)
    whole, split = matmul_time(SMALL, **sizes), kernels.matmul_time_split(SMALL, SPLIT, **sizes)
    assert split <= whole * (1 + 1e-9)
    if columns / 64 > 54:  # more tiles than half of the cores: nothing to split among
        assert split == pytest.approx(whole, rel=1e-12)


def test_the_worst_of_small_products_is_split():
    sizes = dict(rows=2, columns=256, inner=12288, traffic=2 * 256 * 12288)
    assert kernels.matmul_time_split(SMALL, SPLIT, **sizes) < 0.5 * matmul_time(SMALL, **sizes)
