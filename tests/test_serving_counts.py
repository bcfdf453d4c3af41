"""What a serving step computes and reads is what the block's listing and `counts` say, for every model of the table.

A device has one limit at a time. Bytes are what a format that is wider by 8 bits adds to the time.
"""

from collections import Counter

import numpy as np
import pytest
from sympy import sympify

from scalebook.block import core_kernels, kinds_of, reaching, served_blocks
from scalebook.inference import decode_step, prefill_step
from scalebook.inference.part_kernels import STATES, kind_of_attention
from scalebook.language import symbol
from scalebook.tables import accelerators, models

from .test_worked_numbers import LIMITS, NETWORK, NOTHING, PEAK, SERVED

REACHED = "index_efficiency_steps picked_efficiency state_efficiency_steps conv_efficiency_steps hyper_efficiency"
REACHED += " sparse_efficiency hyper_bandwidth hyper_bandwidth_after"
TAKEN = "index_launch_steps small_launch_steps small_passes_steps conv_core_steps conv_launch_steps"
TAKEN += " state_launch_steps hyper_launch hyper_launch_after"
IDEAL = SERVED | NETWORK | dict.fromkeys(REACHED.split(), 1) | dict.fromkeys(TAKEN.split(), NOTHING)
IDEAL |= dict(index_peak=PEAK, tile_rows=1e-6, tile_columns=1e-6)
CONTEXT, SINKHORN_STEPS = 16384, 20
WIDE = ("Wrouter", "Wk_up", "Wv_up", "Wmix")  # not in the format of weights
MODELS = [key for key in models if "embeddings" in models[key]]
# The formats of a base and of four steps in which weights, caches, states or an indexer's keys are a byte wider
WEIGHTS, CACHES, STATE, KEYS = 8 * np.eye(5)[1:]
WIDENED = dict(weight_bits=16 + WEIGHTS, expert_bits=16 + WEIGHTS, kv_bits=16 + CACHES, linear_bits=32 + STATE)


def ideal(step, model, limit, **more):
    """The time of a step on a device with this limit alone."""
    letters = step.plan((model, accelerators.h100), {})[0].letters
    known = IDEAL | LIMITS[limit] | dict(head_tile=model.get("heads")) | more
    return step(model, accelerators.h100, **{x: y for x, y in known.items() if x in letters}).pass_time


def listed(model):
    """One token's FLOPs, and numbers that it reads, by the lines of the model's blocks. `pairs` are of prompts."""
    found, (dense, moe) = Counter(flops=2 * model["hidden"] * model["vocab"]), served_blocks(model)
    routed = (model["moe_layers"] if dense else model["layers"]) if moe else 0
    letters = {"window_layers": 0, "window": 1, **model, "batch": 1, "seq": 1, "context": 1}
    for kind, layers in [(k, n) for b, n in ((dense, model["layers"] - routed), (moe, routed)) for k in kinds_of(b)]:

        def number(cost, of=kind.of):
            return float((cost := sympify(of(cost))).xreplace({x: letters[x.name] for x in cost.free_symbols}))

        layers *= number(kind.share)
        slides = number(symbol("window_layers")) / model["layers"]
        seen = CONTEXT - slides * max(0, CONTEXT - number(symbol("window")))  # keys: the mean over layers
        state, name = core_kernels(kind.block).get("state", ()), kind_of_attention(kind.block)
        for op in kind.block.ops:
            weights = [] if op.function else [t for t in op.args if t.is_weight]
            part = "flops" if weights or (op.name in state and name not in STATES) else "pairs"
            part, flops = "sums" if op.name == "i_sums" else part, layers * number(op.flops)
            found[part] += flops * (1 if part == "flops" else seen)
            found["weights"] += layers * sum(number(t.visited("top_k")) for t in weights if t.name not in WIDE)
        if name == "hyper-connections":  # stated by hand: a weighted sum of the streams, and Sinkhorn's iterations
            found["flops"] += layers * 4 * model["streams"] * (model["hidden"] + 2 * SINKHORN_STEPS * model["streams"])
        for t in {t.name: t for op in kind.block.ops for t in op.args}.values():
            if "index_dim" in t.indices and {"context", "entries"} & {*t.indices}:
                found["keys in 16 bits" if name == "blocks" else "keys"] += layers * number(t.elements) * CONTEXT
            if t.name == "fp32_state" and name in STATES:  # read and written
                found["states"] += 2 * layers * number(t.elements)
    return found


@pytest.mark.parametrize("key", MODELS)
def test_a_decoded_token_costs_what_the_listing_counts(key):
    model, found, reached = models[key], listed(models[key]), reaching(models[key])
    reach = dict(whole=CONTEXT, window=min(CONTEXT, model.get("window", 1)), picked=min(CONTEXT, reached.picked_reach))
    width, cache = (sum(reached[f"{x}_{y}"] * reach[x] for x in reach) * model["layers"] for y in ("width", "cache"))
    flops = found["flops"] + 2 * width - found["sums"]  # the sums of an indexer's scores are no products
    assert 1e15 * ideal(decode_step, model, "arithmetic", batch=1, context=CONTEXT) == pytest.approx(flops, rel=1e-6)
    times = 1e12 * ideal(decode_step, model, "memory", batch=1, context=CONTEXT, index_bits=8 + KEYS, **WIDENED)
    read = found["weights"], cache - found["keys"] - found["keys in 16 bits"], found["states"], found["keys"]
    assert times[1:] - times[0] == pytest.approx(read, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("key", [x for x in MODELS if not {"index_heads", "linear_conv"} & {*models[x]}])
def test_a_prompt_costs_what_the_listing_counts(key):
    """One token of a prompt. Indexers score whole tiles of keys, and kernels with a state are timed by the chunk."""
    model, found = models[key], listed(models[key])
    time = ideal(prefill_step, model, "arithmetic", prompts=1, read_chunk=1, past=CONTEXT - 1)
    assert 1e15 * time == pytest.approx(found["flops"] + found["pairs"], rel=1e-6)
