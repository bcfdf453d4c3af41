"""Kernels that begin where the book's imports end.

A chapter runs in a kernel of its own, and each would spend two seconds on the same imports.  So one process imports
them, and each kernel is forked from it: from then on it is as alone as any other.
"""

import multiprocessing
import os
import signal
import sys
import time
from types import ModuleType
from unittest.mock import patch

from jupyter_client.provisioning import local_provisioner

__all__ = ["fork_kernels"]

# What asks for its kernel when it is imported (widgets, the formats of figures) is left to the chapter.
IMPORTED = [
    "ipykernel.kernelapp",
    "matplotlib.pyplot",
    "scalebook.training",
    "scalebook.inference",
    "scalebook.measurements",
    "scalebook.search",
    "sympy.physics.units",  # simplifying asks for it
]
INLINE = "module://matplotlib_inline.backend_inline"  # kernels say it by a variable, too late for what is imported


class Forked:
    """A kernel's process, for Jupyter, which knows those of `subprocess` only."""

    stdin = stdout = stderr = None

    def __init__(self, process):
        self.process, self.pid = process, process.pid

    def poll(self):
        return self.process.exitcode

    def wait(self, timeout=None):
        self.process.join(timeout)
        return self.process.exitcode

    def send_signal(self, number):
        if self.process.is_alive():
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def _kernel(arguments, folder, environment):
    os.setsid()  # a group of its own, since Jupyter ends a kernel with all its group
    os.chdir(folder)
    os.environ.update(environment)
    import matplotlib
    from ipykernel import kernelapp

    matplotlib.rcParams["backend"] = INLINE
    sys.argv = [kernelapp.__file__, *arguments, f"--IPKernelApp.parent_handle={os.getppid()}"]  # it ends when that does
    kernelapp.launch_new_instance()


def fork_kernels() -> None:
    """From now on this process forks its kernels, where the system can; else they are started as they were."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)

    def launch(command, cwd=None, env=None, **_):
        arguments = command[command.index("-f") :]
        process = context.Process(target=_kernel, args=(arguments, cwd or os.getcwd(), dict(env or {})), daemon=True)
        with patch.dict(sys.modules, {"__main__": ModuleType("__main__")}):  # else each kernel would import ours
            process.start()
        while process.is_alive() and os.getpgid(process.pid) != process.pid:
            time.sleep(0.001)
        return Forked(process)

    local_provisioner.launch_kernel = launch
