"""The letters of frameworks: what a program that trains adds to the work of the devices, one line each."""

from .notation import letter

__all__ = []

_ZERO = "nonnegative"

letter(
    "tp_pieces",
    "%",
    "share of tensor-parallel collectives sent in pieces beside their products",
    r"\omega_{\Box}",
    "share",
)
letter(
    "sent_share", "%", "share of the copies of tokens for experts that is sent, one to each place", r"\sigma_E", "share"
)
letter("element_passes", "", "memory traffic of element-wise steps over that of fused ones", r"\phi_e")
letter("moe_element_passes", "", "the same in models with experts", r"\phi_{e/E}")
letter(
    "library_rate",
    "%",
    "rate of products with the framework's libraries over their rate with today's",
    r"\chi_l",
    "share",
)
letter(
    "attention_short",
    "%",
    "rate of an attention library over the peak, 4,096 tokens, heads of 128",
    r"\eta_{A/4k}",
    "share",
)
letter("attention_long", "%", "the same at 16,384 tokens and more", r"\eta_{A/16k}", "share")
letter("attention_narrow", "%", "rate of attention with heads of 64 over that with heads of 128", r"\chi_{64}", "share")
letter(
    "stream_reached",
    "%",
    "bandwidth of element-wise steps as the framework runs them, over the peak",
    r"\eta_{s\phi}",
    "share",
)
letter(
    "sustained_reached",
    "%",
    "rate of products within a step, with the framework's libraries, over their rate alone",
    r"\chi_{sl}",
    "share",
)
letter("attention_reached", "%", "rate of the framework's attention library over the peak", r"\eta_{A\phi}", "share")
letter(
    "block_wait", "s", "time of the host that adds to every block, forward and backward", r"\tau_{\mathrm{bl}+}", _ZERO
)
letter("moe_block_wait", "s", "the same of a block with experts", r"\tau_{E+}", _ZERO)
letter(
    "block_launch",
    "s",
    "least time in which the host launches a block, forward and backward",
    r"\tau_{\mathrm{bl}}",
    _ZERO,
)
letter("moe_block_launch", "s", "the same of a block with experts", r"\tau_E", _ZERO)
letter("split_launch", "s", "what tensor parallelism adds to it", r"\tau_t", _ZERO)
letter(
    "stage_launch",
    "s",
    "what a pipeline over several domains adds to it for each tensor-parallel way",
    r"\tau_{tp}",
    _ZERO,
)
letter(
    "domain_launch",
    "s",
    "what each further domain of a tensor-parallel group adds to it",
    r"\tau_{\mathrm{dom}}",
    _ZERO,
)
letter("host_launch", "s", "least time in which the host launches a block of this layout", r"\tau_h", _ZERO)
letter("launched_blocks", "", "blocks that a device runs one after another, with the pipeline's idling", r"n_b")
letter("host_exposed", "s", "time of a step that waits for the host", r"T_h^{\mathrm{wait}}", _ZERO)
letter(
    "stall_time",
    "s",
    "time that a stage loses with every tensor it receives, if a node is slow",
    r"\tau_{\mathrm{stall}}",
    _ZERO,
)
letter("stall_ways", "", "tensor-parallel ways beyond which stages always stall", r"n_{\mathrm{stall}}")
letter("received_tensors", "", "tensors that the busiest stage waits for in a micro-batch", r"n_{\mathrm{recv}}", _ZERO)
letter("stall_exposed", "s", "time of a step that waits for slow nodes", r"T_{\mathrm{stall}}^{\mathrm{wait}}", _ZERO)
letter(
    "clamped_experts",
    "",
    "1 where experts have biases and a clamped activation, which few kernels fuse",
    r"\delta_E",
    _ZERO,
)
letter("mtp_blocks", "", "blocks that predict further tokens while a model is trained", r"L_{\mathrm{mtp}}", _ZERO)
