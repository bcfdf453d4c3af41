"""Run the notebooks and store their outputs, byte-stable: a second run changes no file.

`python -m tools.notebooks` runs those that have changed, of all or of those given by stem or by path; `--all` runs
the unchanged too; `--check` runs nothing and says which files are not as this tool would have stored them.
"""

import argparse
import json
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from importlib import metadata
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from scalebook.display.live import STORED
from scalebook.language.notation import nearest
from tools.kernels import fork_kernels

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "book/_build/notebooks.json"  # ignored by git, so a fresh clone runs all
VIEW = "application/vnd.jupyter.widget-view+json"
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def notebooks() -> list[Path]:
    """Every notebook of the book."""
    return sorted(p for p in (ROOT / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)


def without_widgets(cell: nbformat.NotebookNode) -> None:
    """Leave of a widget what it is made of: pages and kernels make it anew.  Raises ValueError for one that is not."""
    for data in (o.data for o in cell.get("outputs", []) if VIEW in o.get("data", {})):
        if STORED not in data:
            raise ValueError(f"the pages could not show this widget again: {data['text/plain']}")
        del data[VIEW]


def normal(book: nbformat.NotebookNode) -> str:
    """A notebook's text without what differs from run to run:
    times, addresses, widgets' states, chance names of cells.
    """
    book.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    for number, cell in enumerate(book.cells):
        cell["id"] = f"cell-{number:03d}"
        for key in ("execution", "collapsed", "scrolled", "trusted"):
            cell.metadata.pop(key, None)
        without_widgets(cell)
    text = re.sub(r"( at )0x[0-9a-f]{6,}", r"\g<1>0x0", nbformat.writes(book))
    return json.dumps(json.loads(text), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def run(path: Path, stored: str) -> str:
    """The normal text of a notebook after running it in its own folder."""
    book = nbformat.reads(stored, as_version=4)
    book.metadata.pop("widgets", None)
    folder = {"metadata": {"path": str(path.parent)}}
    NotebookClient(book, timeout=300, kernel_name="python3", resources=folder, coalesce_streams=True).execute()
    return normal(book)


def outcome(path: Path, check: bool) -> tuple[Path, str, str, str]:
    """A notebook, its text, its new text, and the error if it ended in one: another notebook may still be well."""
    stored = path.read_text(encoding="utf-8")
    try:
        return path, stored, normal(nbformat.reads(stored, as_version=4)) if check else run(path, stored), ""
    except Exception as error:
        return path, stored, stored, str(error) or repr(error)


def world() -> str:
    """What outputs depend on beside their notebook: the package's files, this one, Python and all that is installed."""
    # More than a notebook may use, so that nothing it uses is missed: only a run too many can come of it.
    own = (f"book/{x}" for x in ("claims", "drawings", "measured", "pages", "planner"))
    folders = (ROOT / x for x in ("scalebook", *own))
    package = sorted(p for x in folders for p in x.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    files = [f"{p} {sha256(p.read_bytes()).hexdigest()}" for p in [*package, Path(__file__)]]
    versions = sorted({f"{x.name} {x.version}" for x in metadata.distributions()})
    return "\n".join([sys.version, *files, *versions])


def mark(text: str, around: str) -> str:
    """A notebook as it is stored, outputs included, in its world: whatever is edited, the mark is another."""
    return sha256((around + text).encode()).hexdigest()


def recorded() -> dict[str, str]:
    """The marks that the last runs left; none where no record can be read."""
    try:
        return json.loads(RECORD.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def named(name: str) -> Path:
    """The notebook of a stem or a path; ValueError names the nearest."""
    known = {p.stem: p for p in notebooks()}
    if name not in known and not (name.endswith(".ipynb") and Path(name).is_file()):
        raise ValueError(f"no notebook is called {name!r}; {nearest(name, known)}")
    return known.get(name) or Path(name).resolve()


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="run nothing; fail if a stored notebook is not normal")
    parser.add_argument("--all", action="store_true", help="run the unchanged too")
    parser.add_argument("names", nargs="*", help="notebooks by stem or by path (all of the book's)")
    options = parser.parse_args(argv)
    try:
        paths = list(dict.fromkeys(map(named, options.names))) or notebooks()
    except ValueError as error:
        sys.exit(str(error))
    # Before the runs: what changes in the world while they go on makes another mark, and they are run again.
    around, record = ("", {}) if options.check else (world(), recorded())
    todo = [p for p in paths if options.all or record.get(str(p)) != mark(p.read_text(encoding="utf-8"), around)]
    if len(todo) < len(paths):
        print(f"{len(paths) - len(todo)} unchanged since last run: not run again (ALL=1 or --all does)", flush=True)
    failed, changed = [], []
    with ProcessPoolExecutor(2, get_context("spawn"), initializer=fork_kernels) as pool:
        for path, stored, fresh, error in (map if options.check else pool.map)(outcome, todo, repeat(options.check)):
            if path.read_text(encoding="utf-8") != stored:
                error = "edited while it was running, so its outputs are not stored; run it again"
            if error:
                failed.append(path.stem)
                print(f"{path}: {error}", flush=True)
                continue
            if fresh != stored:
                changed.append(path.stem)
                print(f"{path}: {'not as `make notebooks` stores it' if options.check else 'changed'}", flush=True)
            if not options.check:
                path.write_text(fresh, encoding="utf-8")
                record[str(path)] = mark(fresh, around)
                RECORD.parent.mkdir(parents=True, exist_ok=True)
                RECORD.write_text(json.dumps(record, indent=1), encoding="utf-8")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed or (options.check and changed)))


if __name__ == "__main__":
    sys.exit(main())
