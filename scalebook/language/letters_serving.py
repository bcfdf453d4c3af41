"""The letters of serving: users, queues, engines, bills."""

from .notation import letter

__all__ = []

_ZERO = "nonnegative"

# What users ask for, and what they get.
letter("prompt", "", "tokens of a prompt", r"n_{\mathrm{in}}")
letter("output", "", "tokens of an answer", r"n_{\mathrm{out}}")
letter("users", "", "requests in the system: each user sends the next when the last has ended", "c")
letter("rate", "request/s", "requests that arrive in a second", r"\lambda_r", _ZERO)
letter("ttft", "s", "time to the first token", r"T_1")
letter("tpot", "s", "time per output token, the first not counted", r"T_{\mathrm{out}}")
letter("end_to_end", "s", "time from a request to its last token", r"T_{\mathrm{e2e}}")
letter("user_rate", "token/s", "tokens a second that one user sees after the first", r"R_u")
letter("device_rate", "token/s", "output tokens a second of one device", r"R_d")
letter("replicas", "", "copies of a model that share the requests", r"n_{\mathrm{rep}}")

# A decode step, linear in its batch: base_time + batch * added_time.
letter("base_time", "s", "time of a decode step beside what its sequences add: weights, launches, exchanges", r"\tau_0")
letter("added_time", "s", "time that one more sequence adds to a decode step", r"\alpha", _ZERO)
letter("prompt_time", "s", "time that reading one prompt takes of the device", "P", _ZERO)
letter("load", "%", "share of the time in which a server is busy", r"\rho", "share")

# A step: what passes the blocks, and how it is split.
letter("step_tokens", "", "tokens that pass the blocks together", r"n_T")
letter("read_chunk", "", "prompt tokens that a step reads, of each prompt", r"n_c")
letter("past", "", "tokens of a prompt that were read, or found in a cache, before", r"n_p", _ZERO)
letter("prompts", "", "prompts that a step reads", r"b_p")
letter("attention_dp", "", "groups of devices that attend for sequences of their own and share the experts", r"n_a")
letter("device_batch", "", "sequences decoded by the devices that attend together, at once", r"b_d")
letter("expert_bits", "bit", "bits per weight of routed experts", r"\beta_e")
letter("result_bits", "bit", "bits of what a product writes and devices exchange", r"\beta_r")
letter("expert_peak", "FLOP/s", "peak of the products of experts", r"F_e")
letter("expert_efficiency", "%", "share of their peak that the products of experts reach", r"\eta_e", "share")

# Experts.
letter("layer_tokens", "", "tokens of all devices that a layer of experts works on at once", r"n_E^{\Sigma}")
letter("local_experts", "", "experts of a device that a step visits", r"E_d")
letter("expert_rows", "", "tokens of an expert that a step visits", r"n_e")
letter("assigned_tokens", "", "copies of tokens that a device's experts work on", r"n_{\mathrm{as}}")
letter("visited_devices", "", "devices that hold an expert of one token", r"n_v")
letter("fullest_share", "", "load of the fullest device over the mean", r"\phi")

# What the kernels of serving take besides data sheets.
letter("read_launch", "s", "time of attention to a cache before it reads", r"\tau_r")
letter("read_efficiency", "%", "share of the bandwidth at which attention reads a cache", r"\eta_r", "share")
letter("prompt_launch", "s", "time of attention over a prompt before it computes", r"\tau_p")
letter("prompt_efficiency", "%", "share of the bandwidth at which attention writes and reads a prompt", r"\eta_p", "share")
letter("routing_time_least", "s", "time to sort tokens by expert, however few", r"\tau_e")
letter("assigned_passes", "", "times that a token's copies pass through memory around the products of experts", "n_m")

# The parts of a step.
letter("weights_time", "s", "dense weights read in a step", r"T_w")
letter("products_time", "s", "what dense products take beyond reading their weights", r"T_F^{+}", _ZERO)
letter("cache_time", "s", "attention to caches", r"T_{kv}", _ZERO)
letter("reading_time", "s", "attention over prompts", r"T_{pp}", _ZERO)
letter("experts_time", "s", "products of routed experts, their weights read", r"T_E", _ZERO)
letter("routing_time", "s", "tokens sorted by expert, copied and summed", r"T_R", _ZERO)
letter("streams_time", "s", "norms, activations, and what else streams through memory", r"T_S", _ZERO)
letter("exchange_time", "s", "messages between devices", r"T_X", _ZERO)
letter("launches_time", "s", "launches of kernels", r"T_0", _ZERO)
letter("engine_time", "s", "time of the engine between kernels and steps", r"T_{\mathrm{eng}}", _ZERO)
letter("pass_time", "s", "time of a step of serving", r"T_{\mathrm{pass}}")
letter("step_overhead", "s", "time of the engine beside a step's kernels", r"\tau_s", _ZERO)
letter("layer_overhead", "s", "time of the engine beside the kernels of a block", r"\tau_l", _ZERO)

# Memory where a model serves.
letter("held_weights", "B", "weights on one device", r"M_w")
letter("token_cache", "B", "cache of one token on one device", r"m_{kv}")
letter("workspace", "B", "activations and work space of an engine on one device", r"M_a", _ZERO)
letter("cache_share", "%", "share of a device's memory that an engine uses", r"\eta_C", "share")
letter("cache_room", "B", "memory of one device that is left for caches", r"M_r")
letter("cached_tokens", "", "tokens in the cache of a sequence, mean over its answer", r"\bar n_{\mathrm{in}}")
letter("max_users", "", "users whose caches fit at once", r"c_{\max}", _ZERO)

# From a step to a service.
letter("chunks_of_prompt", "", "steps in which a prompt is read", r"n_k")
letter("mixed_time", "s", "time of a step that reads a part of a prompt beside the sequences that it decodes", r"T_{\mathrm{mix}}")
letter("first_overhead", "s", "time of the engine and its host beside a first token's steps", r"\tau_1", _ZERO)
letter("wait_time", "s", "time a request waits for the prompts before it", r"T_q", _ZERO)
letter("request_rate", "request/s", "requests that all devices finish in a second", r"X")
letter("output_cost", "$", "price of a million output tokens", r"c_{\mathrm{out}}")
