"""Measured sets as data: every row is a public call, and typing it gives the prediction to the last digit."""

import numpy as np
import pytest

import scalebook.measurements.sets as sets
from scalebook.inference.step import SERVING
from scalebook.language import NOTATION
from scalebook.measurements import CONFRONTATIONS, confront
from scalebook.measurements.calls import called
from scalebook.measurements.expressions import names
from scalebook.training.strategy import WORDS

from .every import every
from .support import each_case

TABLES = ("accelerators", "clusters", "engines", "frameworks", "links", "models", "runs")
KINDS = (*TABLES, "shape", "formula", "calculon")
# Of simulate, rl_step and found_in_trace, which are neither sheet nor formula.
FREE = ("schedule", "chunks", "transfer_time", "share", "rollout", "training", "trace")
TYPED = 5  # rows of a set whose line is typed, and as many of different kinds of calls
NEED_PYTHON = 10  # sets at most that are predicted by code, or by a stanza that asks for some; each says why


def to_the_last_digit(x):
    """Some processors raise arrays to a power with other instructions than numbers: the last digit may differ."""
    return pytest.approx(x, rel=4 * np.finfo(float).eps)


def typed(text):
    """What a row's call gives as it is printed: its imports, and the line after them."""
    *imported, line = text.splitlines()
    known = {}
    exec("\n".join(imported), known)
    return float(eval(line, known))


def terms_of(call):
    return call.terms if isinstance(call, sets.Sum) else (call,)


def kind_of(call):
    """What tells one kind of call from another: everything but its numbers and the keys of its rows."""
    return tuple((x.thing, tuple(kind for kind, *_ in x.rows), x.answer, tuple(x.letters)) for x in terms_of(call))


def spread(size, most):
    return np.unique(np.linspace(0, size - 1, min(most, size)).astype(int))


@every(sets.stanzas())
def test_typing_the_call_of_a_row_gives_its_prediction(name):
    """All rows are priced at once, with arrays; one of each kind of call and some others are typed."""
    result, stanza = confront(name), sets.stanzas()[name]
    kinds = [*{kind_of(stanza.call(row)): i for i, row in enumerate(result.rows)}.values()]
    for i in sorted({*spread(len(result.rows), TYPED), *(kinds[x] for x in spread(len(kinds), TYPED))}):
        said = result.rows[i].call
        assert typed(said) == to_the_last_digit(result.predicted[i]), said


@pytest.mark.parametrize("name", [x for x, c in CONFRONTATIONS.items() if c.call and x not in sets.stanzas()])
def test_a_set_of_code_may_print_its_calls_too(name):
    result = confront(name)
    for i in spread(len(result.rows), 5):
        assert typed(result.rows[i].call) == pytest.approx(result.predicted[i], rel=1e-12)


@every(sets.stanzas())
def test_a_call_says_nothing_but_letters_words_and_rows(name):
    """Every keyword is a letter or a word, and what it says a column, a cell of a named row or arithmetic on these."""
    stanza, rows = sets.stanzas()[name], confront(name).rows
    columns = {x for row in rows for x in row}
    kinds = {}
    for row in rows:
        call = stanza.call(row)
        kinds.setdefault(kind_of(call), call)
    for call in kinds.values():
        for term in terms_of(call):
            assert called(term.thing)
            assert all(x in NOTATION or x in WORDS or x in SERVING.words or x in FREE for x in term.letters)
            assert all(kind in KINDS for kind, *_ in term.rows)
    for said in (stanza.said, *stanza.said.get("when", ()), *stanza.said.get("parts", ())):
        for text in (x for x in said.get("letters", {}).values() if isinstance(x, str)):
            assert all(x in columns or x in NOTATION or x in letters_of(stanza) for x in names(text)), text
    assert stanza.said["measured"] in columns


def letters_of(stanza):
    """Names of a stanza's own that other letters of it rest on."""
    said = (stanza.said, *stanza.said.get("when", ()), *stanza.said.get("parts", ()))
    return {x for part in said for x in part.get("letters", {})}


def test_few_sets_need_python_and_say_why():
    kept = sets.stanzas()
    by_code = [x for x in CONFRONTATIONS if x not in kept]
    in_part = [x for x, s in kept.items() if s.said.get("complete") or s.said.get("readings")]
    assert len(by_code) + len(in_part) <= NEED_PYTHON, [*by_code, *in_part]
    assert not [x for x in (*by_code, *in_part) if not CONFRONTATIONS[x].why]


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


IMPORTS = """from scalebook.tables import accelerators, frameworks, models
from scalebook.training import training_step
"""


def test_a_stanza_and_a_file_make_a_set():
    mine = sets.Stanza("mine", STANZA)
    assert [mine.left_out(x) for x in ROWS] == ["", "that its source makes doubtful"]
    call = mine.call(ROWS[0])
    assert call.text == (
        "training_step(models.llama3_8b, accelerators.h100.at('bf16'), frameworks.nemo, tp=1, dp=8, batch=1, "
        "global_batch=64, seq=8192).step_time"
    )
    assert typed(IMPORTS + call.text) == call.value == to_the_last_digit(mine.predicted(ROWS[:1]).predicted[0])
    other = sets.Stanza("other", STANZA | dict(when=[{"if": {"note": "doubt"}, "framework": "plain"}]))
    assert other.call(ROWS[1]).rows[-1] == ("frameworks", "plain")
    assert mine.left_out(ROWS[0] | {"gpu": "a toaster"}) == "on a device that is not in the table"


@each_case("expressions that are no arithmetic over columns", "text, said", globals())
def test_an_expression_is_arithmetic_over_columns(text, said):
    mine = sets.Stanza("mine", STANZA | dict(letters=dict(tp=text)))
    with pytest.raises(ValueError, match=said):
        mine.call(ROWS[0])


@pytest.mark.parametrize("key", ["file", "what", "sources", "measured", "unit", "group", "answer"])
def test_a_stanza_without_a_key_that_every_set_needs_says_so(key):
    mine = sets.Stanza("mine", {x: y for x, y in STANZA.items() if x != key})
    with pytest.raises(ValueError, match=f"^mine: the stanza lacks {key}[,;]"):
        mine.call(ROWS[0]) if key == "answer" else mine.confrontation()
