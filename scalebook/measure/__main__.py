"""`python -m scalebook.measure` measures the machine that it runs on, and holds formulas against steps there."""

import argparse
from pathlib import Path

from scalebook.shell.sentences import say, sentence

from . import measure


def main(arguments: list[str] | None = None) -> str:
    """What the command prints; exits with one line on what was wrong and what would have worked."""
    parser = argparse.ArgumentParser("python -m scalebook.measure", description=__doc__)
    parser.add_argument("--save", metavar="FILE", help="write the row, such as my.toml, and all times beside it")
    parser.add_argument("--quick", action="store_true", help="a second or two: sizes that caches hold")
    parser.add_argument("--with", dest="on", metavar="NAME", help="numpy, torch or jax")
    given = parser.parse_args(arguments)
    try:
        _can_save(given.save)
        mine = measure(given.quick, given.on)
        if given.save:
            mine.save(given.save)
    except OSError as error:
        parser.exit(2, f"{error.filename or given.save or 'a file'} could not be written: {error.strerror}\n")
    except (LookupError, TypeError, ValueError) as error:
        parser.exit(2, f"{sentence(error)}\n")
    next_ = f'accelerators.read("{given.save}")' if given.save else "--save my.toml writes the row"
    return "\n\n".join([repr(mine), mine.stanza, repr(mine.confront()), next_])


def _can_save(path):
    """Before a minute is spent."""
    if path is None:
        return
    if Path(path).suffix != ".toml":
        raise ValueError(f"a row is saved in a TOML file, such as my.toml, not in {path}")
    if not Path(path).resolve().parent.is_dir():
        raise ValueError(f"{path} could not be written: there is no folder {Path(path).resolve().parent}")


if __name__ == "__main__":
    say(main)
