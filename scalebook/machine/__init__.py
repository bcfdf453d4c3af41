"""Machines: the roofline, what kernels reach, and collectives over two tiers of links."""
