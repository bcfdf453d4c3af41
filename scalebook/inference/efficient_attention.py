"""Attention that does not read the whole cache: sparse attention with an indexer, and linear attention with a state.

>>> sorted(linear_parts(decodes=True, reads=False))
['cache_time', 'launches_time']
"""

from sympy import Expr, Min, Piecewise, S

from scalebook.attention.arithmetic import attention_flops, causal_pairs, pair_width_absorbed
from scalebook.attention.kernels import absorbed_traffic, latent_append_traffic
from scalebook.attention.linear import delta_flops, delta_kernel_time, delta_state_traffic, delta_traffic
from scalebook.attention.sparse import index_flops, index_kernel_time, index_traffic, picked_pairs, sparse_kernel_time
from scalebook.language import symbol

__all__ = ["indexed_parts", "linear_parts"]

x = symbol
_INDEX_KERNELS = 3  # kernels of the indexer: cache the key, compute the scores, pick the best
_DECODED = 3  # kernels of linear attention in decoding: convolution, decay and strength, state
_READ = 9  # in prefill: the first two, query and key norms, six for a chunk's products


def indexed_parts(decodes: bool, reads: bool, whole: Expr) -> dict[str, Expr]:
    """Return the time of a layer of sparse latent attention by part, such as "cache_time", as expressions.

    `decodes` and `reads` say what the step does. Prompts up to `dense_tokens` take the time `whole` of full attention.
    """
    total: dict[str, Expr] = {}
    if decodes:
        shape = dict(batch=x("device_batch"), seq=S.One, context=x("context"))
        picked = Min(x("context"), x("index_tokens"), evaluate=False)
        moved = absorbed_traffic.of(
            batch=x("device_batch"),
            heads=x("heads") / x("tp"),
            seq=S.One,
            context=picked,
            query_bits=x("result_bits"),
            activation_bits=x("result_bits"),
        )
        attended = _sparse(x("device_batch"), picked, moved, x("read_efficiency"))
        total["cache_time"] = _index(shape, x("context"), x("read_efficiency")) + attended
        total["launches_time"] = x("read_launch") + _INDEX_KERNELS * x("kernel_launch")
    if reads:
        ends = dict(seq=x("read_chunk"), context=x("past") + x("read_chunk"))
        pairs = picked_pairs.of(**ends)
        keys = (x("kv_rank") + x("rope_dim")) * x("kv_bits") / 8
        ends_of_queries = x("read_chunk") * x("heads") / x("tp") * (2 * x("kv_rank") + x("rope_dim"))
        moved = x("prompts") * (pairs * keys + ends_of_queries * x("result_bits") / 8)
        shape = dict(batch=x("prompts"), **ends)
        appended = latent_append_traffic.of(
            batch=x("prompts"), seq=x("read_chunk"), heads=x("heads") / x("tp"), activation_bits=x("result_bits")
        )
        picked = (
            _index(shape, causal_pairs.of(**ends), x("prompt_efficiency"))
            + _sparse(x("prompts"), pairs, moved, x("prompt_efficiency"))
            + appended / (x("prompt_efficiency") * x("hbm_bandwidth"))
        )
        total["reading_time"] = Piecewise((whole, ends["context"] <= x("dense_tokens")), (picked, True))
        read = x("prompt_launch") + _INDEX_KERNELS * x("kernel_launch")
        total["launches_time"] = total.get("launches_time", S.Zero) + read
    return total


def _index(shape, pairs, efficiency) -> Expr:
    return index_kernel_time.of(
        batch=shape["batch"],
        pairs=pairs,
        flops=index_flops.of(batch=shape["batch"], pairs=pairs),
        traffic=index_traffic.of(batch=shape["batch"], pairs=pairs, context=shape["context"]),
        bandwidth_efficiency=efficiency,
    )


def _sparse(batch, pairs, moved, efficiency) -> Expr:
    width = pair_width_absorbed.of(heads=x("tiled_heads"))
    return sparse_kernel_time.of(
        flops=attention_flops.of(batch=batch, pairs=pairs, pair_width=width),
        peak_flops=x("attention_peak"),
        traffic=moved,
        bandwidth_efficiency=efficiency,
    )


def linear_parts(decodes: bool, reads: bool) -> dict[str, Expr]:
    """Return the time of a layer of linear attention by part: the convolution and the state, as expressions."""
    total: dict[str, Expr] = {}
    if decodes:
        moved = delta_state_traffic.of(batch=x("device_batch"))
        total["cache_time"] = moved / (x("stream_efficiency") * x("hbm_bandwidth"))
        total["launches_time"] = _DECODED * x("kernel_launch")
    if reads:
        keys, values = x("linear_key_heads") / x("tp"), x("linear_value_heads") / x("tp")
        shape = dict(batch=x("prompts"), seq=x("read_chunk"))
        total["reading_time"] = delta_kernel_time.of(
            attention_flops=delta_flops.of(**shape, linear_value_heads=values),
            peak_flops=x("attention_peak") * x("matmul_bf16"),
            traffic=delta_traffic.of(
                **shape, linear_key_heads=keys, linear_value_heads=values, activation_bits=x("result_bits")
            ),
            bandwidth_efficiency=x("stream_efficiency"),
        )
        total["launches_time"] = total.get("launches_time", S.Zero) + _READ * x("kernel_launch")
    return total
