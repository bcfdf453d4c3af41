"""Tables from TOML files: one stanza per row, a value and a source for every cell.

A cell is a value as its source prints it ("3.35 TB/s"), or `{ value, low, high, source, note }`, where eight in ten
measurements lie between `low` and `high`. Anything mistyped stops the load with the place of the mistake.
"""

import html
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import RLock

import numpy as np

from scalebook.language.arguments import checked
from scalebook.language.notation import NOTATION, UnknownKey, known_as, nearest, no_attribute, quoted, word
from scalebook.language.row import Cell, Row, quantity, refuse_parts
from scalebook.language.sources import SOURCES, cite
from scalebook.language.tabular import Markup, page_table, styled, table_cell
from scalebook.language.units import show

__all__ = ["Device", "Engine", "Framework", "Program", "Table", "vendor_of"]


_LOCK = RLock()  # for reading: concurrent threads share one table's rows
_UNMEASURED = 0.6  # share of the peak, if no product at a precision was measured


class Device(Row):
    """The row of an accelerator; `peak_flops` is its dense bf16 rate (fp16 if it has no bf16)."""

    @checked
    def at(self, precision: str, experts: str | None = None) -> "Device":
        """Return the device at another precision, such as "fp8", with its `peak_flops` and matmul efficiency.

        `experts` is the precision of routed experts if it differs. Raises LookupError, naming those available, for a
        precision that the device lacks.

        >>> from scalebook.tables import accelerators
        >>> accelerators.h100.at("fp8").peak_flops, accelerators.b200.at("fp8", experts="fp4").expert_peak
        (1978900000000000.0, 9000000000000000.0)
        """
        if experts is not None:
            own, there = self.at(precision), self.at(experts)
            reached = there.cells.get("matmul_efficiency", Cell(_UNMEASURED, there.name))
            cells = {"expert_peak": there.cells["peak_flops"], "expert_efficiency": reached}
            words = own.words | {"expert_precision": experts}
            return self._with(f"{own.name}, experts at {experts}", own.cells | cells, words)
        precision = word(precision, "a precision").lower()
        peaks = {name.removeprefix("peak_"): cell for name, cell in self.cells.items() if name.startswith("peak_")}
        for other in ("flops", "vector"):
            peaks.pop(other, None)
        if precision not in peaks:
            raise LookupError(f"{self.name} has no peak at {quoted(precision)}; it has {', '.join(peaks)}")
        cell = peaks[precision]
        note = "; ".join(filter(None, [precision, cell.note]))
        cells = self.cells | {"peak_flops": replace(cell, note=note)}
        for kind in ("matmul", "training"):
            cells.pop(f"{kind}_efficiency", None)  # the value of another precision
            if f"{kind}_{precision}" in cells:
                cells[f"{kind}_efficiency"] = cells[f"{kind}_{precision}"]
        return self._with(f"{cell.origin} at {precision}", cells, self.words | {"precision": precision})

    @property
    def published(self) -> "Device":
        """The device with only the figures that a source states, so no assumed ones.

        >>> from scalebook.tables import accelerators
        >>> "tdp" in accelerators.rubin, "tdp" in accelerators.rubin.published
        (True, False)
        """
        return self._with(self.name, {n: x for n, x in self.cells.items() if not x.is_assumed}, self.words)

    def on(self, cluster: Row) -> "Device":
        """Return the device as part of a cluster: the figures of the row of `tables.clusters` replace its own.

        >>> from scalebook.tables import accelerators, clusters
        >>> accelerators.a100.on(clusters.jean_zay).scaleout_bandwidth
        6250000000.0
        """
        if not isinstance(cluster, Row):
            raise TypeError(f"a cluster is a row, such as clusters.jean_zay, not {quoted(cluster)}")
        return self._with(f"{self.name} on {cluster.name}", self.cells | cluster.cells, self.words)

    def running(self, *names: str) -> "Device":
        """Return the device running these libraries, whose measured figures replace its own.

        Later names take precedence over earlier ones. Set the precision first, since some rows of `tables.libraries`
        hold for one precision only. Raises LookupError for a library without a row for this device.

        >>> from scalebook.tables import accelerators
        >>> accelerators.h100.at("bf16").running("flash_2").attention_short
        0.3
        """
        from . import cells_of_libraries, libraries_on

        known = libraries_on(self)
        for name in names:
            if word(name, "a library") not in known:
                raise LookupError(f"no library {quoted(name)} is known on {self.name}; {nearest(name, known)}")
        cells = cells_of_libraries(self, names)
        return self._with(f"{self.name} running {', '.join(names)}", self.cells | cells, self.words)

    def _with(self, name, cells, words) -> "Device":
        device = Device(name, cells, words)
        device.kin = self.kin
        return device


def vendor_of(knowns: tuple) -> str:
    """Return the vendor of a call's device, or "" if it is not known."""
    return next((x.words.get("vendor", "") for x in knowns if isinstance(x, Device)), "")


class Program(Row):
    """A framework's or an engine's row. Its `vendors` are those on whose devices it runs; without, any."""

    def runs_on(self, vendor: str) -> bool:
        """Return whether it runs on a vendor's devices, as far as its row says; "" stands for an unknown vendor."""
        return word(vendor, "a vendor") in ("", *self.words.get("vendors", vendor).split())

    def said_on(self, vendor: str) -> str:
        """Return its name. If it does not run on this vendor's devices, other vendors' names follow."""
        own = " and ".join(self.words.get("vendors", "").split())
        return self.name if self.runs_on(vendor) else f"{self.name} (which runs on devices of {own}, not of {vendor})"


class Engine(Program):
    """A serving engine's row. Its option `exchange` says how attention data parallelism sends tokens to experts."""

    @property
    def is_program(self) -> bool:
        """True for an engine that serves many users, False for other rows, such as `ideal` or `llama_cpp_2024`."""
        return "chunk_tokens" in self and self.cells["chunk_tokens"].source != "scalebook"


class Framework(Program):
    """A training framework's row: defaults of a strategy's options (`words`) and of numbers (its cells)."""

    @property
    def is_program(self) -> bool:
        """True for a real framework, False for rows that are assumptions of ours, such as `fastest`."""
        return self.cells["dp_overlap"].source != "scalebook"


class Rows(Mapping):
    """The rows of a TOML file by key, each made when it is first asked for.

    `row` is their class, `words` are entries that are text, and `finish` may add cells that follow from a row's own.
    `complete` takes a row and a function that returns all rows, and may add cells that follow from the others'.
    """

    def __init__(
        self, file: str, stanzas: Mapping, complete: Callable | None = None, row=Row, words: Iterable[str] = (),
        finish=lambda key, cells, words: None,
    ):  # fmt: skip
        self.file, self.stanzas, self._complete = file, stanzas, complete
        self._kind, self._words, self._finish = row, words, finish
        self._own, self._whole = {}, {}

    def __getitem__(self, key):
        with _LOCK:
            if key not in self._whole:
                self._whole[key] = self.completed(self._made(key))
        return self._whole[key]

    def completed(self, row: Row) -> Row:
        """Return a row, of this file or of a reader's, with the cells that follow from the rows of this file."""
        if self._complete:
            self._complete(row, lambda *letters: [self._made(x) for x in self.stanzas.mentioning(*letters)])
        return row

    def _made(self, key):
        if key not in self._own:
            kin = _kin(self.file, key, self.stanzas)
            whole = _inherited([self.stanzas[x] for x in kin], self._words)
            made = _row(self.file, key, whole, self._kind, self._words, lambda *made: self._finish(kin[-1], *made))
            made.kin = kin
            self._own[key] = made
        return self._own[key]

    def __iter__(self):
        return iter(self.stanzas)

    def __len__(self):
        return len(self.stanzas)

    def __contains__(self, key):
        return key in self.stanzas


class Table(Mapping):
    """A table of rows by key: `table.h100`, `table["h100"]`, `table[["h100", "h200"]]`, or `table.columns` for all."""

    def __init__(self, name: str, rows: Mapping[str, Row] | Callable[[], Mapping[str, Row]]):
        self.name, self._given = name, rows

    @cached_property
    def _rows(self) -> Mapping[str, Row]:
        """The rows; if they were given as a function, it is called at first use, and other threads wait."""
        if not callable(self._given):
            return self._given
        with _LOCK:
            return self.__dict__.get("_rows") or self._given()

    @classmethod
    def load(cls, path, **kinds) -> "Table":
        """Load a table from a TOML file; `kinds` are keywords of `Rows`. Raises ValueError for a mistake in it."""
        path = Path(path) if isinstance(path, str) else path
        try:
            stanzas = tomllib.loads(path.read_text("utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path.name}: {error}") from None
        for key, stanza in stanzas.items():
            if not isinstance(stanza, dict):
                raise ValueError(f"{path.name}: {key} = {quoted(stanza)} stands before the first stanza, [key]")
        return cls(path.name.removesuffix(".toml"), dict(Rows(path.name, stanzas, **kinds)))

    def _naming(self, *texts: str) -> list[Row]:
        """Return the rows whose TOML text contains one of these texts. No other row is parsed."""
        return [self[key] for key in self._rows.stanzas.mentioning(*texts)]

    def __getitem__(self, key):
        if isinstance(key, (list, tuple)):
            return Table(self.name, {known_as(word(k, f"a row of {self.name}"), self._rows): self[k] for k in key})
        key = known_as(word(key, f"a row of {self.name}"), self._rows)
        if key not in self._rows:
            raise UnknownKey(f"{self.name} has no {quoted(key)}; {nearest(key, self._rows)}")
        return self._rows[key]

    def __getattr__(self, key):
        if key.startswith("_"):
            raise AttributeError(key)
        try:
            return self[key]
        except KeyError as error:
            raise no_attribute(error.args[0]) from None

    def __dir__(self):
        return [*super().__dir__(), *self._rows]

    def __contains__(self, key):
        return isinstance(key, str) and known_as(key, self._rows) in self._rows

    def __iter__(self):
        return iter(self._rows)

    def __len__(self):
        return len(self._rows)

    def having(self, *letters: str) -> "Table":
        """Return a table of the rows whose sources state all these quantities; an assumed value does not count."""
        for name in letters:
            NOTATION[word(name)]
        return Table(self.name, {k: row for k, row in self.items() if all(map(row.states, letters))})

    @property
    def columns(self) -> Row:
        """All rows at once: each quantity that every row has, as an array, usable as inputs of any formula."""
        common = [x for x in next(iter(self.values()), ()) if all(x in row for row in self.values())]
        return Row(self.name, {x: Cell(np.array([row[x] for row in self.values()]), self.name) for x in common})

    def __repr__(self):
        return f"{self.name}: {', '.join(self._rows)}"

    def _repr_html_(self):
        # Left out, since the peak by precision already shows it.
        chosen = ("peak_flops", "matmul_efficiency", "training_efficiency")
        found = {x for row in self.values() for x in row}.difference(chosen)
        letters = [x for x in dict.fromkeys((*_FIRST, *NOTATION)) if x in found]
        heads = [self.name, *(table_cell(x.replace("_", " "), "th", title=NOTATION[x].meaning) for x in letters)]
        lines = ([_named(key, row), *(_cell(row, x) for x in letters)] for key, row in self.items())
        said = "<p>Hover over a value, or follow its mark, for the source. ≈ marks what is assumed.</p>"
        return styled(page_table(heads, lines, kind="sb-facts"), said)


# Letters by which a device is chosen come first.
_FIRST = (
    "peak_bf16", "peak_fp8", "peak_fp4", "hbm_capacity", "hbm_bandwidth", "scaleup_bandwidth", "scaleup_size",
    "price_hour", "tdp", "dp_overlap", "tp_pieces", "tp_beside", "ep_overlap", "element_passes", "block_wait",
)  # fmt: skip


def _named(key, row):
    return table_cell(Markup(f"{html.escape(row.name)}<br><code>{html.escape(key)}</code>"), "th", scope="row")


def _cell(row, name):
    if name not in row:
        return table_cell("")
    cell = row.cells[name]
    value, url = show(cell.value, NOTATION[name].unit), ""
    if cell.is_assumed:
        return table_cell(f"≈ {value}", title=f"assumed: {cell.note}", data_value=repr(cell.value))
    if cell.formula is None:
        said = f"{cite(cell.source)}{'. Note: ' + cell.note if cell.note else ''}"
        url = SOURCES.get(cell.source.partition(" ")[0], {}).get("url", "")  # a text that is no key has no address
    else:
        said = repr(row.why(name))
    mark = f'<a href="{html.escape(url)}">{"*" if cell.note else "°"}</a>' if url else ""
    return table_cell(Markup(html.escape(value) + mark), title=said, data_value=repr(cell.value))


def _kin(file: str, key: str, stanzas: Mapping) -> tuple[str, ...]:
    """Return a stanza's key and the chain of keys it is `like`."""
    kin = [key]
    while other := stanzas[kin[-1]].get("like"):
        if other not in stanzas or other in kin:
            unknown = f"is like {quoted(other)}, which is no stanza; {nearest(other, stanzas)}"
            raise ValueError(f"{file}: [{kin[-1]}] {'is like itself' if other in kin else unknown}")
        kin.append(other)
    return tuple(kin)


def _inherited(stanzas: list[Mapping], words: Iterable[str]) -> dict:
    """Return a stanza with the cells of those it is like; an inherited cell keeps the source of its own stanza."""
    whole, source = {}, ""
    for stanza in reversed(stanzas):
        source = stanza.get("source", source)
        for name, entry in stanza.items():
            if name not in ("like", "name", "source", *words) and stanza is not stanzas[0]:
                entry = {"source": source} | (entry if isinstance(entry, dict) else {"value": entry})
            whole[name] = entry
    whole.pop("like", None)
    return whole | ({"source": source} if source else {})


def _row(file, key, stanza, kind, words, finish):
    default, cells, said = stanza.get("source", ""), {}, {}
    for name, entry in stanza.items():
        where = f"{file}, [{key}], {name}"
        if name in ("name", "source", *words):
            said[name] = _text(where, entry)
            continue
        if name not in NOTATION:
            raise ValueError(f"{where}: no letter is called {quoted(name)}; {nearest(name, NOTATION)}")
        entry = entry if isinstance(entry, dict) else {"value": entry}
        if stray := entry.keys() - {"value", "low", "high", "source", "note"} or ({"value"} - entry.keys()):
            form = "a cell is a value or { value, low, high, source, note }"
            raise ValueError(f"{where}: {form}, so {', '.join(stray)} is out of place or missing")
        source = _text(f"{where}, source", entry.get("source", default))
        note = _text(f"{where}, note", entry.get("note", ""))
        if not source:
            raise ValueError(
                f"{where}: no source, neither of the cell nor of the stanza; of figures of one's own it is "
                "'scalebook-measure', with words of yours behind it"
            )
        source_key = source.partition(" ")[0]
        if source_key not in SOURCES:
            said = "is not among the sources ('scalebook-measure' is the one for your own figures)"
            raise ValueError(f"{where}: the source {quoted(source)} {said}; {nearest(source_key, SOURCES)}")
        number, low, high = (_number(where, name, entry.get(x)) for x in ("value", "low", "high"))
        if (low is None) != (high is None) or (low is not None and not low <= number <= high):
            raise ValueError(f"{where}: a cell has low and high both or neither, and its value lies between them")
        cells[name] = Cell(number, said.get("name", key), source, note, low=low, high=high)
    said.pop("source", None)
    finish(cells, said)
    return kind(said.pop("name", key), cells, said)


def _number(where, name, value):
    if value is None:
        return None
    if isinstance(value, list):
        raise ValueError(f"{where}: a cell holds one value, not the list {quoted(value)}")
    if (unit := NOTATION[name].unit) and not isinstance(value, str):
        raise ValueError(f"{where}: {quoted(value)} lacks its unit, {unit}")
    if not unit and isinstance(value, str):
        raise ValueError(f"{where}: {quoted(value)} is not a plain number, which this letter needs")
    try:
        refuse_parts(name, number := quantity(name, value))
        return number
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {str(error).removeprefix(name + ': ')}") from None


def _text(where, entry):
    if not isinstance(entry, str):
        raise ValueError(f"{where}: text belongs here, not {quoted(entry)}")
    return entry
