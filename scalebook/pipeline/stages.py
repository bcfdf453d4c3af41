"""What pipeline stages keep in memory, what they send to each other, and how long they compute."""

from sympy import Le, Min, Piecewise, Rational

from scalebook.attention.arithmetic import attention_flops, causal_pairs, pair_width_grouped
from scalebook.attention.assumptions import prefill_context
from scalebook.language import Sheet, formula, formulas_of, same
from scalebook.language.defaults import equations
from scalebook.pipeline.bubbles import EVEN_STAGES, FILLED_TWICE, GROUPS, PAIRS, bubble_1f1b_transfers, pipeline_idle
from scalebook.tables.shapes import used_params

_OWN = equations(__name__)  # those of stages.toml

# Kept


held_gpipe = same(
    "held_gpipe", "held_microbatches", "microbatches", "huang2019 §2.3",
    "Micro-batches whose activations a stage of GPipe keeps: all, because all forward passes run first.",
)  # fmt: skip


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
    one, several = _OWN.held_1f1b.of(**at), held_interleaved.of(**at, chunks=chunks)
    return Piecewise((one, Le(chunks, 1)), (several, True))


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


# Sent


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


@formula("pipeline_traffic", "narayanan2021 §3.2", given=[messages_interleaved, _OWN.messages_loop])
def pipeline_traffic(messages, batch, seq, hidden, activation_bits):
    """Bytes of a step's messages. Each message is the residual stream of one micro-batch, or its gradient.

    >>> pipeline_traffic(pp=8, microbatches=32, batch=1, seq=4096, hidden=8192, activation_bits=16) / 2**30
    28.0
    """
    return messages * batch * seq * hidden * activation_bits / 8


# A pipeline of a model on devices


pipelining = Sheet(
    "pipelining", used_params, prefill_context, causal_pairs, pair_width_grouped, attention_flops,
    _OWN.stage_weight_gradient, _OWN.stage_forward, _OWN.stage_input_gradient, _OWN.stage_transfer,
    bubble_1f1b_transfers, pipeline_idle, _OWN.messages_loop, pipeline_traffic, _OWN.pipeline_latency,
    doc="1F1B over pp stages of tp devices each, with causal attention in every layer and exposed transfers.",
)  # fmt: skip


__all__ = [*formulas_of(__name__), "pipelining"]
