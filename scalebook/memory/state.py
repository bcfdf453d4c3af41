"""Training state in bits per parameter, and the memory walls: the largest models that fit on given devices.

The total memory of a pipeline stage is in `scalebook.training.memory_sheet`.
"""

from sympy import sqrt

from scalebook.block import LLAMA
from scalebook.language import formula, formulas_of, symbol
from scalebook.language.defaults import equations

_OWN = equations(__name__)  # those of state.toml


@formula("wall_params", "zero2020 §5.3")
def wall_params(devices, hbm_capacity, weight_bits, gradient_bits, optimizer_bits):
    """Parameters of the largest model whose state, split over all devices, fills them. Activations come on top.

    >>> wall_params(devices=1024, hbm_capacity="80 GB", weight_bits=16, gradient_bits=16, optimizer_bits=96) / 1e12
    5.12
    """
    return devices * hbm_capacity * 8 / _OWN.replicated.rhs


@formula("wall_params", "zero2020 §5.1")
def wall_params_replicated(tp, pp, dp, hbm_capacity, weight_bits, gradient_bits, optimizer_bits):
    """Parameters of the largest model that fits if data parallelism shards only the optimizer state (ZeRO stage 1).

    >>> mixed = dict(weight_bits=16, gradient_bits=32, optimizer_bits=96)
    >>> wall_params_replicated(mixed, tp=8, pp=8, dp=16, hbm_capacity="80 GB") / 1e12
    0.7585185185185186
    """
    return tp * pp * hbm_capacity * 8 / _OWN.zero1.rhs


@formula("wall_params", "korthikanti2022 §4.2.3")
def wall_params_pipeline(hbm_capacity, tp, batch, seq, kept_values, activation_bits, aspect):
    """Parameters of the largest model whose activations fit on the first 1F1B stage if its state took no memory.

    The hidden size is `aspect` times the number of layers. Other sizes are in Llama 3's ratios.

    >>> kept = dict(activation_bits=16, aspect=128, batch=1, seq=8192, tp=8)
    >>> round(wall_params_pipeline(hbm_capacity="80 GB", kept_values=16.75, **kept) / 1e9)
    514
    """
    layers = sqrt(8 * hbm_capacity * tp / (kept_values * activation_bits * batch * seq * aspect))
    width = symbol("hidden")
    alike = {"ffn": width * 7 / 2, "heads": width / 128, "kv_heads": width / 1024, "head_dim": 128}
    block = LLAMA.params.subs({symbol(k): v for k, v in alike.items()}).expand().coeff(width, 2)  # norms are left out
    return block * (aspect * layers) ** 2 * layers


@formula("devices", "zero2020 §5.3")
def least_devices(params, hbm_capacity, weight_bits, gradient_bits, optimizer_bits):
    """Fewest devices that together hold a model's training state, not rounded up.

    >>> least_devices(params=1e12, hbm_capacity="80 GB", weight_bits=16, gradient_bits=16, optimizer_bits=96)
    200.0
    """
    return params * _OWN.replicated.rhs / 8 / hbm_capacity


__all__ = [*formulas_of(__name__)]
