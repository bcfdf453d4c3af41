"""Read the TOML tables (stanzas) that describe measured sets. `stanza_keys.toml` says what each of their keys means."""

import tomllib
from collections.abc import Mapping

from scalebook.language.notation import nearest, quoted
from scalebook.language.stanzas import file_of, tables_of

__all__ = ["inherited", "joined", "written"]

_KEYS = tuple(tables_of(__package__, "stanza_keys.toml"))
_JOINED = ("letters", "words", "names", "extract", "shape", "labels")  # tables of keys that are joined


def joined(first: Mapping, second: Mapping) -> dict:
    """Join two stanzas: where both have a key, a nested table is merged, and any other value is the second's."""
    both = {**first, **second}
    for key in _JOINED:
        if key in first and key in second:
            both[key] = {**first[key], **second[key]}
            for inner, x in second[key].items():
                if isinstance(x, Mapping) and isinstance(first[key].get(inner), Mapping):
                    both[key][inner] = {**first[key][inner], **x}
    return both


def written() -> dict[str, dict]:
    """Return every measured set's TOML description (stanza) by name, with the keys it inherits (`like`)."""
    said: dict[str, dict] = {}
    for path in sorted(file_of(__package__, "stanzas").iterdir(), key=lambda x: x.name):
        if path.name.endswith(".toml"):
            said |= tomllib.loads(path.read_text("utf-8"))
    return {name: inherited(name, said) for name in said}


def inherited(name: str, said: Mapping) -> dict:
    """Return a set's stanza joined with the stanza of the set which its key `like` names.

    Raises ValueError, naming the stanza, for an unknown key or set.
    """
    own = dict(said[name])
    for part in (own, *own.get("when", ()), *own.get("also", ()), *own.get("parts", ())):
        if strange := next((x for x in part if x not in (*_KEYS, "if", "where")), None):
            raise ValueError(f"{name}: a stanza has no key {quoted(strange)}; {nearest(strange, _KEYS)}")
    if (other := own.pop("like", None)) is None:
        return own
    if other not in said:
        raise ValueError(f"{name} is like {quoted(other)}, which is no set; {nearest(other, said)}")
    return joined(inherited(other, said), own)
