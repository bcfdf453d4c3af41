"""`scalebook.<name>`: the names typed first are there, and the package's import costs nothing."""

import importlib
import pickle
import subprocess
import sys

import pytest

import scalebook
from scalebook import _FIRST, accelerators, models

from .support import cases


def fresh(code):
    """What a new interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_the_import_is_instantaneous():
    """Nothing but the package itself is loaded, so that names are completed before SymPy is needed."""
    code = "import sys; before = {*sys.modules}; import scalebook; dir(scalebook); print(*{*sys.modules} - before)"
    loaded = set(fresh(code))
    assert not {x.split(".")[0] for x in loaded} & {"sympy", "numpy", "matplotlib", "ipywidgets"}
    assert {x for x in loaded if x.startswith("scalebook")} == {"scalebook"}


def test_a_star_import_gives_them_all():
    names = {}
    exec("from scalebook import *", names)
    assert set(names) - {"__builtins__"} == set(_FIRST)


@pytest.mark.parametrize("name", _FIRST)
def test_each_is_what_its_module_has(name):
    own = getattr(importlib.import_module(f"scalebook.{_FIRST[name]}"), name)
    assert getattr(scalebook, name) in (own, sys.modules.get(f"scalebook.{name}"))
    assert callable(own) or len(own) > 10


def test_search_is_the_same_whatever_was_imported_before():
    again = "import scalebook.search; from scalebook import search"
    code = f"import scalebook; a = scalebook.search; {again}; print(a is search is scalebook.search.search)"
    assert fresh(code) == ["True"]
    known = dict(context=8192, weight_bits=16, kv_bits=16, progress=False)
    found = scalebook.search(
        scalebook.decoding, models.llama3_8b, accelerators.h100, batch=[1, 2], maximize="batch", **known
    )
    assert found.best[0].batch == 2 and pickle.loads(pickle.dumps(scalebook.search)) is scalebook.search


def test_names_and_aims_are_completed():
    typed = cases("what TAB completes", globals())
    first = "from scalebook import decoding, training_step; from scalebook.search import search"
    first += "; get_ipython().Completer.use_jedi = False"  # whose finds `complete` leaves out
    start = "from IPython.core.interactiveshell import InteractiveShell; shell = InteractiveShell.instance()"
    found = fresh(
        f"{start}; shell.run_cell({first!r})\nfor x in {[*typed]}: print(*shell.complete(None, x)[1], sep=',')"
    )
    assert all({*x.split(",")} >= {name} for x, name in zip(found, typed.values(), strict=True))
