"""Attention operators as serving engines run them: sheets that need a device's row and a shape.

>>> from scalebook.tables import accelerators
>>> shape = dict(batch=64, heads=32, kv_heads=8, head_dim=128, context=8192, kv_bits=16)
>>> round(1e6 * decode_attention(accelerators.h200.at("bf16"), **shape).kernel_time)
630
"""

from sympy import Min

from scalebook.attention import arithmetic
from scalebook.attention import assumptions as attended
from scalebook.attention import kernels as fused
from scalebook.inference import assumptions
from scalebook.inference.assumptions import READ_CELLS, one_new_token, queries_as_they_come
from scalebook.language import Formula, Sheet, formula, formulas_of, symbol
from scalebook.language.defaults import equations
from scalebook.language.notation import replaced
from scalebook.machine import operators as layers
from scalebook.machine.kernels import one_core

_HERE = "aiconfigurator"


_OWN = equations(__name__)  # those of operators.toml


def _read(kind: str, **own) -> tuple[Formula, ...]:
    """Return the time of an engine's decode attention, and the defaults of a device's letters for a kind of cache."""
    cells = READ_CELLS[kind]

    def time():
        letters = dict(launch_time=symbol("read_launch"), bandwidth_efficiency=symbol("read_efficiency"), **own)
        read = fused.decode_kernel_time.of(**letters)
        return replaced(read, {symbol(f.letter): symbol(cell) for cell, f in cells.items()})

    usual = [Formula(f"{cell}_usual", cell, f.rhs, f.sources, f.meaning) for cell, f in cells.items()]
    return Formula(f"{kind}_decode_time", "kernel_time", time, ("dao2022 §3.2", _HERE)), *usual


@formula("score_flops", "aiconfigurator-2026")
def score_flops_widened(head_dim, widen_flops):
    """Vector arithmetic per score if 8-bit keys and values are widened to 16 bits for each tile, on top of the softmax.

    >>> score_flops_widened(head_dim=128, widen_flops=2)
    282.0
    """
    return assumptions.score_arithmetic.rhs + widen_flops * head_dim


# Latents


@formula("append_traffic", "deepseek2024-v2 §2.1", "trtllm-dispatch")
def latent_append_quantized(batch, seq, heads, kv_rank, nope_dim, rope_dim, v_dim, kv_bits, activation_bits):
    """Bytes moved to append latents to the cache; for an 8-bit cache, queries, keys and values are also quantized.

    >>> shape = dict(batch=1, heads=128, kv_rank=512, nope_dim=128, rope_dim=64, v_dim=128, seq=8192)
    >>> latent_append_quantized(shape, kv_bits=8, activation_bits=16) / 1e6
    2027.421696
    """
    width = 2 * (nope_dim + rope_dim) + v_dim
    quantized = Min(1, activation_bits / kv_bits - 1, evaluate=False)
    moved = batch * seq * heads * width * (activation_bits + kv_bits) / 8
    return fused.latent_append_traffic.of() + quantized * moved


@formula("kernel_time", "deepseek2024-v2 §2.1", _HERE, given=[latent_append_quantized, _OWN.latent_prompt_traffic])
def latent_prompt_time(
    prompt_launch, append_traffic, traffic, hbm_bandwidth, prompt_efficiency, busy_pairs, nope_dim, rope_dim, v_dim,
    peak_flops, score_flops, peak_vector,
):  # fmt: skip
    """Time of prompt attention with latents expanded: `prefill_kernel_time` with half of a pair's width per head.

    >>> 1e3 * latent_prompt_time(prompt_launch="15 us", append_traffic="1 kB", traffic="1 kB",
    ...     hbm_bandwidth="3.35 TB/s", prompt_efficiency=0.6, busy_pairs=1e9, nope_dim=128, rope_dim=64, v_dim=128,
    ...     peak_flops="989.4 TFLOP/s", score_flops=26, peak_vector="66.9 TFLOP/s")
    1.05049...
    """
    return fused.prefill_kernel_time.of(head_dim=(nope_dim + rope_dim + v_dim) / 2)


_PROMPT = (
    attended.prefill_context, assumptions.one_tile, one_core, attended.sixteen_bits, fused.tiled_pairs,
    fused.busy_pairs, assumptions.prompt_launch, assumptions.prompt_efficiency, assumptions.score_arithmetic,
)  # fmt: skip
_DECODED = (
    one_new_token, one_core, attended.sixteen_bits, queries_as_they_come, arithmetic.full_pairs,
    arithmetic.attention_flops, fused.kernel_flops,
)  # fmt: skip
_DECODE_TIME, *_READ = _read("grouped")
_GROUPED = (*_DECODED, arithmetic.pair_width_grouped, fused.least_traffic, *_READ)


def _issued_too(name: str, doc: str, *formulas) -> tuple[Sheet, Sheet]:
    """Return a kernel's sheet, and the sheet of the same kernel if the host launches it."""
    issued = Sheet(f"{name}_issued", *formulas, _OWN.kernel_issued, doc=f"{doc} The host launches each kernel.")
    return Sheet(name, *formulas, doc=doc), issued


prompt_attention, prompt_attention_issued = _issued_too(
    "prompt_attention", "An engine's operator of causal attention over prompts: the cache written, and attention.",
    *_PROMPT, queries_as_they_come, fused.append_traffic, fused.least_traffic, fused.prefill_kernel_time,
)  # fmt: skip
decode_attention, decode_attention_issued = _issued_too(
    "decode_attention",
    "An engine's operator of attention to cached keys and values, for one new token of each sequence.",
    *_GROUPED, _DECODE_TIME,
)  # fmt: skip
decode_attention_by_cores = Sheet(
    "decode_attention_by_cores", *_GROUPED, _OWN.decode_time_by_cores, _OWN.resident_when_repeated,
    doc="Decode attention by kernels whose time per core a library gives: mmha and xqa of TensorRT-LLM.",
)  # fmt: skip
latent_prompt_attention = Sheet(
    "latent_prompt_attention", *_PROMPT, latent_append_quantized, _OWN.latent_prompt_traffic,
    latent_prompt_time,
    doc="An engine's operator of latent attention over prompts, with the latents expanded for each head.",
)  # fmt: skip
latent_decode_attention = Sheet(
    "latent_decode_attention", *_DECODED, arithmetic.pair_width_absorbed, fused.absorbed_traffic,
    *_read("latent", kv_heads=1),
    doc="An engine's operator of absorbed attention to cached latents, for one new token of each sequence.",
)  # fmt: skip
_QUANTIZED = (layers.single_product, layers.results_of_16_bits, assumptions.state_l2)
quantize_kernel = Sheet(
    "quantize_kernel", *_QUANTIZED, _OWN.resident_tensor, _OWN.quantize_time_alone,
    doc="A kernel that quantizes a product's input, alone in a benchmark. In a service, give resident_share=0.",
)  # fmt: skip
scale_kernel = Sheet(
    "scale_kernel", *_QUANTIZED, one_core, _OWN.resident_read, _OWN.scale_time_alone,
    doc="A search for the scales of a product's input, alone in a benchmark. In a service, give resident_share=0.",
)  # fmt: skip
flash_attention = Sheet(
    "flash_attention", attended.prefill_context, assumptions.one_tile, fused.tiled_pairs, attended.sixteen_bits,
    queries_as_they_come, fused.least_traffic, *_READ[:2], assumptions.score_arithmetic, _OWN.flash_kernel_time,
    doc="A fused causal attention kernel by itself. Without a mask, give pairs: the square of the length.",
)  # fmt: skip

__all__ = [
    *formulas_of(__name__),
    "decode_attention", "decode_attention_by_cores", "decode_attention_issued", "flash_attention",
    "latent_decode_attention", "latent_prompt_attention", "prompt_attention", "prompt_attention_issued",
    "quantize_kernel", "scale_kernel",
]  # fmt: skip
