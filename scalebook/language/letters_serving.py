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
