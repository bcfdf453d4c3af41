"""Calculon's study over system sizes: the best strategy of all, at each number of devices, for its three models on the
three machines of its authors' poster.

`python -m scalebook.calculon.sizes` writes what stands in sizes.csv anew; with `every=8` at each multiple of eight
devices, which takes some minutes on two cores.

>>> found = kept()
>>> {x["system"] for x in found} == set(SYSTEMS)
True
"""

import csv
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from importlib.resources import files

from scalebook.search import Sweep, sweep

from .documents import application
from .library import models, systems
from .strategies import Strategies

__all__ = ["BATCH", "MODELS", "SYSTEMS", "at_sizes", "kept"]

MODELS = ("megatron-1T", "turing-530B", "gpt3-175B")
SYSTEMS = ("h100_80g_nvl32_mem2_1TiB_100GBps", "h100_160g_nvl32_mem2_2TiB_100GBps", "h100_80g_nvl32_mem2_inf")
BATCH = 4096
_COLUMNS = ("model", "system", "global_batch", "devices", "strategies", "sequence_time", "tp", "pp", "dp")


def at_sizes(model: str, system: str, devices: Iterable[int], executor=None, progress: bool | None = None) -> Sweep:
    """The sweep of one model on one machine."""
    thing = Strategies(systems[system])
    given = dict(devices=devices, global_batch=BATCH, executor=executor, progress=progress)
    return sweep(thing, application(models[model]), **given)


def rows(model: str, system: str, found: Sweep) -> list[dict]:
    """What was found, a line for each size that has a strategy."""
    result = []
    for n in found.values:
        one = found[n]
        best = one.best[0]
        own = (model, system, BATCH, n, one.count, best.sequence_time, best.tp, best.pp, best.dp)
        result.append(dict(zip(_COLUMNS, (f"{x:.17g}" if isinstance(x, float) else str(x) for x in own), strict=True)))
    return result


def kept() -> list[dict]:
    """What sizes.csv has."""
    with (files(__package__) / "sizes.csv").open(encoding="utf-8", newline="") as file:
        return [{n: x if n in _COLUMNS[:2] else float(x) for n, x in row.items()} for row in csv.DictReader(file)]


def main(asked: list[str]) -> None:
    every = next((int(x.removeprefix("every=")) for x in asked if x.startswith("every=")), 0)
    chosen = [x for x in asked if x in MODELS] or MODELS[:1]
    # one in fifteen of the multiples of eight, and the round ones
    sizes = range(every, 16385, every) if every else sorted({*range(8, 16385, 120), *range(512, 16385, 512)})
    found = []
    with ProcessPoolExecutor(2) as pool:
        for model in chosen:
            for system in SYSTEMS:
                swept = at_sizes(model, system, sizes, pool)
                print(model, system, repr(swept).partition("\n")[0], f"{swept.seconds:.0f} s", flush=True)
                found += rows(model, system, swept)
    with open(str(files(__package__) / "sizes.csv"), "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


if __name__ == "__main__":
    main(sys.argv[1:])
