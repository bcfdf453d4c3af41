"""The table of training frameworks' flags (`flags.toml`), with an object for each flag."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from scalebook.language.notation import either, quoted
from scalebook.language.renamed import renamed
from scalebook.language.stanzas import tables_of
from scalebook.language.units import is_masked
from scalebook.language.words import WORDS
from scalebook.pipeline.schedules import SCHEDULES
from scalebook.training.optimizers import OPTIMIZERS
from scalebook.training.rules import COUNTS, not_whole

__all__ = ["Flag", "Flags", "first_formulas", "frameworks", "number", "optimizer_named", "text_of"]

__getattr__ = renamed(__name__)


@dataclass(frozen=True)
class Flag:
    """One flag of a framework, with its source. It sets the input `letter`, or `means` says what each value sets."""

    framework: str
    flag: str
    subject: str = ""
    letter: str = ""
    means: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    usual: str = ""
    when: Mapping[str, str] = field(default_factory=dict)
    about: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    note: str = ""
    source: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the quantities and options that the flag sets, by itself or together with other flags."""
        found = [self.letter, *(x for value in self.means.values() for x in value), *self.about]
        return tuple(dict.fromkeys(filter(None, found)))

    @property
    def shown(self) -> str:
        """The flag as users write it, such as "--tensor-model-parallel-size"."""
        return f"--{self.flag}" if self.framework == "megatron" else self.flag

    def formulas(self) -> list[str]:
        """Return names of formulas: the first for each quantity or option of the flag, and a schedule's bubble."""
        schedules = [SCHEDULES[x["schedule"]] for x in self.means.values() if "schedule" in x]
        first = _table()[0]
        return list(dict.fromkeys([*(x.bubble.name for x in schedules), *(first[x] for x in self.names if x in first)]))

    def says(self, value) -> Mapping[str, Any]:
        """Return the arguments that one value of the flag sets by itself, such as {"tp": 8}, or raise ValueError."""
        if self.letter:
            found = number(self.shown, value)
            if self.letter in COUNTS and not_whole(self.letter, found):
                raise ValueError(f"{self.shown} is {quoted(value)}: a whole number from 1 up belongs here")
            return {self.letter: found}
        if not self.means:
            return {}
        said = text_of(value)
        for name, means in self.means.items():
            if name.lower() == said.lower():
                return means
        if said == "false" and "true" in self.means:  # a flag given without a value has no other value
            return {}
        raise ValueError(f"{self.shown} is {quoted(value)}, of which nothing is known; known are {either(self.means)}")


def text_of(value) -> str:
    """Return a value as it is written on a command line, such as "true" or "8"."""
    text = value if isinstance(value, str) else quoted(value)
    return text.lower() if isinstance(value, bool) else str(text)


def number(flag: str, value) -> float:
    """Read a flag's value as a count or a share, an int if whole. Raises ValueError, naming the flag, otherwise."""
    try:
        found = float("nan") if isinstance(value, bool) or is_masked(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = float("nan")
    if not 0 <= found < float("inf"):
        more = ", a variable: write its value" if text_of(value).startswith("$") else ": a number belongs here"
        raise ValueError(f"{flag} is {quoted(value)}{more}")
    return int(found) if found == int(found) else found


def optimizer_named(name, mode: str = "duplicated") -> str | None:
    """Return our name ("muon", "sgd", ...) for an optimizer that a framework calls `name`; None if it counts as Adam.

    `mode` says how devices share the matrices of Muon. Raises ValueError for an unknown mode.

    >>> optimizer_named("dist_muon"), optimizer_named("muon", "distributed"), optimizer_named("AdamW")
    ('muon', 'muon_distributed', None)
    """
    name = text_of(name).lower().removeprefix("dist_")
    if name != "muon":
        return "sgd" if name == "sgd" else None
    modes = {x.mode: word for word, x in OPTIMIZERS.items() if x.mode}
    if not isinstance(mode, str | None) or mode not in modes:
        raise ValueError(f"--muon-tp-mode is {quoted(mode)}, of which nothing is known; known are {either(modes)}")
    return modes[mode]


def modules_named(value) -> str:
    """Return the value of our option `recompute` for the modules that a Megatron-Core flag says to recompute."""
    names = value if isinstance(value, list) else re.findall(r"\w+", text_of(value))
    return "selective" if names == ["core_attn"] else WORDS["recompute"].value(names)


class Flags(Mapping):
    """The flags of one framework by name. `find` also knows names that match a pattern, such as "wandb-*"."""

    def __init__(self, key: str, stanza: Mapping):
        self.key, self.name, self.source = key, stanza["name"], stanza["source"]
        self.rows = tuple(map(tuple, stanza.get("rows", ())))  # a flag, and the framework's row if it is given
        self.elsewhere = tuple(stanza.get("elsewhere", ()))  # letters that the model's code sets
        self._lines, self._begun = {}, {x: Flag(key, x) for x in stanza.get("without", ())}
        for flag, cells in stanza["flags"].items():
            said = {x: tuple(y) if x in ("about", "needs") else y for x, y in cells.items()}
            if isinstance(said.get("when"), str):
                said["when"] = {"=True": said["when"]}
            line = Flag(key, flag, **{"source": self.source, **said})
            if "*" in flag:
                self._begun = {flag: line, **self._begun}  # patterns with a note come first
            else:
                self._lines[flag] = line

    def __getitem__(self, flag):
        return self._lines[flag]

    def __iter__(self):
        return iter(self._lines)

    def __len__(self):
        return len(self._lines)

    def find(self, flag: str) -> Flag | None:
        """Return the entry of a flag, or of a pattern that matches its name; None if there is neither."""
        if not isinstance(flag, str):
            raise TypeError(f"a flag is a text, not {quoted(flag)}")
        return self._lines.get(flag) or next((y for x, y in self._begun.items() if fnmatchcase(flag, x)), None)


@cache
def _table() -> tuple[dict[str, str], dict[str, Flags]]:
    stanzas = tables_of(__package__, "flags.toml")
    first = stanzas.pop("formulas")
    return first, {x: Flags(x, y) for x, y in stanzas.items()}


def first_formulas() -> dict[str, str]:
    """Return, for each quantity and option that flags set, the name of the first formula that uses it."""
    return _table()[0]


def frameworks() -> dict[str, Flags]:
    """Return the flags of every framework ("megatron", "deepspeed", ...) by its name.

    >>> frameworks()["deepspeed"]["gradient_accumulation_steps"].letter
    'microbatches'
    """
    return _table()[1]
