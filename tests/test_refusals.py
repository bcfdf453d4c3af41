"""What is refused, and in which sentence: each call of refusals.txt raises the error that stands under it.

The file reads like a doctest. A line without an error under it prepares what follows; `...` stands for any words. An
error says one sentence, in which these words occur in this order.
"""

import re
from doctest import DocTestParser
from pathlib import Path

import pytest

TEXT = Path(__file__).with_suffix(".txt").with_stem("refusals").read_text("utf-8")
SECTIONS = dict(re.findall(r"(?ms)^# (.+?)\n(.*?)(?=^# |\Z)", TEXT))


def difference(source, want, names):
    """What a call does otherwise than `want` says, or nothing."""
    kind, _, words = " ".join(want.split()).partition(": ")
    try:
        exec(source, names)
    except Exception as error:
        said = str(error)
        found = re.search(".*".join(map(re.escape, words.split("..."))), " ".join(said.split(" ")))
        is_kind = kind in (x.__name__ for x in type(error).__mro__) and said in error.args
        return "" if found and is_kind and "\n" not in said else f"says {type(error).__name__}: {said}"
    return "is not refused"


@pytest.mark.parametrize("section", SECTIONS)
def test_a_refusal_says_what_was_wrong(section):
    names, wrong = {}, []
    for line in DocTestParser().get_examples(SECTIONS[section]):
        if not line.want:
            exec(line.source, names)
        elif other := difference(line.source, line.want, names):
            wrong.append(f"{line.source}should say {line.want}but {other}")
    assert not wrong, "\n".join(wrong)
