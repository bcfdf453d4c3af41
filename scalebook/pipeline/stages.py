"""What pipeline stages keep in memory, what they send to each other, and how long they compute."""

from sympy import Le, Min, Piecewise, Rational

from scalebook.attention.arithmetic import attention_flops, causal_pairs, pair_width_grouped
from scalebook.attention.assumptions import prefill_context
from scalebook.language import Sheet, formula, formulas_of, same
from scalebook.pipeline.bubbles import EVEN_STAGES, FILLED_TWICE, GROUPS, PAIRS, bubble_1f1b_transfers, pipeline_idle
from scalebook.tables.shapes import used_params

# Kept


held_gpipe = same(
    "held_gpipe", "held_microbatches", "microbatches", "huang2019 §2.3",
    "Micro-batches whose activations a stage of GPipe keeps: all, because all forward passes run first.",
)  # fmt: skip


@formula("held_microbatches", "narayanan2021 §2.2.1")
def held_1f1b(microbatches, pp, stage):
    """Micro-batches whose activations a stage of 1F1B keeps: one for itself and one for each later stage.

    >>> held_1f1b(microbatches=32, pp=8, stage=1), held_1f1b(microbatches=32, pp=8, stage=8)
    (8.0, 1.0)
    """
    return Min(microbatches, pp - stage + 1, evaluate=False)


@formula("held_microbatches", "narayanan2021 §2.2.2")
def held_interleaved(microbatches, pp, stage, chunks):
    """Micro-batches whose activations a device of interleaved 1F1B keeps. One chunk's activations count as 1/chunks.

    >>> held_interleaved(microbatches=64, pp=8, stage=1, chunks=3) / 8
    1.2916666666666667
    """
    ahead = (2 * (pp - stage) + (chunks - 1) * pp + 1) / chunks
    return Min(microbatches, ahead, evaluate=False)


@formula("held_microbatches", "narayanan2021 §2.2")
def held_chunks(microbatches, pp, stage, chunks):
    """Micro-batches whose activations a device of interleaved 1F1B keeps; with one chunk the schedule is 1F1B.

    >>> held_chunks(microbatches=64, pp=8, stage=1, chunks=1), held_chunks(microbatches=64, pp=8, stage=1, chunks=2)
    (8.0, 11.5)
    """
    at = dict(microbatches=microbatches, pp=pp, stage=stage)
    one, several = held_1f1b.of(**at), held_interleaved.of(**at, chunks=chunks)
    return Piecewise((one, Le(chunks, 1)), (several, True))


@formula("held_microbatches", "qi2024 table 2")
def held_zb_h1(microbatches, pp):
    """Micro-batches whose activations each device of ZB-H1 keeps: as many as the first device of 1F1B.

    >>> held_zb_h1(microbatches=32, pp=8)
    8.0
    """
    return Min(microbatches, pp, evaluate=False)


@formula("held_microbatches", "qi2024 table 2")
def held_zb_h2(microbatches, pp):
    """Micro-batches whose activations each device of ZB-H2 keeps: nearly twice as many as with ZB-H1.

    >>> held_zb_h2(microbatches=32, pp=8)
    15.0
    """
    return Min(microbatches, 2 * pp - 1, evaluate=False)


@formula("held_microbatches", "qi2024 §6")
def held_zb_v(microbatches, pp):
    """Micro-batches that each device of ZB-V holds: as many as the first device of 1F1B, and one chunk (a half) more.

    >>> held_zb_v(microbatches=32, pp=8)
    8.5
    """
    return Min(microbatches, pp + Rational(1, 2), evaluate=False)


@formula("held_microbatches", "deepseek2024-v3 table 2", domain=EVEN_STAGES)
def held_dualpipe(pp):
    """Micro-batches whose activations each device of DualPipe keeps: one more than 1F1B's first device.

    >>> held_dualpipe(pp=8)
    9.0
    """
    return pp + 1


@formula("weight_versions", "narayanan2019 §3.3")
def versions_pipedream(pp, stage):
    """Versions of its weights that a PipeDream stage keeps: one for each micro-batch between its two passes.

    >>> versions_pipedream(pp=8, stage=1), versions_pipedream(pp=8, stage=8)
    (8.0, 1.0)
    """
    return pp - stage + 1


@formula("staleness", "narayanan2019 §3.3")
def staleness_pipedream(pp, stage):
    """Weight updates that a PipeDream stage makes between the forward and the backward pass of one micro-batch.

    >>> staleness_pipedream(pp=8, stage=1), staleness_pipedream(pp=8, stage=8)
    (7.0, 0.0)
    """
    return pp - stage


# Sent


@formula("messages", "narayanan2021 §2.2.1")
def messages_loop(pp, microbatches):
    """Messages in a step of GPipe, 1F1B, ZB-H1 or ZB-H2: each micro-batch crosses every stage boundary twice.

    >>> messages_loop(pp=8, microbatches=32)
    448.0
    """
    return 2 * microbatches * (pp - 1)


@formula("messages", "narayanan2021 §2.2.2", domain=GROUPS)
def messages_interleaved(pp, microbatches, chunks):
    """Messages in a step of interleaved 1F1B: each micro-batch visits all devices once per chunk, and again backward.

    >>> messages_interleaved(pp=8, microbatches=32, chunks=2)
    960.0
    """
    return 2 * microbatches * (pp * chunks - 1) * Min(1, pp - 1, evaluate=False)


@formula("messages", "qi2024 §6", domain=FILLED_TWICE)
def messages_zb_v(pp, microbatches):
    """Messages in a step of ZB-V: micro-batches pass all devices down and back up. The turn needs no message.

    >>> messages_zb_v(pp=8, microbatches=32)
    896.0
    """
    return 4 * microbatches * (pp - 1)


@formula("messages", "deepseek2024-v3 table 2", domain=PAIRS)
def messages_dualpipe(pp, microbatches):
    """Messages in a step of DualPipe: as many as with 1F1B. Adding up the two copies' gradients is not counted.

    >>> messages_dualpipe(pp=8, microbatches=32)
    448.0
    """
    return 2 * microbatches * (pp - 1)


@formula("pipeline_traffic", "narayanan2021 §3.2", given=[messages_interleaved, messages_loop])
def pipeline_traffic(messages, batch, seq, hidden, activation_bits):
    """Bytes of a step's messages. Each message is the residual stream of one micro-batch, or its gradient.

    >>> pipeline_traffic(pp=8, microbatches=32, batch=1, seq=4096, hidden=8192, activation_bits=16) / 2**30
    28.0
    """
    return messages * batch * seq * hidden * activation_bits / 8


@formula("pipeline_latency", "pope2022 §3")
def pipeline_latency(pp, forward_time, transfer_time):
    """Latency of one input through all stages. More stages do not reduce it.

    >>> pipeline_latency(pp=8, forward_time="5 ms", transfer_time="10 us")
    0.04007
    """
    return pp * forward_time + (pp - 1) * transfer_time


# A pipeline of a model on devices


@formula("weight_gradient_time", "kaplan2020 §2.1", given=[used_params])
def stage_weight_gradient(used_params, batch, seq, pp, tp, peak_flops, flops_efficiency):
    """Time of a stage's weight gradients: 2 FLOPs for each weight and token. Scores and values have no weights.

    >>> at = dict(batch=1, seq=8192, pp=8, tp=8, peak_flops="1 PFLOP/s", flops_efficiency=0.5)
    >>> stage_weight_gradient(at, used_params=70e9)
    0.03584
    """
    return 2 * used_params * batch * seq / (pp * tp * peak_flops * flops_efficiency)


@formula("forward_time", "kaplan2020 §2.1", given=[stage_weight_gradient, attention_flops])
def stage_forward(weight_gradient_time, layers, attention_flops, pp, tp, peak_flops, flops_efficiency):
    """Time of a stage's forward pass: as many FLOPs as its weight gradients, plus attention's scores and values.

    >>> knowns = dict(layers=80, pp=8, tp=8, peak_flops="989.4 TFLOP/s", flops_efficiency=0.5)
    >>> stage_forward(weight_gradient_time="36 ms", attention_flops="1.1 TFLOP", **knowns)
    0.038779462300384065
    """
    return weight_gradient_time + layers * attention_flops / (pp * tp * peak_flops * flops_efficiency)


@formula("input_gradient_time", "kaplan2020 §2.1")
def stage_input_gradient(forward_time, weight_gradient_time):
    """Time of a stage's input gradients: a forward pass, and attention's FLOPs again, because both operands are inputs.

    >>> stage_input_gradient(forward_time="39 ms", weight_gradient_time="36 ms")
    0.042
    """
    return forward_time + (forward_time - weight_gradient_time)


@formula("transfer_time", "narayanan2021 §4.1")
def stage_transfer(batch, seq, hidden, activation_bits, tp, link_bandwidth):
    """Time to send a micro-batch to the next stage. Each tensor-parallel device sends its part over its own link.

    >>> stage_transfer(batch=1, seq=8192, hidden=8192, activation_bits=16, tp=8, link_bandwidth="50 GB/s")
    0.00033554432
    """
    return batch * seq * hidden * activation_bits / 8 / tp / link_bandwidth


@formula("pp_exposed", "narayanan2021 §2.2.2")
def pp_exposed(microbatches, chunks, pp, transfer_time, pp_overlap):
    """Time that a device waits for transfers: each chunk of a micro-batch arrives once forward and once backward.

    >>> pp_exposed(microbatches=64, chunks=3, pp=8, transfer_time="1 ms", pp_overlap=0)
    0.384
    """
    return (1 - pp_overlap) * 2 * microbatches * chunks * transfer_time * Min(1, pp - 1, evaluate=False)


@formula("pp_exposed", "qi2024-v §3")
def pp_exposed_v(microbatches, pp, transfer_time, pp_overlap):
    """Time that a device of ZB-V waits for transfers: a micro-batch arrives twice forward and twice backward.

    >>> pp_exposed_v(microbatches=64, pp=8, transfer_time="1 ms", pp_overlap=0)
    0.256
    """
    return (1 - pp_overlap) * 4 * microbatches * transfer_time * Min(1, pp - 1, evaluate=False)


pipelining = Sheet(
    "pipelining", used_params, prefill_context, causal_pairs, pair_width_grouped, attention_flops,
    stage_weight_gradient, stage_forward, stage_input_gradient, stage_transfer,
    bubble_1f1b_transfers, pipeline_idle, messages_loop, pipeline_traffic, pipeline_latency,
    doc="1F1B over pp stages of tp devices each, with causal attention in every layer and exposed transfers.",
)  # fmt: skip


__all__ = [*formulas_of(__name__), "pipelining"]
