"""Rules on serving layouts: which can run. Each has a sentence for the error message."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sympy import Basic

from scalebook.language import rules
from scalebook.language.code import broadcast
from scalebook.language.notation import either
from scalebook.language.row import as_rows, joined, quantity
from scalebook.language.rules import not_whole, refuse_rows

__all__ = ["BEYOND", "COUNTS", "NETWORK", "RULES", "Rule", "check", "reach", "reason", "unreached", "with_copies"]

COUNTS = ("tp", "pp", "ep", "etp", "attention_dp", "replicas", "users")
NETWORK = ("scaleup_bandwidth", "scaleup_size", "scaleout_bandwidth")  # cells that devices need to share a model
BEYOND = "a network that is known"
_WAYS = ("tp", "pp", "attention_dp")  # ways to split a copy of the model
_MOST = 1024  # largest value tried for a suggestion


class Rule(rules.Rule):
    """A rule on serving layouts. Inputs that a call leaves out have their defaults."""

    def known(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values, with the defaults of inputs that are not given."""
        return _derived(values)


RULES = rules.stated_rules(__name__, Rule)
_ABOUT = {x for rule in RULES for x in rule.needs}


def _derived(values: Mapping) -> dict:
    """Return the values together with defaults and letters that follow."""
    known = {"tp": 1, "ep": 1, "pp": 1, "attention_dp": 1, "experts": 0, "overlap": "none"} | dict(values)
    if "users" in known:
        known["batch"] = np.maximum(1, known["users"] / (known.get("replicas", 1) * known["attention_dp"]))
    if "hbm_bandwidth" in known:  # a device's row, which may lack cells that the networks need
        known["reach"] = reach(known)
    if "etp" not in known:
        known["etp"] = known["tp"] * known["attention_dp"] / known["ep"] if np.all(known["experts"]) else 1
    return known


def with_copies(knowns: tuple, letters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call's letters with the `replicas` that its `devices` hold, if it gives devices.

    Raises ValueError if a device would be left over, or if the call gives replicas that make another number.

    >>> with_copies((), {"devices": 8, "tp": 2})["replicas"]
    4.0
    """
    rows = tuple(x for x in as_rows(knowns) if isinstance(x, Mapping))
    if not any("devices" in x for x in (*rows, letters)):
        return letters
    known = {n: x.value for n, x in joined(rows, letters).items() if not x.inputs}  # what a call computed is not given
    known = {n: quantity(n, (known | letters)[n]) for n in ("devices", *_WAYS, "replicas") if n in known | letters}
    if "devices" not in known or any(isinstance(x, Basic) for x in known.values()):
        return letters
    shape, each = broadcast(known), math.prod(known.get(x, 1.0) for x in _WAYS)
    copies = known.get("replicas", known["devices"] / each)
    refuse_rows(np.broadcast_to(each * np.floor(copies) != known["devices"], shape), {"tp": 1.0} | known, _left_over)
    return {**letters, "replicas": copies}


def _left_over(known: Mapping[str, float]) -> str:
    """Return why copies of the model do not make the devices of a call, and which numbers of devices would do."""
    ways, devices = {n: x for n, x in known.items() if n != "devices"}, known["devices"]
    made, said = math.prod(ways.values()), [f"{n}={x:g}" for n, x in ways.items()]
    if "replicas" in ways:
        said = f"{', '.join(said)} make {made:g} devices, not {devices:g}: devices={made:g} would do"
        return not_whole("replicas", ways["replicas"]) or said
    near = [f"{made * x:g}" for x in (devices // made, devices // made + 1) if x]
    return f"devices={devices:g} is no multiple of {made:g} ({', '.join(said)}): devices={either(near)} would do"


def reach(known: Mapping[str, Any]) -> float:
    """Return how many devices the known networks can join: 1 with none, a scale-up domain, or infinity."""
    if not {"scaleup_bandwidth", "scaleup_size"} <= {*known}:
        return 1.0
    return np.inf if "scaleout_bandwidth" in known else known["scaleup_size"]


def unreached(rows: Iterable, known: Mapping[str, Any], rejected: Mapping[str, int]) -> str:
    """Return a sentence about layouts that a search skipped because the device's row has no network for them, or ""."""
    if BEYOND not in rejected:
        return ""
    name = next((row.name for row in rows if "hbm_bandwidth" in row and hasattr(row, "name")), "the device")
    lacking, most = [x for x in NETWORK if x not in known], reach(known)
    joined = f"more than {most:g} devices" if most > 1 else "several devices"
    return f"{rejected[BEYOND]:,} over {joined} are left out, since {name} has no {either(lacking)}, which may be given"


def check(values: Mapping[str, Any]) -> None:
    """Raise ValueError for a layout that cannot run: what is wrong, and what would do. Missing inputs break no rule."""
    own = {n: x for n, x in values.items() if n in _ABOUT or n in COUNTS}
    arrays = {n: x for n, x in own.items() if np.ndim(x)}
    if not arrays:
        if said := reason(own):
            raise ValueError(said)
        return
    shape = broadcast(arrays)
    fails = np.zeros(shape, bool)
    for letter in COUNTS:
        if letter in own:
            fails |= (np.asarray(own[letter]) % 1 != 0) | (np.asarray(own[letter]) < 1)
    with np.errstate(all="ignore"):
        for rule in RULES:
            if (holds := rule.of(own)) is not None:
                fails |= ~np.asarray(holds, bool)
    refuse_rows(fails, own, reason)


def reason(values: Mapping[str, Any], sheet=None, lifted: Iterable[str] = ()) -> str | None:
    """Return why a serving layout cannot run, or None. Rules in `lifted` and conditions of `sheet` are skipped."""
    for letter in COUNTS:
        if letter in values and (said := not_whole(letter, values[letter])):
            return said
    for rule in RULES:
        if rule.name not in lifted and rule.of(values) == False:  # noqa: E712  (None is not known)
            known = _derived(values)
            said = {n: x if isinstance(x, str) else f"{x:g}" for n, x in known.items() if n in _ABOUT}
            said["group"] = f"{known['tp'] * known['attention_dp']:g}"
            return rule.says.format_map(said) + ("" if "would do" in rule.says else _listed(rule, values, lifted))
    return None


def _listed(rule: Rule, values: Mapping, lifted) -> str:
    """Return the values of a rule's letter that break none of its rules, as the end of a sentence."""
    tried = np.arange(1.0, _MOST + 1)
    fine = np.ones(tried.shape, bool)
    for x in RULES:
        if x.letter == rule.letter and x.name not in lifted:
            holds = x.of({**values, rule.letter: tried})
            fine &= True if holds is None else holds
    said = [f"{x:g}" for x in tried[fine]]
    if not said:
        return f": no {rule.letter} would do"
    return f": {rule.letter}={either(said) if len(said) <= 12 else ', '.join(said[:8]) + ', ...'} would do"
