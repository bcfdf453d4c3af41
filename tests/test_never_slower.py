"""What a better device, more overlap, more bits or longer sequences do to a step, at random strategies of every kind.

More peak, bandwidth or overlap, or less latency, never makes a step slower; more bits, length or batch never take less
memory.  Schedules that fill their bubbles with gradients of weights are drawn with equal stages, of which their bubbles
are stated.  Waits that are added though they could hide each other, or a window that grows with what it waits for,
would.
"""

import itertools

import numpy as np
import pytest

from scalebook.tables import accelerators, models
from scalebook.training.optimizers import OPTIMIZERS
from scalebook.training.rules import reason
from scalebook.training.step import OFFLOADS, training_step
from scalebook.training.strategy import CHOICES

MODELS = [
    "qwen3_0_6b", "llama3_8b", "llama3_70b", "gpt3_175b", "megatron_1t", "mixtral_8x7b", "gpt_oss_120b",
    "deepseek_v3",
]  # fmt: skip
DEVICES = ["a100", "h100", "h200", "b200", "mi300x", "gb200"]
EACH, KINDS = 25, 20  # strategies of one kind of sheet, and kinds

LESS = ("near_latency", "far_latency", "collective_launch", "kernel_launch", "collective_cores", "chunk_time")
MORE = (
    "peak", "hbm_bandwidth", "scaleup_bandwidth", "scaleout_bandwidth", "host_bandwidth", "matmul_efficiency",
    "attention_short", "attention_long", "stream_efficiency", "near_efficiency",
)  # fmt: skip
OVERLAPS = ("tp_overlap", "cp_overlap", "ep_overlap", "pp_overlap", "dp_overlap")
SHARES = tuple(x for x in MORE if x.endswith("_efficiency") or x.startswith("attention_"))
LARGER = {"weight_bits": 2, "gradient_bits": 2, "optimizer_bits": 1.5, "activation_bits": 2, "seq": 2, "batch": 2}


def kinds():
    """Models, devices and words, drawn so that every word comes up."""
    found, rng = [], np.random.default_rng(10)
    words = [x for x in CHOICES if x not in ("offload", "quantized", "kernels")]
    for number in range(KINDS):
        drawn = {x: CHOICES[x][(number + int(rng.integers(2))) % len(CHOICES[x])] for x in words}
        if MODELS[number % len(MODELS)] == "deepseek_v3":  # latents have no heads to deal out
            drawn["context_exchange"] = "gather"
            if drawn["schedule"] in ("dualpipe", "dualpipe_v", "zb_v"):  # 61 blocks have no equal halves
                drawn["schedule"] = "zb_h1"
        if OPTIMIZERS[drawn["optimizer"]].mode:  # it updates a model's own matrices
            drawn["trained"] = "all"
        model, device = (names[number % len(names)] for names in (MODELS, DEVICES))
        found.append(pytest.param(number, model, device, drawn, number % 2 == 1, id=f"{number}-{model}-{device}"))
    return found


def strategies(rng, model, device, words, offload):
    """Strategies of one kind that can run, as columns of letters."""
    found, sheet = [], None
    for _ in range(4000):
        x = {n: float(2 ** rng.integers(high)) for n, high in dict(tp=4, cp=3, pp=5, dp=6, batch=2).items()}
        x["ep"] = float(2 ** rng.integers(7)) if model.experts else 1.0
        x["etp"] = float(2 ** rng.integers(4)) if model.experts else x["tp"]
        x["chunks"] = float(rng.integers(1, 4)) if words["schedule"] == "interleaved" else 1.0
        x["microbatches"] = float(rng.choice([1, 2, 4, 32, 64])) * x["pp"]
        x["seq"] = float(rng.choice([2048, 8192, 32768]))
        x |= {n: float(rng.choice([0, 0.25, 0.5, 0.75])) for n in OVERLAPS}
        x["shard_group"] = float(2 ** rng.integers(5))
        x |= {n: float(rng.choice([0, 0.5, 1])) if offload else 0.0 for n in OFFLOADS}
        if words["sharding"] != "hybrid":
            del x["shard_group"]
        if not model.experts:
            del x["ep_overlap"]
        sheet = sheet or training_step.plan((model, device), dict(x, **words, offload=offload)).sheet  # of all alike
        fills = "weight_gradient_time" in sheet.formulas["bubble"].inputs  # its bubble is stated of equal stages
        if fills and model.layers % x["pp"]:
            continue
        known = {**model, **device, **x, **words, "offload": offload}
        if reason(known, sheet, lifted=["tp within scaleup_size"]) is None:
            found.append(x)
            if len(found) == EACH:
                break
    return {n: np.array([x[n] for x in found]) for n in found[0]} if found else {}


def changed(at, name):
    """The letters of a change: one made better, or larger; none where this kind of step does not have it."""
    if name == "peak":
        return {x: 1.5 * at[x] for x in ("peak_flops", "peak_bf16") if x in at}
    if name not in at or (name == "ep_overlap" and "experts" not in at):
        return {}
    if name in OVERLAPS:
        return {name: np.minimum(1, at[name] + 0.25)}
    if name in SHARES:
        return {name: np.minimum(1, 1.2 * at[name])}
    return {name: at[name] * (LARGER.get(name) or (0.5 if name in LESS else 1.5))}


@pytest.mark.parametrize(("seed", "model", "device", "words", "offload"), kinds())
def test_what_is_better_is_never_slower(seed, model, device, words, offload):
    rng, model, device = np.random.default_rng(seed), models[model], accelerators[device].at("bf16")
    columns = strategies(rng, model, device, words, offload)
    assert columns, "no strategy of this kind can run: draw others"
    words = dict(words, offload=offload)
    # Shares are given throughout: one plan of the sheet does for each, and who states how fast products are alone
    # says so of training too.
    usual = training_step(model, device, **columns, **words)
    columns |= {x: usual[x] for x in SHARES if x in usual}
    at = training_step(model, device, **columns, **words)
    for name in (*MORE, *LESS, *OVERLAPS):
        better = training_step(model, device, **{**columns, **changed(at, name)}, **words)
        slower = np.broadcast_to(better.step_time > at.step_time * (1 + 1e-9), at.step_time.shape)
        assert not slower.any(), _said(name, columns, slower, at.step_time, better.step_time)
    for name in LARGER:
        larger = training_step(model, device, **{**columns, **changed(at, name)}, **words)
        less = np.broadcast_to(larger.memory < at.memory * (1 - 1e-9), at.memory.shape)
        assert not less.any(), _said(name, columns, less, at.memory, larger.memory)


def _said(name, columns, where, before, after):
    place = np.flatnonzero(where)[0]
    one = {n: float(x[place]) for n, x in columns.items()}
    values = f"{before[place]:.6g} became {np.broadcast_to(after, before.shape)[place]:.6g}"
    return f"{name}: {values}, {where.sum()} of {where.size}, at {one}"


def test_there_are_enough_of_them():
    assert KINDS * EACH >= 500
    drawn = [p.values[3] for p in kinds()]
    for word, value in itertools.chain.from_iterable([(w, v) for v in CHOICES[w]] for w in drawn[0]):
        assert any(x[word] == value for x in drawn), f"{word}={value!r} never came up"
