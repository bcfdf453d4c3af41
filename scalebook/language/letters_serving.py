"""The letters of serving: users, queues, engines, bills."""

from .notation import letter

__all__ = []

_ZERO = "nonnegative"

# Requests, and the latency and speed that users see.
letter("prompt", "", "tokens of a prompt", r"n_P")
letter("output", "", "tokens of an answer", r"n_{\mathrm{out}}")
letter("users", "", "concurrent requests: each user sends the next when the last has ended", r"n_u")
letter("rate", "request/s", "arrival rate of requests", r"\lambda_r", _ZERO)
letter("ttft", "s", "time to the first token", r"T_1")
letter("tpot", "s", "time per output token, after the first", r"T_{\mathrm{out}}")
letter("end_to_end", "s", "end-to-end latency of a request", r"T_{\mathrm{e2e}}")
letter("user_rate", "token/s", "output rate that one user sees", r"R_u")
letter("device_rate", "token/s", "output rate per device", r"R_d")
letter("replicas", "", "copies of the model (replicas)", r"n_{\mathrm{rep}}")

# A decode step, linear in its batch: base_time + batch * added_time.
letter("base_time", "s", "fixed time of a decode step: weights, launches, exchanges", r"\tau_b")
letter("added_time", "s", "time that each sequence adds to a decode step", r"\alpha", _ZERO)
letter("prompt_time", "s", "time to read one prompt", r"t_P", _ZERO)
letter("load", "%", "share of the time in which a server is busy", r"\rho_s", "share")

# Queues and capacity.
letter("tpot_target", "s", "target for the time per output token", r"T_{\mathrm{out}}^{\star}")
letter("capacity", "request/s", "highest request rate that meets the target", r"\lambda^{\star}")
letter("headroom", "%", "unused share of the capacity", r"\chi_{\lambda}", "share")
letter("prompt_load", "%", "share of the time spent on prompts", r"\rho_P", "share")
letter("queue_time", "s", "queueing time of a request before its prompt is read", r"T_q", _ZERO)
letter("prompts_beside", "", "prompts that can be read during one answer", r"N_P^{\sigma}")
letter("prompts_ahead", "", "other prompts read before one's own", r"N_P^{q}", _ZERO)
letter("prompts_met", "%", "share of other prompts read while a sequence decodes", r"\sigma_P", "share")
letter("generations", "", "requests per user of a benchmark", r"n_{\mathrm{gen}}")
letter("response_time", "s", "response time of a request with dynamic batching", r"T_{\mathrm{r}}")
letter("met_batch", "", "mean size of the batch that serves a request", r"b_{\mathrm{met}}")
letter("half_price_batch", "", "batch at which a token costs twice the minimum", r"b_{1/2}")

# Disaggregation: prefill in one pool of devices, decoding in another.
letter("prefill_devices", "", "prefill devices", r"n_{\mathrm{pre}}")
letter("prefill_price", "$/h", "hourly price of a prefill device", r"c_{\mathrm{pre}}")
letter("decode_price", "$/h", "hourly price of a decode device", r"c_{\mathrm{dec}}")
letter("decode_devices", "", "decode devices", r"n_{\mathrm{dec}}")
letter("pool_ratio", "", "prefill devices per decode device", r"n_{\mathrm{pre/dec}}")
letter("prompt_rate", "token/s", "rate of prompt tokens, cache hits included", r"R_{\mathrm{in}}")
letter("cache_rate", "B/s", "rate at which prefill produces cache", r"W_{kv}")
letter("handover_time", "s", "delay of a request by its cache transfer", r"T_{kv}", _ZERO)
letter("disaggregation_gain", "", "request rate of two pools over one pool, under a target", r"G_{\mathrm{pd}}")
letter("disaggregation_bound", "", "upper bound of the gain from two pools", r"\bar G_{\mathrm{pd}}")

# Speculative decoding: drafted tokens are checked in one step.
letter("acceptance", "%", "acceptance probability of a drafted token", r"p_a", "share")
letter("drafted", "", "drafted tokens per step", r"\gamma")
letter("draft_cost", "", "time to draft a token over the time of a checking step", r"c_{\gamma}", _ZERO)
letter("step_tokens", "", "mean tokens per step and sequence", r"n_{\gamma}")
letter("speculation_gain", "", "speedup from speculative decoding", r"G_{\gamma}")
letter("speculation_batch", "", "batch above which speculation no longer pays", r"b_{\gamma}")

# Prefix caching.
letter("hit_share", "%", "cache hit rate of prompt tokens", r"h_{kv}", "share")
letter("whole_prompt_time", "s", "time to read a prompt without cache hits", r"P_0")
letter("computed_rate", "token/s", "rate of computed prompt tokens, cache hits excluded", r"R_{\mathrm{miss}}", _ZERO)

# Stragglers: a group waits for its slowest device.
letter("mean_delay", "s", "mean delay of a device per synchronisation", r"\bar d")
letter("delay_spread", "s", "standard deviation of a device's delay", r"\sigma_d", _ZERO)
letter("least_delay", "s", "minimum delay of a device per synchronisation", r"d_{\min}", _ZERO)
letter("tail_exponent", "", "tail exponent of a Pareto law of delays", r"\alpha_d")
letter("slowest_delay", "s", "mean delay of the slowest device in a group", r"d_{\max}")
letter("synchronisations", "", "synchronisations per step", r"n_{\mathrm{sync}}")
letter("waiting_time", "s", "time per step waiting for the slowest device", r"T_{\mathrm{sync}}", _ZERO)
letter("saved_waiting", "s", "waiting time saved per step", r"\Delta T_{\mathrm{sync}}", _ZERO)
letter("traded_bandwidth", "B/s", "memory bandwidth that gives the same step with less waiting", r"W'_{\mathrm{hbm}}")

# Failures and checkpoints.
letter("interruptions", "", "failures that interrupt a run", r"n_{\mathrm{fail}}")
letter("run_time", "s", "duration of a run or a rental", r"T_{\mathrm{run}}")
letter("mtbf", "s", "mean time between failures of all devices together", "M")
letter("slow_excess", "%", "extra time of the slowest device relative to the others", r"\epsilon_{s}", _ZERO)
letter(
    "paced_speed", "%", "speed of devices that wait for the slowest, relative to equal devices", r"\eta_{\max}", "share"
)
letter("device_mtbf", "s", "mean time between failures of one device", "M_1")
letter("checkpoint_time", "s", "pause of training per checkpoint", r"\delta_c")
letter("restart_time", "s", "time to restart after a failure", "R_c", _ZERO)
letter("checkpoint_interval", "s", "working time between two checkpoints", r"\tau_c^{\star}")
letter("lost_share", "%", "share of the time lost to checkpoints and failures", r"\chi_{\mathrm{lost}}", "share")
letter("goodput", "%", "goodput: share of the time spent on work that lasts", r"\eta_{\mathrm{good}}", "share")
letter("near_failures", "%", "share of failures that a nearby checkpoint survives", r"\phi_{\mathrm{near}}", "share")
letter("near_checkpoint_time", "s", "pause of training per nearby checkpoint", r"\delta_{\mathrm{near}}")
letter("near_checkpoint_interval", "s", "working time between two nearby checkpoints", r"\tau_{\mathrm{near}}^{\star}")

# Collectives issued by a host; recomputation; expert blocks of a stage.
letter("issue_time", "s", "host time to issue a collective", r"t_h")
letter("issued_time", "s", "time per collective as the host issues them", r"T_h")
letter("unread_rerun", "%", "share of unneeded results that recomputation repeats", r"\chi_u", "share")
letter("stage_moe_blocks", "", "blocks with experts in the stage that has the most", r"L_{E/i}", _ZERO)

# Scaling up (more devices per token) or out (more replicas).
letter("way_time", "s", "time that each further device adds to a step", r"\beta")
letter("doubling_time", "s", "time that doubling the devices adds to a step", r"\beta_2")
letter("best_tp", "", "tensor-parallel size with the shortest step", r"t^{\star}")
letter("least_token_time", "s", "shortest step time over all tensor-parallel sizes", r"T_{\mathrm{tok}}^{\star}")
letter("idle_tp", "", "tensor-parallel size that is as slow as one device", r"t_1")
letter("scaling_efficiency", "%", "speedup over the number of devices", r"\eta_t", "share")
letter("best_replicas", "", "replicas with the shortest step", r"n_{\mathrm{rep}}^{\star}")
letter("replica_imbalance", "", "requests at the fullest replica over the mean", r"\iota_{\mathrm{rep}}")

# The bill.
letter("million_cost", "$", "cost of a million output tokens", r"c_{10^6}")
letter("least_million_cost", "$", "lowest cost of a million output tokens", r"c_{10^6}^{\min}")
letter("token_energy", "J", "energy per output token at thermal design power", r"e_{\mathrm{tok}}")
letter("day_tokens", "token", "output tokens per day", r"D_{\mathrm{day}}")
letter("day_cost", "$", "cost per day", r"c_{\mathrm{day}}")

# Engines: host overheads and reserved memory.
letter("step_overhead", "s", "engine's host time per step", r"\tau_s", _ZERO)
letter("layer_overhead", "s", "engine's host time per step and block", r"\tau_{\ell}", _ZERO)
letter("first_overhead", "s", "engine's time before the first token: parsing, scheduling, replying", r"\tau_1", _ZERO)
letter("cache_share", "%", "share of device memory for weights and caches", r"\phi_c", "share")
letter("chunk_tokens", "", "most prompt tokens read per step", r"n_{\mathrm{chunk}}", whole=True)
letter("first_tokens", "", "steps whose tokens are gathered before the first is sent", r"n_1")
letter("prompt_layer_overhead", "s", "engine's time per block while prompts are read", r"\tau_{\ell P}", _ZERO)
letter("sequence_overhead", "s", "engine's host time per step and sequence", r"\tau_b^{h}", _ZERO)
letter(
    "kernel_share",
    "%",
    "share of the kernels' rate reached under full load",
    r"\eta_{\mathrm{load}}",
    "share",
)
letter("batch_limit", "", "most sequences that run at once in a group", r"b_{\max}^{e}")
letter("free_share", "%", "share of the free memory that goes to caches", r"\phi_f", "share")
letter(
    "kept_output",
    "%",
    "share of an answer for which cache is reserved at the start",
    r"\phi_{\mathrm{out}}",
    "share",
)
letter("hbm_reported", "B", "device memory that the driver reports", r"M_{\mathrm{rep}}")
letter("head_efficiency", "%", "share of the vector peak in attention of single query heads", r"\eta_h", "share")
letter("shared_heads", "", "query heads that share one cache read", r"g_h")
letter("readers", "", "devices that read weights in parallel", r"n_{\mathrm{read}}")
letter("turns", "", "hand-overs of a token between devices", r"n_{\mathrm{turn}}", _ZERO)
letter("turn_time", "s", "time of one hand-over between devices", r"\tau_{\mathrm{turn}}", _ZERO)
letter("load_rate", "B/s", "highest rate at which the cores can load from memory", r"W_{\mathrm{load}}")
letter("heads_time", "s", "time of attention if each query head reads by itself", r"T_{\mathrm{head}}")
letter("own_sum_time", "s", "extra time of an engine's own all-reduces over the library's", r"T_{\Sigma}^{e}", _ZERO)
letter("own_sum_rate", "B/s", "bytes over the extra time of an engine's own all-reduces", r"W_{\Sigma}^{e}")

# Offline batches: all requests arrive at once.
letter("requests", "", "requests sent at once", r"n_{\mathrm{req}}")
letter("full_batch", "", "sequences per group while requests wait", r"b_{\mathrm{full}}")
letter("whole_generations", "", "full batches of requests per group", r"n_{\mathrm{whole}}", _ZERO)
letter("last_batch", "", "requests in a group's last batch", r"b_{\mathrm{last}}", _ZERO)
letter("full_time", "s", "step time with a full batch", r"T_{\mathrm{full}}")
letter("last_time", "s", "step time of the last batch", r"T_{\mathrm{end}}", _ZERO)
letter("makespan", "s", "makespan: time until all requests are answered", r"T_{\mathrm{all}}")
letter("tpot_p99", "s", "99th percentile of the time per output token", r"T_{\mathrm{out}}^{99}")
letter("tpot_tail", "", "99th percentile over the mean time per output token", r"r_{99}")
letter("wait_steps", "", "mean steps before an engine looks for new requests", r"n_{\mathrm{wait}}", _ZERO)

# Ends of prediction intervals.
letter("band_low", "", "10th percentile of measured over predicted time per output token", r"\epsilon_{-}")
letter("band_high", "", "90th percentile of measured over predicted time per output token", r"\epsilon_{+}")
letter("first_band_low", "", "10th percentile of measured over predicted time to first token", r"\epsilon_{1-}")
letter("first_band_high", "", "90th percentile of measured over predicted time to first token", r"\epsilon_{1+}")
letter("tpot_low", "s", "time per output token, low end of the 80 % interval", r"T_{\mathrm{out}}^{-}")
letter("tpot_high", "s", "time per output token, high end of the 80 % interval", r"T_{\mathrm{out}}^{+}")
letter("ttft_low", "s", "time to the first token, low end of the 80 % interval", r"T_1^{-}")
letter("ttft_high", "s", "time to the first token, high end of the 80 % interval", r"T_1^{+}")
letter("device_rate_low", "token/s", "output rate per device, low end of the 80 % interval", r"R_d^{-}")
letter("device_rate_high", "token/s", "output rate per device, high end of the 80 % interval", r"R_d^{+}")
letter("user_rate_low", "token/s", "output rate that one user sees, low end of the 80 % interval", r"R_u^{-}")
letter("user_rate_high", "token/s", "output rate that one user sees, high end of the 80 % interval", r"R_u^{+}")
letter("million_cost_low", "$", "cost of a million output tokens, low end of the 80 % interval", r"c_{10^6}^{-}")
letter("million_cost_high", "$", "cost of a million output tokens, high end of the 80 % interval", r"c_{10^6}^{+}")

letter("fleet_tokens", "token", "output tokens of a fleet", r"D_{\mathrm{out}}")
letter("fleet_cost", "$", "cost of renting a fleet", r"c_{\mathrm{fleet}}")

# A new generation of devices against the old.
letter("next_bandwidth", "B/s", "memory bandwidth of the new device", r"B'")
letter("next_flops", "FLOP/s", "peak arithmetic rate of the new device", r"F'")
letter("bandwidth_ratio", "", "memory bandwidth of the new device over the old", r"r_B")
letter("flops_ratio", "", "peak arithmetic rate of the new device over the old", r"r_F")
letter("reading_share", "%", "share of a step spent on memory", r"\sigma_B", "share")
letter("computing_share", "%", "share of a step spent on arithmetic beyond reading", r"\sigma_F", "share")
letter("generation_gain", "", "speedup of a step on the new device", r"r_{\mathrm{step}}")

# All-reduces by an engine's own kernels.
letter("sum_launch", "s", "launch time of an engine's own all-reduce", r"\tau_{\Sigma}", _ZERO)
letter("sum_share", "", "launch time of an engine's own all-reduce over the engines' median", r"\chi_{\Sigma}")
letter("sum_peer", "s", "time per further device in an engine's own all-reduce", r"\tau_{\Sigma+}", _ZERO)
letter(
    "sum_reach", "%", "share of the link bandwidth that an engine's own all-reduce reaches", r"\eta_{\Sigma}", "share"
)
letter("sum_rate", "B/s", "rate limit of an engine's own all-reduce", r"W_{\Sigma}")
letter(
    "two_shot_bytes", "B", "bytes times devices at which an engine's own all-reduce takes two shots", r"M_{\Sigma 2}"
)
letter("library_bytes", "B", "bytes at which an engine leaves all-reduces to NCCL", r"M_{\Sigma\to}")
letter("sum_latency", "s", "hop latency of an engine's own all-reduce", r"\lambda_{\Sigma}^{1}", _ZERO)
