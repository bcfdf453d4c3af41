"""The letters of a model, a machine and a kernel, one line each: word, unit, meaning, printed form, sign."""

from .notation import letter

__all__ = []

_ZERO = "nonnegative"

# The model: its shape.
letter("layers", "", "transformer blocks", "L", whole=True)
letter("hidden", "", "width of the residual stream", "h", whole=True)
letter("heads", "", "query heads", "a", whole=True)
letter("kv_heads", "", "key-value heads", "k", whole=True)
letter("head_dim", "", "width of one attention head", "d", whole=True)
letter("ffn", "", "width of the feed-forward layer", "f", whole=True)
letter(
    "gating", "", "gate matrices in the feed-forward layer: 1 gated (SwiGLU, GeGLU), 0 plain", "g", _ZERO, whole=True
)
letter("vocab", "", "words in the vocabulary", "V", whole=True)
letter("embeddings", "", "embedding matrices: 1 when input and output share one, else 2", "n_V", whole=True)
letter("learned_positions", "", "learned position vectors", "n_{\\mathrm{pos}}", _ZERO, whole=True)
letter("max_context", "", "longest sequence the model was built for", "n_{\\max}", whole=True)
letter("window", "", "tokens a sliding-window layer attends to", "w", whole=True)
letter("window_layers", "", "blocks that attend within a sliding window", "L_w", _ZERO, whole=True)
letter("experts", "", "routed experts in one mixture-of-experts layer", "E", _ZERO, whole=True)
letter("top_k", "", "routed experts each token visits", "K", _ZERO, whole=True)
letter("shared_experts", "", "experts every token visits", "E_s", _ZERO, whole=True)
letter("expert_ffn", "", "width of one routed expert", "f_e", _ZERO, whole=True)
letter("shared_ffn", "", "width of one shared expert", "f_s", _ZERO, whole=True)
letter("visited_experts", "", "routed experts that at least one token of the batch visits", "E_v", _ZERO)
letter("expert_tokens", "", "tokens one routed expert works on, mean over the experts", "n_E", _ZERO)
letter("moe_layers", "", "blocks whose feed-forward layer is a mixture of experts", "L_E", _ZERO, whole=True)
letter("q_rank", "", "rank of the query's latent (0: queries are not compressed)", "r_q", _ZERO, whole=True)
letter("kv_rank", "", "rank of the latent that holds keys and values", "r_{kv}", whole=True)
letter("rope_dim", "", "width of the key part that carries the position, shared by all heads", "d_r", whole=True)
letter("nope_dim", "", "width of a head's key without position", "d_n", whole=True)
letter("v_dim", "", "width of a head's value", "d_v", whole=True)
letter("kv_width", "", "values cached per token in one layer", "w_{kv}")
letter("attention_width", "", "multiply-adds per query-key pair in one layer when decoding", "w_{qk}")
letter("group_size", "", "query heads that share one key-value head", "G")
letter("params", "", "parameters", "N")
letter("active_params", "", "parameters that one token uses", "N_{\\mathrm{act}}")
letter("block_params", "", "parameters of one block", "N_L")

# The work: what is in flight.
letter("batch", "", "sequences processed together, in a micro-batch or a decode step", "b")
letter("seq", "", "sequence length: new tokens of each sequence", "s")
letter("context", "", "context length: tokens attended to", "n")
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
letter("moment_bits", "bit", "bits of one moment that the optimizer keeps of a parameter", r"\beta_{\mu}")
letter("fp32_bits", "bit", "bits of what is kept in full precision: logits, sums of rows", r"\beta_{32}")
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
letter("state_bits", "bit", "bits of weight, gradient and optimizer state a device holds per parameter", r"\beta_s")
letter("logit_bits", "bit", "bits held per logit while the loss is taken, copies included", r"\beta_l")
letter(
    "activation_memory",
    "B",
    "activations one device keeps for its backward passes",
    r"M_{\mathrm{act}}^{\Sigma}",
    _ZERO,
)
letter("logits_memory", "B", "logits one device holds while the loss is taken", r"M_{\mathrm{logit}}", _ZERO)
letter("train_memory", "B", "memory training takes on one device", r"M_{\mathrm{train}}")
letter("filled", "", "share of a device's memory that is taken", r"\phi")
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
letter("cores", "", "cores that run matrix tiles (SMs, compute units)", r"n_{\mathrm{core}}", whole=True)
letter("scaleup_bandwidth", "B/s", "scale-up network, one direction, per device", r"W_{\mathrm{up}}")
letter("scaleup_size", "", "devices in one scale-up domain", r"n_{\mathrm{up}}", whole=True)
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
letter("masked", "", "1 where a mask is added to the scores as a tensor, 0 where none is", r"\mu", _ZERO)
letter("backward", "", "backward passes for each forward pass, 1 where gradients are computed", r"\nu_{\nabla}", _ZERO)
letter("score_passes", "", "times that a score crosses the memory bus between unfused products", r"n_{S}")
letter("operand_passes", "", "times that queries, keys, values and results do", r"n_{QKV}")
letter("append_traffic", "B", "bytes moved to turn queries and keys and to write the cache", r"B_{\mathrm{app}}")
letter("item_time", "s", "least time a core spends on one sequence and key-value head", r"\tau_i")
letter("launch_time", "s", "time an operator takes however little it does", r"\tau_0", _ZERO)
letter("kernel_time", "s", "time of an attention operator", r"T_{\mathrm{att}}")
