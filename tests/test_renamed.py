"""Every old name still works for one release, warns, and gives the object of the new name."""

import importlib
import subprocess
import sys

import pytest

from scalebook.language.renamed import MODULES, NAMES, resolved

from .every import every


@every({**MODULES, **NAMES}.items())
def test_an_old_name_gives_the_new_object(old, new):
    holder, _, name = old.rpartition(".")
    module = importlib.import_module(holder)
    assert name not in vars(module).get("__all__", ()), "an old name is not exported"
    vars(module).pop(name, None)  # an import by the old name leaves the module here
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        assert getattr(module, name) is resolved(new)


def test_old_modules_are_imported_by_their_old_names_too():
    code = "import warnings; warnings.simplefilter('error')\n" + "\n".join(
        f"try:\n    import {old}\nexcept DeprecationWarning as said:\n    print(said.args[0])" for old in MODULES
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert not run.returncode, run.stderr[-2000:]
    assert len(run.stdout.splitlines()) == len(MODULES)


def test_the_warning_names_the_line_that_uses_the_old_name():
    code = "\nfrom scalebook.training.apart import training_apart\nfrom scalebook.training import operating"
    run = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True)
    assert "<string>:2" in run.stderr and "<string>:3" in run.stderr
