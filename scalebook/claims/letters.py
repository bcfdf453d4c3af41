r"""Letters that only the claims of articles need, entered into the notation.

>>> from scalebook.language import NOTATION
>>> NOTATION["rack_memory"]
rack_memory (B): memory of a rack
"""

from scalebook.language.notation import letter

__all__ = []

_OF_RACK = r"_{\mathrm{rack}}"

letter("taper", "", "taper: bandwidth of the links into a network over that between its halves", r"\rho_{\mathrm{tap}}")
letter("rack_links", "B/s", "scale-up bandwidth of a rack", rf"W{_OF_RACK}")
letter("rack_memory", "B", "memory of a rack", rf"C{_OF_RACK}")
letter("rack_bandwidth", "B/s", "memory bandwidth of a rack", rf"B{_OF_RACK}")
letter("rack_flops", "FLOP/s", "peak arithmetic rate of a rack", rf"F{_OF_RACK}")
letter("next_capacity", "B", "memory capacity of the new device", "C'")
letter("capacity_ratio", "", "memory capacity of the new device over the old", r"r_C")
letter("link_ratio", "", "scale-up bandwidth over that of another link", r"r_W")
letter("core_rate", "FLOP", "operations per clock and core", r"q_{\mathrm{core}}")
letter("node_devices", "", "devices per node", r"n_{\mathrm{node}}", whole=True)
letter("domain_nodes", "", "nodes per scale-up domain", r"n_{\mathrm{up/node}}")
letter("corpus_bytes", "B", "text in the training corpus", r"S_{\mathrm{text}}")
letter("token_bytes", "B", "text bytes per token", r"s_{\mathrm{tok}}")
letter("active_share", "%", "active share of the parameters", r"\sigma_{\mathrm{act}}", "share")
letter(
    "copied_values",
    "",
    "saved values per block that tensor parallelism does not split",
    r"\kappa_c",
    "nonnegative",
)
letter(
    "kept_share",
    "%",
    "activations per tensor-parallel device relative to one device alone",
    r"\sigma_a",
    "share",
)
