"""Training steps on Google's TPUs in MaxText, v4 to v7: its recipes' logs, and the tables beside its configurations.

Products reach on every TPU but the v5e and the v6e what they do on the v7 in Google's own microbenchmark.
"""

import re
from math import log2
from typing import NamedTuple

from scalebook.tables import accelerators, frameworks, models
from scalebook.training.assumptions import attended_tiles, attended_tiles_windows, attention_backward

from .confrontation import Confrontation
from .rows import is_even, number, optional
from .runs import paced, step, timed

__all__ = ["CONFRONTATIONS", "scaled"]

_TPUS = {"v4": "tpu_v4", "v5e": "tpu_v5e", "v5p": "tpu_v5p", "v6e": "tpu_v6e", "TPU7x": "tpu_v7"}


class Recipe(NamedTuple):
    """What a recipe's configuration says: the model, its sequences, what is kept and not run again, what splits it.

    Kept are projections to queries, keys, values and the output, c, what attention gives, or d, what experts give.
    Attention has tiles forward; going back takes two kernels unless they are fused.  Where experts have a
    `capacity`, so many times an even share of the tokens, what is left of it is zeros.
    """

    model: str
    seq: int
    kept: str = ""
    tile: int = 2048
    is_fused: bool = False
    capacity: float = 0
    tp: int = 1
    ep: int = 1


_TILE_BACK = 2048  # of attention going back, in all of them
_RECIPES = {
    "trillium/GPT3-175B": Recipe("gpt3_175b", 2048, tile=1024),
    "trillium/Gemma3-12B": Recipe("gemma3_12b", 32768, tile=1024),
    "trillium/Llama2-70B": Recipe("llama2_70b", 4096, "qkv", tile=1024),
    "trillium/Llama3.1-405B": Recipe("llama3_405b", 8192, tile=1024),
    "trillium/Llama3.1-70B": Recipe("llama3_70b", 8192, "qkv", is_fused=True),
    "trillium/Llama3.1-8B": Recipe("llama3_8b", 8192, "qkvo", is_fused=True),
    "trillium/Mistral-7B": Recipe("mistral_7b", 8192, "qkvo", is_fused=True),
    "trillium/Mixtral-8x22B": Recipe("mixtral_8x22b", 4096, "qkvo", capacity=1.25, ep=4),
    "v5p/Llama3.1-405B": Recipe("llama3_405b", 8192, "c"),
    "v5p/Llama4-Maverick": Recipe("llama4_maverick", 8192, "qkvo", tp=4),
    "v5p/GPT3-175B": Recipe("gpt3_175b", 2048),
    "ironwood/deepseek-v3": Recipe("deepseek_v3", 4096, is_fused=True),
    "ironwood/gpt-oss-120b": Recipe("gpt_oss_120b", 8192, "d", tile=1024, is_fused=True),
    "ironwood/llama3.1-405b": Recipe("llama3_405b", 8192, "kv", is_fused=True),
}
# Of MaxText's own configurations: sequences a chip, tensor-parallel ways and what is run again, by TPU and size.
_TABLES = {
    ("v4", "22B"): (13, 1, "full"), ("v4", "52B"): (7, 1, "full"),
    ("v5e", "16B"): (6, 1, "full"), ("v5e", "32B"): (4, 1, "full"), ("v5e", "64B"): (2, 1, "full"),
    ("v5p", "32B"): (7, 4, "none"), ("v5p", "64B"): (3, 4, "none"), ("v5p", "128B"): (1, 8, "none"),
    ("v5p", "256B"): (1, 8, "none"), ("v5p", "1024B"): (2, 8, "full"),
}  # fmt: skip
_V4 = {
    "22B": dict(layers=48, hidden=6144, heads=24, ffn=24576), "52B": dict(layers=32, hidden=12288, heads=32, ffn=49152)
}  # fmt: skip
_SEQ = 2048


def scaled(size: int):
    """MaxText's model for a `global_parameter_scale`: each doubling widens heads and inside, then the model, then adds
    blocks; gated, and as many key-value heads as queries, of 128.

    >>> scaled(128).layers, scaled(128).hidden, scaled(128).heads, scaled(128).ffn
    (64.0, 8192.0, 128.0, 57344.0)
    """
    third, rest = divmod(int(log2(size)), 3)
    heads, hidden, blocks = 2 ** (third + (rest > 0)), 2 ** (third + (rest > 1)), 2**third
    own = dict(layers=16 * blocks, hidden=2048 * hidden, heads=16 * heads, ffn=7168 * heads)
    return _shape(f"{size}B", **own, head_dim=128, gating=1)


def _shape(name, heads, **letters):
    return models.shaped(name, "rmsnorm", "mha", heads=heads, vocab=32000, **letters)


def _tpu(name):
    return next((key for said, key in _TPUS.items() if name.startswith(said)), "")


# Recipes


def _recipe(row):
    return next((known for name, known in _RECIPES.items() if row["recipe"].startswith(name)), None)


def _precision(row):
    said = row["precision"] or row["recipe"]
    return "fp8" if "fp8" in said else "bf16"


def _kept(run, kept):
    """The share of the arithmetic run again that what is kept makes needless."""
    tokens = run.batch * run.seq
    if kept == "c":
        return 4 * tokens * run.seq * run.heads * run.head_dim / run.tp / run.again_flops
    if kept == "d":
        return 2 * tokens * run.top_k * run.hidden * run.expert_ffn / run.tp / run.again_flops
    heads = sum(run.heads if x in "qo" else run.kv_heads for x in kept)
    return 2 * tokens * run.hidden * heads * run.head_dim / run.tp / run.again_flops if kept else 0


def _back(recipe, model, tpu, seq):
    """The rate of attention going back over that forward: each has tiles of its own."""
    share = attended_tiles_windows if model.window_layers else attended_tiles
    here, back = (share(model, seq=seq, attention_tile=x) for x in (recipe.tile, _TILE_BACK))
    return (attention_backward() if recipe.is_fused else tpu.attention_backward) * here / back


def _recipe_run(row):
    """A step and its seconds.  What the backward pass reads is run again, less what is kept."""
    recipe = _recipe(row)
    model, tpu = models[recipe.model], accelerators[_tpu(row["tpu"])].at(_precision(row))
    seq, chips = optional(row, "seq_len", recipe.seq), number(row, "n_chips")
    sequences = number(row, "gbs") if row["tokens_per_step"] == "" else number(row, "tokens_per_step") / seq
    tp, slices = recipe.tp, max(1.0, chips / tpu.scaleup_size)
    known = dict(seq=seq, global_batch=sequences, dp=chips / tp, batch=sequences * tp / chips, tp=tp)
    known |= dict(ep=recipe.ep) if recipe.ep > 1 else {}
    known |= dict(framework=frameworks.maxtext, attention_tile=recipe.tile, mtp_blocks=0)
    known |= dict(attention_backward=_back(recipe, model, tpu, seq))
    if slices > 1 and recipe.model != "llama3_405b":  # whose state is dealt out over both slices
        known |= dict(sharding="hybrid", shard_group=chips / slices)
    else:
        known |= dict(sharding="zero3")
    known |= dict(etp=1) if model.get("experts") else {}
    if recipe.capacity:  # one product of equal parts for all experts, as any other
        known |= dict(grouped_efficiency=tpu.training_efficiency / recipe.capacity, grouped_hidden=1)
    least, most = step(model, tpu, **known), step(model, tpu, **known, recompute="full")
    return most, least.step_time + (1 - _kept(most, recipe.kept)) * (most.step_time - least.step_time)


def _no_recipe(row):
    if not _recipe(row) or _recipe(row).model not in models:
        return "of a model that is not in the table"
    if row["recipe"] == "v5p/GPT3-175B-MaxText":
        return "at 0.87 of the peak in 16 bits, which no products reach: quantized, though the table does not say so"
    return "" if row["tokens_per_step"] or row["gbs"] else "without the tokens of a step"


def _recipe_kind(row):
    kind = "experts" if models[_recipe(row).model].get("experts") else "dense"
    return f"{kind}, {_tpu(row['tpu']).removeprefix('tpu_')}, {_precision(row)}"


# Tables


class Slices(NamedTuple):
    """How many slices, of which TPU, and how many chips each."""

    count: int
    kind: str
    chips: float


def _slices(row) -> Slices:
    """Slices of v4 and v5p are counted in cores, two a chip."""
    count, kind, cores = re.fullmatch(r"(\d+)x (v\w+)-(\d+)", row["hardware"]).groups()
    return Slices(int(count), kind, int(cores) / (1 if kind == "v5e" else 2))


def _size(row):
    found = re.search(r"(\d+B)( model)?$", row["section"]) or re.match(r"(\d+B) ", row["column"])
    return found[1] if found else ""


def _table_run(row):
    count, kind, chips = _slices(row)
    each, tp, recompute = _TABLES[kind, _size(row)]
    is_v4, size = kind == "v4", _size(row)
    model = _shape(size, **_V4[size], head_dim=256, gating=0) if is_v4 else scaled(int(size[:-1]))
    sharding = dict(sharding="hybrid", shard_group=chips / tp) if count > 1 else dict(sharding="zero3")
    return step(
        model,
        accelerators[_TPUS[kind]].at("bf16"),
        frameworks.maxtext,
        **sharding,
        recompute=recompute,
        tp=tp,
        dp=count * chips / tp,
        batch=each * tp,
        global_batch=each * count * chips,
        seq=_SEQ,
    )


def _tables(rows):
    """TFLOP/s as MaxText counts them: half of the query-key pairs, six a parameter and token."""
    runs = [_table_run(row) for row in rows]
    pairs = [12 * x.layers * x.heads * x.head_dim * x.seq**2 * x.global_batch / 2 for x in runs]
    return paced(runs, [(x.model_flops - half) / x.devices / 1e12 for x, half in zip(runs, pairs, strict=True)])


def _no_table(row):
    if "TFLOP" not in row["unit"]:
        return "that print the same run's MFU"
    if not re.fullmatch(r"\d+x v\w+-\d+", row["hardware"]):
        return "of GPUs, of models without a configuration, or with nothing but a name"
    return "" if (_slices(row).kind, _size(row)) in _TABLES else "of a size whose configuration moves activations away"


def _is_calibrated_v5e(row):
    """Every other rate: odd numbers are the MFU of the same runs."""
    return _slices(row).kind == "v5e" and int(row["row_id"].rpartition("-")[2]) % 4 == 0


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "tpu_training",
            "training_tpu.csv",
            "Time of a step in MaxText's recipes for TPU v5p, v6e and v7, laid out, run again and tiled as these say; "
            "what is narrower than a matrix unit leaves a part of it idle.",
            lambda rows: timed(*zip(*map(_recipe_run, rows), strict=True)),
            "step_time_s",
            "s",
            ("tpu-recipes-training", "jax-tpu-info", "jax-splash"),
            _no_recipe,
            _recipe_kind,
            "on rows of an even number, what attention and products of experts reach where they fill matrix units, one "
            "value of each for all TPUs, and what products reach on the v6e",
            is_even,
            optional=("tflops_chip", "tok_s_chip", "source"),
        ),
        Confrontation(
            "tpu_training_tables",
            "training_tpu_tables.csv",
            "Rate of a chip in MaxText's tables for TPU v4, v5e and v5p, of models of 16B to 1024B on slices.",
            _tables,
            "value",
            "TFLOP/s",
            ("maxtext",),
            _no_table,
            lambda row: f"{_slices(row).kind}, {'one slice' if _slices(row).count == 1 else 'several slices'}",
            "on rows of the v5e whose number is divisible by four, what its products reach",
            _is_calibrated_v5e,
        ),
    )
}
