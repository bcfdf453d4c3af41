r"""Letters that only Calculon's account of a step needs, entered into the notation.

>>> from scalebook.language import NOTATION
>>> NOTATION["block_input_traffic"]
block_input_traffic (B): memory traffic of one block's input gradient
"""

from scalebook.language.notation import letter

__all__ = ["KINDS", "PASSES", "WAYS"]

_ZERO = "nonnegative"

# The passes over a block, with Calculon's abbreviations.
PASSES = {
    "forward": ("one block's forward pass", "fw"),
    "again": ("one block's recomputation", "re"),
    "input": ("one block's input gradient", "dx"),
    "weight": ("one block's weight gradient", "dw"),
    "update": ("one block's weight update", "o"),
}
KINDS = {"base": "a block inside a chunk", "edge": "the block at the end of a chunk"}
_EXCHANGING = (("forward", "fw", "forward pass"), ("input", "b", "input gradient"), ("again", "re", "recomputation"))
WAYS = {"tp": "tensor-parallel", "pp": "pipeline", "dp": "data-parallel"}

for _name, (_words, _short) in PASSES.items():
    _of = rf"{{\mathrm{{{_short}}}}}"
    letter(f"block_{_name}_flops", "FLOP", f"arithmetic of {_words}, element-wise work included", f"Q_{_of}", _ZERO)
    letter(f"block_{_name}_compute", "s", f"time of the arithmetic of {_words}", f"F_{_of}", _ZERO)
    letter(f"block_{_name}_traffic", "B", f"memory traffic of {_words}", f"B_{_of}", _ZERO)
    letter(f"block_{_name}_memory", "s", f"time of the memory traffic of {_words}", f"W_{_of}", _ZERO)
    letter(f"block_{_name}_time", "s", f"time of {_words}, without exchanges", f"T_{_of}", _ZERO)
for _kind, _words in KINDS.items():
    for _name, _short, _pass in _EXCHANGING:
        _what, _of = (
            f"tensor-parallel exchanges in the {_pass} of {_words}",
            rf"{{\mathrm{{{_kind[0]},{_short}}}}}",
        )
        letter(f"{_kind}_{_name}_bytes", "B", f"buffers of {_what}", f"X_{_of}", _ZERO)
        letter(f"{_kind}_{_name}_link", "s", f"time of {_what}", f"N_{_of}", _ZERO)
        letter(f"{_kind}_{_name}_exposed", "s", f"exposed time of {_what}", f"E_{_of}", _ZERO)
    for _name in ("forward", "backward"):
        _of = rf"{{\mathrm{{{_kind[0]},{_name[0]}}}}}"
        letter(f"{_kind}_{_name}_alone", "s", f"{_name} time of {_words} without offloading", f"A_{_of}", _ZERO)
        letter(
            f"{_kind}_{_name}_wait",
            "s",
            f"exposed {_name} time of second-tier transfers in {_words}",
            f"D_{_of}",
            _ZERO,
        )
        letter(f"{_kind}_{_name}_time", "s", f"{_name} time of {_words}, all exposed time included", f"T_{_of}", _ZERO)
    letter(f"{_kind}_window", "s", f"time of {_words} that can hide gradient exchanges", rf"H_{_kind[0]}", "real")
for _name in ("forward", "backward"):
    letter(f"chunk_{_name}_time", "s", f"{_name} time per chunk", rf"C_{_name[0]}", _ZERO)
    letter(f"{_name}_send_bytes", "B", f"bytes of a {_name} pipeline send", rf"X_{{p,{_name[0]}}}", _ZERO)
    letter(f"{_name}_send_time", "s", f"time of a {_name} pipeline send", rf"N_{{p,{_name[0]}}}", _ZERO)
    letter(
        f"{_name}_move_bytes",
        "B",
        f"bytes of one block moved to or from the second tier, {_name}",
        rf"X_{{2,{_name[0]}}}",
        _ZERO,
    )
    letter(f"{_name}_move_time", "s", f"time of second-tier moves per block, {_name}", rf"N_{{2,{_name[0]}}}", _ZERO)
    letter(
        f"{_name}_hiding_time", "s", f"time of a block that can hide second-tier moves, {_name}", rf"H_{{2,{_name[0]}}}"
    )
    letter(f"{_name}_wait_time", "s", f"exposed time of second-tier moves per step, {_name}", rf"D_{_name[0]}", _ZERO)

for _way, _words in WAYS.items():
    letter(f"{_way}_bandwidth", "B/s", f"bandwidth of {_words} exchanges per device", f"W_{{{_way}}}")
    letter(f"{_way}_latency", "s", f"latency of a {_words} exchange", rf"\lambda_{{{_way}}}", _ZERO)
    letter(
        f"{_way}_usage", "%", f"share of the arithmetic units that {_words} exchanges take", f"u_{{{_way}}}", "share"
    )
    letter(f"{_way}_tier", "", f"number of the network for {_words} exchanges, from 0", rf"k_{{{_way}}}", _ZERO)
    letter(f"{_way}_link_time", "s", f"time of {_words} exchanges per step", f"N_{{{_way}}}", _ZERO)
letter("again_link_time", "s", "time of recomputed exchanges per step", r"N_{\mathrm{re}}", _ZERO)
letter("again_exposed_time", "s", "exposed time of recomputed exchanges per step", r"E_{\mathrm{re}}", _ZERO)

letter("missing_blocks", "", "blocks missing in the last stages", r"\ell_0", _ZERO)
letter("missing_microbatches", "", "micro-batches missing to a multiple of the stages", r"m_0", _ZERO)
letter("chunk_blocks", "", "blocks per chunk", r"\ell_v")
letter("optimizer_shards", "", "devices that shard gradients and optimizer state", "z")

letter("block_working", "B", "activations of one block at work", r"M_{\mathrm{work}}^{L}", _ZERO)
letter("block_stored", "B", "activations saved per block", r"M_{\mathrm{kept}/L}", _ZERO)
letter("block_checkpoint", "B", "saved input of a fully recomputed block", r"M_{x/L}", _ZERO)
letter("block_gradients", "B", "weight gradients per block, as exchanged and sharded", r"M_{g/L}", _ZERO)
letter("block_whole_gradients", "B", "weight gradients per block, accumulated in fp32", r"M_{G/L}", _ZERO)
letter("block_activation_gradients", "B", "activation gradients per block", r"M_{d/L}", _ZERO)
letter("block_optimizer", "B", "optimizer state per block and device", r"M_{O/L}", _ZERO)
letter("checkpoint_memory", "B", "memory for saved block inputs", r"M_x", _ZERO)
letter("activation_gradient_memory", "B", "memory for activation gradients per device", r"M_d", _ZERO)
for _name, _what, _mark in [
    ("weights", "weights", "w"),
    ("activations", "activations", "a"),
    ("activation_gradients", "activation gradients", "d"),
    ("checkpoints", "saved block inputs", "c"),
    ("gradients", "weight gradients", "g"),
    ("optimizer", "optimizer state", "o"),
]:
    letter(
        f"near_{_name}",
        "B",
        f"{_what} kept in device memory under offloading",
        rf"M_{{\mathrm{{near}},{_mark}}}",
        _ZERO,
    )

letter("block_reduce_bytes", "B", "bytes of one block's gradients exchanged by data-parallel devices", r"X_d", _ZERO)
letter("block_reduce_time", "s", "time to exchange one block's gradients", r"N_d", _ZERO)
letter("reduce_compute", "s", "time of block arithmetic slowed down by gradient exchanges", r"F_d", _ZERO)
letter("chunk_window", "s", "time of a chunk that can hide gradient exchanges", "H", "real")
letter("tail_window", "s", "time of the last chunk that can hide gradient exchanges", "H_1", "real")
letter(
    "collisions",
    "",
    "pipeline sends during one chunk's gradient exchange on the same network",
    "n_{\\mathrm{hit}}",
    _ZERO,
)
letter("chunk_excess", "s", "time of a chunk's gradient exchange beyond its window", r"\Delta", "real")
letter("tail_excess", "s", "time of the last chunk's gradient exchange beyond its window", r"\Delta_1", "real")
letter("reduce_scale", "", "bytes sent over bytes exchanged for gradients", r"\kappa_d")

letter("tp_bandwidth_needed", "B/s", "bandwidth that hides tensor-parallel exchanges", r"W_{t}^{\star}", _ZERO)
letter(
    "dp_bandwidth_needed",
    "B/s",
    "bandwidth that hides the gradient exchange of all chunks except the last",
    r"W_{d}^{\star}",
    _ZERO,
)
letter(
    "dp_tail_needed", "B/s", "bandwidth that hides the gradient exchange of the last chunk", r"W_{d,1}^{\star}", _ZERO
)
letter("weight_move_needed", "B/s", "second-tier bandwidth that hides offloaded weights", r"W_{2,w}^{\star}", _ZERO)
letter(
    "activation_move_needed",
    "B/s",
    "second-tier bandwidth that hides offloaded activations",
    r"W_{2,a}^{\star}",
    _ZERO,
)
letter(
    "optimizer_move_needed",
    "B/s",
    "second-tier bandwidth that hides offloaded optimizer state",
    r"W_{2,o}^{\star}",
    _ZERO,
)
letter("move_needed", "B/s", "second-tier bandwidth that hides all offloading", r"W_{2}^{\star}", _ZERO)

letter("useful_flops", "FLOP", "useful arithmetic per block and micro-batch, without recomputation", r"Q_u")
letter("busy_share", "%", "utilisation during the passes: useful arithmetic at peak over their time", r"\eta_c", _ZERO)
letter("passes_share", "%", "time of the passes over the step time", r"\eta_s", _ZERO)
letter("useful_share", "%", "model FLOPs utilisation: useful arithmetic at peak over the step time", r"\eta", _ZERO)
letter("sequence_rate", "/s", "sequence throughput", r"R_B")
letter("sequence_time", "s", "step time per sequence", r"T_B")
