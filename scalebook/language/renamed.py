"""Let old public names work for one release, with a warning.  `renamed.toml` lists them."""

import sys
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

from .stanzas import tables_of

__all__ = ["old_names", "renamed", "resolved"]


@cache
def old_names() -> tuple[dict[str, str], dict[str, str]]:
    """Return two dicts from old to new dotted names: one for modules, and one for names in modules."""
    said = tables_of(__package__, "renamed.toml")
    pairs = [(f"{x['from']}.{name}", f"{x['to']}.{name}") for x in said["moved"] for name in x["names"].split()]
    kinds = said["modules"], said["names"] | dict(pairs)
    return tuple({f"scalebook.{old}": f"scalebook.{new}" for old, new in x.items()} for x in kinds)


def resolved(new: str) -> object:
    """Import and return the module, or the object in a module, that a dotted name such as "scalebook.runs" means."""
    module, _, name = new.rpartition(".")
    found = getattr(import_module(module), name, None)
    return import_module(new) if found is None else found


def renamed(module: str) -> Callable[[str], object]:
    """Return a `__getattr__` for a module with old names: it warns, and returns the object under its new name."""

    def __getattr__(name: str) -> object:
        old = f"{module}.{name}"
        if name[:2] != "__" and (new := old_names()[1].get(old)):  # an import asks for __path__, which needs no file
            _warn(old, new)
            return resolved(new)
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name, obj=sys.modules.get(module))

    return __getattr__


def _warn(old: str, new: str) -> None:
    said = f"{old} is now {new}; the old name goes with the next release"
    warnings.warn(said, DeprecationWarning, stacklevel=3)


class _Moved(MetaPathFinder, Loader):
    """Import a module by its old name: `scalebook.training.apart` gives `scalebook.runs.local_sgd`."""

    def find_spec(self, fullname, path=None, target=None):
        is_ours = fullname.startswith("scalebook.")
        return ModuleSpec(fullname, self) if is_ours and fullname in old_names()[0] else None

    def exec_module(self, module):
        old, new = module.__name__, old_names()[0][module.__name__]
        _warn(old, new)
        sys.modules[old] = import_module(new)  # the import system returns what stands here afterwards


sys.meta_path.append(_Moved())
