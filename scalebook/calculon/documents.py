"""Read Calculon's JSON documents: application (a model's shape) and execution (a strategy); and list its quirks."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import gcd
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from sympy import divisors as all_divisors

from scalebook.language import Row
from scalebook.language.arguments import checked
from scalebook.language.notation import brief, either, letters_of, nearest, quoted
from scalebook.language.row import Cell
from scalebook.language.rules import condition
from scalebook.language.stanzas import tables_of
from scalebook.search.space import called_with

__all__ = ["QUIRKS", "SOURCE", "Choices", "Execution", "Quirk", "application", "execution", "fields"]

letters_of(__package__)  # quantities that only Calculon's account of a step needs

SOURCE = "calculon-runs"
MOST = 10**12  # largest count allowed in an application or an execution
STATED = tables_of(__package__, "documents.toml")
_SHAPE, BITS, NUMBERS, WAYS, CHOICES = (STATED[x] for x in ("shape", "bits", "numbers", "ways", "choices"))
TIERS = {field: f"{way}_tier" for field, way in WAYS.items()}
WORDS = {"datatype": tuple(BITS)} | {field: tuple(words) for field, words in STATED["words"].items()}
_CONTRADICTIONS = [(" ".join(x["says"].split()), condition(x["if"])) for x in STATED["contradictions"]]
_FLAGS = tuple(x for x in CHOICES if x not in WORDS)


def fields(document, kind: str, known) -> dict:
    """Return the fields of a JSON document (a dict, or a file's path). `known` lists the names that it must have."""
    if not isinstance(document, Mapping):
        if not isinstance(document, (str, PathLike)):
            raise TypeError(f"{kind} is given as a path or a dict, not as {type(document).__name__}")
        try:
            document = json.loads(Path(document).read_text("utf-8"))
        except OSError:
            raise ValueError(f"cannot read {kind} from {quoted(str(document))}: give the path of a JSON file") from None
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{quoted(str(document))} is not JSON, as {kind} is: {brief(error)}") from None
        if not isinstance(document, Mapping):
            raise ValueError(f"{kind} is an object of fields, not a {type(document).__name__}")
    for name in document:
        if name not in known:
            raise ValueError(f"{kind} has no field {quoted(name)}; {nearest(quoted(name), known)}")
    if lacking := [name for name in known if name not in document]:
        raise ValueError(f"{kind} needs the field{'s' * (len(lacking) > 1)} {', '.join(lacking)}")
    return dict(document)


def _counts(given, kind, letters):
    cells = {}
    for name, letter in letters.items():
        value = given[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{kind}: {name} is {quoted(value)}, not a positive whole number")
        if value > MOST:
            raise ValueError(f"{kind}: {name} is read up to {MOST:,}; it is {quoted(value)}")
        cells[letter] = Cell(float(value), kind, SOURCE)
    return cells


@checked
def application(document, name: str = "application") -> Row:
    """Read the shape of a model (hidden, ffn, seq, heads, head_dim and layers) from the path of a JSON file, or a dict.

    Raises ValueError, naming the field, if one is missing, unknown or not a positive whole number.
    """
    return Row(name, _counts(fields(document, "an application", tuple(_SHAPE)), "an application", _SHAPE))


@dataclass(frozen=True)
class Choices:
    """The options of a Calculon strategy that decide which formulas apply, such as recompute="full".

    `tiers` are the networks of tp, pp and dp. The last four fields say which parallel dimensions are used at all.
    """

    recompute: str = "none"
    exchange: str = "ar"
    overlap: str = "none"
    attention: str = "multihead"
    fused: bool = False
    gather_again: bool = False
    sharded: bool = False
    dp_overlap: bool = False
    weight_offload: bool = False
    activation_offload: bool = False
    optimizer_offload: bool = False
    training: bool = True
    master: bool = True
    tiers: tuple[int, int, int] = (0, 1, 1)
    split: bool = True
    piped: bool = True
    replicated: bool = True
    interleaved: bool = False

    @property
    def sequence_parallel(self) -> bool:
        return self.exchange == "rs_ag"


class Quirk(NamedTuple):
    """A detail of Calculon's model that we consider wrong: a sentence, and a test of the options that it affects."""

    words: str
    meets: Callable
    trained: bool = True

    def concerns(self, choices: Choices) -> bool:
        return called_with(self.meets, vars(choices)) and (choices.training or not self.trained)


QUIRKS = {
    name: Quirk(" ".join(x["words"].split()), condition(x["meets"]), x.get("trained", True))
    for name, x in STATED["quirks"].items()
}


class Execution(Row):
    """A strategy as Calculon describes it: numbers such as tp, options (`choices`), and the arithmetic's `datatype`."""

    def __init__(self, name, cells, choices: Choices, datatype: str):
        super().__init__(name, cells)
        self.choices, self.datatype = choices, datatype


@checked
def execution(document, name: str = "execution") -> Execution:
    """Read a strategy from the path of Calculon's execution JSON, or a dict: tp, pp, dp, chunks, batch, and options.

    Raises ValueError for a bad field and for a strategy that contradicts itself, with what would work.
    """
    kind = "an execution"
    given = fields(document, kind, (*NUMBERS, *TIERS, *WORDS, *_FLAGS))
    cells = _counts(given, kind, NUMBERS)
    for field, words in WORDS.items():
        if not isinstance(given[field], str) or given[field] not in words:
            raise ValueError(f"{kind}: {field} is {quoted(given[field])}; there are: {', '.join(words)}")
    for field in _FLAGS:
        if not isinstance(given[field], bool):
            raise ValueError(f"{kind}: {field} is {quoted(given[field])}, neither true nor false")
    for field in TIERS:
        if isinstance(given[field], bool) or not isinstance(given[field], int) or given[field] < 0:
            raise ValueError(f"{kind}: {field} is {quoted(given[field])}, not the number of a network (0, 1, ...)")
    _refuse(given)
    more = widths(given["datatype"])
    more["microbatches"] = given["batch_size"] // given["data_par"] // given["microbatch_size"]
    cells |= {letter: Cell(float(value), kind, SOURCE) for letter, value in more.items()}
    choices = Choices(
        **{choice: given[field] for field, choice in CHOICES.items()}, master=more["weight_bits"] < 32,
        tiers=tuple(given[field] for field in TIERS), split=given["tensor_par"] > 1, piped=given["pipeline_par"] > 1,
        replicated=given["data_par"] > 1, interleaved=given["pipeline_interleaving"] > 1,
    )  # fmt: skip
    return Execution(name, cells, choices, given["datatype"])


def widths(datatype: str) -> dict[str, float]:
    """Return the bits of each kind of value (weights, activations, gradients, optimizer state) for a data type."""
    bits = BITS[datatype]
    found = dict.fromkeys(("weight_bits", "activation_bits", "gradient_bits"), bits)
    return found | {"mask_bits": 8, "optimizer_bits": 96 if bits < 32 else 64}


def _refuse(given):
    """Raise ValueError for a strategy that contradicts itself, whatever the model and the machine."""
    if says := next((says for says, is_broken in _CONTRADICTIONS if called_with(is_broken, given)), None):
        product = given["tensor_par"] * given["pipeline_par"] * given["data_par"]
        whole, share = given["batch_size"], max(1, given["batch_size"] // given["data_par"])
        more = dict(product=product, share=share, ways=divisors(whole), batches=divisors(share))
        raise ValueError(says.format_map(given | more))


def divisors(*numbers: int) -> str:
    """List the common divisors of some numbers in words: "1, 2 or 4"."""
    return listed(all_divisors(gcd(*map(int, numbers))))


def listed(numbers, most: int = 12) -> str:
    """List numbers in words, at most `most` of them."""
    shown = list(map(str, numbers))
    return either(shown if len(shown) <= most else [*shown[: most - 1], f"..., {shown[-1]}"])
