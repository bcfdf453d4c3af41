"""Command line: `python -m scalebook.measurements` lists the sets of published measurements.

With the name of a set, it compares predictions with the set and prints the errors; --json writes them to a file too.
With the name of a sheet, a formula or training_step, it compares measurements of your own with its predictions.
"""

import argparse
import json
from pathlib import Path

from scalebook.language.notation import nearest, quoted
from scalebook.shell.named import find, things
from scalebook.shell.sentences import say

from . import CONFRONTATIONS, Own, confront


def main(arguments: list[str] | None = None) -> str:
    """Run `python -m scalebook.measurements` with these arguments; return the text to print."""
    parser = argparse.ArgumentParser("python -m scalebook.measurements", description=__doc__)
    parser.add_argument("name", nargs="?", help="a confrontation; without one they are listed; or training_step, say")
    others = "other measurements, with the columns of the package's file, or your own"
    parser.add_argument("--csv", metavar="FILE", help=others)
    parser.add_argument("--json", metavar="FILE", help="write the errors of a confrontation there too")
    parser.add_argument("--measured", metavar="LETTER", help="what your own measured, such as step_time")
    given = parser.parse_args(arguments)
    if given.csv and not given.name:
        parser.error("--csv goes with one confrontation: name it")
    if given.json and given.name not in CONFRONTATIONS:
        parser.error("--json goes with one confrontation: name it")
    if given.measured and (given.name in CONFRONTATIONS or not given.name):
        parser.error("--measured goes with measurements of your own, against a sheet or a formula: name it")
    if not given.name:
        return "\n".join(f"{name:20} {c.what}" for name, c in CONFRONTATIONS.items())
    try:
        result = _result(given)
    except (LookupError, TypeError, ValueError) as error:
        parser.exit(2, f"{error}\n")
    text = _report(result)
    if given.json:
        print(text, flush=True)  # before writing, so that minutes of work are not lost if the disk is full
        text = ""
        try:
            Path(given.json).write_text(json.dumps({given.name: result.record()}, indent=2) + "\n", "utf-8")
        except OSError as error:
            parser.exit(2, f"{given.json} could not be written: {error.strerror}\n")
    return text


def _result(given):
    name = given.name
    if name in CONFRONTATIONS:
        return confront(name, given.csv)
    if name not in things():
        near = nearest(name, [*CONFRONTATIONS, *things()])
        raise LookupError(f"no confrontation, sheet or formula is called {quoted(name)}; {near}")
    if not given.csv:
        raise ValueError(f"{name} is held against measurements of your own: give them by --csv FILE")
    return confront(find(name), given.csv, given.measured)


def _report(result):
    return repr(result) if isinstance(result, Own) else f"{result!r}\n{_worst(result)}"


def _worst(result):
    lines = [f"Worst rows, in {result.confrontation.unit}:"]
    for row in result.worst():
        said = " ".join(row[x] for x in ("engine", "model", "quant", "gpu", "n_gpus", "batch", "isl") if row.get(x))
        lines.append(f"{row['error']:+9.1%}  predicted {row['predicted']:.4g}, measured {row['measured']:.4g}")
        lines[-1] += f"  {said}  [{row['row_id']}]"
    return "\n".join(lines)


if __name__ == "__main__":
    say(main)
