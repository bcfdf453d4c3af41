"""What articles add up: racks and platforms, both directions of a link, one device over another.

Each is a line of arithmetic that a data sheet leaves to its reader.

>>> from scalebook.tables import accelerators
>>> rack_links(accelerators.gb200, devices=72, directions=2, taper=1) / 1e12
129.6
"""

from scalebook.language import formula

from . import letters  # noqa: F401  (first: it enters the letters)

__all__ = [
    "active_share", "capacity_ratio", "corpus_bytes", "domain_nodes", "kept_share", "link_ratio",
    "peak_of_cores", "rack_bandwidth", "rack_flops", "rack_hbm", "rack_links", "rack_unified",
]  # fmt: skip

# Racks and platforms


@formula("rack_links", "nvidia-h100-whitepaper section 4.7")
def rack_links(devices, directions, scaleup_bandwidth, taper):
    """What data sheets print as a fabric's bandwidth: every link, often in both directions, over what the switches
    between nodes carry less. What crosses the middle of the fabric is half of one direction's.

    >>> rack_links(devices=256, directions=1, scaleup_bandwidth="450 GB/s", taper=2) / 1e12
    57.6
    """
    return devices * directions * scaleup_bandwidth / taper


@formula("rack_memory", "nvidia-gb200")
def rack_hbm(devices, hbm_capacity):
    """The fast memory alone.

    >>> rack_hbm(devices=72, hbm_capacity="186 GB") / 1e12
    13.392
    """
    return devices * hbm_capacity


@formula("rack_memory", "nvidia-gb200")
def rack_unified(devices, hbm_capacity, host_capacity):
    """The fast memory and that of the processors beside the devices, which can be addressed alike and is far slower.

    >>> rack_unified(devices=72, hbm_capacity="186 GB", host_capacity="240 GB") / 1e12
    30.672
    """
    return devices * (hbm_capacity + host_capacity)


@formula("rack_bandwidth", "amd-cdna3-whitepaper")
def rack_bandwidth(devices, hbm_bandwidth):
    """Every device reads its own memory.

    >>> rack_bandwidth(devices=8, hbm_bandwidth="5.325 TB/s") / 1e12
    42.6
    """
    return devices * hbm_bandwidth


@formula("rack_flops", "nvidia-gb200")
def rack_flops(devices, peak_flops):
    """The peaks added up, of one precision and of dense matrices.

    >>> rack_flops(devices=72, peak_flops="10 PFLOP/s") / 1e15
    720.0
    """
    return devices * peak_flops


@formula("domain_nodes", "nvidia-gb200")
def domain_nodes(scaleup_size, node_devices):
    """Nodes whose devices are linked as if they were one.

    >>> domain_nodes(scaleup_size=72, node_devices=4)
    18.0
    """
    return scaleup_size / node_devices


# One device


@formula("capacity_ratio", "nvidia-h200")
def capacity_ratio(next_capacity, hbm_capacity):
    """What data sheets say of the size of two memories.

    >>> capacity_ratio(next_capacity="141 GB", hbm_capacity="80 GB")
    1.7625
    """
    return next_capacity / hbm_capacity


@formula("link_ratio", "nvidia-h100-whitepaper section 4.7")
def link_ratio(scaleup_bandwidth, link_bandwidth):
    """Both in one direction, or both in both.

    >>> link_ratio(scaleup_bandwidth="450 GB/s", link_bandwidth="64 GB/s")
    7.03125
    """
    return scaleup_bandwidth / link_bandwidth


@formula("peak_flops", "nvidia-h100-whitepaper section 4.1", "amd-cdna3-whitepaper table 1")
def peak_of_cores(cores, core_rate, clock):
    """Every core does so many operations in every clock; a multiply and an add are two.

    >>> peak_of_cores(cores=132, core_rate="4096 FLOP", clock="1.83 G/s") / 1e12
    989.43
    """
    return cores * core_rate * clock


# Models


@formula("active_share", "du2021")
def active_share(active_params, params):
    """What of a mixture of experts one token's arithmetic goes through.

    >>> active_share(active_params=96.6e9, params=1.2e12)
    0.0805
    """
    return active_params / params


@formula("kept_share", "korthikanti2022 §4.2")
def kept_share(copied_values, kept_values, tp):
    """Tensor parallelism divides what is kept inside attention and the feed-forward layer; what is kept of the layer's
    inputs, norms and dropouts is on every device, unless the sequence is split there too.

    >>> round(kept_share(copied_values=5, kept_values=17, tp=8), 4)
    0.3824
    """
    return (copied_values + (kept_values - copied_values) / tp) / kept_values


@formula("corpus_bytes", "llama3-2024")
def corpus_bytes(train_tokens, token_bytes):
    """Text as it is read; what it was filtered from is larger.

    >>> corpus_bytes(train_tokens="15.6e12 token", token_bytes="4 B") / 1e12
    62.4
    """
    return train_tokens * token_bytes
