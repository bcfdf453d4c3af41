"""The letters of training frameworks: overlap, kernel libraries and host time."""

from .notation import letter

__all__ = []

_ZERO = "nonnegative"

letter(
    "tp_pieces",
    "%",
    "share of tensor-parallel collectives overlapped in pieces with their products",
    r"\omega_{\Box}",
    "share",
)
letter("sent_share", "%", "share of token copies for experts that is sent, duplicates removed", r"\sigma_E", "share")
letter("element_passes", "", "memory traffic of element-wise steps relative to fused kernels", r"\phi_e")
letter(
    "moe_element_passes",
    "",
    "memory traffic of element-wise steps relative to fused kernels in models with experts",
    r"\phi_{e/E}",
)
letter(
    "library_rate",
    "%",
    "rate of products with the framework's libraries relative to today's",
    r"\chi_l",
    "share",
)
letter(
    "attention_short",
    "%",
    "share of the peak that an attention library reaches at 4096 tokens",
    r"\eta_{A/4k}",
    "share",
)
letter(
    "attention_long",
    "%",
    "share of the peak that an attention library reaches at 16384 tokens and more",
    r"\eta_{A/16k}",
    "share",
)
letter("attention_narrow", "%", "rate of attention with heads of 64 relative to heads of 128", r"\chi_{64}", "share")
letter(
    "stream_reached",
    "%",
    "share of memory bandwidth that the framework's element-wise steps reach",
    r"\eta_{s\phi}",
    "share",
)
letter(
    "sustained_reached",
    "%",
    "rate of the framework's products in a step relative to today's running alone",
    r"\chi_{sl}",
    "share",
)
letter(
    "attention_reached",
    "%",
    "share of the peak that the framework's attention library reaches",
    r"\eta_{A\phi}",
    "share",
)
letter("block_wait", "s", "host wait per block, forward and backward", r"\tau_{\mathrm{bl}+}", _ZERO)
letter("moe_block_wait", "s", "host wait per block with experts, forward and backward", r"\tau_{E+}", _ZERO)
letter(
    "block_launch",
    "s",
    "minimum host launch time per block, forward and backward",
    r"\tau_{\mathrm{bl}}",
    _ZERO,
)
letter(
    "moe_block_launch", "s", "minimum host launch time per block with experts, forward and backward", r"\tau_E", _ZERO
)
letter("split_launch", "s", "extra launch time per block with tensor parallelism", r"\tau_t", _ZERO)
letter(
    "stage_launch",
    "s",
    "extra launch time per block and tensor-parallel device in a pipeline over several domains",
    r"\tau_{tp}",
    _ZERO,
)
letter(
    "domain_launch",
    "s",
    "extra launch time per block and further domain of a tensor-parallel group",
    r"\tau_{\mathrm{dom}}",
    _ZERO,
)
letter("host_launch", "s", "minimum host launch time per block with this layout", r"\tau_h", _ZERO)
letter("launched_blocks", "", "blocks launched per device and step, pipeline idling included", r"n_b")
letter("host_exposed", "s", "exposed host time per step", r"T_h^{\mathrm{wait}}", _ZERO)
letter(
    "stall_time",
    "s",
    "stall of a stage per received tensor if a node is slow",
    r"\tau_{\mathrm{stall}}",
    _ZERO,
)
letter("stall_ways", "", "tensor-parallel size above which stages always stall", r"n_{\mathrm{stall}}")
letter("received_tensors", "", "tensors per micro-batch that the busiest stage waits for", r"n_{\mathrm{recv}}", _ZERO)
letter("stall_exposed", "s", "time per step lost to slow nodes", r"T_{\mathrm{stall}}^{\mathrm{wait}}", _ZERO)
letter(
    "clamped_experts",
    "",
    "experts with biases and a clamped activation (1) or without (0)",
    r"\delta_E",
    _ZERO,
)
letter("mtp_blocks", "", "multi-token-prediction blocks in training", r"L_{\mathrm{mtp}}", _ZERO)
