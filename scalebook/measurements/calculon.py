"""Calculon's model (another performance model), compared with its own published outputs and with measured steps.

The outputs are predictions, not measurements: that we reproduce them shows that formulas can express a peer's whole
model. The set `calculon` prices every run with Calculon's own assumptions, and `calculon_mended` leaves out its quirks;
groups name the quirks that affect a run. `korthikanti_calculon` is table 5 of Korthikanti et al. (2022) as Calculon
prices it; our own prediction is the set `korthikanti_seconds`. Nothing is calibrated.
"""

from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from scalebook.calculon import QUIRKS, Choices, calculon_step, execution, library
from scalebook.calculon import priced as price
from scalebook.language.notation import quoted
from scalebook.language.stanzas import file_of, tables_of

from .confrontation import Confrontation, Priced, Result
from .rows import Measurement, read_rows
from .sets import stanzas

__all__ = ["CONFRONTATIONS", "Outputs", "calculon_execution", "priced"]

OUTPUTS = tables_of("scalebook.calculon", "outputs.toml")  # Calculon's name for each of its outputs, by our letter
_LETTERS = [letter for letters in OUTPUTS.values() for letter in letters]
_COLUMNS = {column for letters in OUTPUTS.values() for column in letters.values()}
_FLAGS = {"True": True, "False": False}


def _strategy(row: Measurement) -> dict:
    found = {}
    for name, value in library.example.items():
        found[name] = text = row[name].strip()
        if isinstance(value, bool):
            found[name] = _FLAGS.get(text, text)
        elif isinstance(value, int) and text.replace(".0", "").isdecimal():
            found[name] = int(float(text))
    return found


def priced(row: Measurement, mended="") -> dict[str, float] | str:
    """Return what Calculon's model predicts for a run of its published outputs, or a sentence if it refuses the run.

    `mended` names quirks of Calculon to leave out.
    """
    return _priced(row["model"], row["system"], tuple(_strategy(row).items()), mended)


@cache
def _priced(model, machine, strategy, mended):
    try:
        step = price if mended else calculon_step  # a run may fit only with its quirks
        run = step(library.models[model], dict(strategy), library.systems[machine], mended=mended)
    except ValueError as error:
        return str(error)
    return {letter: run.get(letter, 0.0) for letter in _LETTERS}


def _is_known(row) -> bool:
    return row["model"] in library.models and row["system"] in library.systems


def _left_out(row):
    if not _is_known(row):
        return "of a model or system that does not come with the package"
    found = priced(row)
    if not isinstance(found, str):
        return "refused by Calculon alone" if row.get("error") else ""
    who = "Calculon and us" if row["error"] else "us alone"
    return f"refused by {who} ({found.split('=')[0].split()[0]})"


def _step_times(rows, mended="") -> Priced:
    runs = [priced(row, mended) for row in rows]
    times = np.array([run["step_time"] for run in runs])
    return Priced(times, times * np.array([run["useful_share"] for run in runs]))


def _call(row, thing="calculon_step", more="") -> str:
    model, machine = (f"calculon.library.{x}s[{row[x]!r}]" for x in ("model", "system"))
    return f"calculon.{thing}({model}, {_strategy(row)!r}, {machine}{more}).step_time"


def _choices(row) -> Choices:
    return execution(_strategy(row)).choices


def _kind(row):
    c = _choices(row)
    overlap = f"tensor-parallel overlap {c.overlap}" if c.overlap != "none" else ""
    hidden = "gradients hidden" if c.dp_overlap else ""
    return " and ".join(filter(None, [overlap, hidden])) or "no overlap"


_TIMED = ("running_totals", "pipe_tile", "again_exposed", "fused_traffic", "send_latency", "narrow_gradients")


def _met(row):
    choices = _choices(row)
    met = [x for x in _TIMED if QUIRKS[x].concerns(choices) and (choices.dp_overlap or x != "running_totals")]
    return ", ".join(met) or "no quirk"


def _reported(row, column) -> float:
    """Return a number that Calculon reports, which may be zero; raises ValueError naming row and column otherwise."""
    try:
        return float(row[column])
    except ValueError:
        raise ValueError(f"{row['row_id']}: {column} is {quoted(row[column])}, not a number") from None


@dataclass(frozen=True, eq=False)
class Outputs(Result):
    """Errors of our version of Calculon against Calculon's own outputs. `refused` says why some runs are left out."""

    refused: dict[str, str] = field(default_factory=dict)

    @cached_property
    def outputs(self) -> dict[str, dict]:
        """For each of Calculon's outputs: number of compared values, largest |predicted/reported - 1|, and its run.

        If Calculon reports 0, any other value counts as an error of 1.
        """
        found = {}
        for kind, letters in OUTPUTS.items():
            compared, worst, where = 0, 0.0, ""
            for row in self.rows:
                ours = priced(row)
                for letter, column in letters.items():
                    if row.get(column, "") in ("", "None"):
                        continue
                    theirs, compared = _reported(row, column), compared + 1
                    error = abs(ours[letter] / theirs - 1) if theirs else float(ours[letter] != 0)
                    if error > worst:
                        worst, where = error, f"{column} of {row['row_id']}"
            found[kind] = {"values": compared, "worst": worst, "where": where}
        return found

    @cached_property
    def quirks(self) -> dict[str, int]:
        """The number of runs whose step time each of Calculon's quirks changes."""
        met = list(map(_choices, self.rows))
        return {name: sum(quirk.concerns(x) for x in met) for name, quirk in QUIRKS.items()}

    def record(self):
        return super().record() | {"outputs": self.outputs, "quirks": self.quirks, "refused": self.refused}

    def __repr__(self):
        outputs = (f"{k}: {x['values']} values, worst {x['worst']:.1e} {x['where']}" for k, x in self.outputs.items())
        quirks = (f"{k}, {n} runs: {QUIRKS[k].words}" for k, n in self.quirks.items() if n)
        refused = [f"{name}: {said}" for name, said in self.refused.items()]
        more = [f"and {len(refused) - 20} more"] if len(refused) > 20 else []
        lines = ["All outputs:", *outputs, "Quirks, priced as they are:", *quirks, "Runs that cannot be:"]
        return "\n".join([super().__repr__(), *lines, *refused[:20], *more])


class _Runs(Confrontation):
    def __call__(self, path=None) -> Outputs:
        result = super().__call__(path)
        rows, _ = read_rows(file_of(__package__, self.file) if path is None else Path(path))
        refused = {row["row_id"]: said for row in filter(_is_known, rows) if isinstance(said := priced(row), str)}
        return Outputs(**{f.name: getattr(result, f.name) for f in fields(Result)}, refused=refused)


# Table 5 of Korthikanti et al. (2022).  Calculon's figures are not copied: its model, in our letters, is run on the
# executions and the system it was validated with.

_OURS = stanzas()["korthikanti_seconds"]


def calculon_execution(row) -> dict:
    """Return the execution document (Calculon's description of a strategy) for a row of Calculon's own validation."""
    said = _OURS.call(_OURS.completed(row)).letters
    whole = said["recompute"] == "full"
    return library.example | {
        "num_procs": int(said["tp"] * said["pp"]), "tensor_par": int(said["tp"]), "pipeline_par": int(said["pp"]),
        "data_par": 1, "batch_size": said["global_batch"], "microbatch_size": said["batch"],
        "fused_activation": False, "activation_recompute": "full" if whole else "attn_only",
        "pipeline_interleaving": int(said["chunks"]), "optimizer_sharding": False,
        "tensor_par_comm_type": "ar" if whole else "rs_ag", "seq_par_ag_redo": not whole,
    }  # fmt: skip


def _korthikanti_times(rows) -> Priced:
    system = library.systems["a100_80g"]
    runs = [price(library.models[row["model"]], execution(calculon_execution(row)), system) for row in rows]
    peaks = _OURS.predicted([_OURS.completed(row) for row in rows])[1:]  # the peaks do not depend on the model
    return Priced([run.step_time for run in runs], *peaks)


_OPTIONAL = ("row_id", "tag", "error", *sorted(_COLUMNS - {"total_time"}))
_WHAT = "Step time of Calculon's runs; its outputs are predictions too, not measurements."

CONFRONTATIONS = {
    "korthikanti_calculon": Confrontation(
        "korthikanti_calculon", "training_step_seconds.csv",
        "Time of a step of Megatron-LM on A100, all eight rows of the table; priced by Calculon's model with the "
        "system file it was validated with.", _korthikanti_times,
        "measured_s", "s", ("korthikanti2022", "isaev2023-calculon"), _OURS.left_out, _OURS.group,
        optional=("row_id", "calculon_s", "source"),
        why="Calculon is called with documents, an execution and a system file, and not with letters.",
    ),
    "calculon": _Runs(
        "calculon", "calculon.csv", f"{_WHAT}  Priced with its own assumptions, quirks included.", _step_times,
        "total_time", "s", ("calculon-runs",), _left_out, _kind, optional=_OPTIONAL,
        call=_call,
        why="An execution is a document of Calculon's own, and all its other outputs are compared beside the time.",
    ),
    "calculon_mended": Confrontation(
        "calculon_mended", "calculon.csv",
        f"{_WHAT}  Priced without its quirks, of which groups name those that reach the time.",
        lambda rows: _step_times(rows, "all"),
        "total_time", "s", ("calculon-runs",), _left_out, _met, optional=_OPTIONAL,
        call=lambda row: _call(row, "priced", ", mended='all'"),
        why="It is `calculon`, of the same file, without quirks.",
    ),
}  # fmt: skip
