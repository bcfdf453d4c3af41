"""What kernels of experts, and caches that cards read, were calibrated on: the cells are where the rows put them."""

import csv
from importlib.resources import files

import numpy as np
import pytest

from scalebook.measurements.sets import stanzas
from scalebook.tables import accelerators, libraries

from .refits import fitted_rows, predicted_with

DATA = files("scalebook.measurements")


def least(error, values):
    """The value whose mean error is least."""
    return values[np.argmin([np.mean(np.abs(error(x))) for x in values])]


def test_weights_that_are_unpacked():
    """TensorRT-LLM's experts of 4 bits on Hopper, at least a tile's rows each."""
    found = [r for r in csv.DictReader((DATA / "moe_layer.csv").open()) if r["moe_dtype"] == "w4a16_mxfp4"]
    rows = [r for r in found if float(r["num_tokens"]) >= 1024]
    measured = np.array([float(r["latency_ms"]) for r in rows])
    kept = [r | {"moe_dtype": "bfloat16"} for r in rows]
    reached = libraries.trtllm_unpacked_experts

    def error(share):
        own = dict(weight_bits=4.25, routing_time_least=reached.routing_time_least, matmul_efficiency=share)
        found = [predicted_with(set_of(r), [known_columns(r)], **own)[0] for r in kept]
        return np.array(found) / measured - 1

    assert len(rows) == 6
    assert least(error, np.arange(0.25, 0.4, 0.01)) == pytest.approx(reached.matmul_efficiency, abs=0.005)


def set_of(r):
    return "moe_uneven" if r["distribution"].startswith("power_law") else "moe_layer"


def known_columns(r):
    return stanzas()[set_of(r)].completed(r)


def test_kernels_around_experts():
    """What passes of copies and scaling take, on even loads; what the A100's grouped products reach, on uneven ones."""
    rows, measured = fitted_rows("moe_layer")
    passes = least(lambda x: predicted_with("moe_layer", rows, assigned_passes=x) / measured - 1, (3, 3.5, 4, 4.5, 5))
    assert passes == libraries.trtllm_experts_hopper.assigned_passes
    scaled = np.array([r["moe_dtype"] == "fp8_block" and float(r["num_tokens"]) >= 1024 for r in rows])
    large, times = [r for r, x in zip(rows, scaled, strict=True) if x], measured[scaled]
    turns = np.arange(0.54e-6, 0.8e-6, 4e-8)
    turn = least(lambda x: predicted_with("moe_layer", large, scale_time=x / 1024) / times - 1, turns)
    assert turn / 1024 == pytest.approx(libraries.trtllm_block_experts_h100.scale_time, rel=0.1)
    rows, measured = fitted_rows("moe_uneven")
    shares = np.arange(0.47, 0.6, 0.02)
    found = least(lambda x: predicted_with("moe_uneven", rows, matmul_efficiency=x) / measured - 1, shares)
    assert found == pytest.approx(libraries.trtllm_experts_a100.matmul_efficiency, abs=0.011)


@pytest.mark.parametrize(("card", "key"), [("l40s", "l40s"), ("rtx_pro_6000_server", "rtx_pro_6000")])
def test_caches_that_cards_read(card, key):
    """The share of the bandwidth, on rows whose caches are larger than the second-level cache."""
    rows, measured = fitted_rows("attention_cards")
    here = np.array([r["system"] == card and r["size"] == "large caches" for r in rows])
    picked = [r for r, x in zip(rows, here, strict=True) if x]

    def error(share):
        return predicted_with("attention_cards", picked, read_efficiency_grouped=share) / measured[here] - 1

    found = least(error, np.arange(0.7, 1, 0.01))
    assert found == pytest.approx(accelerators[key].read_efficiency_grouped, abs=0.011)
    assert {libraries[f"{x}_{key}"].read_efficiency_grouped for x in ("mmha", "mmha_fp8", "xqa", "xqa_fp8")} == {
        accelerators[key].read_efficiency_grouped
    }
