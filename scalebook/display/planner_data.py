"""What the planner's page is made of besides its scripts: formulas, rules, tables, sources and measured runs, as JSON.

Making the formulas takes some twenty seconds, so the JSON is kept in the user's cache, under a digest of the package.
"""

import hashlib
import json
import os
from functools import cache
from importlib.resources import files
from pathlib import Path

import scalebook
from scalebook import tables
from scalebook.inference.rules import RULES as SERVING_RULES
from scalebook.inference.serving import Serve
from scalebook.inference.step import EXCHANGES, OVERLAPS
from scalebook.language import NOTATION, SOURCES
from scalebook.pipeline.schedules import SCHEDULES
from scalebook.tables import accelerators, engines, models, precisions
from scalebook.training.rules import RULES as TRAINING_RULES
from scalebook.training.shardings import SHARDINGS
from scalebook.training.step import USUAL
from scalebook.training.strategy import CHOICES

from .planner_flags import flag_texts
from .planner_rules import configurations, rules
from .planner_sheets import Graph, serving, training
from .planner_trust import measured, trust

__all__ = ["planner_data", "planner_json"]

BITS = ("weight_bits", "kv_bits", "activation_bits")


def planner_data() -> dict:
    """All of it, made anew."""
    graph = Graph()
    sheets = dict(train=training(graph), serve=serving(graph), follows=graph.numbers(tables._FOLLOWS))
    said = dict(sheets, nodes=graph.nodes, formulas=graph.formulas)
    of_models, of_devices, of_engines = (_rows(x) for x in (models, accelerators, engines))
    said |= dict(models=of_models, devices=of_devices, engines=of_engines, configs=configurations())
    formats = {}
    for row in precisions.values():
        if row.words["kind"] == "format":
            formats[row.words["peak"]] = min(formats.get(row.words["peak"], 16), row.activation_bits)
    bits = {k: {x: row[x] for x in BITS} for k, row in precisions.items() if row.words["kind"] == "format"}
    said |= dict(formats=formats, precisions=bits)
    said["usual"] = dict(train=USUAL, serve=Serve.usual)
    words = dict(exchange=(*EXCHANGES, "none"), overlap=OVERLAPS)
    said["rules"] = dict(train=rules(TRAINING_RULES, CHOICES), serve=rules(SERVING_RULES, words))
    said["schedules"] = {k: dict(chunks=x.chunks, plain=x.plain, copies=x.copies) for k, x in SCHEDULES.items()}
    said["shardings"] = {k: dict(gathered=x.is_gathered, groups=x.has_groups) for k, x in SHARDINGS.items()}
    said |= dict(trust=trust(), measured=measured(), flags=flag_texts())
    return said | _words(said)


def _words(said) -> dict:
    """The letters and the sources that anything here names."""
    letters = {x for x in said["nodes"] if isinstance(x, str)} | {f[0] for f in said["formulas"]}
    rows = [row for table in ("models", "devices", "engines") for row in said[table].values()]
    letters |= {x for row in rows for x in row["letters"]}
    cited = {x for f in said["formulas"] for x in f[3]} | {row["source"] for row in rows}
    cited |= {x for row in rows for x, _ in row["sources"].values()}
    keys = sorted({x.partition(" ")[0] for x in cited} & SOURCES.keys())
    found = {x: NOTATION[x] for x in sorted(letters)}
    return dict(
        letters={k: [x.tex, x.meaning, x.unit, x.sign, int(x.whole)] for k, x in found.items()},
        sources={k: [_title(SOURCES[k]), SOURCES[k].get("url", "")] for k in keys},
    )


def _title(source) -> str:
    parts = (source.get("author"), source.get("title"), source.get("year"))
    return ", ".join(str(x) for x in parts if x)


def _rows(table) -> dict:
    """Names, words and letters of a table's rows; the source that most cells have, and those of the others."""
    found = {}
    for key, row in table.items():
        cells = row.cells
        own = [c.source for c in cells.values() if c.source]
        usual = max(set(own), key=lambda x: (own.count(x), x), default="")
        others = {
            x: [c.source, c.note] for x, c in cells.items() if c.formula is None and (c.source != usual or c.note)
        }
        others |= {x: ["", f"follows: {c.formula.name}"] for x, c in cells.items() if c.formula is not None}
        letters = {x: _number(c.value) for x, c in cells.items()}
        found[key] = dict(name=row.name, words=dict(row.words), letters=letters, source=usual, sources=others)
    return found


def _number(x: float):
    return int(x) if x == int(x) and abs(x) < 2**53 else x


@cache
def planner_json() -> str:
    """The same as text, from the cache where the package has not changed since."""
    own = Path(str(files(scalebook)))
    digest = hashlib.sha256()
    for path in sorted(x for x in own.rglob("*") if x.suffix in (".py", ".toml", ".csv")):
        if path.parent.name == "display" and not path.name.startswith("planner_"):
            continue  # what is drawn changes no formula
        digest.update(path.relative_to(own).as_posix().encode() + path.read_bytes())
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "scalebook"
    kept = folder / f"planner-{digest.hexdigest()[:20]}.json"
    if kept.exists():
        return kept.read_text("utf-8")
    text = json.dumps(planner_data(), separators=(",", ":"), ensure_ascii=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("planner-*.json"):
            old.unlink(missing_ok=True)
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_text(text, "utf-8")
        part.replace(kept)  # whole or not at all, whoever else is at it
    except OSError:  # where nothing can be kept it is made anew next time
        pass
    return text
