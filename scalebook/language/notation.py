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
    words = sorted(words)
    if close := get_close_matches(str(word).lower(), words, n=3, cutoff=0.65):
        return f"did you mean {' or '.join(map(repr, close))}?"
    return f"there are: {', '.join(words)}"


@dataclass(frozen=True)
class Letter:
    """What a symbol stands for: its word, unit, meaning, printed form and sign."""

    name: str
    unit: str
    meaning: str
    tex: str
    sign: str = "positive"  # or "nonnegative" or "real"

    @property
    def symbol(self) -> sympy.Symbol:
        return sympy.Symbol(self.name, **{self.sign: True})

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
letter("routed_share", "", "share of the routed experts that one token visits (1 where there are none)", r"\rho")
letter("read_params", "", "parameters read in one decoding step of the batch", r"N_{\mathrm{read}}")
letter("used_params", "", "parameters that multiply each token: all but the input embedding", r"N_{\mathrm{use}}")
letter("weight_memory", "B", "memory the weights take", r"M_w")
letter("active_weight_memory", "B", "weights that one token reads", r"M_{\mathrm{act}}")
letter("kv_cache_per_token", "B", "key-value cache of one token", r"M_{kv/\mathrm{tok}}")
letter("kv_cache", "B", "key-value cache of the whole batch", r"M_{kv}")
letter("decode_memory", "B", "memory decoding takes: weights and cache", r"M_{\mathrm{dec}}")
letter("saved_activations", "B", "activations a block keeps for its backward pass", r"M_{\mathrm{act}/L}")

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
letter("bandwidth_efficiency", "", "achieved over peak memory bandwidth", r"\eta_W")
letter("flops_efficiency", "", "achieved over peak arithmetic rate", r"\eta_F")

# Work, traffic and time.
letter("flops", "FLOP", "arithmetic", "Q")
letter("traffic", "B", "bytes moved to and from memory", "B")
letter("intensity", "FLOP/B", "arithmetic intensity", "I")
letter("ridge_intensity", "FLOP/B", "intensity at which arithmetic and memory take equally long", r"I^{\star}")
letter("decode_intensity", "FLOP/B", "arithmetic intensity of attention in decoding", r"I_{\mathrm{att}}")
letter("attainable_flops", "FLOP/s", "attainable arithmetic rate", r"F_{\mathrm{att}}")
letter("idle_fraction", "", "share of the time in which the arithmetic units wait", r"\iota", _ZERO)
letter("compute_time", "s", "time the arithmetic takes at peak", r"T_F")
letter("memory_time", "s", "time the memory traffic takes at peak", r"T_W")
letter("roofline_time", "s", "time of a kernel: the larger of compute and memory", r"T")
letter("token_time", "s", "time between two tokens of one sequence", r"T_{\mathrm{tok}}")
letter("decode_rate", "token/s", "tokens per second, whole batch", r"R")
letter("ridge_context", "", "context beyond which no batch makes decoding compute-bound", r"n^{\star}")
letter("latency_floor", "s", "least time per token: bytes over bandwidth", r"T_{\min}")
letter(
    "block_overhead", "s", "time a block adds to a decoding step whatever its size: launches, waiting", r"\tau_L", _ZERO
)

# Parallelism.
letter("tp", "", "tensor-parallel ways", "t")
letter("cp", "", "context-parallel ways", "c")
letter("ep", "", "expert-parallel ways", "e")
letter("pp", "", "pipeline stages", "p")
letter("dp", "", "data-parallel ways", r"n_{\mathrm{dp}}")
letter("microbatches", "", "micro-batches in a step", "m")
letter("chunks", "", "model chunks per pipeline stage", "v")
letter("global_batch", "", "sequences in a training step", r"B_g")
letter("bubble", "", "idle time over busy time", r"\epsilon", _ZERO)
