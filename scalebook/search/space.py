"""Spaces of strategies: what a search has to know of a callable, and that of `training_step`.

>>> divisors(12)
(1, 2, 3, 4, 6, 12)
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from scalebook.parallelism import CHOICES
from scalebook.training import OFFLOADS, USUAL
from scalebook.validity import RULES, Rule, reason

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["LAYOUT", "OFFLOADS", "TRAINING", "Space", "divisors", "needs", "told", "usual_choices"]

LAYOUT = ("tp", "cp", "ep", "pp", "dp")


def divisors(number: float) -> tuple[int, ...]:
    """All of them, in order."""
    return tuple(sympy.divisors(int(number)))


def usual_choices(known: Mapping[str, Any]) -> dict[str, tuple]:
    """What is searched unless a call says otherwise.

    Every layout of the devices, sequences split where each device keeps 4,096 tokens, a few micro-batch sizes and
    chunks; fused attention, whole recomputation or none, sharded state, and the two common schedules.
    """
    ways = divisors(known["devices"])
    return {
        "recompute": ("none", "full"), "sequence_parallel": (True,), "attention": ("flash",),
        "sharding": ("zero1", "zero2", "zero3"), "schedule": ("1f1b", "interleaved"),
        "tp": tuple(x for x in ways if x <= known.get("heads", x)),
        "cp": tuple(x for x in ways if x == 1 or np.max(known.get("seq", 0)) >= 4096 * x),
        "ep": tuple(x for x in ways if x == 1 or (known.get("experts", 0) and known["experts"] % x == 0)),
        "pp": tuple(x for x in ways if x <= known.get("layers", x)),
        "batch": (1, 2, 4, 8), "chunks": (1, 2, 3, 4, 6, 8),
    }  # fmt: skip


def _follows(v: Mapping) -> dict:
    """Letters that follow from a strategy's: micro-batches, and the ways of experts' widths where nothing is said of them."""
    return {"microbatches": v["global_batch"] / (v["dp"] * v["batch"]), "etp": v.get("etp", v["tp"])}


def _are_shared(dp, cp, schedule):
    """Whether several devices hold the same weights: with DualPipe two always do."""
    return (dp * cp > 1) | (schedule == "dualpipe")


def _schedules(problem: "Problem") -> tuple[Callable, ...]:
    """What repeats another combination of words: fused attention runs itself again, one interleaved chunk is 1F1B."""
    words, chunks = problem.words, problem.letters.get("chunks", ())
    none, plain, one = "none" in words.get("recompute", ()), "1f1b" in words.get("schedule", ()), chunks[:1] == (1.0,)
    return (
        lambda recompute, attention: not (none and recompute == "selective" and attention == "flash"),
        lambda schedule, chunks: (chunks > 1) | (not plain) if schedule == "interleaved" else (chunks == 1) | (not one),
    )


@dataclass(frozen=True)
class Space:
    """What a search needs to know of a callable's strategies; it brings one as its `space`, or has that of `TRAINING`.

    `words` and what each may be; `usual`, what is searched where nothing is said, of what is known; `idle`, of a letter
    or word whether it says anything: where not it keeps its first value, and is not counted again; `rules` and `limits`,
    by which strategies are left out, and `reason`, the sentence why; `axes`, what is minimized against what; `letters`,
    known unless given; `apart`, words that change nothing in a block; `within`, conditions of what is of the space at
    all; `follows`, letters that follow from the others.
    """

    words: Mapping[str, tuple]
    usual: Callable[[Mapping[str, Any]], dict[str, tuple]]
    idle: Mapping[str, Callable]
    rules: tuple[Rule, ...]
    limits: tuple[str, ...]
    reason: Callable[[Mapping, Any, Iterable[str]], str | None]
    axes: tuple[str, str]
    letters: Mapping[str, float]
    apart: tuple[str, ...]
    within: Callable[["Problem"], tuple[Callable, ...]]
    follows: Callable[[Mapping], dict] = _follows


TRAINING = Space(
    words=CHOICES, usual=usual_choices, rules=RULES, limits=("memory <= hbm_capacity", "offload_memory <= host_capacity"),
    reason=reason, axes=("step_time", "memory"), letters=USUAL, apart=("sharding", "schedule"), within=_schedules,
    idle={
        **dict.fromkeys(("tp_overlap", "sequence_parallel"), lambda tp: tp > 1),
        **dict.fromkeys(("cp_overlap", "context_exchange"), lambda cp: cp > 1),
        "ep_overlap": lambda ep: ep > 1, "etp": lambda experts, tp: (experts > 0) & (tp > 1),
        **dict.fromkeys(("pp_overlap", "schedule", "chunks"), lambda pp: pp > 1),
        **dict.fromkeys(("dp_overlap", "sharding"), lambda dp, cp, schedule: _are_shared(dp, cp, schedule)),
        "shard_group": lambda dp, cp, schedule, sharding: _are_shared(dp, cp, schedule) & (sharding == "hybrid"),
        **dict.fromkeys(OFFLOADS, lambda layers, pp, near_blocks: -(-layers // pp) >= near_blocks),
        "near_blocks": lambda weight_offload, activation_offload, optimizer_offload:
            (weight_offload > 0) | (activation_offload > 0) | (optimizer_offload > 0),
    },
)  # fmt: skip


def told(f: Callable, values: Mapping) -> Any:
    """A function of what its parameters are named after; None where something is not known."""
    return f(*(values[x] for x in needs(f))) if all(x in values for x in needs(f)) else None


def needs(f: Callable) -> tuple[str, ...]:
    """The letters and words that a condition is about."""
    return f.__code__.co_varnames[: f.__code__.co_argcount]
