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
