"""The formulas of the planner's sheets, without repetition, as one graph that the page turns into code and print.

A node of the graph is a letter, a number, or an operation with the places of its operands.  A formula is a letter,
the place of its right-hand side and its description; a sheet is a list of formulas.  The page assembles a training
step's sheet from four groups: the costs of its blocks (`blocks`, by kind of block, recomputation, attention kernel,
context exchange and precision of products); the changes if a framework runs element-wise steps eagerly (`eager`, by
the same keys and the model family, for flash attention with gathered context); the formulas of its words (`words`, by
sharding, schedule and offload); and single formulas that a row may replace (`swaps`).  `lora` has the
differences of block and word formulas if only adapters are trained, and `stages` those if the first or the last stage
has its own number of blocks.  The graph is sent to the page as text, in which only nodes that are used at least twice
are numbered.

>>> graph = Graph()
>>> from scalebook.language import symbol
>>> graph.place(symbol("tp") / 2), graph.nodes
(2, [['/', 1, 2], 'tp', ['*', 0, 1]])
>>> graph.written([2])
('!#$', '0 90 (*2 1/2 tp')
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping

import sympy

from scalebook.attention import assumptions as attended
from scalebook.block import blocks_of, parts_of, served_blocks
from scalebook.block.counts import paired
from scalebook.inference import queues
from scalebook.inference.disaggregation import two_pools
from scalebook.inference.serving import serve_sheet
from scalebook.inference.sessions import session_sheet
from scalebook.language import FORMULAS, Formula, Sheet, symbol
from scalebook.machine import systolic
from scalebook.machine.kernels import attention_peak_bf16, attention_peak_same, wide_efficiency
from scalebook.pipeline.schedules import SCHEDULES, Schedule
from scalebook.tables import Table, models
from scalebook.training import assumptions, host
from scalebook.training.assumptions import longest_sequence
from scalebook.training.block_costs import block_formulas
from scalebook.training.shardings import SHARDINGS
from scalebook.training.stages import stage_blocks_last, stage_blocks_middle, with_first
from scalebook.training.step import training_sheet
from scalebook.training.strategy import Strategy
from scalebook.training.totals import microbatches_of_batch, ways_left
from scalebook.training.trained_weights import TRAINED

from .packed import nested, parted, runs
from .parts import counted_parts, lettered

__all__ = ["EXCHANGES", "KEPT", "MODULES", "Graph", "kind_of", "serving", "training"]

EXCHANGES = ("all_reduce", "all_to_all", "gather", "none")
MODULES = "layernorm,mla_up_proj,moe_act"  # the modules that a page recomputes together: DeepSeek-V3's choice
# Modules that it recomputes alone, by whether blocks have experts; of dense blocks, norms are all that MODULES has.
ALONE = {False: ("mlp",), True: ("layernorm", "mla_up_proj", "moe_act", "moe")}
# Recomputation, kernel of attention and exchange of context: what a kernel that keeps no scores runs again is its own,
# and context is exchanged by heads with such kernels alone.
KEPT = (
    *(itertools.product(("none", "full", MODULES), ("flash",), ("gather", "all_to_all"))),
    *(itertools.product(("none", "selective", "full"), ("unfused",), ("gather",))),
)
_OPERATIONS = {
    sympy.Add: "+", sympy.Mul: "*", sympy.Pow: "^", sympy.Max: "max", sympy.Min: "min", sympy.ceiling: "ceil",
    sympy.floor: "floor", sympy.log: "log", sympy.exp: "exp", sympy.Abs: "abs", sympy.Mod: "%", sympy.Piecewise: "?",
    sympy.Ge: ">=", sympy.Gt: ">", sympy.Le: "<=", sympy.Lt: "<", sympy.Eq: "==", sympy.Ne: "!=", sympy.And: "&",
    sympy.Or: "|", sympy.Not: "!", sympy.tanh: "tanh",
}  # fmt: skip


# Signs that a text in quotes holds as they are.
SIGNS = "".join(x for x in map(chr, range(33, 127)) if x not in "\"'\\")


class Graph:
    """A graph of expressions: `nodes`, each distinct one once, and `formulas`, which refer to nodes by their place."""

    def __init__(self):
        self.nodes, self.formulas = [], []
        self._places, self._numbers = {}, {}

    def place(self, expr: sympy.Basic) -> int:
        """Return the place of an expression in `nodes`. A new expression is added after its operands."""
        if expr not in self._places:
            node = self._node(expr)
            self._places[expr] = len(self.nodes)
            self.nodes.append(node)
        return self._places[expr]

    def _node(self, expr):
        if expr.is_Symbol:
            return expr.name
        if expr in (sympy.true, sympy.false):
            return bool(expr)
        if expr.is_Rational and not expr.is_Integer and expr.q < 1000:
            return ["/", int(expr.p), int(expr.q)]
        if expr.is_number:
            value = float(expr)
            return int(value) if value.is_integer() and abs(value) < 2**53 else value
        if expr.func not in _OPERATIONS:
            raise NotImplementedError(f"the planner has no {expr.func.__name__}")
        parts = expr.args
        if expr.func is sympy.Piecewise:  # values and conditions one after another
            parts = [x for case in expr.args for x in case.args]
        places = [self.place(x) for x in parts]
        if expr.is_Add or expr.is_Mul:  # in one order, so that equal parts look alike to gzip, which saves 1.6 kB
            places.sort()
        return [_OPERATIONS[expr.func], *places]

    def number(self, f: Formula) -> int:
        """Return the number of a formula in `formulas`. A new formula is added."""
        key = f.letter, f.rhs, f.domain
        if key not in self._numbers:
            self._numbers[key] = len(self.formulas)
            domain = [[x.words, self.place(x.relation), list(x.letters)] for x in f.domain]
            own = FORMULAS.get(f.name)
            stated = own is not None and own.letter == f.letter and own.rhs == f.rhs
            said = f.meaning.split(". ")[0].rstrip(".") + "."
            self.formulas.append(
                [f.letter, self.place(f.rhs), f.name, list(f.sources), " ".join(said.split()), domain, int(stated)]
            )
        return self._numbers[key]

    def written(self, places: Iterable[int]) -> tuple[str, str]:
        """Return the expressions at these places as one text of signs, and the words that the signs stand for.

        Operations come before their operands, so that no brackets are needed.  A node that is used several times is
        written where it is first used, and as its number afterwards: two signs, the first from the beginning of SIGNS.
        The most frequent words are one sign each, and all others two.
        """
        places = list(places)
        uses = Counter(places)
        for node in self.nodes:
            if isinstance(node, list) and node[0] != "/":
                uses.update(node[1:])
        found: list[str | int] = []
        known: dict[int, int] = {}

        def put(place):
            node = self.nodes[place]
            if place in known:
                found.append(known[place])
            elif not isinstance(node, list):
                found.append(str(node).lower() if isinstance(node, bool) else str(node))
            elif node[0] == "/":
                found.append(f"{node[1]}/{node[2]}")
            else:
                kind, *of = node
                if kind == "^" and self.nodes[of[1]] == -1:
                    of = of[:1]
                kept = uses[place] > 1
                found.append(f"({kind}{len(of)}{'=' if kept else ''}")
                for x in of:
                    put(x)
                if kept:
                    known[place] = len(known)

        for place in places:
            put(place)
        many = len(SIGNS)
        words = [x for x, _ in Counter(x for x in found if isinstance(x, str)).most_common()]
        lead = -(-len(known) // many)  # signs that begin a number
        alone = many - lead - -(-len(words) // many)
        code = {i: SIGNS[i // many] + SIGNS[i % many] for i in range(len(known))}
        for i, word in enumerate(words):
            high, low = divmod(i - alone, many)
            code[word] = SIGNS[lead + i] if i < alone else SIGNS[lead + alone + high] + SIGNS[low]
        return "".join(code[x] for x in found), " ".join([str(lead), str(alone), *words])

    def numbers(self, formulas: Iterable[Formula]) -> str:
        """Return the numbers of several formulas as text, in the form of `runs`."""
        return runs(map(self.number, formulas))


def kind_of(row: Mapping) -> str:
    """Return the kind of a model's blocks as text, such as "grouped gate dense". Rows of one kind share their sheets.

    A model whose blocks all have experts is "some" too: its number of dense blocks is then zero. The kind of a model
    with a list of parts begins with the parts of its blocks and the letters that differ in them, without numbers.
    """
    attention = ("latent" if row["q_rank"] else "plain latent") if "kv_rank" in row else "grouped"
    if row.get("index_heads"):
        attention = "indexed"
    if row.get("output_gate"):
        attention = "gated"
    routed = row.get("experts", 0) and row.get("moe_layers", 0)
    experts = "some" if routed else "dense"
    is_gpt = getattr(row, "words", row).get("norm") == "layernorm" and not row["gating"] and attention == "grouped"
    words = [attention, "gpt" if is_gpt else "gate" if row["gating"] else "plain", experts]
    words += ["shared"] if routed and row.get("shared_experts", 0) else []
    if "blocks" in getattr(row, "words", row):
        kinds = [" ".join([*names, *sorted(own)]) for _, names, own in paired(parts_of(row), row["layers"])]
        words = [f"{' + '.join(kinds)},", *words]
    return " ".join([*words, *(["linear"] if row.get("linear_layers") else [])])


def listed_models(parts: bool = False) -> Table:
    """Return the models that the page prices. Those with a list of parts (the word `blocks`) are in its second file."""
    return models if parts else models[[key for key, row in models.items() if "blocks" not in row.words]]


def _shapes(parts: bool = False) -> dict[str, Mapping]:
    """Return one row for every kind of block, by kind: of the table's models and of those a config.json can have."""
    rows = [*listed_models(parts).values()]
    routed = dict(experts=8, layers=4, moe_layers=2, gating=1)
    latent = dict(kv_rank=512, q_rank=1536)
    for shape, shared in itertools.product((dict(), latent, latent | dict(q_rank=0)), (0, 1)):
        if shared or not shape:  # DeepSeek's and its like have shared experts
            rows.append(routed | shape | dict(shared_experts=shared))
    rows = [_with_dense(row) for row in rows]
    return {kind_of(row): row for row in reversed(rows)}


def _with_dense(row: Mapping) -> Mapping:
    """Return a row with some dense blocks, even if all blocks of the model have experts, to build its kind's sheets."""
    if not row.get("experts", 0) or row.get("moe_layers", 0) != row["layers"] or "blocks" in getattr(row, "words", row):
        return row
    return {**row, **getattr(row, "words", {}), "moe_layers": row["layers"] / 2}


def families(kind: str) -> list[str]:
    """Return the model families whose published code eager blocks of a kind may follow; "llama" is always one."""
    rows = (x for x in listed_models().values() if kind_of(x) == kind)
    return sorted({"llama", *(x.words.get("family", "llama") for x in rows)})


_NO_DENSE = Formula(
    "stage_moe_blocks_all", "stage_moe_blocks", symbol("stage_blocks"), ("narayanan2021 §2.2",),
    "Every block of a stage has experts."
)  # fmt: skip


_MADE: dict[tuple, list[Formula]] = {}  # for the page's second file, which has the blocks of the first too


def _block(row: Mapping, **words) -> list[Formula]:
    """Return the formulas of the costs of a model's blocks, with the letters of a framework's row."""
    key = kind_of(row), *words.items()
    if key not in _MADE:
        _MADE[key] = _block_of(row, Strategy(**words).of_block)
    return _MADE[key]


def _block_of(row: Mapping, own: Strategy) -> list[Formula]:
    blocks = blocks_of(row)
    blocks = map(lettered, blocks) if "blocks" in getattr(row, "words", row) else blocks
    return [host.as_run(own.trained.of(f, False)) for f in block_formulas(*blocks, own)]


def training(graph: Graph, parts: bool = False) -> dict:
    """Return the groups of formula numbers from which the page assembles a training step's sheet (see above)."""
    blocks, eager, words, lora, adapted, first = {}, {}, {}, {}, {}, {}
    numbers = lambda formulas: set(map(graph.number, formulas))  # noqa: E731
    for kind, row in _shapes(parts).items():
        has_parts = "blocks" in getattr(row, "words", row)
        alone = [(x, "flash", "gather") for x in _alone(row) if not has_parts]
        for (recompute, attention, exchange), quantized in itertools.product((*KEPT, *alone), (False, True)):
            if has_parts and (attention != "flash" or exchange != "gather"):
                continue
            if exchange == "all_to_all" and "kv_rank" in row:
                continue  # its keys are of all heads together: there are none to deal out
            if attention == "unfused" and quantized:
                continue  # nobody writes scores out and trains in 8 bits
            said = dict(recompute=recompute, attention=attention, context_exchange=exchange, quantized=quantized)
            key = f"{kind}|{recompute}|{attention}|{exchange}|{int(quantized)}"
            blocks[key] = numbers(_block(row, **said))
            if attention != "flash" or exchange != "gather" or has_parts:
                continue
            if (recompute, attention, exchange) in alone:
                continue
            lora[key] = runs(numbers(_block(row, trained="lora", **said)) - blocks[key])
            if recompute == MODULES:
                continue  # they are modules of fused blocks
            for family in families(kind):
                own = numbers(_block(row, blocks="eager", family=family, **said))
                eager[f"{key}|{family}"] = runs(own - blocks[key])  # of a letter the last formula counts
    dense = blocks_of(models.llama3_8b)
    common = {f.letter for x in TRAINED for f in block_formulas(*dense, Strategy(trained=x).of_block)}
    common |= {"attention_reached", "launched_blocks", "eager_time"}  # which the model decides
    for sharding, schedule, offload in itertools.product(SHARDINGS, SCHEDULES, (False, True)):
        said, key = dict(sharding=sharding, schedule=schedule, offload=offload), f"{sharding}|{schedule}|{int(offload)}"
        words[key], adapted[key] = (
            numbers(
                f
                for f in training_sheet(*dense, Strategy(trained=x, **said)).formulas.values()
                if f.letter not in common
            )
            for x in ("all", "lora")
        )
        adapted[key] -= words[key]
        if SCHEDULES[schedule].ends == "apart":
            own = Strategy(**said)
            first[key] = numbers(_first_stage(training_sheet(*dense, own), own.schedule))
    swaps = {
        "attended": {
            x: graph.number(getattr(assumptions, f"attended_{x}"))
            for x in ("half", "windows", "chunks", "tiles", "tiles_windows", "tiles_chunks")
        },
        "counted": {x: graph.number(getattr(assumptions, f"counted_{x}")) for x in ("whole", "windows", "chunks")},
        "fused": {
            "usual": graph.number(assumptions.attention_efficiency),
            "arrays": graph.number(systolic.attention_efficiency_arrays),
            "latent": graph.number(systolic.attention_efficiency_arrays_latent),
        },
        "grouped": {
            "same": graph.number(assumptions.grouped_efficiency_same),
            "arrays": graph.number(systolic.grouped_efficiency_arrays),
        },
        "peak": {"bf16": graph.number(attention_peak_bf16), "same": graph.number(attention_peak_same)},
        "heads": {
            "even": graph.number(host.attention_reached_heads),
            "latent": graph.number(host.attention_reached_length),
        },
        "launched": {"all": graph.number(host.launched_blocks_all), "moe": graph.number(host.launched_blocks_moe)},
        "dense": graph.number(_NO_DENSE),
        "eager": {"all": graph.number(assumptions.experts_fused), "moe": graph.number(host.experts_eager)},
    }
    swapped = ("attended_share", "counted_share", "attention_efficiency", "grouped_efficiency")
    more = [x for x in assumptions.MEASURED if x.letter not in swapped]
    always = [microbatches_of_batch, ways_left, longest_sequence, wide_efficiency, host.sent_once, *more]
    always = graph.numbers(always)
    lora = dict(blocks=nested(lora), words=parted(adapted, lambda _: "always"))
    blocks, words = nested(parted(blocks, lambda x: x.split("|")[0])), parted(words, lambda _: "always")
    stages = dict(first=parted(first, lambda _: "always"), last=graph.number(stage_blocks_last))
    stages |= dict(both=graph.number(stage_blocks_middle))
    return dict(blocks=blocks, eager=nested(eager), words=words, lora=lora, stages=stages, swaps=swaps, always=always)


def _alone(row: Mapping) -> list[str]:
    """Return the modules of a model that the page recomputes alone."""
    has_experts = bool(row.get("experts", 0) and row.get("moe_layers", 0))
    return [x for x in ALONE[has_experts] if x != "mla_up_proj" or "kv_rank" in row]


def _first_stage(sheet: Sheet, schedule: Schedule) -> list[Formula]:
    """Return a step's formulas that differ if the first stage has its own number of blocks."""
    own = with_first(sheet, schedule, ["first_blocks"]).formulas
    return [f for n, f in own.items() if n not in sheet.formulas or f.rhs != sheet.formulas[n].rhs]


def serving(graph: Graph, parts: bool = False) -> dict:
    """Return the sheets of serving by kind of block and token exchange, and the formulas that a row may swap in."""
    sheets, drafted = {}, {}
    for kind, row in _shapes(parts).items():
        dense, moe = served_blocks(row)
        if "blocks" in getattr(row, "words", row):
            dense, moe = map(lettered, (dense, moe))
        for exchange in EXCHANGES:
            plain, more = (
                set(map(graph.number, serve_sheet(dense, moe, exchange, drafts=x).formulas.values()))
                for x in (False, True)
            )
            sheets[f"{kind}|{exchange}"], drafted[f"{kind}|{exchange}"] = runs(plain), runs(more - plain)
    swaps = {
        "peak": {"bf16": graph.number(attention_peak_bf16), "same": graph.number(attention_peak_same)},
        "index": {"fp8": graph.number(attended.index_peak_fp8), "same": graph.number(attended.index_peak_same)},
        "rate": graph.number(queues.device_rate_served),
    }
    listed = {kind: row for kind, row in _shapes(parts).items() if "blocks" in getattr(row, "words", row)}
    counted = {kind: graph.numbers(counted_parts(row)) for kind, row in listed.items()}
    sessions = graph.numbers(session_sheet().formulas.values())
    pools = graph.numbers(two_pools.formulas.values())
    return dict(sheets=sheets, counted=counted, drafted=drafted, swaps=swaps, pools=pools, sessions=sessions)
