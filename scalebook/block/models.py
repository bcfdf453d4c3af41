"""The listings of transformer blocks, and the parameters of whole models computed from them.

>>> LLAMA.flops
2*batch*seq*(2*context*head_dim*heads + 3*ffn*hidden + 2*head_dim*heads*hidden + 2*head_dim*hidden*kv_heads)
"""

from collections.abc import Mapping
from functools import cache

from sympy import Expr

from scalebook.block.hybrids import GATED, INDEXER, LINEAR, PICKED, Hybrid
from scalebook.block.listing import Block, parse
from scalebook.language.notation import nearest, symbol

__all__ = [
    "EMBEDDING",
    "GPT",
    "HEAD",
    "LLAMA",
    "MLA",
    "MLA_ABSORBED",
    "MLA_MOE",
    "MLA_MOE_ABSORBED",
    "MOE",
    "active_parameters",
    "block",
    "blocks_of",
    "model_active_params",
    "model_params",
    "parameters",
    "served_blocks",
]

# The block of GPT-2 and GPT-3 as Megatron trains it. Korthikanti et al. 2022 §4.1 tabulate what it keeps.
GPT = parse("""
    h1[batch seq hidden] = layernorm(x[batch seq hidden], Gain1[hidden], Shift1[hidden])
    q[batch seq kv_heads group_size head_dim] = h1[batch seq hidden] Wq[hidden kv_heads group_size head_dim] + Bq[kv_heads group_size head_dim]
    k[batch seq kv_heads head_dim] = h1[batch seq hidden] Wk[hidden kv_heads head_dim] + Bk[kv_heads head_dim]
    v[batch seq kv_heads head_dim] = h1[batch seq hidden] Wv[hidden kv_heads head_dim] + Bv[kv_heads head_dim]
    scores[batch kv_heads group_size seq context] = q[batch seq kv_heads group_size head_dim] k[batch context kv_heads head_dim]
    probs[batch kv_heads group_size seq context] = softmax(scores[batch kv_heads group_size seq context])
    dropped[batch kv_heads group_size seq context], mask1[batch kv_heads group_size seq context] = drop(probs[batch kv_heads group_size seq context])
    mix[batch seq kv_heads group_size head_dim] = dropped[batch kv_heads group_size seq context] v[batch context kv_heads head_dim]
    attended[batch seq hidden] = mix[batch seq kv_heads group_size head_dim] Wo[kv_heads group_size head_dim hidden] + Bo[hidden]
    a[batch seq hidden], mask2[batch seq hidden] = drop(attended[batch seq hidden])
    x2[batch seq hidden] = add(x[batch seq hidden], a[batch seq hidden])
    h2[batch seq hidden] = layernorm(x2[batch seq hidden], Gain2[hidden], Shift2[hidden])
    up[batch seq ffn] = h2[batch seq hidden] Wup[hidden ffn] + Bup[ffn]
    active[batch seq ffn] = gelu(up[batch seq ffn])
    down[batch seq hidden] = active[batch seq ffn] Wdown[ffn hidden] + Bdown[hidden]
    f[batch seq hidden], mask3[batch seq hidden] = drop(down[batch seq hidden])
    y[batch seq hidden] = add(x2[batch seq hidden], f[batch seq hidden])
""")  # noqa: E501

# Attention of Llama 2 and 3 (Touvron et al. 2023): groups of query heads share a key-value head.
_GROUPED_INPUT = """
    h1[batch seq hidden] = rmsnorm(x[batch seq hidden], Gain1[hidden])
    q[batch seq kv_heads group_size head_dim] = h1[batch seq hidden] Wq[hidden kv_heads group_size head_dim]
    k[batch seq kv_heads head_dim] = h1[batch seq hidden] Wk[hidden kv_heads head_dim]
    v[batch seq kv_heads head_dim] = h1[batch seq hidden] Wv[hidden kv_heads head_dim]
    q_turned[batch seq kv_heads group_size head_dim] = rope(q[batch seq kv_heads group_size head_dim])
    k_turned[batch seq kv_heads head_dim] = rope(k[batch seq kv_heads head_dim])
    scores[batch kv_heads group_size seq context] = q_turned[batch seq kv_heads group_size head_dim] k_turned[batch context kv_heads head_dim]
    probs[batch kv_heads group_size seq context] = softmax(scores[batch kv_heads group_size seq context])
    mix[batch seq kv_heads group_size head_dim] = probs[batch kv_heads group_size seq context] v[batch context kv_heads head_dim]
"""  # noqa: E501
_GROUPED_OUTPUT = """
    attended[batch seq hidden] = mix[batch seq kv_heads group_size head_dim] Wo[kv_heads group_size head_dim hidden]
    x2[batch seq hidden] = add(x[batch seq hidden], attended[batch seq hidden])
"""

# Multi-head latent attention (DeepSeek-V2 §2.1): one latent gives keys and values; a shared key carries the positions.
_LATENT_INPUT = """
    h1[batch seq hidden] = rmsnorm(x[batch seq hidden], Gain1[hidden])
    kv_down[batch seq kv_rank] = h1[batch seq hidden] Wkv_down[hidden kv_rank]
    kv_latent[batch seq kv_rank] = rmsnorm(kv_down[batch seq kv_rank], Gain_kv[kv_rank])
    k_rope[batch seq rope_dim] = h1[batch seq hidden] Wk_rope[hidden rope_dim]
    k_turned[batch seq rope_dim] = rope(k_rope[batch seq rope_dim])
"""
_LATENT_QUERY = """
    q_down[batch seq q_rank] = h1[batch seq hidden] Wq_down[hidden q_rank]
    q_latent[batch seq q_rank] = rmsnorm(q_down[batch seq q_rank], Gain_q[q_rank])
    q_nope[batch seq heads nope_dim] = q_latent[batch seq q_rank] Wq_nope[q_rank heads nope_dim]
    q_rope[batch seq heads rope_dim] = q_latent[batch seq q_rank] Wq_rope[q_rank heads rope_dim]
    q_turned[batch seq heads rope_dim] = rope(q_rope[batch seq heads rope_dim])
"""
_PLAIN_QUERY = """
    q_nope[batch seq heads nope_dim] = h1[batch seq hidden] Wq_nope[hidden heads nope_dim]
    q_rope[batch seq heads rope_dim] = h1[batch seq hidden] Wq_rope[hidden heads rope_dim]
    q_turned[batch seq heads rope_dim] = rope(q_rope[batch seq heads rope_dim])
"""
_EXPANDED = """
    k_nope[batch seq heads nope_dim] = kv_latent[batch seq kv_rank] Wk_up[kv_rank heads nope_dim]
    v[batch seq heads v_dim] = kv_latent[batch seq kv_rank] Wv_up[kv_rank heads v_dim]
    scores[batch heads seq context] = q_nope[batch seq heads nope_dim] k_nope[batch context heads nope_dim] + q_turned[batch seq heads rope_dim] k_turned[batch context rope_dim]
    probs[batch heads seq context] = softmax(scores[batch heads seq context])
    mix[batch seq heads v_dim] = probs[batch heads seq context] v[batch context heads v_dim]
"""  # noqa: E501
# Decoding absorbs the two up-projections into the queries and the results, so only the latent is cached and read.
_ABSORBED = """
    q_absorbed[batch seq heads kv_rank] = q_nope[batch seq heads nope_dim] Wk_up[kv_rank heads nope_dim]
    scores[batch heads seq context] = q_absorbed[batch seq heads kv_rank] kv_latent[batch context kv_rank] + q_turned[batch seq heads rope_dim] k_turned[batch context rope_dim]
    probs[batch heads seq context] = softmax(scores[batch heads seq context])
    mix_latent[batch seq heads kv_rank] = probs[batch heads seq context] kv_latent[batch context kv_rank]
    mix[batch seq heads v_dim] = mix_latent[batch seq heads kv_rank] Wv_up[kv_rank heads v_dim]
"""  # noqa: E501
_LATENT_OUTPUT = """
    attended[batch seq hidden] = mix[batch seq heads v_dim] Wo[heads v_dim hidden]
    x2[batch seq hidden] = add(x[batch seq hidden], attended[batch seq hidden])
"""

# The feed-forward layer without a gate, and without biases.
_PLAIN = """
    h2[batch seq hidden] = rmsnorm(x2[batch seq hidden], Gain2[hidden])
    up[batch seq ffn] = h2[batch seq hidden] Wup[hidden ffn]
    active[batch seq ffn] = gelu(up[batch seq ffn])
    down[batch seq hidden] = active[batch seq ffn] Wdown[ffn hidden]
    y[batch seq hidden] = add(x2[batch seq hidden], down[batch seq hidden])
"""
# The gated feed-forward layer (Shazeer 2020).
_GATED = """
    h2[batch seq hidden] = rmsnorm(x2[batch seq hidden], Gain2[hidden])
    up[batch seq ffn] = h2[batch seq hidden] Wup[hidden ffn]
    gate[batch seq ffn] = h2[batch seq hidden] Wgate[hidden ffn]
    active[batch seq ffn] = swiglu(up[batch seq ffn], gate[batch seq ffn])
    down[batch seq hidden] = active[batch seq ffn] Wdown[ffn hidden]
    y[batch seq hidden] = add(x2[batch seq hidden], down[batch seq hidden])
"""
# Routed experts, each visited by top_k/experts of the tokens (Shazeer et al. 2017).
_ROUTER = """
    h2[batch seq hidden] = rmsnorm(x2[batch seq hidden], Gain2[hidden])
    logits[batch seq experts] = h2[batch seq hidden] Wrouter[hidden experts]
    weights[batch seq top_k] = topk(logits[batch seq experts])
    sent[experts expert_tokens hidden] = dispatch(h2[batch seq hidden])
    up[experts expert_tokens expert_ffn] = sent[experts expert_tokens hidden] Wup[experts hidden expert_ffn]
"""
_EXPERTS_GATED = """
    gate[experts expert_tokens expert_ffn] = sent[experts expert_tokens hidden] Wgate[experts hidden expert_ffn]
    active[experts expert_tokens expert_ffn] = swiglu(up[experts expert_tokens expert_ffn], gate[experts expert_tokens expert_ffn])
"""  # noqa: E501
_EXPERTS_PLAIN = """
    active[experts expert_tokens expert_ffn] = gelu(up[experts expert_tokens expert_ffn])
"""
_COMBINED = """
    down[experts expert_tokens hidden] = active[experts expert_tokens expert_ffn] Wdown[experts expert_ffn hidden]
    routed[batch seq hidden] = combine(down[experts expert_tokens hidden], weights[batch seq top_k])
"""
# Shared experts, which every token visits (DeepSeekMoE, Dai et al. 2024).
_SHARED = """
    s_up[batch seq shared_experts shared_ffn] = h2[batch seq hidden] Wshared_up[hidden shared_experts shared_ffn]
    s_gate[batch seq shared_experts shared_ffn] = h2[batch seq hidden] Wshared_gate[hidden shared_experts shared_ffn]
    s_active[batch seq shared_experts shared_ffn] = swiglu(s_up[batch seq shared_experts shared_ffn], s_gate[batch seq shared_experts shared_ffn])
    s_down[batch seq hidden] = s_active[batch seq shared_experts shared_ffn] Wshared_down[shared_experts shared_ffn hidden]
    y[batch seq hidden] = add(x2[batch seq hidden], routed[batch seq hidden], s_down[batch seq hidden])
"""  # noqa: E501
_UNSHARED = """
    y[batch seq hidden] = add(x2[batch seq hidden], routed[batch seq hidden])
"""

# The embedding, which stands before the blocks (a look-up without arithmetic), and the head; the loss runs in fp32.
EMBEDDING = parse("""
    x[batch seq hidden], mask[batch seq hidden] = drop(embedded[batch seq hidden])
""")
HEAD = parse("""
    h[batch seq hidden] = layernorm(y[batch seq hidden], Gain[hidden], Shift[hidden])
    fp32_logits[batch seq vocab] = h[batch seq hidden] Wout[vocab hidden]
    loss[batch seq] = cross_entropy(fp32_logits[batch seq vocab])
""")

_ATTENTION = {
    "grouped": _GROUPED_INPUT + _GROUPED_OUTPUT,
    "grouped, gated": _GROUPED_INPUT + GATED,
    "linear": LINEAR,
    "latent": _LATENT_INPUT + _LATENT_QUERY + _EXPANDED + _LATENT_OUTPUT,
    "latent, plain queries": _LATENT_INPUT + _PLAIN_QUERY + _EXPANDED + _LATENT_OUTPUT,
    "latent, indexed": _LATENT_INPUT + _LATENT_QUERY + INDEXER + PICKED + _LATENT_OUTPUT,
    "latent, absorbed": _LATENT_INPUT + _LATENT_QUERY + _ABSORBED + _LATENT_OUTPUT,
    "latent, plain queries, absorbed": _LATENT_INPUT + _PLAIN_QUERY + _ABSORBED + _LATENT_OUTPUT,
}
_FEED_FORWARD = {
    "gated": _GATED,
    "plain": _PLAIN,
    "gated experts": _ROUTER + _EXPERTS_GATED + _COMBINED + _UNSHARED,
    "plain experts": _ROUTER + _EXPERTS_PLAIN + _COMBINED + _UNSHARED,
    "gated experts, shared": _ROUTER + _EXPERTS_GATED + _COMBINED + _SHARED,
}


@cache
def block(attention: str, feed_forward: str) -> Block:
    """Put a block together from an attention ("grouped", "latent", ...) and a feed-forward layer ("gated", ...).

    >>> block("grouped", "gated") == LLAMA
    True
    >>> block("grouped", "gatd")
    Traceback (most recent call last):
        ...
    LookupError: no feed-forward layer is called 'gatd'; did you mean 'gated'?
    """
    parts = (("attention", attention, _ATTENTION), ("feed-forward layer", feed_forward, _FEED_FORWARD))
    for kind, name, known in parts:
        if name not in known:
            raise LookupError(f"no {kind} is called {name!r}; {nearest(name, known)}")
    return parse(_ATTENTION[attention] + _FEED_FORWARD[feed_forward])


LLAMA = block("grouped", "gated")
MOE = block("grouped", "gated experts, shared")
MLA = block("latent", "gated")
MLA_ABSORBED = block("latent, absorbed", "gated")
MLA_MOE = block("latent", "gated experts, shared")
MLA_MOE_ABSORBED = block("latent, absorbed", "gated experts, shared")


def blocks_of(row: Mapping) -> tuple[Block | None, Block | None]:
    """Return a model's dense and mixture-of-experts blocks for training, or None for a kind that it lacks.

    `row` maps letters to numbers, and has the word "norm" in it or in its `words`. Blocks with layer norm and no gate
    are GPT blocks, with biases. All others have one gain per norm and no biases. Head norms and indexers are left out
    because they are small. Raises ValueError for a model with linear attention, because its training has no listing.

    >>> blocks_of({"layers": 32, "gating": 1}) == (LLAMA, None)
    True
    """
    if row.get("linear_layers"):
        name = getattr(row, "name", "a model")
        raise ValueError(
            f"{name} has linear attention in some blocks, whose training has no listing; take another model"
        )
    return _listed(row, _attention(row))


def served_blocks(row: Mapping) -> tuple[Block | Hybrid | None, Block | Hybrid | None]:
    """Return a model's blocks for serving, with any indexers, linear-attention layers and attention gates.

    >>> served_blocks({"layers": 32, "gating": 1}) == (LLAMA, None)
    True
    """
    kind = "latent, indexed" if row.get("index_heads") else "grouped, gated" if row.get("output_gate") else ""
    full = _listed(row, kind or _attention(row))
    if not row.get("linear_layers"):
        return full
    both = zip(full, _listed(row, "linear"), strict=True)
    return tuple(Hybrid(some, linear) if some else None for some, linear in both)


def _attention(row) -> str:
    return ("latent" if row["q_rank"] else "latent, plain queries") if "kv_rank" in row else "grouped"


def _listed(row, attention: str):
    norm = getattr(row, "words", row).get("norm", "")
    routed = row.get("experts", 0) and row.get("moe_layers", 0)
    gating = "gated" if row["gating"] else "plain"
    shared = ", shared" if routed and row.get("shared_experts", 0) else ""
    moe = block(attention, f"{gating} experts{shared}") if routed else None
    if routed == row["layers"]:
        return None, moe
    is_gpt = (norm, gating, attention) == ("layernorm", "plain", "grouped")
    return (GPT if is_gpt else block(attention, gating)), moe


def parameters(dense: Block | None, moe: Block | None = None) -> Expr:
    """Parameters of a model built from these blocks: blocks, embeddings, learned positions and the last norm.

    >>> parameters(LLAMA).diff(symbol("embeddings"))
    hidden*vocab
    """
    return _sum(dense, moe, "params")


def active_parameters(dense: Block | None, moe: Block | None = None) -> Expr:
    """Parameters of a model that one token uses. A token uses `top_k` of the routed experts.

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


def model_params(row: Mapping) -> float:
    """Parameters of a model, computed from its shape. Raises LookupError naming the letters that a row lacks.

    >>> llama3_8b = dict(layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, gating=1,
    ...                  vocab=128256, embeddings=2, learned_positions=0)
    >>> model_params(llama3_8b)
    8030261248.0
    """
    return _value(parameters(*served_blocks(row)), row)


def model_active_params(row: Mapping) -> float:
    """Parameters that one token uses, computed from a model's shape. Both embeddings are counted.

    >>> mixtral_8x7b = dict(layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, gating=1, vocab=32000,
    ...                     embeddings=2, learned_positions=0, moe_layers=32, experts=8, top_k=2, expert_ffn=14336)
    >>> model_active_params(mixtral_8x7b), model_params(mixtral_8x7b)
    (12879925248.0, 46702792704.0)
    """
    return _value(active_parameters(*served_blocks(row)), row)


def _value(expr: Expr, row: Mapping) -> float:
    if missing := sorted(x.name for x in expr.free_symbols if x.name not in row):
        raise LookupError(f"the row lacks {', '.join(missing)}")
    return float(expr.subs({x: row[x.name] for x in expr.free_symbols}))
