"""What training must hold on one device: state, activations and logits, stage by stage of a pipeline.

Activations and logits are those of `scalebook.memory.activations`; a block's parameters are a sum over its listing
(`scalebook.block`).  Left out as small: the last norm, learned positions, the batch itself.  Left out too: work
space of libraries, fragments, buffers of communication, gathered tensors, steps that are not fused.

>>> from scalebook.tables import accelerators, models
>>> one = dict(tp=1, pp=1, dp=1, stage=1, microbatches=1, batch=1, seq=4096, activation_bits=16)
>>> bits = dict(weight_bits=16, gradient_bits=32, optimizer_bits=96, logit_bits=48)
>>> row = training(models.llama3_8b, **one, **bits)
>>> round(row.state_memory / 1e9, 1), round(row.activation_memory / 1e9, 1)
(144.5, 18.3)
"""

from sympy import Ge, Piecewise, ceiling, sqrt

from scalebook.block import GPT, HEAD, LLAMA, tensor_parallel
from scalebook.language import Sheet, formula, symbol
from scalebook.memory.activations import activation_memory, logits_memory, saved_llama
from scalebook.pipeline.stages import held_1f1b

__all__ = [
    "block_params_gpt", "block_params_llama", "filled", "least_devices", "padded_layers", "replicated",
    "stage_embeddings", "stage_params", "state_memory", "train_memory", "training", "wall_params",
    "wall_params_pipeline", "wall_params_replicated", "zero1", "zero2", "zero3",
]  # fmt: skip


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
    matrix = next(x for x in HEAD.then(tensor_parallel).weights if x.name == "Wout")
    return block_params * layers / pp + stage_embeddings * matrix.elements


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


# The peak


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


@formula("wall_params", "korthikanti2022 §4.2.3")
def wall_params_pipeline(hbm_capacity, tp, batch, seq, kept_values, activation_bits, aspect):
    """The largest model for whose activations the first 1F1B stage has room, were its state split to nothing.

    That stage keeps one micro-batch of a whole model, however many stages there are.  The models are `aspect` times
    as wide as deep and shaped like Llama 3: feed-forward 3.5 times as wide, 8 queries to a key-value head.

    >>> kept = dict(activation_bits=16, aspect=128, batch=1, seq=8192, tp=8)
    >>> round(wall_params_pipeline(hbm_capacity="80 GB", kept_values=16.75, **kept) / 1e9)
    514
    """
    layers = sqrt(8 * hbm_capacity * tp / (kept_values * activation_bits * batch * seq * aspect))
    width = symbol("hidden")
    alike = {"ffn": width * 7 / 2, "heads": width / 128, "kv_heads": width / 1024, "head_dim": 128}
    block = LLAMA.params.subs({symbol(k): v for k, v in alike.items()}).expand().coeff(width, 2)  # without the norms
    return block * (aspect * layers) ** 2 * layers


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
