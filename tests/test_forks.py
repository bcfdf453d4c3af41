"""Tests run in forked workers (tools/forks.py) report what they would report in one process."""

import os
import subprocess
import sys

import pytest

from . import ROOT

GOOD = (ROOT / "tests" / "scripts" / "forked.txt").read_text("utf-8")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


@pytest.fixture
def ran(tmp_path):
    """The outcome of files of tests in two workers, as (exit status, what pytest said)."""

    def run(**files):
        for name, text in files.items():
            (tmp_path / f"test_{name}.py").write_text(text)
        (tmp_path / "conftest.py").write_text("import os\nos.environ['COLLECTED_BY'] = str(os.getpid())\n")
        command = [sys.executable, "-m", "pytest", "-p", "tools.forks", "-p", "no:cacheprovider", "--forks", "2"]
        done = subprocess.run([*command, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
        return done.returncode, done.stdout

    return run


def test_every_test_runs_once_in_a_worker(ran):
    status, said = ran(one=GOOD, two=GOOD, three=GOOD)
    assert status == 0 and "9 passed" in said
    assert "s of processors, most of them for" in said and said.count(" s  ") == 3


def test_a_failure_is_reported_with_its_output(ran):
    status, said = ran(one=GOOD, bad="def test_bad():\n    print('said by it')\n    assert 6 * 7 == 43\n")
    assert status == 1 and "1 failed, 3 passed" in said and "assert (6 * 7) == 43" in said and "said by it" in said


def test_a_worker_that_dies_fails_the_run_and_is_named(ran):
    status, said = ran(one=GOOD, bad="import os\n\ndef test_ends_all():\n    os._exit(0)\n")
    assert status != 0 and "a worker died in" in said and "test_ends_all" in said
