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

# Queues: requests that wait for a server, and what it can take.
letter("tpot_target", "s", "longest time per output token that is asked for", r"T_{\mathrm{out}}^{\star}")
letter("capacity", "request/s", "most requests a second that keep to a target", r"\lambda^{\star}")
letter("headroom", "%", "share of the capacity that is still free", r"\chi_{\lambda}", "share")
letter("prompt_load", "%", "share of the time in which prompts are read", r"\rho_P", "share")
letter("queue_time", "s", "time a request waits until its prompt is read", r"T_q", _ZERO)
letter("prompts_beside", "", "prompts that can be read beside the steps of an answer", r"N_P^{\sigma}")
letter("prompts_ahead", "", "prompts of others that are read before one's own", r"N_P^{q}", _ZERO)
letter(
    "prompts_met", "%", "share of the prompts of others that are read while a sequence decodes", r"\sigma_P", "share"
)
letter("generations", "", "requests that each user of a benchmark sends", r"n_{\mathrm{gen}}")
letter(
    "response_time", "s", "time from a request to its answer where all that wait are served at once", r"T_{\mathrm{r}}"
)
letter("met_batch", "", "requests in the batch that a request is served in, on the mean", r"b_{\mathrm{met}}")
letter("half_price_batch", "", "batch at which a token costs twice the least", r"b_{1/2}")

# Disaggregation: prompts are read in one pool of devices, answers written in another.
letter("prefill_devices", "", "devices that read prompts", r"n_{\mathrm{pre}}")
letter("prefill_price", "$/h", "price of a device that reads prompts, for an hour", r"c_{\mathrm{pre}}")
letter("decode_price", "$/h", "price of a device that writes answers, for an hour", r"c_{\mathrm{dec}}")
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
letter(
    "slow_excess", "%", "time that the slowest device takes more than the others, over theirs", r"\epsilon_{s}", _ZERO
)
letter(
    "paced_speed", "%", "speed of devices that wait for their slowest, over that of even ones", r"\eta_{\max}", "share"
)
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

# Collectives that a host issues; blocks of a stage; what is run again.
letter("issue_time", "s", "time that the host takes to issue a collective", r"t_h")
letter("issued_time", "s", "time from one collective to the next, as the host issues them", r"T_h")
letter("unread_rerun", "%", "share that is run again of what the backward pass does not read", r"\chi_u", "share")
letter("stage_moe_blocks", "", "blocks with experts in a pipeline stage, of the one with the most", r"L_{E/i}", _ZERO)

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

# What an engine adds to the work, and what it reserves.
letter("step_overhead", "s", "time an engine's host adds to a step", r"\tau_s", _ZERO)
letter("layer_overhead", "s", "time an engine adds to a step for each block", r"\tau_{\ell}", _ZERO)
letter("first_overhead", "s", "time an engine adds to a first token: parsing, scheduling, replying", r"\tau_1", _ZERO)
letter(
    "cache_share", "%", "share of a device's memory that an engine fills with weights and caches", r"\phi_c", "share"
)
letter("chunk_tokens", "", "tokens of prompts that one step reads at most", r"n_{\mathrm{chunk}}", whole=True)
letter("first_tokens", "", "steps whose tokens an engine gathers before it sends the first", r"n_1")
letter(
    "prompt_layer_overhead", "s", "time an engine adds for each block while prompts are read", r"\tau_{\ell P}", _ZERO
)
letter("sequence_overhead", "s", "time an engine's host adds to a step for each sequence", r"\tau_b^{h}", _ZERO)
letter(
    "kernel_share",
    "%",
    "share of its kernels' rate that an engine reaches under full load",
    r"\eta_{\mathrm{load}}",
    "share",
)
letter("batch_limit", "", "sequences that an engine lets a group run at once at most", r"b_{\max}^{e}")
letter("free_share", "%", "share of the memory left free that an engine gives to caches", r"\phi_f", "share")
letter(
    "kept_output",
    "%",
    "share of an answer for which an engine keeps room from the start",
    r"\phi_{\mathrm{out}}",
    "share",
)
letter("hbm_reported", "B", "memory of a device as its driver reports it", r"M_{\mathrm{rep}}")
letter(
    "head_efficiency", "%", "share of the vector peak that attention of single query heads reaches", r"\eta_h", "share"
)
letter("shared_heads", "", "query heads of a key-value head that read its cache together", r"g_h")
letter("readers", "", "devices that read at once, each a part of every matrix", r"n_{\mathrm{read}}")
letter("turns", "", "times that a token passes from one device to the next", r"n_{\mathrm{turn}}", _ZERO)
letter("turn_time", "s", "time in which a device hands a token over to the next", r"\tau_{\mathrm{turn}}", _ZERO)
letter("load_rate", "B/s", "bytes a second that the cores of a device ask its memory for", r"W_{\mathrm{load}}")
letter("heads_time", "s", "time of attention in which each query head reads by itself", r"T_{\mathrm{head}}")
letter("own_sum_time", "s", "time that an engine's own sums take beyond those of the library", r"T_{\Sigma}^{e}", _ZERO)
letter(
    "own_sum_rate", "B/s", "bytes over the time that an engine's own sums take beyond the library's", r"W_{\Sigma}^{e}"
)

# Requests that are all there at once.
letter("requests", "", "requests that are there at once", r"n_{\mathrm{req}}")
letter("full_batch", "", "sequences of a group at once while requests wait", r"b_{\mathrm{full}}")
letter("whole_generations", "", "times that a group is filled with requests", r"n_{\mathrm{whole}}", _ZERO)
letter("last_batch", "", "requests of a group in its last generation", r"b_{\mathrm{last}}", _ZERO)
letter("full_time", "s", "time of a step in which a group is full", r"T_{\mathrm{full}}")
letter("last_time", "s", "time of a step of the last generation", r"T_{\mathrm{end}}", _ZERO)
letter("makespan", "s", "time until all requests are answered", r"T_{\mathrm{all}}")
letter("tpot_p99", "s", "99th percentile of the time per output token", r"T_{\mathrm{out}}^{99}")
letter("tpot_tail", "", "99th percentile of the time per output token over its mean", r"r_{99}")
letter("wait_steps", "", "mean steps until an engine looks for requests", r"n_{\mathrm{wait}}", _ZERO)

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

# A new generation of devices, beside the old.
letter("next_bandwidth", "B/s", "memory bandwidth of the new device", r"B'")
letter("next_flops", "FLOP/s", "peak of the new device", r"F'")
letter("bandwidth_ratio", "", "bandwidth of the new device over that of the old", r"r_B")
letter("flops_ratio", "", "peak of the new device over that of the old", r"r_F")
letter("reading_share", "%", "share of a step that reads weights, caches, experts and streams", r"\sigma_B", "share")
letter("computing_share", "%", "share of a step that products take beyond reading", r"\sigma_F", "share")
letter("generation_gain", "", "time of a step on the old device over that on the new", r"r_{\mathrm{step}}")

# Sums over the devices that share a model, by kernels that engines bring along.
letter("sum_launch", "s", "time to start an engine's own sum over devices", r"\tau_{\Sigma}", _ZERO)
letter("sum_share", "", "time to start the sum of one engine over the median of engines", r"\chi_{\Sigma}")
letter("sum_peer", "s", "time that each further device adds to an engine's own sum", r"\tau_{\Sigma+}", _ZERO)
letter("sum_reach", "%", "rate of an engine's own sum over that of the links", r"\eta_{\Sigma}", "share")
letter("sum_rate", "B/s", "most that an engine's own sum has on its way", r"W_{\Sigma}")
letter("two_shot_bytes", "B", "bytes, times devices, from which an engine sums in two shots", r"M_{\Sigma 2}")
letter("library_bytes", "B", "bytes from which an engine leaves the sum to NCCL", r"M_{\Sigma\to}")
letter("sum_latency", "s", "wait for one neighbour in an engine's own sum over devices", r"\lambda_{\Sigma}^{1}", _ZERO)
