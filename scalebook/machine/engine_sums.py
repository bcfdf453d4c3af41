"""All-reduces of serving engines: one-shot or two-shot over the links, and NCCL for large messages."""

from sympy import And, Ge, Gt, Min, Piecewise

from scalebook.language import formula
from scalebook.language.defaults import stated
from scalebook.machine.collective_rates import FABRIC
from scalebook.machine.collective_schedules import one_shot_all_reduce, two_shot_all_reduce
from scalebook.machine.collectives import all_reduce

_DEFAULTS = stated(__name__)  # those of engine_sums.toml
globals().update(_DEFAULTS)
__all__ = ["engine_all_reduce", *_DEFAULTS]


@formula("collective_time", "vllm-custom-all-reduce", "trtllm-all-reduce", given=[*_DEFAULTS.values(), *FABRIC])
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
    # a pair of devices always takes one shot, which moves as many bytes as two
    takes_two_shots = And(Gt(ways, 2), Ge(collective_bytes * ways, two_shot_bytes))
    return Piecewise(
        (library, Ge(collective_bytes, library_bytes)),
        (two_shot_all_reduce.of(**own), takes_two_shots),
        (one_shot_all_reduce.of(**own), True),
    )
