"""Pipeline stages with unequal numbers of blocks: a first stage with fewer, or a last one, as in Megatron-Core.

>>> from scalebook.tables import accelerators, models
>>> from scalebook.training import training_step
>>> asked = dict(pp=8, global_batch=64, seq=8192)
>>> run = training_step(models.llama3_70b, accelerators.h100, first_blocks=7, last_blocks=7, **asked)
>>> run.stage_blocks
11.0
"""

from collections.abc import Iterable
from functools import cache

from sympy import Add, Expr, Ge, Integer, Le, Max, Piecewise, ceiling

from scalebook.language import Formula, Sheet, formula, symbol
from scalebook.language.notation import replaced
from scalebook.pipeline.schedules import Schedule

__all__ = ["last_blocks_rest", "stage_blocks_first", "stage_blocks_last", "stage_blocks_middle", "with_first"]

_SOURCE = "megatron-arguments"
_FIRST = ("first_memory", "dense_params", "routed_params")  # what a sheet says of the first stage alone


def _is_room(one, others, stages):
    """Return the condition that a stage has no more blocks than others do after rounding up."""
    return (stages > 0) & ((one - 1) * stages < others)


def _fewer_first(layers, pp, first_blocks):
    return _is_room(first_blocks, layers - first_blocks, pp - 1)


def _fewer_last(layers, pp, last_blocks):
    return _is_room(last_blocks, layers - last_blocks, pp - 1)


def _fewer_both(layers, pp, first_blocks, last_blocks):
    most = Max(first_blocks, last_blocks, evaluate=False)
    return _is_room(most, layers - first_blocks - last_blocks, pp - 2)


@formula("stage_blocks", _SOURCE, domain={"a first stage with no more blocks than the others": _fewer_first})
def stage_blocks_first(layers, pp, first_blocks):
    """Blocks per stage behind the first one, rounded up.

    >>> stage_blocks_first(layers=61, pp=16, first_blocks=1)
    4.0
    """
    return ceiling((layers - first_blocks) / (pp - 1), evaluate=False)


@formula("stage_blocks", _SOURCE, domain={"a last stage with no more blocks than the others": _fewer_last})
def stage_blocks_last(layers, pp, last_blocks):
    """Blocks per stage before the last one, rounded up.

    >>> stage_blocks_last(layers=61, pp=16, last_blocks=1)
    4.0
    """
    return ceiling((layers - last_blocks) / (pp - 1), evaluate=False)


@formula(
    "stage_blocks", _SOURCE, domain={"a first and a last stage with no more blocks than those between": _fewer_both}
)
def stage_blocks_middle(layers, pp, first_blocks, last_blocks):
    """Blocks per stage between the first and the last one, rounded up.

    >>> stage_blocks_middle(layers=80, pp=8, first_blocks=7, last_blocks=7)
    11.0
    """
    return ceiling((layers - first_blocks - last_blocks) / (pp - 2), evaluate=False)


@formula("last_blocks", _SOURCE)
def last_blocks_rest(layers, pp, first_blocks, stage_blocks):
    """Blocks left for the last stage if the first one has its own number.

    >>> last_blocks_rest(layers=80, pp=8, first_blocks=5, stage_blocks=11)
    9.0
    """
    return Max(0, layers - first_blocks - (pp - 2) * stage_blocks, evaluate=False)


def with_first(sheet: Sheet, schedule: Schedule, known: Iterable[str]) -> Sheet:
    """Return a step's sheet for a call that gives the first or the last stage its own number of blocks.

    All stages take the time of the fullest one. Memory is the largest of the first, the second and the last stage: the
    second holds a micro-batch less than the first, but may have more blocks.
    """
    said = frozenset({"first_blocks", "last_blocks", "stage_blocks"}.intersection(known))
    return _uneven(sheet, schedule, said) if "first_blocks" in said or said == {"last_blocks"} else sheet


@cache
def _uneven(sheet: Sheet, schedule: Schedule, known: frozenset[str]) -> Sheet:
    given = known - {"stage_blocks"}
    own = [stage_blocks_last] if "first_blocks" not in given else [stage_blocks_first, last_blocks_rest]
    own = [stage_blocks_middle] if len(given) == 2 else own
    if "first_blocks" in given:
        if schedule.ends != "apart":
            both = f"schedule={schedule.name!r} has both on one: schedule='1f1b' or 'interleaved' would do"
            raise ValueError(f"first_blocks is of a pipeline whose ends are on two devices, and {both}")
        own += _memory(sheet, schedule)
    kept = {letter: f for letter, f in sheet.formulas.items() if letter not in given}
    kept |= {f.letter: f for f in own if f.letter not in known}
    return Sheet(sheet.name, *kept.values(), doc=sheet.doc)


def _memory(sheet: Sheet, schedule: Schedule) -> list[Formula]:
    x = symbol
    by_stage = Piecewise((x("first_blocks"), Le(x("stage"), 1)), (x("stage_blocks"), True))
    found, formulas = [], sheet.formulas
    for f in formulas.values():
        here = x("first_blocks") if f.letter in _FIRST else by_stage if "stage" in f.inputs else None
        if here is not None and "stage_blocks" in f.inputs:
            found.append(_changed(f, replaced(f.rhs, {x("stage_blocks"): here})))
    held = schedule.held.of(stage=Integer(2)) if "stage" in schedule.held.inputs else schedule.held.rhs
    second = {x("stage"): Integer(2), x("held_microbatches"): held}
    total = Add(*(replaced(formulas[part].rhs, second) for part in formulas["train_memory"].inputs))
    first, middle, last = x("first_memory"), x("second_memory"), x("last_memory")
    stage = Piecewise((1, Ge(first, Max(middle, last))), (2, Ge(middle, last)), (x("pp"), True))
    made = Formula("second_memory_middle", "second_memory", total, formulas["first_memory"].sources)
    most = _changed(formulas["memory"], Max(first, middle, last, evaluate=False))
    return [*found, made, most, _changed(formulas["stage"], stage)]


def _changed(f: Formula, rhs: Expr) -> Formula:
    return Formula(f"{f.name}_uneven", f.letter, rhs, f.sources, f.__doc__, domain=f.domain)
