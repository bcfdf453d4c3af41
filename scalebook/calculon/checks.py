"""Say why a strategy cannot run, in one sentence that names the input to change and the values that would work."""

from math import ceil, prod

from scalebook.language import Row, show

from .documents import Execution, divisors, listed
from .systems import System

__all__ = ["refuse", "refuse_memory"]


def refuse(model: Row, strategy: Execution, machine: System) -> None:
    """Raise ValueError for a strategy that does not fit the model's shape or the machine's networks.

    The error message says which values would work, as in "chunks=3 does not divide the 2 blocks of a stage: ...".
    """
    choices = strategy.choices
    machine.tables(strategy)
    _networks(model, strategy, machine)
    tp, pp, chunks = (int(strategy[x]) for x in ("tp", "pp", "chunks"))
    layers = int(model.layers)
    blocks = ceil(layers / pp)
    if blocks % chunks:
        raise ValueError(
            f"chunks={chunks} does not divide the {blocks} blocks of a stage: chunks may be {divisors(blocks)}"
        )
    offloads = choices.weight_offload, choices.activation_offload, choices.optimizer_offload
    if any(offloads) and blocks < 3:
        most, said = ceil(layers / 2) - 1, f"offloading needs at least 3 blocks in a stage, and pp={pp} leaves {blocks}"
        hint = f"pp of at most {most} would do" if most > 0 else f"a model of {layers} blocks cannot be offloaded"
        raise ValueError(f"{said} of {layers}: {hint}")
    for letter in ("hidden", "ffn", "heads"):
        if model[letter] % tp:
            shape = [model[x] for x in ("hidden", "ffn", "heads")]
            raise ValueError(f"tp={tp} does not divide {letter}={model[letter]:.0f}: tp may be {divisors(*shape)}")
    tokens = int(strategy.batch * model.seq)
    if choices.exchange != "ar" and tokens % tp:
        raise ValueError(
            f"tp={tp} does not divide the {tokens} tokens of a micro-batch: tp may be {divisors(tokens)}, "
            "or tensor_par_comm_type 'ar'"
        )


def _networks(model, strategy, machine):
    """Raise ValueError unless the devices on each network fit it and, where the network demands it, fill it evenly."""
    ways = dict(zip(("tp", "pp", "dp"), strategy.choices.tiers, strict=True))
    for tier in sorted(set(ways.values())):
        network = machine.networks[tier]
        here = [x for x in ways if ways[x] == tier and strategy[x] > 1]
        devices = prod(int(strategy[x]) for x in here)
        said = f"{' · '.join(here)}={devices}" if len(here) > 1 else "".join(f"{x}={strategy[x]:.0f}" for x in here)
        if devices > network.size:
            wrong = f"needs more than the {network.size} devices of network {tier}"
        elif here and network.whole and network.size % devices:
            wrong = f"does not fill the {network.size} devices of network {tier} evenly"
        else:
            continue
        others = devices // int(strategy[here[0]])
        shape = [model[x] for x in ("hidden", "ffn", "heads")] if here[0] == "tp" else []
        fits = [n for n in range(1, network.size // others + 1) if not any(x % n for x in shape)]
        fits = [n for n in fits if not network.whole or not network.size % (n * others)]
        hint = f"{here[0]} may be {listed(fits)}" if fits else "another network would do"
        raise ValueError(f"{said} {wrong}: {hint}")


def refuse_memory(run: Row, machine: System, lighter=lambda: ()) -> None:
    """Raise ValueError if a run needs more than the device memory, or more than the second memory (such as the host's).

    `lighter` yields changes that need less memory, each with its memory, for the error message.
    """
    near, far = machine.near.capacity, machine.far.capacity
    for letter, limit, room in (("train_memory", "hbm_capacity", near), ("offload_memory", "host_capacity", far)):
        if run[letter] > room:
            fits = (x for x in lighter() if x[1] <= near) if limit == "hbm_capacity" else ()
            also = (f"activation_recompute={word!r}, which takes {show(taken, 'B')}, or " for word, taken in fits)
            raise ValueError(
                f"{letter} is {show(run[letter], 'B')} and {limit} {show(room, 'B')}: {next(also, '')}"
                f"{limit} of {show(ceil(run[letter] / 1e9) * 1e9, 'B')} would do"
            )
