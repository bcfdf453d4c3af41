"""Run a command of the package: print what it says, and exit quietly."""

import os
import sys
from collections.abc import Callable

__all__ = ["say"]


def say(main: Callable[[list[str]], str]) -> None:
    """Run a command's `main` and print the result.  Exits with 1 on a broken pipe, and with 130 if interrupted."""
    try:
        if said := main(sys.argv[1:]):
            print(said, flush=True)
    except BrokenPipeError:  # the reader closed the pipe, as `head` does: print nothing more, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        print("interrupted: nothing more was done or written", file=sys.stderr, flush=True)
        sys.exit(130)
