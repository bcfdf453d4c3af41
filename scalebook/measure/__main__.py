"""Command line: `python -m scalebook.measure` measures this machine and compares predictions with steps timed on it."""

import argparse

from scalebook.shell.sentences import say

from . import measure, saved_at


def main(arguments: list[str] | None = None) -> str:
    """Run the command and return what it prints; on an error, exit with one line that says what would work."""
    parser = argparse.ArgumentParser("python -m scalebook.measure", description=__doc__)
    parser.add_argument("--save", metavar="FILE", help="write the row, such as my.toml, and all times beside it")
    parser.add_argument("--quick", action="store_true", help="a second or two: sizes that caches hold")
    parser.add_argument("--with", dest="on", metavar="NAME", help="numpy, torch or jax")
    given = parser.parse_args(arguments)
    try:
        if given.save is not None:
            saved_at(given.save)  # check the path before spending a minute
        mine = measure(given.quick, given.on)
    except OSError as error:
        parser.exit(2, f"{error.filename or 'a file'} could not be written: {error.strerror}\n")
    except (LookupError, TypeError, ValueError) as error:
        parser.exit(2, f"{error}\n")
    text = "\n\n".join([repr(mine), mine.stanza, repr(mine.confront())])
    if given.save is None:
        return f"{text}\n\n--save my.toml writes the row"
    try:
        mine.save(given.save)
    except (OSError, ValueError) as error:
        print(text, flush=True)  # print before writing, in case the disk is full
        parser.exit(2, f"{given.save} could not be written: {getattr(error, 'strerror', None) or error}\n")
    return f'{text}\n\naccelerators.read("{given.save}")'


if __name__ == "__main__":
    say(main)
