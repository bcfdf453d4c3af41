"""Arithmetic that data sheets leave to their readers: totals of racks, links in both directions, device over device."""

from scalebook.language import formula
from scalebook.language.notation import letters_of

__all__ = [
    "active_share", "capacity_ratio", "corpus_bytes", "domain_nodes", "kept_share", "link_ratio",
    "peak_of_cores", "rack_bandwidth", "rack_flops", "rack_hbm", "rack_links", "rack_unified",
]  # fmt: skip

letters_of(__package__)

# Racks and platforms


@formula("rack_links", "nvidia-h100-whitepaper section 4.7")
def rack_links(devices, directions, scaleup_bandwidth, taper):
    """Fabric bandwidth as data sheets print it: all links, often in both directions, over the taper between nodes.

    >>> rack_links(devices=256, directions=1, scaleup_bandwidth="450 GB/s", taper=2) / 1e12
    57.6
    """
    return devices * directions * scaleup_bandwidth / taper


@formula("rack_memory", "nvidia-gb200")
def rack_hbm(devices, hbm_capacity):
    """Memory of a rack: the devices' fast memory alone.

    >>> rack_hbm(devices=72, hbm_capacity="186 GB") / 1e12
    13.392
    """
    return devices * hbm_capacity


@formula("rack_memory", "nvidia-gb200")
def rack_unified(devices, hbm_capacity, host_capacity):
    """Memory of a rack, with the far slower memory of the host processors added; devices can address both.

    >>> rack_unified(devices=72, hbm_capacity="186 GB", host_capacity="240 GB") / 1e12
    30.672
    """
    return devices * (hbm_capacity + host_capacity)


@formula("rack_bandwidth", "amd-cdna3-whitepaper")
def rack_bandwidth(devices, hbm_bandwidth):
    """Memory bandwidth of a rack, if every device reads its own memory.

    >>> rack_bandwidth(devices=8, hbm_bandwidth="5.325 TB/s") / 1e12
    42.6
    """
    return devices * hbm_bandwidth


@formula("rack_flops", "nvidia-gb200")
def rack_flops(devices, peak_flops):
    """Peak of a rack: the sum of its devices' peaks, at one precision and for dense matrices.

    >>> rack_flops(devices=72, peak_flops="10 PFLOP/s") / 1e15
    720.0
    """
    return devices * peak_flops


@formula("domain_nodes", "nvidia-gb200")
def domain_nodes(scaleup_size, node_devices):
    """Nodes in a scale-up domain, whose devices are linked as if they were in one node.

    >>> domain_nodes(scaleup_size=72, node_devices=4)
    18.0
    """
    return scaleup_size / node_devices


# One device


@formula("capacity_ratio", "nvidia-h200")
def capacity_ratio(next_capacity, hbm_capacity):
    """Ratio of two devices' memory capacities, as data sheets state them.

    >>> capacity_ratio(next_capacity="141 GB", hbm_capacity="80 GB")
    1.7625
    """
    return next_capacity / hbm_capacity


@formula("link_ratio", "nvidia-h100-whitepaper section 4.7")
def link_ratio(scaleup_bandwidth, link_bandwidth):
    """Ratio of two link bandwidths.  Count both in one direction, or both in two.

    >>> link_ratio(scaleup_bandwidth="450 GB/s", link_bandwidth="64 GB/s")
    7.03125
    """
    return scaleup_bandwidth / link_bandwidth


@formula("peak_flops", "nvidia-h100-whitepaper section 4.1", "amd-cdna3-whitepaper table 1")
def peak_of_cores(cores, core_rate, clock):
    """Peak of a device from its cores: each does `core_rate` operations per clock; a multiply and an add are two.

    >>> round(peak_of_cores(cores=132, core_rate="4096 FLOP", clock="1.83 G/s") / 1e12, 2)
    989.43
    """
    return cores * core_rate * clock


# Models


@formula("active_share", "du2021")
def active_share(active_params, params):
    """Share of a mixture-of-experts model's parameters that one token uses.

    >>> active_share(active_params=96.6e9, params=1.2e12)
    0.0805
    """
    return active_params / params


@formula("kept_share", "korthikanti2022 §4.2")
def kept_share(copied_values, kept_values, tp):
    """Share of a block's stored activations that each tensor-parallel device keeps.

    Activations inside attention and the feed-forward layer are divided. The layer's inputs, norms and dropouts stay on
    every device, unless the sequence is split too.

    >>> round(kept_share(copied_values=5, kept_values=17, tp=8), 4)
    0.3824
    """
    return (copied_values + (kept_values - copied_values) / tp) / kept_values


@formula("corpus_bytes", "llama3-2024")
def corpus_bytes(train_tokens, token_bytes):
    """Bytes of text that a model is trained on.  The raw text, before filtering, is larger.

    >>> corpus_bytes(train_tokens="15.6e12 token", token_bytes="4 B") / 1e12
    62.4
    """
    return train_tokens * token_bytes
