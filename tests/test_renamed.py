"""Every old name still works for one release, warns, and gives the object of the new name."""

import importlib
import subprocess
import sys

import pytest

from scalebook.language.renamed import old_names, resolved

from .every import every

MODULES, NAMES = old_names()


@every(NAMES.items())
def test_an_old_name_gives_the_new_object(old, new):
    holder, _, name = old.rpartition(".")
    module = importlib.import_module(holder)
    assert name not in module.__all__, "an old name is not exported"
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        assert getattr(module, name) is resolved(new)


@every(MODULES.items())
def test_an_old_module_is_the_new_one(old, new):
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        assert importlib.import_module(old) is importlib.import_module(new)


def test_the_warning_names_the_line_that_uses_the_old_name():
    code = "\nfrom scalebook.training.apart import training_apart\nfrom scalebook.training import operating"
    run = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True)
    assert "<string>:2" in run.stderr and "<string>:3" in run.stderr
