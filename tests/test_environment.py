"""environment.yml, pyproject.toml, constraints.txt and what is installed say the same, and every import is declared."""

import ast
import json
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from . import ROOT
from .every import every

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
PINS = [Requirement(x) for x in (ROOT / "constraints.txt").read_text().splitlines() if x and x[0] not in "# "]
NAMED = {"python", "jupyterlab", "ipywidgets", "sympy", "numpy", "matplotlib", "nbval", "pip"}

# Brought by what is declared, and used with it.
BROUGHT = {
    "docutils": "jupyter-book", "ipykernel": "nbval", "ipython": "ipywidgets", "jupyter-client": "nbclient",
    "jupyter-server": "jupyterlab", "matplotlib-inline": "ipywidgets", "mpmath": "sympy", "pillow": "matplotlib",
    "sphinx": "jupyter-book", "traitlets": "ipywidgets",
}  # fmt: skip
DISTRIBUTIONS = {
    "IPython": "ipython", "PIL": "pillow", "yaml": "pyyaml", "py_mini_racer": "mini-racer",
    "mpl_toolkits": "matplotlib",
}  # fmt: skip


def requirements(lines):
    return {canonicalize_name(r.name): r for r in map(Requirement, lines)}


RUNTIME = requirements(PROJECT["dependencies"])
DECLARED = RUNTIME | requirements(EXTRAS["book"]) | requirements(EXTRAS["test"])


def test_conda_names_what_pyproject_names():
    *named, pip = CONDA
    assert {Requirement(x).name for x in named} == NAMED
    assert pip == {"pip": ["-e .[book,test]"]}, "pip installs the rest as `make setup` does"
    assert "-e '.[book,test]'" in (ROOT / "Makefile").read_text()
    for name, wanted in requirements(named).items():
        if name == "python":
            assert str(wanted.specifier) == PROJECT["requires-python"]
        elif name != "pip":
            assert wanted.specifier == DECLARED[name].specifier, name


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_installed(name):
    assert DECLARED[name].specifier.contains(metadata.version(name), prereleases=True)
    pins = [p for p in PINS if canonicalize_name(p.name) == name and (p.marker is None or p.marker.evaluate())]
    assert len(pins) == 1 and pins[0].specifier.contains(metadata.version(name)), "make constraints, or make setup"


def sources():
    book = (f"book/{x}" for x in ("_ext", "claims", "drawings", "measured", "pages", "planner"))
    for folder in ("scalebook", "tests", "tools", *book):
        yield from sorted((ROOT / folder).rglob("*.py"))
    yield ROOT / "conftest.py"
    yield from sorted((ROOT / "notebooks").rglob("*.ipynb"))


def statements(node):
    """The statements below a node, wherever they stand: `ast.walk` looks into every expression too."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for one in getattr(node, field, ()):
            yield one
            yield from statements(one)


def imports(path: Path) -> set[str]:
    """Top-level names of the packages a file imports, the standard library's and our own left out."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = ["".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
        text = "\n".join(re.sub(r"(?m)^(\s*)[%!].*$", r"\1pass", c) for c in cells)
    found = set()
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module.split(".")[0])
    beside = {x.stem for x in path.parent.glob("*.py")} if path.parent.name == "_ext" else set()
    return found - sys.stdlib_module_names - {"scalebook", "tests", "tools"} - beside


# The package needs no extra; what builds the book needs `book` alone, and all that tests import is in `test`.
ALLOWED = {"scalebook": RUNTIME, "book": RUNTIME | requirements(EXTRAS["book"])}
ALLOWED_ELSEWHERE = RUNTIME | requirements(EXTRAS["test"])
ALLOWED["tools"] = {*ALLOWED["book"], *ALLOWED_ELSEWHERE, "torch", "transformers"}  # the last two: configurations.py


@every(sources())
def test_imports_are_declared(path):
    allowed = ALLOWED.get(path.relative_to(ROOT).parts[0], ALLOWED_ELSEWHERE)
    for name in imports(path):
        package = canonicalize_name(DISTRIBUTIONS.get(name, name))
        assert BROUGHT.get(package, package) in allowed, f"{name} is not declared in pyproject.toml"


def test_the_versions_of_python_are_said_alike():
    """In the classifiers, in what is required and in the matrix of the tests; the site is built on one of them."""
    prefix = "Programming Language :: Python :: 3."
    versions = ["3." + x.removeprefix(prefix) for x in PROJECT["classifiers"] if x.startswith(prefix)]
    assert PROJECT["requires-python"] == f">={versions[0]}"
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in versions
    flows = {
        x: yaml.safe_load((ROOT / f".github/workflows/{x}.yml").read_text())["jobs"][x] for x in ("test", "publish")
    }
    assert flows["test"]["strategy"]["matrix"]["python"] == versions
    [setup] = [x["with"] for x in flows["publish"]["steps"] if "setup-python" in x.get("uses", "")]
    assert setup["python-version"] in versions
    assert "make interpreters" in (ROOT / ".ci/run").read_text()


def test_package_data_is_declared():
    """Every file of the package that is not Python travels with an installation."""
    kinds = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["scalebook"]
    kept = {kind.removeprefix("**/*") for kind in kinds} | {".py", ".pyc"}
    files = [p for p in (ROOT / "scalebook").rglob("*") if p.is_file()]
    assert {p.suffix for p in files} <= kept
