"""The letters of serving: users, queues, engines, bills."""

from .notation import letter

__all__ = []

_ZERO = "nonnegative"

# What users ask for, and what they get.
letter("prompt", "", "tokens of a prompt", r"n_{\mathrm{in}}")
letter("output", "", "tokens of an answer", r"n_{\mathrm{out}}")
letter("users", "", "requests in the system: each user sends the next when the last has ended", "c")
letter("rate", "request/s", "requests that arrive in a second", r"\lambda", _ZERO)
letter("ttft", "s", "time to the first token", r"T_1")
letter("tpot", "s", "time per output token, the first not counted", r"T_{\mathrm{out}}")
letter("end_to_end", "s", "time from a request to its last token", r"T_{\mathrm{e2e}}")
letter("user_rate", "token/s", "tokens a second that one user sees after the first", r"R_u")
letter("device_rate", "token/s", "output tokens a second of one device", r"R_d")
letter("replicas", "", "copies of a model among which requests are divided", r"n_{\mathrm{rep}}")

# A decode step, linear in its batch: base_time + batch * added_time.
letter("base_time", "s", "time of a decode step beside what its sequences add: weights, launches, exchanges", r"\tau_0")
letter("added_time", "s", "time that one more sequence adds to a decode step", r"\alpha", _ZERO)
letter("prompt_time", "s", "time that reading one prompt takes of the device", "P", _ZERO)
letter("load", "%", "share of the time in which a server is busy", r"\rho", "share")

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
letter("fleet_tokens", "token", "output tokens that a fleet writes in a time", r"D_{\mathrm{out}}")
letter("fleet_cost", "$", "price of a fleet for that time", r"c_{\mathrm{fleet}}")
