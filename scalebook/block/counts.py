"""What a model is made of, part by part, and what the parts add up to: parameters, FLOPs, cache and state, in numbers.

A row of the table of models says by its letters which blocks have which parts. Where letters cannot say that, because
blocks differ in width or lack a part, the row's word `blocks` lists the parts: "25 attention (head_dim=256) + 30 feed".
"""

import itertools
import re
from collections.abc import Mapping
from functools import cache
from math import prod

from sympy import lambdify

from scalebook.block.listing import Block, parse
from scalebook.block.operations import derived, size
from scalebook.language.arguments import checked
from scalebook.language.notation import nearest, quoted, symbol
from scalebook.language.row import Cell, Row, one_number
from scalebook.language.stanzas import tables_of

__all__ = ["counts", "parts_of", "reaching"]

LISTINGS = tables_of(__package__, "listings.toml")
GPT = parse(LISTINGS["GPT"])
_KNOWN = {**LISTINGS["attention"], **LISTINGS["feed_forward"], **LISTINGS["once"]}
_LETTER = r"[a-z_]+=\d+(?:\.\d+)?"
_PART = re.compile(rf"(\d+) ([^()]+?)(?: \(((?:{_LETTER}(?: {_LETTER})*)?)\))?")
_TOTALS = ("params", "active_params", "flops", "kv_width", "window_layers", "attention_width", "linear_state")
_REACHED = [f"{reach}_{kind}" for reach in ("whole", "window", "picked") for kind in ("width", "cache")]
_REACHED += ["picked_reach", "state_width"]
# Letters that say which blocks there are
_KINDS = ("linear_layers", "experts", "moe_layers", "gating", "index_heads", "output_gate", "shared_experts")
_SPLIT = next(i for i, op in enumerate(GPT.ops) if op.name == "x2") + 1  # behind GPT's attention


@cache
def _costs(block: Block) -> dict:
    """Return a listing's tensors as indices: weights, products, what tokens and sequences keep; and its letters."""
    terms = [term for op in block.ops if not op.function for term in op.terms if len(term) > 1]
    cached = {t.name: block.made(t).indices for op in block.ops for t in op.args if block.is_attended(t)}
    cached |= {t.name: t.indices for op in block.ops if op.function == "compress" for t in op.outs}
    return dict(
        weights=[(t.indices, t.is_routed) for t in block.weights],
        products=[{i for t in term for i in t.indices} for term in terms],
        inner=[{i for t in term for i in t.indices} for term in terms if not any(t.is_weight for t in term)],
        cached=list(cached.values()),
        states=[t.indices for t in block.inputs if not {"seq", "context"} & set(t.indices)],
        convolved=[op.args[0].indices for op in block.ops if op.function == "conv"],
        letters={x.name for i in block.indices for x in size(i).free_symbols},
    )


@cache
def _length(index: str):
    inputs = sorted(x.name for x in derived(index).free_symbols)
    length = lambdify([symbol(x) for x in inputs], derived(index), "math")
    return lambda letters: length(*(letters[x] for x in inputs))


def _product(indices, letters) -> float:
    return prod(letters[x] if x in letters else _length(x)(letters) for x in indices)


def attention_of(row) -> str:
    """Return the name of a model's attention that keeps a cache, with its indexer or output gate."""
    if row.get("index_heads") or row.get("output_gate"):
        return "latent, indexed" if row.get("index_heads") else "grouped, gated"
    return ("latent" if row["q_rank"] else "latent, plain queries") if "kv_rank" in row else "grouped"


def feed_forward_of(row, is_routed: bool) -> str:
    """Return the name of a model's feed-forward layer, dense or with experts."""
    shared = ", shared" if row.get("shared_experts", 0) else ""
    return ("gated" if row["gating"] else "plain") + (f" experts{shared}" if is_routed else "")


def is_gpt(row) -> bool:
    """Return True for a model of GPT blocks, which have biases: with layer norm, without gates and latents."""
    norm = getattr(row, "words", row).get("norm", "")
    return norm == "layernorm" and not row["gating"] and attention_of(row) == "grouped"


@cache
def _part(name: str) -> Block:
    if name not in _KNOWN:
        raise LookupError(f"no part of a model is called {quoted(name)}; {nearest(name, _KNOWN)}")
    return parse("".join(LISTINGS["parts"][x] for x in _KNOWN[name]))


def listing(row: Mapping, name: str, form: str) -> Block:
    """Return the listing of one part of a model's block.

    `form` matters for latent attention only: "expanded" for training and prefill, "absorbed" for decoding from a cache.
    """
    if is_gpt(row) and name in ("attention", "feed"):
        return Block(GPT.ops[:_SPLIT] if name == "attention" else GPT.ops[_SPLIT:])
    if name == "attention":
        name = attention_of(row)
    elif name in ("feed", "experts"):
        name = feed_forward_of(row, name == "experts")
    return _part(f"{name}, {form}" if f"{name}, {form}" in _KNOWN else name)


def known_of(row: Row, *names: str) -> dict[str, float]:
    """Return the named quantities of one model, and the quantities that say which blocks it has.

    A name that ends in "?" is optional. Raises LookupError if another is missing, and TypeError for an array.
    """
    if lacking := sorted(x for x in names if x[-1] != "?" and x not in row):
        raise LookupError(f"the row lacks {', '.join(lacking)}")
    found = {x: row[x] for x in (*(x.rstrip("?") for x in names), *_KINDS) if x in row}
    return {x: y if type(y) is float else one_number(x, y) for x, y in found.items()}  # a row's numbers are checked


@checked
def parts_of(row: Mapping) -> list[tuple[float, str, dict]]:
    """Return the parts of a model: how many there are, the name of each, and the quantities that it overrides.

    >>> from scalebook.tables import models
    >>> parts_of(models.qwen3_5_397b)
    [(15.0, 'attention', {}), (45.0, 'linear', {}), (0.0, 'feed', {}), (60.0, 'experts', {})]
    """
    known_of(row)
    if said := getattr(row, "words", row).get("blocks"):
        found = [_PART.fullmatch(x) for x in said.split(" + ")]
        if not all(found):
            raise ValueError(f"{quoted(said)} is no list of parts, such as '25 attention (head_dim=256) + 30 feed'")
        found = [x.groups() for x in found]
        own = [{y.split("=")[0]: float(y.split("=")[1]) for y in (x or "").split()} for *_, x in found]
        return [(float(number), name, x) for (number, name, _), x in zip(found, own, strict=True)]
    known = known_of(row, "layers")
    layers, linear = known["layers"], known.get("linear_layers", 0)
    routed = known.get("experts", 0) and known.get("moe_layers", 0)
    numbers = dict(attention=layers - linear, linear=linear, feed=layers - routed, experts=routed)
    return [(number, name, {}) for name, number in numbers.items()]


def paired(parts: list, layers: float) -> list[tuple[float, tuple[str, ...], dict]]:
    """Return a model's blocks: how many of each, its parts, and quantities that it overrides. Some have only one part.

    A layer with both attention (or a replacement of it) and a feed-forward layer is one block.
    """
    feeds = [[*x] for x in parts if x[1] in ("feed", "experts", *LISTINGS["feed_forward"])]
    mixers = [[*x] for x in parts if x[1] in ("attention", "linear", *LISTINGS["attention"])]
    found = [(number, (name,), own) for number, name, own in parts if name in LISTINGS["once"]]
    both = sum(x[0] for x in (*feeds, *mixers)) - layers
    for mixer, feed in itertools.product(mixers, feeds):
        if mixer[2] == feed[2] and (number := min(mixer[0], feed[0], both)) > 0:
            found.append((number, (mixer[1], feed[1]), mixer[2]))
            mixer[0], feed[0], both = mixer[0] - number, feed[0] - number, both - number
    return found + [(number, (name,), own) for number, name, own in (*mixers, *feeds) if number]


@checked
def counts(row: Mapping, seq: float = 1) -> dict[str, float]:
    """Count a model part by part: parameters, FLOPs of one forward pass, and the widths of its cache and state.

    `flops` counts the matrix products of a pass over `seq` tokens. It includes the head and all pairs of tokens.
    `kv_width` and `attention_width` are means over the layers. If the row has the word `blocks`, `window_layers` is
    weighted by what a block caches: two sliding blocks of half the usual width count as one. Raises LookupError if the
    row lacks a quantity, and TypeError if a quantity has several values.

    >>> from scalebook.tables import models
    >>> counts(models.llama3_8b)["kv_width"]
    2048.0
    """
    parts = [x for x in parts_of(row) if x[0]]
    forms = [_forms(row, name) for _, name, _ in parts]
    needed = {"embeddings", "vocab", "hidden"}.union(*(x["letters"] for both in forms for x in both))
    stated = set().union(*(own for *_, own in parts))
    known = {"batch": 1.0} | dict.fromkeys(("seq", "context"), one_number("seq", seq))
    names = (f"{x}?" if x in stated else x for x in needed - {*known})
    known |= known_of(row, "layers", "learned_positions?", *names)
    index_tokens = known_of(row, "index_tokens?").get("index_tokens", 0.0)
    total = dict.fromkeys(_REACHED, 0.0) | totals(row, parts, known)
    for (number, name, own), (_, kept) in zip(parts, forms, strict=True):
        _reach(total, number, kept, known | own, "window" in own, (name in LISTINGS["picks"]) * index_tokens)
    total["window_layers"] *= known["layers"] / max(total["kv_width"], 1)
    ends = (known["embeddings"] * known["vocab"] + known.get("learned_positions", 0)) * known["hidden"]
    ends += known["hidden"] * (2 if is_gpt(row) else 1)
    total["flops"] += 2 * seq * known["vocab"] * known["hidden"]
    total |= {x: total[x] + ends for x in ("params", "active_params")}
    return total


@checked
def reaching(row: Row) -> Row:
    """Return a model's row with the widths of a token's multiplies and reads, for `scalebook.memory.long_context`.

    The widths are means over the layers. A model without windows, picks or states has zeros. Raises what `counts`
    raises.

    >>> from scalebook.tables import models
    >>> reaching(models.deepseek_v3_2).picked_width, reaching(models.deepseek_v3_2).picked_reach
    (139264.0, 2048.0)
    """
    found = counts(row)
    if "blocks" not in row.words:  # its sliding blocks are as wide as the others
        share = row.get("window_layers", 0.0) / row["layers"]
        for kind in ("width", "cache"):
            found[f"window_{kind}"] = share * found[f"whole_{kind}"]
            found[f"whole_{kind}"] *= 1 - share
    found["picked_reach"] = found["picked_reach"] or 1.0
    cells = {x: Cell(found[x], row.name, "scalebook", "counted from its parts") for x in _REACHED}
    cells["linear_state"] = row.cells.get("linear_state") or Cell(0.0, row.name, "scalebook", "no block keeps a state")
    return Row(row.name, row.cells | cells, row.words)


def _forms(row: Mapping, name: str) -> list[dict]:
    """Return the costs of a part as a pass over a prompt runs it, and as decoding does."""
    return [_costs(listing(row, name, form)) for form in ("expanded", "absorbed")]


def totals(row: Mapping, parts: list, letters: Mapping) -> dict:
    """Return the sums over a model's blocks. `letters`, and the numbers in `parts`, may be symbols."""
    total = dict.fromkeys(_TOTALS, 0 * letters["layers"])
    for number, name, own in parts:
        _add(total, number, *_forms(row, name), letters | own, "window" in own)
    return total


def _add(total: dict, number: float, run: dict, kept: dict, letters: dict, slides: bool) -> None:
    seq, share = letters["seq"], number / letters["layers"]
    for indices, is_routed in run["weights"]:
        held = number * _product(indices, letters)
        total["params"] += held
        total["active_params"] += held * letters["top_k"] / letters["experts"] if is_routed else held
    pairs = [x for x in kept["products"] if {"context", "picked", "entries"} & x and "index_heads" not in x]
    widths = [(x, share * _product(x, letters) / seq) for x in kept["cached"]]
    state = sum(_product(x, letters) for x in kept["states"])
    state += sum(letters["linear_conv"] * _product(x, letters) / seq for x in kept["convolved"])
    total["flops"] += number * sum(2 * _product(x, letters) for x in run["products"])
    total["kv_width"] += sum(width for _, width in widths)
    if slides:  # compressed entries are kept for the whole context
        total["window_layers"] += sum(width for x, width in widths if "entries" not in x)
    total["attention_width"] += share * sum(_product(x, letters) for x in pairs) / (seq * seq)
    total["linear_state"] += number * state


def _reach(total: dict, number: float, kept: dict, letters: dict, slides: bool, picks: float) -> None:
    """Add what a token multiplies and reads of the whole context, of a window, and of the tokens an indexer picks."""
    seq, share = letters["seq"], number / letters["layers"]
    pairs = [x for x in kept["inner"] if {"context", "picked", "entries"} & x]
    total["state_width"] += share * sum(_product(x, letters) for x in kept["inner"] if x not in pairs) / seq
    for kind, tensors in (("width", pairs), ("cache", kept["cached"])):
        for x in tensors:
            reach = "window" if slides and "entries" not in x else "picked" if picks else "whole"
            reach = "whole" if {"index_heads", "index_dim"} & {*x} else reach
            if reach == "picked":
                total["picked_reach"] = picks * (letters["entry_tokens"] if "entries" in x else 1)
            total[f"{reach}_{kind}"] += share * _product(x, letters) / (seq * seq if kind == "width" else seq)
