"""All-reduces of serving engines: one-shot or two-shot over the links, and NCCL for large messages."""

from sympy import And, Ge, Gt, Min, Piecewise

from scalebook.language import formula, same
from scalebook.machine.collective_rates import FABRIC
from scalebook.machine.collective_schedules import one_shot_all_reduce, two_shot_all_reduce
from scalebook.machine.collectives import all_reduce

__all__ = ["engine_all_reduce", "sum_rate_of_links", "sum_reach_near"]


sum_reach_near = same(
    "sum_reach_near", "sum_reach", "near_efficiency", "vllm-custom-all-reduce",
    "Default link efficiency of an engine's own all-reduce: that of collectives.",
)  # fmt: skip


sum_rate_of_links = same(
    "sum_rate_of_links", "sum_rate", "scaleup_bandwidth", "vllm-custom-all-reduce",
    "Default rate limit of an engine's own all-reduce: the bandwidth of the links.",
)  # fmt: skip


def _is_left_to_library(collective_bytes, library_bytes):
    return Ge(collective_bytes, library_bytes)


def _takes_two_shots(collective_bytes, ways, two_shot_bytes):
    """Return the condition for two shots; a pair of devices always takes one, which moves as many bytes."""
    return And(Gt(ways, 2), Ge(collective_bytes * ways, two_shot_bytes))


@formula(
    "collective_time", "vllm-custom-all-reduce", "trtllm-all-reduce", given=[sum_reach_near, sum_rate_of_links, *FABRIC]
)
def engine_all_reduce(
    collective_bytes, ways, near_ways, sum_launch, sum_share, sum_peer, sum_reach, sum_rate, two_shot_bytes,
    library_bytes, mesh_peers, torus_neighbours, scaleup_bandwidth, near_efficiency, switch_efficiency, near_latency,
    scaleout_bandwidth, far_efficiency, far_latency, collective_launch, chunk_time,
):  # fmt: skip
    """Time of an engine's own all-reduce in one or two shots; large messages go to NCCL (sizes: libraries.toml).

    >>> from scalebook.tables import accelerators
    >>> known = dict(collective_bytes="16 KiB", ways=4, near_ways=4)
    >>> [round(engine_all_reduce(accelerators.h200.running(x), known) * 1e6, 2) for x in ("vllm_sums", "trtllm_sums")]
    [3.95, 3.14]
    """
    rate = Min(sum_reach * scaleup_bandwidth, sum_rate, evaluate=False)
    own = dict(
        collective_bytes=collective_bytes, ways=ways, link_bandwidth=rate,
        link_latency=sum_share * sum_launch + (ways - 2) * sum_peer,
    )  # fmt: skip
    library = all_reduce.of(collective_bytes=collective_bytes, ways=ways, near_ways=near_ways)
    return Piecewise(
        (library, _is_left_to_library(collective_bytes, library_bytes)),
        (two_shot_all_reduce.of(**own), _takes_two_shots(collective_bytes, ways, two_shot_bytes)),
        (one_shot_all_reduce.of(**own), True),
    )
