"""Engines under as much load as they take, on Azure's machines: 1,000 requests of one length that are there at once.

Nothing is fitted to them: TensorRT-LLM's two numbers are those of `trtllm_max_load`, vLLM's those of `mi300x_max_load`.
"""

import re

import numpy as np

from . import serving_amd, serving_load
from .confrontation import Confrontation

__all__ = ["CONFRONTATIONS"]

_REQUESTS = "1000"
_LOAD = {"8B": "Llama-3.1-8B", "70B": "Llama-3-70B", "405B": "Llama-3.1-405B"}
_AMD = {"8B": "LLaMA-3 8B", "70B": "Llama-3.1-70B FP8-KV", "405B": "Llama-3.1-405B FP8-KV"}
_GPUS = {"H100": "H100-SXM-80GB", "H200": "H200-SXM-141GB"}


def _size(row):
    return re.search(r"\((\d+B)\)", row["test"])[1]


def _tokens(row):
    """Output tokens a second of all devices; the guide builds engines, as TensorRT-LLM did before 1.0."""
    tp, prompt, output = re.findall(r"=(\d+)", row["parameters"])
    asked = dict(tp=tp, isl=prompt, osl=output)
    if row["device"] == "MI300X":
        known = asked | dict(model=_AMD[_size(row)], batch=_REQUESTS)
        return serving_amd.load([known], serving_amd.SUSTAINED)[0]
    known = asked | dict(model=_LOAD[_size(row)], gpu=_GPUS[row["device"]], pp="1", n_gpus=tp, precision="FP8")
    known |= dict(trtllm_version="0.14", requests=_REQUESTS)
    return float(tp) * serving_load.rates([known], serving_load.REACHED, serving_load.SEQUENCE_TIME)[0]


def _left_out(row):
    is_engine = row["test"].startswith("LLAMA") and row["device"] in {"MI300X", *_GPUS}
    return "" if is_engine else "of kernels, links and drives, which azure holds"


CONFRONTATIONS = {
    "azure_engines": Confrontation(
        "azure_engines",
        "azure.csv",
        "Output tokens a second of TensorRT-LLM and vLLM with 1,000 requests at once, in 8 bits on Azure's machines.",
        lambda rows: np.array([_tokens(row) for row in rows]),
        "value",
        "token/s",
        ("azure-ai-benchmarking",),
        _left_out,
        lambda row: f"{_size(row)}, {row['device']}",
        optional=("instance",),
        alike=lambda row: f"{_size(row)}, {row['device']}",
    )
}
