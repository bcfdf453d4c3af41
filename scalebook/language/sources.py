"""Publications by key, from TOML files: `[key]` with title, author, year and url.  Formulas cite "key place"."""

import html
from collections import ChainMap
from collections.abc import Mapping
from threading import RLock

from .notation import UnknownKey, nearest, quoted
from .stanzas import Stanzas

__all__ = ["SOURCES", "Sources", "cite", "cite_html"]


class Sources(Mapping):
    """Publications and web pages that formulas and table cells cite, by key."""

    def __init__(self):
        self._folders, self._files, self._lock = [], ChainMap(), RLock()

    def add(self, folder) -> None:
        """Add the publications in the files `sources*.toml` of a folder, which are read when one is first needed."""
        with self._lock:
            self._folders.append(folder)

    def _read(self):
        with self._lock:  # a second thread waits until all files are read
            while self._folders:
                for path in sorted(self._folders[-1].iterdir(), key=lambda p: p.name):
                    if path.name.startswith("sources") and path.name.endswith(".toml"):
                        file = Stanzas(path.name, path.read_text("utf-8"))
                        both = file.keys() & self._files.keys()
                        if twice := next((x for x in both if self._files[x] != file[x]), None):
                            raise ValueError(f"{path.name}: [{twice}] is entered twice, differently")
                        self._files = self._files.new_child(file)
                self._folders.pop()
        return self._files

    def __getitem__(self, key):
        if key not in self:
            raise UnknownKey(f"no source is called {quoted(key)}; {nearest(key, self)}")
        return self._files[key]

    def __contains__(self, key):
        return isinstance(key, str) and key in self._read()

    def __iter__(self):
        return iter(self._read())

    def __len__(self):
        return len(self._read())


SOURCES = Sources()


def cite(source: str) -> str:
    """Return the full citation for "key place", such as "williams2009 §3".  Other text is returned unchanged.

    >>> print(cite("williams2009 §3"))
    Williams et al., Roofline: an insightful visual performance model for multicore architectures, 2009, §3
    """
    if not isinstance(source, str):
        raise TypeError(f"a source is a text such as 'williams2009 §3', not {quoted(source)}")
    key, _, place = source.partition(" ")
    if key not in SOURCES:
        return source
    entry = SOURCES[key]
    return ", ".join(filter(None, [entry.get("author"), entry["title"], str(entry.get("year", "")), place]))


def cite_html(source: str) -> str:
    """Return a link to the source of "key place", with the full citation as a tooltip."""
    key = source.partition(" ")[0]
    url = SOURCES[key].get("url", "") if key in SOURCES else ""
    shown = html.escape(source)
    return f'<a href="{html.escape(url)}" title="{html.escape(cite(source))}">{shown}</a>' if url else shown
