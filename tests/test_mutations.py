"""The list of mutations fits the code; `make mutations` makes them, in minutes."""

import pytest

from tools import mutations


def test_every_mutation_still_has_its_text():
    found = mutations.listed()
    assert len(found) >= 60
    assert all(x["old"] != x["new"] and {*x} <= {"file", "old", "new", "survives"} for x in found.values())


def test_a_text_that_is_gone_is_a_sentence(tmp_path, monkeypatch):
    stanza = '[gone]\nfile = "scalebook/training/memory.py"\nold = "no such code"\nnew = ""\n'
    (tmp_path / "mutations.toml").write_text(stanza, "utf-8")
    monkeypatch.setattr(mutations, "__file__", str(tmp_path / "mutations.py"))
    with pytest.raises(ValueError, match=r"mutations.toml, \[gone\]: 'no such code' occurs 0 times in "):
        mutations.listed()
