"""The letters of serving: users, queues, engines, bills."""

from .notation import letter

__all__ = []

_ZERO = "nonnegative"

# What users ask for, and what they get.
letter("prompt", "", "tokens of a prompt", r"n_P")
letter("output", "", "tokens of an answer", r"n_{\mathrm{out}}")
letter("users", "", "requests in the system: each user sends the next when the last has ended", r"n_u")
letter("rate", "request/s", "requests that arrive in a second", r"\lambda_r", _ZERO)
letter("ttft", "s", "time to the first token", r"T_1")
letter("tpot", "s", "time per output token, the first not counted", r"T_{\mathrm{out}}")
letter("end_to_end", "s", "time from a request to its last token", r"T_{\mathrm{e2e}}")
letter("user_rate", "token/s", "tokens a second that one user sees after the first", r"R_u")
letter("device_rate", "token/s", "output tokens a second of one device", r"R_d")
letter("replicas", "", "copies of a model among which requests are divided", r"n_{\mathrm{rep}}")

# A decode step, linear in its batch: base_time + batch * added_time.
letter("base_time", "s", "time of a decode step beside what its sequences add: weights, launches, exchanges", r"\tau_b")
letter("added_time", "s", "time that one more sequence adds to a decode step", r"\alpha", _ZERO)
letter("prompt_time", "s", "time that reading one prompt takes of the device", r"t_P", _ZERO)
letter("load", "%", "share of the time in which a server is busy", r"\rho_s", "share")

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
letter("fullest_share", "", "load of the fullest device over the mean", r"\phi_E")

# What the kernels of serving take besides data sheets.
letter("read_launch", "s", "time of attention to a cache before it reads", r"\tau_r")
letter("read_efficiency", "%", "share of the bandwidth at which attention reads a cache", r"\eta_r", "share")
letter("prompt_launch", "s", "time of attention over a prompt before it computes", r"\tau_p")
letter(
    "prompt_efficiency", "%", "share of the bandwidth at which attention writes and reads a prompt", r"\eta_p", "share"
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
letter(
    "mixed_time",
    "s",
    "time of a step that reads a part of a prompt beside the sequences that it decodes",
    r"T_{\mathrm{mix}}",
)
letter("request_rate", "request/s", "requests that all devices finish in a second", r"X")

# Queues: requests that wait for a server, and what it can take.
letter("tpot_target", "s", "longest time per output token that is asked for", r"T_{\mathrm{out}}^{\star}")
letter("capacity", "request/s", "most requests a second that keep to a target", r"\lambda^{\star}")
letter("headroom", "%", "share of the capacity that is still free", r"\chi_{\lambda}", "share")
letter("prompt_load", "%", "share of the time in which prompts are read", r"\rho_P", "share")
letter("queue_time", "s", "time a request waits until its prompt is read", r"T_q", _ZERO)
letter("generations", "", "requests that each user of a benchmark sends", r"n_{\mathrm{gen}}")
letter(
    "response_time", "s", "time from a request to its answer where all that wait are served at once", r"T_{\mathrm{r}}"
)
letter("met_batch", "", "requests in the batch that a request is served in, on the mean", r"b_{\mathrm{met}}")
letter("half_price_batch", "", "batch at which a token costs twice the least", r"b_{1/2}")

# Disaggregation: prompts are read in one pool of devices, answers written in another.
letter("prefill_devices", "", "devices that read prompts", r"n_{\mathrm{pre}}")
letter("decode_devices", "", "devices that write answers", r"n_{\mathrm{dec}}")
letter("pool_ratio", "", "devices that read prompts for each that writes answers", r"n_{\mathrm{pre/dec}}")
letter("prompt_rate", "token/s", "prompt tokens a second, those found in a cache counted", r"R_{\mathrm{in}}")
letter("cache_rate", "B/s", "caches of prompts that are made in a second", r"W_{kv}")
letter("handover_time", "s", "time by which handing its cache over delays a request", r"T_{kv}", _ZERO)
letter("disaggregation_gain", "", "requests under a target with two pools, over those with one", r"G_{\mathrm{pd}}")
letter("disaggregation_bound", "", "gain of two pools that no prompt exceeds, however long", r"\bar G_{\mathrm{pd}}")

# Speculation: tokens are drafted, and checked in one step.
letter(
    "acceptance", "%", "share of the drafted tokens that are accepted, the ones before them being so", r"p_a", "share"
)
letter("drafted", "", "tokens drafted for each step", r"\gamma")
letter("draft_cost", "", "time of drafting a token over that of a step that checks", r"c_{\gamma}", _ZERO)
letter("step_tokens", "", "tokens that a step gives a sequence, on the mean", r"n_{\gamma}")
letter("speculation_gain", "", "tokens a second with speculation over those without", r"G_{\gamma}")
letter("speculation_batch", "", "batch beyond which speculation no longer pays", r"b_{\gamma}")

# Prefixes that are cached.
letter("hit_share", "%", "share of the prompt tokens that are found in a cache", r"h_{kv}", "share")
letter("whole_prompt_time", "s", "time of reading a prompt of which nothing is cached", r"P_0")
letter("computed_rate", "token/s", "prompt tokens that are computed in a second", r"R_{\mathrm{miss}}", _ZERO)

# Tails: a group waits for its slowest.
letter("mean_delay", "s", "mean delay of one device at a synchronisation", r"\bar d")
letter("delay_spread", "s", "standard deviation of a device's delay", r"\sigma_d", _ZERO)
letter("least_delay", "s", "shortest delay of a device at a synchronisation", r"d_{\min}", _ZERO)
letter("tail_exponent", "", "power by which long delays of a Pareto law become rare", r"\alpha_d")
letter("slowest_delay", "s", "delay of the slowest of a group, on the mean", r"d_{\max}")
letter("synchronisations", "", "times in a step that a group waits for its slowest", r"n_{\mathrm{sync}}")
letter("waiting_time", "s", "time of a step in which a group waits for its slowest", r"T_{\mathrm{sync}}", _ZERO)
letter("saved_waiting", "s", "time of a step that devices wait less", r"\Delta T_{\mathrm{sync}}", _ZERO)
letter("traded_bandwidth", "B/s", "memory bandwidth that gives the same step with less waiting", r"W'_{\mathrm{hbm}}")

# Failures, and the checkpoints against them.
letter("interruptions", "", "failures that stopped a run", r"n_{\mathrm{fail}}")
letter("run_time", "s", "time of a whole run, or of a count", r"T_{\mathrm{run}}")
letter("mtbf", "s", "mean time between failures of all devices together", "M")
letter("device_mtbf", "s", "mean time between failures of one device", "M_1")
letter("checkpoint_time", "s", "time that writing a checkpoint stops the work", r"\delta_c")
letter("restart_time", "s", "time from a failure until work goes on", "R_c", _ZERO)
letter("checkpoint_interval", "s", "work between two checkpoints", r"\tau_c^{\star}")
letter("lost_share", "%", "share of the time that checkpoints and failures take", r"\chi_{\mathrm{lost}}", "share")
letter("goodput", "%", "share of the time that is work which lasts", r"\eta_{\mathrm{good}}", "share")
letter(
    "near_failures", "%", "share of the failures that a nearby checkpoint survives", r"\phi_{\mathrm{near}}", "share"
)
letter("near_checkpoint_time", "s", "time that writing a checkpoint nearby stops the work", r"\delta_{\mathrm{near}}")
letter("near_checkpoint_interval", "s", "work between two checkpoints nearby", r"\tau_{\mathrm{near}}^{\star}")

# More devices for a token, or more copies of the model.
letter("way_time", "s", "time that each device beyond the first adds to a step", r"\beta")
letter("doubling_time", "s", "time that each doubling of the devices adds to a step", r"\beta_2")
letter("best_tp", "", "tensor-parallel ways at which a step is shortest", r"t^{\star}")
letter("least_token_time", "s", "time of a step at the best number of devices", r"T_{\mathrm{tok}}^{\star}")
letter("idle_tp", "", "tensor-parallel ways that are as slow as one device", r"t_1")
letter("scaling_efficiency", "%", "speed-up of a step over the devices that it takes", r"\eta_t", "share")
letter("best_replicas", "", "copies of a model at which a step is shortest", r"n_{\mathrm{rep}}^{\star}")
letter("replica_imbalance", "", "requests at the fullest copy of a model over the mean", r"\iota_{\mathrm{rep}}")

# The bill.
letter("million_cost", "$", "price of a million output tokens", r"c_{10^6}")
letter("least_million_cost", "$", "price of a million output tokens that no batch goes below", r"c_{10^6}^{\min}")
letter("token_energy", "J", "energy of an output token, every device at its thermal design power", r"e_{\mathrm{tok}}")
letter("day_tokens", "token", "output tokens of a day", r"D_{\mathrm{day}}")
letter("day_cost", "$", "price of a day", r"c_{\mathrm{day}}")

# The same of a step that reads a part of a prompt.
letter("mixed_tokens", "", "tokens that pass the blocks together while a prompt is read", r"n_T'")
letter("mixed_layer_tokens", "", "tokens that a layer of experts then works on", r"n_E^{\Sigma\prime}")
letter("mixed_visited", "", "experts that are then visited", r"E_v'", _ZERO)
letter("mixed_local", "", "experts of a device that are then visited", r"E_d'")
letter("mixed_rows", "", "tokens of an expert that is then visited", r"n_e'")
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

# What an engine adds to the work, and what it reserves.
letter("step_overhead", "s", "time an engine's host adds to a step", r"\tau_s", _ZERO)
letter("layer_overhead", "s", "time an engine adds to a step for each block", r"\tau_{\ell}", _ZERO)
letter("first_overhead", "s", "time an engine adds to a first token: parsing, scheduling, replying", r"\tau_1", _ZERO)
letter(
    "cache_share", "%", "share of a device's memory that an engine fills with weights and caches", r"\phi_c", "share"
)
letter("chunk_tokens", "", "tokens of prompts that one step reads at most", r"n_{\mathrm{chunk}}", whole=True)
letter("first_tokens", "", "steps whose tokens an engine gathers before it sends the first", r"n_1")

# How far to trust it.
letter("band_low", "", "measured over predicted, which nine of ten measurements exceed", r"\epsilon_{-}")
letter("band_high", "", "measured over predicted, which one of ten measurements exceeds", r"\epsilon_{+}")
letter("first_band_low", "", "the same of first tokens, low", r"\epsilon_{1-}")
letter("first_band_high", "", "the same of first tokens, high", r"\epsilon_{1+}")
letter("tpot_low", "s", "time per output token, low end of eight in ten", r"T_{\mathrm{out}}^{-}")
letter("tpot_high", "s", "time per output token, high end of eight in ten", r"T_{\mathrm{out}}^{+}")
letter("ttft_low", "s", "time to the first token, low end of eight in ten", r"T_1^{-}")
letter("ttft_high", "s", "time to the first token, high end of eight in ten", r"T_1^{+}")
letter("device_rate_low", "token/s", "output tokens a second of one device, low end of eight in ten", r"R_d^{-}")
letter("device_rate_high", "token/s", "output tokens a second of one device, high end of eight in ten", r"R_d^{+}")
letter("user_rate_low", "token/s", "tokens a second of one user, low end of eight in ten", r"R_u^{-}")
letter("user_rate_high", "token/s", "tokens a second of one user, high end of eight in ten", r"R_u^{+}")
letter("million_cost_low", "$", "price of a million output tokens, low end of eight in ten", r"c_{10^6}^{-}")
letter("million_cost_high", "$", "price of a million output tokens, high end of eight in ten", r"c_{10^6}^{+}")

letter("fleet_tokens", "token", "output tokens that a fleet writes in a time", r"D_{\mathrm{out}}")
letter("fleet_cost", "$", "price of a fleet for that time", r"c_{\mathrm{fleet}}")

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
