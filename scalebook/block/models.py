"""Transformer blocks, put together from attention and feed-forward layers, and the parameters of whole models."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

from sympy import Expr, Rational, S

from scalebook.block.counts import (
    GPT,
    LISTINGS,
    attention_of,
    counts,
    feed_forward_of,
    is_gpt,
    known_of,
    listing,
    paired,
    parts_of,
)
from scalebook.block.listing import Block, parse
from scalebook.block.operations import base
from scalebook.language.arguments import checked
from scalebook.language.notation import nearest, quoted, replaced, symbol

__all__ = [
    "EMBEDDING", "GPT", "HEAD", "LLAMA", "MLA", "MLA_ABSORBED", "MLA_MOE", "MLA_MOE_ABSORBED", "MOE", "Hybrid",
    "Kind", "active_parameters", "block", "blocks_of", "kinds_of", "model_active_params", "model_params", "parameters",
    "served_blocks", "state_core",
]  # fmt: skip

EMBEDDING, HEAD = (parse(LISTINGS[x]) for x in ("EMBEDDING", "HEAD"))


@checked
@cache
def block(attention: str, feed_forward: str) -> Block:
    """Return a block with this attention ("grouped", "latent", ...) and feed-forward layer ("gated", ...).

    `listings.toml` has all names. Raises LookupError, with the nearest name, for another.
    """
    parts = []
    for kind, name in (("attention", attention), ("feed_forward", feed_forward)):
        known = LISTINGS[kind]
        if name not in known:
            what = {"feed_forward": "feed-forward layer"}.get(kind, kind)
            raise LookupError(f"no {what} is called {quoted(name)}; {nearest(name, known)}")
        parts += known[name]
    return parse("".join(LISTINGS["parts"][x] for x in parts))


LLAMA = block("grouped", "gated")
MOE = block("grouped", "gated experts, shared")
MLA = block("latent", "gated")
MLA_ABSORBED = block("latent, absorbed", "gated")
MLA_MOE = block("latent", "gated experts, shared")
MLA_MOE_ABSORBED = block("latent, absorbed", "gated experts, shared")


class Kind(NamedTuple):
    """A kind of block in a model: its share of the layers, and the values that it overrides, by symbol."""

    block: Block
    share: Expr | int
    letters: tuple[tuple[Expr, Expr], ...] = ()
    reads_picks: bool = False  # attention uses the keys that an earlier block's indexer has picked

    def of(self, cost: Expr) -> Expr:
        """Return a cost of the block with the kind's own numbers."""
        return replaced(cost, dict(self.letters)) if self.letters else cost

    @property
    def slides(self) -> bool:
        """True if blocks of this kind, and not only some blocks of the model, attend within a window."""
        return symbol("window") in dict(self.letters)


@dataclass(frozen=True)
class Hybrid:
    """A model with several kinds of blocks, or with blocks that lack a part. Its costs are means over its layers.

    The shares add up to more than 1 if a layer has parts that are listed as blocks of their own.
    """

    kinds: tuple[Kind, ...]

    @cached_property
    def indices(self) -> tuple[str, ...]:
        return tuple(sorted({x for kind in self.kinds for x in kind.block.indices}))


def kinds_of(block: Block | Hybrid | None) -> tuple[Kind, ...]:
    """Return the kinds of block in a model, each with its share of the layers; () for None.

    >>> kinds_of(LLAMA) == ((LLAMA, 1, (), False),)
    True
    """
    return block.kinds if isinstance(block, Hybrid) else (Kind(block, 1),) if block else ()


def state_core(block: Block) -> frozenset[str]:
    """Return the names of the operations of a block that use its state. They run as one kernel.

    >>> sorted(state_core(block("linear", "gated")))
    ['change', 'fp32_next', 'l_mix', 'recalled', 'written']
    """
    states = [{base(i) for i in t.indices} for t in block.inputs if t.name == "fp32_state"]
    touched = (op for op in block.ops if any({base(i) for i in t.indices} in states for t in (*op.outs, *op.args)))
    return frozenset(op.name for op in touched) | {op.name for op in block.ops if op.function == "delta"}


@checked
def blocks_of(row: Mapping) -> tuple[Block | Hybrid | None, Block | Hybrid | None]:
    """Return a model's two kinds of block for training, dense and mixture of experts; None for a kind that it lacks.

    `row` is the model's row, or a mapping with its numbers and the option "norm". Blocks with layer norm and no gate
    are GPT blocks, with biases; all others have one gain per norm and no biases. Head norms are left out because they
    are small. If the row has a list of parts (the word `blocks`), one `Hybrid` holds all kinds of block.

    >>> blocks_of({"layers": 32, "gating": 1}) == (LLAMA, None)
    True
    """
    form = ", expanded" * bool(known_of(row).get("index_heads"))
    return _blocks_of(row, attention_of(row) + form, "expanded")


@checked
def served_blocks(row: Mapping) -> tuple[Block | Hybrid | None, Block | Hybrid | None]:
    """Return a model's two kinds of block for serving, as `blocks_of` does for training.

    >>> served_blocks({"layers": 32, "gating": 1}) == (LLAMA, None)
    True
    """
    known_of(row)  # refuses letters with several values
    return _blocks_of(row, attention_of(row), "absorbed")


def _blocks_of(row, attention: str, indexed: str):
    if "blocks" in getattr(row, "words", row):
        mixed = Hybrid(_kinds(row, indexed))
        return (None, mixed) if row.get("moe_layers") else (mixed, None)
    full = _listed(row, attention)
    if not row.get("linear_layers"):
        return full
    share = symbol("linear_layers") / symbol("layers")
    both = zip(full, _listed(row, "linear"), strict=True)
    return tuple(Hybrid((Kind(x, 1 - share), Kind(y, share))) if x else None for x, y in both)


def _kinds(row: Mapping, indexed: str) -> tuple[Kind, ...]:
    """Return the kinds of block of a model whose row lists its parts. `indexed` is the form of sparse attention."""
    found = []
    for number, names, own in paired(parts_of(row), row["layers"]):
        expanded = {x: listing(row, x, "expanded") for x in names}
        listings = [listing(row, x, _form(row, x, y, indexed)) for x, y in expanded.items()]
        numbers = {symbol(x): Rational(str(y)) for x, y in own.items()}
        numbers[symbol("window_layers")] = symbol("layers") if "window" in own else S.Zero
        block = Block(tuple(op for part in listings for op in part.ops))
        share = Rational(str(number)) / Rational(str(row["layers"]))
        found.append(Kind(block, share, tuple(numbers.items()), any(_picks(row, x, y) for x, y in expanded.items())))
    return tuple(found)


def _form(row: Mapping, name: str, expanded: Block, indexed: str) -> str:
    """Return the form of a part: attention of a service without an indexer reads what an earlier block has picked."""
    if "index_heads" in expanded.indices:
        return indexed
    return "picked" if indexed == "absorbed" and _picks(row, name, expanded) else "expanded"


def _picks(row: Mapping, name: str, expanded: Block) -> bool:
    """Return True for attention that has no indexer and uses the keys that an earlier block has picked."""
    return bool(row.get("index_tokens")) and "index_heads" not in expanded.indices and name in LISTINGS["picks"]


def _listed(row, attention: str):
    known = known_of(row, "layers", "gating")
    routed = known.get("experts", 0) and known.get("moe_layers", 0)
    moe = block(attention, feed_forward_of(row, True)) if routed else None
    if routed == known["layers"]:
        return None, moe
    return (GPT if attention == "grouped" and is_gpt(row) else block(attention, feed_forward_of(row, False))), moe


def parameters(dense: Block | None, moe: Block | None = None) -> Expr:
    """Number of parameters of a model made of these blocks, as an expression.

    It counts the blocks, embeddings, learned positions and the last norm.

    >>> parameters(LLAMA).diff(symbol("embeddings"))
    hidden*vocab
    """
    return _sum(dense, moe, "params")


def active_parameters(dense: Block | None, moe: Block | None = None) -> Expr:
    """Number of parameters of a model that one token uses: `top_k` of the routed experts, and all else.

    >>> (parameters(MOE) - active_parameters(MOE)).expand()
    3*expert_ffn*experts*hidden*layers - 3*expert_ffn*hidden*layers*top_k
    """
    return _sum(dense, moe, "active_params")


def _sum(dense, moe, cost):
    layers, moe_layers, hidden, vocab, embeddings, positions = map(
        symbol, ("layers", "moe_layers", "hidden", "vocab", "embeddings", "learned_positions")
    )
    blocks = getattr(dense or moe, cost) * layers
    if dense and moe:
        blocks = getattr(dense, cost) * (layers - moe_layers) + getattr(moe, cost) * moe_layers
    norm = next(op for op in (dense or moe).ops if op.function.endswith("norm"))
    return blocks + (embeddings * vocab + positions) * hidden + sum(t.elements for t in norm.args if t.is_weight)


@checked
def model_params(row: Mapping) -> float:
    """Number of parameters of a model, from its shape. Raises LookupError naming what the row lacks.

    >>> from scalebook.tables import models
    >>> model_params(models.llama3_8b)
    8030261248.0
    """
    return counts(row)["params"]


@checked
def model_active_params(row: Mapping) -> float:
    """Number of parameters that one token uses, from a model's shape. Both embeddings are counted."""
    return counts(row)["active_params"]
