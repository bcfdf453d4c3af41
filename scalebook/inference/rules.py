"""Rules on serving layouts: which can run. Each has a sentence for the error message."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from scalebook.language import rules
from scalebook.language.code import broadcast
from scalebook.language.notation import either
from scalebook.language.rules import not_whole

__all__ = ["BEYOND", "COUNTS", "NETWORK", "RULES", "Rule", "check", "reach", "reason", "unreached"]

COUNTS = ("tp", "pp", "ep", "etp", "attention_dp", "replicas", "users")
NETWORK = ("scaleup_bandwidth", "scaleup_size", "scaleout_bandwidth")  # cells that devices need to share a model
BEYOND = "a network that is known"
_MOST = 1024  # largest value tried for a suggestion


class Rule(rules.Rule):
    """A rule on serving layouts. Inputs that a call leaves out have their defaults."""

    def known(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values, with the defaults of inputs that are not given."""
        return _derived(values)


RULES = (
    Rule("tp divides heads", "tp", lambda tp, heads: heads % tp == 0, "tp={tp} does not divide the {heads} heads"),
    Rule("tp fits kv_heads", "tp", lambda tp, kv_heads: (kv_heads % tp == 0) | (tp % kv_heads == 0),
         "tp={tp} neither divides the {kv_heads} kv_heads nor is a multiple of them"),
    Rule("tp divides ffn", "tp", lambda tp, ffn: ffn % tp == 0, "tp={tp} does not divide the ffn of {ffn}"),
    Rule("tp divides linear_key_heads", "tp", lambda tp, linear_key_heads: linear_key_heads % tp == 0,
         "tp={tp} does not divide the {linear_key_heads} linear_key_heads"),
    Rule("pp within layers", "pp", lambda pp, layers: pp <= layers, "pp={pp} is more than the {layers} layers"),
    Rule("ep has experts", "ep", lambda ep, experts: (ep == 1) | (experts > 0),
         "ep={ep} spreads experts, and the model has none"),
    # If `ep` does not divide the experts, some experts have copies; the average device is priced.
    Rule("ep within experts", "ep", lambda ep, experts: (experts == 0) | (ep <= experts),
         "ep={ep} is more than the {experts} experts"),
    Rule("ep divides the devices", "ep", lambda ep, tp, attention_dp, experts: (experts == 0)
         | (tp * attention_dp % ep == 0),
         "ep={ep} does not divide the {group} devices (tp attention_dp) that share a layer's experts"),
    Rule("etp has experts", "etp", lambda etp, experts: (etp == 1) | (experts > 0),
         "etp={etp} splits the widths of experts, and the model has none"),
    Rule("ep and etp are the devices", "etp", lambda ep, etp, tp, attention_dp, experts: (experts == 0)
         | (ep * etp == tp * attention_dp),
         "ep={ep} times etp={etp} is not the {group} devices (tp attention_dp) that share a layer's experts"),
    Rule("etp divides expert_ffn", "ep", lambda etp, ep, tp, attention_dp, expert_ffn: expert_ffn % etp == 0,
         "etp={etp} (tp attention_dp/ep) does not divide the expert_ffn of {expert_ffn}"),
    Rule("groups exchange tokens", "attention_dp", lambda attention_dp, experts, exchange: (attention_dp == 1)
         | (experts == 0) | (exchange != "all_reduce"),
         "exchange='all_reduce' leaves tokens within a group, and attention_dp={attention_dp} groups share the "
         "experts: exchange='all_to_all' would do"),
    Rule("sent to other devices", "ep", lambda tp, attention_dp, ep, experts, exchange: (tp * attention_dp == 1)
         | (experts == 0) | (exchange != "all_to_all") | (ep > 1),
         "exchange='all_to_all' sends tokens to the devices of their experts, and with ep=1 all have every expert: "
         "exchange='gather' would do"),
    Rule("messages to hide", "tp", lambda overlap, tp, attention_dp, experts: (overlap != "half_batches") | (tp > 1)
         | (attention_dp > 1) & (experts > 0),
         "overlap='half_batches' hides messages between devices, and here none are sent: overlap='none' would do"),
    Rule("half batches", "batch", lambda overlap, batch, pp: (overlap != "half_batches") | (batch >= 2 * pp),
         "overlap='half_batches' deals the sequences of a group of devices out in two, {batch} are too few for its "
         "pp={pp} stages: overlap='none' would do"),
    Rule("fullest over mean", "fullest_share", lambda fullest_share: fullest_share >= 1,
         "fullest_share={fullest_share} is the fullest device's load over the mean, which is no less: fullest_share=1, "
         "where all are as full, would do"),
    Rule("fullest of several", "fullest_share", lambda fullest_share, ep, experts: (experts == 0) | (ep > 1)
         | (fullest_share == 1),
         "fullest_share={fullest_share} compares devices with different experts, and with ep=1 all have the same: "
         "fullest_share=1 would do"),
    Rule("fullest group over mean", "fullest_group", lambda fullest_group: fullest_group >= 1,
         "fullest_group={fullest_group} is the fullest group's sequences over the mean, which is no less: "
         "fullest_group=1, where all have as many, would do"),
    Rule("fullest of several groups", "fullest_group", lambda fullest_group, attention_dp: (attention_dp > 1)
         | (fullest_group == 1),
         "fullest_group={fullest_group} compares groups that attend apart, and with attention_dp=1 there is one: "
         "fullest_group=1 would do"),
    Rule("moe_layers within layers", "moe_layers", lambda moe_layers, layers: moe_layers <= layers,
         "moe_layers={moe_layers} is more than the {layers} layers"),
    Rule(BEYOND, "tp", lambda tp, pp, attention_dp, reach: tp * pp * attention_dp <= reach,
         "tp={tp}, pp={pp} and attention_dp={attention_dp} share the model over more devices than the {reach} that "
         "known networks join"),
    Rule("top_k within experts", "top_k", lambda top_k, experts: (experts == 0) | (top_k <= experts),
         "top_k={top_k} is more than the {experts} experts"),
)  # fmt: skip
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
    if fails.any():
        place = np.unravel_index(np.flatnonzero(fails)[0], shape)
        first = {n: float(np.broadcast_to(x, shape)[place]) if np.ndim(x) else x for n, x in own.items()}
        raise ValueError(f"in {fails.sum():,} of {fails.size:,} rows, the first: {reason(first)}")


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
