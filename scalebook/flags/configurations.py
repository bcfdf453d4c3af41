"""Read configurations of training frameworks into inputs of `training_step`, and write strategies as configurations.

No part of a configuration is executed. The message on an unknown flag names the three nearest known ones.
"""

import html
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from scalebook import tables
from scalebook.flags.rules import complete, follow
from scalebook.flags.table import Flag, Flags, frameworks, modules_named, text_of
from scalebook.flags.text import guess, parsed, written
from scalebook.language import Row
from scalebook.language.arguments import checked, is_number
from scalebook.language.notation import either, nearest, quoted
from scalebook.language.renamed import renamed
from scalebook.language.row import one_number
from scalebook.language.tabular import aligned, page_table, styled
from scalebook.training.host import DEFAULT_LETTERS as HOST
from scalebook.training.step import DEFAULT_LETTERS
from scalebook.training.strategy import WORDS, Strategy

__all__ = ["Setup", "read", "write"]

__getattr__ = renamed(__name__)

_READ = ("megatron", "deepspeed", "torchtitan")
# The letters of a strategy.
_LETTERS = ({*DEFAULT_LETTERS} - {*HOST}) | {
    "tp_beside", "dp", "etp", "tp_overlap", "pp_overlap", "microbatches", "global_batch", "seq", "devices",
    "first_blocks", "last_blocks",
}  # fmt: skip
_WAYS = ("tp", "cp", "ep", "pp", "chunks")  # default 1 in every framework
_FOLLOWING = ("offload", "quantized", "kernels", "blocks", "family", "dropout")  # words that no flag sets


@dataclass(frozen=True, repr=False)
class Setup:
    """A configuration that was read: arguments of a training step (`knowns`) and dimensions of the model (`shape`).

    `said` maps each flag to what it sets by itself. `notes` explain settings that no argument can express. `without`
    lists flags that affect no result. `unknown` lists unrecognised flags, each with the three nearest known ones.
    """

    framework: str
    knowns: dict[str, Any]
    shape: dict[str, Any]
    precision: str | None
    said: dict[str, dict[str, Any]]
    notes: tuple[str, ...]
    without: tuple[str, ...]
    unknown: tuple[str, ...]
    flags: frozenset[str] = frozenset()

    @property
    def row(self) -> "tables.Framework":
        """The row of `tables.frameworks` that fits these flags, to pass to `training_step`."""
        rows = frameworks()[self.framework].rows
        return tables.frameworks[next(key for flag, key in rows if not flag or flag in self.flags)]

    def _lines(self) -> list[list[str]]:
        """Return each flag and what it sets, then what follows from several flags or from none."""
        known = frameworks()[self.framework]
        lines = [[known[x].shown, listed(y)] for x, y in self.said.items()]
        stated = {x: y for said in self.said.values() for x, y in said.items()}
        rest = {x: y for x, y in self.knowns.items() if stated.get(x) != y}
        rest |= {"precision": self.precision} if self.precision else {}
        return [*lines, *([["together, or where nothing is said", listed(rest)]] if rest else [])]

    def _rest(self) -> list[str]:
        nothing = ["nothing priced depends on " + ", ".join(self.without)] if self.without else []
        return [*self.notes, *nothing, *(f"not known: {x}" for x in self.unknown)]

    def __repr__(self):
        return "\n".join([aligned([[frameworks()[self.framework].name, ""], *self._lines()], gap="  "), *self._rest()])

    def _repr_html_(self):
        body = page_table([frameworks()[self.framework].name, "letters and words"], self._lines(), kind="sb-row")
        return styled(body, *(f"<p>{html.escape(x)}</p>" for x in self._rest()))


def listed(letters: Mapping) -> str:
    return ", ".join(f"{x} = {y:.4g}" if isinstance(y, float) else f"{x} = {y}" for x, y in letters.items())


def _framework(name: str) -> Flags:
    if not isinstance(name, str) or name not in _READ:
        raise ValueError(f"configurations are read of {either(_READ)}, not of {quoted(name)}")
    return frameworks()[name]


@checked
def read(source: str | PathLike | Mapping, framework: str | None = None, **known) -> Setup:
    """Read a configuration: a Megatron-LM argument list or YAML, a DeepSpeed ds_config.json, a torchtitan TOML.

    `source` is the text, the path of a file, or a parsed JSON or TOML. If `framework` is None it is guessed from the
    source. `known` gives what a configuration does not say: `devices`, or the model's `layers`. The result's `knowns`
    are keywords for `training_step`. Raises ValueError, in one sentence, for flags that contradict each other.

    >>> setup = read({"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 3}})
    >>> setup.framework, setup.knowns
    ('deepspeed', {'batch': 4, 'sharding': 'zero3', 'dp_overlap': 1})
    """
    if stray := [x for x in known if x not in _LETTERS and x != "layers"]:
        raise TypeError(f"a configuration is read with devices or layers, not {quoted(stray[0])}")
    for name, value in known.items():
        one_number(name, value)
    text = source if isinstance(source, Mapping) else _text(source)
    framework = guess(text) if framework is None else framework
    table = _framework(framework)
    values = parsed(text, framework)
    given, notes, without, unknown = _sorted(table, values)
    _check_needs(table, given)
    said = {flag: dict(table[flag].says(value)) for flag, value in given.items()}
    found = _joined(table, said)
    for flag, entry in table.items():
        if entry.usual and flag not in given:
            found = {**entry.says(entry.usual), **found}
            if _is_unsaid(entry, entry.usual):
                notes.append(f"{entry.shown} {entry.usual}, since it is not given: {entry.note}")
    found |= follow(framework, given, found, known)
    if "recompute-modules" in given and found.get("recompute") == "selective":
        found["recompute"] = modules_named(given["recompute-modules"])
    precision = found.pop("precision", None)
    shape = {x.letter for x in table.values() if x.subject == "shape"}
    notes += [f"{table[x].shown} {text_of(given[x])}: {table[x].note}" for x in given if _is_unsaid(table[x], given[x])]
    on = {x: text_of(y) for x, y in values.items() if text_of(y) not in ("false", "none")}
    knowns = {x: y for x, y in (known | found).items() if x not in shape}
    shape = {x: y for x, y in found.items() if x in shape}
    said = {x: y for x, y in said.items() if y}
    flags = frozenset([*on, *(f"{x}={y}" for x, y in on.items())])
    return Setup(framework, knowns, shape, precision, said, tuple(notes), tuple(without), tuple(unknown), flags)


def _sorted(table: Flags, values: Mapping) -> tuple[dict, list[str], list[str], list[str]]:
    """Return the flags that set something, notes on others, flags without effect, and unknown flags."""
    given, notes, without, unknown = {}, [], [], []
    for flag, value in values.items():
        entry, shown = table.find(flag), Flag(table.key, flag).shown
        if entry is None:
            unknown.append(f"{shown}: {nearest(shown, [x.shown for x in table.values()])}")
        elif value is None or (text_of(value) == "auto" and "auto" not in entry.means):
            notes += [f"{entry.shown} is left open: give {' and '.join(entry.names)}"] if entry.names else []
        elif entry.names:
            given[flag] = value
        elif entry.note:
            notes.append(f"{shown}: {entry.note}")
        else:
            without.append(shown)
    return given, notes, without, unknown


def _text(source: str | PathLike) -> str:
    """Return the text itself, or the text of the file that it names."""
    if not isinstance(source, str | PathLike):
        raise TypeError(f"a configuration is text, the path of a file or a dict, not {quoted(source)}")
    if isinstance(source, PathLike) or re.fullmatch(r"\S+\.(json|toml|ya?ml|sh|txt)", source):
        try:
            return Path(source).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"no text can be read from {quoted(str(source))}: {error}") from None
    return source


def _is_unsaid(entry: Flag, value) -> bool:
    """Return True if this value sets nothing by itself, other values of the flag do, and a note says why."""
    return bool(entry.means and entry.note and not entry.says(value) and text_of(value) not in ("false", "none"))


def _check_needs(table: Flags, given: Mapping) -> None:
    on = {x: y for x, y in given.items() if text_of(y) != "false"}
    for flag in on:
        if (needs := table[flag].needs) and on.keys().isdisjoint(needs):
            raise ValueError(f"{table[flag].shown} does nothing without {either(table[x].shown for x in needs)}")


def _joined(table: Flags, set_by: Mapping[str, Mapping]) -> dict[str, Any]:
    """Join what all flags set. Raises ValueError if two of them set a letter to different values."""
    found, by = {}, {}
    for flag, letters in set_by.items():
        for name, value in letters.items():
            if found.get(name, value) != value:
                said = f"{table[by[name]].shown} says {name} = {found[name]} and {table[flag].shown} {name} = {value}"
                raise ValueError(f"{said}: leave one of them out")
            found[name], by[name] = value, flag
    return found


@checked
def write(strategy, framework: str = "megatron", layers: int | None = None, **letters) -> str:
    """Write a strategy in a framework's own format: an argument list, a JSON or a TOML.

    `strategy` is a dict of inputs of `training_step`, a `Strategy`, a search result, or what `read` returned. Inputs
    that a framework sets in the model's code, without a flag, are left out. The text is read back as a check: raises
    ValueError naming any input that the framework has no flag for.

    >>> write(dict(tp=8, sequence_parallel=True, sharding="zero1"))
    '--tensor-model-parallel-size 8 --sequence-parallel --use-distributed-optimizer'
    """
    table = _framework(framework)
    wanted = _wanted(strategy) | letters
    if stray := [x for x in wanted if x not in _LETTERS and x not in WORDS and x != "precision"]:
        raise TypeError(f"a strategy has no letter {quoted(stray[0])}; {nearest(stray[0], [*_LETTERS, *WORDS])}")
    wanted = {x: getattr(y, "name", _plain(y)) for x, y in wanted.items()}
    if layers is not None and not is_number(layers):
        raise TypeError(f"layers is a number of blocks, not {quoted(layers)}")
    said = [(x, y) for x, y in wanted.items() if x != "recompute"]
    if odd := next((x for x in said if not (x[1] is None or isinstance(x[1], str | bool) or is_number(x[1]))), None):
        raise TypeError(f"{odd[0]} of a strategy is one number or word, not {quoted(odd[1])}")
    found = _simple(table, wanted)
    if "recompute" in wanted:
        named = wanted["recompute"] = WORDS["recompute"].value(wanted["recompute"])  # modules in one order
        if named not in WORDS["recompute"].values:
            found |= {"recompute-granularity": "selective", "recompute-modules": named.replace(",", " ")}
    complete(framework, wanted, found, layers)
    text = written({x: found[x] for x in table if x in found}, framework)
    _check_same(table, wanted, text, layers)
    return text


def _wanted(strategy) -> dict[str, Any]:
    if isinstance(strategy, Strategy):
        return strategy.words
    if isinstance(strategy, Row):
        words = {x: y for x, y in strategy.words.items() if x in WORDS}
        return {x: strategy[x] for x in strategy if x in _LETTERS and not _of_row(x, strategy.cells[x])} | words
    known = getattr(strategy, "knowns", strategy)
    if not isinstance(known, Mapping):
        raise TypeError(f"a strategy is letters and words, or what a search found, not {quoted(strategy)}")
    precise = {"precision": strategy.precision} if isinstance(strategy, Setup) and strategy.precision else {}
    return dict(known) | precise


def _of_row(letter: str, cell) -> bool:
    """Return True if a letter is a default of a framework's row and not a flag of the run."""
    return cell.origin in {x.name for x in tables.frameworks.values()} or (
        letter.endswith("_overlap") and bool(cell.formula)
    )


def _plain(value):
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _simple(table: Flags, wanted: Mapping) -> dict[str, Any]:
    """Return the flags that set one letter alone, or a value of a word."""
    found, done = {}, set()
    for flag, entry in table.items():
        if entry.letter in wanted and entry.letter not in done and entry.subject != "shape":
            done.add(entry.letter)
            if entry.letter not in _WAYS or wanted[entry.letter] != 1:
                found[flag] = wanted[entry.letter]
        for value, means in entry.means.items():
            if means and done.isdisjoint(means) and all(x in wanted and wanted[x] == y for x, y in means.items()):
                done |= means.keys()
                if value != entry.usual:
                    found[flag] = int(value) if value.isdigit() else {"true": True, "false": False}.get(value, value)
    return found


def _check_same(table: Flags, wanted: Mapping, text: str, layers: int | None) -> None:
    """Raise ValueError for letters and words that are lost when the text is read back."""
    ours = {x: wanted[x] for x in ("devices", "dp") if x in wanted} | ({"layers": layers} if layers else {})
    back = read(text, table.key, **ours) if text else None
    found = DEFAULT_LETTERS | Strategy().words | (back.knowns if back else {})
    found["precision"] = back.precision if back else None
    found = {"etp": found["tp"], "microbatches": 1} | found | ({} if back else ours)
    for name, value in wanted.items():
        if name in (*_FOLLOWING, *table.elsewhere) or (name in WORDS and not _matters(name, wanted)):
            continue
        if name == "microbatches" and {"global_batch", "dp"} <= found.keys():
            found[name] = found["global_batch"] / (found["dp"] * found["batch"])
        if name == "global_batch" and name not in back.knowns and {"microbatches", "dp"} <= found.keys():
            found[name] = found["microbatches"] * found["dp"] * found["batch"]
        if found.get(name) != value:
            raise ValueError(f"{table.name} has no flags for {name}={quoted(value)}")


def _matters(name: str, wanted: Mapping) -> bool:
    """Return True if a word makes a difference, or if too little is known to tell."""
    says = WORDS[name].says
    needs = inspect.signature(says).parameters if says else ()
    return not needs or not all(x in wanted for x in needs) or bool(says(**{x: wanted[x] for x in needs}))
