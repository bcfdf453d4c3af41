"""What training must hold on one device: state, activations and logits, stage by stage of a pipeline.

Parameters and activations of a block are sums over its listing (`scalebook.block`).  Left out as
small: the last norm, learned positions, the batch itself.  Left out too: work space of libraries,
fragments, buffers of communication, gathered tensors, steps that are not fused.

>>> from scalebook.tables import accelerators, models
>>> one = dict(tp=1, pp=1, dp=1, stage=1, microbatches=1, batch=1, seq=4096, activation_bits=16)
>>> bits = dict(weight_bits=16, gradient_bits=32, optimizer_bits=96, logit_bits=48)
>>> row = training(models.llama3_8b, **one, **bits)
>>> round(row.state_memory / 1e9, 1), round(row.activation_memory / 1e9, 1)
(144.5, 18.3)
"""

from sympy import Ge, Min, Piecewise, ceiling

from scalebook.block import GPT, LLAMA, full, selective, sequence_parallel, tensor_parallel
from scalebook.language import Sheet, formula, symbol

__all__ = [
    "activation_memory", "block_params_gpt", "block_params_llama", "filled", "held_1f1b", "held_gpipe", "held_interleaved",
    "least_devices", "logits_memory", "padded_layers", "replicated", "saved_gpt_full", "saved_gpt_parallel",
    "saved_gpt_selective", "saved_gpt_sequence_parallel", "saved_gpt_sequence_selective", "saved_llama",
    "saved_llama_full", "stage_embeddings", "stage_params", "state_memory", "train_memory", "training", "wall_params",
    "wall_params_replicated", "zero1", "zero2", "zero3",
]  # fmt: skip


def _trained(*transformations, block):
    """Bytes saved by a block in training, where as many tokens are attended to as are new."""
    return block.then(tensor_parallel, *transformations).saved.subs(symbol("context"), symbol("seq"))


# State: weights, gradients, optimizer


@formula("state_bits", "zero2020 §3.1")
def replicated(weight_bits, gradient_bits, optimizer_bits):
    """Every data-parallel device holds all the state.

    >>> replicated(weight_bits=16, gradient_bits=16, optimizer_bits=96) / 8
    16.0
    """
    return weight_bits + gradient_bits + optimizer_bits


@formula("state_bits", "zero2020 §5.1")
def zero1(weight_bits, gradient_bits, optimizer_bits, dp):
    """ZeRO stage 1, the distributed optimizer: data-parallel devices share the optimizer state.

    >>> zero1(weight_bits=16, gradient_bits=32, optimizer_bits=96, dp=8) / 8
    7.5
    """
    return weight_bits + gradient_bits + optimizer_bits / dp


@formula("state_bits", "zero2020 §5.2")
def zero2(weight_bits, gradient_bits, optimizer_bits, dp):
    """ZeRO stage 2: data-parallel devices share gradients and optimizer state.

    >>> zero2(weight_bits=16, gradient_bits=16, optimizer_bits=96, dp=8) / 8
    3.75
    """
    return weight_bits + (gradient_bits + optimizer_bits) / dp


@formula("state_bits", "zero2020 §5.3")
def zero3(weight_bits, gradient_bits, optimizer_bits, dp):
    """ZeRO stage 3, fully sharded data parallelism: data-parallel devices share everything.

    >>> zero3(weight_bits=16, gradient_bits=16, optimizer_bits=96, dp=8) / 8
    2.0
    """
    return (weight_bits + gradient_bits + optimizer_bits) / dp


@formula("block_params", "korthikanti2022 §4.1")
def block_params_gpt(hidden, ffn, heads, kv_heads, head_dim, tp):
    """A GPT block, a tensor-parallel device's part: matrices and their biases are split, norms are not.

    >>> block_params_gpt(hidden=12288, ffn=49152, heads=96, kv_heads=96, head_dim=128, tp=8)
    226576896.0
    """
    return GPT.then(tensor_parallel).params


@formula("block_params", "shazeer2020")
def block_params_llama(hidden, ffn, heads, kv_heads, head_dim, tp):
    """A gated block with grouped queries and no biases, a tensor-parallel device's part.

    >>> from scalebook.tables import models
    >>> block_params_llama(models.llama3_8b, tp=1)
    218112000.0
    """
    return LLAMA.then(tensor_parallel).params


@formula("stage_embeddings", "narayanan2021 §2.2")
def stage_embeddings(embeddings, pp, stage):
    """The first stage looks words up, the last makes logits: one matrix each, of its own even if they are tied.

    >>> stage_embeddings(embeddings=1, pp=1, stage=1), stage_embeddings(embeddings=1, pp=8, stage=8)
    (1.0, 1.0)
    """
    first, last = Piecewise((1, stage <= 1), (0, True)), Piecewise((1, Ge(stage, pp)), (0, True))
    return first + last - Piecewise((2 - embeddings, pp <= 1), (0, True))  # one stage: as many as the model has


@formula("stage_params", "narayanan2021 §2.2", given=[stage_embeddings, block_params_llama])
def stage_params(block_params, layers, pp, stage_embeddings, vocab, hidden, tp):
    """An even share of the blocks, and the embedding matrices of a first or last stage.

    The share is an average where the blocks do not divide; for a stage of n blocks, layers is n times pp.

    >>> from scalebook.tables import models
    >>> stage_params(models.llama3_8b, tp=1, pp=1, stage=1) / 1e9
    8.030257152
    """
    return block_params * layers / pp + stage_embeddings * vocab * hidden / tp


@formula("padded_layers", "narayanan2021 §2.2")
def padded_layers(layers, pp):
    """As many blocks as equal stages would have; more than the model's where those do not divide.

    >>> padded_layers(layers=126, pp=16), padded_layers(layers=126, pp=6)
    (128.0, 126.0)
    """
    return ceiling(layers / pp) * pp


@formula("state_memory", "zero2020 §3.1", given=[stage_params, replicated])
def state_memory(stage_params, state_bits):
    """Weights, gradients and optimizer state of the parameters that a device holds.

    >>> state_memory(stage_params=1e9, weight_bits=16, gradient_bits=32, optimizer_bits=96)
    18000000000.0
    """
    return stage_params * state_bits / 8


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


@formula("held_microbatches", "huang2019 §2.3")
def held_gpipe(microbatches):
    """GPipe runs all forward passes first, so every stage holds every micro-batch.

    >>> held_gpipe(microbatches=32)
    32.0
    """
    return microbatches


@formula("held_microbatches", "narayanan2021 §2.2.1")
def held_1f1b(microbatches, pp, stage):
    """One forward, one backward (1F1B): a stage runs ahead by the stages behind it.

    There is no value for a stage beyond the last.

    >>> held_1f1b(microbatches=32, pp=8, stage=1), held_1f1b(microbatches=32, pp=8, stage=8)
    (8.0, 1.0)
    """
    return Min(microbatches, pp - stage + 1, evaluate=False)


@formula("held_microbatches", "narayanan2021 §2.2.2")
def held_interleaved(microbatches, pp, stage, chunks):
    """Interleaved 1F1B: a stage holds 2(pp - stage) + (chunks - 1)pp + 1 parts of 1/chunks of its blocks.

    >>> held_interleaved(microbatches=64, pp=8, stage=1, chunks=3) / 8
    1.2916666666666667
    """
    ahead = (2 * (pp - stage) + (chunks - 1) * pp + 1) / chunks
    return Min(microbatches, ahead, evaluate=False)


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
    return Piecewise((batch * seq * vocab / tp * logit_bits / 8, Ge(stage, pp)), (0, True))


@formula("train_memory", "korthikanti2022 §4", given=[state_memory, activation_memory, logits_memory])
def train_memory(state_memory, activation_memory, logits_memory):
    """State, activations and logits: the peak, where the last forward pass ends.

    >>> train_memory(state_memory="18 GB", activation_memory="5 GB", logits_memory="1 GB")
    24000000000.0
    """
    return state_memory + activation_memory + logits_memory


@formula("filled", "korthikanti2022 §1", given=[train_memory])
def filled(train_memory, hbm_capacity):
    """How full the device is; above 1 the stage does not fit.

    >>> filled(train_memory="60 GB", hbm_capacity="80 GB")
    0.75
    """
    return train_memory / hbm_capacity


# The wall


@formula("wall_params", "zero2020 §5.3")
def wall_params(devices, hbm_capacity, weight_bits, gradient_bits, optimizer_bits):
    """The largest model whose state, split over all devices, fills them; activations come on top.

    >>> wall_params(devices=1024, hbm_capacity="80 GB", weight_bits=16, gradient_bits=16, optimizer_bits=96) / 1e12
    5.12
    """
    return devices * hbm_capacity * 8 / replicated.rhs


@formula("wall_params", "zero2020 §5.1")
def wall_params_replicated(tp, pp, dp, hbm_capacity, weight_bits, gradient_bits, optimizer_bits):
    """The same where data-parallel devices share the optimizer state only, so weights and gradients are repeated.

    >>> mixed = dict(weight_bits=16, gradient_bits=32, optimizer_bits=96)
    >>> round(wall_params_replicated(tp=8, pp=8, dp=16, hbm_capacity="80 GB", **mixed) / 1e12, 3)
    0.759
    """
    return tp * pp * hbm_capacity * 8 / zero1.rhs


@formula("devices", "zero2020 §5.3")
def least_devices(params, hbm_capacity, weight_bits, gradient_bits, optimizer_bits):
    """Devices that hold a model's training state between them, not rounded up.

    >>> least_devices(params=1e12, hbm_capacity="80 GB", weight_bits=16, gradient_bits=16, optimizer_bits=96)
    200.0
    """
    return params * replicated.rhs / 8 / hbm_capacity


training = Sheet(
    "training", block_params_llama, stage_embeddings, stage_params, zero1, state_memory, saved_llama, held_1f1b,
    activation_memory, logits_memory, train_memory, filled, padded_layers,
    doc="What one device of a pipeline stage holds in training; a gated model, ZeRO stage 1, 1F1B.",
)  # fmt: skip
