r"""Letters that only Calculon's account of a step needs, entered into the notation.

>>> from scalebook.language import NOTATION
>>> NOTATION["block_input_traffic"]
block_input_traffic (B): bytes moved for the gradient of one block's inputs
"""

from scalebook.language.notation import letter

__all__ = ["KINDS", "PASSES", "WAYS"]

_ZERO = "nonnegative"

# The passes over a block, and how Calculon's outputs abbreviate them.
PASSES = {
    "forward": ("the forward pass of one block", "fw"),
    "again": ("what the backward pass of one block runs again", "re"),
    "input": ("the gradient of one block's inputs", "dx"),
    "weight": ("the gradient of one block's weights", "dw"),
    "update": ("the update of one block's weights", "o"),
}
KINDS = {"base": "a block inside a chunk", "edge": "the block at the end of a chunk"}
WAYS = {"tp": "tensor-parallel", "pp": "pipeline", "dp": "data-parallel"}

for _name, (_words, _short) in PASSES.items():
    _of = rf"{{\mathrm{{{_short}}}}}"
    letter(f"block_{_name}_flops", "FLOP", f"arithmetic of {_words}, element-wise work included", f"Q_{_of}", _ZERO)
    letter(f"block_{_name}_compute", "s", f"time of the arithmetic of {_words}", f"F_{_of}", _ZERO)
    letter(f"block_{_name}_traffic", "B", f"bytes moved for {_words}", f"B_{_of}", _ZERO)
    letter(f"block_{_name}_memory", "s", f"time of the memory traffic of {_words}", f"W_{_of}", _ZERO)
    letter(f"block_{_name}_time", "s", f"time of {_words}, exchanges apart", f"T_{_of}", _ZERO)
for _kind, _words in KINDS.items():
    for _name, _short in {"forward": "fw", "input": "b", "again": "re"}.items():
        _what, _of = (
            f"tensor-parallel exchanges in {PASSES[_name][0]}, in {_words}",
            rf"{{\mathrm{{{_kind[0]},{_short}}}}}",
        )
        letter(f"{_kind}_{_name}_bytes", "B", f"buffers of {_what}", f"X_{_of}", _ZERO)
        letter(f"{_kind}_{_name}_link", "s", f"time of {_what}", f"N_{_of}", _ZERO)
        letter(f"{_kind}_{_name}_exposed", "s", f"time in which arithmetic waits for {_what}", f"E_{_of}", _ZERO)
    for _name in ("forward", "backward"):
        _of = rf"{{\mathrm{{{_kind[0]},{_name[0]}}}}}"
        letter(f"{_kind}_{_name}_alone", "s", f"{_name} time of {_words} when nothing is offloaded", f"A_{_of}", _ZERO)
        letter(f"{_kind}_{_name}_wait", "s", f"time {_words} waits {_name} for the second tier", f"D_{_of}", _ZERO)
        letter(f"{_kind}_{_name}_time", "s", f"{_name} time of {_words}, all waiting included", f"T_{_of}", _ZERO)
    letter(
        f"{_kind}_window", "s", f"time of {_words} behind which gradients can be exchanged", rf"H_{_kind[0]}", "real"
    )
for _name in ("forward", "backward"):
    letter(f"chunk_{_name}_time", "s", f"{_name} time of one chunk", rf"C_{_name[0]}", _ZERO)
    letter(f"{_name}_send_bytes", "B", f"bytes sent to the next stage, {_name}", rf"X_{{p,{_name[0]}}}", _ZERO)
    letter(f"{_name}_send_time", "s", f"time of sending them, {_name}", rf"N_{{p,{_name[0]}}}", _ZERO)
    letter(
        f"{_name}_move_bytes",
        "B",
        f"bytes of one block that move to or from the second tier, {_name}",
        rf"X_{{2,{_name[0]}}}",
        _ZERO,
    )
    letter(f"{_name}_move_time", "s", f"time of these moves, {_name}", rf"N_{{2,{_name[0]}}}", _ZERO)
    letter(f"{_name}_hiding_time", "s", f"time of a block behind which moves can hide, {_name}", rf"H_{{2,{_name[0]}}}")
    letter(
        f"{_name}_wait_time", "s", f"time of a step that waits for the second tier, {_name}", rf"D_{_name[0]}", _ZERO
    )

for _way, _words in WAYS.items():
    letter(f"{_way}_bandwidth", "B/s", f"bandwidth that {_words} exchanges reach, per device", f"W_{{{_way}}}")
    letter(f"{_way}_latency", "s", f"latency of one {_words} exchange", rf"\lambda_{{{_way}}}", _ZERO)
    letter(
        f"{_way}_usage", "%", f"share of the arithmetic units that {_words} exchanges take", f"u_{{{_way}}}", "share"
    )
    letter(f"{_way}_tier", "", f"network of {_words} exchanges, counted from 0", rf"k_{{{_way}}}", _ZERO)
    letter(f"{_way}_link_time", "s", f"time of all {_words} exchanges of a step", f"N_{{{_way}}}", _ZERO)
letter("again_link_time", "s", "time of the exchanges of a step that are run again", r"N_{\mathrm{re}}", _ZERO)
letter(
    "again_exposed_time", "s", "time of a step that waits for exchanges that are run again", r"E_{\mathrm{re}}", _ZERO
)

letter("missing_blocks", "", "blocks by which the last stages together fall short", r"\ell_0", _ZERO)
letter("missing_microbatches", "", "micro-batches lacking to a multiple of the stages", r"m_0", _ZERO)
letter("chunk_blocks", "", "blocks of one chunk", r"\ell_v")
letter("optimizer_shards", "", "devices that share gradients and optimizer state", "z")

letter("block_working", "B", "activations one block holds while it works", r"M_{\mathrm{work}}^{L}", _ZERO)
letter("block_stored", "B", "activations one block keeps until its backward pass", r"M_{\mathrm{kept}/L}", _ZERO)
letter("block_checkpoint", "B", "input of a block that is kept where the whole block is run again", r"M_{x/L}", _ZERO)
letter("block_gradients", "B", "gradients of one block's weights, as they are sent and shared out", r"M_{g/L}", _ZERO)
letter("block_whole_gradients", "B", "gradients of one block's weights as they add up, fp32", r"M_{G/L}", _ZERO)
letter("block_activation_gradients", "B", "gradients of one block's activations", r"M_{d/L}", _ZERO)
letter("block_optimizer", "B", "optimizer state of one block on one device", r"M_{O/L}", _ZERO)
letter("checkpoint_memory", "B", "kept inputs of blocks", r"M_x", _ZERO)
letter("activation_gradient_memory", "B", "gradients of activations on one device", r"M_d", _ZERO)
for _name, _what, _mark in [
    ("weights", "weights", "w"),
    ("activations", "activations", "a"),
    ("activation_gradients", "gradients of activations", "d"),
    ("checkpoints", "kept inputs of blocks", "c"),
    ("gradients", "gradients of the weights", "g"),
    ("optimizer", "optimizer state", "o"),
]:
    letter(
        f"near_{_name}", "B", f"{_what} left near where they are offloaded", rf"M_{{\mathrm{{near}},{_mark}}}", _ZERO
    )

letter("block_reduce_bytes", "B", "bytes of one block's gradients that data-parallel devices exchange", r"X_d", _ZERO)
letter("block_reduce_time", "s", "time of exchanging one block's gradients", r"N_d", _ZERO)
letter("reduce_compute", "s", "arithmetic of a block that slows down while gradients are exchanged", r"F_d", _ZERO)
letter("chunk_window", "s", "time of a chunk behind which gradients can be exchanged", "H", "real")
letter("tail_window", "s", "time of the last chunk behind which gradients can be exchanged", "H_1", "real")
letter(
    "collisions",
    "",
    "sends to the next stage during one chunk's exchange of gradients on the same network",
    "n_{\\mathrm{hit}}",
    _ZERO,
)
letter("chunk_excess", "s", "exchange of one chunk's gradients beyond what hides it", r"\Delta", "real")
letter("tail_excess", "s", "exchange of the last chunk's gradients beyond what hides it", r"\Delta_1", "real")
letter("reduce_scale", "", "times its bytes that an exchange of gradients sends", r"\kappa_d")

letter("tp_bandwidth_needed", "B/s", "bandwidth that hides tensor-parallel exchanges", r"W_{t}^{\star}", _ZERO)
letter(
    "dp_bandwidth_needed",
    "B/s",
    "bandwidth that hides the gradients of all chunks but the last",
    r"W_{d}^{\star}",
    _ZERO,
)
letter("dp_tail_needed", "B/s", "bandwidth that hides the gradients of the last chunk", r"W_{d,1}^{\star}", _ZERO)
letter("weight_move_needed", "B/s", "bandwidth of the second tier that hides the weights", r"W_{2,w}^{\star}", _ZERO)
letter(
    "activation_move_needed",
    "B/s",
    "bandwidth of the second tier that hides the activations",
    r"W_{2,a}^{\star}",
    _ZERO,
)
letter(
    "optimizer_move_needed", "B/s", "bandwidth of the second tier that hides the optimizer", r"W_{2,o}^{\star}", _ZERO
)
letter("move_needed", "B/s", "bandwidth of the second tier that hides what is offloaded", r"W_{2}^{\star}", _ZERO)

letter("useful_flops", "FLOP", "arithmetic of one block for one micro-batch, all passes, nothing run again", r"Q_u")
letter("busy_share", "%", "useful arithmetic at peak over the time of the passes", r"\eta_c", _ZERO)
letter("passes_share", "%", "time of the passes over the time of the step", r"\eta_s", _ZERO)
letter("useful_share", "%", "useful arithmetic at peak over the time of the step", r"\eta", _ZERO)
letter("sequence_rate", "/s", "sequences per second", r"R_B")
letter("sequence_time", "s", "time of a step over its sequences", r"T_B")
