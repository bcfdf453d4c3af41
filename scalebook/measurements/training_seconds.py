"""Table 5 of Korthikanti et al. (2022) as Calculon's own model prices it; ours is the set korthikanti_seconds.

Calculon's figures are not copied: its model, in our letters, is run on the executions and the system it was validated
with.
"""

import re

from scalebook.calculon import execution, library, priced

from .confrontation import Confrontation, Priced
from .sets import stanzas

__all__ = ["CONFRONTATIONS", "calculon_execution"]

_BATCHES = {"megatron-22B": 4, "gpt3-175B": 64, "turing-530B": 280, "megatron-1T": 512}  # sequences a step, table 3
_WAYS = {"megatron-22B": (8, 1, 1), "gpt3-175B": (8, 8, 3), "turing-530B": (8, 35, 3), "megatron-1T": (8, 64, 1)}


def _ways(row) -> dict[str, int]:
    """What a configuration says, such as "64 GPUs t8 p8 v3, full"; what it does not say is as in table 3."""
    found = {x: int(n) for x, n in re.findall(r"\b([tpv])(\d+)\b", row["config"])}
    tp, pp, chunks = _WAYS[row["model"]]
    return dict(tp=found.get("t", tp), pp=found.get("p", pp), chunks=found.get("v", chunks))


def _is_whole(row) -> bool:
    return "full" in row["config"]


def _batch(row) -> int:
    return 4 if row["model"] == "megatron-22B" else 1


def calculon_execution(row) -> dict:
    """The document that Calculon was validated with for a row."""
    ways, whole = _ways(row), _is_whole(row)
    return library.example | {
        "num_procs": ways["tp"] * ways["pp"],
        "tensor_par": ways["tp"],
        "pipeline_par": ways["pp"],
        "data_par": 1,
        "batch_size": _BATCHES[row["model"]],
        "microbatch_size": _batch(row),
        "fused_activation": False,
        "activation_recompute": "full" if whole else "attn_only",
        "pipeline_interleaving": ways["chunks"],
        "optimizer_sharding": False,
        "tensor_par_comm_type": "ar" if whole else "rs_ag",
        "seq_par_ag_redo": not whole,
    }


def _theirs(row) -> float:
    return priced(
        library.models[row["model"]], execution(calculon_execution(row)), library.systems["a100_80g"]
    ).step_time


def _peaks(rows):
    """What devices do at their peaks, which does not depend on who predicts."""
    ours = stanzas()["korthikanti_seconds"]
    return ours.predicted([ours.completed(row) for row in rows])[1:]


def _left_out(row):
    return "" if row["model"] in _BATCHES else "of a run on the A100 with 40 GB, whose strategy the row does not state"


def _kind(row):
    return "all run again" if _is_whole(row) else "sequence parallel, selective"


_WHAT = "Time of a step of Megatron-LM on A100, all eight rows of the table"
CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "korthikanti_calculon",
            "training_step_seconds.csv",
            f"{_WHAT}; priced by Calculon's model with the system file it was validated with.",
            lambda rows: Priced([_theirs(row) for row in rows], *_peaks(rows)),
            "measured_s",
            "s",
            ("korthikanti2022", "isaev2023-calculon"),
            _left_out,
            _kind,
            optional=("row_id", "calculon_s", "source"),
        ),
    )
}
