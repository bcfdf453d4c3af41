"""Machines: data sheets, rooflines, what kernels and systolic arrays reach, collectives over two tiers of links."""
