"""Table 5 of Korthikanti et al. (2022) as Calculon's own model prices it; our prediction is the set
korthikanti_seconds.

It is code because Calculon is called with documents, not with letters. Its figures are not copied: its model, in our
letters, is run on the executions and the system it was validated with.
"""

from scalebook.calculon import execution, library, priced

from .confrontation import Confrontation, Priced
from .sets import stanzas

__all__ = ["CONFRONTATIONS", "calculon_execution"]

_OURS = stanzas()["korthikanti_seconds"]


def calculon_execution(row) -> dict:
    """Return the document that Calculon was validated with for a row; our set's stanza reads the layout."""
    said = _OURS.call(_OURS.completed(row)).letters
    whole = said["recompute"] == "full"
    return library.example | {
        "num_procs": int(said["tp"] * said["pp"]),
        "tensor_par": int(said["tp"]),
        "pipeline_par": int(said["pp"]),
        "data_par": 1,
        "batch_size": said["global_batch"],
        "microbatch_size": said["batch"],
        "fused_activation": False,
        "activation_recompute": "full" if whole else "attn_only",
        "pipeline_interleaving": int(said["chunks"]),
        "optimizer_sharding": False,
        "tensor_par_comm_type": "ar" if whole else "rs_ag",
        "seq_par_ag_redo": not whole,
    }


def _priced(rows):
    system = library.systems["a100_80g"]
    runs = [priced(library.models[row["model"]], execution(calculon_execution(row)), system) for row in rows]
    peaks = _OURS.predicted([_OURS.completed(row) for row in rows])[1:]  # the peaks do not depend on the model
    return Priced([run.step_time for run in runs], *peaks)


CONFRONTATIONS = {
    "korthikanti_calculon": Confrontation(
        "korthikanti_calculon",
        "training_step_seconds.csv",
        "Time of a step of Megatron-LM on A100, all eight rows of the table; priced by Calculon's model with the "
        "system file it was validated with.",
        _priced,
        "measured_s",
        "s",
        ("korthikanti2022", "isaev2023-calculon"),
        _OURS.left_out,
        _OURS.group,
        optional=("row_id", "calculon_s", "source"),
        why="Calculon is called with documents, an execution and a system file, and not with letters.",
    )
}
