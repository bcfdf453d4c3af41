"""Rules on training strategies: which of them can run. Each rule has a sentence for the error message.

>>> check({"tp": 7, "heads": 96, "ffn": 49152})
Traceback (most recent call last):
    ...
ValueError: tp=7 does not divide the 96 heads: tp=1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48 or 96 would do
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sympy import Basic

from scalebook.language import NOTATION, Sheet, rules
from scalebook.language.code import broadcast
from scalebook.language.notation import either
from scalebook.language.row import quantity, refuse_parts
from scalebook.language.rules import not_whole
from scalebook.pipeline.schedules import SCHEDULES
from scalebook.training.shardings import SHARDINGS
from scalebook.training.strategy import CHOICES

__all__ = ["COUNTS", "RULES", "Rule", "check", "derived", "reason"]

COUNTS = (
    "devices", "global_batch", "tp", "cp", "ep", "etp", "pp", "dp", "batch", "chunks", "microbatches", "seq",
    "shard_group", "newton_steps", "first_blocks",
)  # fmt: skip


class Rule(rules.Rule):
    """A rule on training strategies. Inputs that a strategy does not give are derived from others, or have defaults."""

    def of(self, values: Mapping[str, Any]):
        """Return whether the rule holds (a bool or an array), or None if an input that it needs is unknown."""
        try:
            return self.holds(*[values[x] if x in values else _FOLLOWING[x](values) for x in self.needs])
        except KeyError:
            return None


def _split(whole, ways):
    return whole % ways == 0


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


SHAPES = (  # holds of no model, whatever the strategy
    Rule("kv_heads divide heads", "kv_heads", lambda kv_heads, heads: _split(heads, kv_heads),
         "kv_heads={kv_heads} do not divide the {heads} heads"),
    Rule("embeddings are one or two", "embeddings", lambda embeddings: (embeddings == 1) | (embeddings == 2),
         "embeddings={embeddings} is neither one matrix for input and output nor one for each"),
    Rule("a gate or none", "gating", lambda gating: (gating == 0) | (gating == 1),
         "gating={gating} is neither with a gate nor without"),
    Rule("moe_layers within layers", "moe_layers", lambda moe_layers, layers: moe_layers <= layers,
         "moe_layers={moe_layers} is more than the {layers} layers"),
    Rule("top_k within experts", "top_k", lambda top_k, experts: (experts == 0) | (top_k <= experts),
         "top_k={top_k} is more than the {experts} experts"),
)  # fmt: skip

RULES = (
    Rule("dimensions multiply to the devices", "dp", lambda devices, tp, cp, pp, dp: devices == tp * cp * pp * dp,
         "tp={tp}, cp={cp}, pp={pp} and dp={dp} make {product} devices, not {devices}"),
    Rule("tp divides heads", "tp", lambda tp, heads: _split(heads, tp), "tp={tp} does not divide the {heads} heads"),
    Rule("tp fits kv_heads", "tp", lambda tp, kv_heads: _split(kv_heads, tp) | _split(tp, kv_heads),
         "tp={tp} neither divides the {kv_heads} kv_heads nor is a multiple of them"),
    Rule("tp divides ffn", "tp", lambda tp, ffn: _split(ffn, tp), "tp={tp} does not divide the ffn of {ffn}"),
    Rule("etp divides expert_ffn", "etp", lambda etp, expert_ffn: _split(expert_ffn, etp),
         "etp={etp} does not divide the expert_ffn of {expert_ffn}"),
    Rule("etp divides tp", "etp", lambda etp, tp: _split(tp, etp), "etp={etp} does not divide tp={tp}"),
    Rule("etp has tokens of its own", "etp", lambda etp, tp, sequence_parallel: (etp == tp) | (sequence_parallel != 0),
         "etp={etp} spreads tokens that tp={tp} devices all have where sequence_parallel is False"),
    Rule("tp within scaleup_size", "tp", lambda tp, scaleup_size: tp <= scaleup_size,
         "tp={tp} leaves a scale-up domain of {scaleup_size} devices", advice=True),
    Rule("cp halves divide seq", "cp", lambda cp, seq: (cp == 1) | _split(seq, 2 * cp),
         "cp={cp} does not divide seq={seq} into 2 cp equal parts, "
         "of which each device takes two to balance causal attention"),
    Rule("tp divides the sequence", "tp",
         lambda tp, cp, seq, sequence_parallel: (sequence_parallel == 0) | _split(seq, cp * tp),
         "tp={tp} does not divide the {own_seq} tokens of a sequence that sequence parallelism splits"),
    Rule("pp within layers", "pp", lambda pp, layers: pp <= layers, "pp={pp} is more than the {layers} layers"),
    Rule("stages have blocks", "pp", lambda pp, layers: (pp == 1) | ((pp - 2) * _stage(layers, pp) < layers),
         "pp={pp} stages of at most {stage_blocks} blocks leave more than one of them empty of the {layers} layers"),
    Rule("interleaving alone has chunks", "chunks",
         lambda chunks, schedule: (chunks == 1) | (SCHEDULES[schedule].chunks is None),
         "chunks={chunks} asks for schedule='interleaved', not {schedule!r}"),
    Rule("stages hold the layers", "stage_blocks",
         lambda stage_blocks, layers, pp: (stage_blocks % 1 == 0) & (stage_blocks <= layers)
         & (pp * stage_blocks >= layers),
         "stage_blocks={stage_blocks} in the fullest of {pp} stages does not deal out the {layers} layers"),
    Rule("the last stage holds the rest", "last_blocks",
         lambda last_blocks, stage_blocks, layers, pp: (last_blocks % 1 == 0) & (last_blocks <= stage_blocks)
         & ((pp - 1) * stage_blocks + last_blocks >= layers)
         & ((stage_blocks == last_blocks) | (stage_blocks + last_blocks <= layers)),
         "last_blocks={last_blocks} after {others} stages of at most {stage_blocks} does not deal out the {layers} "
         "layers"),
    Rule("chunks divide a stage", "chunks", lambda chunks, stage_blocks: _split(stage_blocks, chunks),
         "chunks={chunks} does not divide the {stage_blocks} blocks of a stage"),
    Rule("a schedule's chunks divide a stage", "pp",
         lambda schedule, stage_blocks: _split(stage_blocks, SCHEDULES[schedule].chunks or 1),
         "schedule={schedule!r} gives each device two equal parts of the model, and a stage has {stage_blocks} blocks"),
    Rule("windows within layers", "window_layers", lambda window_layers, layers: window_layers <= layers,
         "window_layers={window_layers} is more than the {layers} layers"),
    Rule("ep has experts", "ep", lambda ep, experts: (ep == 1) | (experts > 0),
         "ep={ep} spreads experts, and the model has none"),
    Rule("ep divides experts", "ep", lambda ep, experts: (experts == 0) | _split(experts, ep),
         "ep={ep} does not divide the {experts} experts"),
    Rule("ep divides dp cp tp/etp", "ep", lambda ep, dp, cp, tp, etp: _split(dp * cp * tp / etp, ep),
         "ep={ep} does not divide the {spread} devices (dp cp tp/etp) that experts are spread over"),
    Rule("dp divides global_batch", "global_batch", lambda dp, global_batch: _split(global_batch, dp),
         "dp={dp} does not divide global_batch={global_batch}"),
    Rule("batch divides the rest", "batch", lambda batch, dp, global_batch: _split(global_batch, dp * batch),
         "batch={batch} does not divide the {own_batch} sequences that fall to each of dp={dp}"),
    Rule("trained weights have gradients", "gradient_bits",
         lambda gradient_bits, trained: (gradient_bits > 0) | (trained != "all"),
         "gradient_bits={gradient_bits} leaves no gradients to the weights that trained={trained!r} updates"),
    Rule("a stage there is", "stage", lambda stage, pp: (stage % 1 == 0) & (stage >= 1) & (stage <= pp),
         "stage={stage} is none of the {pp} stages"),
    Rule("global_batch in micro-batches", "global_batch",
         lambda global_batch, microbatches, dp, batch: global_batch == microbatches * dp * batch,
         "global_batch={global_batch} is not microbatches={microbatches} times dp={dp} times batch={batch}"),
    Rule("all_to_all deals out heads", "cp",
         lambda context_exchange, tp, cp, heads, kv_heads: (context_exchange != "all_to_all") | (cp == 1)
         | (_split(heads, tp * cp) & (_split(kv_heads, tp * cp) | _split(tp * cp, kv_heads))),
         "context_exchange='all_to_all' deals the {heads} heads out to tp={tp} times cp={cp} devices, "
         "which does not divide"),
    Rule("shard_group in groups", "shard_group",
         lambda sharding, shard_group, dp, cp: (not SHARDINGS[sharding].has_groups)
         | _split(dp * cp, shard_group) | _split(shard_group, dp * cp),
         "shard_group={shard_group} neither divides the {shards} devices (dp cp) that share weights nor is a multiple "
         "of them"),
    Rule("shard_group in groups of experts", "shard_group",
         lambda sharding, shard_group, dp, cp, tp, ep, etp: (not SHARDINGS[sharding].has_groups) | (ep * etp == tp)
         | _split(dp * cp * tp / (ep * etp), shard_group) | _split(shard_group, dp * cp * tp / (ep * etp)),
         "shard_group={shard_group} neither divides the {routed_shards} devices (dp cp tp/(ep etp)) that share experts "
         "nor is a multiple of them"),
    Rule("offload has near_blocks", "pp",
         lambda offload, stage_blocks, near_blocks: (offload == 0) | (stage_blocks >= near_blocks),
         "offload keeps near_blocks={near_blocks} blocks near, and with pp={pp} a stage has {stage_blocks}"),
    *SHAPES,
)  # fmt: skip


ADVICE = tuple(x.name for x in RULES if x.advice)
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
    own = _own(values, sheet)
    for name, value in values.items():
        if name not in CHOICES and NOTATION[name].whole:
            refuse_parts(name, own[name] if name in own else quantity(name, value))
    broadcast(own)
    known = derived(own)
    dealt_by_hand = ("pp within layers", "stages have blocks") if "stage_blocks" in values else ()
    lifted = (*ADVICE, *dealt_by_hand)
    if any(isinstance(x, np.ndarray) for x in known.values()):
        _check_each(known, sheet, lifted)
    elif found := _reason(own, known, sheet, lifted):
        raise ValueError(found)


def _own(values, sheet):
    """Return the letters and words that the rules use, as numbers and words."""
    names = _NAMES | {n for _, x in (sheet.conditions if sheet else ()) for n in x.letters}
    own = {
        n: x if isinstance(x, (str, bool)) and n in CHOICES else quantity(n, x) for n, x in values.items() if n in names
    }
    if symbols := [n for n, x in own.items() if isinstance(x, Basic)]:
        raise TypeError(f"a strategy is priced for numbers, not for symbols ({', '.join(symbols)})")
    return own


def reason(values: Mapping[str, Any], sheet: Sheet | None = None, lifted: Iterable[str] = ()) -> str | None:
    """Return why a strategy cannot run (the sentence of `check`), or None if it can. Rules in `lifted` are skipped."""
    own = _own(values, sheet)
    return _reason(own, derived(own), sheet, lifted)


def _reason(values, known, sheet, lifted):
    """Do the same for prepared numbers and words and the letters derived from them."""
    for letter in COUNTS:
        if (letter in values or letter == "dp") and letter in known and (known[letter] % 1 or known[letter] < 1):
            return _no_multiple(known) if letter not in values else not_whole(letter, known[letter])
    for rule in RULES:
        if rule.name not in lifted and rule.of(known) == False:  # noqa: E712  (None is not known)
            return _sentence(rule, known)
    for f, x in _conditions(sheet, known):
        if not x.holds(known):
            return _outside(f.name, x, known)
    return None


def _conditions(sheet, known):
    """Return the conditions of a sheet's formulas that depend only on known letters, each with its formula."""
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
    if fails.any():
        place = np.unravel_index(np.flatnonzero(fails)[0], shape)
        one = {n: float(np.broadcast_to(x, shape)[place]) if np.ndim(x) else x for n, x in known.items()}
        raise ValueError(f"in {fails.sum():,} of {fails.size:,} rows, the first: {reason(one, sheet, lifted)}")


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
    """Return the values of a letter that break none of these rules, up to a limit."""
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
    """Return the sentence for a number of devices that is not a whole number of replicas."""
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
