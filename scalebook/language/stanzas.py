"""The tables (stanzas) of a TOML file, each parsed when first asked for: a call needs few of a hundred rows.

>>> file = Stanzas("a.toml", '[b200]\\nhbm = "8 TB/s"\\n[h100]\\nhbm = "3.35 TB/s"\\n')
>>> list(file), file["h100"], file.mentioning("8 TB/s")
(['b200', 'h100'], {'hbm': '3.35 TB/s'}, ['b200'])
"""

import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

__all__ = ["Stanzas", "file_of", "tables_of"]

_HEAD = re.compile(r'\n\["?(.+?)"?\]$', re.M)  # ten times faster than with ^ in front


class Stanzas(Mapping):
    """The tables (stanzas) of a TOML file by key, each parsed when asked for.  Only comments may precede the first."""

    def __init__(self, name: str, text: str, parse: Callable[[str], dict] = tomllib.loads):
        self.name, self._parse, self._parsed = name, parse, {}
        _, *pieces = _HEAD.split("\n" + text)
        self._texts = dict(zip(pieces[::2], pieces[1::2], strict=True))

    def __getitem__(self, key):
        if key not in self._parsed:
            self._parsed[key] = self._parse(self._texts[key])
        return self._parsed[key]

    def __iter__(self):
        return iter(self._texts)

    def __len__(self):
        return len(self._texts)

    def __contains__(self, key):
        return key in self._texts

    def mentioning(self, *texts: str) -> list[str]:
        """Return the keys of the tables whose text contains one of these texts, without parsing any."""
        return [key for key, own in self._texts.items() if any(x in own for x in texts)]


def file_of(package: str, name: str) -> Path:
    """Return the path of a file that lies in a package.  `importlib.resources` would slow each import down."""
    return Path(sys.modules[package].__path__[0], name)


def tables_of(package: str, name: str) -> dict:
    """Return all tables of a TOML file that lies in a package."""
    return tomllib.loads(file_of(package, name).read_text("utf-8"))
