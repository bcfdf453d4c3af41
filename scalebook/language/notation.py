r"""The letters of the book, one line each: a word, a unit, a meaning and its printed form.

A letter's word is the same everywhere: function parameter, keyword, TOML key, slider, JavaScript
argument, column.  Its symbol is a plain SymPy symbol (a subclass would lose what it carries through
SymPy's cache and through pickling), so what a letter means is looked up here, by its word.

>>> NOTATION["hbm_bandwidth"]
hbm_bandwidth (B/s): memory bandwidth of one device
>>> symbol("hidden")
hidden
>>> symbol("hiden")
Traceback (most recent call last):
    ...
LookupError: no letter is called 'hiden'; did you mean 'hidden'?
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

__all__ = ["NOTATION", "Latex", "Letter", "Text", "in_letters", "letter", "nearest", "symbol", "tex"]


def nearest(word: str, words: Iterable[str]) -> str:
    """Say which of the words come nearest to a mistyped one, or list them when none does.

    >>> nearest("h10", ["h100", "h200", "a100"])
    "did you mean 'h100'?"
    >>> nearest("zzz", ["h100", "a100"])
    'there are: a100, h100'
    """
    words, word = sorted(words), str(word).lower()
    close = get_close_matches(word, words, n=3, cutoff=0.65)
    if not close and len(word) > 2:  # `bf16` is part of `peak_bf16`
        close = [w for w in words if word in w][:4]
    if close:
        return f"did you mean {' or '.join(map(repr, close))}?"
    more = f" and {len(words) - 12} more" if len(words) > 12 else ""
    return f"there are: {', '.join(words[:12])}{more}"


@dataclass(frozen=True)
class Letter:
    """What a symbol stands for: its word, unit, meaning, printed form and sign."""

    name: str
    unit: str
    meaning: str
    tex: str
    sign: str = "positive"  # or "nonnegative", "real", or "share": between 0 and 1

    @property
    def symbol(self) -> sympy.Symbol:
        return sympy.Symbol(self.name, **{"nonnegative" if self.sign == "share" else self.sign: True})

    def __repr__(self):
        return f"{self.name} ({self.unit or 'count'}): {self.meaning}"


class Notation(dict):
    """Letters by name; a name that is missing is answered with the nearest ones."""

    def __missing__(self, name):
        raise LookupError(f"no letter is called {name!r}; {nearest(str(name), self)}")


NOTATION = Notation()


def letter(name: str, unit: str, meaning: str, tex: str | None = None, sign: str = "positive") -> sympy.Symbol:
    """Enter a letter and return its symbol.  Entering the same letter again is harmless.

    >>> letter("layers", "", "birds in a tree")
    Traceback (most recent call last):
        ...
    ValueError: 'layers' already means 'transformer blocks'
    """
    new = Letter(name, unit, meaning, tex or rf"\mathrm{{{name.replace('_', chr(92) + '_')}}}", sign)
    if NOTATION.setdefault(name, new) != new:
        raise ValueError(f"{name!r} already means {NOTATION[name].meaning!r}")
    return new.symbol


def symbol(name: str) -> sympy.Symbol:
    """The symbol of a letter.  Raises LookupError, naming the nearest letters, for an unknown one."""
    return NOTATION[str(name)].symbol


class _Ordered:
    """Write a sum with a positive term first: 1 - x, not -x + 1."""

    def _as_ordered_terms(self, expr, order=None):
        return sorted(super()._as_ordered_terms(expr, order=order), key=lambda term: term.could_extract_minus_sign())


class Latex(_Ordered, LatexPrinter):
    pass


class Text(_Ordered, StrPrinter):
    pass


def in_letters(expr: sympy.Expr) -> sympy.Expr:
    """The expression with each symbol replaced by the letter of its name; raises LookupError if there is none.

    >>> in_letters(sympy.Symbol("hidden")) == symbol("hidden")
    True
    """
    strange = {x: letter for x in expr.free_symbols if x != (letter := symbol(x.name))}
    return expr.xreplace(strange) if strange else expr  # an expression put together again has its Max compared anew


def tex(expr, names: dict | None = None) -> str:
    r"""Typeset an expression in the book's notation; `names` prints some letters otherwise.

    >>> tex(symbol("peak_flops") / symbol("hbm_bandwidth"))
    '\\frac{F}{W_{\\mathrm{hbm}}}'
    """
    printed = {x: NOTATION[x.name].tex for x in sympy.sympify(expr).free_symbols if x.name in NOTATION}
    return Latex({"symbol_names": printed | (names or {})}).doprint(sympy.sympify(expr))


_ZERO = "nonnegative"

# The model: its shape.
letter("layers", "", "transformer blocks", "L")
letter("hidden", "", "width of the residual stream", "h")
letter("heads", "", "query heads", "a")
letter("kv_heads", "", "key-value heads", "k")
letter("head_dim", "", "width of one attention head", "d")
letter("ffn", "", "width of the feed-forward layer", "f")
letter("gating", "", "gate matrices in the feed-forward layer: 1 gated (SwiGLU, GeGLU), 0 plain", "g", _ZERO)
letter("vocab", "", "words in the vocabulary", "V")
letter("embeddings", "", "embedding matrices: 1 when input and output share one, else 2", "n_V")
letter("learned_positions", "", "learned position vectors", "n_{\\mathrm{pos}}", _ZERO)
letter("max_context", "", "longest sequence the model was built for", "n_{\\max}")
letter("window", "", "tokens a sliding-window layer attends to", "w")
letter("window_layers", "", "blocks that attend within a sliding window", "L_w", _ZERO)
letter("experts", "", "routed experts in one mixture-of-experts layer", "E", _ZERO)
letter("top_k", "", "routed experts each token visits", "K", _ZERO)
letter("shared_experts", "", "experts every token visits", "E_s", _ZERO)
letter("expert_ffn", "", "width of one routed expert", "f_e", _ZERO)
letter("shared_ffn", "", "width of one shared expert", "f_s", _ZERO)
letter("visited_experts", "", "routed experts that at least one token of the batch visits", "E_v", _ZERO)
letter("expert_tokens", "", "tokens one routed expert works on, mean over the experts", "n_E", _ZERO)
letter("moe_layers", "", "blocks whose feed-forward layer is a mixture of experts", "L_E", _ZERO)
letter("q_rank", "", "rank of the query's latent (0: queries are not compressed)", "r_q", _ZERO)
letter("kv_rank", "", "rank of the latent that holds keys and values", "r_{kv}")
letter("rope_dim", "", "width of the key part that carries the position, shared by all heads", "d_r")
letter("nope_dim", "", "width of a head's key without position", "d_n")
letter("v_dim", "", "width of a head's value", "d_v")
letter("kv_width", "", "values cached per token in one layer", "w_{kv}")
letter("attention_width", "", "multiply-adds per query-key pair in one layer when decoding", "w_{qk}")
letter("group_size", "", "query heads that share one key-value head", "G")
letter("params", "", "parameters", "N")
letter("active_params", "", "parameters that one token uses", "N_{\\mathrm{act}}")
letter("block_params", "", "parameters of one block", "N_L")

# The work: what is in flight.
letter("batch", "", "sequences in a micro-batch, or decoded together", "b")
letter("seq", "", "new tokens per sequence", "s")
letter("context", "", "tokens attended to", "n")
letter("cached", "", "tokens held in the cache per layer, mean over the layers", r"\bar n")
letter("max_batch", "", "most sequences that fit beside the weights", "b_{\\max}", _ZERO)
letter("cache_batch", "", "batch at which reading the caches takes as long as reading the weights", r"b_{kv}")
letter("ridge_batch", "", "batch at which decoding turns compute-bound", r"b^{\star}")

# Storage.
letter("weight_bits", "bit", "bits per weight", r"\beta_w")
letter("kv_bits", "bit", "bits per cached key or value", r"\beta_{kv}")
letter("activation_bits", "bit", "bits per activation", r"\beta_a")
letter("gradient_bits", "bit", "bits per gradient", r"\beta_g")
letter("optimizer_bits", "bit", "bits of optimizer state per parameter, master copy included", r"\beta_o")
letter("mask_bits", "bit", "bits per element of a dropout mask", r"\beta_m")
letter(
    "routed_share", "%", "share of the routed experts that one token visits (1 where there are none)", r"\rho", "share"
)
letter("read_params", "", "parameters read in one decoding step of the batch", r"N_{\mathrm{read}}")
letter("used_params", "", "parameters that multiply each token: all but the input embedding", r"N_{\mathrm{use}}")
letter("weight_memory", "B", "memory the weights take", r"M_w")
letter("active_weight_memory", "B", "weights that one token reads", r"M_{\mathrm{act}}")
letter("kv_cache_per_token", "B", "key-value cache of one token", r"M_{kv/\mathrm{tok}}")
letter("cache_heads", "", "key-value heads that a cache can be split by; a latent cache is one for all heads", r"a_c")
letter("cache_ways", "", "ways in which tensor-parallel devices split the caches", r"t_{kv}")
letter("device_memory", "B", "weights and caches on one of the devices that share a model", r"M_{w,kv}")
letter("kv_cache", "B", "key-value cache of the whole batch", r"M_{kv}")
letter("decode_memory", "B", "memory decoding takes: weights and cache", r"M_{\mathrm{dec}}")
letter("saved_activations", "B", "activations a block keeps for its backward pass", r"M_{\mathrm{act}/L}")
letter("stage_params", "", "parameters one device of a pipeline stage holds", r"N_i")
letter("stage_embeddings", "", "embedding matrices a pipeline stage holds", r"n_{V,i}", _ZERO)
letter("state_bits", "bit", "bits of weight, gradient and optimizer state a device holds per parameter", r"\beta_s")
letter("logit_bits", "bit", "bits held per logit while the loss is taken, copies included", r"\beta_l")
letter("state_memory", "B", "weights, gradients and optimizer state on one device", r"M_{\mathrm{state}}")
letter("activation_memory", "B", "activations one device keeps for its backward passes", r"M_{\mathrm{act}}^{\Sigma}")
letter("logits_memory", "B", "logits one device holds while the loss is taken", r"M_{\mathrm{logit}}", _ZERO)
letter("train_memory", "B", "memory training takes on one device", r"M_{\mathrm{train}}")
letter("filled", "", "memory that training takes over the capacity of the device", r"\phi")
letter("wall_params", "", "parameters of the largest model for which training finds room", r"N_{\max}")

# The machine.
letter("peak_flops", "FLOP/s", "peak arithmetic rate of one device, dense", "F")
for _precision in ["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp6", "fp4", "int8"]:
    letter(
        f"peak_{_precision}",
        "FLOP/s",
        f"peak arithmetic rate in {_precision}, dense",
        f"F_{{\\mathrm{{{_precision}}}}}",
    )
letter("peak_vector", "FLOP/s", "peak rate of the vector units in fp32", r"F_{\mathrm{vec}}")
letter("hbm_capacity", "B", "memory capacity of one device", r"C_{\mathrm{hbm}}")
letter("hbm_bandwidth", "B/s", "memory bandwidth of one device", r"W_{\mathrm{hbm}}")
letter("l2_capacity", "B", "last-level cache on the chip", r"C_{\mathrm{L2}}")
letter("sram_capacity", "B", "fast memory of one core (shared memory, scratchpad)", r"C_{\mathrm{sram}}")
letter("cores", "", "cores that run matrix tiles (SMs, compute units)", r"n_{\mathrm{core}}")
letter("scaleup_bandwidth", "B/s", "scale-up network, one direction, per device", r"W_{\mathrm{up}}")
letter("scaleup_size", "", "devices in one scale-up domain", r"n_{\mathrm{up}}")
letter("scaleout_bandwidth", "B/s", "scale-out network, one direction, per device", r"W_{\mathrm{out}}")
letter("host_bandwidth", "B/s", "link to host memory, one direction, per device", r"W_{\mathrm{host}}")
letter("host_capacity", "B", "host memory per device", r"C_{\mathrm{host}}")
letter("tdp", "W", "thermal design power of one device", "P")
letter("launch", "year", "when the device was announced", r"t_0")
letter("price_hour", "$/h", "price of one device for an hour", r"c_{\mathrm{h}}")
letter("link_bandwidth", "B/s", "bandwidth of a link, one direction", r"W_{\mathrm{link}}")
letter("link_achieved", "B/s", "rate a link reaches in practice, one direction", r"\hat W_{\mathrm{link}}")
letter("link_latency", "s", "latency of a link", r"\lambda")
letter("link_capacity", "B", "capacity of the memory behind a link", r"C_{\mathrm{link}}")
letter("link_energy", "J/B", "energy to move a byte over a link, or out of a memory", r"e_{\mathrm{link}}")
letter("bandwidth_efficiency", "%", "achieved over peak memory bandwidth", r"\eta_W", "share")
letter("flops_efficiency", "%", "achieved over peak arithmetic rate", r"\eta_F", "share")

# Work, traffic and time.
letter("flops", "FLOP", "arithmetic", "Q")
letter("traffic", "B", "bytes moved to and from memory", "B")
letter("intensity", "FLOP/B", "arithmetic intensity", "I")
letter("ridge_intensity", "FLOP/B", "intensity at which arithmetic and memory take equally long", r"I^{\star}")
letter("decode_intensity", "FLOP/B", "arithmetic intensity of attention in decoding", r"I_{\mathrm{att}}")
letter("attainable_flops", "FLOP/s", "attainable arithmetic rate", r"F_{\mathrm{att}}")
letter("idle_fraction", "%", "share of the time in which the arithmetic units wait", r"\iota", "share")
letter("compute_time", "s", "time the arithmetic takes at peak", r"T_F")
letter("memory_time", "s", "time the memory traffic takes at peak", r"T_W")
letter("roofline_time", "s", "time of a kernel: the larger of compute and memory", r"T")
letter("token_time", "s", "time between two tokens of one sequence", r"T_{\mathrm{tok}}")
letter("decode_rate", "token/s", "tokens per second, whole batch", r"R")
letter("ridge_context", "", "context beyond which no batch makes decoding compute-bound", r"n^{\star}")
letter("full_read_time", "s", "time in which a device reads its whole memory once", r"T_C")
letter("latency_floor", "s", "least time between two tokens: active weights over bandwidth", r"T_{\min}")
letter(
    "block_overhead", "s", "time a block adds to a decoding step whatever its size: launches, waiting", r"\tau_L", _ZERO
)

# Attention.
letter("pairs", "", "query-key pairs of one sequence", r"n_{qk}")
letter("pair_width", "", "multiply-adds per query-key pair in one layer in prefill and training", r"w_{\mathrm{pair}}")
letter("attention_flops", "FLOP", "scores and weighted values of one block", r"Q_{\mathrm{att}}")
letter("projection_flops", "FLOP", "projections around the attention of one block", r"Q_{\mathrm{proj}}")
letter("ffn_flops", "FLOP", "feed-forward layer of one block", r"Q_{\mathrm{ffn}}")
letter("layer_flops", "FLOP", "matrix arithmetic of one block, forward", r"Q_L")
letter("attention_share", "%", "share of a block's arithmetic that is scores and values", r"\sigma", "share")
letter("growth", "", "growth of a block's arithmetic when the length doubles", r"\gamma_2")
letter("crossover", "", "length at which scores and values cost as much as the rest", r"n_{\times}")
letter("order", "", "power at which a Taylor series is cut off", "r")
letter("features", "", "products of components of a key in a Taylor series", r"d_{\phi}")
letter("query_bits", "bit", "bits of a query inside an attention kernel", r"\beta_q")
letter("query_tile", "", "queries one core holds while the keys stream past", "B_q")
letter(
    "balanced_tile", "", "queries per tile at which streaming the keys takes as long as the arithmetic", r"B_q^{\star}"
)
letter("tile_memory", "B", "tiles of queries, keys, values and results on the chip", r"M_{\mathrm{tile}}")
letter("sharing_cores", "", "cores that must share one read of the keys", r"n_{\mathrm{sh}}")
letter(
    "busy_pairs",
    "",
    "query-key pairs of all heads that the cores have time for, tiles whole and none idle",
    r"\hat n_{qk}",
)
letter("score_flops", "FLOP", "vector arithmetic per score: exponential, maximum, sum and rescaling", r"\kappa")
letter("append_traffic", "B", "bytes moved to turn queries and keys and to write the cache", r"B_{\mathrm{app}}")
letter("item_time", "s", "least time a core spends on one sequence and key-value head", r"\tau_i")
letter("launch_time", "s", "time an operator takes however little it does", r"\tau_0", _ZERO)
letter("kernel_time", "s", "time of an attention operator", r"T_{\mathrm{att}}")

# Kernels: a matrix product of rows x inner by inner x columns, so many copies of it, and streams through memory.
letter("rows", "", "rows of a matrix product: tokens, in a forward pass", r"n_{\mathrm{row}}")
letter("columns", "", "columns of a matrix product", r"n_{\mathrm{col}}")
letter("inner", "", "size a matrix product sums over", r"n_{\mathrm{in}}")
letter("copies", "", "matrix products of one shape that run as one kernel", r"n_{\mathrm{mm}}")
letter("tile_rows", "", "rows of the tile of a result that one core works on", r"\theta_r")
letter("tile_columns", "", "columns of the tile of a result that one core works on", r"\theta_c")
letter("tiles", "", "tiles of the results of a matrix product, those at the edges counted whole", r"n_{\theta}")
letter("waves", "", "times that all cores together take on a tile each", r"n_{\mathrm{wave}}")
letter("exposed_write", "%", "share of the writing of a result that no arithmetic hides", r"\chi_w", "share")
letter("inner_half", "", "inner size at which a matrix product reaches half of its highest rate", r"n_{1/2}")
letter(
    "matmul_efficiency",
    "%",
    "rate of full waves of a deep matrix product over the peak",
    r"\eta_{\mathrm{mm}}",
    "share",
)
for _precision in ["bf16", "fp16", "fp8", "fp4"]:
    letter(
        f"matmul_{_precision}",
        "%",
        f"rate of full waves of a deep matrix product over the peak, in {_precision}",
        f"\\eta_{{\\mathrm{{mm,{_precision}}}}}",
        "share",
    )
letter(
    "stream_efficiency",
    "%",
    "rate at which kernels stream through memory over its bandwidth",
    r"\eta_{\mathrm{st}}",
    "share",
)
letter("kernel_launch", "s", "time a kernel takes however little it does", r"\tau_k", _ZERO)
letter("matmul_time", "s", "time of a matrix product", r"T_{\mathrm{mm}}")
letter(
    "matmul_share",
    "%",
    "arithmetic of a matrix product over what the peak could do in its time",
    r"\phi_{\mathrm{mm}}",
    "share",
)
letter("stream_time", "s", "time of a kernel that only streams through memory", r"T_{\mathrm{st}}")

# Parallelism.
letter("tp", "", "tensor-parallel ways", "t")
letter("cp", "", "context-parallel ways", "c")
letter("ep", "", "expert-parallel ways", "e")
letter("pp", "", "pipeline stages", "p")
letter("dp", "", "data-parallel ways", r"n_{\mathrm{dp}}")
letter("microbatches", "", "micro-batches in a step", "m")
letter("chunks", "", "model chunks per pipeline stage", "v")
letter("global_batch", "", "sequences in a training step", r"B_g")
letter("bubble", "%", "idle time over busy time", r"\epsilon", _ZERO)
letter("forward_time", "s", "forward pass of a micro-batch through the stages of one device", r"T_f")
letter("input_gradient_time", "s", "gradient of the inputs, one micro-batch on one device", r"T_b")
letter("weight_gradient_time", "s", "gradient of the weights, one micro-batch on one device", r"T_w")
letter("transfer_time", "s", "time a tensor takes from one pipeline stage to the next", r"T_x", _ZERO)
letter("staleness", "", "updates of the weights between a gradient's forward pass and its use", r"\delta", _ZERO)
letter("weight_versions", "", "versions of its weights that a stage keeps", r"n_w")
letter("messages", "", "tensors sent between the devices of a pipeline in one step", r"n_x", _ZERO)
letter("pipeline_traffic", "B", "bytes sent between the devices of a pipeline in one step", r"B_{pp}", _ZERO)
letter("pipeline_latency", "s", "time one input takes through all stages of a pipeline", r"T_{pp}")
letter("stage", "", "which pipeline stage; the first is 1", "i")
letter("padded_layers", "", "blocks of the model, rounded up to a multiple of the stages", r"L^{+}")
letter("aspect", "", "hidden width over layers", r"\rho")
letter("held_microbatches", "", "micro-batches whose activations a pipeline stage holds at once", r"m_i")
letter("devices", "", "devices that share the work", "n_d")

# Collectives: a group of devices, of which some share a scale-up domain ("near"); the others are "far".
letter("ways", "", "devices that take part in a collective", r"n_c")
letter("near_ways", "", "devices of a collective that share a scale-up domain", r"n_{\mathrm{near}}^{c}")
letter(
    "collective_bytes",
    "B",
    "whole buffer of a collective: what is reduced, what a gather ends with, what a device of an all-to-all starts from",
    "S",
    _ZERO,
)
letter("collective_time", "s", "time of a collective", r"T_c", _ZERO)
letter("near_latency", "s", "a hop between devices of a scale-up domain", r"\lambda_{\mathrm{near}}", _ZERO)
letter("far_latency", "s", "a hop between scale-up domains", r"\lambda_{\mathrm{far}}", _ZERO)
letter("collective_launch", "s", "time to start a collective, however little it moves", r"\tau_c", _ZERO)
letter("chunk_time", "s", "time that each chunk of a message adds", r"\tau_{\mathrm{ch}}", _ZERO)
letter("chunk_count", "", "chunks that a message is cut into", r"n_{\mathrm{ch}}")
letter(
    "near_efficiency", "%", "rate of large collectives over the scale-up bandwidth", r"\eta_{\mathrm{near}}", "share"
)
letter("far_efficiency", "%", "rate of large collectives over the scale-out bandwidth", r"\eta_{\mathrm{far}}", "share")
letter(
    "switch_efficiency",
    "%",
    "rate of sums taken in the switch over the scale-up bandwidth; 0 where it takes none",
    r"\eta_{\mathrm{sw}}",
    "share",
)
letter("bus_bandwidth", "B/s", "rate a link would need for a ring that takes as long", r"W_{\mathrm{bus}}", _ZERO)
letter("ports", "", "scale-out ports of a node", r"n_{\mathrm{port}}")
letter("crossing", "", "devices of a node whose collectives leave it at the same time", r"n_{\mathrm{cross}}")
letter("concurrent", "", "collectives that use the links of a device at the same time", r"n_{\mathrm{conc}}")

# Offloading to a second tier.
letter("block_active_params", "", "parameters of one block that one token uses", r"N_{\mathrm{act}/L}")
letter("kept_values", "", "values a block keeps for its backward pass, per token and unit of hidden width", r"\kappa_a")
letter("recomputed", "%", "share of the forward arithmetic that the backward pass runs again", r"\varrho", "share")
letter("block_weights", "B", "weights of one block on one device", r"M_{w/L}")
letter("block_states", "B", "gradients and optimizer state of one block on one device", r"M_{o/L}")
letter("block_flops", "FLOP", "arithmetic of one block's forward pass on one device", r"Q_{L/t}")
letter("block_forward", "s", "time of one block's forward pass", r"T_{\mathrm{fw}/L}")
letter("block_backward", "s", "time of one block's backward pass", r"T_{\mathrm{bw}/L}")
letter("weight_offload", "%", "share of the weights that live in the second tier", r"x_w", "share")
letter("activation_offload", "%", "share of the kept activations that live in the second tier", r"x_a", "share")
letter(
    "optimizer_offload", "%", "share of gradients and optimizer state that lives in the second tier", r"x_o", "share"
)
letter("near_blocks", "", "places near for the weights and activations of a block", r"n_{\mathrm{near}}")
letter("near_states", "", "places near for the gradients and optimizer state of a block", r"n_{\mathrm{near},o}")
letter("near_memory", "B", "memory taken near, work space aside", r"M_{\mathrm{near}}")
letter("offload_memory", "B", "memory taken in the second tier, per device", r"M_{\mathrm{off}}", _ZERO)
letter("offload_bandwidth", "B/s", "bandwidth that hides every move, one direction", r"W_{\mathrm{off}}")
letter("exposed_time", "s", "time the arithmetic of a block waits for the link", r"T_{\mathrm{wait}/L}", _ZERO)
letter(
    "offload_efficiency",
    "%",
    "speed with this link over the speed with an endless one",
    r"\eta_{\mathrm{off}}",
    "share",
)
letter("break_even_tokens", "", "tokens of a micro-batch at which the link hides all moves", r"(bs)^{\star}", _ZERO)

# A training step.
letter("forward_compute", "s", "kernels of one block's forward pass", r"T_{F/L}")
letter("again_compute", "s", "kernels of one block that the backward pass runs again", r"T_{R/L}", _ZERO)
letter("input_gradient_compute", "s", "kernels of one block on the way to the gradient of its input", r"T_{B/L}")
letter("weight_gradient_compute", "s", "kernels of one block that make the gradients of its weights", r"T_{W/L}")
for _way, _said in (("tp", "tensor"), ("cp", "context"), ("ep", "expert")):
    letter(f"{_way}_forward", "s", f"{_said}-parallel collectives of one block, forward", rf"T_{{{_way}/F}}", _ZERO)
    letter(
        f"{_way}_backward",
        "s",
        f"{_said}-parallel collectives one block's backward pass waits for",
        rf"T_{{{_way}/B}}",
        _ZERO,
    )
for _way, _said in (
    ("tp", "tensor-parallel collectives"),
    ("cp", "context-parallel collectives"),
    ("ep", "expert-parallel collectives"),
    ("pp", "pipeline transfers"),
    ("dp", "data-parallel collectives"),
):
    letter(f"{_way}_overlap", "%", f"share of the {_said} that runs beside arithmetic", rf"\omega_{{{_way}}}", "share")
    letter(f"{_way}_exposed", "s", f"time of a step that waits for {_said}", rf"T_{{{_way}}}", _ZERO)
letter(
    "tp_hidden",
    "s",
    "tensor-parallel collectives of one block that can run beside gradients of weights",
    r"T_{tp/W}",
    _ZERO,
)
letter("quantized_bits", "bit", "bits of an activation that enters a quantized product", r"\beta_{8}")
letter("sustained_rate", "%", "rate of products within a training step over their rate alone", r"\chi_s", "share")
letter(
    "tp_beside", "%", "share of the sums of input gradients that run beside gradients of weights", r"\chi_{tp}", "share"
)
letter("collective_cores", "%", "share of the cores that collectives beside arithmetic take", r"\chi_c", "share")
letter("offload_exposed", "s", "time of a step that waits for the second tier", r"T_{\mathrm{wait}}", _ZERO)
letter("block_routed_params", "", "parameters of the routed experts of one block on one device", r"N_{E/L}", _ZERO)
letter("working_activations", "B", "activations one block holds while it goes backward", r"M_{\mathrm{work}/L}")
letter("again_flops", "FLOP", "arithmetic of one block that the backward pass runs again", r"Q_{R/L}", _ZERO)
letter("head_forward", "s", "last norm, logits and loss of one micro-batch", r"T_{F/V}")
letter("head_backward", "s", "last norm, logits and loss of one micro-batch, going back", r"T_{B/V}")
letter("head_flops", "FLOP", "arithmetic of the logits of one micro-batch on one device, forward", r"Q_V")
letter("attention_peak", "FLOP/s", "peak rate of the attention kernel's arithmetic", r"F_{\mathrm{att}}^{\uparrow}")
letter("attention_efficiency", "%", "achieved over peak rate of fused attention", r"\eta_{\mathrm{att}}", "share")
letter("attention_backward", "%", "rate of fused attention going back over its rate forward", r"\eta_B", "share")
letter("attended_share", "%", "share of the query-key pairs that fused attention computes", r"\sigma_{qk}", "share")
letter("stage_blocks", "", "blocks of a pipeline stage", r"L_i")
letter("last_blocks", "", "blocks of the last pipeline stage", r"L_p", _ZERO)
letter("step_forward", "s", "time of a step in forward kernels", r"T_F^{\Sigma}")
letter("step_backward", "s", "time of a step in backward kernels", r"T_B^{\Sigma}")
letter("step_again", "s", "time of a step in kernels run again", r"T_R^{\Sigma}", _ZERO)
letter("step_head", "s", "time of a step by which the logits make the last stage the slowest", r"T_V^{\Sigma}", _ZERO)
letter("bubble_time", "s", "time of a step in which a device waits for the pipeline", r"T_{\epsilon}", _ZERO)
letter("optimizer_time", "s", "time of the optimizer's update", r"T_{\mathrm{opt}}")
letter("step_time", "s", "time of a training step", r"T_{\mathrm{step}}")
letter("shards", "", "devices with the same weights and other tokens: data- times context-parallel ways", r"n_s")
letter("routed_shards", "", "devices with the same experts and other tokens", r"n_{s,E}")
letter("dense_params", "", "parameters on a device of the first stage, routed experts aside", r"N_{\mathrm{dense}}")
letter("routed_params", "", "parameters of routed experts on one device", r"N_{\mathrm{routed}}", _ZERO)
letter("reduce_bits", "bit", "bits per gradient while it is summed over devices", r"\beta_r")
letter("dp_reduce", "s", "time in which gradients are summed over devices, per step", r"T_{\mathrm{RS}}", _ZERO)
letter("dp_gather", "s", "time in which weights are gathered from devices, per step", r"T_{\mathrm{AG}}", _ZERO)
letter("dp_window", "s", "arithmetic of a step that data-parallel collectives may run beside", r"T_{\mathrm{win}}")
letter("gradient_memory", "B", "memory of the gradients on one device", r"M_g")
letter("optimizer_memory", "B", "memory of the optimizer state on one device", r"M_o")
letter(
    "buffer_memory",
    "B",
    "memory of what is under way: a block going back, gathered weights",
    r"M_{\mathrm{buf}}",
    _ZERO,
)
letter("memory", "B", "memory training takes on the fullest device", r"M_{\mathrm{dev}}")
letter("first_memory", "B", "memory training takes on a device of the first stage", r"M_{1}^{\Sigma}")
letter("last_memory", "B", "memory training takes on a device of the last stage", r"M_{p}^{\Sigma}")
letter("model_flops", "FLOP", "arithmetic of a step that the model asks for, nothing run again", r"Q_{\mathrm{model}}")
letter("hardware_flops", "FLOP", "arithmetic of a step, with what is run again", r"Q_{\mathrm{hw}}")
letter("mfu", "%", "arithmetic the model asks for over what the devices could do", r"\mathrm{MFU}", _ZERO)
letter("hfu", "%", "arithmetic done over what the devices could do", r"\mathrm{HFU}", _ZERO)
letter("train_rate", "token/s", "tokens trained on per second, all devices", r"R_{\mathrm{train}}")
letter("step_energy", "J", "energy of a step, every device at its thermal design power", r"E_{\mathrm{step}}")
letter("step_cost", "$", "price of a step", r"c_{\mathrm{step}}")
letter("train_tokens", "token", "tokens to train on", r"D")
letter("train_time", "s", "time to train on all tokens", r"T_D")
letter("train_cost", "$", "price of training on all tokens", r"c_D")
