"""Kernels of hybrid models and of vision encoders as serving engines run them: sheets that need a device and a shape.

A call that names no library gets typical values of the H100. `tables.libraries` has measured kernels of three engines.

>>> from scalebook.tables import accelerators
>>> kimi = dict(linear_key_heads=96, linear_value_heads=96, linear_key_dim=128, linear_value_dim=128, key_gates=1)
>>> round(1e6 * state_prompt(accelerators.h100.at("bf16"), kimi, batch=1, seq=4096).kernel_time)
1142
"""

from sympy import Max, Min

from scalebook.attention import arithmetic, encoders, hyper_connections, linear, states
from scalebook.attention import assumptions as attended
from scalebook.language import Sheet, formula
from scalebook.language.defaults import equations
from scalebook.machine.kernels import one_core

from . import assumptions
from .operators import resident_when_repeated

__all__ = [
    "conv_time_in_tiles", "convolution_defaults", "decode_defaults", "encoder_defaults", "first_chunk_steps",
    "hyper_connections_around", "hyper_defaults", "prompt_defaults", "resident_at_sites", "resident_in_place",
    "short_convolution", "state_decode", "state_prompt", "vision_attention",
]  # fmt: skip

_HERE = "aiconfigurator-2026"
_DEFAULTS = vars(equations(__name__))  # those of state_operators.toml
conv_time_in_tiles, first_chunk_steps = (_DEFAULTS[x] for x in ("conv_time_in_tiles", "first_chunk_steps"))


convolution_defaults, prompt_defaults, decode_defaults, hyper_defaults, encoder_defaults = (
    tuple(f for name, f in _DEFAULTS.items() if name.startswith(kind))
    for kind in ("convolution", "state_prompt", "state_decode", "hyper", "encoder")
)


@formula("resident_share", _HERE)
def resident_in_place(traffic, l2_capacity):
    """Share of traffic that hits the L2 cache if a benchmark repeats a kernel that writes in place.

    It is 1 if the data fill at most three quarters of the cache, 0 if they fill it. In a service, give 0.

    >>> [resident_in_place(traffic=x, l2_capacity="100 MB") for x in ("100 MB", "180 MB", "300 MB")]
    [1.0, 0.4, 0.0]
    """
    return Max(0, Min(1, 4 - 2 * traffic / l2_capacity, evaluate=False), evaluate=False)


@formula("resident_share", _HERE)
def resident_at_sites(hyper_sites, traffic, l2_capacity):
    """Share of hyper-connections' traffic that hits the L2 cache if a benchmark repeats all of a block.

    >>> [resident_at_sites(hyper_sites=2, traffic=x, l2_capacity="100 MB") for x in ("50 MB", "60 MB", "70 MB")]
    [1.0, 0.2, 0.0]
    """
    return resident_when_repeated.of(traffic=hyper_sites * traffic)


_SHAPE = (attended.sixteen_bits, attended.linear_bits_wide, attended.gates_per_head, one_core, assumptions.state_l2)

short_convolution = Sheet(
    "short_convolution", attended.sixteen_bits, one_core, assumptions.state_l2, states.conv_width,
    attended.conv_tokens_triton, attended.conv_channels_triton, states.conv_items, states.conv_traffic,
    assumptions.no_steps, *convolution_defaults, resident_in_place, states.state_kernel_time,
    doc="The convolution over a few tokens before linear attention or Mamba-2, of prompts or (seq=1) in decoding.",
)  # fmt: skip
state_prompt = Sheet(
    "state_prompt", *_SHAPE, attended.delta_chunk, linear.delta_flops, states.chunk_items, states.chunk_steps,
    states.state_prompt_traffic, *prompt_defaults, assumptions.nothing_resident, states.state_kernel_time,
    doc="Linear attention over prompts in chunks: Gated DeltaNet, or Kimi's delta attention with key_gates=1.",
)  # fmt: skip
state_decode = Sheet(
    "state_decode", *_SHAPE, states.recurrent_items, assumptions.drafted_steps, states.recurrent_traffic,
    *decode_defaults, resident_in_place, states.state_kernel_time,
    doc="Decoding with a state: each sequence's is read and written. With seq > 1, drafted tokens are checked.",
)  # fmt: skip
hyper_connections_around = Sheet(
    "hyper_connections_around", attended.sixteen_bits, assumptions.state_l2, attended.hyper_sites,
    attended.sinkhorn_twenty, hyper_connections.hyper_flops, hyper_connections.hyper_traffic, *hyper_defaults,
    resident_at_sites, hyper_connections.hyper_time,
    doc="Hyper-connections before or after a block's two parts; after them the arithmetic is less, and hidden in both.",
)  # fmt: skip
vision_attention = Sheet(
    "vision_attention", attended.sixteen_bits, one_core, assumptions.one_tile, attended.prefill_context,
    arithmetic.full_pairs, arithmetic.pair_width_grouped, arithmetic.attention_flops, encoders.padded_dim,
    encoders.encoder_traffic, encoders.encoder_waves, *encoder_defaults, encoders.encoder_kernel_time,
    doc="Attention of a vision encoder: every patch attends to all patches of its image.",
)  # fmt: skip
