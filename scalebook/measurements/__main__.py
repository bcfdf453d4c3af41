"""`python -m scalebook.measurements` lists the confrontations; with a name, or --all, it runs them."""

import argparse
import json
import os
import sys
from pathlib import Path

from . import CONFRONTATIONS, confront


def main(arguments: list[str] | None = None) -> str:
    """What the command prints.  Exits with one line on what was wrong and what would have worked."""
    parser = argparse.ArgumentParser("python -m scalebook.measurements", description=__doc__)
    parser.add_argument("name", nargs="?", help="a confrontation; without one they are listed")
    parser.add_argument("--csv", metavar="FILE", help="other measurements, with the columns of the package's file")
    parser.add_argument("--all", action="store_true", help="run all of them")
    parser.add_argument("--json", metavar="FILE", help="write the errors there too")
    given = parser.parse_args(arguments)
    if given.all == bool(given.name) and (given.all or given.csv or given.json):
        parser.error("name one confrontation or say --all")
    if given.all and given.csv:
        parser.error("--csv goes with one confrontation: name it")
    if not (given.all or given.name):
        return "\n".join(f"{name:20} {c.what}" for name, c in CONFRONTATIONS.items())
    try:
        results = {name: confront(name, given.csv) for name in (CONFRONTATIONS if given.all else [given.name])}
    except OSError as error:
        parser.exit(2, f"{error.filename}: {error.strerror}\n")
    except (LookupError, ValueError) as error:
        parser.exit(2, f"{error}\n")
    said = "\n\n".join(f"{result!r}\n{_worst(result)}" for result in results.values())
    if given.json:
        record = {name: result.record() for name, result in results.items()}
        try:
            Path(given.json).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        except OSError as error:  # what was computed is not lost with the file
            print(said, flush=True)
            parser.exit(2, f"{given.json}: {error.strerror}: the errors were not written there\n")
    return said


def _worst(result):
    lines = [f"Worst rows, in {result.confrontation.unit}:"]
    for row in result.worst():
        said = " ".join(row[x] for x in ("engine", "model", "quant", "gpu", "n_gpus", "batch", "isl") if row.get(x))
        lines.append(f"{row['error']:+9.1%}  predicted {row['predicted']:.4g}, measured {row['measured']:.4g}")
        lines[-1] += f"  {said}  [{row['row_id']}]"
    return "\n".join(lines)


if __name__ == "__main__":
    try:
        print(main(sys.argv[1:]), flush=True)
    except BrokenPipeError:  # the reader has gone, as `head` does: nothing is left to say, at exit neither
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
