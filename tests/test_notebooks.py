"""What nbval does not look at: a notebook is stored as `make notebooks` stores it, run from the top, without errors."""

import ast
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import nbformat
import pytest
import yaml
from scalebook.book.claims import claims

from tools import contents as tools_contents
from tools import notebooks as tool
from tools.notebooks import STORED, main, normal, notebooks

from . import ROOT

BARE = r"\(|\{|\[[^a-z]|'|array\(|np\.|-?\d+\.?\d*(e[-+]?\d+)?\s*$"


@pytest.mark.parametrize("path", notebooks(), ids=lambda p: p.stem)
def test_stored_as_run(path, capsys):
    assert main(["--check", str(path)]) == 0, f"{path.name}: run `make notebooks`"
    cells = [c for c in cells_of(path) if c.cell_type == "code"]
    assert [c.execution_count for c in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        if "raises-exception" not in cell.metadata.get("tags", []):
            assert not [o for o in cell.outputs if o.output_type == "error" or o.get("name") == "stderr"], cell.source


@cache
def cells_of(path):
    return nbformat.read(path, as_version=4).cells


def reader_sees(cell):
    """Whether a cell's code stands open on the page."""
    hidden = {"hide-input", "hide-cell", "remove-cell"} & set(cell.metadata.get("tags", []))
    return cell.cell_type == "code" and not hidden


def figures_of(cell):
    """The figures and drawings that a cell shows, as parts of a page."""
    shown = ("".join(o.get("data", {}).get("text/html", "")) for o in cell.get("outputs", []))
    return [text for text in shown if '<figure class="sb-figure"' in text]


def first_that_draws(cells):
    """Where the first figure or calculator is; the end, if there is none."""
    draws = (
        x.cell_type == "code" and (figures_of(x) or any(STORED in o.get("data", {}) for o in x.outputs)) for x in cells
    )
    return next((i for i, x in enumerate(draws) if x), len(cells))


# An appendix continues a chapter, which has the calculator and the drawing.
CHAPTERS = [x for x in notebooks() if x.parent.name != "appendix"]

# Title, the installation (which no page shows), the folded imports, the answers, the calculator: with more cells before
# it, a reader would have to scroll to what can be moved.
BEFORE_THE_CALCULATOR = 3


@pytest.mark.parametrize("path", notebooks(), ids=lambda p: p.stem)
def test_code_is_of_three_kinds(path):
    """It speaks, and is short; or it derives, draws and imports, and is folded under a name; or it is a solution."""
    cells = cells_of(path)
    for cell in cells:
        if reader_sees(cell):
            assert len(cell.source.splitlines()) <= 8, f"fold it, or split what speaks from the rest:\n{cell.source}"
        elif {"hide-input", "hide-cell"} & set(cell.metadata.get("tags", [])):
            prompts = cell.metadata.get("mystnb", {})
            assert prompts.get("code_prompt_show") and prompts.get("code_prompt_hide"), cell.source
            assert cell.metadata.jupyter.source_hidden, "folded in JupyterLab too"
    for cell in filter(reader_sees, cells[: first_that_draws(cells)]):
        assert not any(isinstance(x, ast.Import | ast.ImportFrom) for x in ast.parse(cell.source).body), cell.source


@pytest.mark.parametrize("path", notebooks(), ids=lambda p: p.stem)
def test_no_line_of_text_is_taken_for_a_comment(path):
    """The page would leave out a line that begins with a percent sign, after a number at the end of the line before."""
    text = [x for c in cells_of(path) if c.cell_type == "markdown" for x in c.source.splitlines()]
    assert [x for x in text if x.lstrip().startswith("%")] == []


@pytest.mark.parametrize("path", notebooks(), ids=lambda p: p.stem)
def test_an_output_is_no_bare_number_or_list(path):
    """What a formula returns shows its unit; several values are a sentence or a table."""
    for cell in (x for x in cells_of(path) if x.cell_type == "code"):
        for out in cell.outputs:
            data = out.get("data", {})
            text = out.get("text", "") if out.output_type == "stream" else data.get("text/plain", "")
            if set(data) <= {"text/plain"}:
                assert not re.match(BARE, text), f"{cell.source}\n{text[:200]}"


def calls_only(node):
    """Whether code is names alone, or `display` of names: the equation under it says more."""
    if isinstance(node, ast.Attribute):
        return calls_only(node.value)
    shown = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "display"
    return isinstance(node, ast.Name) or (shown and all(map(calls_only, node.args)))


@pytest.mark.parametrize("path", [x for x in notebooks() if x.stem != "start"], ids=lambda p: p.stem)
def test_an_equation_stands_without_the_code_that_calls_for_it(path):
    for cell in filter(reader_sees, cells_of(path)):
        if any(r"\(" in "".join(o.get("data", {}).get("text/html", ""))[:800] for o in cell.outputs):
            code = ast.parse(cell.source).body
            assert not all(isinstance(x, ast.Expr) and calls_only(x.value) for x in code), f"fold it: {cell.source}"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
def test_a_calculator_is_on_the_first_screen(path):
    live = [i for i, x in enumerate(cells_of(path)) if any(STORED in o.get("data", {}) for o in x.get("outputs", []))]
    assert live and live[0] <= BEFORE_THE_CALCULATOR, f"the first calculator is cell {live[:1]}"


@pytest.mark.parametrize("path", [x for x in CHAPTERS if x.stem != "start"], ids=lambda p: p.stem)
def test_a_mechanism_is_drawn(path):
    shown = (o.get("data", {}).get("text/html", "") for x in cells_of(path) for o in x.get("outputs", []))
    assert any("sb-drawing" in x for x in shown), "draw what a reader must picture (scalebook.book.drawings.schematic)"


@pytest.mark.parametrize(
    "path", [x for x in notebooks() if x.parent.name[:2] in ("1-", "2-", "3-", "4-")], ids=lambda p: p.stem
)
def test_a_chapter_is_short_and_ends_in_problems_of_three_kinds(path):
    cells = cells_of(path)
    text = "\n".join(x.source for x in cells if x.cell_type == "markdown")
    said = re.sub(r"(?s)\$\$.*?\$\$", "", text).split()
    assert sum(any(map(str.isalnum, word)) for word in said) <= 2500, "move a side derivation to notebooks/appendix"
    kinds = "; ".join(re.findall(r"(?m)^\*\*\d+\.\*\* \(([^)]*)\)", text)).lower()
    assert all(kind in kinds for kind in ("pencil", "backwards", "decision")), kinds
    assert any("guess(" in x.source for x in cells if x.cell_type == "code"), "a box takes the reader's own answer"


@pytest.mark.parametrize("chapter", sorted({x.chapter for x in claims.values() if x.chapter}))
def test_verdicts_come_from_the_ledger(chapter):
    [path] = [p for p in notebooks() if p.stem == chapter]
    assert any(x.source == f'claims.judged_in("{chapter}")' for x in cells_of(path))


@pytest.mark.parametrize("path", notebooks(), ids=lambda p: p.stem)
def test_no_verdict_is_written_by_hand(path):
    heads = (x.splitlines()[0].casefold() for c in cells_of(path) for x in re.findall(r"(?m)^\|.*\n\| ?-", c.source))
    assert not [x for x in heads if "verdict" in x], "enter the sentences in book/claims"


# Measured rows that stand open beside a confrontation's figure; a page folds a longer table (`Grid(..., fold=)`).
ROWS_AT_ONCE = 8


@pytest.mark.parametrize("path", notebooks(), ids=lambda p: p.stem)
def test_a_confrontation_is_short(path):
    """In a section called Confronted no table of more rows stands open, and nowhere one of three times as many."""
    most = 3 * ROWS_AT_ONCE
    for cell in cells_of(path):
        for section in re.findall(r"(?m)^## .*", cell.source) if cell.cell_type == "markdown" else ():
            most = ROWS_AT_ONCE if "Confronted" in section else 3 * ROWS_AT_ONCE
        shown = "".join("".join(o.get("data", {}).get("text/html", "")) for o in cell.get("outputs", []))
        tables = re.findall(r"<tbody>.*?</tbody>", re.sub(r"(?s)<details.*?</details>", "", shown), re.S)
        if "judged_in" not in cell.source:
            assert all(x.count("<tr>") <= most for x in tables), f"fold this table:\n{cell.source}"


@pytest.fixture(scope="module")
def contents():
    """The notebooks of the table of contents, in its order."""
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text("utf-8"))
    files = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    return [x for x in files if x.startswith("notebooks/")]


@pytest.mark.parametrize("path", notebooks(), ids=lambda p: p.stem)
def test_every_notebook_is_published(path, contents):
    assert str(path.relative_to(ROOT).with_suffix("")) in contents, f"name {path.stem} in book/_toc.yml"


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Makes a notebook of one cell away from the book; the record of runs is kept there too."""
    monkeypatch.setattr(tool, "RECORD", tmp_path / "made" / "record.json")

    def make(name, source):
        path = tmp_path / f"{name}.ipynb"
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
        path.write_text(normal(book), "utf-8")
        return str(path)

    return make


def test_one_that_fails_stops_no_other(stored, capsys):
    bad, good = stored("bad", "1 / 0"), stored("good", "6 * 7")
    before = Path(bad).read_text("utf-8")
    assert main([bad, good]) == 1
    said = capsys.readouterr()
    assert "ZeroDivisionError" in said.out and f"{good}: changed" in said.out and said.err.endswith("failed: bad\n")
    assert Path(bad).read_text("utf-8") == before, "what failed is not stored"
    [cell] = nbformat.read(good, as_version=4).cells
    assert cell.outputs[0].data["text/plain"] == "42" and main(["--check", good]) == 0


@pytest.fixture
def ran(monkeypatch):
    """The names of the notebooks that were run, with no kernel: `run` leaves a notebook as it is."""
    names = []
    monkeypatch.setattr(tool, "ProcessPoolExecutor", ThreadPoolExecutor)
    monkeypatch.setattr(tool, "run", lambda path, text: names.append(path.stem) or text)
    return names


def test_what_is_unchanged_is_not_run_again(stored, ran, monkeypatch, capsys):
    one, two = stored("one", "1"), stored("two", "2")
    assert main([one, two]) == 0 and sorted(ran) == ["one", "two"]
    ran.clear()
    assert main([one, two]) == 0 and not ran
    assert "2 unchanged since last run: not run again (ALL=1 or --all does)" in capsys.readouterr().out
    assert main(["--all", one]) == 0 and ran == ["one"]
    ran.clear()
    stored("two", "2 + 2")
    assert main([one, two]) == 0 and ran == ["two"]
    ran.clear()
    tool.RECORD.write_text("{", "utf-8")
    assert main([two]) == 0 and ran == ["two"], "a record that was cut off counts for nothing"
    monkeypatch.setattr(tool, "world", lambda: "another")
    assert main([two]) == 0 and ran == ["two", "two"]


def test_an_edit_during_the_run_is_kept(stored, ran, monkeypatch, capsys):
    one = stored("one", "1")
    monkeypatch.setattr(tool, "run", lambda path, text: stored("one", "an edit") and text)
    assert main([one]) == 1 and "edited while it was running" in capsys.readouterr().out
    assert "an edit" in Path(one).read_text("utf-8") and not tool.RECORD.exists()


def test_a_chapter_is_named_by_its_stem():
    assert tool.named("memory-walls").parts[-2:] == ("1-scaling-compute", "memory-walls.ipynb")
    with pytest.raises(SystemExit, match=r"^no notebook is called 'memory-wals'; did you mean 'memory-walls', '"):
        main(["memory-wals"])


def test_the_start_notebook_is_an_index_of_all_chapters(contents):
    """In the order of the table of contents, with title, a sentence of the chapter's own answer, and time to read."""
    said = [x.source for x in cells_of(ROOT / "notebooks" / "start.ipynb")]
    [index] = [x for x in said if x.startswith(tools_contents.HEADING)]
    assert index == tools_contents.index(), "run `python -m tools.contents`"
    links = re.findall(r"\]\(([^)]+\.ipynb)\)", index)
    chapters = [x for x in contents if x != "notebooks/start" and "/appendix/" not in x]
    assert [f"notebooks/{x.removesuffix('.ipynb')}" for x in links] == chapters
    assert all((ROOT / "notebooks" / x).is_file() for x in links)
