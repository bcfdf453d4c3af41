"""Errors of Calculon's memory figures on our sets of measurements, and which runs of nanotron should fit."""

import numpy as np

from scalebook.measurements import confront
from scalebook.measurements.calls import row_of
from scalebook.measurements.columns import nanotron_stages
from scalebook.measurements.rows import number
from scalebook.measurements.sets import stanzas
from scalebook.tables import accelerators, frameworks
from scalebook.training import training_step

__all__ = ["CALCULON", "calculon", "nanotron_verdict"]

# Calculon's figures (isaev2023, at caa4b11) for the rows of korthikanti_memory.csv, from its shipped validation runs:
# bytes of weights, gradients and optimizer state; then bytes of activations and checkpoints for each mode, in order.
_MODES = ("baseline(TP only)", "SP", "selective", "SP+selective", "full recompute")
CALCULON = {
    "GPT-22B": (43618713600, (63820529664, 42706403328, 27548188672, 11165237248, 6358564864)),
    "GPT-175B": (43949064192, (71873593344, 44581257216, 34728837120, 13627293696, 6920601600)),
    "GPT-530B": (31461376000, (122599505920, 71607255040, 64718110720, 25302138880, 12708741120)),
    "GPT-1T": (33426841600, (141138329600, 82444288000, 74553753600, 29176627200, 14732492800)),
}


_SHAPE = ("hidden", "ffn", "heads", "kv_heads", "head_dim", "vocab", "embeddings")


def calculon(name: str) -> np.ndarray:
    """Return Calculon's errors, predicted / measured - 1, for a set of measurements in korthikanti_memory.csv."""
    result, found = confront(name), []
    for row in result.rows:
        state, kept = CALCULON[row["model"]]
        held = kept[_MODES.index(row["mode"])]
        values = dict(korthikanti_state=state / 2**30, korthikanti_memory=held / 2**30)
        found.append(values.get(name, 100 * held / kept[0]))
    return np.array(found) / result.measured - 1


def nanotron_verdict(rows, room: float = accelerators.h100.hbm_capacity) -> dict[str, tuple[int, int]]:
    """Count the runs predicted to fit in `room` bytes, and all runs, for nanotron runs that ran and that failed.

    A run may fail for other reasons than memory.
    """
    fits = _fullest(rows) <= room
    ok, failed = (np.array([row["status"] == x for row in rows]) for x in ("ok", "failed_oom_or_crash"))
    return {"ran": (int(fits[ok].sum()), int(ok.sum())), "failed": (int(fits[failed].sum()), int(failed.sum()))}


def _fullest(rows) -> np.ndarray:
    """Return the bytes on each run's fullest stage; runs with equal state are priced together."""
    stanza, alike, fullest = stanzas()["nanotron_memory"], {}, np.zeros(len(rows))
    for place, row in enumerate(map(stanza.completed, rows)):
        call = stanza.call(row)
        shape = {n: x for n, x in row_of(call.rows[0]).items() if n in _SHAPE}
        each = nanotron_stages(*(int(number(row, x)) for x in ("layers", "hidden", "ffn", "vocab", "pp")))
        for stage, (blocks, *_) in enumerate(each[: int(row["used_stages"])], 1):
            held = min(number(row, "grad_acc"), number(row, "pp") - stage + 1)
            own = dict(stage=stage, stage_blocks=max(blocks, 1), last_blocks=blocks, held_microbatches=held)
            alike.setdefault(call.letters["sharding"], []).append(call.letters | shape | own | {"place": place})
    for sharding, stages in alike.items():
        columns = {n: np.array([x[n] for x in stages]) for n in stages[0] if n not in ("sharding", "attention")}
        which = columns.pop("place")
        model = dict(layers=1, gating=1)  # the stages give the number of layers
        known = (model, accelerators.h100.at("bf16"), frameworks.nanotron)
        sheet, known, letters = training_step.sheet(known, dict(columns, sharding=sharding))
        np.maximum.at(fullest, which, sheet(*known, **letters).train_memory)  # as a sheet: no rule refuses it
    return fullest
