"""What every test and doctest shares."""

import contextlib
import sys

import nbval.kernel
import pytest

from tools.kernels import fork_kernels

pytest_plugins = ["tools.forks"]


def pytest_configure(config):
    """Kernels of notebooks are forked from this process; where all tests run, they begin with every set confronted.

    Workers do too, without notebooks as well: else each of them would confront the same sets.
    """
    has_notebooks = config.getoption("nbval")
    is_shared = config.getoption("forks") and (has_notebooks or "tests" in config.args)
    prepare = confront_all if is_shared else lambda: None
    if has_notebooks:
        fork_kernels(prepare)
    else:
        prepare()


def confront_all():
    """Confront every set, once for all tests and chapters."""
    from scalebook.measurements import CONFRONTATIONS, confront

    for name in CONFRONTATIONS:
        with contextlib.suppress(Exception):  # the set's own test says what is wrong
            confront(name)


@pytest.fixture(autouse=True)
def no_figure_is_left():
    """A doctest that draws starts on fresh axes."""
    yield
    if plt := sys.modules.get("matplotlib.pyplot"):
        plt.close("all")


# nbval 0.11 runs cells with store_history=False: IPython then prints what a trailing `;` hides (nbval issue 194).


def execute_cell_input(self, cell_input, allow_stdin=None):
    return self.kc.execute(cell_input, allow_stdin=allow_stdin, stop_on_error=False, store_history=True)


nbval.kernel.RunningKernel.execute_cell_input = execute_cell_input

# Jupyter looks for free ports before a kernel is there to hold them.  If another process takes one meanwhile, the
# kernel dies (jupyter_client issue 487), and another one is started with other ports.


def start_kernel(*names, start=nbval.kernel.start_new_kernel, **settings):
    for _ in range(2):
        with contextlib.suppress(RuntimeError):
            return start(*names, **settings)
    return start(*names, **settings)


nbval.kernel.start_new_kernel = start_kernel
