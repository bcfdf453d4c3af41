"""Columns of training tables that follow from others by more than a pattern: configurations by name, and stages."""

import re
from functools import cache

import numpy as np

from scalebook.inference.tail import any_slow

from .confrontation import Readings
from .rows import Measurement, number

__all__ = ["nanotron_readings", "nanotron_stages", "nanotron_stages_of", "own_configuration"]


def own_configuration(row: Measurement) -> Measurement:
    """Return layout and precision of the one configuration named like the row's machine, if several fit.

    The configuration's file name gives them, as in config_XE9680x8H200-SXM-141GB_1x8x2xtp1pp1cp2.sh.
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
    """Return nanotron's pipeline stages, each as (layers, has the embedding, has the head).

    A stage is full once its share of the arithmetic is exceeded; the head counts by its matrix.

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
    """Return the blocks of the first, the fullest and the last stage, and the number of stages in use."""
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


def nanotron_readings(stanza, rows: list[Measurement]) -> Readings:
    """Return both readings of each run, even nodes or one slow node, since rows do not say which."""
    runs = [stanza.call(row).runs[0] for row in rows]
    even = np.array([x.step_time - x.stall_exposed for x in runs])
    stalled = np.array([x.stall_time * x.received_tensors * (x.microbatches + x.pp - 1) for x in runs])
    chance = np.array([any_slow(slow_share=x.slow_share, ways=x.devices / x.scaleup_size) for x in runs])
    chance = np.where([x.tp > x.stall_ways for x in runs], 1.0, chance) * (stalled > 0)  # one stage gets no messages
    return Readings(np.array([even, even + stalled]), np.array([1 - chance, chance]))
