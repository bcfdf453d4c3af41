"""Activations of training: what a block keeps for the backward pass, how often a stage holds it, and the logits.

What a block keeps is a sum over its listing (`scalebook.block`).

>>> from scalebook.tables import models
>>> kept = saved_llama(models.llama3_8b, batch=1, seq=8192, activation_bits=16, tp=1)
>>> activation_memory(saved_activations=kept, layers=32, pp=1, held_microbatches=1) / 2**30
34.0
"""

from sympy import Ge, Piecewise

from scalebook.block import GPT, HEAD, LLAMA, full, selective, sequence_parallel, tensor_parallel
from scalebook.language import formula, symbol
from scalebook.pipeline.stages import held_1f1b

__all__ = [
    "activation_memory", "logits_memory", "saved_gpt_full", "saved_gpt_parallel", "saved_gpt_selective",
    "saved_gpt_sequence_parallel", "saved_gpt_sequence_selective", "saved_llama", "saved_llama_full",
]  # fmt: skip


def _trained(*transformations, block):
    """Bytes saved by a block in training, where as many tokens are attended to as are new."""
    return block.then(tensor_parallel, *transformations).saved.subs(symbol("context"), symbol("seq"))


# Activations of a block, from its listing


@formula("saved_activations", "korthikanti2022 §4.2")
def saved_gpt_parallel(batch, seq, hidden, ffn, heads, kv_heads, head_dim, activation_bits, mask_bits, tp):
    """A GPT block under tensor parallelism: norms, dropout and residuals are kept whole on every device.

    >>> gpt3 = dict(hidden=12288, ffn=49152, heads=96, kv_heads=96, head_dim=128, activation_bits=16, mask_bits=8)
    >>> saved_gpt_parallel(**gpt3, batch=1, seq=2048, tp=8) / (2048 * 12288)
    23.0
    """
    return _trained(block=GPT)


@formula("saved_activations", "korthikanti2022 §4.2.2")
def saved_gpt_sequence_parallel(batch, seq, hidden, ffn, heads, kv_heads, head_dim, activation_bits, mask_bits, tp):
    """A GPT block under tensor and sequence parallelism: everything is split.

    >>> gpt3 = dict(hidden=12288, ffn=49152, heads=96, kv_heads=96, head_dim=128, activation_bits=16, mask_bits=8)
    >>> saved_gpt_sequence_parallel(**gpt3, batch=1, seq=2048, tp=8) / (2048 * 12288)
    14.25
    """
    return _trained(sequence_parallel, block=GPT)


@formula("saved_activations", "korthikanti2022 §5")
def saved_gpt_selective(batch, seq, hidden, ffn, heads, kv_heads, head_dim, activation_bits, mask_bits, tp):
    """A GPT block under tensor parallelism, its attention core run again, or fused.

    >>> gpt3 = dict(hidden=12288, ffn=49152, heads=96, kv_heads=96, head_dim=128, activation_bits=16, mask_bits=8)
    >>> saved_gpt_selective(**gpt3, batch=1, seq=2048, tp=8) / (2048 * 12288)
    13.0
    """
    return _trained(selective, block=GPT)


@formula("saved_activations", "korthikanti2022 §5")
def saved_gpt_sequence_selective(batch, seq, hidden, ffn, heads, kv_heads, head_dim, activation_bits, mask_bits, tp):
    """A GPT block under tensor and sequence parallelism, its attention core run again, or fused.

    >>> gpt3 = dict(hidden=12288, ffn=49152, heads=96, kv_heads=96, head_dim=128, activation_bits=16, mask_bits=8)
    >>> saved_gpt_sequence_selective(**gpt3, batch=1, seq=2048, tp=8) / (2048 * 12288)
    4.25
    """
    return _trained(sequence_parallel, selective, block=GPT)


@formula("saved_activations", "korthikanti2022 §5")
def saved_gpt_full(batch, seq, hidden, activation_bits):
    """A GPT block run again as a whole: only its input is kept, whole on every tensor-parallel device.

    >>> saved_gpt_full(batch=1, seq=2048, hidden=12288, activation_bits=16) / (2048 * 12288)
    2.0
    """
    return _trained(full, block=GPT)


@formula("saved_activations", "korthikanti2022 §4.2.2", "dao2022 §3.1")
def saved_llama(batch, seq, hidden, ffn, heads, kv_heads, head_dim, activation_bits, tp):
    """A gated block with grouped queries under tensor and sequence parallelism, with fused attention.

    The fp32 number that fused attention keeps of each row and head, about a thousandth, is left out.

    >>> from scalebook.tables import models
    >>> saved_llama(models.llama3_8b, batch=1, seq=8192, activation_bits=16, tp=8) / 2**20
    136.0
    """
    return _trained(sequence_parallel, selective, block=LLAMA)


@formula("saved_activations", "korthikanti2022 §5")
def saved_llama_full(batch, seq, hidden, activation_bits, tp):
    """A block run again as a whole under sequence parallelism: only its input is kept, split over the devices.

    >>> saved_llama_full(batch=1, seq=8192, hidden=4096, activation_bits=16, tp=8) / 2**20
    8.0
    """
    return _trained(sequence_parallel, full, block=LLAMA)


# In flight


@formula("activation_memory", "korthikanti2022 §4.2.3", given=[held_1f1b, saved_llama])
def activation_memory(held_microbatches, layers, pp, saved_activations):
    """What the blocks of a stage keep of every micro-batch in flight.

    >>> activation_memory(held_microbatches=8, layers=96, pp=8, saved_activations="500 MB")
    48000000000.0
    """
    return held_microbatches * layers / pp * saved_activations


@formula("logits_memory", "korthikanti2022 §4.3")
def logits_memory(batch, seq, vocab, tp, pp, stage, logit_bits):
    """The logits of one micro-batch on the last stage: 48 bits where the loss is taken in place in an fp32 copy.

    >>> logits_memory(batch=1, seq=4096, vocab=128256, tp=1, pp=1, stage=1, logit_bits=48)
    3152019456.0
    """
    logits = HEAD.then(tensor_parallel)["fp32_logits"].outs[0].elements
    return Piecewise((logits * logit_bits / 8, Ge(stage, pp)), (0, True))
