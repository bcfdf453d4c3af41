"""The layers point one way, modules stay small, and importing a subject stays light."""

import ast
import importlib.util
import keyword
import subprocess
import sys
from pathlib import Path

import pytest

from scalebook import ROOMS
from scalebook.language import NOTATION, Formula, Row

from .every import every
from .support import NAMES, ROOT, JavaScript, each_case
from .test_environment import statements

ENGINE = JavaScript()


def path(name):
    return Path(importlib.util.find_spec(name).origin)


def imported(name, text=None):
    """The modules of the package that a module imports, wherever in it the import stands, a function's body too."""
    package = name if path(name).name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in statements(ast.parse(path(name).read_text("utf-8") if text is None else text)):
        if isinstance(node, ast.Import):
            found |= {x.name for x in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            found |= {f"{base}.{x.name}" if f"{base}.{x.name}" in NAMES else base for x in node.names}
    return {x for x in found if x.split(".")[0] == "scalebook"}


def layer(name):
    """Where a module's room stands in the list; the package itself, which imports nothing, above all."""
    return ROOMS.index(name.split(".")[1]) if "." in name else -1


def upward(name, text=None):
    return sorted(x for x in imported(name, text) if layer(x) > layer(name))


@every(NAMES)
def test_imports_point_one_way(name):
    assert not upward(name)


def test_the_list_names_every_room():
    assert {x.split(".")[1] for x in NAMES} == set(ROOMS)


def test_the_root_holds_rooms_alone():
    assert len(list((ROOT / "scalebook").glob("*.py"))) <= 3


@each_case("imports that point upwards", "name, text", globals())
def test_the_check_sees_what_points_the_other_way(name, text):
    assert upward(name, text) and not upward("scalebook.display.grid", text)


def test_the_check_sees_imports():
    assert "scalebook.language.notation" in imported("scalebook.language.units")
    assert "scalebook.tables.huggingface" in imported("scalebook.tables")
    assert "scalebook.machine.roofline" in imported("scalebook.inference.tokens")


@every(NAMES)
def test_modules_stay_small(name):
    assert len(path(name).read_text("utf-8")) <= 20_000, "a module is read at one sitting"


SHOWS = {"matplotlib", "ipywidgets", "anywidget", "IPython", "pandas", "scipy"}


@pytest.mark.parametrize(("name", "not_loaded"), [("memory", SHOWS), ("search", SHOWS | {"scalebook.training"})])
def test_a_subject_imports_nothing_of_the_display_and_a_search_nothing_of_training(name, not_loaded):
    code = f"import sys, scalebook.{name}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "sympy" in loaded and f"scalebook.{name}" in loaded and not not_loaded & {*loaded}


@every(NOTATION)
def test_a_letter_can_be_a_name_everywhere(name):
    assert name.isidentifier() and name.isascii()
    assert not keyword.iskeyword(name) and not keyword.issoftkeyword(name)
    assert ENGINE(f"(() => {{ 'use strict'; const {name} = 1; return {name}; }})()") == 1
    assert name not in ("eval", "arguments", "undefined", "Math", "NaN", "Infinity")
    assert name not in ("math", "numpy", "self", "max", "min", "source", "name"), "generated code and tables use it"
    assert name not in dir(Row) and name not in vars(Row("", {})) and name not in ("knowns", "letters")
    assert not hasattr(Formula, "__code__")


AT_ONCE = (ROOT / "tests" / "scripts" / "at_once.txt").read_text("utf-8")


# Python's own interval, and one that shows more.
@pytest.mark.parametrize(("interval", "what"), [("0.005", "step"), ("1e-6", "tables")])
def test_eight_threads_at_first_use_agree_to_the_last_digit(interval, what):
    run = subprocess.run([sys.executable, "-c", AT_ONCE, interval, what], capture_output=True, text=True, check=False)
    assert not run.returncode, run.stderr[-2000:]
    assert int(run.stdout) > (60 if what == "step" else 20)
