"""nbval 0.11 runs cells with store_history=False: IPython then prints what a trailing `;` hides (nbval issue 194)."""

from nbval.kernel import RunningKernel


def execute_cell_input(self, cell_input, allow_stdin=None):
    return self.kc.execute(cell_input, allow_stdin=allow_stdin, stop_on_error=False, store_history=True)


RunningKernel.execute_cell_input = execute_cell_input
