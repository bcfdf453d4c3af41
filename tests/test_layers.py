"""The layers point one way, modules stay small, and importing a subject stays light."""

import ast
import keyword
import subprocess
import sys

import pytest

from scalebook.language import NOTATION, Formula, Row

from .support import NAMES, ROOT

LIGHT = {"scalebook.language", "scalebook.tables"}
JAVASCRIPT = [
    "arguments",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "undefined",
    "var",
    "void",
    "while",
    "with",
    "yield",
    "Math",
    "NaN",
    "Infinity",
]


def path(name):
    folder = ROOT.joinpath(*name.split(".")[1:])
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def imported(name):
    """The modules of the package that a module imports, wherever in it the import stands."""
    package = name if path(name).name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path(name).read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {x.name for x in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            found |= {f"{base}.{x.name}" if f"{base}.{x.name}" in NAMES else base for x in node.names}
    return {x for x in found if x.startswith("scalebook")}


def layer(name):
    return name.split(".")[1] if "." in name else ""


MAY_IMPORT = {"language": {"language"}, "tables": {"language", "tables"}}


@pytest.mark.parametrize("name", NAMES)
def test_imports_point_one_way(name):
    used = {layer(x) for x in imported(name)}
    here = layer(name)
    if here in MAY_IMPORT:
        assert used <= MAY_IMPORT[here]
    elif here == "measurements":
        assert "display" not in used
    elif here != "display":
        assert not used & {"display", "measurements"}


def test_the_check_sees_imports():
    assert "scalebook.language.notation" in imported("scalebook.language.units")
    assert "scalebook.tables.huggingface" in imported("scalebook.tables")
    assert "scalebook.roofline" in imported("scalebook.memory")


@pytest.mark.parametrize("name", NAMES)
def test_modules_stay_small(name):
    assert len(path(name).read_text("utf-8").splitlines()) <= 380


def test_a_subject_imports_nothing_of_the_display():
    code = "import sys, scalebook.memory; print(*sorted({x.partition('.')[0] for x in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "sympy" in loaded and not {"matplotlib", "ipywidgets", "anywidget", "IPython", "pandas", "scipy"} & set(
        loaded
    )


@pytest.mark.parametrize("name", NOTATION)
def test_a_letter_can_be_a_name_everywhere(name):
    assert name.isidentifier() and name.isascii()
    assert not keyword.iskeyword(name) and not keyword.issoftkeyword(name) and name not in JAVASCRIPT
    assert name not in ("math", "numpy", "self", "max", "min", "source", "name"), "generated code and tables use it"
    assert name not in dir(Row) and name not in vars(Row("", {})) and name not in ("knowns", "letters")
    assert not hasattr(Formula, "__code__")
