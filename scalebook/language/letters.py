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
letter("vocab", "", "tokens in the vocabulary", "V", whole=True)
letter("embeddings", "", "embedding matrices: 1 if tied, else 2", "n_V", whole=True)
letter("learned_positions", "", "learned position embeddings", "n_{\\mathrm{pos}}", _ZERO, whole=True)
letter("max_context", "", "maximum context length of the model", "n_{\\max}", whole=True)
letter("window", "", "tokens in the attention window", "w", whole=True)
letter("window_layers", "", "blocks with sliding-window attention", "L_w", _ZERO, whole=True)
letter("experts", "", "routed experts per mixture-of-experts layer", "E", _ZERO, whole=True)
letter("top_k", "", "routed experts per token", "K", _ZERO, whole=True)
letter("shared_experts", "", "shared experts, used by every token", "E_s", _ZERO, whole=True)
letter("expert_ffn", "", "width of one routed expert", "f_e", _ZERO, whole=True)
letter("shared_ffn", "", "width of one shared expert", "f_s", _ZERO, whole=True)
letter("visited_experts", "", "routed experts with at least one token", "E_v", _ZERO)
letter("expert_tokens", "", "mean tokens per routed expert", "n_E", _ZERO)
letter("moe_layers", "", "blocks with a mixture-of-experts layer", "L_E", _ZERO, whole=True)
letter("q_rank", "", "rank of the query latent (0: not compressed)", "r_q", _ZERO, whole=True)
letter("kv_rank", "", "rank of the key-value latent", "r_{kv}", whole=True)
letter("rope_dim", "", "width of the rotary part of a key, shared by all heads", "d_r", whole=True)
letter("nope_dim", "", "width of a head's key without the rotary part", "d_n", whole=True)
letter("v_dim", "", "width of a head's value", "d_v", whole=True)
letter("kv_width", "", "cached values per token and layer", "w_{kv}")
letter("attention_width", "", "decode multiply-adds per query-key pair and layer", "w_{qk}")
letter("group_size", "", "query heads per key-value head", "G")
letter("params", "", "parameters", "N")
letter("active_params", "", "active parameters per token", "N_{\\mathrm{act}}")
letter("block_params", "", "parameters per block", "N_L")

# The work: what is in flight.
letter("batch", "", "batch size: sequences per micro-batch or decode step", "b")
letter("seq", "", "sequence length: new tokens per sequence", "s")
letter("context", "", "context length: tokens attended to", "n")
letter("cached", "", "cached tokens per layer, averaged over the layers", r"\bar n")
letter("max_batch", "", "largest batch that fits in memory", "b_{\\max}", _ZERO)
letter("cache_batch", "", "batch at which reading the caches takes as long as reading the weights", r"b_{kv}")
letter("ridge_batch", "", "batch at which decoding becomes compute-bound", r"b^{\star}")

# Storage.
letter("weight_bits", "bit", "bits per weight", r"\beta_w")
letter("kv_bits", "bit", "bits per cached key or value", r"\beta_{kv}")
letter("activation_bits", "bit", "bits per activation", r"\beta_a")
letter("gradient_bits", "bit", "bits per gradient", r"\beta_g")
letter("optimizer_bits", "bit", "bits of optimizer state per parameter, master weights included", r"\beta_o")
letter("moment_bits", "bit", "bits of one optimizer moment per parameter", r"\beta_{\mu}")
letter("fp32_bits", "bit", "bits of full-precision values, such as logits and row sums", r"\beta_{32}")
letter("mask_bits", "bit", "bits per element of a dropout mask", r"\beta_m")
letter("routed_share", "%", "share of the routed experts that a token visits (1 if there are none)", r"\rho", "share")
letter("read_params", "", "parameters read per decode step", r"N_{\mathrm{read}}")
letter("used_params", "", "parameters multiplied per token, without the input embedding", r"N_{\mathrm{use}}")
letter("weight_memory", "B", "memory for weights", r"M_w")
letter("active_weight_memory", "B", "active weights per token", r"M_{\mathrm{act}}")
letter("kv_cache_per_token", "B", "key-value cache per token", r"M_{kv/\mathrm{tok}}")
letter("cache_heads", "", "heads over which a cache can be split (1 for a latent cache)", r"a_c")
letter("cache_ways", "", "devices over which each cache is split", r"t_{kv}")
letter("device_memory", "B", "weights and caches per device", r"M_{w,kv}")
letter("kv_cache", "B", "key-value cache of the whole batch", r"M_{kv}")
letter("decode_memory", "B", "memory for decoding: weights and caches", r"M_{\mathrm{dec}}")
letter("saved_activations", "B", "activations saved for the backward pass, per block", r"M_{\mathrm{act}/L}")
letter("state_bits", "bit", "bits of weights, gradients and optimizer state per parameter and device", r"\beta_s")
letter("logit_bits", "bit", "bits per logit while the loss is computed, copies included", r"\beta_l")
letter(
    "activation_memory",
    "B",
    "activation memory per device",
    r"M_{\mathrm{act}}^{\Sigma}",
    _ZERO,
)
letter("logits_memory", "B", "memory for logits per device", r"M_{\mathrm{logit}}", _ZERO)
letter("train_memory", "B", "training memory per device", r"M_{\mathrm{train}}")
letter("filled", "", "share of device memory in use", r"\phi")
letter("wall_params", "", "parameters of the largest model that fits in memory", r"N_{\max}")

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
letter("l2_capacity", "B", "capacity of the last-level cache on the chip", r"C_{\mathrm{L2}}")
letter("sram_capacity", "B", "fast memory of one core (shared memory, scratchpad)", r"C_{\mathrm{sram}}")
letter("cores", "", "cores that run matrix tiles (SMs, compute units)", r"n_{\mathrm{core}}", whole=True)
letter("scaleup_bandwidth", "B/s", "scale-up bandwidth per device, one direction", r"W_{\mathrm{up}}")
letter("scaleup_size", "", "devices in one scale-up domain", r"n_{\mathrm{up}}", whole=True)
letter("scaleout_bandwidth", "B/s", "scale-out bandwidth per device, one direction", r"W_{\mathrm{out}}")
letter("host_bandwidth", "B/s", "bandwidth of the host link per device, one direction", r"W_{\mathrm{host}}")
letter("host_capacity", "B", "host memory per device", r"C_{\mathrm{host}}")
letter("tdp", "W", "thermal design power of one device", "P")
letter("launch", "year", "announcement of the device", r"t_0")
letter("price_hour", "$/h", "hourly price of one device", r"c_{\mathrm{h}}")
letter("link_bandwidth", "B/s", "bandwidth of a link, one direction", r"W_{\mathrm{link}}")
letter("link_achieved", "B/s", "achieved bandwidth of a link, one direction", r"\hat W_{\mathrm{link}}")
letter("link_latency", "s", "latency of a link", r"\lambda")
letter("link_capacity", "B", "capacity of the memory behind a link", r"C_{\mathrm{link}}")
letter("link_energy", "J/B", "energy to move data over a link or out of a memory", r"e_{\mathrm{link}}")
letter("bandwidth_efficiency", "%", "achieved over peak memory bandwidth", r"\eta_W", "share")
letter("flops_efficiency", "%", "achieved over peak arithmetic rate", r"\eta_F", "share")

# Work, traffic and time.
letter("flops", "FLOP", "arithmetic", "Q")
letter("traffic", "B", "memory traffic", "B")
letter("intensity", "FLOP/B", "arithmetic intensity", "I")
letter(
    "ridge_intensity", "FLOP/B", "ridge point: intensity at which arithmetic and memory take equally long", r"I^{\star}"
)
letter("decode_intensity", "FLOP/B", "arithmetic intensity of decode attention", r"I_{\mathrm{att}}")
letter("attainable_flops", "FLOP/s", "attainable arithmetic rate", r"F_{\mathrm{att}}")
letter("idle_fraction", "%", "share of the time in which the arithmetic units idle", r"\iota", "share")
letter("compute_time", "s", "time of the arithmetic at the peak rate", r"T_F")
letter("memory_time", "s", "time of the memory traffic at full bandwidth", r"T_W")
letter("roofline_time", "s", "roofline time of a kernel: the larger of arithmetic and memory", r"T")
letter("token_time", "s", "time between two tokens of one sequence", r"T_{\mathrm{tok}}")
letter("decode_rate", "token/s", "decode throughput of the whole batch", r"R")
letter("ridge_context", "", "context beyond which no batch makes decoding compute-bound", r"n^{\star}")
letter("full_read_time", "s", "time to read the whole device memory once", r"T_C")
letter("latency_floor", "s", "lower bound of the time per token: active weights over bandwidth", r"T_{\min}")
letter("block_overhead", "s", "fixed overhead per block in a decode step", r"\tau_L", _ZERO)

# Attention.
letter("pairs", "", "query-key pairs of one sequence", r"n_{qk}")
letter("pair_width", "", "prefill and training multiply-adds per query-key pair and layer", r"w_{\mathrm{pair}}")
letter("attention_flops", "FLOP", "arithmetic of attention scores and values, one block", r"Q_{\mathrm{att}}")
letter("projection_flops", "FLOP", "arithmetic of the attention projections, one block", r"Q_{\mathrm{proj}}")
letter("ffn_flops", "FLOP", "arithmetic of the feed-forward layer, one block", r"Q_{\mathrm{ffn}}")
letter("layer_flops", "FLOP", "forward matrix arithmetic of one block", r"Q_L")
letter("attention_share", "%", "share of attention scores and values in a block's arithmetic", r"\sigma", "share")
letter("growth", "", "growth factor of a block's arithmetic when the length doubles", r"\gamma_2")
letter("crossover", "", "sequence length at which attention scores and values cost as much as the rest", r"n_{\times}")
letter("order", "", "order of a truncated Taylor series", "r")
letter("features", "", "features of a key in a Taylor expansion", r"d_{\phi}")
letter("query_bits", "bit", "bits of a query inside an attention kernel", r"\beta_q")
letter("query_tile", "", "queries per tile of fused attention", "B_q")
letter("balanced_tile", "", "query tile at which reading keys takes as long as the arithmetic", r"B_q^{\star}")
letter("tile_memory", "B", "on-chip memory of the query, key, value and result tiles", r"M_{\mathrm{tile}}")
letter("sharing_cores", "", "cores that must share one read of the keys", r"n_{\mathrm{sh}}")
letter(
    "busy_pairs",
    "",
    "effective query-key pairs of all heads, idle cores included",
    r"\hat n_{qk}",
)
letter("score_flops", "FLOP", "vector arithmetic per attention score", r"\kappa")
letter("masked", "", "mask tensors added to the scores (1 or 0)", r"\mu", _ZERO)
letter("backward", "", "backward passes per forward pass (1 in training, else 0)", r"\nu_{\nabla}", _ZERO)
letter("score_passes", "", "memory passes over the scores in unfused attention", r"n_{S}")
letter("operand_passes", "", "memory passes over queries, keys, values and results in unfused attention", r"n_{QKV}")
letter("append_traffic", "B", "memory traffic of rotating queries and keys and writing the cache", r"B_{\mathrm{app}}")
letter("item_time", "s", "minimum time of a core per sequence and key-value head", r"\tau_i")
letter("launch_time", "s", "launch time of an operator", r"\tau_0", _ZERO)
letter("kernel_time", "s", "time of an attention operator", r"T_{\mathrm{att}}")
