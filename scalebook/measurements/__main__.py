"""Command line: `python -m scalebook.measurements` lists the sets of published measurements.

With the name of a set, or --all, it compares predictions with the set and prints the errors. With the name of a sheet,
a formula or training_step, it compares measurements of your own with its predictions.
"""

import argparse
import json
import os
from pathlib import Path

from tqdm.auto import tqdm

from scalebook.language.notation import nearest, quoted
from scalebook.shell.named import find, things
from scalebook.shell.sentences import say, sentence

from . import CONFRONTATIONS, Own, confront


def main(arguments: list[str] | None = None) -> str:
    """Run `python -m scalebook.measurements` with these arguments; return the text to print, None if printed."""
    parser = argparse.ArgumentParser("python -m scalebook.measurements", description=__doc__)
    parser.add_argument("name", nargs="?", help="a confrontation; without one they are listed; or training_step, say")
    others = "other measurements, with the columns of the package's file, or your own"
    parser.add_argument("--csv", metavar="FILE", help=others)
    parser.add_argument("--measured", metavar="LETTER", help="what your own measured, such as step_time")
    parser.add_argument("--all", action="store_true", help="run all of them")
    parser.add_argument("--json", metavar="FILE", help="write the errors there too")
    given = parser.parse_args(arguments)
    if given.all == bool(given.name) and (given.all or given.csv or given.json):
        parser.error("name one confrontation or say --all")
    if given.all and given.csv:
        parser.error("--csv goes with one confrontation: name it")
    if given.measured and (given.name in CONFRONTATIONS or not given.name):
        parser.error("--measured goes with measurements of your own, against a sheet or a formula: name it")
    if not (given.all or given.name):
        return "\n".join(f"{name:20} {c.what}" for name, c in CONFRONTATIONS.items())
    results, names = {}, list(CONFRONTATIONS) if given.all else [given.name]
    try:
        with tqdm(names, unit="set", disable=None if given.all else True) as bar:  # only on a terminal
            for name in bar:
                results[name] = _result(name, given)
    except KeyboardInterrupt:
        if not results:
            raise
        print("\n\n".join(_report(x) for x in results.values()), flush=True)
        parser.exit(130, f"interrupted: {len(results)} of {len(names)} were confronted, and nothing was written\n")
    except (LookupError, TypeError, ValueError) as error:
        parser.exit(2, f"{sentence(error)}\n")
    text = "\n\n".join(_report(result) for result in results.values())
    if given.json:
        print(text, flush=True)  # print before writing, so that minutes of work are not lost if the disk is full
        text = ""
        try:
            _write(Path(given.json), {name: result.record() for name, result in results.items()})
        except OSError as error:
            parser.exit(2, f"{given.json} could not be written: {error.strerror}\n")
    return text


def _result(name, given):
    if name in CONFRONTATIONS:
        return confront(name, given.csv)
    if name not in things():
        near = nearest(name, [*CONFRONTATIONS, *things()])
        raise LookupError(f"no confrontation, sheet or formula is called {quoted(name)}; {near}")
    if not given.csv:
        raise ValueError(f"{name} is held against measurements of your own: give them by --csv FILE")
    return confront(find(name), given.csv, given.measured)


def _write(path, record):
    """Write the whole file or leave the old one: a temporary file replaces it when it is complete."""
    text = json.dumps(record, indent=2) + "\n"
    if path.exists() and not path.is_file():  # such as a device or a pipe
        path.write_text(text, encoding="utf-8")
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


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
