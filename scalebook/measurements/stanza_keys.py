"""How the stanzas that describe measured sets are read. `stanza_keys.toml` says what each of their keys means."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files

from scalebook.language.notation import nearest, quoted

__all__ = ["inherited", "joined", "written"]

_KEYS = tuple(tomllib.loads((files(__package__) / "stanza_keys.toml").read_text("utf-8")))
_JOINED = ("letters", "words", "names", "extract", "shape", "labels")  # tables of keys that are joined


def joined(first: Mapping, second: Mapping) -> dict:
    """Return one stanza over another: tables of keys are joined, every other key is the second's."""
    both = {**first, **second}
    for key in _JOINED:
        if key in first and key in second:
            both[key] = {**first[key], **second[key]}
            for inner, x in second[key].items():
                if isinstance(x, Mapping) and isinstance(first[key].get(inner), Mapping):
                    both[key][inner] = {**first[key][inner], **x}
    return both


def written() -> dict[str, dict]:
    """Return every stanza of the folder by name, with the keys that it takes over by `like`."""
    said: dict[str, dict] = {}
    for path in sorted(files(__package__).joinpath("stanzas").iterdir(), key=lambda x: x.name):
        if path.name.endswith(".toml"):
            said |= tomllib.loads(path.read_text("utf-8"))
    return {name: inherited(name, said) for name in said}


def inherited(name: str, said: Mapping) -> dict:
    """Return a stanza with the keys of those it is like. Raises ValueError, naming it, for an unknown key."""
    own = dict(said[name])
    for part in (own, *own.get("when", ()), *own.get("also", ()), *own.get("parts", ())):
        if strange := next((x for x in part if x not in (*_KEYS, "if", "where")), None):
            raise ValueError(f"{name}: a stanza has no key {quoted(strange)}; {nearest(strange, _KEYS)}")
    if (other := own.pop("like", None)) is None:
        return own
    if other not in said:
        raise ValueError(f"{name} is like {quoted(other)}, which is no set; {nearest(other, said)}")
    return joined(inherited(other, said), own)
