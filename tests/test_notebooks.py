"""What nbval does not look at: a notebook is stored as `make notebooks` stores it, run from the top, without errors."""

import nbformat
import pytest

from tools.notebooks import main, notebooks


@pytest.mark.parametrize("path", notebooks(), ids=lambda p: p.stem)
def test_stored_as_run(path, capsys):
    assert main(["--check", str(path)]) == 0, f"{path.name}: run `make notebooks`"
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert [c.execution_count for c in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        if "raises-exception" not in cell.metadata.get("tags", []):
            assert not [o for o in cell.outputs if o.output_type == "error" or o.get("name") == "stderr"], cell.source
