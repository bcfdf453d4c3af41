"""The data of the planner's page, as JSON: formulas, rules, tables, sources and measured runs.

Building the formulas takes most of a minute, so the JSON is kept in the user's cache folder, under a digest of the
package.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from itertools import chain, product
from pathlib import Path

import scalebook
from scalebook import tables
from scalebook.answers import assumptions, changes, costs
from scalebook.block import blocks_of
from scalebook.display.meanings import PARTS
from scalebook.inference.assumptions import READ_CELLS
from scalebook.inference.capacity import LONG
from scalebook.inference.part_kernels import kinds_of_attention, measured_kernels
from scalebook.inference.rules import BEYOND
from scalebook.inference.rules import RULES as SERVING_RULES
from scalebook.inference.serving import Serve, serve
from scalebook.inference.session_search import STACKS
from scalebook.inference.step import EXCHANGES, OVERLAPS
from scalebook.language import NOTATION, SOURCES, Row
from scalebook.language.building import uncollected
from scalebook.language.interval import SPREADS
from scalebook.pipeline.schedules import SCHEDULES
from scalebook.rl.rollouts import update_sheet
from scalebook.rl.update import OF_PROGRAM, rl_step
from scalebook.runs.costs import device_power_of_system, power_hour_of_device, price_hour_owned, run_bill
from scalebook.search.arguments import margins
from scalebook.tables import accelerators, engines, frameworks, libraries, models, precisions
from scalebook.tables.assumed import unsold
from scalebook.training.frameworks import FASTEST, SLOWEST, UNNAMED
from scalebook.training.rules import RULES as TRAINING_RULES
from scalebook.training.shardings import SHARDINGS
from scalebook.training.space import usual_choices
from scalebook.training.step import DEFAULT_LETTERS, default_letters_at, training_step
from scalebook.training.strategy import CHOICES

from .flags import flag_texts
from .row_data import row_data
from .rules import configurations, rules
from .sheets import MODULES, SIGNS, Graph, kind_of, listed_models, serving, training
from .trust import measured, trained, trust

__all__ = ["DEFAULT_PLANS", "planner_data", "planner_json"]

# What a page asks before its reader does.
DEFAULT_PLANS = {
    "train": dict(
        job="train", model="llama3_405b", device="h100", precision="bf16", framework=UNNAMED, targets={}, fixed={},
        beside=[],
        letters=dict(devices=1024, global_batch=1024, seq=8192, train_tokens=15.6e12),
    ),
    "serve": dict(
        job="serve", model="deepseek_v3", device="b200", precision="fp8", engine=Serve.engine, fixed={}, beside=[],
        letters=dict(devices=8, users=64, prompt=1024, output=1024), targets=dict(ttft=1, tpot=0.03),
    ),
    "agents": dict(
        job="agents", model="llama3_70b", device="h200", precision="fp8", engine=Serve.engine, fixed={}, beside=[],
        letters=dict(
            devices=64, sessions=400, turns=33, prefix=12_000, appended=1891, output=351, pause=5.2, pause_spread=1.18,
            prompt_spread=0, answer_spread=0,
        ),
        targets=dict(ttft=2, tpot=0.06),
    ),
    "rl": dict(
        job="rl", model="qwen3_32b", device="h100", precision="bf16", framework="nemo_rl", targets={}, fixed={},
        beside=[], rollout=dict(tp=4), training=dict(tp=4, cp=1, pp=2, ep=1),
        letters=dict(
            devices=128, responses=8192, response=5000, response_spread=0.8, response_most=28_672, age=0
        ),
    ),
}  # fmt: skip

# What the page's scripts read of a row by name, and of a device by its precision.
READ = (
    "gating", "heads", "hbm_capacity", "host_capacity", "index_heads", "kv_rank", "kv_width", "layers", "linear_layers",
    "max_context", "moe_layers", "output_gate", "price_hour", "q_rank", "scale_block", "shared_experts",
    "tier_bandwidth", "tier_capacity", "tier_latency", "drafted", "acceptance",
)  # fmt: skip
# Where a device's own kernels that read a kind of cache stand in its row.
READS = {kind: {f.letter: cell for cell, f in own.items()} for kind, own in READ_CELLS.items()}
# Where letters of an update come from that are no formula of its sheet.
_STEPS, _LAW = "decode steps of the engine, as serve prices them", "the lognormal law of the lengths"
MADE = dict(pass_base=_STEPS, pass_answer=_STEPS, pass_token=f"{_STEPS}; cached tokens are part of the other two")
MADE |= dict(response_square=_LAW, response_typical=_LAW, longest_response=_LAW, response_group="answers over engines")
MADE |= dict(in_flight="what the engines hold", learning_time="training_step with this framework and these ways")
MADE |= dict(weight_bits="weights travel in 16 bits", rollout_devices="the share of the devices that write")
MADE |= dict(train_devices="the other devices, or all of them in turn")
# What a framework says of models with experts, and a model of its blocks while it is trained.
FRAMEWORK = (
    "moe_element_passes", "moe_block_wait", "moe_block_launch", "mtp_blocks", "clamped_experts", "attention_backward",
)  # fmt: skip
BITS = ("weight_bits", "kv_bits", "activation_bits")
# The order of the data, found by trial: gzip looks back 32 kB, so what resembles each other stands together (-2 kB).
_ORDER = (
    "measured", "formulas", "letters", "parts", "reads", "rl", "start", "tiers", "space", "precisions", "assumed",
    "formats", "libraries", "flags", "margins", "usual", "schedules", "frameworks", "spreads", "changes", "engines",
    "drafts", "ends", "devices", "kinds", "kernels", "serve", "train", "trained", "modules", "models", "others",
    "configs", "beyond", "shardings", "rules", "notes", "trust", "bill", "follows", "sources",
)  # fmt: skip


@uncollected()
def planner_data(parts: bool = False) -> dict:
    """Return all data of the planner's page, computed anew, as a dict that can be written as JSON.

    Models with a list of parts (the word `blocks`) are named in `others`; with `parts` they are priced like all others.
    """
    graph, listed = Graph(), listed_models(parts)
    sheets = dict(
        train=training(graph, parts),
        serve=serving(graph, parts),
        follows=graph.numbers(tables.FOLLOWS),
        bill=_bill(graph),
        rl=_updates(graph),
    )
    said = dict(sheets, **_formulas(graph))
    notes: dict[tuple, int] = {}
    ruled = {x for rule in (*TRAINING_RULES, *SERVING_RULES) for x in rule.needs}
    used = (
        ruled
        | {x for x in graph.nodes if isinstance(x, str)}
        | {*READ, *READS["grouped"].values(), *READS["latent"].values()}
    )
    used |= {*FRAMEWORK, *OF_PROGRAM}
    trained_with = {x for row in frameworks.values() for x in row.words.get("libraries", "").split()}
    of_training = {k: x for k, x in libraries.items() if x.words["library"] in trained_with}
    served = {
        k: x for k, x in engines.items() if len(x.kin) == 1 and "chunk_tokens" in x
    }  # no releases, none of one user
    tables_of = dict(models=listed, devices=accelerators, engines=served, frameworks=frameworks)
    tables_of |= dict(libraries=of_training, tiers=tables.tiers, drafts=tables.drafts)
    said |= {name: row_data(table, notes, used) for name, table in tables_of.items()} | dict(notes=list(notes))
    said["others"] = {key: row.name for key, row in models.items() if key not in listed}
    said["configs"] = configurations()
    formats = {}
    for row in precisions.values():
        if row.words["kind"] == "format":
            formats[row.words["peak"]] = min(formats.get(row.words["peak"], row.activation_bits), row.activation_bits)
    bits = {k: {x: row[x] for x in BITS} for k, row in precisions.items() if row.words["kind"] == "format"}
    said |= dict(formats=formats, precisions=bits)
    said["reads"] = READS
    by_parts = {kind_of(x): kinds_of_attention(*blocks_of(x)) for x in listed.values() if "blocks" in x.words}
    said["kinds"] = {"": ["indexed", "delta"]} | by_parts  # of attention, by a model's list of parts
    said["kernels"] = engine_kernels(served, dict.fromkeys(chain.from_iterable(said["kinds"].values())))
    wide = {n: x.value / 32 for n, x in default_letters_at(32).items() if x.note}
    said["usual"] = dict(train=DEFAULT_LETTERS, wide=wide, serve=Serve.usual, rate=dict(generations=LONG))
    said["usual"] |= dict(engine=Serve.engine, framework=UNNAMED)
    words = dict(exchange=(*EXCHANGES, "none"), overlap=OVERLAPS)
    said["beyond"] = BEYOND
    said["unsold"] = {x: why for row in accelerators.values() if (why := unsold(x := row.words["vendor"]))}
    said["rules"] = dict(train=rules(TRAINING_RULES, CHOICES), serve=rules(SERVING_RULES, words))
    said["schedules"] = {k: dict(chunks=x.chunks, plain=x.plain, copies=x.copies) for k, x in SCHEDULES.items()}
    said["shardings"] = {k: dict(gathered=x.is_gathered, groups=x.has_groups) for k, x in SHARDINGS.items()}
    said |= dict(trust=trust(), trained=trained(), measured=measured(), flags=flag_texts())
    said |= dict(margins=margins(training_step), start=DEFAULT_PLANS, modules=MODULES, ends=[FASTEST, SLOWEST])
    said["assumed"], said["changes"], said["space"] = _assumed(), _changes(), _space()
    said["spreads"] = {x: [*ends, *SPREADS.with_experts.get(x, ())] for x, ends in SPREADS.items()}
    said["parts"] = {x: part for x, part in PARTS.items() if NOTATION[x].unit in ("s", "B")}
    said |= _words(said, {x for x in graph.nodes if isinstance(x, str)}, listed)
    return {name: said[name] for name in _ORDER} | said


def engine_kernels(served: Mapping, kinds: Iterable[str]) -> list:
    """Return the measured kernels of hybrid models: kind of attention, letters, and devices as text by engine."""
    found: dict = {}
    for engine, (key, device), kind in product(served, accelerators.items(), kinds):
        if row := measured_kernels([kind], served[engine], device):
            found.setdefault((kind, *row.items()), {}).setdefault(engine, []).append(key)
    return [[kind, dict(row), {x: " ".join(y) for x, y in of.items()}] for (kind, *row), of in found.items()]


def _bill(graph) -> dict:
    """What makes days and dollars of a step, and what it rests on where a plan says nothing."""
    owned = graph.numbers((price_hour_owned, power_hour_of_device, device_power_of_system))
    known = {n: [x.value, x.origin, x.source, x.note] for n, x in costs.inputs_of(Row("nothing", {}), {}).items()}
    return dict(sheet=graph.numbers(run_bill.formulas.values()), owned=owned, known=known)


def _updates(graph) -> dict:
    """The sheets of an update, together and apart, and what it rests on that a plan does not say: values and others."""
    unsaid = rl_step.unsaid(models.qwen3_32b, accelerators.h100)
    named = {x: [unsaid[x][0], unsaid[x][2]] for x in ("prompt", "optimizer_steps", "forward_passes")}
    return dict(
        sheets=[graph.numbers(update_sheet(x).formulas.values()) for x in (False, True)],
        unsaid=named,
        own=OF_PROGRAM,
        made=MADE,
    )


def _assumed() -> dict:
    """From which share on an assumption is said, how many are, and other values of letters without ends and of options.

    A plan always names its precision, which says the weights' bits, and a search of the page chooses all other options.
    """
    others = {n: x for n, x in assumptions.OTHERS.items() if n != "weight_bits"}
    options = {n: assumptions.TRIED["options"][n] for n in ("activation_bits", "recompute", "sharding")}
    said = dict(least=assumptions.LEAST, most=assumptions.MOST, steps=assumptions.STEPS)
    return said | dict(others=others, options=options)


def _changes() -> dict:
    """What is tried as a next change, and the least gain that is worth one."""
    tried = {n: x for n, x in changes.TRIED.items() if n not in ("others", "options", "bill", "costs")}
    return tried | dict(least=changes.LEAST, recompute=CHOICES["recompute"])


def _space() -> dict:
    """What searches go through where nothing is given.

    Of services by letter the name of its values, or what a word may be, and whether only models with experts have it; a
    letter that is not here is one.  Of training steps what does not follow from the devices.
    """
    devices, own = 96, 16
    powers = [2.0**x for x in range(7)]
    names = {
        "powers": powers,
        "powers up to experts": [x for x in powers if x <= own],
        "each": [*range(1, devices + 1)],
    }
    layouts, _ = serve.posed([(models.mixtral_8x7b, accelerators.h100)], dict(devices=devices, users=1))
    found = {}
    for experts in (0, own):
        for name, values in layouts.space.usual(dict(devices=devices, experts=experts)).items():
            is_letter = name in NOTATION
            said = next(n for n, x in names.items() if x == [*values]) if is_letter else [*values]
            found.setdefault(name, [said, bool(experts)])
    steps = {n: x for n, x in usual_choices(dict(devices=1)).items() if n in ("batch", "chunks") or n in CHOICES}
    return dict(serve=found, train=steps, tiers=STACKS)


def _formulas(graph) -> dict:
    """Return the formulas: descriptions without repetition (each formula names one by its distance from the last
    one used), domains, and all expressions as one text.
    """
    said: dict[tuple, int] = {}
    of = []
    for letter, _, name, sources, doc, _, stated in graph.formulas:
        of.append(said.setdefault((letter, name, tuple(sources), doc, stated), len(said)))
    domains = {i: [[words, letters] for words, _, letters in f[5]] for i, f in enumerate(graph.formulas) if f[5]}
    text, signs = graph.written([*(f[1] for f in graph.formulas), *(x[1] for f in graph.formulas for x in f[5])])
    changes = [x - last for last, x in zip([0, *of], of, strict=False)]
    return dict(formulas=dict(text=text, words=signs, signs=SIGNS, domains=domains, of=changes, said=list(said)))


def _words(said, letters, listed) -> dict:
    """Return the letters and the sources that any part of the data names."""
    of_formulas = said["formulas"]["said"]
    letters = letters | {x[0] for x in of_formulas}
    tables = [said[x] for x in ("models", "devices", "engines", "frameworks", "libraries", "tiers", "drafts")]
    letters |= {x for table in tables for x in table["letters"]}
    letters |= {x for table in (listed, accelerators) for row in table.values() for x in row}  # links say them
    letters |= {"memory_margin", "first_blocks", "last_blocks", *said["rl"]["unsaid"], *said["bill"]["known"]}
    letters |= DEFAULT_PLANS["agents"]["letters"].keys()
    letters |= {x for x in NOTATION if x.startswith(("peak_", "matmul_", "training_", "storage_"))}  # one's own device
    cited = {x for own in of_formulas for x in own[2]}
    cited |= {row["source"] for table in tables for row in table["rows"].values()}
    cited |= (
        {x for x, _ in said["notes"]}
        | {x[2] for x in said["bill"]["known"].values()}
        | {x["source"] for x in said["flags"]["serve"].values()}
    )
    keys = sorted({x.partition(" ")[0] for x in cited} & SOURCES.keys())
    found = {x: NOTATION[x] for x in sorted(letters)}
    return dict(
        letters={k: _letter(x) for k, x in found.items()},
        sources={k: [_title(SOURCES[k]), SOURCES[k].get("url", "")] for k in keys},
    )


def _letter(x) -> list:
    """Return a letter's printed form, meaning and unit, its sign unless it is positive, and 1 if it is whole."""
    if x.whole or x.sign != "positive":
        return [x.tex, x.meaning, x.unit, x.sign, *([1] if x.whole else [])]
    return [x.tex, x.meaning, x.unit]


def _title(source) -> str:
    parts = (source.get("author"), source.get("title"), source.get("year"))
    return ", ".join(str(x) for x in parts if x)


@cache
def planner_json(parts: bool = False) -> str:
    """Return `planner_data` as JSON text, from the user's cache unless the package or the planner has changed."""
    digest = hashlib.sha256(bytes(parts))
    for folder in (Path(str(files(scalebook))), Path(__file__).parent):
        for path in sorted(x for x in folder.rglob("*") if x.suffix in (".py", ".toml", ".csv")):
            # What is drawn changes no formula; the meanings of parts are data of the page.
            if path.parent.name != "display" or path.stem == "meanings":
                digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "scalebook"
    kept = folder / f"planner-{digest.hexdigest()[:20]}.json"
    if kept.exists():
        return kept.read_text("utf-8")
    text = json.dumps(planner_data(parts), separators=(",", ":"), ensure_ascii=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in sorted(folder.glob("planner-*.json"), key=lambda x: x.stat().st_mtime)[:-4]:
            old.unlink(missing_ok=True)
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_text(text, "utf-8")
        part.replace(kept)  # whole or not at all, whoever else is at it
    except OSError:  # where nothing can be kept it is made anew next time
        pass
    return text
