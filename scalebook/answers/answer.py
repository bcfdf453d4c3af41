"""The answer of a training step or a service in at most twelve lines, as text, as a page, and as plain data.

>>> from scalebook import accelerators, models, training_step
>>> from scalebook.tables import frameworks
>>> training_step(models.llama3_70b, accelerators.h100, frameworks.nemo, tp=8, dp=8, global_batch=64, seq=8192)
training_step: Llama 3.1 70B, NVIDIA H100 SXM at bf16 by default, NeMo and Megatron Bridge since ..., 64 devices
does not fit  89.44 GB of 80 GB on each device; dp=4, pp=2 fits: 62.19 GB, 7.23 s
step_time     6.938 s, in eight of ten cases between 6.479 s and 7.562 s; MFU 57.46 %; 75,570 token/s, ...
bound by      time of backward kernels 60.4 %, time of forward kernels 29.0 %, exposed time of ...
assumed       tp_pieces 100 %, share of tensor-parallel collectives overlapped in pieces (...): 8.098 s at 0 %
...
"""

import html
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from scalebook.language import NOTATION, Row
from scalebook.language.arguments import checked
from scalebook.language.interval import measured_ends, range_of
from scalebook.language.parts import nearest_parts, part_lines
from scalebook.language.row import Cell, with_unit
from scalebook.language.tabular import Markup, aligned, folded, page_table, styled
from scalebook.tables import Device, Engine, Program, engines, frameworks, usual_peak, vendor_of
from scalebook.tables.assumed import unsold

from .assumptions import TRIED, Assumption, answer_letter, assumed, cells_of, entry_of, short_meaning
from .changes import Change, all_changes, fits, nearest_fit
from .costs import Price, bill, inputs_of, prices

__all__ = ["Answer", "answer_of", "row_as_dict", "table_of"]

_LINES, _FITS = 12, {True: "yes", False: "no", None: ""}  # of an answer, and of values in a table
_COSTS = "train_cost", "step_cost", "million_cost", "session_cost"
_UNKNOWN = {"rented": "price_hour=... says what an hour costs", "owned": "device_price=... says what a device costs"}


class Answer:
    """The summary that a `training_step`, `serve`, `serve.offline`, ... or `rl_step` result has as `run.answer`.

    Print it, or read these:

    - `fits`: whether the run fits in device memory; `nearest`: the change that makes it fit, if it does not.
    - `interval`: low and high end, in seconds, of the range that holds the time in eight of ten cases.
    - `assumed`: assumptions of the package that move the time by more than 5 %, strongest first.
    - `bill`: days, energy and dollars of the whole training run if `train_tokens` is given, otherwise None.
    - `prices`: what renting and owning cost for that run, for a million output tokens of a service, or for an update.
    - `changes`: what else to try, each with its gain; changes that need no other hardware come first.
    """

    def __init__(self, run: Row):
        self.run, self.letter, self.fits, self._entry = run, answer_letter(run), fits(run), entry_of(run)

    title = property(lambda self: _title(self.run))
    interval = cached_property(lambda self: range_of(self.run, self.letter) if self.letter in self.run else None)
    nearest = cached_property(lambda self: nearest_fit(self.run))
    assumed = cached_property(lambda self: assumed(self.run))
    bill = cached_property(lambda self: bill(self.run))
    changes = cached_property(lambda self: all_changes(self.run))

    # Showing

    def _shown(self, letter: str) -> str:
        return with_unit(self.run[letter], NOTATION[letter].unit)

    def _filled_in(self, text: str) -> str:
        """Return a sentence of an entry with the run's words and quantities in place of the names in braces."""
        return text.format_map(self.run.words | {n: self._shown(n) for n in self.run})

    def lines(self) -> list[tuple[str, str]]:
        """Return the answer as pairs of label and text, such as ("fits", "62.2 GB of 80 GB on each device")."""
        run = self.run
        found = [self._fit(), self._time(), *getattr(run, "said", ())]
        step, own = run.made_of.get(self._entry.get("step"), (run, self.letter))
        if self.interval and (part := nearest_parts(step, own)):
            parts = part_lines(step, part, 3)
            found.append(("bound by", ", ".join(f"{short_meaning(n)} {share}" for n, _, share in parts)))
        last = self._costs() if self.interval else []
        if self.interval and self.fits is not False and (best := all_changes(run, is_quick=True)):
            more = "; with as many users as wait now" if "rate" in run.call.letters and "users" in run else ""
            last.append(("next", f"{best[0]}{more}"))
        rests = [("assumed", str(x)) for x in self.assumed[: min(3, _LINES - 2 - len(found) - len(last))]]
        return [x for x in (*found, *rests, *last) if x]

    @property
    def misfit(self) -> str:
        """A line on what does not fit and on the nearest change that does, or "" if the run fits."""
        return ": ".join(self._fit()) if self.fits is False else ""

    @checked
    def text(self, more: str) -> str:
        """Return the answer as aligned text.  `more` is the last line: it says where to read further."""
        return aligned([*self.lines(), ("more", more)], gap="  ")

    def _fit(self) -> tuple[str, str] | None:
        run, now = self.run, cells_of(self.run)
        if own := self._entry.get("fits"):
            with_copies = f"; {x.said} would keep all" if (x := self.nearest) else ""
            return "fits" if self.fits else "does not fit", f"{self._filled_in(own)}{with_copies}"
        if "filled" in now and "max_users" in now and "memory" not in run:
            filled, of = f"{now['filled'].value:.0%}", self._entry.get("memory", "the engine's memory")
            return "fits", f"{filled[:-1]} % of {of}; {now['max_users'].value:,.0f} users have room"
        if "memory" not in run or self.fits is None:
            return None
        held, most = self._shown("memory"), f"{self._shown('hbm_capacity')} on each device"
        held = f"learners hold {held}" if self.letter == "update_time" else held
        if self.fits:
            high = run.interval("memory").high
            over = f"; the upper end of its range, {with_unit(high, 'B')}, does not" if high > run.hbm_capacity else ""
            return "fits", f"{held} of {most}{over}"
        if run.memory <= run.hbm_capacity:
            held, most = self._shown("offload_memory"), f"{self._shown('host_capacity')} of each device's host memory"
        if x := self.nearest:
            margin = "" if x.has_room else ", without margin"
            would = f"{x.said} fits{margin}: {with_unit(x.run.memory, 'B')}, {with_unit(x.run[self.letter], 's')}"
        else:
            would = "no change was found that fits; more devices or a search may"
        return "does not fit", f"{held} of {most}; {would}"

    def _time(self) -> tuple[str, str]:
        if not self.interval:
            return self.letter, self.run.missing.get(self.letter, "is not known")
        low, high = (with_unit(x, "s") for x in self.interval)
        more = [f"{n.upper()} {self._shown(n)}" for n in self._entry.get("also", ()) if n in self.run]
        if "ttft_p95" in self.run:
            more.append(f"P95 {self._shown('tpot_p95')} and {self._shown('ttft_p95')}")
        if "train_rate" in self.run:
            each = with_unit(self.run.train_rate / self.run.devices, "token/s")
            more.append(f"{self._shown('train_rate')}, {each} on each device")
        said = f"{self._shown(self.letter)}, in eight of ten cases between {low} and {high}"
        said += " with any engine" if self.run.between and self.run.between.what == "engine" else ""
        return self.letter, "; ".join([said, *more])

    @cached_property
    def prices(self) -> tuple[Price, ...]:
        """Ways to pay for the run whose tokens are known, for a million output tokens, a session, or an update."""
        run, paid = self.run, self._entry.get("paid")
        if not paid or not self.interval:
            return self.bill.prices if self.bill else ()
        of, per = (prod(run[n] for n in paid.get(x, ())) for x in ("of", "per"))
        known, hours = inputs_of(run, {}), paid.get("amount", 1) * of / per / 3600
        if sum(isinstance(x, Device) for x in run.call.knowns) > 1:  # the mean price of both; the rest is of the last
            known = {"price_hour": Cell(run.million_cost / hours)} if "million_cost" in run else {}
        return prices(known, hours)

    def _costs(self) -> list[tuple[str, str]]:
        paid, speed = self._entry.get("paid"), self._entry.get("speed")
        if not paid and not self.bill:
            return []
        said = [] if paid else [("run", self.bill.said)]
        said += [("speed", self._filled_in(speed))] if speed else []
        what = f" for {paid['what']}" if paid else ""
        why = unsold(vendor_of(self.run.call.knowns))
        unknown = _UNKNOWN | ({"owned": f"{why}; {_UNKNOWN['owned']}"} if why else {})
        unknown = unknown if self.run.call.thing.billed else {}
        return [*said, *(unknown | {x.kind: x.said(what) for x in self.prices}).items()]

    def __repr__(self):
        return f"{self.title}\n{self.text('run.listing has every letter, run.answer.changes all that was tried')}"

    def _repr_html_(self):
        from scalebook import _shown_by

        lines = ([label, Markup(f'<td class="sb-said">{html.escape(text)}</td>')] for label, text in self.lines())
        letters = folded(_shown_by("row_page")(self.run), "letters, all of them")
        return styled(page_table(["", "answer"], lines, self.title), letters)


def _named(row: Row) -> str:
    """Return a row's name; a device's says which peak its `peak_flops` is if the call names no precision."""
    peak = usual_peak(row)
    is_named = "precision" in row.words or peak is None
    return row.name if is_named else f"{row.name} at {peak.removeprefix('peak_')} by default"


def _title(run: Row) -> str:
    call, devices, vendor = run.call, (np.min(run.devices), np.max(run.devices)), vendor_of(run.call.knowns)
    own = [x.said_on(vendor) if isinstance(x, Program) else _named(x) for x in call.knowns if isinstance(x, Row)]
    is_named = any(isinstance(x, Engine) for x in call.knowns)
    usual = None if is_named else getattr(call.thing, "engine", None)
    said = (frameworks, call.letters.get("framework")), (engines, call.letters.get("engine", usual))
    own += [(x if isinstance(x, Row) else table[x]).said_on(vendor) for table, x in said if x]
    own += ["no framework named"] if run.between is not None and answer_letter(run) == "step_time" else []
    how_many = " to ".join(f"{x:,.0f}" for x in dict.fromkeys(devices))
    return f"{call.thing.name}: {', '.join(own)}, {how_many} device{'s' if devices[-1] > 1 else ''}"


@checked
def table_of(run: Row) -> str:
    """Return a result that holds arrays as text: for each value its letters, times, memory, and whether it fits."""
    letter = answer_letter(run)
    given = [n for n in run.call.letters if n in run and np.ndim(run[n])]
    ends = dict(zip(("low", "high"), range_of(run, letter), strict=True)) if letter in run else {}
    shown = {n: run[n] for n in (*given, letter) if n in run} | ends
    shown |= {n: run[n] for n in ("ttft", "mfu", "memory", *_COSTS) if n in run}
    size = np.broadcast_shapes(*map(np.shape, run.values()))
    flat, lines = {n: np.broadcast_to(x, size).ravel() for n, x in {**run, **shown}.items()}, [[*shown, "fits"]]
    for i in range(min(int(np.prod(size)), _LINES)):
        one = {n: Cell(float(x[i])) for n, x in flat.items() if n not in ends}
        said = (with_unit(flat[n][i], NOTATION[letter if n in ends else n].unit) for n in shown)
        lines.append([*said, _FITS[fits(Row("one value", one, missing=run.missing))]])
    more = f"{left:,} more values; " if (left := int(np.prod(size)) - _LINES) > 0 else ""
    table = aligned(lines, right=True, gap="  ")
    more += "" if letter in run else f"{letter} {run.missing[letter]}; "
    return f"{_title(run)}\n{table}\n{more}run.listing and run.to_dict() have every letter; {run.answer}"


class Several(str):
    """In place of the answer of a result with arrays: a sentence that is false, on how to get one value's answer."""

    def __bool__(self):
        return False

    def __repr__(self):
        return str(self)

    def __getattr__(self, name):
        raise AttributeError(f"run.answer of arrays has no {name}: {self}")


@checked
def answer_of(run: Row) -> Answer | Several:
    """Return the Answer of a step, an update or a service; of one with arrays, what says how to get one value's."""
    entry_of(run)  # or an error: no other row has an answer
    several = {n: x for n, x in run.call.letters.items() if n in NOTATION and np.ndim(x)}  # some count with words only
    if not several and not any(map(np.ndim, run.values())):
        return Answer(run)
    one = ", ".join(f"{n}={np.ravel(x).tolist()[0]!r}" for n, x in several.items())
    return Several(f"an answer is of one value, such as run.call.again({one or '...'}).answer")


@checked
def row_as_dict(row: Row) -> dict[str, Any]:
    """Return a result as a dict for JSON, as `answers/schema.json` describes it: quantities, and answer (or None).

    >>> from scalebook import accelerators, decoding, models
    >>> row = decoding(models.llama3_8b, accelerators.h100, batch=1, context=8192, weight_bits=16, kv_bits=16)
    >>> row_as_dict(row)["letters"]["weight_memory"]["value"], row_as_dict(row)["answer"]
    (16060000000.0, None)
    """
    sources, answer, cells = row.sources, row.answer, row.listed
    ends = {n: range_of(row, n) if measured_ends(row, n) else (cell.low, cell.high) for n, cell in cells.items()}
    if row.call and (letter := answer_letter(row)) in row:
        ends[letter] = range_of(row, letter)
    letters = {
        n: {"value": _plain(cell.value), "unit": NOTATION[n].unit}
        | {"low": _plain(ends[n][0]), "high": _plain(ends[n][1]), "source": sources[n]}
        | {"formula": cell.formula.text() if cell.formula else None}
        for n, cell in cells.items()
    }
    said = _answer_as_dict(answer) if answer else None
    return {"name": row.name, "letters": letters, "missing": dict(row.missing), "answer": said}


def _plain(value):
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _answer_as_dict(answer: Answer) -> dict[str, Any]:
    known = {**answer.run, **(answer.bill.row if answer.bill else {})}
    costs = {n: known[n] for n in TRIED["costs"] if n in known} | {"prices": [x._asdict() for x in answer.prices]}
    nearest = answer.nearest and _change_as_dict(answer.nearest)
    first = {"call": answer.title, "letter": answer.letter, "fits": answer.fits, "nearest": nearest}
    rests, changes = map(_assumption_as_dict, answer.assumed), map(_change_as_dict, answer.changes)
    return first | {"assumed": [*rests], "costs": costs, "changes": [*changes]}


def _assumption_as_dict(x: Assumption) -> dict[str, Any]:
    ends = [{n: y for n, y in end._asdict().items() if n != "letters"} for end in x.ends]
    return x._asdict() | {"letters": [*x.ends[0].letters], "ends": ends}


def _change_as_dict(x: Change) -> dict[str, Any]:
    held = {n: x.run[n] for n in ("step_time", "tpot", "update_time", "makespan", "end_to_end", "memory") if n in x.run}
    return {"said": x.said, "gain": x.gain, "is_free": x.is_free} | held
