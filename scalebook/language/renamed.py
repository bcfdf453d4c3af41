"""Public names and modules that were renamed or moved: for one release the old name works too, with a warning.

`MODULES` and `NAMES` map each old dotted name to its new one. A package or module whose names are in `NAMES` says
`__getattr__ = renamed(__name__)`. The new place is imported only when somebody uses the old name.

>>> import warnings
>>> with warnings.catch_warnings(record=True) as caught:
...     warnings.simplefilter("always")
...     from scalebook.training import operating
>>> operating is resolved("scalebook.runs.operating"), caught[0].category.__name__
(True, 'DeprecationWarning')
>>> str(caught[0].message)
'scalebook.training.operating is now scalebook.runs.operating; the old name goes with the next release'
"""

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

__all__ = ["MODULES", "NAMES", "renamed", "resolved"]

# Old names are deleted here, and nowhere else, with the next release.
MODULES = {
    "scalebook.block.hybrids": "scalebook.block.models",
    "scalebook.calculon.reached": "scalebook.calculon.rows",
    "scalebook.display.drawings": "scalebook.book.drawings.mechanisms",
    "scalebook.display.drawings_attention": "scalebook.book.drawings.attention",
    "scalebook.display.drawings_cluster": "scalebook.book.drawings.cluster",
    "scalebook.display.drawings_fleet": "scalebook.book.drawings.fleet",
    "scalebook.display.drawings_machine": "scalebook.book.drawings.machine",
    "scalebook.display.drawings_recompute": "scalebook.book.drawings.recompute",
    "scalebook.display.drawings_run": "scalebook.book.drawings.run",
    "scalebook.display.drawings_serving": "scalebook.book.drawings.serving",
    "scalebook.display.drawings_steps": "scalebook.book.drawings.steps",
    "scalebook.display.likely": "scalebook.display.intervals",
    "scalebook.display.planner_data": "scalebook.book.planner.data",
    "scalebook.display.planner_flags": "scalebook.book.planner.flags",
    "scalebook.display.planner_rules": "scalebook.book.planner.rules",
    "scalebook.display.planner_sheets": "scalebook.book.planner.sheets",
    "scalebook.display.planner_trust": "scalebook.book.planner.trust",
    "scalebook.display.planning": "scalebook.book.planner.widget",
    "scalebook.inference.flags": "scalebook.flags.servers",
    "scalebook.inference.halves": "scalebook.inference.two_batch_overlap",
    "scalebook.inference.picked": "scalebook.inference.efficient_attention",
    "scalebook.inference.room": "scalebook.inference.serving_memory",
    "scalebook.inference.served": "scalebook.inference.results",
    "scalebook.language.colours": "scalebook.display.colours",
    "scalebook.language.meanings": "scalebook.display.meanings",
    "scalebook.language.row_page": "scalebook.display.row_page",
    "scalebook.search.asked": "scalebook.search.arguments",
    "scalebook.search.found": "scalebook.search.results",
    "scalebook.training.apart": "scalebook.runs.local_sgd",
    "scalebook.training.checkpoints": "scalebook.runs.checkpoints",
    "scalebook.training.costs": "scalebook.runs.costs",
    "scalebook.training.fewer": "scalebook.runs.compression",
    "scalebook.training.knobs": "scalebook.flags.configurations",
    "scalebook.training.knobs_data": "scalebook.flags.table",
    "scalebook.training.knobs_rules": "scalebook.flags.rules",
    "scalebook.training.knobs_text": "scalebook.flags.text",
    "scalebook.training.largest_run": "scalebook.runs.walls",
    "scalebook.training.stragglers": "scalebook.runs.stragglers",
    "scalebook.training.trained": "scalebook.training.trained_weights",
}


def _moved(old: str, new: str, names: str) -> dict[str, str]:
    """Return the entries of names that moved from one package or module to another."""
    return {f"{old}.{name}": f"{new}.{name}" for name in names.split()}


NAMES = {
    "scalebook.display.planner": "scalebook.book.planner.planner",
    "scalebook.inference.room_formulas": "scalebook.inference.memory_formulas",
    "scalebook.machine.kernels.USUAL": "scalebook.machine.kernels.DEFAULT_FORMULAS",
    "scalebook.training.USUAL": "scalebook.training.DEFAULT_LETTERS",
    "scalebook.training.host.USUAL": "scalebook.training.host.DEFAULT_LETTERS",
    "scalebook.training.step.USUAL": "scalebook.training.step.DEFAULT_LETTERS",
    "scalebook.training.usual_at": "scalebook.training.default_letters_at",
    "scalebook.flags.configurations.flags": "scalebook.flags.write",
    "scalebook.flags.table.Knob": "scalebook.flags.Flag",
    "scalebook.flags.table.Knobs": "scalebook.flags.Flags",
    "scalebook.flags.servers.Flag": "scalebook.flags.ServerFlag",
}
NAMES |= _moved(
    "scalebook.training",
    "scalebook.runs",
    """
    carbon_of_run checkpoint_bytes checkpoint_interval_daly checkpoint_interval_far checkpoint_interval_young
    checkpoint_time_stored checkpointing device_hours_of_arithmetic device_power_of_system fibre_delay_usual goodput
    half_site_bandwidth interruptions_of_devices lost_share lost_share_at_best lost_share_tiers lost_share_with_restarts
    mfu_of_hours mtbf_of_devices mtbf_of_run near_checkpoint_interval near_checkpoint_time_sent operating paced_at_times
    paced_by_slowest power_hour_of_device price_hour_owned run_costs run_energy_of_hours site_bytes_ring
    site_exchange_ring site_latency_fibre sites_gain sites_lost_overlapped sites_lost_waiting step_time_apart
    train_cost_of_hours train_time_of_hours training_apart
    """,
)
NAMES |= _moved(
    "scalebook.runs.compression",
    "scalebook.runs.stragglers",
    "pool_gain_equal pool_gain_whole pool_lost_equal pool_lost_whole",
)


def resolved(new: str) -> object:
    """Return the module or the object in a module that a dotted name stands for.

    >>> resolved("scalebook.language.renamed.renamed") is renamed
    True
    """
    module, _, name = new.rpartition(".")
    found = getattr(import_module(module), name, None)
    return import_module(new) if found is None else found


def renamed(module: str) -> Callable[[str], object]:
    """Return the `__getattr__` of a module whose old names are in `NAMES`. It warns and returns the new object.

    Raises AttributeError for every other name, as a module without `__getattr__` does.

    >>> renamed("scalebook.language")("fourmula")
    Traceback (most recent call last):
        ...
    AttributeError: module 'scalebook.language' has no attribute 'fourmula'...
    """

    def __getattr__(name: str) -> object:
        old = f"{module}.{name}"
        if new := NAMES.get(old):
            _warn(old, new)
            return resolved(new)
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name, obj=sys.modules.get(module))

    return __getattr__


def _warn(old: str, new: str) -> None:
    said = f"{old} is now {new}; the old name goes with the next release"
    warnings.warn(said, DeprecationWarning, stacklevel=3)


class _Moved(MetaPathFinder, Loader):
    """Import a module by its old name: `import scalebook.training.apart` gives `scalebook.runs.local_sgd`."""

    def find_spec(self, fullname, path=None, target=None):
        return ModuleSpec(fullname, self) if fullname in MODULES else None

    def exec_module(self, module):
        old = module.__name__
        _warn(old, MODULES[old])
        sys.modules[old] = import_module(MODULES[old])  # the import system returns what stands here afterwards


sys.meta_path.append(_Moved())
