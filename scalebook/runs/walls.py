"""How large a training run can be: limits set by message latency and by data movement in a given time.

Steps and the all-reduces of every block run one after another, however small (latency wall). If too many devices share
a step's tokens, data takes longer to move than to compute with (bandwidth wall). Both walls grow with the batch.
"""

from sympy import Max, Min, Rational, log, sqrt

from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations
from scalebook.machine.collective_rates import FABRIC
from scalebook.runs import assumptions
from scalebook.training.overlap import group_rate

_OWN = equations(__name__)  # those of walls.toml

_HERE = "how-large-can-a-run-be"
_BELOW = {"a power of the batch below 1/2": lambda batch_power: batch_power < Rational(1, 2)}
_BELOW_SHARED = {"a power of the batch below 3/4": lambda batch_power: batch_power < Rational(3, 4)}


@formula("batch_tokens", _HERE)
def batch_of_run(base_batch, base_flops, run_flops, batch_power):
    """Batch size that training tolerates, scaled from a known run by a power of its FLOPs.

    Published powers are 0.24 (kaplan2020) and 0.33 (bi2024). With 0 the batch does not grow.

    >>> batch_of_run(base_batch="16e6 token", base_flops="4e25 FLOP", run_flops="4e28 FLOP", batch_power=1 / 3) / 1e6
    160.0
    """
    return base_batch * (run_flops / base_flops) ** batch_power


# Latency


@formula("message_time", "nccl §tuning.cc", "patarasuk2009")
def message_of_group(tp, scaleup_size, near_latency, far_latency, collective_launch):
    """Latency of an all-reduce: launch, ring hops in the scale-up domain, tree hops between domains (both twice).

    >>> at = dict(scaleup_size=8, near_latency="1 us", far_latency="5 us", collective_launch="2 us")
    >>> message_of_group(at, tp=8).__round__(9)
    1.6e-05
    """
    near = Min(tp, scaleup_size, evaluate=False)
    far = log(Max(1, tp / scaleup_size, evaluate=False), 2)
    return collective_launch + 2 * ((near - 1) * near_latency + far * far_latency)


@formula("latency_wall", "erdil2024", "kaplan2020 §2.1", given=[assumptions.chinchilla_tokens])
def latency_wall(batch_tokens, run_time, layers, message_time, tokens_per_param):
    """FLOPs of the largest run in a given time if its steps and collectives took no time but their latency.

    >>> f"{latency_wall(batch_tokens='16e6 token', run_time='7.776 Ms', layers=126, message_time='10 us'):.1e}"
    '1.8e+32'
    """
    tokens = batch_tokens * run_time / (4 * layers * message_time)
    return 6 * tokens**2 / tokens_per_param


@formula("grown_latency_wall", "erdil2024", _HERE, domain=_BELOW)
def latency_wall_grown(latency_wall, base_flops, batch_power):
    """Latency wall if the batch grows with the run. If the power is 1/2 or more, the number of steps does not grow.

    >>> f"{latency_wall_grown(latency_wall='1e32 FLOP', base_flops='1e26 FLOP', batch_power=0.25):.0e}"
    '1e+38'
    """
    return base_flops * (latency_wall / base_flops) ** (1 / (1 - 2 * batch_power))


# Bandwidth


@formula("ridge_tokens", _HERE)
def ridge_tokens(weight_bits, gradient_bits, peak_flops, hbm_bandwidth):
    """Tokens per micro-batch below which a stage is bound by memory bandwidth: it moves weights and gradients twice.

    >>> ridge_tokens(weight_bits=16, gradient_bits=32, peak_flops="1 PFLOP/s", hbm_bandwidth="4 TB/s")
    500.0
    """
    return (2 * weight_bits + 2 * gradient_bits) / 8 / 6 * peak_flops / hbm_bandwidth


@formula("wall_tp", _HERE)
def tp_of_network(hidden, link_achieved, activation_bits, peak_flops):
    """Largest tensor parallelism that keeps a block's four all-reduces as short as its arithmetic of 72 h² FLOPs.

    >>> tp_of_network(hidden=16384, link_achieved="400 GB/s", activation_bits=16, peak_flops="983.04 TFLOP/s")
    30.0
    """
    return 9 * hidden * link_achieved / (activation_bits / 8 * peak_flops)


_SPLIT = [ridge_tokens, assumptions.two_microbatches]
_NETWORK = [assumptions.chinchilla_tokens, group_rate, assumptions.whole_domain, *FABRIC]


@formula("wall_groups", _HERE, given=_SPLIT)
def groups_of_batch(batch_tokens, stage_microbatches, ridge_tokens):
    """Tensor-parallel groups that a step's tokens keep busy, in micro-batches as small as memory bandwidth allows.

    >>> groups_of_batch(batch_tokens="16e6 token", stage_microbatches=2, ridge_tokens="500 token")
    16000.0
    """
    return batch_tokens / (stage_microbatches * ridge_tokens)


@formula("bandwidth_wall", "erdil2024", _HERE, given=_NETWORK)
def bandwidth_wall(wall_groups, run_time, link_achieved, activation_bits, layers, tokens_per_param):
    """FLOPs of the largest run that bandwidths allow, for the model that it trains. Width grows as FLOPs to the 1/4.

    >>> known = dict(run_time="7.776 Ms", layers=126, activation_bits=16, link_achieved="400 GB/s")
    >>> f"{bandwidth_wall(known, wall_groups=16000):.1e}"
    '2.1e+28'
    """
    width = (6 * tokens_per_param) ** Rational(-1, 4) / sqrt(12 * layers)  # over the fourth root of the FLOPs
    return (run_time * wall_groups * 9 * link_achieved / (activation_bits / 8) * width) ** Rational(4, 3)


@formula("grown_bandwidth_wall", "erdil2024", _HERE, domain=_BELOW_SHARED)
def bandwidth_wall_grown(bandwidth_wall, base_flops, batch_power):
    """Bandwidth wall if the batch grows with the run, as well as the width.

    >>> f"{bandwidth_wall_grown(bandwidth_wall='1e28 FLOP', base_flops='1e26 FLOP', batch_power=0.25):.1e}"
    '1.0e+29'
    """
    return base_flops * (bandwidth_wall / base_flops) ** (3 / (3 - 4 * batch_power))


@formula("domain_wall", _HERE)
def domain_wall(wall_groups, scaleup_size, peak_flops, run_time, bandwidth_wall):
    """FLOPs of the largest run if each tensor-parallel group fills one scale-up domain, at most the bandwidth wall.

    >>> known = dict(wall_groups=16000, peak_flops="1 PFLOP/s", run_time="8 Ms", bandwidth_wall="1e28 FLOP")
    >>> domain_wall(known, scaleup_size=8), domain_wall(known, scaleup_size=256)
    (1.024e+27, 1e+28)
    """
    return Min(bandwidth_wall, scaleup_size * wall_groups * peak_flops * run_time, evaluate=False)


largest_run = Sheet(
    "largest run", bandwidth_wall, domain_wall, latency_wall, bandwidth_wall_grown, latency_wall_grown,
    groups_of_batch, *_SPLIT, *_NETWORK, message_of_group,
    doc="The largest training run in a given time, limited by bandwidth or latency, with a fixed or a growing batch.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "largest_run"]
