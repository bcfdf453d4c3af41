"""Tables of accelerators, links, models, precisions, engines and published runs, with a source for every cell.

>>> from scalebook.tables import accelerators
>>> accelerators.gb200.hbm_bandwidth
8000000000000.0
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, reduce
from operator import or_
from os import PathLike
from pathlib import Path
from types import MappingProxyType

from scalebook import _shown_by
from scalebook.language import NOTATION
from scalebook.language.arguments import checked
from scalebook.language.interval import SPREADS
from scalebook.language.notation import either, listed, nearest, quoted, word
from scalebook.language.row import Cell, Row, one_number, quantity
from scalebook.language.sources import SOURCES, cite
from scalebook.language.stanzas import Stanzas, file_of, tables_of

from . import assumed, shapes
from .plausible import refuse_faster
from .table import Device, Engine, Framework, Program, Rows, Table, vendor_of

__all__ = [
    "FOLLOWS", "SOURCES", "Device", "Engine", "Framework", "KeysWith", "Models", "Program", "Table", "accelerators",
    "cells_of_libraries", "cite", "clusters", "drafts", "efficiencies", "efficiencies_of", "engines", "frameworks",
    "libraries", "libraries_on", "links", "models", "precisions", "ranges", "runs", "tiers", "vendor_of",
]  # fmt: skip

SOURCES.add(file_of(__name__, ""))
SPREADS.add(file_of(__name__, "spreads.toml"))

FOLLOWS = [  # in this order; if a model lacks an input of a formula, it has the other kind of attention
    shapes.kv_width_hybrid, shapes.kv_width_grouped, shapes.kv_width_indexed, shapes.kv_width_latent,
    shapes.attention_width_hybrid, shapes.attention_width_grouped, shapes.attention_width_latent,
    shapes.linear_state, shapes.routed_share, shapes.cache_heads_grouped,
]  # fmt: skip

_DEVICE_DEFAULTS = tables_of(__name__, "device_defaults.toml")


def usual_peak(cells: Mapping) -> str | None:
    """Return the letter of a device's peak if a call names no precision: that of bf16, or else of fp16."""
    return next((n for n in ("peak_bf16", "peak_fp16") if n in cells), None)


def _device(key, cells, words=None):
    """Add default cells to a device's row; without a precision it computes in bf16, or in fp16 if it has no bf16."""
    if not cells:
        return
    origin = next(iter(cells.values())).origin
    if name := usual_peak(cells):
        peak = cells[name]
        note = "; ".join(filter(None, [name.removeprefix("peak_"), peak.note]))
        cells["peak_flops"] = replace(peak, note=note)
        if reached := cells.get(name.replace("peak", "matmul")):
            cells["matmul_efficiency"] = reached
    for row in efficiencies_of(key).values():
        cell = row.cells["efficiency_typical"]
        low, high = row.efficiency_low, row.efficiency_high
        note = f"from {low:.1%} to {high:.1%} by source; {cell.note}"
        cells[f"training_{row.precision}"] = Cell(cell.value, origin, cell.source, note, low=low, high=high)
    if "training_bf16" in cells and "peak_fp16" in cells and cells["peak_fp16"].value == cells["peak_bf16"].value:
        cells.setdefault("training_fp16", cells["training_bf16"])
    if name and (reached := cells.get(name.replace("peak", "training"))):
        cells["training_efficiency"] = reached
    for letter, x in _DEVICE_DEFAULTS.items():
        cells.setdefault(letter, Cell(quantity(letter, x["value"]), origin, x["source"], x["note"]))
    _spread(key, cells)


def letter_of_kind(letter: str) -> str:
    """Return the general name of a cell for one precision or kind of cache: "matmul_efficiency" for "matmul_fp8"."""
    if letter.startswith("matmul_"):
        return "matmul_efficiency"
    return letter.removesuffix("_grouped").removesuffix("_latent")


def _spread(key, cells):
    """Add interval ends learnt from measured rows (of this device, or of any) to cells that state none."""
    own, made = SPREADS.of_device(key), {}
    for letter, cell in sorted(cells.items(), key=lambda x: x[0] == "matmul_efficiency"):  # last: mostly a precision's
        ends = own.get(letter) or SPREADS.get(letter_of_kind(letter))
        if ends and cell.low is None and cell.formula is None and id(cell) not in made:
            low, high = ends.low * cell.value, ends.high * cell.value
            if NOTATION[letter].sign == "share":
                high = max(cell.value, min(1.0, high))
            made[id(cell)] = replace(cell, low=low, high=high)
    for letter, cell in cells.items():  # the default precision's efficiency is the same cell as without a precision
        cells[letter] = made.get(id(cell), cell)


def efficiencies_of(device: str) -> dict[str, Row]:
    """Return the efficiencies of matrix products in training that are published for a device, by precision.

    >>> efficiencies_of("b200")["bf16"].efficiency_typical
    0.6
    """
    return {row.precision: row for row in _table("efficiencies")._naming(f'device = "{word(device, "a device")}"')}


def _model(key, cells, words, said=""):
    """Add letters that follow from a model's shape; a model without sliding windows gets none.

    A model whose blocks differ is counted part by part, because no formula of uniform blocks gives its widths.
    """
    is_counted = "blocks" in words
    if is_counted or "params" not in cells:
        stated = {x: cells[x] for x in ("params", "active_params") if x in cells}
        cells |= _computed(Row(words.get("name", key), cells, words), said) | stated
    layers, limit = cells["layers"], cells.get("max_context")
    if "window_layers" not in cells:
        none = "no sliding window is published"
        cells["window_layers"] = replace(layers, value=0.0, note=none)
        if limit:
            cells["window"] = replace(limit, origin=layers.origin, note=f"{none}; shown as the longest context")
    cells.setdefault("experts", replace(layers, value=0.0, note="a dense model"))
    if not cells["experts"].value:
        cells["routed_share"] = replace(layers, value=1.0, note="a dense model: nothing is routed")
    if "kv_rank" in cells:
        rank = cells["kv_rank"]
        cells["cache_heads"] = Cell(1.0, rank.origin, rank.source, "one latent for all heads")
    for f in FOLLOWS:
        if is_counted and f.letter in ("kv_width", "attention_width", "linear_state"):
            continue
        if f.letter not in cells and all(x in cells for x in f.inputs):
            inputs = {x: cells[x] for x in f.inputs}
            cells[f.letter] = Cell(f({x: c.value for x, c in inputs.items()}), f.name, formula=f, inputs=inputs)


def _computed(model: Row, said: str) -> dict[str, Cell]:
    """Return the cells that follow from the parts of a model: parameters, and widths of blocks that differ."""
    try:
        counts = _shown_by("counts")(model)
    except LookupError:  # a letter is missing that a formula will name
        return {}
    letters = ["params", "active_params"]
    if "blocks" in model.words:
        letters += ["kv_width", "attention_width", "linear_state", "window_layers"]
    note = "; ".join(filter(None, ("computed from its shape", said)))
    source = model.cells["layers"].source
    return {x: Cell(counts[x], model.name, source, note) for x in letters if counts[x] or x.endswith("_width")}


def _of(device: Row) -> tuple[tuple[str, ...], str]:
    """Return a device's key with the keys of devices that it is like, and its precision."""
    return tuple(getattr(device, "kin", ())), getattr(device, "words", {}).get("precision", "")


@cache
def _libraries(kin, precision, texts) -> list[Row]:
    """Return libraries' rows with one of these texts for a device, or for one that it is like, at its precision."""
    rows = [row for row in _named_libraries(texts) if {*kin}.intersection(row.words["devices"].split())]
    return [row for row in rows if "precisions" not in row.words or precision in row.words["precisions"].split()]


@cache
def _named_libraries(texts) -> list[Row]:
    return _table("libraries")._naming(*texts)


def libraries_on(device: Row) -> tuple[str, ...]:
    """Return the names of the libraries that were measured on a device at its precision."""
    kin, precision = _of(device)
    return tuple(dict.fromkeys(row.words["library"] for row in _libraries(kin, precision, kin)))


def cells_of_libraries(device: Row, names: Iterable[str]) -> Mapping[str, Cell]:
    """Return the cells that libraries change in a device's row, by name. A later library overrides an earlier one."""
    return _cells_of_libraries(*_of(device), tuple(word(x, "a library") for x in listed(names, "a library")))


@cache
def _cells_of_libraries(kin, precision, names):
    texts = tuple(f'library = "{name}"' for name in names)
    if strange := {*names}.difference(row.words["library"] for row in _named_libraries(texts)):
        known = sorted({row.words["library"] for row in _table("libraries").values()})
        raise LookupError(f"no library is called {quoted(min(strange))}; {nearest(min(strange), known)}")
    rows = _libraries(kin, precision, texts)
    cells = (row.cells for name in names for row in rows if row.words["library"] == name)
    return MappingProxyType(reduce(or_, cells, {}))


class Models(Table):
    """The table of models. It can also read models that it does not have."""

    @checked
    def read(self, config, name: str | None = None, like: str | None = None) -> Row:
        """Read a model's row from its Hugging Face `config.json`: the path of the file or of its folder, or a dict.

        `params` and `active_params` are computed from the shape. The note of their cells says what was left out, such
        as a vision encoder, and what was assumed for an unknown `model_type`. `like` names the type whose rules are
        used instead. Raises what `huggingface.read_config` raises.

        >>> from scalebook.tables import models
        >>> models.read(dict(model_type="gpt2", n_layer=2, n_embd=8, n_head=2, vocab_size=9, n_positions=16)).kv_width
        16.0
        """
        from .huggingface import read_config

        read, said = read_config(config, name, like)
        words = {k: read.pop(k) for k in list(read) if isinstance(read[k], str)}
        title = words.pop("name", "model")
        cells = {n: Cell(quantity(n, v), title, "config.json") for n, v in read.items()}
        _model(title, cells, words, said)
        return Row(title, cells, words)

    @checked
    def shaped(
        self, name: str = "model", norm: str = "rmsnorm", attention: str = "gqa", family: str = "", **letters: float
    ) -> Row:
        """Return a dense model with a shape of your own, such as `layers`, `hidden`, `heads` and `vocab`.

        `family` names the published code that its blocks follow when a framework runs them step by step. By default
        there are as many key-value heads as heads, `ffn` is four times `hidden`, and there are two embeddings.

        >>> from scalebook.tables import models
        >>> models.shaped(layers=24, hidden=2304, heads=24, vocab=51200, gating=0, embeddings=1).ffn
        9216.0
        """
        return _shaped(name, norm, attention, family, tuple((n, one_number(n, x)) for n, x in letters.items()))


@cache
def _shaped(name, norm, attention, family, letters) -> Row:
    own = dict(letters)
    for needed in ("layers", "hidden", "heads", "vocab"):
        if needed not in own:
            raise TypeError(f"a model's shape needs {needed}: give {needed}=...")
    usual = dict(kv_heads=own["heads"], head_dim=own["hidden"] / own["heads"], ffn=4 * own["hidden"], gating=1)
    usual |= dict(embeddings=2, learned_positions=0, moe_layers=0, experts=0)
    cells = {n: Cell(quantity(n, v), name) for n, v in (usual | own).items()}
    words = {"norm": norm, "attention": attention} | ({"family": family} if family else {})
    return Row(name, cells, words)


class Accelerators(Table):
    """The table of accelerators. It can also read a device of your own from a TOML file.

    >>> from scalebook.tables import accelerators
    >>> accelerators["h100@fp8"].name
    'NVIDIA H100 SXM at fp8'
    """

    def __getitem__(self, key):
        name, at, precision = key.partition("@") if isinstance(key, str) else (key, "", "")
        return super().__getitem__(name).at(precision) if at else super().__getitem__(key)

    def read(self, path, key: str | None = None) -> Device:
        """Read a device of your own from a TOML file, as `python -m scalebook.measure --save` writes it.

        Needed figures that the file leaves out are assumed from comparable devices, as in the table. If the file has
        several stanzas, `key` names one. Raises TypeError for anything but a path, ValueError if the file cannot be
        read, is broken or lacks a cell that every device has, and LookupError for an unknown key.

        >>> from scalebook.measure import OWN
        >>> from scalebook.tables import accelerators
        >>> accelerators.read(OWN).vendor
        'Intel'
        """
        if not isinstance(path, str | PathLike):
            raise TypeError(f"a device is read from the path of a TOML file, not from {quoted(path)}")
        path, how = Path(path), "`python -m scalebook.measure --save FILE` writes one for this machine"
        try:
            # a machine may have the key of a device of ours; only its own cells count then
            table = Table.load(path, **_TABLES["accelerators"] | {"finish": lambda _, cells, words: _device("", cells)})
        except OSError as error:
            raise ValueError(f"{path} could not be read: {error.strerror}; {how}") from None
        except UnicodeDecodeError:
            raise ValueError(f"{path} is no text in UTF-8, as a TOML file is; {how}") from None
        if not table:
            raise ValueError(f"{path} has no stanza, [key], for a device; {how}")
        if key is None and len(table) > 1:
            raise LookupError(f"{path} has several devices: name {either(map(repr, table))} behind the path")
        name = word(key, "a device's key") if key is not None else next(iter(table))
        device = table[name]
        device.kin = ()
        refuse_faster(str(path), name, device, _table("accelerators"))
        peaks = [x for x in device if x.startswith("peak_") and x not in ("peak_flops", "peak_vector")]
        lacking = [x for x in ("hbm_capacity", "hbm_bandwidth") if x not in device]
        if lacking or not peaks:
            wanted = [*lacking, *([] if peaks else ["a peak, such as peak_bf16"])]
            raise ValueError(f"{path}, [{name}] lacks {', '.join(wanted)}; {how}")
        return _table("accelerators")._rows.completed(device)


_WORDS = {  # entries that are text, by table
    "accelerators": "vendor fabric", "links": "kind", "models": "attention norm windows family blocks",
    "precisions": "kind peak", "efficiencies": "device precision", "engines": "exchange vendors",
    "frameworks": "libraries sharding recompute attention sequence_parallel blocks engine placement vendors",
    "libraries": "library devices precisions", "clusters": "", "runs": "model device", "ranges": "", "tiers": "",
    "drafts": "",
}  # fmt: skip
_TABLES = {name: {"words": words.split()} for name, words in _WORDS.items()}
_TABLES["accelerators"] |= dict(row=Device, finish=_device)
_TABLES["models"] |= dict(finish=_model)
_TABLES["engines"] |= dict(row=Engine)
_TABLES["frameworks"] |= dict(row=Framework)


@cache
def _table(name):
    kind = {"models": Models, "accelerators": Accelerators}.get(name, Table)

    def read():
        file = f"{name}.toml"
        complete = assumed.complete if name == "accelerators" else None
        return Rows(file, Stanzas(file, file_of(__name__, file).read_text("utf-8")), complete, **_TABLES[name])

    return kind(name, read)


class KeysWith(Sequence):
    """The keys of the rows in which a table gives `letter` a value. The table is read only when first used."""

    def __init__(self, table: str, letter: str):
        self.table, self.letter = table, letter

    @cached_property
    def _keys(self):
        return tuple(key for key, row in _table(self.table).items() if self.letter in row)

    def __getitem__(self, place):
        return self._keys[place]

    def __len__(self):
        return len(self._keys)


def __getattr__(name):
    if name in _TABLES:  # read on first use, so that the import stays quick
        return _table(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
