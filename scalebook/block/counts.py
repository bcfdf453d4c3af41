"""What a model is made of, part by part, and what the parts add up to: parameters, FLOPs, cache and state, in numbers.

A row of the table of models says by its letters which blocks have which parts. Where letters cannot say that, because
blocks differ in width or lack a part, the row's word `blocks` lists the parts: "25 attention (head_dim=256) + 30 feed".
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from sympy import lambdify

from scalebook.block.listing import Block, parse
from scalebook.block.models import GPT, LISTINGS, attention_of, feed_forward_of, is_gpt
from scalebook.block.operations import DERIVED
from scalebook.language.arguments import checked
from scalebook.language.notation import nearest, quoted, symbol

__all__ = ["counts", "parts_of"]

_KNOWN = {**LISTINGS["attention"], **LISTINGS["feed_forward"], **LISTINGS["once"]}
_TOTALS = ("params", "active_params", "flops", "kv_width", "sliding_width", "attention_width", "linear_state")
_SPLIT = next(i for i, op in enumerate(GPT.ops) if op.name == "x2") + 1  # behind GPT's attention


class _Costs(NamedTuple):
    """The tensors of a listing as tuples of indices: weights, products, and what it keeps of a token and a sequence."""

    weights: tuple
    products: tuple
    cached: tuple
    states: tuple
    convolved: tuple


@cache
def _costs(block: Block) -> _Costs:
    terms = [term for op in block.ops if not op.function for term in op.terms if len(term) > 1]
    cached = {t.name: block.made(t).indices for op in block.ops for t in op.args if block.is_attended(t)}
    return _Costs(
        tuple((t.indices, t.is_routed) for t in block.weights),
        tuple({i for t in term for i in t.indices} for term in terms),
        (*cached.values(), *(t.indices for op in block.ops if op.function == "append" for t in op.outs)),
        tuple(t.indices for t in block.inputs if not {"seq", "context"} & set(t.indices)),
        tuple(op.args[0].indices for op in block.ops if op.function == "conv"),
    )


@cache
def _derived(index: str):
    inputs = sorted(x.name for x in DERIVED[index].free_symbols)
    return inputs, lambdify([symbol(x) for x in inputs], DERIVED[index], "math")


def _product(indices, letters) -> float:
    """Return the product of the lengths of dimensions."""
    total = 1.0
    for index in indices:
        if index not in letters and index in DERIVED:
            inputs, length = _derived(index)
            letters[index] = length(*(letters[x] for x in inputs))
        total *= letters[index]
    return total


@cache
def _part(name: str) -> Block:
    if name not in _KNOWN:
        raise LookupError(f"no part of a model is called {quoted(name)}; {nearest(name, _KNOWN)}")
    return parse("".join(LISTINGS["parts"][x] for x in _KNOWN[name]))


def _listing(row: Mapping, name: str, form: str) -> Block:
    """Return the listing of a part in a form: latent attention is run "expanded", and is cached "absorbed"."""
    if is_gpt(row) and name in ("attention", "feed"):
        return Block(GPT.ops[:_SPLIT] if name == "attention" else GPT.ops[_SPLIT:])
    if name == "attention":
        name = attention_of(row)
    elif name in ("feed", "experts"):
        name = feed_forward_of(row, name == "experts")
    return _part(f"{name}, {form}" if f"{name}, {form}" in _KNOWN else name)


def parts_of(row: Mapping) -> list[tuple[float, str, dict]]:
    """Return the parts of a model: how many there are, the name of each, and the letters that differ in it.

    >>> from scalebook.tables import models
    >>> parts_of(models.qwen3_5_397b)
    [(15.0, 'attention', {}), (45.0, 'linear', {}), (0.0, 'feed', {}), (60.0, 'experts', {})]
    """
    if said := getattr(row, "words", row).get("blocks"):
        found = [re.fullmatch(r"(\d+) ([^()]+?)(?: \(([^()]*)\))?", x).groups() for x in said.split(" + ")]
        own = [{y.split("=")[0]: float(y.split("=")[1]) for y in (x or "").split()} for *_, x in found]
        return [(float(number), name, x) for (number, name, _), x in zip(found, own, strict=True)]
    linear, routed = row.get("linear_layers", 0), row.get("experts", 0) and row.get("moe_layers", 0)
    numbers = {"attention": row["layers"] - linear, "linear": linear}
    numbers |= {"feed": row["layers"] - routed, "experts": routed}
    return [(number, name, {}) for name, number in numbers.items()]


@checked
def counts(row: Mapping, seq: float = 1) -> dict[str, float]:
    """Count a model by its parts: parameters, FLOPs of `seq` tokens, values cached per token, and values of a state.

    FLOPs are those of the matrix products of one forward pass, of all pairs of tokens, the head included. Cached values
    are means over the layers, as `kv_width` is; `sliding_width` is the part of them in blocks that slide, which is known
    for a model with the word `blocks`. Raises LookupError naming what the row lacks.

    >>> from scalebook.tables import models
    >>> counts(models.llama3_8b)["kv_width"]
    2048.0
    """
    total = dict.fromkeys(_TOTALS, 0.0)
    known = {x: float(y) for x, y in row.items() if isinstance(y, (int, float))} | dict(batch=1, seq=seq, context=seq)
    try:
        for number, name, own in parts_of(row):
            if number:
                before = total["kv_width"]
                _add(total, number, _listing(row, name, "expanded"), _listing(row, name, "absorbed"), known | own)
                total["sliding_width"] += total["kv_width"] - before if "window" in own else 0
        ends = (known["embeddings"] * known["vocab"] + known.get("learned_positions", 0)) * known["hidden"]
        ends += known["hidden"] * (2 if is_gpt(row) else 1)
        total["flops"] += 2 * seq * known["vocab"] * known["hidden"]
    except KeyError as error:
        raise LookupError(f"the row lacks {error.args[0]}") from None
    return total | {x: total[x] + ends for x in ("params", "active_params")}


def _add(total: dict, number: float, run: Block, kept: Block, letters: dict) -> None:
    """Add what so many parts cost."""
    run, kept = _costs(run), _costs(kept)
    for indices, is_routed in run.weights:
        size = number * _product(indices, letters)
        total["params"] += size
        total["active_params"] += size * letters["top_k"] / letters["experts"] if is_routed else size
    total["flops"] += number * sum(2 * _product(x, letters) for x in run.products)
    width = number / letters["layers"] * sum(_product(x, letters) for x in kept.cached) / letters["seq"]
    total["kv_width"] += width
    pairs = [x for x in kept.products if {"context", "picked", "entries"} & x and "index_heads" not in x]
    pairs = sum(_product(x - {"seq", "context", "picked"}, letters) for x in pairs)
    total["attention_width"] += number / letters["layers"] * pairs
    state = sum(_product(x, letters) for x in kept.states)
    state += sum(letters["linear_conv"] * _product(x, letters) / letters["seq"] for x in kept.convolved)
    total["linear_state"] += number * state
