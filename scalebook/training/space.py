"""The space of training strategies for a search: default values, rules, and combinations that are equivalent.

>>> usual_choices({"devices": 8, "heads": 32, "layers": 32, "seq": 8192})["cp"]
(1, 2)
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from scalebook.language.rules import condition, not_whole
from scalebook.language.stanzas import tables_of
from scalebook.pipeline.schedules import SCHEDULES
from scalebook.search.space import Space, divisors
from scalebook.tables import Framework, frameworks
from scalebook.training.frameworks import words_of
from scalebook.training.optimizers import OPTIMIZERS
from scalebook.training.rules import COUNTS, RULES, reason
from scalebook.training.shardings import SHARDINGS
from scalebook.training.step import DEFAULT_LETTERS, OFFLOADS
from scalebook.training.strategy import CHOICES, PROPERTIES, WORDS

if TYPE_CHECKING:
    from scalebook.search.problem import Problem

__all__ = ["TRAINING", "fewer_chunks", "usual_choices"]


def usual_choices(known: Mapping[str, Any]) -> dict[str, tuple]:
    """Return the values that a search tries by default for each input. `cp` leaves 4,096 tokens or more on a device."""
    ways = divisors(known["devices"])
    return {
        "recompute": ("none", "full"), "sequence_parallel": (True,), "attention": ("flash",),
        "sharding": ("zero1", "zero2", "zero3"), "schedule": ("1f1b", "interleaved"),
        "tp": tuple(x for x in ways if x <= known.get("heads", x)),
        "cp": tuple(x for x in ways if x == 1 or np.max(known.get("seq", 0)) >= 4096 * x),
        "ep": tuple(x for x in ways if x == 1 or (known.get("experts", 0) and known["experts"] % x == 0)),
        "pp": tuple(x for x in ways if x <= known.get("layers", x)), "batch": (1, 2, 4, 8),
        "chunks": (1, 2, 3, 4, 6, 8),
    }  # fmt: skip


def _longest(known: Mapping) -> dict:
    return {"seq": known["max_context"]} if "seq" not in known and "max_context" in known else {}


def _schedules(problem: "Problem") -> tuple[Callable, ...]:
    """Return conditions that drop equivalent combinations of words, and combinations that a strategy refuses."""
    words, chunks = problem.words, problem.letters.get("chunks", ())
    none, one = "none" in words.get("recompute", ()), chunks[:1] == (1.0,)
    plain = WORDS["schedule"].usual in words.get("schedule", ())
    return (
        lambda recompute, attention: not (none and recompute == "selective" and attention == "flash"),
        lambda optimizer, trained: trained == "all" or not OPTIMIZERS[optimizer].mode,
        lambda schedule, chunks: (chunks > 1) | (not plain) if SCHEDULES[schedule].plain else (chunks == 1) | (not one),
    )


def fewer_chunks(problem: "Problem", new: Mapping, changed: Mapping) -> dict:
    """Return {"chunks": n} for a changed `pp`: the largest smaller n that divides its stages. {} if there is none."""
    if "pp" not in changed:
        return {}
    stage, choices = -(-problem.values["layers"] // new["pp"]), problem.letters.get("chunks", ())
    fits = [x for x in choices if stage % x == 0 and x <= new["chunks"]]
    return {"chunks": max(fits)} if fits and stage % new["chunks"] else {}


def _settle(problem: "Problem", new: Mapping, changed: Mapping) -> dict:
    more = fewer_chunks(problem, new, changed)
    changed, new = {**changed, **more}, {**new, **more}
    schedules, schedule = problem.words.get("schedule", ()), new.get("schedule", WORDS["schedule"].usual)
    if "chunks" in changed and new["chunks"] == 1 and SCHEDULES[schedule].plain in schedules:
        return more | {"schedule": SCHEDULES[schedule].plain}
    in_chunks = next((x for x in schedules if SCHEDULES[x].plain == schedule), None)
    if "chunks" in changed and new["chunks"] > 1 and in_chunks:
        return more | {"schedule": in_chunks}
    if "schedule" in changed and SCHEDULES[schedule].plain is None and 1.0 in problem.letters.get("chunks", ()):
        return more | {"chunks": 1.0}
    return more


def _of_framework(rows: tuple, words: Mapping[str, tuple]) -> dict[str, tuple]:
    """Return the words of the framework that a search names, each with its default as the only value."""
    named = [x for x in rows if isinstance(x, Framework)] or [frameworks[x] for x in words.get("framework", ())]
    words = words_of(named[0]) if len(named) == 1 else {}
    return {n: (str(x) if n != "sequence_parallel" else x,) for n, x in words.items()}


TRAINING = Space(
    words=CHOICES | {"framework": tuple(frameworks)},
    spelled={"recompute": WORDS["recompute"].value},
    usual=usual_choices,
    rules=RULES,
    limits=("memory <= hbm_capacity", "offload_memory <= host_capacity"),
    margins=("memory",),
    shown=("run_time", "run_cost", "run_energy", "train_rate", "device_rate"),
    shown_with="train_tokens",
    reason=reason,
    axes=("step_time", "memory"),
    letters=DEFAULT_LETTERS,
    within=_schedules,
    layout=("tp", "cp", "ep", "pp", "dp"),
    beside=("ep",),
    needed=("devices", "global_batch", "seq"),
    assumed=_longest,
    stated=_of_framework,
    follows={"microbatches": lambda global_batch, dp, batch: global_batch / (dp * batch)},
    offloads=OFFLOADS,
    elsewhere={
        "offload": "offload follows from weight_offload, activation_offload and optimizer_offload: give these",
        "microbatches": "microbatches follow from global_batch, dp and batch: give these",
    },
    order={
        "sharding": lambda x: SHARDINGS[x].is_gathered,
        "schedule": lambda x: x != WORDS["schedule"].usual,
        "chunks": float,
    },  # the fewest first: a stage has at least one
    wrong=lambda name, value: not_whole(name, value) if name in COUNTS else None,
    settle=_settle,
    idle={name: x.says for name, x in WORDS.items() if x.says}
    | {name: condition(text, **PROPERTIES) for name, text in tables_of(__package__, "space.toml").items()},
)
