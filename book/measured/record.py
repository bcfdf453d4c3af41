"""`make confront` compares all sets of measurements with their predictions and writes the errors to two files.

`scalebook/measurements/record.json` has each set's errors, its worst row, and how many of its rows lie in the interval
learnt from the other sets. `scalebook/tables/spreads.toml` has the spreads that intervals are computed from.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from scalebook.measurements import CONFRONTATIONS, Result, confront
from scalebook.shell.sentences import say

from .evidence import FAMILIES, are_kin, rows_of, whole
from .yardsticks import yardstick, yardsticks

__all__ = ["FIGURES", "TOLERANCE", "peers", "record", "recorded", "worse", "worse_than_recorded", "write"]

FIGURES = ("median", "mean", "p90")
TOLERANCE = 0.1
LEAST_ROWS = 20
_SLACK = 2e-4  # smaller differences are rounding
_FOLDER = files("scalebook.measurements")
_HEAD = """# How far what is uncertain may be off: the ends that eight in ten lie between, over the value.
#
# Written by `make confront` from the committed measurements; book/measured/spreads.py says how.  `letters` are
# what formulas give: constants, what is taken for a device that was not measured, and what no formula has of a computed
# time; `experts` are the same of steps that visit experts.  A device's stanza is of its own cells.  `rows` is how many
# measurements there are, `sets` how many sets of them.

"""


@cache
def recorded() -> dict:
    """Read record.json: the stored errors of every measured set, interval coverage, and other models' errors."""
    return json.loads((_FOLDER / "record.json").read_text("utf-8"))


def _set(result: Result) -> dict:
    worst = result.worst(1)[0]
    figures = {k: _rounded(x) for k, x in result.summary.items()}
    groups = {k: _rounded(x) for k, x in means(result).items()}
    return {**figures, "worst_row": worst["row_id"], "worst_error": _rounded(worst["error"]), "groups": groups}


def means(result: Result) -> dict[str, float]:
    """Return the mean error of each kind of row with enough rows: the set's mean could hide a worse kind."""
    return {k: x["mean"] for k, x in result.groups.items() if k != "calibrated on" and x["rows"] >= LEAST_ROWS}


def _rounded(x):
    return float(f"{x:.4g}") if isinstance(x, float) else x


def worse(name: str, found: Mapping[str, float], kept: Mapping[str, float]) -> list[str]:
    """Compare a set's new errors (`found`) with recorded ones (`kept`); return a text for each over a tenth larger."""
    beyond = {x: y * (1 + TOLERANCE) + _SLACK for x, y in kept.items() if x in found}
    return [f"{name}: {x} {found[x]:.2%}, kept {kept[x]:.2%}" for x, most in beyond.items() if found[x] > most]


def worse_than_recorded(name: str) -> list[str]:
    """Run a measured set and return a text for each error that is over a tenth larger than in record.json."""
    result, kept = confront(name), recorded()["sets"][name]
    return [
        *worse(name, {x: result.summary[x] for x in FIGURES}, kept),
        *worse(f"{name}, mean of a kind", means(result), kept["groups"]),
    ]


def peers() -> list[dict]:
    """Return, for each other performance model, its error and ours on the same measured rows."""
    found = []
    for name, what in (("serving_tpot", "time per output token"), ("serving_ttft", "time to the first token")):
        ours, theirs, *_ = yardsticks(confront(name))
        found += [(what, ours._replace(name="scalebook")), (what, theirs)]
    for who, name in (("scalebook", "korthikanti_seconds"), ("Calculon", "korthikanti_calculon")):
        result = confront(name)
        found.append(("step of Megatron-LM on A100", yardstick(who, result.predicted / result.measured)))
    return [{"what": what} | _named("who", x) for what, x in found]


def _family(name: str, covered) -> dict:
    """Return a family's errors and the share of its rows inside the interval, by rows and averaged over tables."""
    parts = [(confront(whole(x.name)), rows_of(x.name)) for x in covered]
    errors = np.concatenate([x.errors[picked] for x, picked in parts])
    size, rows = np.abs(errors), np.array([x.rows for x in covered])
    shares, widths = (np.array([getattr(x, n) for x in covered]) for n in ("covered", "width"))
    tables = [shares[[are_kin(x.name, y.name) for y in covered]].mean() for x in covered]
    each = [1 / sum(are_kin(x.name, y.name) for y in covered) for x in covered]
    singles = [(s["single"], s["rows"]) for s in (x.of(picked) for x, picked in parts) if "single" in s]
    figures = {
        "median": np.median(size), "p90": np.quantile(size, 0.9), "bias": errors.mean(),
        "covered": np.average(shares, weights=rows), "covered_sets": np.average(tables, weights=each),
        "width": np.median(widths),
    }  # fmt: skip
    if singles:
        figures["single"] = sum(x * n for x, n in singles) / sum(n for _, n in singles)
    return {"name": name, "sets": len(covered), "rows": len(errors)} | {
        k: _rounded(float(x)) for k, x in figures.items()
    }


def _named(key: str, figures) -> dict:
    """Return figures of one set, device or model as a dict, with its name under `key`."""
    return {key: figures.name} | {k: _rounded(x) for k, x in figures._asdict().items() if k != "name"}


def record() -> dict:
    """Run every measured set and return the dict that `record.json` stores: errors, coverage, other models' errors."""
    from .coverage import coverage, coverage_of_devices

    groups = {"kernels": lambda x: x.startswith("kernels")} | {f: f.__eq__ for f in FAMILIES}
    families = {name: [c for c in coverage() if holds(c.family)] for name, holds in groups.items()}
    return {
        "families": [_family(name, covered) for name, covered in families.items() if covered],
        "sets": {name: _set(confront(name)) for name in CONFRONTATIONS},
        "coverage": [_named("name", x) for x in coverage()],
        "devices": [_named("device", x) for x in coverage_of_devices()],
        "peers": peers(),
    }


def write() -> None:
    """Compute `record.json` and `spreads.toml` anew and overwrite both files in the package's folders."""
    from .spreads import stanzas

    kept = json.dumps(record(), indent=1, ensure_ascii=False) + "\n"
    spread = _HEAD + stanzas()
    Path(str(_FOLDER / "record.json")).write_text(kept, encoding="utf-8")
    Path(str(files("scalebook.tables") / "spreads.toml")).write_text(spread, encoding="utf-8")


def run(arguments: list[str]) -> str:
    """Compare all sets of measurements with predictions, write the files, and return the text of the results."""
    write()
    return "\n\n".join(repr(confront(name)) for name in CONFRONTATIONS)


if __name__ == "__main__":
    say(run)
