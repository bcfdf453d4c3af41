"""Run the notebooks and store their outputs, byte-stable: a second run changes no file.

`python tools/notebooks.py` runs all of them, or those it is given; `--check` runs nothing and says which
files are not as this tool would have stored them.
"""

import argparse
import json
import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from scalebook.display.live import STORED

ROOT = Path(__file__).parents[1]
VIEW = "application/vnd.jupyter.widget-view+json"
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def notebooks() -> list[Path]:
    """Every notebook of the book."""
    return sorted(p for p in (ROOT / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)


def described(cell: nbformat.NotebookNode) -> None:
    """Let the page read out what a figure's description says (scalebook.display.figures gives it one)."""
    shown = [o.data for o in cell.get("outputs", []) if "image/png" in o.get("data", {})]
    if shown:
        cell.metadata.setdefault("mystnb", {})["image"] = {"alt": " ".join(data["text/plain"] for data in shown)}


def without_widgets(cell: nbformat.NotebookNode) -> None:
    """Leave of a widget what it is made of: pages and kernels make it anew.  Raises ValueError for one that is not."""
    for data in (o.data for o in cell.get("outputs", []) if VIEW in o.get("data", {})):
        if STORED not in data:
            raise ValueError(f"the pages could not show this widget again: {data['text/plain']}")
        del data[VIEW]


def normal(book: nbformat.NotebookNode) -> str:
    """A notebook's text without what differs from run to run: times, addresses, widgets' states, chance names of cells."""
    book.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    for number, cell in enumerate(book.cells):
        cell["id"] = f"cell-{number:03d}"
        for key in ("execution", "collapsed", "scrolled", "trusted"):
            cell.metadata.pop(key, None)
        described(cell)
        without_widgets(cell)
    text = re.sub(r"( at )0x[0-9a-f]{6,}", r"\g<1>0x0", nbformat.writes(book))
    return json.dumps(json.loads(text), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def run(path: Path) -> str:
    """The normal text of a notebook after running it in its own folder."""
    book = nbformat.read(path, as_version=4)
    book.metadata.pop("widgets", None)
    folder = {"metadata": {"path": str(path.parent)}}
    NotebookClient(book, timeout=300, kernel_name="python3", resources=folder, coalesce_streams=True).execute()
    return normal(book)


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="run nothing; fail if a stored notebook is not normal")
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks (all of the book's)")
    options = parser.parse_args(argv)
    changed = []
    for path in options.paths or notebooks():
        stored = path.read_text(encoding="utf-8")
        try:
            fresh = normal(nbformat.reads(stored, as_version=4)) if options.check else run(path)
        except ValueError as error:
            parser.error(f"{path}: {error}")
        if fresh != stored:
            changed.append(path)
            if not options.check:
                path.write_text(fresh, encoding="utf-8")
    verdict = "not as `make notebooks` stores it" if options.check else "changed"
    for path in changed:
        print(f"{path}: {verdict}")
    return int(options.check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
