"""vLLM on eight MI300X: a batch at a time, and as much as there is room for.

Kernels and RCCL's collectives of the MI300X were fitted alone.  Three more numbers are fitted here, on the curves of
the model of 70B, and tested on those of the 405B.
"""

import numpy as np

from scalebook.tables import accelerators, models

from .confrontation import Confrontation, Priced
from .decode import MODELS
from .load import room_for, step_of_load
from .rows import number, numbers
from .serving_static import parts_of_batch

__all__ = [
    "BLOCK_DELAY",
    "CONFRONTATIONS",
    "OWN_REDUCE",
    "SUSTAINED",
    "is_fitted_curve",
    "latency",
    "load",
    "slower_sums",
]

# Messages of up to 8 MiB are summed by vLLM's own kernels instead of RCCL: seconds that each byte takes longer so.
OWN_REDUCE = 2.9e-11
OWN_MESSAGE = 8 * 2**20
# What a step takes beyond in each block: about as long as four launches, one before each product, would.
BLOCK_DELAY = 1.06e-5
# Under full load devices, and vLLM of 2025, reach this share of the rate that steps of the kernels alone give.
SUSTAINED = 0.75
MOST = 1024  # sequences at once, vLLM's default on devices of this size
CHUNK = 16384  # tokens of prompts in a step, its default where it is called without a server
USABLE = 0.9


def _asked(row):
    device = accelerators.mi300x.at("fp8")
    return (models[MODELS[row["model"]]], device), dict(tp=number(row, "tp"), weight_bits=8, kv_bits=8)


def _shapes(rows, *names):
    return [np.array([models[MODELS[row["model"]]][name] for row in rows]) for name in names]


def slower_sums(rows, batch) -> np.ndarray:
    """Bytes that a step sums over devices in messages of up to 8 MiB: two for each block."""
    layers, hidden = _shapes(rows, "layers", "hidden")
    message = 2 * batch * hidden
    return np.where(message <= OWN_MESSAGE, 2 * layers * message, 0)


def latency(rows, own_reduce: float, block_delay: float) -> np.ndarray:
    """Seconds for a batch whose prompts are in the cache: every iteration has the same."""
    batch, prompt, output = numbers(rows, "batch", "isl", "osl")
    _, parts = parts_of_batch([_asked(row) for row in rows], batch, prompt, output, "pass_time")
    (layers,) = _shapes(rows, "layers")
    each = parts["pass_time"].mean(axis=1) + block_delay * layers
    return output * (each + own_reduce * slower_sums(rows, batch))


def load(rows, sustained: float) -> np.ndarray:
    """Output tokens a second of all devices; all requests are there at once and alike, so they come in waves."""
    requests, prompt, output = numbers(rows, "batch", "isl", "osl")
    asked = [_asked(row) for row in rows]
    room = room_for(asked, prompt + output, USABLE)
    full = np.minimum(np.minimum(np.floor(room), requests), MOST)
    waves = np.floor(requests / full)
    last = requests - waves * full
    batches = np.stack([full, np.maximum(1, last)], axis=1)
    step, read = step_of_load(asked, batches, prompt, output, CHUNK)
    each = output[:, None] * step + batches * read
    seconds = waves * each[:, 0] + np.where(last > 0, each[:, 1], 0)
    return sustained * requests * output / seconds


def _read_weights(rows) -> np.ndarray:
    """Seconds in which a group reads the weights once."""
    ways, params = numbers(rows, "tp")[0], _shapes(rows, "params")[0]
    return params / (ways * accelerators.mi300x.hbm_bandwidth)


def _no_model(row):
    if row["model"] not in MODELS or row["precision"] != "FP8" or not row["gpu"].startswith("MI300X"):
        return "not of Llama 3.1 in FP8 on the MI300X"
    return ""


def _no_latency(row):
    return "of throughput" if row["metric"] != "total latency" else _no_model(row)


def _no_load(row):
    return "of a batch at a time" if row["metric"] == "total latency" else _no_model(row)


def is_fitted_curve(row) -> bool:
    """Whether constants are fitted on a row: those of the 70B, half of the curves."""
    return "70B" in row["model"]


def _kind(row):
    return f"{row['model'].split()[0]}, {row['isl']} to {row['osl']}"


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "mi300x_latency",
            "mi300x_vllm.csv",
            "Seconds for a batch whose prompts are in the cache, by the kernels of its steps.",
            lambda rows: Priced(latency(rows, OWN_REDUCE, BLOCK_DELAY), _read_weights(rows) * numbers(rows, "osl")[0]),
            "value",
            "s",
            ("rocm-vllm",),
            _no_latency,
            _kind,
            "how much longer each byte takes in vLLM's own sums over devices, and what a block takes beyond its "
            "kernels, on the curves of the 70B",
            is_fitted_curve,
        ),
        Confrontation(
            "mi300x_max_load",
            "mi300x_vllm.csv",
            "Output tokens a second with more requests than there is room for.",
            lambda rows: Priced(load(rows, SUSTAINED), 1 / _read_weights(rows)),
            "value",
            "token/s",
            ("rocm-vllm",),
            _no_load,
            _kind,
            "the share of the rate of kernels alone that is reached under full load, on the curves of the 70B",
            is_fitted_curve,
        ),
    )
}
