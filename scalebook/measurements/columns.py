"""Functions that add columns to measured rows, computed from the other columns, such as a layout from a run's name.

The file of a measured set names one in `complete` or `readings`, as `columns:FUNCTION`, and says the reason in `why`.
"""

import re
from functools import cache

import numpy as np

from scalebook.inference.expert_layer import block_rows_xpu
from scalebook.language.stanzas import file_of
from scalebook.tables import frameworks

from .confrontation import Readings
from .rows import Measurement, number, read_rows

__all__ = [
    "drawn_loads", "nanotron_readings", "nanotron_stages", "nanotron_stages_of", "own_configuration", "timed",
    "uneven_loads",
]  # fmt: skip

# Training


def own_configuration(row: Measurement) -> Measurement:
    """Return the layout and precision that a row's own configuration file states, or {} if no single file fits.

    A file's name holds its layout, as in config_XE9680x8H200-SXM-141GB_1x8x2xtp1pp1cp2.sh.
    """
    name = re.sub(r"^\d+x", "", row["system"])  # without the number of machines
    own = [x for x in row["config_matched"].split(";") if name in x]
    said = re.search(r"xtp(\d+)pp(\d+)cp(\d+)", own[0]) if len(own) == 1 else None
    if row["precision"].startswith(("nvfp4", "fp8")) or not said:
        return {}
    found = dict(zip(("tp", "pp", "cp"), said.groups(), strict=True))
    return found | {"precision": "nvfp4 (its own)" if "fp4" in own[0] else "fp8 (its own)"}


@cache
def nanotron_stages(layers: int, hidden: int, ffn: int, vocab: int, pp: int) -> tuple[tuple[int, bool, bool], ...]:
    """Return how nanotron splits a model into pipeline stages: (blocks, has the embedding, has the head) of each.

    It fills a stage until its share of the arithmetic is exceeded; the head counts by its matrix.

    >>> nanotron_stages(16, 2048, 8192, 131072, 4)
    ((6, True, False), (5, False, False), (5, False, False), (0, False, True))
    """
    block, head = 4 * hidden**2 + 3 * hidden * ffn, vocab * hidden
    total, done, stage = layers * block + head, 0, 0
    found = [[0, i == 0, False] for i in range(pp)]
    for _ in range(layers):
        found[stage][0] += 1
        done += block
        stage += done * pp > total * (stage + 1)
    found[min(stage, pp - 1)][2] = True
    return tuple(map(tuple, found))


def nanotron_stages_of(row: Measurement) -> Measurement:
    """Return a row with added columns: blocks in the first, the fullest and the last stage, and the stages in use."""
    try:
        layers, *sizes, pp = (int(number(row, x)) for x in ("layers", "hidden", "ffn", "vocab", "pp"))
    except ValueError:
        return {}
    if max(layers, pp) > 10_000:  # no model: too many stages would be listed
        return {}
    stages = nanotron_stages(layers, *sizes, pp)
    blocks = [x[0] for x in stages]
    used = 1 + [last for *_, last in stages].index(True)  # stages after the head are empty
    found = {"first_blocks": blocks[0], "stage_blocks": max(blocks), "last_blocks": blocks[-1], "used_stages": used}
    return {name: str(x) for name, x in found.items()}


# Pipelines of the 3.57B model that are nearer to the first series, of those that are labelled second and first.
_OF_FIRST = (0.12, 0.99)


def nanotron_readings(stanza, rows: list[Measurement]) -> Readings:
    """Return two predictions for each nanotron run, because the rows do not say which of two series a run is from."""
    runs = [stanza.call(row).runs[0] for row in rows]
    tensors = np.array([x.received_tensors * (x.microbatches + x.pp - 1) for x in runs])
    stalled = frameworks.nanotron_early.stall_time * tensors
    later = np.array([x.step_time - x.stall_exposed for x in runs])
    chance = np.where([row["series"] == "first" for row in rows], *_OF_FIRST[::-1]) * (tensors > 0)
    return Readings(np.array([later, later + stalled]), np.array([1 - chance, chance]))


# Pipelines


@cache
def _rows_with_times() -> list[Measurement]:
    rows, _ = read_rows(file_of(__package__, "pipeline_zero_bubble.csv"))
    return [row for row in rows if row["t_f_ms"]]


def _blocks(row: Measurement) -> float:
    """Return the transformer blocks of a whole stage; the first and the last stage have one fewer."""
    return (number(row, "layers") + 2) / number(row, "p")


def timed(row: Measurement) -> Measurement:
    """Return a row's forward and backward times, or scale the times of its model's nearest row."""
    near = [x for x in _rows_with_times() if x["model"] == row["model"]]
    if row["t_f_ms"] or not near:
        return {"how": ""}
    keys = ("p", "mbs", "microbatches")
    best = min(near, key=lambda x: [abs(np.log(number(x, k) / number(row, k))) for k in keys])
    tokens = number(row, "mbs") / number(best, "mbs")
    work = tokens * _blocks(row) / _blocks(best)
    times = {x: repr(number(best, x) * work) for x in ("t_f_ms", "t_b_ms", "t_w_ms")}
    return times | {"t_comm_ms": repr(number(best, "t_comm_ms") * tokens), "how": ", times in proportion"}


# Loads of experts, drawn as the benchmark of `moe_uneven` draws them.  Only their distribution is published, and the
# script that assigns them to experts, which changed between releases of TensorRT-LLM.

_BY_XPU = ("b60",)  # whose kernels choose the height of their blocks by `block_rows_xpu`
OLD_SCRIPT = ("a100_sxm",)  # measured with TensorRT-LLM 1.0 and its script; the others with 1.3 and the later one


def _raised(counts, most, left):
    """Raise counts by `left` in all along the last axis, one at a time: always the first smallest that has room."""
    low, high = counts.min(-1), most.max(-1)
    while (low < high).any():
        level = (low + high + 1) // 2
        fits = (np.clip(level[..., None], counts, most) - counts).sum(-1) <= left
        low, high = np.where(fits, level, low), np.where(fits, high, level - 1)
    raised = np.clip(low[..., None], counts, most)
    able = (raised == low[..., None]) & (raised < most)
    return raised + (able & (able.cumsum(-1) <= (left - (raised - counts).sum(-1))[..., None]))


def _level(loads, left, tokens):
    """Correct rounding over the devices in turn: add to the emptiest expert with room, or take from the fullest."""
    way = np.where(left < 0, -1, 1)[:, None, None]
    counts, most = way * loads, np.where(way < 0, 0, tokens + 0 * loads)
    room = (most - counts).sum(-1)
    return way * _raised(counts, most, _raised(0 * room, room, np.abs(left)))


def _steepen(loads, left, tokens):
    """Correct rounding by adding to the fullest experts with room, or by taking from the emptiest."""
    for one, more in zip(loads.reshape(len(loads), -1), left, strict=True):
        while more:
            room = tokens - one if more > 0 else one
            able = np.flatnonzero(room)
            order = able[np.argsort(-one[able], kind="stable")]
            picked = order[:more] if more > 0 else order[more:]
            change = np.sign(more) * max(1, min(abs(more) // len(able), room[able].min()))  # rounds over all, at once
            one[picked] += change
            more -= change * len(picked)
    return loads


@cache
def uneven_loads(experts, top_k, tokens, ways, exponent, deal=_level, draws=32):
    """Draw uneven loads of experts from a power law; return the tokens of each expert on the fullest of `ways` devices.

    Each of `draws` is a row. Loads have density x^-exponent and are scaled, rounded, and limited to all tokens for one
    expert, as in AIConfigurator's benchmark (power_law_logits_v3). `deal` assigns the tokens lost to rounding: by
    default to the devices in turn, and there to the emptiest expert.

    >>> loads = uneven_loads(experts=128, top_k=8, tokens=16384, ways=16, exponent=1.2)
    >>> loads.shape, float(round(loads.sum(axis=1).mean() / (16384 * 8 / 16), 1))
    ((32, 8), 2.9)
    """
    low, high = (1, 0.8 * tokens) if tokens * top_k > experts else (0.01, 2)
    chance, power = np.random.default_rng(0).random((draws, int(experts))), 1 - exponent
    drawn = ((high**power - low**power) * chance + low**power) ** (1 / power)
    loads = np.round(np.minimum(drawn / drawn.sum(axis=1, keepdims=True) * tokens * top_k, tokens)).astype(int)
    left = int(tokens * top_k) - loads.sum(axis=1)
    loads = deal(loads.reshape(draws, int(ways), -1), left, int(tokens))
    return loads[np.arange(draws), loads.sum(axis=2).argmax(axis=1)]


def drawn_loads(row: Measurement) -> dict[str, str]:
    """Return the fullest device's mean tokens, active experts and row blocks over random expert routings."""
    if not row["distribution"].startswith("power_law_"):
        return {}
    tokens, top_k, experts, ep = (number(row, x) for x in ("num_tokens", "topk", "num_experts", "moe_ep_size"))
    deal = _steepen if row["system"] in OLD_SCRIPT else _level
    loads = uneven_loads(experts, top_k, tokens, ep, float(row["distribution"].rpartition("_")[2]), deal)
    height = 128 if row["moe_dtype"] == "fp8_block" and tokens * top_k / experts > 64 else 64
    if row["system"] in _BY_XPU:
        bits = 16 if row["moe_dtype"] == "bfloat16" else 8
        height = block_rows_xpu(expert_rows=tokens * top_k / experts, weight_bits=bits)
    found = loads.sum(axis=1), (loads > 0).sum(axis=1), np.ceil(loads / height).sum(axis=1)
    names = ("fullest_tokens", "fullest_experts", "fullest_blocks")
    return {name: repr(float(x.mean())) for name, x in zip(names, found, strict=True)}
