"""Tokens of an image or of speech in a prompt: an encoder makes them before the model reads them.

`serve(models.read("config.json"), device, encoder_tokens=1024, ...)` adds these tokens to each prompt, and the
encoder's time and weights to the service. Each device has the whole encoder, and one device encodes a prompt.

>>> vision = dict(encoder_params=411e6, encoder_layers=27, encoder_heads=16, encoder_head_dim=72, encoder_merge=4)
>>> h100 = dict(cores=132, hbm_bandwidth="3.35 TB/s", stream_efficiency=0.9, attention_peak="989.4 TFLOP/s")
>>> round(encoder_time(vision, h100, encoder_tokens=1024, matmul_bf16=0.7, result_bits=16), 4)
0.0102
"""

from functools import cache

from sympy import Max, Min

from scalebook.attention.encoders import encoder_kernel_time, encoder_traffic, encoder_waves, padded_dim
from scalebook.inference.state_operators import encoder_defaults
from scalebook.language import Formula, Sheet, formula, symbol
from scalebook.language.notation import replaced

__all__ = ["encoder_time"]


@formula("encoder_time", "sglang-encoder", "aiconfigurator-2026", given=encoder_defaults)
def encoder_time(
    encoder_tokens, encoder_merge, encoder_params, encoder_layers, encoder_heads, encoder_head_dim, result_bits,
    attention_peak, matmul_bf16, stream_efficiency, hbm_bandwidth, cores, launch_time, core_time, kernel_efficiency,
    bandwidth_efficiency,
):  # fmt: skip
    """Time of a prompt's encoder on one device, in seconds: products (or reading the weights, if longer) and attention.

    Each token stands for `encoder_merge` patches. Every patch attends to every other patch, so all tokens are assumed
    to come from one image. The projection to the model's width, a few per cent of the encoder, is left out. A device
    that runs an encoder's kernel, as `h100.running("encoder_flash_3")`, has that kernel's times.

    >>> vision = dict(encoder_params=411e6, encoder_layers=27, encoder_heads=16, encoder_head_dim=72, encoder_merge=4)
    >>> h100 = dict(cores=132, hbm_bandwidth="3.35 TB/s", stream_efficiency=0.9, attention_peak="989.4 TFLOP/s")
    >>> bits = dict(matmul_bf16=0.7, result_bits=16)
    >>> [round(1e3 * encoder_time(vision, h100, bits, encoder_tokens=x), 2) for x in (0, 256)]
    [0.0, 1.87]
    """
    patches = encoder_tokens * encoder_merge
    flops = 2 * encoder_params * patches / (matmul_bf16 * attention_peak)
    read = encoder_params * result_bits / 8 / (stream_efficiency * hbm_bandwidth)
    shape = dict(batch=1, heads=encoder_heads, seq=patches)
    attention = encoder_kernel_time.of(
        waves=encoder_waves.of(**shape, query_tile=128, cores=cores), query_tile=128, cores=cores, seq=patches,
        padded_dim=padded_dim.of(head_dim=encoder_head_dim), peak_flops=attention_peak, hbm_bandwidth=hbm_bandwidth,
        traffic=encoder_traffic.of(**shape, head_dim=encoder_head_dim, activation_bits=result_bits),
    )  # fmt: skip
    return Min(1, encoder_tokens, evaluate=False) * (Max(flops, read, evaluate=False) + encoder_layers * attention)


@cache
def with_encoder(sheet: Sheet) -> Sheet:
    """Return a service's sheet with an encoder: its tokens lengthen every prompt, and are encoded first.

    Prompts that are read together are encoded by different devices of their group.

    >>> from scalebook.inference.serving import serve_sheet
    >>> from scalebook.block import LLAMA
    >>> "encoder_tokens" in with_encoder(serve_sheet(LLAMA, None, "all_reduce")).formulas["chunks_of_prompt"].inputs
    True
    """
    x = symbol
    has_any = Min(1, x("encoder_tokens"), evaluate=False)
    together = Max(1, x("prompts_together") / x("tp"), evaluate=False)
    added = {
        "mixed_time": x("encoder_time") * together / x("chunks_of_prompt"),
        "held_weights": has_any * x("encoder_params") * x("result_bits") / 8,
    }
    longer = {x("prompt"): x("prompt") + x("encoder_tokens")}
    own = dict(sheet.formulas)
    for letter, f in own.items():
        if letter in added or "prompt" in f.inputs:
            rhs = replaced(f.rhs, longer) + added.get(letter, 0)
            own[letter] = Formula(f"{f.name}_encoding", letter, rhs, f.sources, f.__doc__, domain=f.domain)
    return type(sheet)(sheet.name, *own.values(), encoder_time, *encoder_defaults, doc=sheet.doc, changes=sheet.changes)
