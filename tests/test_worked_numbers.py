"""One worked number for each cost that is put together by hand: `worked_numbers.csv` says the arithmetic.

The columns of a row: `letter` is what is asked of `call` for `model` and `device` with the letters and words of
`letters`; `bound_by` makes all but one limit of the device as good as infinite; `value` is the number with its unit, as
worked out by hand; `by_hand` is that arithmetic in the letters of the model and of the call; `because` says where the
terms come from. The arithmetic never came from the package: where the two differ, one of them is wrong.
"""

from math import ceil, floor, sqrt

import pytest
from sympy import simplify

from scalebook.block import LLAMA, backward, blocks_of, parse
from scalebook.block.operations import COLLECTIVES, RULES
from scalebook.inference.kernels import PARTS
from scalebook.inference.step import decode_step, mixed_step, prefill_step
from scalebook.language import NOTATION, symbol
from scalebook.language.row import quantity
from scalebook.tables import accelerators, models
from scalebook.training import Strategy, memory_sheet, training_step
from scalebook.training.block_costs import block_formulas
from scalebook.training.memory import memory_formulas
from scalebook.training.step import DEFAULT_LETTERS

from .support import cases, csv_rows, each_case

ROWS = csv_rows("worked_numbers.csv")
# Links: 100 GB/s in domains of 8 devices, 10 GB/s beyond; nothing takes time but bytes.
NETWORK = dict(
    scaleup_bandwidth="100 GB/s", scaleout_bandwidth="10 GB/s", scaleup_size=8, near_efficiency=1, far_efficiency=1,
    switch_efficiency=0, near_latency=0, far_latency=0, collective_launch=0, chunk_time=0,
)  # fmt: skip
FAST, PEAK = "1e30 FLOP/s", "1 PFLOP/s"
LIMITS = {
    "": {},
    "arithmetic": dict(hbm_bandwidth="1e30 B/s", peak_flops=PEAK, attention_peak=PEAK),
    "memory": dict(hbm_bandwidth="1 TB/s", peak_flops=FAST, attention_peak=FAST),
}
NOTHING = 1e-30  # of letters that must be positive
SERVED = dict(
    matmul_efficiency=1, matmul_bf16=1, stream_efficiency=1, read_efficiency=1, prompt_efficiency=1, exposed_write=0,
    expert_efficiency=1, tile_rows=1, tile_columns=1, cores=1, kernel_launch=0, query_tile=1,
    item_time=NOTHING, read_launch=NOTHING, prompt_launch=NOTHING, split_time=NOTHING, split_step=NOTHING,
    routing_time_least=NOTHING,
    sum_launch=0, sum_latency=0, peak_vector=FAST,
)  # fmt: skip
TRAINED = dict(
    kernels="ideal", attended_share=0.5, unread_rerun=1, tp_pieces=0, tp_beside=1, dp=2, microbatches=8,
)  # fmt: skip
STEPS = dict(decode_step=decode_step, prefill_step=prefill_step, mixed_step=mixed_step)


def letters_of(text):
    """The letters and words of a cell: `tp=2 recompute=full`."""
    pairs = (pair.split("=") for pair in text.split())
    return {x: float(y) if y.replace(".", "", 1).isdigit() else y == "True" or y for x, y in pairs}


def worth(row):
    """The value of a row in the base unit of its letter."""
    return quantity(row["letter"], float(row["value"]) if NOTATION[row["letter"]].unit == "" else row["value"])


def answered(row):
    """What the package says, and the numbers that the arithmetic of the row may use."""
    model, letters = models[row["model"]], letters_of(row["letters"])
    device, *precision = row["device"].split()
    device = accelerators[device].at(*precision) if precision else accelerators[device]
    known = {**model} | {x: y for x, y in letters.items() if isinstance(y, float)}
    limits = NETWORK | LIMITS[row["bound_by"]]
    if row["call"] == "memory_sheet":
        words = {x: letters.pop(x) for x in [*letters] if not isinstance(letters[x], float)}
        sheet, known = memory_sheet(*blocks_of(model), **words), DEFAULT_LETTERS | known
        asked = letters | {x: y for x, y in DEFAULT_LETTERS.items() if x in sheet.inputs and x not in letters}
        return sheet(model, **asked), known
    if row["call"] == "training_step":
        letters = TRAINED | letters
        return training_step(model, device, **limits | letters), DEFAULT_LETTERS | dict(microbatches=8) | known
    step = STEPS[row["call"]]
    sheet = step.plan((model, device), letters)[0]
    return step(model, device, **{x: y for x, y in SERVED.items() if x in sheet.letters} | limits | letters), known


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['letter']}: {row['letters']}")
def test_a_worked_number(row):
    said, known = answered(row)
    functions = dict(max=max, min=min, ceil=ceil, floor=floor, sqrt=sqrt)
    arithmetic = eval(row["by_hand"], {"__builtins__": {}}, known | functions)
    assert arithmetic == pytest.approx(worth(row), rel=2e-3), "the arithmetic and its value differ"
    assert said[row["letter"]] == pytest.approx(arithmetic, rel=1e-9), row["because"]


def test_every_cost_has_a_worked_number():
    worked = {row["letter"] for row in ROWS}
    block = {f.letter for f in block_formulas(LLAMA, None, Strategy(trained="lora"))}
    held = next(f for f in memory_formulas() if f.letter == "train_memory").inputs
    assert worked >= {*block, *held, *PARTS}, "a cost that is put together by hand has no worked number"


# What a function keeps, and its FLOPs per element: each a word, with an exponential or a division as one. Numbers are
# those of Calculon's source (calculon-ai/calculon at caa4b11, layers.py), which says no more.
SIGMOID, SILU = "exp add divide", "exp add divide multiply"
SLOPE = "1-s *g +1 *s"  # of silu, beside its sigmoid s: s (1 + g (1 - s))
FLOPS = cases("functions of a block", globals())
ASSUMED = {"delta", "compress"}  # estimated; the backward pass is twice its forward pass


def counted(flops):
    """FLOPs: a number of Calculon's, or the number of words; a list of both is summed."""
    parts = flops if isinstance(flops, list) else [flops]
    return sum(x if isinstance(x, int) else len(x.split()) for x in parts)


@pytest.mark.parametrize("name", FLOPS)
def test_what_a_function_keeps_and_computes(name):
    keeps, forward, backward = FLOPS[name]
    rule = RULES[name]
    assert (rule.keeps, rule.forward, rule.backward) == (keeps, counted(forward), counted(backward))


def test_every_function_has_a_rule_by_hand():
    assert {*FLOPS} | ASSUMED == {*RULES} - {*COLLECTIVES}
    assert all(RULES[x].backward == 2 * RULES[x].forward for x in ASSUMED)
    whole = {x for x, rule in RULES.items() if rule.whole}
    assert whole == {"layernorm", "rmsnorm", "softmax", "topk", "route", "mean_square"}  # sums over their last index


# What a line's backward pass computes, moves and needs, in tensors as large as its result `n` and weights of `hidden`.
@each_case("backward passes of a line", "line, flops, moved, kept", globals())
def test_the_backward_pass_of_a_line(line, flops, moved, kept):
    block, n = parse(line), symbol("batch") * symbol("seq") * symbol("hidden")
    bits = {x: symbol(f"{x}_bits") / 8 for x in ("activation", "weight", "gradient")}
    back = backward(block)
    assert back.vector_flops == flops * n and back.flops == 0
    assert simplify(back.traffic - eval(moved, {}, bits | {"n": n, "hidden": symbol("hidden")})) == 0
    assert block.saved == kept * n * bits["activation"]
