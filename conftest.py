"""What every test and doctest shares."""

import sys

import pytest
from nbval.kernel import RunningKernel

from tools.kernels import fork_kernels

fork_kernels()


@pytest.fixture(autouse=True)
def no_figure_is_left():
    """A doctest that draws starts on fresh axes."""
    yield
    if plt := sys.modules.get("matplotlib.pyplot"):
        plt.close("all")


# nbval 0.11 runs cells with store_history=False: IPython then prints what a trailing `;` hides (nbval issue 194).


def execute_cell_input(self, cell_input, allow_stdin=None):
    return self.kc.execute(cell_input, allow_stdin=allow_stdin, stop_on_error=False, store_history=True)


RunningKernel.execute_cell_input = execute_cell_input
