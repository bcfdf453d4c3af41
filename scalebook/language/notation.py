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
    return expr.xreplace({x: symbol(x.name) for x in expr.free_symbols})


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
letter("wall_params", "", "parameters of the largest model whose training state fits", r"N_{\max}")

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
letter("held_microbatches", "", "micro-batches whose activations a pipeline stage holds at once", r"m_i")
letter("devices", "", "devices that share the work", "n_d")

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
letter("near_blocks", "", "blocks whose tensors are near at once: in use, arriving, leaving", r"n_{\mathrm{near}}")
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
letter("break_even_tokens", "", "tokens of a micro-batch at which the link just hides the weights", r"(bs)^{\star}")
