"""Kernels that begin where the book's imports end.

A chapter runs in a kernel of its own, and each would spend two seconds on the same imports.  So one process imports
them, and each kernel is forked from it: from then on it is as alone as any other.
"""

import contextlib
import gc
import os
import pickle
import select
import signal
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from jupyter_client.provisioning import local_provisioner

__all__ = ["fork_kernels"]

# What asks for its kernel when it is imported (widgets, the formats of figures) is left to the chapter.
IMPORTED = [
    "matplotlib.pyplot",
    "scalebook.training",
    "scalebook.inference",
    "scalebook.measurements",
    "scalebook.search",
    "sympy.physics.units",  # simplifying asks for it
]
_forked = False  # whether this process, or one that it was forked from, has called `fork_kernels`
INLINE = "module://matplotlib_inline.backend_inline"  # kernels say it by a variable, too late for what is imported


class Forked:
    """A kernel's process, for Jupyter, which knows those of `subprocess` only."""

    stdin = stdout = stderr = None

    def __init__(self, pid):
        self.pid = pid

    def poll(self):
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    def wait(self, timeout=None):
        end = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None and (end is None or time.monotonic() < end):
            time.sleep(0.01)
        return self.poll()

    def send_signal(self, number):
        if self.poll() is None:
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

    for kind in (DeprecationWarning, PendingDeprecationWarning):  # pytest shows them wherever they come from
        warnings.simplefilter("ignore", kind)
    warnings.filterwarnings("default", category=DeprecationWarning, module="__main__")
    matplotlib.rcParams["backend"] = INLINE
    sys.argv = [kernelapp.__file__, *arguments, f"--IPKernelApp.parent_handle={os.getppid()}"]  # it ends when that does
    kernelapp.launch_new_instance()


def _reap(*_):
    """Forget the kernels that have ended, which are otherwise still there to be asked for."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _nursery(listener, alive):
    """Fork a kernel for each process that connects, until all that could have gone."""
    with open(os.devnull, "w") as nothing:  # what Jupyter says of its kernels is no output of a test
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    import_module("ipykernel.kernelapp")  # where it is imported, tqdm draws bars for notebooks
    signal.signal(signal.SIGCHLD, _reap)
    while alive not in select.select([listener, alive], [], [])[0]:
        caller, _ = listener.accept()
        with caller, caller.makefile("rwb") as said:
            asked = pickle.load(said)
            if pid := os.fork():
                pickle.dump(pid, said)
                continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listener.close()
        os.close(alive)
        _kernel(*asked)
        return


def fork_kernels(prepare: Callable[[], object] = lambda: None) -> None:
    """Fork the kernels of this process, and of those forked from it, from a copy of it as it is after `prepare`.

    The first call counts. Where the system cannot fork, kernels are started as they were.
    """
    global _forked
    if _forked or not hasattr(os, "fork"):
        return
    _forked = True
    gc.disable()  # of what is prepared here nothing is let go
    for name in IMPORTED:
        import_module(name)
    prepare()
    gc.collect()
    gc.freeze()  # no kernel and no worker looks through it again, which would copy each page of it too
    gc.enable()
    address = str(Path(tempfile.mkdtemp(prefix="kernels-")) / "socket")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    alive, ours = os.pipe()  # `ours` is closed when the last process that may ask for a kernel has ended
    if not os.fork():
        os.close(ours)
        try:
            _nursery(listener, alive)
        finally:
            os._exit(0)
    listener.close()
    os.close(alive)

    def launch(command, cwd=None, env=None, **_):
        asked = command[command.index("-f") :], cwd or os.getcwd(), dict(env or {})
        with socket.socket(socket.AF_UNIX) as nursery:
            nursery.connect(address)
            with nursery.makefile("rwb") as said:
                pickle.dump(asked, said)
                said.flush()
                pid = pickle.load(said)
        forked = Forked(pid)
        while forked.poll() is None and os.getpgid(pid) != pid:
            time.sleep(0.001)
        return forked

    local_provisioner.launch_kernel = launch
