r"""Letters that only the claims of articles need, entered into the notation.

>>> from scalebook.language import NOTATION
>>> NOTATION["rack_memory"]
rack_memory (B): memory of so many devices together
"""

from scalebook.language.notation import letter

__all__ = []

_OF_RACK = r"_{\mathrm{rack}}"

letter(
    "taper", "", "times that a network carries less between its halves than the links into it", r"\rho_{\mathrm{tap}}"
)
letter("rack_links", "B/s", "what the scale-up links of so many devices carry together", rf"W{_OF_RACK}")
letter("rack_memory", "B", "memory of so many devices together", rf"C{_OF_RACK}")
letter("rack_bandwidth", "B/s", "memory bandwidth of so many devices together", rf"B{_OF_RACK}")
letter("rack_flops", "FLOP/s", "peak of so many devices together", rf"F{_OF_RACK}")
letter("next_capacity", "B", "memory of the new device", "C'")
letter("capacity_ratio", "", "memory of a new device over that of an old one", r"r_C")
letter("link_ratio", "", "bandwidth of the scale-up network over that of another link", r"r_W")
letter("core_rate", "FLOP", "operations of one core in a clock", r"q_{\mathrm{core}}")
letter("node_devices", "", "devices in one node", r"n_{\mathrm{node}}", whole=True)
letter("domain_nodes", "", "nodes that a scale-up domain spans", r"n_{\mathrm{up/node}}")
letter("corpus_bytes", "B", "text that a model is trained on", r"S_{\mathrm{text}}")
letter("token_bytes", "B", "bytes of text in a token", r"s_{\mathrm{tok}}")
letter("active_share", "%", "share of the parameters that one token uses", r"\sigma_{\mathrm{act}}", "share")
letter(
    "copied_values",
    "",
    "values of those a block keeps that tensor parallelism does not divide",
    r"\kappa_c",
    "nonnegative",
)
letter(
    "kept_share",
    "%",
    "activations that a tensor-parallel device keeps, over those of a device alone",
    r"\sigma_a",
    "share",
)
