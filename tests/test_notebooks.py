"""What nbval does not look at: a notebook is stored as `make notebooks` stores it, run from the top, without errors."""

import re
from pathlib import Path

import nbformat
import pytest
import yaml

from tools.notebooks import main, notebooks

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("path", notebooks(), ids=lambda p: p.stem)
def test_stored_as_run(path, capsys):
    assert main(["--check", str(path)]) == 0, f"{path.name}: run `make notebooks`"
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert [c.execution_count for c in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        if "raises-exception" not in cell.metadata.get("tags", []):
            assert not [o for o in cell.outputs if o.output_type == "error" or o.get("name") == "stderr"], cell.source


@pytest.fixture(scope="module")
def contents():
    """The notebooks of the table of contents, in its order."""
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text("utf-8"))
    files = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    return [x for x in files if x.startswith("notebooks/")]


@pytest.mark.parametrize("path", notebooks(), ids=lambda p: p.stem)
def test_every_notebook_is_published(path, contents):
    assert str(path.relative_to(ROOT).with_suffix("")) in contents, f"name {path.stem} in book/_toc.yml"


def test_the_landing_page_lists_the_chapters_in_their_order(contents):
    text = (ROOT / "book" / "index.md").read_text("utf-8")
    linked = re.findall(r"\(\.\./(notebooks/[^)]*)\.ipynb\)", text)
    assert sorted(linked) == sorted(contents), "book/index.md lists other chapters than book/_toc.yml"
    assert [x for x in linked if x.count("/") > 1] == [x for x in contents if x.count("/") > 1]
