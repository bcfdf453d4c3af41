"""What the package's commands share: saying one sentence where something is wrong, and ending quietly."""

import os
import sys
from collections.abc import Callable

__all__ = ["say", "sentence"]


def sentence(error: Exception) -> str:
    """What an error says; Python prints a missing key's in quotes.

    >>> sentence(KeyError("accelerators has no 'h10'"))
    "accelerators has no 'h10'"
    """
    return str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)


def say(main: Callable[[list[str]], str]) -> None:
    """Print what `main` makes of the command's arguments.

    Exits with 1 and no word where nobody reads it any more, with 130 and one where it is interrupted.
    """
    try:
        if said := main(sys.argv[1:]):
            print(said, flush=True)
    except BrokenPipeError:  # the reader has gone, as `head` does: nothing is left to say, at exit neither
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        print("interrupted: nothing more was done or written", file=sys.stderr, flush=True)
        sys.exit(130)
