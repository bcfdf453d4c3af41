"""Pipelines: what each schedule leaves idle, what its devices keep, and what they send.

Stages are equal and times are of one micro-batch on one device.  `scalebook.schedule` executes the
same schedules, and tests hold every formula here to it.  Some formulas hold from so many micro-batches on,
or for some proportions of the times: each says so, and elsewhere `scalebook.schedule.simulate` is the
answer, which executes the order or says why it cannot be run.

>>> bubble_1f1b(pp=8, microbatches=64)
0.109375
>>> bubble_1f1b.solve("microbatches")(pp=8, bubble=0.05)
140.0
>>> bubble_zb_h1(pp=8, microbatches=64, forward_time="20 ms", input_gradient_time="20 ms", weight_gradient_time="10 ms")
0.065625
"""

from sympy import Max, Min, Rational, ceiling

from scalebook.attention import attention_flops, causal_pairs, pair_width_grouped, prefill_context
from scalebook.language import Sheet, formula
from scalebook.memory import used_params

__all__ = [
    "bubble_1f1b", "bubble_1f1b_transfers", "bubble_dualpipe", "bubble_gpipe", "bubble_interleaved", "bubble_zb_h1",
    "bubble_zb_h2", "bubble_zb_v", "enough_interleaved", "equal_input_gradient", "equal_weight_gradient", "held_dualpipe",
    "held_zb_h1", "held_zb_h2", "held_zb_v", "messages_dualpipe", "messages_interleaved", "messages_loop", "messages_zb_v",
    "pipeline_idle", "pipeline_latency", "pipeline_traffic", "pipelining", "stage_forward", "stage_input_gradient",
    "stage_transfer", "stage_weight_gradient", "staleness_pipedream", "versions_pipedream",
]  # fmt: skip


# Equal times, an assumption to be named


@formula("input_gradient_time", "kaplan2020 §2.1")
def equal_input_gradient(forward_time):
    """A matrix product and the gradient of its input are equally many operations.

    >>> equal_input_gradient(forward_time="20 ms")
    0.02
    """
    return forward_time


@formula("weight_gradient_time", "kaplan2020 §2.1")
def equal_weight_gradient(forward_time):
    """A matrix product and the gradient of its weights are equally many operations.

    Attention has no weights, so in a transformer the gradient of the weights takes less.

    >>> equal_weight_gradient(forward_time="20 ms")
    0.02
    """
    return forward_time


def _over_busy(idle, microbatches, *times):
    return idle / (microbatches * sum(times))


# Idle over busy


@formula("bubble", "huang2019 §2.3")
def bubble_gpipe(pp, microbatches):
    """GPipe: the first micro-batch fills the pipeline and the last drains it, whatever the passes take.

    >>> bubble_gpipe(pp=4, microbatches=32)
    0.09375
    """
    return (pp - 1) / microbatches


@formula("bubble", "narayanan2021 §2.2.1")
def bubble_1f1b(pp, microbatches):
    """1F1B idles as long as GPipe; what it saves is memory.

    >>> bubble_1f1b(pp=8, microbatches=64)
    0.109375
    """
    return (pp - 1) / microbatches


@formula("bubble", "narayanan2021 §2.2.2")
def bubble_interleaved(pp, microbatches, chunks):
    """Interleaved 1F1B fills and drains with a chunk at a time.

    Holds for multiples of `pp` micro-batches; the schedule runs no other number.

    >>> bubble_interleaved(pp=8, microbatches=64, chunks=4)
    0.02734375
    """
    return (pp - 1) / (chunks * microbatches)


@formula("microbatches", "narayanan2021 §2.2.2")
def enough_interleaved(pp, chunks, bubble):
    """The fewest micro-batches, in the groups of `pp` that interleaving takes, whose bubble is no larger.

    One chunk is 1F1B, which takes groups too but needs none.

    >>> enough_interleaved(pp=16, chunks=1, bubble=0.07)  # 15 / 0.07 = 214.3 for 1F1B
    224.0
    """
    return pp * ceiling((pp - 1) / (chunks * bubble * pp))


@formula("bubble", "narayanan2021 §2.2.1")
def bubble_1f1b_transfers(pp, microbatches, forward_time, input_gradient_time, weight_gradient_time, transfer_time):
    """1F1B with transfers that nothing hides: nearly two of them delay every micro-batch.

    A stage sends a micro-batch forth and waits for it to come back; with as many in flight as there
    are stages, each round of `pp` micro-batches waits for 2 (pp - 1) transfers.

    >>> knowns = dict(forward_time="18.522 ms", input_gradient_time="18.086 ms", weight_gradient_time="9.337 ms")
    >>> bubble = bubble_1f1b_transfers(pp=8, microbatches=24, transfer_time="0.601 ms", **knowns)
    >>> round(bubble / (1 + bubble), 4)  # 0.2431 in table 5 of qi2024
    0.2431
    """
    waits = 2 * ceiling((microbatches + pp - 2) * (pp - 1) / pp) * transfer_time
    times = forward_time, input_gradient_time, weight_gradient_time
    return (pp - 1) / microbatches + _over_busy(waits, microbatches, *times)


@formula("bubble", "qi2024 table 2")
def bubble_zb_h1(pp, microbatches, forward_time, input_gradient_time, weight_gradient_time):
    """ZB-H1 fills the drain with weight gradients that were put off, within the memory of 1F1B.

    Published as (pp - 1)(forward + input gradient - weight gradient), which holds while the weight
    gradient is no longer than the forward pass.  Exact from `pp` micro-batches on.  With fewer too little
    is at hand to fill the drain with: it idles longer than this, and at most as long as 1F1B.

    >>> bubble_zb_h1(equal_input_gradient, equal_weight_gradient, pp=8, microbatches=32)
    0.07291666666666666
    """
    idle = (pp - 1) * (input_gradient_time + Max(0, forward_time - weight_gradient_time, evaluate=False))
    return _over_busy(idle, microbatches, forward_time, input_gradient_time, weight_gradient_time)


@formula("bubble", "qi2024 table 2")
def bubble_zb_h2(pp, microbatches, forward_time, input_gradient_time, weight_gradient_time):
    """ZB-H2 fills the start too, with nearly twice the memory; the optimizer must not wait for all.

    Published as (pp - 1)(forward + input gradient - 2 weight gradient), which is the largest of the
    three while the weight gradient is the shortest.  Exact from 2 pp - 1 micro-batches on.  With fewer it
    idles longer than this, and at most as long as 1F1B.

    >>> bubble_zb_h2(equal_input_gradient, pp=8, microbatches=32, forward_time="10 ms", weight_gradient_time="5 ms")
    0.0875
    """
    f, b, w = forward_time, input_gradient_time, weight_gradient_time
    return _over_busy((pp - 1) * Max(0, b - f, f + b - 2 * w, evaluate=False), microbatches, f, b, w)


@formula("bubble", "qi2024 §6")
def bubble_zb_v(pp, microbatches, forward_time, input_gradient_time, weight_gradient_time):
    """ZB-V: nothing idles where the three passes take equally long; at most this where they do not.

    Exact where the weight gradient is the shortest of the three.  Holds from 2 pp - 1 micro-batches on;
    fewer do not fill the V, and the order is not run.  The optimizer must not wait for all.

    >>> bubble_zb_v(equal_input_gradient, pp=8, microbatches=32, forward_time="10 ms", weight_gradient_time="5 ms")
    0.04375
    """
    times = forward_time, input_gradient_time, weight_gradient_time
    longest, shortest = Max(*times, evaluate=False), Min(*times, evaluate=False)
    return _over_busy((pp - 1) * (longest - shortest), microbatches, *times)


@formula("bubble", "deepseek2024-v3 table 2")
def bubble_dualpipe(pp, microbatches, forward_time, input_gradient_time, weight_gradient_time):
    """DualPipe, from both ends at once: (pp/2 - 1)(F&B + B - 3W) with B the whole backward pass, F&B a pair.

    A pair is taken to last as long as its passes together: what it hides is transfers.  Exact where
    the forward pass and the input gradient are equal and the weight gradient is no longer than they.
    Where the input gradient is the longest of the three, as with attention, the order idles less than
    this; where the forward pass is, more.  Holds for an even `pp` and an even number of at least 2 pp
    micro-batches; others are not run.

    >>> bubble_dualpipe(equal_input_gradient, equal_weight_gradient, pp=8, microbatches=32)
    0.0625
    """
    f, b, w = forward_time, input_gradient_time, weight_gradient_time
    backward = b + w
    return _over_busy((pp / 2 - 1) * ((f + backward) + backward - 3 * w), microbatches, f, b, w)


@formula("idle_fraction", "huang2019 §2.3", given=[bubble_1f1b])
def pipeline_idle(bubble):
    """The share of a step in which a device waits for the pipeline.

    >>> pipeline_idle(pp=8, microbatches=56)
    0.1111111111111111
    """
    return bubble / (1 + bubble)


# Kept


@formula("held_microbatches", "qi2024 table 2")
def held_zb_h1(microbatches, pp):
    """ZB-H1: on every device, as many as 1F1B keeps on its first.

    >>> held_zb_h1(microbatches=32, pp=8)
    8.0
    """
    return Min(microbatches, pp, evaluate=False)


@formula("held_microbatches", "qi2024 table 2")
def held_zb_h2(microbatches, pp):
    """ZB-H2: nearly twice as many.

    >>> held_zb_h2(microbatches=32, pp=8)
    15.0
    """
    return Min(microbatches, 2 * pp - 1, evaluate=False)


@formula("held_microbatches", "qi2024 §6")
def held_zb_v(pp):
    """ZB-V: as many as 1F1B keeps on its first device, and one chunk more in the order executed here.

    >>> held_zb_v(pp=8)
    8.5
    """
    return pp + Rational(1, 2)


@formula("held_microbatches", "deepseek2024-v3 table 2")
def held_dualpipe(pp):
    """DualPipe: one more than 1F1B on its first device, on every device; the weights are kept twice.

    >>> held_dualpipe(pp=8)
    9.0
    """
    return pp + 1


@formula("weight_versions", "narayanan2019 §3.3")
def versions_pipedream(pp, stage):
    """PipeDream never drains, and keeps the weights that each micro-batch in flight began with.

    >>> versions_pipedream(pp=8, stage=1), versions_pipedream(pp=8, stage=8)
    (8.0, 1.0)
    """
    return pp - stage + 1


@formula("staleness", "narayanan2019 §3.3")
def staleness_pipedream(pp, stage):
    """Updates that a stage makes while one of its micro-batches is on its way through the stages behind.

    >>> staleness_pipedream(pp=8, stage=1), staleness_pipedream(pp=8, stage=8)
    (7.0, 0.0)
    """
    return pp - stage


# Sent


@formula("messages", "narayanan2021 §2.2.1")
def messages_loop(pp, microbatches):
    """Each boundary is crossed twice by each micro-batch: GPipe, 1F1B, ZB-H1, ZB-H2.

    >>> messages_loop(pp=8, microbatches=32)
    448.0
    """
    return 2 * microbatches * (pp - 1)


@formula("messages", "narayanan2021 §2.2.2")
def messages_interleaved(pp, microbatches, chunks):
    """Each micro-batch goes round the devices once a chunk.

    >>> messages_interleaved(pp=8, microbatches=32, chunks=2)
    960.0
    """
    return 2 * microbatches * (pp * chunks - 1)


@formula("messages", "qi2024 §6")
def messages_zb_v(pp, microbatches):
    """Down one side of the V and up the other; at its foot nothing is sent.

    >>> messages_zb_v(pp=8, microbatches=32)
    896.0
    """
    return 4 * microbatches * (pp - 1)


@formula("messages", "deepseek2024-v3 table 2")
def messages_dualpipe(pp, microbatches):
    """As 1F1B, in both directions at once; the two copies' gradients must be added besides.

    >>> messages_dualpipe(pp=8, microbatches=32)
    448.0
    """
    return 2 * microbatches * (pp - 1)


@formula("pipeline_traffic", "narayanan2021 §3.2", given=[messages_interleaved, messages_loop])
def pipeline_traffic(messages, batch, seq, hidden, activation_bits):
    """A message is the residual stream of a micro-batch, or its gradient.

    >>> pipeline_traffic(pp=8, microbatches=32, batch=1, seq=4096, hidden=8192, activation_bits=16) / 2**30
    28.0
    """
    return messages * batch * seq * hidden * activation_bits / 8


@formula("pipeline_latency", "pope2022 §3")
def pipeline_latency(pp, forward_time, transfer_time):
    """One input visits the stages one after the other: more of them do not make it faster.

    >>> pipeline_latency(pp=8, forward_time="5 ms", transfer_time="10 us")
    0.04007
    """
    return pp * forward_time + (pp - 1) * transfer_time


# A pipeline of a model on devices


@formula("weight_gradient_time", "kaplan2020 §2.1", given=[used_params])
def stage_weight_gradient(used_params, batch, seq, pp, tp, peak_flops, flops_efficiency):
    """A multiply and an add for every weight of the stage and every token: attention's own arithmetic has no weights.

    >>> knowns = dict(batch=1, seq=8192, pp=8, tp=8, peak_flops="989.4 TFLOP/s", flops_efficiency=0.5)
    >>> stage_weight_gradient(used_params=70e9, **knowns)
    0.03622397412573277
    """
    return 2 * used_params * batch * seq / (pp * tp * peak_flops * flops_efficiency)


@formula("forward_time", "kaplan2020 §2.1", given=[stage_weight_gradient, attention_flops])
def stage_forward(weight_gradient_time, layers, attention_flops, pp, tp, peak_flops, flops_efficiency):
    """The products with the weights, as many as in their gradient, and attention's scores and values.

    >>> knowns = dict(layers=80, pp=8, tp=8, peak_flops="989.4 TFLOP/s", flops_efficiency=0.5)
    >>> stage_forward(weight_gradient_time="36 ms", attention_flops="1.1 TFLOP", **knowns)
    0.038779462300384065
    """
    return weight_gradient_time + layers * attention_flops / (pp * tp * peak_flops * flops_efficiency)


@formula("input_gradient_time", "kaplan2020 §2.1")
def stage_input_gradient(forward_time, weight_gradient_time):
    """The products of the forward pass, and attention's once more: its gradient goes to two operands.

    >>> stage_input_gradient(forward_time="39 ms", weight_gradient_time="36 ms")
    0.042
    """
    return forward_time + (forward_time - weight_gradient_time)


@formula("transfer_time", "narayanan2021 §4.1")
def stage_transfer(batch, seq, hidden, activation_bits, tp, link_bandwidth):
    """Each tensor-parallel device sends its part of the residual stream over its own link.

    >>> stage_transfer(batch=1, seq=8192, hidden=8192, activation_bits=16, tp=8, link_bandwidth="50 GB/s")
    0.00033554432
    """
    return batch * seq * hidden * activation_bits / 8 / tp / link_bandwidth


pipelining = Sheet(
    "pipelining", used_params, prefill_context, causal_pairs, pair_width_grouped, attention_flops,
    stage_weight_gradient, stage_forward, stage_input_gradient, stage_transfer,
    bubble_1f1b_transfers, pipeline_idle, messages_loop, pipeline_traffic, pipeline_latency,
    doc="1F1B of a model over pp stages of tp devices, causal attention in every layer, transfers not hidden.",
)  # fmt: skip
