"""Pages hold today's tables and formulas: every calculator of every notebook, as the site is built from it.

What a notebook stores of a calculator nbval compares with what its cell makes; here it is followed to the page.
"""

import json
from pathlib import Path

import nbformat
import pytest
from scalebook.book.pages.widgets import VIEW, published, remade, script

from scalebook import accelerators, calculator, tables
from scalebook.display.live import STORED, Calculator
from scalebook.language import FORMULAS, Formula, Sheet, symbol
from scalebook.language.row import Cell, Row
from scalebook.machine.kernels import matrix_product
from scalebook.machine.roofline import ridge_intensity
from tools.notebooks import normal, notebooks

from .support import live, package_sheet, python_says, some_states

PLAYED = live()


class Page:
    """A notebook as its page has it: the specs of its calculators, played by live.js on the data of all pages."""

    def __init__(self, path):
        notebook, shared = json.loads(Path(path).read_text("utf-8")), dict(formulas={}, tables={}, modules={})
        made = remade(notebook)
        own = [("".join(output["data"]["text/plain"]), x) for output, x in made if isinstance(x, Calculator)]
        self.said, self.calculators = zip(*own, strict=True)
        book = published(notebook, "page", shared, made)
        states = (
            book["metadata"].get("widgets", {}).get("application/vnd.jupyter.widget-state+json", {"state": {}})["state"]
        )
        self.specs = [x["state"]["spec"] for x in states.values() if "spec" in x["state"]]
        PLAYED(f"(() => {{ {script(shared)} return 0 }})()")

    def __call__(self, number, several):
        """The answers of one of its calculators for each of several states of its controls."""
        spec = json.dumps(self.specs[number])
        play = (
            f"((spec) => {json.dumps(several)}.map((x) => answers(spec, x).texts))(whole({spec}, globalThis.scalebook))"
        )
        return PLAYED(play)


WITH = [p for p in notebooks() if STORED in p.read_text("utf-8")]
CHAPTER = next(p for p in notebooks() if p.stem == "memory-bottlenecks")


@pytest.mark.parametrize("path", WITH, ids=lambda p: p.stem)
def test_a_page_answers_what_the_package_does(path):
    """At first what the notebook says, and then at states drawn from its menus and sliders."""
    page = Page(path)
    assert len(page.specs) == len(page.calculators) > 0
    for number, (calc, said) in enumerate(zip(page.calculators, page.said, strict=True)):
        # nbval compares the JavaScript of a chapter's own formula with today's
        several = [calc.state, *(some_states(calc, 25, seed=number) if package_sheet(calc) else ())]
        first, *others = page(number, several)
        answers = ", ".join(f"{x['letter']}={text!r}" for x, text in zip(calc.spec["outputs"], first, strict=True))
        assert f"Calculator({answers})" == said, f"{path.stem}, calculator {number + 1}: run `make notebooks`"
        for state, texts in zip(several[1:], others, strict=True):
            assert texts == python_says(calc, state), f"{path.stem}, calculator {number + 1}: {state}"


def opened(number=0):
    """What a calculator of the chapter says first on its page, as the tables and formulas are now."""
    page = Page(CHAPTER)
    calc = page.calculators[number]
    return calc, page(number, [calc.state])[0]


def test_a_changed_cell_changes_the_page(monkeypatch):
    """The notebook is as it was; the device it begins with is given another bandwidth."""
    calc, before = opened()
    row = accelerators.mi325x
    faster = type(row)(row.name, row.cells | {"hbm_bandwidth": Cell(2 * row.hbm_bandwidth, row.name)}, row.words)
    monkeypatch.setitem(accelerators._rows._whole, "mi325x", faster)
    calc, after = opened()
    assert after == python_says(calc, calc.state) != before


def test_a_precision_chooses_what_the_device_does_at_it():
    """Its peak, and the share of it that matrix products reach there."""
    large = dict(rows=8192, columns=8192, inner=8192, copies=1, activation_bits=8, weight_bits=8)
    choices = dict(device=accelerators, precision=["bf16", "fp8"], start=dict(device="h100"))
    calc = calculator(matrix_product, "matmul_share", **choices, **large)
    for precision in ("bf16", "fp8"):
        calc.choose(precision=precision)
        row = matrix_product(accelerators.h100.at(precision), **large)
        assert calc.values["matmul_share"] == row.matmul_share
    assert accelerators.h100.at("fp8").matmul_efficiency != accelerators.h100.matmul_efficiency
    own = calculator(matrix_product, "matmul_share", matmul_efficiency=[0.5], **choices, **large)
    assert own.values["matmul_efficiency"] == 0.5


def test_a_new_row_and_a_new_name_are_in_the_menus_and_the_start_stays(monkeypatch):
    row = accelerators.mi325x
    rows = {"mi400x": type(row)("MI400X", row.cells, row.words), **accelerators._rows}
    rows["mi325x"] = type(row)("MI325X by another name", row.cells, row.words)
    monkeypatch.setattr(accelerators, "_rows", rows)
    calc, _ = opened()
    assert calc.options["device"][0]["label"] == "MI400X" and calc.state["device"] == "mi325x"
    assert calc.made.option("device", "mi325x")["label"] == "MI325X by another name"


def test_a_changed_formula_changes_the_page(monkeypatch):
    _, before = opened()
    slower = Formula("memory_time", "memory_time", 3 * symbol("traffic") / symbol("hbm_bandwidth"))
    monkeypatch.setitem(FORMULAS, "memory_time", slower)
    _, after = opened()
    assert after != before


def test_what_the_package_does_not_state_is_stored_whole():
    """A chapter's own formula, a composed one, a row of its own, a letter of its own: nbval compares all of it."""
    twice = Formula("ridge_intensity", "ridge_intensity", 2 * symbol("peak_flops") / symbol("hbm_bandwidth"))
    rows = tables.Table("accelerators", {"mine": Row("Mine", {"hbm_bandwidth": Cell(1e12), "peak_flops": Cell(1e15)})})
    calc = calculator(Sheet("own", twice), "ridge_intensity", device=rows)
    assert calc.choice["formulas"][0]["js"] == "2*peak_flops/hbm_bandwidth"
    assert calc.choice["controls"][0]["rows"][0]["letters"] == {"hbm_bandwidth": 1e12, "peak_flops": 1e15}
    assert type(calc)(json.loads(json.dumps(calc.choice))).spec == calc.spec
    assert calculator(ridge_intensity, device=accelerators).choice["formulas"] == ["ridge_intensity"]
    assert calculator(ridge_intensity, device=accelerators[["h100"]]).choice["controls"][0]["keys"] == ["h100"]


OWN = """from scalebook.display import calculator
from scalebook.language import formula
from scalebook.tables import accelerators

@formula("ridge_intensity", "williams2009")
def own(peak_flops, hbm_bandwidth):
    return FACTOR * peak_flops / hbm_bandwidth

calculator(own, device=accelerators, start={"device": "h100"})"""


def run(source):
    """What the last line of a cell shows."""
    *lines, last = source.split("\n")
    space = {"__name__": "__main__"}
    kept = dict(FORMULAS)
    exec("\n".join(lines), space)
    shown = eval(last, space)._repr_mimebundle_()
    FORMULAS.clear()
    FORMULAS.update(kept)
    return shown[0] if isinstance(shown, tuple) else shown


def test_what_is_stored_of_a_chapters_own_formula_changes_with_it():
    """So that nbval, which compares outputs, fails in that chapter."""
    first, again, other = (run(OWN.replace("FACTOR", x))[STORED] for x in "112")
    assert first == again != other


def test_a_stored_notebook_holds_no_state_of_widgets():
    cell = nbformat.v4.new_code_cell("x", execution_count=1)
    cell.outputs = [nbformat.v4.new_output("execute_result", run(OWN.replace("FACTOR", "1")), execution_count=1)]
    stored = json.loads(normal(nbformat.v4.new_notebook(cells=[cell], metadata={"widgets": {"state": {}}})))
    assert "widgets" not in stored["metadata"] and VIEW not in stored["cells"][0]["outputs"][0]["data"]
