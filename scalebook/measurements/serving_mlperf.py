"""MLPerf inference of Llama 2 70B: the most output tokens a second, offline and under limits of latency.

The submitters' layouts are not in the results, so ours is taken: the best of 1, 2, 4 and 8 ways with copies beside each
other, and of the batches that memory holds.  Since round 5.0 the ways may be stages of a pipeline but under the
interactive limit: NVIDIA tells that stages came in after 4.1, with 1.2 times the rate of eight H100, and that tensor
parallelism stays the choice where latency counts.
"""

from functools import cache

import numpy as np

from scalebook.tables import accelerators, models

from .confrontation import Confrontation, Priced
from .load import room_for, step_of_load
from .rows import number
from .serving_load import REACHED
from .serving_static import alone, is_fitted_curve

__all__ = ["CONFRONTATIONS", "TAIL", "rate_of_device"]

# The limits are on the 99th percentile: so much longer than in the mean tokens take there.  Fitted on half of the
# accelerators under the interactive limit; a test fits it again.
TAIL = 1.6
LIMITS = {"Offline": np.inf, "Server": 0.2, "Interactive": 0.04}  # seconds per output token, MLPerf's rules
PROMPT = OUTPUT = 294  # means of its samples of OpenOrca
# Tensor-parallel ways and stages.
WAYS = [(tp, 1) for tp in (1, 2, 4, 8)]
STAGES = [(1, pp) for pp in (2, 4, 8)]
# Software of round 4.0 and vLLM of spring 2024, older than TensorRT-LLM 0.14, whose share of its kernels' rate they
# reach (`trtllm_max_load`); nothing is fitted here.
OLD_SOFTWARE = ("CUDA 12.2", "vLLM 0.4.")
BATCHES = np.unique(np.round(2 ** np.arange(2, 11.01, 0.125)))  # engines are set to 2,048 at most
USABLE = 0.9  # of a device's memory

DEVICES = {
    "AMD Instinct MI300X 192GB HBM3": "mi300x", "AMD Instinct MI300X-NPS1-SPX-192GB-750W": "mi300x",
    "AMD MI300X-NPS1-SPX-192GB-750W": "mi300x", "AMD Instinct MI325X 256GB HBM3e": "mi325x",
    "NVIDIA B200-SXM-180GB": "b200", "NVIDIA GB200": "gb200", "NVIDIA H100-NVL-94GB": "h100_nvl",
    "NVIDIA H100-SXM-80GB": "h100", "NVIDIA H200-SXM-141GB": "h200", "NVIDIA H200-SXM-141GB-CTS": "h200",
    "Virtualized NVIDIA H200-SXM-141GB": "h200", "NVIDIA L40S": "l40s",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtx_pro_6000",
}  # fmt: skip


def _precision(row) -> str:
    """As said; where nothing is, the narrowest that round 4.1 used: fp4 on Blackwell, else fp8."""
    return row["weight_dtype"] or ("fp4" if "B200" in row["accelerator"] else "fp8")


def _batches(name: str, precision: str, may_pipe: bool) -> tuple[np.ndarray, np.ndarray]:
    """Seconds per token and tokens a second of one device, by layout and batch; 0 tokens where caches do not fit."""
    device = accelerators[name].at(precision)
    letters = dict(weight_bits=4.5 if precision == "fp4" else 8, activation_bits=8, kv_bits=8, **alone(device))
    letters["cores"] = device.get("cores", accelerators.h100.cores)  # the H100 NVL has the chip of the H100
    layouts = WAYS + STAGES * may_pipe
    asked = [((models.llama2_70b, device), letters | dict(tp=tp, pp=pp)) for tp, pp in layouts]
    room = room_for(asked, PROMPT + OUTPUT / 2, USABLE)
    lines = np.tile(BATCHES, (len(layouts), 1))
    step, prompt = step_of_load(asked, lines, [PROMPT] * len(layouts), [OUTPUT] * len(layouts))
    each = step + lines / OUTPUT * prompt
    return each, np.where(lines <= room[:, None], lines / each, 0) / np.prod(layouts, axis=1)[:, None]


def rate_of_device(
    name: str, precision: str, limit: float, may_pipe: bool = True, reached: float = 1, batches=_batches
) -> float:
    """The most output tokens a second of one device with no token slower than `limit` seconds.

    `may_pipe` lets devices be stages of a pipeline; `reached` is the software's share of the rate of its kernels.

    >>> round(rate_of_device("h100", "fp8", np.inf)), round(rate_of_device("h100", "fp8", np.inf, may_pipe=False))
    (3921, 3265)
    """
    each, rates = batches(name, precision, may_pipe)
    return reached * float(np.where(each / reached <= limit, rates, 0).max())


def _reached(row) -> float:
    return REACHED if any(x in row["software"] for x in OLD_SOFTWARE) else 1


def predicted(rows, tail: float) -> np.ndarray:
    """Tokens a second of all devices of each row."""
    batches = cache(_batches)  # of these rows only: another call is priced anew, where it can be watched
    rates = [
        rate_of_device(
            DEVICES[r["accelerator"]],
            _precision(r),
            LIMITS[r["scenario"]] / tail,
            may_pipe=r["round"] > "v4.1" and r["scenario"] != "Interactive",
            reached=_reached(r),
            batches=batches,
        )
        for r in rows
    ]
    return np.array(rates) * [number(row, "n_accel") for row in rows]


def _bandwidths(rows) -> np.ndarray:
    """Tokens a second if each read the weights alone, in 8 bits: as devices' bandwidths are."""
    each = [accelerators[DEVICES[row["accelerator"]]].hbm_bandwidth * number(row, "n_accel") for row in rows]
    return np.array(each) / models.llama2_70b.active_params


def _left_out(scenario):
    def reason(row):
        if not row["model"].startswith("llama2-70b"):
            return "of a model whose lengths are not described here"
        if row["scenario"] != scenario:
            return "of another scenario"
        if row["accelerator"] not in DEVICES:
            return "of devices of two kinds, or that the tables lack"
        return "" if row["n_accel"] else "without a number of devices"

    return reason


def _accelerator(row):
    return f"{accelerators[DEVICES[row['accelerator']]].name}, {row['round']}"


def fits(row) -> bool:
    """Whether a row is of the half of the accelerators that the tail is fitted on."""
    return is_fitted_curve(row, ("accelerator",))


def _confrontation(scenario, what, calibrated=""):
    left_out = _left_out(scenario)
    return Confrontation(
        f"mlperf_{scenario.lower()}",
        "mlperf_inference.csv",
        f"Output tokens a second of Llama 2 70B in MLPerf 4.1 and 5.1, {what}.",
        lambda rows: Priced(predicted(rows, TAIL), _bandwidths(rows)),
        "result",
        "token/s",
        ("mlperf-inference",),
        left_out,
        _accelerator,
        calibrated,
        fits if calibrated else (lambda row: False),
    )


CONFRONTATIONS = {
    c.name: c
    for c in (
        _confrontation("Offline", "all requests there from the start"),
        _confrontation("Server", "200 ms for each token at the 99th percentile"),
        _confrontation(
            "Interactive",
            "40 ms for each token at the 99th percentile",
            "how much longer than in the mean tokens take at the 99th percentile, on half of the accelerators",
        ),
    )
}
