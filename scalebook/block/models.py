"""Transformer blocks, put together from attention and feed-forward layers, and the parameters of whole models."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from sympy import Expr

from scalebook.block.counts import GPT, LISTINGS, attention_of, counts, feed_forward_of, is_gpt, known_of, plain_of
from scalebook.block.listing import Block, parse
from scalebook.block.operations import base
from scalebook.language.arguments import checked
from scalebook.language.notation import nearest, quoted, symbol

__all__ = [
    "EMBEDDING", "GPT", "HEAD", "LLAMA", "MLA", "MLA_ABSORBED", "MLA_MOE", "MLA_MOE_ABSORBED", "MOE", "Hybrid",
    "active_parameters", "block", "blocks_of", "kinds_of", "model_active_params", "model_params", "parameters",
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


@dataclass(frozen=True)
class Hybrid:
    """A model with two kinds of layers: `linear_layers` of its `layers` keep a state, the others attend to a cache.

    Its parameters are the mean over its layers.
    """

    full: Block
    linear: Block

    @property
    def kinds(self) -> tuple[tuple[Block, Expr], ...]:
        """The two kinds of block as pairs: the block, and its share of the layers."""
        share = symbol("linear_layers") / symbol("layers")
        return (self.full, 1 - share), (self.linear, share)

    @property
    def ops(self):
        return self.full.ops

    @property
    def indices(self) -> tuple[str, ...]:
        return tuple(sorted({*self.full.indices, *self.linear.indices}))


def kinds_of(block: Block | Hybrid | None) -> tuple[tuple[Block, Expr | int], ...]:
    """Return the kinds of block in a model as pairs of block and share of the layers; () for None.

    >>> kinds_of(LLAMA) == ((LLAMA, 1),)
    True
    """
    return block.kinds if isinstance(block, Hybrid) else ((block, 1),) if block else ()


def state_core(block: Block) -> frozenset[str]:
    """Return the names of the operations of linear attention that use its state. They run as one kernel.

    >>> sorted(state_core(block("linear", "gated")))
    ['change', 'fp32_next', 'l_mix', 'recalled', 'written']
    """
    state = {"linear_key_dim", "linear_value_dim"}
    touched = (op for op in block.ops if any(state <= {base(i) for i in t.indices} for t in (*op.outs, *op.args)))
    return frozenset(op.name for op in touched) | {op.name for op in block.ops if op.function == "delta"}


@checked
def blocks_of(row: Mapping) -> tuple[Block | None, Block | None]:
    """Return a model's two kinds of block for training, dense and mixture of experts; None for a kind that it lacks.

    `row` is the model's row, or a mapping with its numbers and the option "norm". Blocks with layer norm and no gate
    are GPT blocks, with biases; all others have one gain per norm and no biases. Head norms and indexers are left out
    because they are small. Raises ValueError for a model with linear attention, or with a list of parts (the word
    `blocks`), which cannot be trained here.

    >>> blocks_of({"layers": 32, "gating": 1}) == (LLAMA, None)
    True
    """
    _refuse_parts(row)
    dense, moe = _listed(row, plain_of(row))
    if row.get("linear_layers"):
        name = getattr(row, "name", "a model")
        why = "linear attention in some blocks, whose training has no listing"
        raise ValueError(f"{name} has {why}; take another model")
    return dense, moe


@checked
def served_blocks(row: Mapping) -> tuple[Block | Hybrid | None, Block | Hybrid | None]:
    """Return a model's two kinds of block for serving, dense and mixture of experts; None for a kind that it lacks.

    They include indexers, linear-attention layers and attention gates. Raises ValueError for a model with a list of
    parts (the word `blocks`).

    >>> served_blocks({"layers": 32, "gating": 1}) == (LLAMA, None)
    True
    """
    _refuse_parts(row)
    known_of(row)
    full = _listed(row, attention_of(row))
    if not row.get("linear_layers"):
        return full
    both = zip(full, _listed(row, "linear"), strict=True)
    return tuple(Hybrid(some, linear) if some else None for some, linear in both)


def _refuse_parts(row):
    if "blocks" in getattr(row, "words", row):
        said = f"{getattr(row, 'name', 'a model')} has blocks that no step has kernels for yet"
        raise ValueError(f"{said}: its parameters and cache are in its row, and decoding() gives its latency floor")


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
