"""What kernels of experts, and caches that cards read, were calibrated on: the cells are where the rows put them."""

import csv
from importlib.resources import files

import numpy as np
import pytest

from scalebook.measurements.sets import stanzas
from scalebook.tables import libraries

from .refits import predicted_with

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
