"""Rules on training strategies: which of them can run. Each rule has a sentence for the error message.

>>> check({"tp": 7, "heads": 96, "ffn": 49152})
Traceback (most recent call last):
    ...
ValueError: tp=7 does not divide the 96 heads: tp=1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48 or 96 would do
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Basic

from scalebook.language import NOTATION, Sheet, rules
from scalebook.language.code import broadcast
from scalebook.language.notation import either
from scalebook.language.row import quantity, refuse_parts
from scalebook.language.rules import not_whole, refuse_rows
from scalebook.language.stanzas import tables_of
from scalebook.training.strategy import CHOICES, PROPERTIES

__all__ = ["COUNTS", "RULES", "Rule", "check", "derived", "reason"]

COUNTS = tables_of(__package__, "defaults.toml")["counts"]["letters"]


class Rule(rules.Rule):
    """A rule on training strategies. Inputs that a strategy does not give are derived from others, or have defaults."""

    def of(self, values: Mapping[str, Any]):
        """Return whether the rule holds (a bool or an array), or None if an input that it needs is unknown."""
        try:
            return self.holds(*[values[x] if x in values else _FOLLOWING[x](values) for x in self.needs])
        except KeyError:
            return None


def _stage(layers, pp):
    return -(-layers // pp)  # rounded up


def _fullest(values):
    """Return the blocks of the fullest stage, if the first or the last one may have its own number."""
    own = [values[x] for x in ("first_blocks", "last_blocks") if x in values]
    layers, pp = values["layers"], values["pp"]
    if not own:
        return _stage(layers, pp)
    others = pp - len(own)
    return np.where(others > 0, _stage(layers - sum(own), np.maximum(others, 1)), _stage(layers, pp))


# How rules derive letters that were not given.
_FOLLOWING = {
    "stage_blocks": _fullest,
    "etp": lambda values: values["tp"],  # experts' widths are split like the rest
}
RULES = rules.stated_rules(__name__, Rule, divides=lambda ways, whole: whole % ways == 0, stage_of=_stage, **PROPERTIES)


ADVICE = tuple(x.name for x in RULES if x.advice)
_DEALT_BY_HAND = "pp within layers", "stages have blocks"  # rules that a given number of blocks per stage lifts
_NAMES = {*COUNTS, *(x for rule in RULES for x in rule.needs)}


def derived(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values together with dp, devices and micro-batches that follow from them, and with defaults."""
    known = dict.fromkeys(("tp", "cp", "ep", "pp", "batch", "chunks"), 1) | {"experts": 0, "near_blocks": 3}
    known |= {"offload": False} | dict(values)
    known.setdefault("etp", known["tp"])
    model = known["tp"] * known["cp"] * known["pp"]
    if "dp" not in known and "devices" in known:
        known["dp"] = known["devices"] / model
    if "dp" in known:
        known.setdefault("devices", known["dp"] * model)
        if "microbatches" not in known and "global_batch" in known:
            known["microbatches"] = known["global_batch"] / (known["dp"] * known["batch"])
        elif "microbatches" in known:
            known.setdefault("global_batch", known["microbatches"] * known["dp"] * known["batch"])
    return known


def check(values: Mapping[str, Any], sheet: Sheet | None = None) -> None:
    """Raise ValueError for a strategy that cannot run, with a sentence that names the values that would work.

    `values` has the step's inputs, numbers or arrays. Rules about missing ones are skipped. With a sheet, the
    conditions of its formulas are checked too, as far as their inputs are known.
    """
    refuse(checked_values(values, sheet), sheet)


def checked_values(values: Mapping[str, Any], sheet: Sheet | None = None) -> dict[str, Any]:
    """Return the values that rules or the sheet's conditions read, as numbers or options.

    Raises ValueError for a fraction of something that is counted, and TypeError for a symbol.

    >>> checked_values({"tp": 8, "hbm_bandwidth": "3 TB/s", "recompute": "full"})
    {'tp': 8.0}
    """
    own = _own(values, sheet)
    for name, value in values.items():
        if name not in CHOICES and NOTATION[name].whole:
            refuse_parts(name, own[name] if name in own else quantity(name, value))
    return own


def refuse(own: Mapping[str, Any], sheet: Sheet | None = None) -> None:
    """Raise ValueError for a strategy that cannot run, as `check` does, for values from `checked_values`.

    >>> refuse({"tp": 8.0, "heads": 64.0})
    """
    odd = {n: x for n, x in own.items() if type(x) not in (float, str, bool)}
    _refuse_symbols(odd)
    broadcast(odd)
    known = derived(own)
    lifted = (*ADVICE, *_DEALT_BY_HAND) if "stage_blocks" in own else ADVICE
    if odd:
        _check_each(known, sheet, lifted)
    elif found := _reason(own, known, sheet, lifted):
        raise ValueError(found)


def _own(values, sheet):
    names = _NAMES | {n for _, x in (sheet.conditions if sheet else ()) for n in x.letters}
    own = {
        n: x if isinstance(x, (str, bool)) and n in CHOICES else quantity(n, x) for n, x in values.items() if n in names
    }
    _refuse_symbols(own)
    return own


def _refuse_symbols(own):
    if symbols := [n for n, x in own.items() if isinstance(x, Basic)]:
        raise TypeError(f"a strategy is priced for numbers, not for symbols ({', '.join(symbols)})")


def reason(values: Mapping[str, Any], sheet: Sheet | None = None, lifted: Iterable[str] = ()) -> str | None:
    """Return why a strategy cannot run (the sentence of `check`), or None if it can. Rules in `lifted` are skipped."""
    own = _own(values, sheet)
    return _reason(own, derived(own), sheet, tuple(lifted))


def _reason(values, known, sheet, lifted):
    counts, rules = _readable(frozenset(values), frozenset(known), lifted)
    for letter in counts:
        if known[letter] % 1 or known[letter] < 1:
            return _no_multiple(known) if letter not in values else not_whole(letter, known[letter])
    full = {"stage_blocks": _fullest(known)} | known if "layers" in known else known
    for rule, holds, needs in rules:
        if not holds(*[full[x] for x in needs]):
            return _sentence(rule, known)
    for f, x in _conditions(sheet, known):
        if not x.holds(known):
            return _outside(f.name, x, known)
    return None


@lru_cache(256)
def _readable(names, known, lifted):
    """Return the counts to check and the rules whose letters are known. `names` are given, `known` follow too."""
    known = known | {"stage_blocks"} if "layers" in known else known
    counts = [x for x in COUNTS if x in known and (x in names or x == "dp")]
    rules = [x for x in RULES if x.name not in lifted and known.issuperset(x.needs)]
    return counts, [(x, x.holds, x.needs) for x in rules]


def _conditions(sheet, known):
    for f, x in sheet.conditions if sheet else ():
        if all(n in known for n in x.letters):
            yield f, x


def _check_each(known, sheet, lifted):
    """Check arrays strategy by strategy, and return the reason of the first that cannot run."""
    arrays = {n: x for n, x in known.items() if np.ndim(x)}
    shape = broadcast(arrays)
    fails = np.zeros(shape, bool)
    for letter in COUNTS:
        if letter in known:
            fails |= (np.asarray(known[letter]) % 1 != 0) | (np.asarray(known[letter]) < 1)
    for rule in RULES:
        if rule.name not in lifted and (holds := rule.of(known)) is not None:
            fails |= ~np.asarray(holds, bool)
    for _, x in _conditions(sheet, known):
        fails |= ~np.asarray(x.holds(known), bool)
    refuse_rows(fails, known, lambda one: reason(one, sheet, lifted))


def _sentence(rule, known):
    said = {n: _number(x) for n, x in known.items()}
    said |= {
        "product": _number(known["tp"] * known["cp"] * known["pp"] * known.get("dp", 1)),
        "own_seq": _number(known.get("seq", 0) / known["cp"]),
        "own_batch": _number(known.get("global_batch", 0) / known.get("dp", 1)),
        "shards": _number(known.get("dp", 1) * known["cp"]),
        "spread": _number(known.get("dp", 1) * known["cp"] * known["tp"] / known["etp"]),
        "routed_shards": _number(known.get("dp", 1) * known["cp"] * known["tp"] / (known["ep"] * known["etp"])),
        "stage_blocks": _number(known["stage_blocks"] if "stage_blocks" in known else _fullest({"layers": 1} | known)),
        "others": _number(known["pp"] - 1),
    }
    follows = "global_batch in micro-batches"  # if the batch were changed, the micro-batches would follow
    is_dealt = rule.letter == "pp" and "stage_blocks" in rule.needs and "stage_blocks" in known  # for any pp
    first = ["etp"] if rule.letter == "ep" and "etp" in rule.needs else []  # unsplit widths leave more devices
    letters = [*first, "stage_blocks" if is_dealt else rule.letter, *(x for x in ("devices",) if x in rule.needs)]
    for letter in letters:  # if no dp would work, name the devices
        others = [x for x in RULES if x is rule or (x.letter == letter and not x.advice and x.name != follows)]
        values = _would_do(letter, known, others)
        if len(values):
            break
    return rule.says.format_map(said) + _listed(letter, values, known[letter])


def _number(x):
    if isinstance(x, (str, bool)):
        return x
    return f"{float(x):,.0f}" if 1e6 <= abs(x) < 1e15 else f"{float(x):g}"


def _would_do(letter, known, rules):
    most = 4096 + 2 * min(known.get(letter, 1), 100_000)
    tried = np.arange(1.0, min(most, 100_000))
    fine = np.ones(tried.shape, bool)
    for rule in rules:
        if (holds := rule.of(known | {letter: tried})) is not None:
            fine &= np.broadcast_to(np.asarray(holds, bool), tried.shape)
    return tried[fine]


def _listed(letter, values, near):
    """Return the end of a sentence that lists the values: all, or the nearest if they are many and large."""
    if not len(values):
        return f": no {letter} would do"
    if len(values) > 12 and letter in ("global_batch", "microbatches", "devices"):
        values = np.sort(values[np.argsort(np.abs(values - near), kind="stable")[:4]])
    said, more = [f"{x:g}" for x in values[:12]], len(values) > 12
    if more:
        return f": {letter}={', '.join(said[:8])}, ... would do"
    return f": {letter}={either(said)} would do"


def _no_multiple(known):
    ways = ", ".join(f"{x}={_number(known[x])}" for x in ("tp", "cp", "pp"))
    product = known["tp"] * known["cp"] * known["pp"]
    devices = product * np.arange(1, 2 + known["devices"] // product)
    near = devices[-2:]
    said = f"devices={_number(known['devices'])} is no multiple of {_number(product)} ({ways})"
    return said + _listed("devices", near, 0)


def _outside(name, condition, known):
    """Return the sentence for a formula's condition that fails, with values of a letter that would meet it."""
    own = ", ".join(f"{x}={_number(known[x])}" for x in condition.letters)
    for letter in sorted(condition.letters, key=("microbatches", "pp").__contains__, reverse=True):
        tried = np.arange(1.0, 4097.0)
        values = tried[np.broadcast_to(condition.holds(known | {letter: tried}), tried.shape)]
        if len(values):
            near = np.sort(values[np.argsort(np.abs(values - known[letter]), kind="stable")[:4]])
            return f"{name} holds for {condition.words}, not at {own}" + _listed(letter, near, known[letter])
    return f"{name} holds for {condition.words}, not at {own}"
