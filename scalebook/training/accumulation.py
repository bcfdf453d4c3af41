"""Gradient accumulation: what a step of many micro-batches costs and saves beside one of few.

The arithmetic of a token is the same however micro-batches are cut.  What grows with their number is the traffic of
gradients, which each adds to; what shrinks is all that a step does once.

>>> round(exchange_share_accumulated(dp_exposed="0.28 s", microbatches=32, forward_time="93 ms",
...                                  input_gradient_time="90 ms", weight_gradient_time="61 ms"), 3)
0.036
"""

from scalebook.language import formula

__all__ = ["accumulation_share", "exchange_share_accumulated"]


@formula("exchange_share", "data-parallelism")
def exchange_share_accumulated(dp_exposed, microbatches, forward_time, input_gradient_time, weight_gradient_time):
    """What a step waits for its sum of gradients, once, over what a stage computes in all of its micro-batches.

    >>> exchange_share_accumulated(dp_exposed="0.3 s", microbatches=30, forward_time="0.1 s",
    ...                            input_gradient_time="0.1 s", weight_gradient_time="0.05 s").__round__(3)
    0.04
    """
    return dp_exposed / (microbatches * (forward_time + input_gradient_time + weight_gradient_time))


@formula("accumulation_share", "kaplan2020 §2.1")
def accumulation_share(gradient_bits, batch, seq, peak_flops, matmul_efficiency, hbm_bandwidth, stream_efficiency):
    """Each micro-batch reads and writes all gradients of weights; products are six operations a parameter and token.

    The parameters cancel.  Nothing of the traffic is taken to hide under arithmetic, so it is the most that it costs;
    where several devices share a sequence (cp), each has its part of `seq`.

    >>> round(accumulation_share(gradient_bits=32, batch=1, seq=8192, peak_flops="1 PFLOP/s", matmul_efficiency=0.8,
    ...                          hbm_bandwidth="4 TB/s", stream_efficiency=0.8), 3)
    0.041
    """
    traffic = 2 * gradient_bits / 8 / (hbm_bandwidth * stream_efficiency)
    return traffic / (6 * batch * seq / (peak_flops * matmul_efficiency))
