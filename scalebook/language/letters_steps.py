"""The letters of kernels, and of a step of serving: parts, experts, memory, attention that does not read all caches."""

from .notation import letter

__all__ = []

_ZERO = "nonnegative"

# A step: what passes the blocks, and how it is split.
letter("pass_tokens", "", "tokens that pass the blocks together", r"n_T")
letter("read_chunk", "", "prompt tokens that a step reads, of each prompt", r"n_{P,k}")
letter("past", "", "tokens of a prompt that were read, or found in a cache, before", r"n_p", _ZERO)
letter("prompts", "", "prompts that a step reads", r"b_p")
letter("attention_dp", "", "groups of devices that attend for sequences of their own and share the experts", r"n_a")
letter("device_batch", "", "sequences decoded by the devices that attend together, at once", r"b_d")
letter("expert_bits", "bit", "bits per weight of routed experts", r"\beta_e")
letter("result_bits", "bit", "bits of what a product writes and devices exchange", r"\beta_y")
letter("expert_peak", "FLOP/s", "peak of the products of experts", r"F_e")
letter("expert_efficiency", "%", "share of their peak that the products of experts reach", r"\eta_e", "share")

# Experts.
letter("layer_tokens", "", "tokens of all devices that a layer of experts works on at once", r"n_E^{\Sigma}")
letter("local_experts", "", "experts of a device that a step visits", r"E_d")
letter("expert_rows", "", "tokens of an expert that a step visits", r"n_e")
letter("assigned_tokens", "", "copies of tokens that a device's experts work on", r"n_{\mathrm{as}}")
letter("visited_devices", "", "devices that hold an expert of one token", r"n_v")
letter("exchange_launch", "s", "time of an exchange of tokens however few there are", r"\tau_X")
letter("copy_value_time", "s", "time of a core for one value of a copy of a token that it sends", r"\tau_{X/c}")
letter("token_value_time", "s", "time of a core for one value of a token that it reads", r"\tau_{X/t}")
letter("copy_time", "s", "time of a core for one copy of a token, whatever its width", r"\tau_{X/n}", _ZERO)
letter("load_spread", "%", "how far an expert's load is off its share at most", r"\pm_E", "share")
letter("block_rows", "", "rows of a block that one core works on in grouped products", r"\theta_b")
letter("expert_blocks", "", "blocks of rows of all experts of a device", r"n_{\theta_b}")
letter("gather_bits", "bit", "bits of a token when it is gathered for its expert", r"\beta_{\mathrm{gat}}")
letter("scale_time", "s", "time of a core to quantize one number with its block's scale", r"\tau_{\mathrm{sc}}", _ZERO)
letter("expert_stream_efficiency", "%", "share of the bandwidth that products of experts reach", r"\eta_{s/E}", "share")
letter("expert_layer_time", "s", "time of a layer of experts on one device", r"T_{\mathrm{moe}}")
letter("fullest_share", "", "load of the fullest device over the mean", r"\phi_E")
letter("fullest_group", "", "sequences of the fullest group that attends apart over the mean", r"\phi_a")

# What the kernels of serving take besides data sheets.
letter("read_launch", "s", "time of attention to a cache before it reads", r"\tau_r")
letter("read_efficiency", "%", "share of the bandwidth at which attention reads a cache", r"\eta_r", "share")
# The same of a device's own kernels, by what a cache holds.
for _kind, _of, _mark in (("grouped", "keys and values", "g"), ("latent", "latents", r"\ell")):
    letter(f"read_launch_{_kind}", "s", f"time of attention to cached {_of} before it reads", rf"\tau_r^{{{_mark}}}")
    letter(
        f"read_efficiency_{_kind}",
        "%",
        f"share of the bandwidth at which attention reads cached {_of}",
        rf"\eta_r^{{{_mark}}}",
        "share",
    )
    letter(f"item_time_{_kind}", "s", f"least time a core spends on one item of cached {_of}", rf"\tau_i^{{{_mark}}}")
# Of kernels that give each core one sequence and key-value head at a time.
letter("core_bandwidth", "B/s", "rate at which one core reads cached keys and values", r"W_{\mathrm{core}}")
letter("split_tokens", "", "fewest cached tokens that one of several cores reads of a sequence", r"n_{\mathrm{split}}")
letter("join_time", "s", "time to join the results of cores that shared a sequence", r"\tau_{\mathrm{join}}", _ZERO)
letter(
    "resident_share", "%", "share of a cache that the second-level cache still holds", r"\chi_{\mathrm{L2}}", "share"
)
letter("prompt_launch", "s", "time of attention over a prompt before it computes", r"\tau_p")
letter(
    "prompt_efficiency", "%", "share of the bandwidth at which attention writes and reads a prompt", r"\eta_p", "share"
)
letter("scale_kernels", "", "kernels of a block that scale what enters products of few bits", r"n_{\mathrm{sc}}", _ZERO)
letter("scale_block", "", "inputs of weights that share a scale where they are published in 8 bits", r"b_{\mathrm{sc}}")
letter(
    "norm_sums", "", "norms of a block whose sums go over the devices that share its heads", r"n_{\mathrm{norm}}", _ZERO
)
letter("routing_time_least", "s", "time to sort tokens by expert, however few", r"\tau_e")
letter("assigned_passes", "", "times that a token's copies pass through memory around the products of experts", "n_m")

# The parts of a step.
letter("weights_time", "s", "dense weights read in a step", r"T_{\mathrm{wts}}")
letter("products_time", "s", "what dense products take beyond reading their weights", r"T_F^{+}", _ZERO)
letter("cache_time", "s", "attention to caches", r"T_{\mathrm{att}}^{kv}", _ZERO)
letter("reading_time", "s", "attention over prompts", r"T_{\mathrm{att}}^{P}", _ZERO)
letter("experts_time", "s", "products of routed experts, their weights read", r"T_E", _ZERO)
letter("routing_time", "s", "tokens sorted by expert, copied and summed", r"T_R", _ZERO)
letter("streams_time", "s", "norms, activations, and what else streams through memory", r"T_S", _ZERO)
letter("exchange_time", "s", "messages between devices", r"T_X", _ZERO)
letter("launches_time", "s", "launches of kernels", r"T_0", _ZERO)
letter("engine_time", "s", "time of the engine between kernels and steps", r"T_{\mathrm{eng}}", _ZERO)
letter("pass_time", "s", "time of a step of serving", r"T_{\mathrm{pass}}")

# Memory where a model serves.
letter("held_weights", "B", "weights on one device", r"M_{w,d}")
letter("token_cache", "B", "cache of one token on one device", r"m_{kv}")
letter("workspace", "B", "activations and work space of an engine on one device", r"M_a", _ZERO)
letter("cache_room", "B", "memory of one device that is left for caches", r"M_r")
letter("cached_tokens", "", "tokens in the cache of a sequence, mean over its answer", r"\bar n_{\mathrm{in}}")
letter("max_users", "", "users whose caches fit at once", r"c_{\max}", _ZERO)

# From a step to a service.
letter("chunks_of_prompt", "", "steps in which a prompt is read", r"n_k")
letter("prompts_together", "", "short prompts that a step reads beside each other", r"n_{\parallel}")
letter(
    "mixed_time",
    "s",
    "time of a step that reads a part of a prompt beside the sequences that it decodes",
    r"T_{\mathrm{mix}}",
)
letter("request_rate", "request/s", "requests that all devices finish in a second", r"X")

# The same of a step that reads a part of a prompt.
letter("mixed_tokens", "", "tokens that pass the blocks together while a prompt is read", r"n_T'")
letter("mixed_layer_tokens", "", "tokens that a layer of experts then works on", r"n_E^{\Sigma\prime}")
letter("mixed_visited", "", "experts that are then visited", r"E_v'", _ZERO)
letter("mixed_local", "", "experts of a device that are then visited", r"E_d'")
letter("mixed_rows", "", "tokens of an expert that is then visited", r"n_e'")
letter("mixed_fullest", "", "load of the device that is then the fullest, over the mean", r"\phi_E'")
letter("mixed_assigned", "", "copies of tokens that a device's experts then work on", r"n_{\mathrm{as}}'")

# The model: attention that keeps a state instead of a cache, and attention to a few keys that an indexer picks.
letter("linear_layers", "", "blocks of linear attention: they keep a state, no cache", r"L_{\ell}", _ZERO, whole=True)
letter("linear_key_heads", "", "heads of queries and of keys in linear attention", r"a_{\ell k}", whole=True)
letter("linear_value_heads", "", "heads of values in linear attention, each with a state", r"a_{\ell v}", whole=True)
letter("linear_key_dim", "", "width of one head's key in linear attention", r"d_{\ell k}", whole=True)
letter("linear_value_dim", "", "width of one head's value in linear attention", r"d_{\ell v}", whole=True)
letter("linear_conv", "", "tokens under the short convolution before linear attention", r"n_{\ell}", whole=True)
letter("linear_bits", "bit", "bits per value of linear attention's state", r"\beta_{\ell}")
letter("linear_state", "", "values of one sequence's state, all linear layers together", r"S_{\ell}", _ZERO)
letter("linear_memory", "B", "state of one sequence, all linear layers together", r"M_{\ell}", _ZERO)
letter("linear_params", "", "parameters of linear attention in one block", r"N_{\ell}")
letter(
    "output_gate", "", "gates on what attention puts out: 1 as wide as the queries, 0 none", "g_o", _ZERO, whole=True
)
letter("index_heads", "", "heads of the indexer that picks keys for sparse attention", r"a_{\mathrm{idx}}", whole=True)
letter("index_dim", "", "width of an indexer's head, and of the one key it caches", r"d_{\mathrm{idx}}", whole=True)
letter("index_tokens", "", "tokens that sparse attention attends to, of those cached", r"n_{\mathrm{idx}}", whole=True)
letter("index_params", "", "parameters of the indexer in one block", r"N_{\mathrm{idx}}")

# Attention to what an indexer picks, linear attention that serves, and half batches.
letter("index_peak", "FLOP/s", "peak of an indexer's products", r"F_{\mathrm{idx}}")
letter("index_bits", "bit", "bits per value of an indexer's cached key", r"\beta_{\mathrm{idx}}")
letter("dense_tokens", "", "tokens up to which prompts attend to all keys", r"n_{\mathrm{idx}}^{0}", _ZERO)
letter("head_tile", "", "heads that a kernel of sparse attention multiplies for at once", r"a_t", whole=True)
letter("tiled_heads", "", "heads that a device multiplies for, empty places of a tile counted", r"a_d^{\Box}")
letter("sparse_efficiency", "%", "share of the peak that sparse attention reaches", r"\eta_{\mathrm{idx}}", "share")
letter("delta_chunk", "", "tokens of a prompt that linear attention reads at once", r"C_{\ell}", whole=True)
letter("sequence_state", "B", "state of one sequence's linear attention on one device", r"m_{\ell}")
letter("messages_time", "s", "time of a step's messages, hidden or not", r"T_X^{\Sigma}", _ZERO)
letter("attention_stretch", "s", "computing of half a batch up to the sum after attention", r"t_{2/2}^{a}")
letter("attention_messages", "s", "messages of half a batch after its attention", r"x_{2/2}^{a}", _ZERO)
letter("experts_stretch", "s", "computing of half a batch after attention, its experts", r"t_{2/2}^{e}")
letter("experts_messages", "s", "messages of half a batch after its experts", r"x_{2/2}^{e}", _ZERO)
letter("alternating_time", "s", "time of a block for two half batches in turn", r"T_{2/2}")
letter("alternating_end", "s", "time that neither half of a batch hides, at the ends of a step", r"T_{2/2}^{0}", _ZERO)
letter("exchange_cores", "", "cores that messages take while they travel", r"C_X", _ZERO, whole=True)
letter("slowing", "", "how much longer computing takes beside messages, over its time", r"\sigma_C", _ZERO)
letter("exposed_messages", "s", "messages of a block of two half batches that are waited for", r"X_{2/2}", _ZERO)

# Products in training: what a device's reach, by precision, and the range over the sources.
letter(
    "training_efficiency",
    "%",
    "rate of a training step's products over the peak, before clocks fall",
    r"\eta_{\mathrm{tr}}",
    "share",
)
for _precision in ["bf16", "fp16", "fp8", "fp4"]:
    letter(
        f"training_{_precision}",
        "%",
        f"rate of a training step's products over the peak, in {_precision}",
        f"\\eta_{{\\mathrm{{tr,{_precision}}}}}",
        "share",
    )
letter(
    "grouped_efficiency",
    "%",
    "rate of products of experts over the peak, in training",
    r"\eta_{\mathrm{tr},E}",
    "share",
)
letter(
    "grouped_whole",
    "%",
    "rate of products of experts over the peak where their weights fill whole systolic arrays",
    r"\eta_{E,\mathrm{arr}}",
    "share",
)
for _which, _mark in [("low", "-"), ("typical", "0"), ("high", "+")]:
    letter(
        f"efficiency_{_which}",
        "%",
        f"share of the peak that a kernel reaches in training, {_which}",
        f"\\eta_{{k}}^{{{_mark}}}",
        "share",
    )
letter(
    "grouped_hidden",
    "%",
    "share of the shorter of arithmetic and traffic that products of experts hide",
    r"\chi_E",
    "share",
)
letter(
    "expert_passes",
    "",
    "times that experts' activations pass through memory beside fused kernels",
    r"n_{E\Box}",
    _ZERO,
)
letter("eager_time", "s", "time of a block's unfused steps on what its experts hold", r"T_{E\Box}", _ZERO)
letter("split_time", "s", "time that sharing a product's inner size between cores costs", r"\tau_{\mathrm{split}}")
letter("split_step", "s", "time that each share of the inner size beyond the second adds", r"\tau_{\mathrm{split}+}")
letter("inner_wait", "s", "time that loads take for each element of the inner size", r"\tau_{\mathrm{wait}}", _ZERO)
letter(
    "quantize_start", "s", "time to start the kernel that quantizes the input of a product", r"\tau_{\mathrm{q}}", _ZERO
)
letter(
    "quantize_passes",
    "",
    "times that a product's input passes through memory to be quantized",
    r"n_{\mathrm{q}}",
    _ZERO,
)
letter(
    "quantize_row",
    "s",
    "time of a row of a product's input in the kernel that quantizes it",
    r"\tau_{\mathrm{q,row}}",
    _ZERO,
)
letter("quantize_time", "s", "time to quantize the input of a product", r"T_{\mathrm{quant}}", _ZERO)
letter("operator_time", "s", "time of a linear layer: its input is quantized, then multiplied", r"T_{\mathrm{lin}}")
letter(
    "cached_share",
    "%",
    "share of a product's traffic that a benchmark finds in the last-level cache",
    r"\chi_{\mathrm{LLC}}",
    "share",
)
letter("l2_bandwidth", "B/s", "rate at which kernels read the last-level cache on the chip", r"W_{\mathrm{L2}}")
letter("best_time", "s", "time of the best product that a search finds", r"T_{\mathrm{best}}")
letter("dummy_share", "%", "whether a library keeps gradients beside those that are summed", r"\chi_{g\Box}", "share")
letter("work_memory", "B", "what a framework and its libraries hold beside the model", r"M_{\mathrm{work}}", _ZERO)
letter("library_memory", "B", "work space of libraries", r"M_{\mathrm{lib}}", _ZERO)
letter("vocab_bits", "bit", "held for each parameter of the vocabulary's matrix, beside its state", r"b_{V\Box}", _ZERO)
letter(
    "gathered_tensors",
    "",
    "tensors that tensor parallelism has gathered whole while a block is at work",
    r"n_{\mathrm{ag}}",
    _ZERO,
)
letter("dummy_gradients", "B", "gradients that a library keeps beside those that are summed", r"M_{g\Box}", _ZERO)

# Kernels: a matrix product of rows x inner by inner x columns, so many copies of it, and streams through memory.
letter("rows", "", "rows of a matrix product: tokens, in a forward pass", r"n_{\mathrm{row}}")
letter("columns", "", "columns of a matrix product", r"n_{\mathrm{col}}")
letter("inner", "", "size a matrix product sums over", r"n_{\mathrm{in}}")
letter("copies", "", "matrix products of one shape that run as one kernel", r"n_{\mathrm{mm}}")
letter("tile_rows", "", "rows of the tile of a result that one core works on", r"\theta_r")
letter("tile_columns", "", "columns of the tile of a result that one core works on", r"\theta_c")
letter("tiles", "", "tiles of the results of a matrix product, those at the edges counted whole", r"n_{\theta}")
letter("waves", "", "times that all cores together take on a tile each", r"n_{\mathrm{wave}}")
letter("weight_columns", "", "columns of a weight, before tensor parallelism splits them", r"n_{\mathrm{w}}")
letter("pad_multiple", "", "what each device's part of the vocabulary is a multiple of", r"n_{\mathrm{pad}}")
letter("padded_vocab", "", "words in the vocabulary with those added to make it divisible", r"V_{\mathrm{pad}}")
letter(
    "tile_efficiency",
    "%",
    "results that were asked for over those that whole tiles work out",
    r"\eta_{\theta}",
    "share",
)
letter(
    "wave_efficiency",
    "%",
    "tiles over those that all cores could take on in whole waves",
    r"\eta_{\mathrm{wave}}",
    "share",
)
letter(
    "fill",
    "%",
    "results that were asked for over those that all cores could work out",
    r"\eta_{\mathrm{fill}}",
    "share",
)
letter(
    "aligned_share",
    "%",
    "what a product reaches whose rows do not begin at multiples of 16 bytes, over one whose rows do",
    r"\eta_{16}",
    "share",
)
letter("exposed_write", "%", "share of the writing of a result that no arithmetic hides", r"\chi_w", "share")
letter("inner_half", "", "inner size at which a matrix product reaches half of its highest rate", r"n_{1/2}")
letter(
    "matmul_efficiency",
    "%",
    "rate of full waves of a deep matrix product over the peak",
    r"\eta_{\mathrm{mm}}",
    "share",
)
for _precision in ["fp64", "fp32", "bf16", "fp16", "fp8", "fp4"]:
    letter(
        f"matmul_{_precision}",
        "%",
        f"rate of full waves of a deep matrix product over the peak, in {_precision}",
        f"\\eta_{{\\mathrm{{mm,{_precision}}}}}",
        "share",
    )
letter(
    "matmul_fp8_block",
    "%",
    "rate of full waves of a deep matrix product over the peak, in fp8 with a scale for each block of weights",
    r"\eta_{\mathrm{mm,block}}",
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
