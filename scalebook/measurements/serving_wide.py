"""Experts spread over many nodes: DeepSeek's own service, SGLang, and what InferSim's authors measured beside theirs.

A step is priced with messages that are waited for, and by half batches in turn, which hide them behind each other's
arithmetic (`overlap="half_batches"`).  DeepSeek's profile is described as the latter, with experts that are perfectly
balanced, and InferSim's rows of it are priced so.  Of the seven of `wide_ep` five lie between the two: DeepSeek's
decoding within 4 % of half batches, SGLang's and RTP-LLM's further below.  Two of prompts are slower than messages that
are waited for: RTP-LLM's by a tenth, and DeepSeek's service, the mean of a day.  These ends are 1.45 apart, and of the
same 32 H800 62,700, 42,600 and 32,200 tokens a second of a node are published.  A third end holds all seven: experts as
uneven as they were in SGLang's service without its balancer.  Nothing is fitted to a rate that is confronted.

>>> exposed, halves = rates(INFERSIM["DeepSeek-V3", "decode"])
>>> exposed < 2324 < halves < 1.04 * 2324  # tokens a second of a device of DeepSeek's profile
True
"""

import re
from functools import cache
from typing import NamedTuple

import numpy as np

from scalebook.inference import decode_step, prefill_step
from scalebook.inference.experts import devices_touched
from scalebook.tables import accelerators, libraries, models

from .confrontation import Confrontation
from .rows import number
from .serving_static import alone

__all__ = ["CONFRONTATIONS", "Run", "rate", "rates", "run_of_infersim", "run_published", "unbalanced_share"]

NODE = 8
CHUNK = 16384  # tokens of prompts in a step of a device, as DeepSeek's profile and SGLang's report say


class Run(NamedTuple):
    """What a published rate was reached with; `tokens` of a device in a step are batch (decoding) or CHUNK."""

    model: str
    device: str
    bits: int
    ep: int
    batch: int  # sequences of a device that decode; 0 where prompts are read
    context: float  # what they attend to in the mean, or the length of a prompt
    chunk: int = CHUNK
    overlap: str = "none"
    past: float = 0  # tokens of a prompt that caches have
    fullest: float = 1  # load of the fullest device over the mean

    @property
    def tokens(self) -> int:
        return self.batch or self.chunk


def _step(run: Run, overlap: str):
    """The row of a run's step."""
    model, device = models[run.model], accelerators[run.device].at("fp8" if run.bits == 8 else "bf16")
    letters = dict(weight_bits=run.bits, activation_bits=run.bits, kv_bits=16, overlap=overlap, **alone(device))
    if run.device == "h20":  # the rest of its chip as of the H100's, as for its grouped products
        known = accelerators.h100
        reached = libraries.deepgemm_h20.matmul_efficiency
        letters |= dict(matmul_efficiency=reached, matmul_bf16=reached)
        letters |= dict(stream_efficiency=known.stream_efficiency, kernel_launch=known.kernel_launch)
    if model.get("experts"):
        letters |= dict(attention_dp=run.ep, ep=run.ep, etp=1, expert_bits=run.bits, fullest_share=run.fullest)
    if run.batch:
        return decode_step(model, device, batch=run.batch, context=run.context, **letters)
    if run.ep > NODE:  # kernels for prompts send a token to each node once
        nodes = run.ep / NODE
        letters["visited_devices"] = devices_touched(experts=model.experts, top_k=model.top_k, ep=nodes)
    unread = run.context - run.past
    return prefill_step(model, device, prompts=run.chunk / unread, read_chunk=unread, past=run.past, **letters)


def rate(run: Run, overlap: str) -> float:
    """Tokens a second of a device."""
    return run.tokens / _step(run, overlap).pass_time


def rates(run: Run) -> tuple[float, float]:
    """Tokens a second of a device: messages waited for, and by half batches in turn.

    >>> exposed, halves = rates(Run("deepseek_v3", "h800", 8, ep=128, batch=128, context=4096))
    >>> round(exposed), round(halves)
    (1835, 2392)
    """
    return rate(run, "none"), rate(run, "half_batches")


# DeepSeek's published profile as it is described, two micro-batches in turn; on the H20 prompts of 4,096 and answers of
# 2,048, assumed.
INFERSIM = {
    ("DeepSeek-V3", "prefill"): Run("deepseek_v3", "h800", 8, 32, 0, 4096, overlap="half_batches"),
    ("DeepSeek-V3", "decode"): Run("deepseek_v3", "h800", 8, 128, 128, 4096, overlap="half_batches"),
    ("Qwen3-30B-A3B", "prefill"): Run("qwen3_30b_a3b", "h20", 16, 4, 0, 4096),
    ("Qwen3-30B-A3B", "decode"): Run("qwen3_30b_a3b", "h20", 16, 4, 100, 5120),
    ("Qwen3-8B", "prefill"): Run("qwen3_8b", "h20", 8, 1, 0, 4096),
    ("Qwen3-8B", "decode"): Run("qwen3_8b", "h20", 8, 1, 64, 5120),
}
ACTUAL = "actual (InferSim README)"


def _infersim(row) -> tuple[str, str]:
    return row["model"].split()[0], row["metric"].split()[0]


def run_of_infersim(row) -> Run:
    """The run that a row of infersim.csv is about.

    >>> run_of_infersim({"model": "Qwen3-8B fp8", "metric": "decode"}).batch
    64
    """
    return INFERSIM[_infersim(row)]


def _published_names(row):
    return row["engine"], row["phase"]


# Sequences of a device that decode, and their mean context: DeepSeek's 14,800 tokens a second of a node at 20 to 22 of
# each user; its profile; SGLang's report, prompts of 2,000 tokens and answers of 100; RTP-LLM's, 13,200 users of 144
# devices, prompts of 4,096 and answers of 2,048.
DECODES = {
    ("DeepSeek production", "decode"): (88, 4989),
    ("DeepSeek profile-data", "decode"): (128, 4096),
    ("SGLang", "decode"): (256, 2050),
    ("RTP-LLM", "decode"): (92, 5120),
}
READS = {("DeepSeek production", "prefill"), ("DeepSeek profile-data", "prefill"), ("SGLang", "prefill")}
READS |= {("RTP-LLM", "prefill")}
CHUNKS = {("RTP-LLM", "prefill"): 8192}  # two prompts of a device
DEVICES = {("RTP-LLM", "prefill"): 32, ("RTP-LLM", "decode"): 144}  # of its report, where the row has none
HITS = 0.563  # of the prompt tokens of DeepSeek's service, which it counts as read


def run_published(row) -> Run:
    """The run that a row of wide_ep.csv is about.

    >>> said = dict(engine="SGLang", phase="prefill", hardware="H100", n_gpus="32", config="EP32, prompt 4096", unit="")
    >>> run = run_published(said)
    >>> run.device, run.ep, run.batch, run.context
    ('h100', 32, 0, 4096.0)
    """
    device, names = row["hardware"].split()[0].lower(), _published_names(row)
    length = re.search(r"prompt (\d+)", row["config"])
    batch, context = DECODES.get(names, (0, float(length[1]) if length else 4096.0))
    devices = DEVICES.get(names) or int(number(row, "n_gpus"))
    past = HITS * context if "cache hits" in row["unit"] else 0
    return Run("deepseek_v3", device, 8, devices, batch, context, CHUNKS.get(names, CHUNK), past=past)


# With its balancer SGLang read prompts and decoded so many times faster than without (its report, overall results).
BALANCED = {"prefill": 1.49, "decode": 2.54}
SGLANG = {
    "prefill": Run("deepseek_v3", "h100", 8, 32, 0, 4096),
    "decode": Run("deepseek_v3", "h100", 8, 72, *DECODES["SGLang", "decode"]),
}


@cache
def unbalanced_share(phase: str) -> float:
    """Load of the fullest device over the mean that makes a step of SGLang's as slow as it was without its balancer.

    >>> round(unbalanced_share("prefill"), 2), round(unbalanced_share("decode"), 2)
    (1.69, 3.54)
    """
    even, double = (_step(SGLANG[phase]._replace(fullest=x), "none").pass_time for x in (1, 2))
    return 1 + (BALANCED[phase] - 1) * even / (double - even)  # a step grows evenly with the load of its fullest device


def _published(row, overlap: str, is_balanced: bool) -> float:
    run = run_published(row)
    if not is_balanced:
        run = run._replace(fullest=unbalanced_share(row["phase"]))
    found = rate(run, overlap) * (NODE if "per node" in row["unit"] or "8-GPU node" in row["unit"] else 1)
    return found / (1 - HITS) if "cache hits" in row["unit"] else found


def _not_described(row):
    names = _published_names(row)
    known = names in DECODES.keys() | READS and (row["n_gpus"] or names in DEVICES)
    if not known or not row["model"].startswith("DeepSeek-"):
        return "of a run whose batch or layout is not described"
    return "of a device that the tables lack" if row["hardware"].split()[0].lower() not in accelerators else ""


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "infersim",
            "infersim.csv",
            "Tokens a second and device that InferSim's authors measured or quote.",
            lambda rows: np.array([rate(run, run.overlap) for run in map(run_of_infersim, rows)]),
            ACTUAL,
            "token/s",
            ("infersim",),
            lambda row: "" if _infersim(row) in INFERSIM else "of a run that is not described here",
            lambda row: f"{row['gpu']}, {row['metric'].split()[0]}",
            optional=("row_id",),
        ),
        *(
            Confrontation(
                name,
                "wide_ep.csv",
                f"Tokens a second of DeepSeek-V3 with experts on many nodes, {how}.",
                lambda rows, overlap=overlap, even=even: np.array([_published(row, overlap, even) for row in rows]),
                "value",
                "token/s",
                ("deepseek2025-inference", "lmsys-large-scale", "infersim", "rtp-llm"),
                _not_described,
                lambda row: row["phase"],
            )
            for name, overlap, even, how in (
                ("wide_ep", "none", True, "messages waited for"),
                ("wide_ep_halves", "half_batches", True, "half batches in turn"),
                ("wide_ep_unbalanced", "none", False, "messages waited for, experts as uneven as without a balancer"),
            )
        ),
    )
}
