"""The strategies that Calculon's own search tries on a machine, as a thing that `scalebook.search` can search."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, cached_property

import numpy as np
from sympy import Gt, Max

from scalebook.language import Formula, Row, Sheet
from scalebook.language.notation import symbol
from scalebook.language.row import Cell
from scalebook.language.rules import condition, not_whole
from scalebook.search.space import Space, called_with, divisors
from scalebook.training.rules import COUNTS, Rule
from scalebook.training.space import fewer_chunks
from scalebook.training.step import OFFLOADS

from .block import block_formulas, of_block
from .cases import by, by_tier, plain
from .checks import refuse
from .documents import CHOICES, NUMBERS, SOURCE, STATED, TIERS, WAYS, WORDS, Choices, Execution, execution, widths
from .sheet import calculon_step, step_formulas
from .systems import System, Tables

__all__ = ["Strategies"]

_TIERS, _SEARCH = tuple(TIERS.values()), STATED["search"]
_WORDS = {name: tuple(values) for name, values in _SEARCH["words"].items()}
_IDLE, _WITHIN, _FOLLOWS = (
    {name: condition(text) for name, text in _SEARCH[x].items()} for x in ("matters", "within", "follows")
)


class Strategies:
    """A machine of Calculon that `search` can search. Call it with a strategy to get the results of a step.

    The space is Calculon's: every tp that divides hidden and heads, every pp that divides the layers, every
    interleaving and micro-batch that divides evenly, each network for each dimension, all options and offloads. A
    step's batch is the largest multiple of dp up to global_batch; the search minimizes the time per sequence. Raises
    ValueError for a `datatype` that the machine lacks.
    """

    def __init__(self, machine: System, datatype: str = "float16"):
        self.machine, self.datatype = machine, datatype
        self.tables = machine.all_tables(datatype)

    @property
    def name(self) -> str:
        return f"Strategies({self.machine.name})"

    def __reduce__(self):
        return Strategies, (self.machine, self.datatype)

    @cached_property
    def space(self) -> Space:
        far = ("offload_memory <= host_capacity",) if self.machine.far.capacity else ()
        return Space(
            words=_WORDS, usual=self._usual, idle=_IDLE, rules=self._rules, reason=self._reason,
            limits=("near_blocks <= stage_blocks", "train_memory <= hbm_capacity", *far),
            axes=("sequence_time", "train_memory"), within=lambda problem: tuple(_WITHIN.values()), follows=_FOLLOWS,
            letters={"cp": 1.0, "ep": 1.0}, layout=("tp", "cp", "ep", "pp", "dp"), beside=("ep",), offloads=OFFLOADS,
            needed=("devices", "global_batch", "seq"),
            elsewhere={"microbatches": "microbatches follow from global_batch, dp and batch"},
            order={"chunks": float}, wrong=self._wrong, settle=fewer_chunks,
        )  # fmt: skip

    def _usual(self, known: Mapping) -> dict[str, tuple]:
        if "global_batch" not in known:
            raise TypeError("Calculon's strategies are searched at one global_batch: search each and compare")
        ways = divisors(known["devices"])
        shares = {int(np.max(known["global_batch"]) // dp) for dp in ways if dp <= np.max(known["global_batch"])}
        away = (0, 1) if self.machine.far.capacity else (0,)
        tiers = tuple(range(len(self.machine.networks)))
        return {
            **_WORDS, "cp": (1,), "ep": (1,),
            "tp": tuple(x for x in ways if known["hidden"] % x == known["heads"] % x == 0),
            "pp": tuple(x for x in ways if known["layers"] % x == 0), "chunks": divisors(known["layers"]),
            "batch": tuple(sorted({x for share in shares for x in divisors(share)})), "dp_overlap": (0, 1),
            **dict.fromkeys(OFFLOADS, away), **dict.fromkeys(_TIERS, tiers),
        }  # fmt: skip

    def _wrong(self, name: str, value: float) -> str | None:
        """Return the sentence for a value that makes no sense or that the machine lacks, or None."""
        if name in COUNTS:
            return not_whole(name, value)
        has_far, last = self.machine.far.capacity > 0, len(self.machine.networks) - 1
        known = {"dp_overlap": 1} | dict.fromkeys(OFFLOADS, int(has_far)) | dict.fromkeys(_TIERS, last)
        if name not in known or value in (able := range(known[name] + 1)):
            return None
        why = " without a second tier" * (name in OFFLOADS and not has_far)
        return f"{name} is {value:g}; on {self.machine.name}{why} it is {' or '.join(map(str, able))}"

    @cached_property
    def _rules(self) -> tuple[Rule, ...]:
        shape = condition("(hidden % tp == 0) & (ffn % tp == 0) & (heads % tp == 0)")
        rules = [Rule("tp divides hidden, ffn and heads", "tp", shape, "")]
        for n, network in enumerate(self.machine.networks):
            devices = " * ".join(f"{way} ** ({tier} == {n})" for way, tier in zip(WAYS.values(), _TIERS, strict=True))
            rules.append(Rule(f"devices fit network {n}", "tp", condition(f"{devices} <= {network.size}"), ""))
            if network.whole:
                fills = condition(f"{network.size} % ({devices}) == 0")
                rules.append(Rule(f"devices fill network {n} evenly", "tp", fills, ""))
        return tuple(rules)

    def _reason(self, values: Mapping, sheet: Sheet | None, lifted: Iterable[str]) -> str | None:
        try:
            strategy = self._execution(values)
            holds = [rule.of(values) for rule in self._rules if rule.name not in lifted] + [
                called_with(x, values) for x in _WITHIN.values()
            ]
            if not all(holds):
                shape = ("hidden", "ffn", "heads", "layers", "seq")
                refuse(Row("model", {n: Cell(values[n], "model") for n in shape}), strategy, self.machine)
        except ValueError as error:
            return str(error)

    # Pricing

    def sheet(self, knowns: tuple, letters: Mapping) -> tuple[Sheet, tuple, dict]:
        """Return the sheet for a strategy's options, and the rows and values to call it with."""
        letters = {n: x for n, x in letters.items() if n != "offload"}
        words = {n: letters.pop(n) for n in _WORDS if n in letters}
        words["gather_again"] &= _IDLE["gather_again"](words["exchange"], words["recompute"])
        networks = tuple((x.bandwidth, x.latency, x.usage) for x in self.machine.networks)
        made = _sheet(tuple(words.items()), self.tables, networks, bool(self.machine.far.capacity))
        values = widths(self.datatype) | self.machine.letters(self.datatype)
        row = {n: Cell(float(x), self.machine.name, SOURCE) for n, x in values.items() if x}
        return made, (*knowns, Row(self.machine.name, row)), letters

    def __call__(self, model: Mapping, *formulas: Formula, **strategy) -> Row:
        return calculon_step(model, self._execution(strategy), self.machine, *formulas)

    def _execution(self, given: Mapping) -> Execution:
        """Convert a strategy to Calculon's document; choices without effect get the value that Calculon requires."""
        usual = {n: x[0] for n, x in _WORDS.items()} | dict.fromkeys((*OFFLOADS, "dp_overlap"), 0)
        known = usual | {"tp": 1, "pp": 1, "dp": 1, "chunks": 1, "batch": 1} | dict.fromkeys(_TIERS, 0) | given
        known |= {n: usual.get(n, 0) for n, says in _IDLE.items() if n != "chunks" and not called_with(says, known)}
        for name, follows in _FOLLOWS.items():
            known[name] = called_with(follows, known)
        known |= {"devices": known["tp"] * known["pp"] * known["dp"], "attention": "multihead", "training": True}
        document = {field: int(known[letter]) for field, letter in (NUMBERS | TIERS).items()}
        for field, choice in CHOICES.items():
            value = known[choice]
            document[field] = value if field in WORDS else bool(value)
        return execution(document | {"datatype": self.datatype})


@cache
def _sheet(words: tuple[tuple, ...], tables: Tables, networks: tuple, has_far: bool) -> Sheet:
    """Return one sheet for all choices but words; its formulas hold both cases where a letter or a count decides."""
    words = dict(words)
    offloads = {x: symbol(x) for x in OFFLOADS} if has_far else {}
    if words["recompute"] == "full":
        offloads.pop("activation_offload", None)
    choices = Choices(
        **words, **offloads, tiers=tuple(map(symbol, _TIERS)), dp_overlap=symbol("dp_overlap"),
        piped=Gt(symbol("pp"), 1), replicated=Gt(symbol("dp"), 1), interleaved=Gt(symbol("chunks"), 1),
    )  # fmt: skip
    near = Max(1, *(3 * x for x in offloads.values()), evaluate=False) if offloads else 1
    time = symbol("step_time") / symbol("global_batch")
    formulas = [
        plain("near_blocks", near, "Offloading needs three blocks in a stage."),
        plain("sequence_time", time, "What a search minimizes: batches differ."),
    ]
    step = [*step_formulas(choices, tables), *formulas, *_of_networks(networks)]
    needed = frozenset(x for f in step for x in f.inputs)
    return Sheet("calculon_step", *_block(*of_block(choices, tables), needed), *step)


@cache
def _of_networks(networks: tuple) -> list[Formula]:
    return [
        plain(f"{way}_{letter}", by_tier(way, values), "Of the network that it runs on.")
        for way in WAYS.values()
        for letter, values in zip(("bandwidth", "latency", "usage"), zip(*networks, strict=True), strict=True)
    ]


@cache
def _block(choices: Choices, tables: Tables, needed: frozenset[str]) -> list[Formula]:
    """Return the block's formulas of these letters, with and without tensor parallelism."""
    needed |= {x.replace("_time", y) for x in needed for y in ("_compute", "_memory")}  # times may be sums of these
    # A block without tensor parallelism exchanges nothing.
    whole = replace(choices, split=False, overlap="none", exchange="ar")
    blocks = (block_formulas(x, tables) for x in (choices, whole))
    return by(Gt(symbol("tp"), 1), *([f for f in x if f.letter in needed] for x in blocks))
