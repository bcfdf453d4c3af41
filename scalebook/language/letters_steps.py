"""The letters of kernels and of a serving step: parts, experts, memory, linear and sparse attention."""

from .notation import letter

__all__ = []

_ZERO = "nonnegative"

# A serving step: its tokens, and how they are split over devices.
letter("pass_tokens", "", "tokens per forward pass", r"n_T")
letter("read_chunk", "", "tokens read per step of each prompt", r"n_{P,k}")
letter("past", "", "prompt tokens already cached", r"n_p", _ZERO)
letter("prompts", "", "prompts read per step", r"b_p")
letter("attention_dp", "", "data-parallel groups for attention", r"n_a")
letter("device_batch", "", "sequences decoded at once per attention group", r"b_d")
letter("expert_bits", "bit", "bits per weight of routed experts", r"\beta_e")
letter("result_bits", "bit", "bits per result of a product", r"\beta_y")
letter("expert_peak", "FLOP/s", "peak arithmetic rate of expert products", r"F_e")
letter("expert_efficiency", "%", "share of their peak that expert products reach", r"\eta_e", "share")

# Experts.
letter("layer_tokens", "", "tokens per expert layer, all devices together", r"n_E^{\Sigma}")
letter("local_experts", "", "visited experts per device", r"E_d")
letter("expert_rows", "", "tokens per visited expert", r"n_e")
letter("assigned_tokens", "", "token copies for the experts of a device", r"n_{\mathrm{as}}")
letter("visited_devices", "", "devices to which a token is sent", r"n_v")
letter("exchange_launch", "s", "launch time of a token exchange", r"\tau_X")
letter("copy_value_time", "s", "core time per value of a sent token copy", r"\tau_{X/c}")
letter("token_value_time", "s", "core time per value of a read token", r"\tau_{X/t}")
letter("copy_time", "s", "core time per sent token copy", r"\tau_{X/n}", _ZERO)
letter("load_spread", "%", "largest deviation of an expert's load from its share", r"\pm_E", "share")
letter("block_rows", "", "rows per block of grouped products", r"\theta_b")
letter("expert_blocks", "", "row blocks of all experts on a device", r"n_{\theta_b}")
letter("gather_bits", "bit", "bits per value of gathered tokens", r"\beta_{\mathrm{gat}}")
letter("scale_time", "s", "core time to quantize one number with its block's scale", r"\tau_{\mathrm{sc}}", _ZERO)
letter(
    "expert_stream_efficiency", "%", "share of the memory bandwidth that expert products reach", r"\eta_{s/E}", "share"
)
letter("expert_layer_time", "s", "time of an expert layer on one device", r"T_{\mathrm{moe}}")
letter("fullest_share", "", "load of the fullest device over the mean", r"\phi_E")
letter("fullest_group", "", "sequences of the fullest attention group over the mean", r"\phi_a")

# Measured launch times and efficiencies of serving kernels.
letter("read_launch", "s", "launch time of decode attention", r"\tau_r")
letter("read_efficiency", "%", "share of the bandwidth that decode attention reaches", r"\eta_r", "share")
# The same for a device's own kernels, by kind of cache.
for _kind, _of, _mark in (("grouped", "keys and values", "g"), ("latent", "latents", r"\ell")):
    letter(f"read_launch_{_kind}", "s", f"launch time of decode attention to {_of}", rf"\tau_r^{{{_mark}}}")
    letter(
        f"read_efficiency_{_kind}",
        "%",
        f"share of the bandwidth that decode attention to {_of} reaches",
        rf"\eta_r^{{{_mark}}}",
        "share",
    )
    letter(f"item_time_{_kind}", "s", f"minimum time of a core per item of cached {_of}", rf"\tau_i^{{{_mark}}}")
# Attention kernels that give each core one sequence and key-value head at a time.
letter("core_bandwidth", "B/s", "rate at which one core reads the cache", r"W_{\mathrm{core}}")
letter("split_tokens", "", "fewest cached tokens per core that shares a sequence", r"n_{\mathrm{split}}")
letter("join_time", "s", "time to join the results of cores that share a sequence", r"\tau_{\mathrm{join}}", _ZERO)
letter("resident_share", "%", "share of keys and values still in the L2 cache", r"\chi_{\mathrm{L2}}", "share")
letter("prompt_launch", "s", "launch time of prompt attention", r"\tau_p")
letter("prompt_efficiency", "%", "share of the bandwidth that prompt attention reaches", r"\eta_p", "share")
letter("scale_kernels", "", "activation-scaling kernels per block", r"n_{\mathrm{sc}}", _ZERO)
letter("scale_block", "", "inputs per weight scale in an 8-bit checkpoint", r"b_{\mathrm{sc}}")
letter("norm_sums", "", "norms per block that need a sum over devices", r"n_{\mathrm{norm}}", _ZERO)
letter("routing_time_least", "s", "minimum time to sort tokens by expert", r"\tau_e")
letter("assigned_passes", "", "memory passes over token copies around expert products", "n_m")

# The parts of a step.
letter("weights_time", "s", "time to read dense weights", r"T_{\mathrm{wts}}")
letter("products_time", "s", "time of dense products beyond reading their weights", r"T_F^{+}", _ZERO)
letter("cache_time", "s", "time of attention to the caches", r"T_{\mathrm{att}}^{kv}", _ZERO)
letter("reading_time", "s", "time of attention over prompts", r"T_{\mathrm{att}}^{P}", _ZERO)
letter("experts_time", "s", "time of expert products, weights included", r"T_E", _ZERO)
letter("routing_time", "s", "time to sort, copy and sum tokens for experts", r"T_R", _ZERO)
letter("streams_time", "s", "time of norms, activations and other memory streams", r"T_S", _ZERO)
letter("exchange_time", "s", "time of messages between devices", r"T_X", _ZERO)
letter("launches_time", "s", "time of kernel launches", r"T_0", _ZERO)
letter("engine_time", "s", "engine time between kernels and steps", r"T_{\mathrm{eng}}", _ZERO)
letter("pass_time", "s", "time of a serving step", r"T_{\mathrm{pass}}")

# Memory in serving.
letter("held_weights", "B", "weights per device", r"M_{w,d}")
letter("token_cache", "B", "cache per token and device", r"m_{kv}")
letter("workspace", "B", "workspace of an engine per device", r"M_a", _ZERO)
letter("cache_room", "B", "memory per device left for caches", r"M_r")
letter("cached_tokens", "", "mean cached tokens per sequence", r"\bar n_{\mathrm{in}}")
letter("max_users", "", "users whose caches fit at once", r"c_{\max}", _ZERO)

# From a step to a service.
letter("chunks_of_prompt", "", "steps to read one prompt", r"n_k")
letter("prompts_together", "", "short prompts read together in one step", r"n_{\parallel}")
letter(
    "mixed_time",
    "s",
    "time of a step that reads a prompt and decodes",
    r"T_{\mathrm{mix}}",
)
letter("request_rate", "request/s", "request throughput of all devices", r"X")

# Mixed steps, which also read a part of a prompt.
letter("mixed_tokens", "", "tokens per forward pass of a mixed step", r"n_T'")
letter("mixed_layer_tokens", "", "tokens per expert layer of a mixed step", r"n_E^{\Sigma\prime}")
letter("mixed_visited", "", "routed experts visited in a mixed step", r"E_v'", _ZERO)
letter("mixed_local", "", "visited experts per device in a mixed step", r"E_d'")
letter("mixed_rows", "", "tokens per visited expert in a mixed step", r"n_e'")
letter("mixed_fullest", "", "load of the fullest device over the mean in a mixed step", r"\phi_E'")
letter("mixed_assigned", "", "token copies for the experts of a device in a mixed step", r"n_{\mathrm{as}}'")

# The model: linear attention (a state instead of a cache) and sparse attention (keys selected by an indexer).
letter("linear_layers", "", "blocks with linear attention (a state, no cache)", r"L_{\ell}", _ZERO, whole=True)
letter("linear_key_heads", "", "query and key heads of linear attention", r"a_{\ell k}", whole=True)
letter("linear_value_heads", "", "value heads of linear attention", r"a_{\ell v}", whole=True)
letter("linear_key_dim", "", "key width per head of linear attention", r"d_{\ell k}", whole=True)
letter("linear_value_dim", "", "value width per head of linear attention", r"d_{\ell v}", whole=True)
letter("linear_conv", "", "tokens under the short convolution of linear attention", r"n_{\ell}", whole=True)
letter("linear_bits", "bit", "bits per value of the linear-attention state", r"\beta_{\ell}")
letter("linear_state", "", "values in the linear-attention state of a sequence", r"S_{\ell}", _ZERO)
letter("linear_memory", "B", "linear-attention state per sequence", r"M_{\ell}", _ZERO)
letter("linear_params", "", "linear-attention parameters per block", r"N_{\ell}")
letter("output_gate", "", "output gates of attention: 1 if as wide as the queries, 0 if none", "g_o", _ZERO, whole=True)
letter("index_heads", "", "heads of the sparse-attention indexer", r"a_{\mathrm{idx}}", whole=True)
letter("index_dim", "", "width of an indexer head", r"d_{\mathrm{idx}}", whole=True)
letter("index_tokens", "", "cached tokens that sparse attention selects", r"n_{\mathrm{idx}}", whole=True)
letter("index_params", "", "indexer parameters per block", r"N_{\mathrm{idx}}")

# Sparse and linear attention in serving, and two-batch overlap.
letter("index_peak", "FLOP/s", "peak arithmetic rate of the indexer", r"F_{\mathrm{idx}}")
letter("index_bits", "bit", "bits per value of the indexer's cached keys", r"\beta_{\mathrm{idx}}")
letter("dense_tokens", "", "prompt length up to which attention is dense", r"n_{\mathrm{idx}}^{0}", _ZERO)
letter("head_tile", "", "heads per tile of sparse attention", r"a_t", whole=True)
letter("tiled_heads", "", "heads computed per device, padding included", r"a_d^{\Box}")
letter("sparse_efficiency", "%", "share of the peak that sparse attention reaches", r"\eta_{\mathrm{idx}}", "share")
letter("delta_chunk", "", "prompt tokens per chunk of linear attention", r"C_{\ell}", whole=True)
letter("sequence_state", "B", "linear-attention state per sequence and device", r"m_{\ell}")
letter("messages_time", "s", "message time per step, hidden or not", r"T_X^{\Sigma}", _ZERO)
letter("attention_stretch", "s", "compute time of half a batch up to the sum after attention", r"t_{2/2}^{a}")
letter("attention_messages", "s", "message time of half a batch after attention", r"x_{2/2}^{a}", _ZERO)
letter("experts_stretch", "s", "compute time of half a batch after attention (experts)", r"t_{2/2}^{e}")
letter("experts_messages", "s", "message time of half a batch after the experts", r"x_{2/2}^{e}", _ZERO)
letter("alternating_time", "s", "time of a block with two-batch overlap", r"T_{2/2}")
letter("alternating_end", "s", "unhidden time at the ends of a step with two-batch overlap", r"T_{2/2}^{0}", _ZERO)
letter("exchange_cores", "", "cores occupied by messages in flight", r"C_X", _ZERO, whole=True)
letter("slowing", "", "slowdown of computing by overlapped messages", r"\sigma_C", _ZERO)
letter("exposed_messages", "s", "exposed message time per block with two-batch overlap", r"X_{2/2}", _ZERO)

# Efficiency of products in training, by precision, with the range over sources.
letter(
    "training_efficiency",
    "%",
    "share of the peak that products reach in training, before clocks fall",
    r"\eta_{\mathrm{tr}}",
    "share",
)
for _precision in ["bf16", "fp16", "fp8", "fp4"]:
    letter(
        f"training_{_precision}",
        "%",
        f"share of the peak that {_precision} products reach in training",
        f"\\eta_{{\\mathrm{{tr,{_precision}}}}}",
        "share",
    )
letter(
    "grouped_efficiency",
    "%",
    "share of the peak that expert products reach in training",
    r"\eta_{\mathrm{tr},E}",
    "share",
)
letter(
    "grouped_whole",
    "%",
    "share of the peak that expert products reach if weights fill whole arrays",
    r"\eta_{E,\mathrm{arr}}",
    "share",
)
for _which, _mark in [("low", "-"), ("typical", "0"), ("high", "+")]:
    letter(
        f"efficiency_{_which}",
        "%",
        f"{_which} share of the peak that kernels reach in training",
        f"\\eta_{{k}}^{{{_mark}}}",
        "share",
    )
letter(
    "grouped_hidden",
    "%",
    "overlapped share of the shorter of arithmetic and traffic in expert products",
    r"\chi_E",
    "share",
)
letter(
    "expert_passes",
    "",
    "extra memory passes over expert activations",
    r"n_{E\Box}",
    _ZERO,
)
letter("eager_time", "s", "time of a block's unfused expert steps", r"T_{E\Box}", _ZERO)
letter("split_time", "s", "time to combine split-K partial sums", r"\tau_{\mathrm{split}}")
letter("split_step", "s", "time of each split-K partial sum beyond the second", r"\tau_{\mathrm{split}+}")
letter("inner_wait", "s", "load wait per element of the inner dimension", r"\tau_{\mathrm{wait}}", _ZERO)
letter("quantize_start", "s", "launch time of the quantization kernel", r"\tau_{\mathrm{q}}", _ZERO)
letter(
    "quantize_passes",
    "",
    "memory passes to quantize a product's input",
    r"n_{\mathrm{q}}",
    _ZERO,
)
letter(
    "quantize_row",
    "s",
    "time to quantize one row of a product's input",
    r"\tau_{\mathrm{q,row}}",
    _ZERO,
)
letter("quantize_time", "s", "time to quantize the input of a product", r"T_{\mathrm{quant}}", _ZERO)
letter("operator_time", "s", "time of a linear layer, quantization included", r"T_{\mathrm{lin}}")
letter(
    "cached_share",
    "%",
    "share of a product's traffic that hits the last-level cache in a benchmark",
    r"\chi_{\mathrm{LLC}}",
    "share",
)
letter("l2_bandwidth", "B/s", "bandwidth of the last-level cache on the chip", r"W_{\mathrm{L2}}")
letter("best_time", "s", "time of the fastest product that a search finds", r"T_{\mathrm{best}}")
letter("dummy_share", "%", "share of dummy gradients that a library keeps (0 or 1)", r"\chi_{g\Box}", "share")
letter("work_memory", "B", "memory of a framework and its libraries, model excluded", r"M_{\mathrm{work}}", _ZERO)
letter("library_memory", "B", "workspace of libraries", r"M_{\mathrm{lib}}", _ZERO)
letter("vocab_bits", "bit", "extra bits per parameter of the vocabulary matrix", r"b_{V\Box}", _ZERO)
letter(
    "gathered_tensors",
    "",
    "whole tensors gathered by tensor parallelism for a working block",
    r"n_{\mathrm{ag}}",
    _ZERO,
)
letter("dummy_gradients", "B", "dummy gradients that a library keeps", r"M_{g\Box}", _ZERO)

# Kernels: `copies` matrix products of [rows, inner] by [inner, columns], and streams through memory.
letter("rows", "", "rows of a matrix product: tokens, in a forward pass", r"n_{\mathrm{row}}")
letter("columns", "", "columns of a matrix product", r"n_{\mathrm{col}}")
letter("inner", "", "inner dimension of a matrix product", r"n_{\mathrm{in}}")
letter("copies", "", "matrix products of one shape per kernel", r"n_{\mathrm{mm}}")
letter("tile_rows", "", "rows of an output tile", r"\theta_r")
letter("tile_columns", "", "columns of an output tile", r"\theta_c")
letter("tiles", "", "output tiles of a matrix product, partial tiles counted whole", r"n_{\theta}")
letter("waves", "", "waves: rounds in which every core computes one tile", r"n_{\mathrm{wave}}")
letter("weight_columns", "", "columns of a weight before tensor parallelism", r"n_{\mathrm{w}}")
letter("pad_multiple", "", "multiple to which each device's part of the vocabulary is padded", r"n_{\mathrm{pad}}")
letter("padded_vocab", "", "tokens in the padded vocabulary", r"V_{\mathrm{pad}}")
letter(
    "tile_efficiency",
    "%",
    "tile efficiency: useful share of whole tiles",
    r"\eta_{\theta}",
    "share",
)
letter(
    "wave_efficiency",
    "%",
    "wave efficiency: share of cores' tile slots that hold a tile",
    r"\eta_{\mathrm{wave}}",
    "share",
)
letter(
    "fill",
    "%",
    "share of cores' tile slots with useful work: tile times wave efficiency",
    r"\eta_{\mathrm{fill}}",
    "share",
)
letter(
    "aligned_share",
    "%",
    "rate of a product with unaligned rows relative to aligned ones",
    r"\eta_{16}",
    "share",
)
letter("exposed_write", "%", "exposed share of writing a result", r"\chi_w", "share")
letter("inner_half", "", "inner dimension at which a product reaches half of its highest rate", r"n_{1/2}")
letter(
    "matmul_efficiency",
    "%",
    "share of the peak in full waves of deep matrix products",
    r"\eta_{\mathrm{mm}}",
    "share",
)
for _precision in ["fp64", "fp32", "bf16", "fp16", "fp8", "fp4"]:
    letter(
        f"matmul_{_precision}",
        "%",
        f"share of the peak in full waves of deep {_precision} products",
        f"\\eta_{{\\mathrm{{mm,{_precision}}}}}",
        "share",
    )
letter(
    "matmul_fp8_block",
    "%",
    "share of the peak in full waves of deep fp8 products with block scales",
    r"\eta_{\mathrm{mm,block}}",
    "share",
)
letter(
    "stream_efficiency",
    "%",
    "share of memory bandwidth that streaming kernels reach",
    r"\eta_{\mathrm{st}}",
    "share",
)
letter("kernel_launch", "s", "launch time of a kernel", r"\tau_k", _ZERO)
letter("matmul_time", "s", "time of a matrix product", r"T_{\mathrm{mm}}")
letter(
    "matmul_share",
    "%",
    "share of the peak that a matrix product reaches",
    r"\phi_{\mathrm{mm}}",
    "share",
)
letter("stream_time", "s", "time of a memory-bound kernel", r"T_{\mathrm{st}}")
