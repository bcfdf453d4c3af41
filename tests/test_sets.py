"""Measured sets as data: every row is a public call, and typing it gives the prediction to the last digit."""

import numpy as np
import pytest

import scalebook.measurements.sets as sets
from scalebook import tables
from scalebook.inference.step import SERVING
from scalebook.language import NOTATION
from scalebook.measurements import CONFRONTATIONS, confront
from scalebook.shell.named import find, things
from scalebook.training.strategy import WORDS

TABLES = ("accelerators", "clusters", "engines", "frameworks", "links", "models", "runs")
PUBLIC = {x: getattr(tables, x) for x in TABLES} | dict(max=max, min=min)
KINDS = (*TABLES, "shape", "formula")
MOST = 300


def typed(text):
    """What a line of Python gives, with public names alone."""
    return float(eval(text, {"__builtins__": {}}, PUBLIC | things()))


@pytest.mark.parametrize("name", sets.stanzas())
def test_typing_the_call_of_a_row_gives_its_prediction(name):
    result = confront(name)
    places = np.unique(np.linspace(0, len(result.rows) - 1, min(MOST, len(result.rows))).astype(int))
    for i in places:
        said = result.rows[i].call
        assert typed(said) == result.predicted[i], said


@pytest.mark.parametrize("name", sets.stanzas())
def test_a_call_says_nothing_but_letters_words_and_rows(name):
    stanza = sets.stanzas()[name]
    columns = {x for row in confront(name).rows for x in row}
    for row in confront(name).rows[:MOST]:
        call = stanza.call(row)
        for term in getattr(call, "terms", [call]):
            assert find(term.thing)
            assert all(x in NOTATION or x in WORDS or x in SERVING.words for x in term.letters)
            assert all(kind in KINDS for kind, *_ in term.rows)
    for text in stanza.said.get("letters", {}).values():
        if isinstance(text, str):
            sets.expression(text, lambda x: 1.0)
    assert stanza.said["measured"] in columns


def test_a_set_that_is_code_has_no_call():
    with pytest.raises(AttributeError, match="predicted by code of its own"):
        _ = confront("korthikanti_calculon").rows[0].call


STANZA = dict(
    file="mine.csv", what="Mine.", sources=["scalebook"], measured="seconds", unit="s", answer="step_time",
    group="{model}", model="llama3_8b", device="{gpu}", precision="bf16", framework="nemo",
    letters=dict(tp="tp or 1", dp="n / tp", batch=1, global_batch="sequences", seq="length"),
    left_out=[["note", "doubtful", "that its source makes doubtful"]],
)  # fmt: skip
ROWS = [
    dict(row_id="a", model="8B", gpu="8 x H100", n="8", tp="", sequences="64", length="8192", seconds="9", note=""),
]  # fmt: skip
ROWS.append(ROWS[0] | dict(row_id="b", tp="2", note="doubtful"))


def test_a_stanza_and_a_file_make_a_set():
    mine = sets.Stanza("mine", STANZA)
    assert [mine.left_out(x) for x in ROWS] == ["", "that its source makes doubtful"]
    call = mine.call(ROWS[0])
    assert call.text == (
        "training_step(models.llama3_8b, accelerators.h100.at('bf16'), frameworks.nemo, tp=1, dp=8, batch=1, "
        "global_batch=64, seq=8192).step_time"
    )
    assert typed(call.text) == call.value == mine.predicted(ROWS[:1]).predicted[0]
    other = sets.Stanza("other", STANZA | dict(when=[{"if": {"note": "doubt"}, "framework": "plain"}]))
    assert other.call(ROWS[1]).rows[-1] == ("frameworks", "plain")
    assert mine.left_out(ROWS[0] | {"gpu": "a toaster"}) == "on a device that is not in the table"


@pytest.mark.parametrize(("text", "said"), [
    ("__import__('os')", "is no arithmetic over columns"), ("n.real", "is no arithmetic over columns"),
    ("[n]", "is no arithmetic over columns"), ("m / 2", "there is no column 'm'"),
])  # fmt: skip
def test_an_expression_is_arithmetic_over_columns(text, said):
    mine = sets.Stanza("mine", STANZA | dict(letters=dict(tp=text)))
    with pytest.raises(ValueError, match=said):
        mine.call(ROWS[0])


def test_ten_sets_of_training_at_most_are_code():
    of_training = [x for x, c in CONFRONTATIONS.items() if c.file.startswith("training_") and not c.call]
    assert len(of_training) <= 4, of_training
