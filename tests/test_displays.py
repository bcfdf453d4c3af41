"""What a notebook shows of each thing that is asked for, whatever opens it: JupyterLab, VS Code, Colab, a terminal."""

import re
from functools import cache
from io import StringIO  # noqa: F401  (of cases.csv)

import nbformat
import pytest
from scalebook.book.claims import claims  # noqa: F401  (of cases.csv)
from scalebook.book.drawings.live_gantt import live_gantt
from scalebook.book.planner import Planner

from scalebook import accelerators, confront, models, search, training_step  # noqa: F401  (of cases.csv)
from scalebook.display import Grid, calculator, guess  # noqa: F401  (of cases.csv)
from scalebook.display.row_page import answers
from scalebook.inference import decoding, serve
from scalebook.language import NOTATION  # noqa: F401  (of cases.csv)
from tools.notebooks import notebooks

from .support import each_case

MINE = "model,device,precision,tp,pp,dp,global_batch,seq,step_time\nllama3_70b,h100,bf16,8,4,8,512,8192,19.5 s\n"


@cache
def trained():
    return training_step(models.llama3_8b, accelerators.h100.at("bf16"), tp=2, dp=4, global_batch=64, seq=8192)


@cache
def served():
    return serve(models.llama3_70b, accelerators.h200.at("fp8"), tp=8, users=64, prompt=1024, output=1024)


@cache
def found():
    asked = dict(devices=8, global_batch=32, seq=4096, recompute="none", progress=False)
    return search(training_step, models.llama3_8b, accelerators.h100.at("bf16"), **asked)


# What is shown, and a word that a reader must find both in text and on the page.
@each_case("what is shown", "make, word", globals())
def test_it_is_shown_in_the_house_style_and_said_in_text(make, word):
    shown = make()
    page, text = shown._repr_html_(), repr(shown)
    assert word in text and word in re.sub(r"(?s)<style.*?</style>", "", page)
    assert page.startswith('<style class="sb-house">') and "<script" not in page
    assert " at 0x" not in text and len(page) < 400_000


@pytest.mark.parametrize("thing", [training_step, serve])
def test_what_is_called_says_how(thing):
    assert repr(thing).startswith(f"{thing.name}(model, device, ") and len(repr(thing).splitlines()) == 2


def test_a_long_row_opens_with_what_was_asked():
    page = trained()._repr_html_()
    assert page.index("step_time") < page.index("<details") < page.index("hbm_capacity")
    assert answers(served())[0] == "pass_time" and {"tpot", "ttft", "million_cost"} <= set(answers(served()))
    low, high = (served()[f"tpot_{end}"] for end in ("low", "high"))
    assert low < served().tpot < high and "8 in 10 between" in page


@pytest.mark.parametrize("kind", ["calculator", "live_gantt", "planner", "guess"])
def test_widgets_bring_all_that_they_load(kind):
    """So that VS Code and Colab, which know no folder of ours, show them too."""
    known = dict(batch=1, context=8192, weight_bits=8, kv_bits=16)
    made = dict(
        calculator=lambda: calculator(decoding, "token_time", device=accelerators, model=models, **known),
        live_gantt=live_gantt,
        planner=lambda: Planner,
        guess=lambda: guess("?", 1.0),
    )[kind]()  # fmt: skip
    script, style = str(made._esm), str(made._css)
    assert "export default" in script and len(style) > 100
    assert not re.search(r"(?m)^\s*import\b|\bimport\(|\bfetch\(", script)
    assert not re.search(r"@import|url\((?!['\"]?(data:|#))", style)


@pytest.mark.parametrize("path", notebooks(), ids=lambda p: p.stem)
def test_a_notebook_opens_anywhere(path):
    """By its format, with no path of the machine it ran on, links that lead to what is there, and a cell for Colab."""
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    assert not re.search(r"/(root|home|Users|work|tmp)/\w", path.read_text("utf-8"))
    assert any("%pip install" in x.source for x in book.cells[:3])
    for cell in (x for x in book.cells if x.cell_type == "markdown"):
        for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", cell.source):
            made = "book/parts/" in link or "book/reference/" in link  # by the site's build
            assert made or (path.parent / link).exists(), link
