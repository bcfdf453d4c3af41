"""Attention that does not read the whole cache: an indexer that selects keys, or a state in place of a cache.

`scalebook.block.models` puts these listings together. A model with two kinds of attention is a `Hybrid`.

>>> from scalebook.block.models import block
>>> print(block("latent, indexed", "gated")["chosen"])
chosen[batch seq picked] = topk(i_sums[batch seq context])
"""

from dataclasses import dataclass

from sympy import Expr

from scalebook.block.listing import Block
from scalebook.block.operations import base
from scalebook.language.notation import symbol

__all__ = ["GATED", "INDEXER", "LINEAR", "PICKED", "Hybrid", "kinds_of", "state_core"]

# Grouped-query attention with an output gate (Qwen3-Next).
GATED = """
    open[batch seq kv_heads group_size head_dim] = h1[batch seq hidden] Wopen[hidden kv_heads group_size head_dim]
    gated[batch seq kv_heads group_size head_dim] = gate(mix[batch seq kv_heads group_size head_dim], open[batch seq kv_heads group_size head_dim])
    attended[batch seq hidden] = gated[batch seq kv_heads group_size head_dim] Wo[kv_heads group_size head_dim hidden]
    x2[batch seq hidden] = add(x[batch seq hidden], attended[batch seq hidden])
"""  # noqa: E501

# DeepSeek Sparse Attention: an indexer with few narrow heads and one shared key scores every cached token, and the
# best are selected. Prompts too read the absorbed latents: `picked` is the smaller of `context` and `index_tokens`.
INDEXER = """
    i_query[batch seq index_heads index_dim] = q_latent[batch seq q_rank] Windex_query[q_rank index_heads index_dim]
    i_down[batch seq index_dim] = h1[batch seq hidden] Windex_key[hidden index_dim]
    i_key[batch seq index_dim] = layernorm(i_down[batch seq index_dim], Gain_index[index_dim], Shift_index[index_dim])
    i_weights[batch seq index_heads] = h1[batch seq hidden] Windex_weights[hidden index_heads]
    i_scores[batch index_heads seq context] = i_query[batch seq index_heads index_dim] i_key[batch context index_dim]
    i_active[batch index_heads seq context] = relu(i_scores[batch index_heads seq context])
    i_sums[batch seq context] = i_weights[batch seq index_heads] i_active[batch index_heads seq context]
    chosen[batch seq picked] = topk(i_sums[batch seq context])
"""
PICKED = """
    q_absorbed[batch seq heads kv_rank] = q_nope[batch seq heads nope_dim] Wk_up[kv_rank heads nope_dim]
    latents[batch seq picked kv_rank] = pick(kv_latent[batch context kv_rank], chosen[batch seq picked])
    turned[batch seq picked rope_dim] = pick(k_turned[batch context rope_dim], chosen[batch seq picked])
    scores[batch heads seq picked] = q_absorbed[batch seq heads kv_rank] latents[batch seq picked kv_rank] + q_turned[batch seq heads rope_dim] turned[batch seq picked rope_dim]
    probs[batch heads seq picked] = softmax(scores[batch heads seq picked])
    mix_latent[batch seq heads kv_rank] = probs[batch heads seq picked] latents[batch seq picked kv_rank]
    mix[batch seq heads v_dim] = mix_latent[batch seq heads kv_rank] Wv_up[kv_rank heads v_dim]
"""  # noqa: E501

# Gated DeltaNet (Qwen3-Next): every value head has a state. Each token decays the state, reads it with the key,
# corrects it by the result, and reads it with the query. For many tokens these lines are the products with the state;
# kernels that process tokens in chunks add products within each chunk.
LINEAR = """
    h1[batch seq hidden] = rmsnorm(x[batch seq hidden], Gain1[hidden])
    l_query[batch seq linear_key_heads linear_key_dim] = h1[batch seq hidden] Wl_query[hidden linear_key_heads linear_key_dim]
    l_key[batch seq linear_key_heads linear_key_dim] = h1[batch seq hidden] Wl_key[hidden linear_key_heads linear_key_dim]
    l_value[batch seq linear_key_heads linear_group linear_value_dim] = h1[batch seq hidden] Wl_value[hidden linear_key_heads linear_group linear_value_dim]
    l_open[batch seq linear_key_heads linear_group linear_value_dim] = h1[batch seq hidden] Wl_open[hidden linear_key_heads linear_group linear_value_dim]
    l_strength[batch seq linear_key_heads linear_group] = h1[batch seq hidden] Wl_strength[hidden linear_key_heads linear_group]
    l_decay[batch seq linear_key_heads linear_group] = h1[batch seq hidden] Wl_decay[hidden linear_key_heads linear_group]
    l_q[batch seq linear_key_heads linear_key_dim] = conv(l_query[batch seq linear_key_heads linear_key_dim], Wconv_query[linear_conv linear_key_heads linear_key_dim])
    l_k[batch seq linear_key_heads linear_key_dim] = conv(l_key[batch seq linear_key_heads linear_key_dim], Wconv_key[linear_conv linear_key_heads linear_key_dim])
    l_v[batch seq linear_key_heads linear_group linear_value_dim] = conv(l_value[batch seq linear_key_heads linear_group linear_value_dim], Wconv_value[linear_conv linear_key_heads linear_group linear_value_dim])
    recalled[batch seq linear_key_heads linear_group linear_value_dim] = l_k[batch seq linear_key_heads linear_key_dim] fp32_state[batch linear_key_heads linear_group linear_key_dim linear_value_dim]
    change[batch seq linear_key_heads linear_group linear_value_dim] = delta(l_v[batch seq linear_key_heads linear_group linear_value_dim], recalled[batch seq linear_key_heads linear_group linear_value_dim], l_strength[batch seq linear_key_heads linear_group], l_decay[batch seq linear_key_heads linear_group], Decay[linear_key_heads linear_group], Shift_decay[linear_key_heads linear_group])
    written[batch linear_key_heads linear_group linear_key_dim linear_value_dim] = l_k[batch seq linear_key_heads linear_key_dim] change[batch seq linear_key_heads linear_group linear_value_dim]
    fp32_next[batch linear_key_heads linear_group linear_key_dim linear_value_dim] = add(fp32_state[batch linear_key_heads linear_group linear_key_dim linear_value_dim], written[batch linear_key_heads linear_group linear_key_dim linear_value_dim])
    l_mix[batch seq linear_key_heads linear_group linear_value_dim] = l_q[batch seq linear_key_heads linear_key_dim] fp32_next[batch linear_key_heads linear_group linear_key_dim linear_value_dim]
    l_normed[batch seq linear_key_heads linear_group linear_value_dim] = rmsnorm(l_mix[batch seq linear_key_heads linear_group linear_value_dim], Gain_linear[linear_value_dim])
    l_gated[batch seq linear_key_heads linear_group linear_value_dim] = swiglu(l_normed[batch seq linear_key_heads linear_group linear_value_dim], l_open[batch seq linear_key_heads linear_group linear_value_dim])
    attended[batch seq hidden] = l_gated[batch seq linear_key_heads linear_group linear_value_dim] Wl_out[linear_key_heads linear_group linear_value_dim hidden]
    x2[batch seq hidden] = add(x[batch seq hidden], attended[batch seq hidden])
"""  # noqa: E501


@dataclass(frozen=True)
class Hybrid:
    """A model with two kinds of layers: `linear_layers` of its `layers` keep a state, the others attend to a cache.

    Its parameters are the mean over its blocks.
    """

    full: Block
    linear: Block

    @property
    def kinds(self) -> tuple[tuple[Block, Expr], ...]:
        """The two kinds of block, each with its share of the layers."""
        share = symbol("linear_layers") / symbol("layers")
        return (self.full, 1 - share), (self.linear, share)

    @property
    def ops(self):
        return self.full.ops

    @property
    def indices(self) -> tuple[str, ...]:
        return tuple(sorted({*self.full.indices, *self.linear.indices}))

    @property
    def params(self) -> Expr:
        return sum(share * block.params for block, share in self.kinds)

    @property
    def active_params(self) -> Expr:
        return sum(share * block.active_params for block, share in self.kinds)


def kinds_of(block: Block | Hybrid | None) -> tuple[tuple[Block, Expr | int], ...]:
    """Return the kinds of block in a model, each with its share of the layers.

    >>> from scalebook.block.models import LLAMA
    >>> kinds_of(LLAMA) == ((LLAMA, 1),), kinds_of(None)
    (True, ())
    """
    return block.kinds if isinstance(block, Hybrid) else ((block, 1),) if block else ()


def state_core(block: Block) -> frozenset[str]:
    """Return the lines of linear attention that read, update and write its state. They run as one kernel.

    >>> from scalebook.block.models import LLAMA, block
    >>> sorted(state_core(block("linear", "gated"))), sorted(state_core(LLAMA))
    (['change', 'fp32_next', 'l_mix', 'recalled', 'written'], [])
    """
    state = {"linear_key_dim", "linear_value_dim"}
    touched = (op for op in block.ops if any(state <= {base(i) for i in t.indices} for t in (*op.outs, *op.args)))
    return frozenset(op.name for op in touched) | {op.name for op in block.ops if op.function == "delta"}
