"""What a run costs: days, energy and dollars for training, dollars per million tokens for serving.

>>> from scalebook import accelerators, models, training_step
>>> run = training_step(models.llama3_8b, accelerators.h100, dp=64, global_batch=512, seq=8192, train_tokens=1e12)
>>> bill(run)
1 trillion tokens on 64 devices: 19.3 days, 27.35 MWh; failures and checkpoints are 0.1 % of it
rented  203,600 $, at 6.88 $/h for each device
owned   25,000 $, at 0.8445 $/h for each device
"""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from scalebook import tables
from scalebook.language import Formula, Row, Sheet
from scalebook.language.arguments import checked
from scalebook.language.notation import nearest
from scalebook.language.row import Cell, quantity
from scalebook.language.tabular import aligned
from scalebook.language.units import show

from .assumptions import TRIED

__all__ = ["Bill", "Price", "bill", "with_bill"]

DAY = 86400


def _sheets() -> tuple[Formula, Sheet]:  # imported late, because most answers have no bill
    from scalebook.runs.costs import price_hour_owned, run_bill

    return price_hour_owned, run_bill


class Price(NamedTuple):
    """One way to pay, "rented" or "owned": dollars for an hour of a device, and for the run or a million output tokens.

    `low` and `high` are the prices of an hour of comparable devices if the price is assumed from them, or else None.
    """

    kind: str
    price_hour: float
    cost: float
    low: float | None = None
    high: float | None = None

    @checked
    def said(self, what: str = "") -> str:
        """Return the price as text; `what` says what `cost` pays for, such as " for a million output tokens"."""
        said = f"{show(self.cost, '$')}{what}, at {show(self.price_hour, '$/h')} for each device"
        if self.low is None:
            return said
        return f"≈ {said}, assumed: comparable ones cost {show(self.low, '$/h')} to {show(self.high, '$/h')}"


class Bill(NamedTuple):
    """What training takes: time and energy (`row`), dollars for each way to pay (`prices`), and the share of time lost.

    `row.run_time` includes failures and checkpoints; the step's own `train_time` does not.
    """

    row: Row
    prices: tuple[Price, ...]
    note: str

    @property
    def days(self) -> float:
        return self.row.run_time / DAY

    @property
    def said(self) -> str:
        row = self.row
        about = "≈ " if "tdp" in row and row.cells["tdp"].is_assumed else ""
        energy = f", {about}{show(row.run_energy, 'MWh')}" if "run_energy" in row else ""
        lost = self.note or f"failures and checkpoints are {100 - 100 * row.goodput:.1f} % of it"
        run = f"{show(row.train_tokens, 'token')}{'s' * (row.train_tokens != 1)} on "
        run += f"{row.devices:,.0f} device{'s' * (row.devices != 1)}"
        time = f"{self.days:,.1f} days" if 1 <= self.days < 1e6 else show(row.run_time, "s")
        return f"{run}: {time}{energy}; {lost}"

    def __repr__(self):
        lines = [(x.kind, x.said()) for x in self.prices]
        return "\n".join([self.said, *([aligned(lines, gap="  ")] if lines else [])])


@checked
def bill(run: Row, **letters) -> Bill | None:
    """Return days, energy and dollars for training on a run's `train_tokens`, or None if the run has no `train_tokens`.

    `letters` adds inputs that the call did not give, such as `device_mtbf`. The cost of renting needs `price_hour`, the
    cost of owning `device_price`.
    """
    if "train_tokens" not in run or "train_rate" not in run:
        return None
    known, note = inputs_of(run, letters), ""
    _, sheet = _sheets()
    if "params" not in known:
        known["goodput"], note = Cell(1.0), "failures are left out, for params are not known"
    row = sheet(Row("run", {n: x for n, x in known.items() if n in sheet.letters}))
    if "device_hours" not in row:
        note = f"failures are left out: goodput {row.missing.get('goodput', 'is given')}"
        row = sheet(row, goodput=1)
    return Bill(row, prices(known, row.device_hours), note)


def inputs_of(run: Row, letters: Mapping) -> dict[str, Cell]:
    """Return the inputs of a bill.

    If several places give an input, the first of these counts: `letters`, the run's call, the run's row, the rows in
    the call, and the defaults.
    """
    known = _defaults()
    wanted = {"price_hour"}.union(*(x.inputs for x in _sheets()))
    if stray := letters.keys() - wanted:
        raise TypeError(f"a bill does not use {min(stray)}; {nearest(min(stray), wanted)}")
    rows = [x for x in run.call.knowns if isinstance(x, Row)] if run.call else []
    for row in (*rows, run):
        known |= {n: row.cells[n] for n in wanted & {*row}}
    said = run.call.letters if run.call else {}
    letters = {n: x for n, x in said.items() if n in getattr(run.call.thing, "billed", ())} | dict(letters)
    return known | {n: Cell(quantity(n, x)) for n, x in letters.items()}


def _defaults() -> dict[str, Cell]:
    places = ((getattr(tables, x)[key], own) for x, rows in TRIED["bill"].items() for key, own in rows.items())
    always = Cell(1.0, "default", note="a device that is owned is always in use")
    return {n: row.cells[n] for row, names in places for n in names} | {"utilization": always}


@cache
def with_bill(step: Sheet) -> tuple[Sheet, dict[str, Cell]]:
    """Return a step's sheet with the formulas of the run's bill, which a search may seek, and the bill's defaults."""
    own = {**_sheets()[1].formulas, **step.formulas}
    return Sheet(step.name, *own.values(), doc=step.doc, changes=step.changes), _defaults()


def prices(known: Mapping[str, Cell], hours: float) -> tuple[Price, ...]:
    """Return what these hours of a device cost rented and owned, as far as the inputs of a bill say."""
    owned, _ = _sheets()
    ways = {"rented": ("price_hour", float)}
    if known.keys() & {"tdp", "device_power"}:
        ways["owned"] = "device_price", lambda x: owned(Row("device", {**known, "device_price": Cell(x)}))
    found = []
    for kind, (letter, of_an_hour) in ways.items():
        if cell := known.get(letter):
            value, *ends = map(of_an_hour, (cell.value, cell.low, cell.high) if cell.is_assumed else (cell.value,))
            found.append(Price(kind, value, value * hours, *ends))
    return tuple(found)
