"""Calculon's study over numbers of devices: the best strategy at every multiple of eight, up to 16,384.

The study covers the three models and three machines of its authors' poster. `python -m scalebook.book.measured.sizes`
recomputes it and writes sizes.csv: 18 billion strategies in 4 min 14 s on two idle cores of an x86 server (443 CPU
seconds), with at most 0.3 GiB per process (2026-11-23).
"""

import csv
import itertools
import resource
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from importlib.resources import files

from scalebook.calculon.documents import application
from scalebook.calculon.library import models, systems
from scalebook.calculon.strategies import Strategies
from scalebook.search import Search, search

__all__ = ["BATCH", "EACH", "MODELS", "SYSTEMS", "at_sizes", "fewest", "kept", "written"]

MODELS = ("megatron-1T", "turing-530B", "gpt3-175B")
SYSTEMS = ("h100_80g_nvl32_mem2_1TiB_100GBps", "h100_160g_nvl32_mem2_2TiB_100GBps", "h100_80g_nvl32_mem2_inf")
EACH, BATCH = range(8, 16385, 8), 4096
_STUDY = {f"{model} on {system}": (model, system) for model, system in itertools.product(MODELS, SYSTEMS)}


def at_sizes(model: str, system: str, devices: Iterable[int], executor=None, progress=None) -> dict[int, Search]:
    """Search Calculon's strategies for a model on a system, both of its library, at each number of devices."""
    thing = Strategies(systems[system])
    given = dict(global_batch=BATCH, pareto=False, best=1, most=1e12, executor=executor, progress=progress)
    found = search(thing, application(models[model]), devices=devices, **given)
    return {int(x.problem.values["devices"]): x for x in getattr(found, "searches", [found])}


def fewest(found: dict[int, Search]) -> dict[int, float]:
    """Return the fewest seconds per sequence at each number of devices that has a strategy."""
    return {n: x.best[0].sequence_time for n, x in found.items() if x.best}


def kept() -> dict[tuple[str, str], dict[int, float]]:
    """Read sizes.csv: by model and system, then by number of devices, the fewest device-seconds per sequence.

    >>> work = kept()["megatron-1T", SYSTEMS[0]]
    >>> len(work), work[12248] / work[12128] > 3  # 12,248 devices have 1,531 as a factor, and are slower than fewer
    (2047, True)
    """
    with (files(__package__) / "sizes.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {own: {int(x["devices"]): float(x[name]) for x in rows if x[name]} for name, own in _STUDY.items()}
    return {own: values for own, values in found.items() if values}


def written(found: dict[tuple[str, str], dict[int, float]]) -> str:
    """Return the text of sizes.csv from the fewest seconds per sequence, `found[model, system][devices]`.

    The file has these seconds times the number of devices, to five digits.
    """
    lines = [",".join(["devices", *_STUDY])]
    for n in EACH:
        values = (found[own].get(n) for own in _STUDY.values())
        lines.append(",".join([str(n), *("" if x is None else f"{n * x:.5g}" for x in values)]))
    return "\n".join(lines) + "\n"


def main() -> None:
    found = {}
    with ProcessPoolExecutor(2) as pool:
        for own in _STUDY.values():
            swept = at_sizes(*own, EACH, pool)
            count, seconds = (sum(getattr(x, n) for x in swept.values()) for n in ("count", "seconds"))
            print(*own, f"{len(swept):,} sizes, {count:,} strategies, {seconds:.0f} s", flush=True)
            found[own] = fewest(swept)
    spent = [resource.getrusage(x) for x in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"{sum(x.ru_utime + x.ru_stime for x in spent):.0f} CPU s; at most {max(x.ru_maxrss for x in spent):,} kB")
    with open(str(files(__package__) / "sizes.csv"), "w", encoding="utf-8", newline="") as file:
        file.write(written(found))


if __name__ == "__main__":
    main()
