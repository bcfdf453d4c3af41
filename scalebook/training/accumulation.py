"""Gradient accumulation: what more micro-batches per step cost and save.

A token costs the same arithmetic however the batch is cut into micro-batches. More micro-batches mean more gradient
traffic, because each one adds to the gradients. They also mean less of everything that a step does only once.
"""

from scalebook.language import formula

__all__ = ["accumulation_share", "exchange_share_accumulated"]


@formula("exchange_share", "data-parallelism")
def exchange_share_accumulated(dp_exposed, microbatches, forward_time, input_gradient_time, weight_gradient_time):
    """Exposed time of a step's gradient sum, which happens once, over the compute time of all its micro-batches.

    >>> exchange_share_accumulated(dp_exposed="0.3 s", microbatches=30, forward_time="0.1 s",
    ...                            input_gradient_time="0.1 s", weight_gradient_time="0.05 s").__round__(3)
    0.04
    """
    return dp_exposed / (microbatches * (forward_time + input_gradient_time + weight_gradient_time))


@formula("accumulation_share", "kaplan2020 §2.1")
def accumulation_share(gradient_bits, batch, seq, peak_flops, matmul_efficiency, hbm_bandwidth, stream_efficiency):
    """Time to read and write all weight gradients in a micro-batch, over the time of its matrix products.

    Products take six FLOPs per parameter and token, so the parameters cancel. The result is an upper bound, because
    none of the traffic is assumed to hide under arithmetic. If several devices share a sequence (cp), `seq` is one
    device's part.

    >>> round(accumulation_share(gradient_bits=32, batch=1, seq=8192, peak_flops="1 PFLOP/s", matmul_efficiency=0.8,
    ...                          hbm_bandwidth="4 TB/s", stream_efficiency=0.8), 3)
    0.041
    """
    traffic = 2 * gradient_bits / 8 / (hbm_bandwidth * stream_efficiency)
    return traffic / (6 * batch * seq / (peak_flops * matmul_efficiency))
