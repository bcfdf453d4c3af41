"""Every public entry answers what nobody should give it with a value or one sentence,
and never with an error from inside.
"""

import copy
import csv
import gzip
import inspect
import json
import os
import random
from functools import cache
from pathlib import Path

import pytest

import scalebook.measurements as measurements
from scalebook.calculon import application, calculon_step, execution, library, system
from scalebook.inference.tokens import decoding
from scalebook.language import FORMULAS, NOTATION, Row, Sheet
from scalebook.machine.roofline import ridge_intensity, roofline
from scalebook.measurements import CONFRONTATIONS, confront
from scalebook.tables import accelerators, engines, links, models, precisions, ranges, runs

from .entries import by_keyword, calls, fuzzed, is_part, public
from .fuzz import EDGE, Record, odd
from .support import SHEETS, STATED, cases, draw, written
from .test_huggingface import CONFIGS

LETTERS = list(NOTATION)


@cache
def closed():
    return [f for f in STATED if f.inputs]


def mutated(rng, valid, names=(), depth=0):
    """A copy of a mapping in which some values are odd, missing, extra or renamed."""
    new = dict(valid)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        what, keys = rng.random(), list(new)
        if what < 0.7 and keys:
            key = rng.choice(keys)
            if isinstance(new[key], dict) and rng.random() < 0.7 and depth < 4:
                new[key] = mutated(rng, new[key], (), depth + 1)
            elif isinstance(new[key], list) and new[key] and rng.random() < 0.7:
                new[key] = [*new[key]]
                new[key][rng.randrange(len(new[key]))] = odd(rng)
            else:
                new[key] = odd(rng)
        elif what < 0.8 and keys:
            new.pop(rng.choice(keys))
        elif what < 0.9 and keys:
            new[str(rng.choice(keys))[:-1] or "x"] = new.pop(rng.choice(keys))
        else:
            new[rng.choice([*names, "x", "layers"])] = odd(rng)
    return new


def test_every_entry_that_a_reader_calls_has_a_call_to_fuzz():
    """An entry without one is a part of the engine by its signature."""
    without = [n for n in public() if not calls(n) and not is_part(n)]
    assert not without, f"give a call of {without} in a docstring, or in tests/entries.txt"


def entries(rng, folder):
    """A call of a public entry, as an example has it, with odd, missing, unknown or renamed arguments."""
    name = rng.choice(fuzzed())
    called, plain, named = rng.choice(calls(name))
    takes = inspect.signature(called).parameters
    letters = mutated(rng, named, [*rng.choices([*takes, "x"], k=9), *rng.choices(LETTERS, k=2)])
    if plain and rng.random() < (0.3 if named else 0.9):
        what, place = rng.random(), rng.randrange(len(plain))
        new = plain[place]
        is_mapping = isinstance(new, dict | Row) and what < 0.3
        new = [{**new, rng.choice([*new, "x"]): odd(rng)}] if is_mapping else [odd(rng)] * (what < 0.95)
        plain = [*plain[:place], *new, *plain[place + (what < 0.9) :]]
    yield name, (plain, letters), lambda: called(*plain, **letters), 10.0, by_keyword(called)


def edges(rng, folder):
    """A call that is right but for one letter or two, which are at the edge of what they take, or have many values."""
    name = rng.choice([x for x in fuzzed() if by_keyword(calls(x)[0][0])])
    called, plain, named = rng.choice(calls(name))
    names = [*named] * 3 + list(inspect.signature(called).parameters)[len(plain) :]
    new = {rng.choice(names): rng.choice(EDGE)() for _ in "ab" if names}
    yield name, new, lambda: called(*plain, **named | new), 10.0, True


def point(rng, f):
    return {n: float(x[0]) for n, x in draw(f.inputs, 1, seed=rng.randrange(1000)).items()}


def formulas(rng, folder):
    f = rng.choice(closed())
    letters, knowns = mutated(rng, point(rng, f), LETTERS), [odd(rng)] if rng.random() < 0.2 else []
    yield f.name, (knowns, letters), lambda: f(*knowns, **letters)


def solved(rng, folder):
    f = rng.choice([*closed()[:40], ridge_intensity])
    name, between = rng.choice(f.inputs), rng.choice([odd(rng), (odd(rng), odd(rng)), (1e-3, odd(rng)), None])
    unknown, letters = rng.choice([name, odd(rng), "hiden"]), mutated(rng, point(rng, f), LETTERS)
    yield "solve", (f.name, unknown, between), lambda: f.solve(unknown, between)
    yield "solve then call", (f.name, name, letters), lambda: f.solve(name)(**letters)


def sheets(rng, folder):
    sheet = rng.choice([*SHEETS, roofline, decoding])
    strange, name = odd(rng), rng.choice(list(sheet.formulas))
    letters = mutated(
        rng, {n: float(x[0]) for n, x in draw(sheet.inputs, 1, seed=rng.randrange(1000)).items()}, LETTERS
    )
    knowns = [odd(rng)] if rng.random() < 0.2 else []
    for _ in range(4):
        yield sheet.name, (knowns, letters), lambda: sheet(*knowns, **letters)
    yield "using", (sheet.name, strange), lambda: sheet.using(strange)
    yield "only", (sheet.name, strange), lambda: sheet.only(strange)
    yield "only", (sheet.name, name, strange), lambda: sheet.only(name, given=strange)
    yield "formula", (sheet.name, strange), lambda: sheet.formula(strange)
    yield "formula", (sheet.name, name, strange), lambda: sheet.formula(name, keep=rng.choice([strange, [strange]]))
    yield "Sheet", (strange,), lambda: Sheet("s", rng.choice([strange, ridge_intensity]), strange)
    yield "why", (sheet.name, strange), lambda: roofline(flops=1e9, peak_flops=1e12).why(strange)
    yield "row", (sheet.name, strange), lambda: roofline(flops=1e9, peak_flops=1e12)[strange]


def tables(rng, folder):
    table = rng.choice([accelerators, links, models, precisions, engines, ranges, runs])
    row, strange = rng.choice(list(table.values())), odd(rng)
    yield "key", strange, lambda: table[strange]
    yield "keys", strange, lambda: table[[strange]]
    yield "attribute", strange, lambda: getattr(table, strange if isinstance(strange, str) else "h10")
    yield "in", strange, lambda: strange in table
    yield "get", strange, lambda: table.get(strange)
    yield "having", strange, lambda: table.having(strange)
    yield "columns", strange, lambda: table[rng.sample(list(table), 2)].columns
    yield "row", strange, lambda: row[strange]
    yield "row in", strange, lambda: strange in row
    yield "row.why", strange, lambda: row.why(strange)
    yield "row attribute", strange, lambda: getattr(row, strange if isinstance(strange, str) else "hbm_bandwith")
    device = rng.choice(list(accelerators.values()))
    yield "at", strange, lambda: device.at(strange)


def configs(rng, folder):
    config = mutated(
        rng, copy.deepcopy(CONFIGS[rng.choice(list(CONFIGS))]), ["num_hidden_layers", "text_config", "layer_types"]
    )
    what = rng.random()
    if what < 0.75:
        yield "config", config, lambda: models.read(config)
    elif what < 0.8:
        strange = odd(rng)
        yield "config", strange, lambda: models.read(strange)
    else:
        path = broken(rng, folder, CONFIGS[rng.choice(list(CONFIGS))])
        yield "config file", path.read_bytes()[:300], lambda: models.read(path)


def broken(rng, folder, document):
    """A JSON file that was cut, spoiled or nested."""
    text = json.dumps(document).encode()
    at = rng.randrange(len(text))
    spoiled = [text[:at], text[:at] + b"\xff" + text[at:], b"[" * 100_000, text[:at] + b"9" * 5000 + text[at:], b""]
    spoiled += [b"[]", b"1e999", b'{"a":' * 50_000, text.replace(b'": ', b'": -', 1), text.replace(b"1", b"NaN")]
    text = rng.choice([*spoiled, text.decode().encode("utf-16")])
    path = folder / "config.json"
    path.write_bytes(text)
    return path


def documents(rng, folder):
    model = mutated(rng, library.models[rng.choice(list(library.models))])
    given = mutated(rng, library.example)
    raw = json.loads(Path(measurements.__file__).parents[1].joinpath("calculon/systems.json").read_text("utf-8"))
    machine = mutated(rng, raw[rng.choice(list(raw))])
    strange, shape = odd(rng), library.models["gpt3-175B"]
    yield "application", model, lambda: application(model)
    yield "application", strange, lambda: application(strange)
    yield "execution", given, lambda: execution(given)
    yield "execution", given, lambda: calculon_step(shape, given, library.systems["a100_80g"])
    yield "application", model, lambda: calculon_step(model, library.example, library.systems["h100_80g_nvl8"])
    for _ in range(4):
        yield "system", machine, lambda: calculon_step(shape, library.example, system(machine))
    right = [shape, library.example, library.systems["a100_80g"]]
    wrong = rng.choice([[strange, *right[1:]], [right[0], strange, right[2]], [*right[:2], strange]])
    yield "calculon_step", strange, lambda: calculon_step(*wrong)
    yield "file", "", lambda: execution(broken(rng, folder, library.example))


WORDS = cases("cells that nobody should write", {})["all"]
SLOW = ("calculon_mended", "megatron_bridge", "llm_foundry")  # each row makes a sheet, as those of other sets do
READ = {}


def tables_of_measurements(rng, folder):
    name = rng.choice([x for x in CONFRONTATIONS if x not in SLOW])
    own = Path(measurements.__file__).parent / CONFRONTATIONS[name].file
    if own not in READ:
        opened = gzip.open if own.suffix == ".gz" else open
        with opened(own, "rt", encoding="utf-8", newline="") as file:
            READ[own] = list(csv.DictReader(file))
    rows = [dict(x) for x in rng.sample(READ[own], min(2, len(READ[own])))]
    for _ in range(rng.choice([1, 1, 2])):
        row = rng.choice(rows)
        row[rng.choice(list(row))] = rng.choice([*WORDS, rng.choice(list(row.values()))])
    what = rng.random()
    names = [x for x in rows[0] if x != CONFRONTATIONS[name].measured or what > 0.02]
    path = written(folder, [{x: rows[0][x] for x in names}, *rows[1:]])
    text = path.read_bytes()
    at = rng.randrange(len(text))
    if what > 0.9:
        odd_bytes = (b"\xff\xfe", b'"', b"," * 40, b"\n")
        spoiled = [text[:at] + x + text[at:] for x in odd_bytes]
        path.write_bytes(rng.choice([text[:at], b"", b"\x1f\x8b\x00", text + b"a" * 200_000, *spoiled]))
    if 0.88 < what < 0.9:
        (path := folder / "other.csv.gz").write_bytes(text)
    if 0.87 < what < 0.88:
        path = odd(rng)
    yield f"confront {name}", text[-400:], lambda: confront(name, path)


@pytest.fixture(autouse=True)
def no_letter_stays():
    """Letters that were made up are unknown to whatever test comes next."""
    known = [(x, dict(x)) for x in (NOTATION, FORMULAS)]
    yield
    for x, before in known:
        x.clear()
        x.update(before)


TRIED = [(formulas, 350, 1), (solved, 250, 1), (sheets, 200, 1), (tables, 200, 1), (entries, 1200, 1), (edges, 600, 1)]
TRIED += [(configs, 400, 2), (documents, 150, 2), (tables_of_measurements, 60, 2)]
TIMES = int(os.environ.get("FUZZ", 1))  # FUZZ=300 tries a million inputs


@pytest.mark.parametrize(("trial", "number", "seed"), TRIED)
def test_it_is_answered(trial, number, seed, tmp_path, monkeypatch):
    """A trial draws an input; of those that offer several, one is tried."""
    monkeypatch.chdir(tmp_path)  # an odd text may be the name of a file to write
    record = Record()
    for i in range(number * TIMES):
        rng = random.Random(1_000_003 * seed + i)
        record(*rng.choice(list(trial(rng, tmp_path))))
    record.check(number)
