"""Machines: data sheets, rooflines, kernel and systolic-array efficiency, and collectives over two tiers of links."""
