"""Models and systems that come with Calculon or its reference runs, also as table rows, and its example execution.

Source: Calculon (https://github.com/calculon-ai/calculon) at caa4b11, Apache License 2.0. 13 models and 3 systems are
unchanged. The others are variants of them: the twelve shapes of its poster, and machines with another second tier.
"""

import json

from scalebook.language import Row
from scalebook.language.arguments import checked
from scalebook.language.notation import nearest, quoted
from scalebook.language.row import Cell, one_number
from scalebook.language.stanzas import file_of

from .documents import application, execution
from .systems import System, system

__all__ = ["example", "machine", "models", "sample", "shape", "systems"]


def _load(name):
    return json.loads(file_of(__package__, name).read_text("utf-8"))


models: dict[str, dict] = _load("models.json")
systems: dict[str, System] = {name: system(document, name) for name, document in _load("systems.json").items()}
example: dict = _load("example.json")
sample = execution(example, "Calculon's example")

# Least-squares fit of predicted/reported time - 1 on the A100 runs of offload_calculon; a test repeats it.
_FLOPS_EFFICIENCY, _LINK_EFFICIENCY = 0.902, 0.515
_FITTED = "calibrated by us on the time of the forward pass in the runs on the A100 of offload_calculon"


@checked
def shape(name: str) -> Row:
    """Return a model of Calculon's library, such as "turing-530B", as a row. Raises LookupError for an unknown one."""
    if name not in models:
        raise LookupError(f"Calculon has no model {quoted(name)}; {nearest(name, models)}")
    return application(models[name], name)


@checked
def machine(name: str, tp: float = 1, network: int | None = None) -> Row:
    """Return a system's peak FLOP/s, the share of it that a block reaches, and the bytes/s that `tp` devices exchange.

    Collectives run on the first network that is large enough, or on network number `network`. Raises LookupError for an
    unknown system.

    >>> round(machine("h100_80g_nvl8", 16).link_achieved / 1e9, 2)
    35.65
    """
    if name not in systems:
        raise LookupError(f"Calculon has no system {quoted(name)}; {nearest(name, systems)}")
    system, tp = systems[name], one_number("tp", tp)
    if network is not None and (not isinstance(network, int) or network not in range(len(system.networks))):
        raise LookupError(f"{name} has networks 0 to {len(system.networks) - 1}, and none called {quoted(network)}")
    networks = system.networks
    fits = (i for i, x in enumerate(networks) if x.size >= tp)
    used = networks[next(fits, len(networks) - 1) if network is None else network]
    # Relative to the first network, by the bytes that an all-gather sends on each.
    rates = [x.bandwidth / _sent(x, tp) for x in (used, networks[0])]
    cells = {
        "peak_flops": Cell(system.matrix["float16"].peak, name, "calculon-systems"),
        "flops_efficiency": Cell(_FLOPS_EFFICIENCY, name, "calculon-runs", _FITTED),
        "link_achieved": Cell(
            _LINK_EFFICIENCY * networks[0].printed * rates[0] / rates[1], name, "calculon-runs", _FITTED
        ),
    }
    return Row(name, cells)


def _sent(network, tp: float) -> float:
    return next(scale * (1 + offset / max(2, tp)) for kind, scale, offset in network.ops if kind == "all_gather")
