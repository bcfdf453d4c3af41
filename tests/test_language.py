"""Letters, units, calls, composition, solving, worked views and every error."""

import json
import math
import pickle
import re

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as some
from sympy import Max, Min, Piecewise, ceiling

from scalebook import language
from scalebook.inference.tokens import decode_rate, latency_floor, token_time, token_time_overhead
from scalebook.language import FORMULAS, NOTATION, Formula, OutsideDomain, code, formula, letter, parse, show, symbol  # noqa: F401  (of cases.csv)
from scalebook.language.notation import OTHERS
from scalebook.language.units import Quantity, dimension, show_tex
from scalebook.language.words import WORDS
from scalebook.machine.roofline import compute_time, memory_time, ridge_intensity, roofline, roofline_time
from scalebook.memory import serving
from scalebook.memory.serving import full_attention, kv_cache, kv_cache_per_token, max_batch, weight_memory
from scalebook.tables import Table, accelerators, models

from .every import every
from .support import STATED, cases, draw, each_case, live, refuses

flops, traffic, batch, hidden, layers = map(symbol, ["flops", "traffic", "batch", "hidden", "layers"])
UNITS = sorted({x.unit for x in NOTATION.values()})
LIVE = live()


def stated(name, rhs, title="f"):
    return Formula(title, name, rhs)


# Notation


@every(NOTATION)
def test_letter(name):
    x = NOTATION[name]
    assert dimension(x.unit) is not None
    assert x.meaning and not x.meaning.endswith(".") and "$" not in x.tex and "\\\\" not in x.tex
    assert x.tex.count("{") == x.tex.count("}")
    assert symbol(name) == x.symbol and getattr(x.symbol, "is_nonnegative" if x.sign == "share" else f"is_{x.sign}")


def test_no_two_letters_print_alike():
    printed = {}
    for name, x in NOTATION.items():
        seen = re.sub(r"\\mathrm|[\s{}]", "", x.tex)  # nobody tells an upright index from a slanted one
        assert printed.setdefault(seen, name) == name, x.tex


def test_text_is_never_run(tmp_path):
    touched = tmp_path / "touched"
    payload = f"__import__('pathlib').Path({str(touched)!r}).touch()"
    for attempt in cases("ways to have a text run", globals()).values():
        with pytest.raises((ValueError, TypeError, LookupError)) as refused:
            attempt(payload)
        assert "\n" not in str(refused.value)
    assert not touched.exists()


def test_what_a_page_shows_is_text():
    evil = "<script>alert(1)</script>"
    sheet = language.Sheet(evil, Formula("f", "flops", 2 * batch, [evil], evil))
    row = sheet(batch=2)
    table = Table(evil, {evil: language.Row(evil, {"layers": language.Cell(3.0, evil, evil, evil)})})
    for shown in (sheet, row, row.why("flops"), table, table[evil], sheet.formulas["flops"]):
        assert "<script>" not in shown._repr_html_()


def test_a_second_formula_of_one_name_is_refused():
    def kv_cache(batch):
        """Of another module."""
        return 2 * batch

    made, kv_cache.__module__ = formula("flops", "williams2009"), "scalebook.elsewhere"
    said = r"kv_cache of scalebook\.elsewhere needs another name: scalebook\.memory\.serving has a formula"
    refuses(ValueError, said, made, kv_cache)
    kv_cache.__module__ = "__main__"  # a reader may call it so; what is published stays
    assert made(kv_cache)(batch=2) == 4
    assert FORMULAS["kv_cache"].__module__ == "scalebook.memory.serving"
    own = FORMULAS["kv_cache"]
    try:  # a module may be loaded again
        kv_cache.__module__ = "scalebook.memory.serving"
        assert FORMULAS["kv_cache"] is not made(kv_cache) or FORMULAS["kv_cache"] is not own
    finally:
        FORMULAS["kv_cache"] = own


# Units


@pytest.mark.parametrize("unit", UNITS)
@settings(max_examples=40)
@given(value=some.floats(1e-9, 1e18))
def test_what_is_shown_reads_back(unit, value):
    text = show(value, unit)
    if unit in ("", "year") or any(x in text for x in ("×", "illion", "days", "min", " h")):
        return
    assert parse(text.replace(",", ""), unit) == pytest.approx(value, rel=5.1e-4)


@pytest.mark.parametrize("month", range(1, 13))
def test_months(month):
    assert show(parse(f"2024-{month:02d}", "year"), "year") == f"2024-{month:02d}"


EDGES = cases("numbers that are hard to show", globals())["all"]


def samples():
    rng = np.random.default_rng(1)
    spread = np.exp(rng.uniform(math.log(1e-16), math.log(1e27), 900))
    ties = [float(f"{n}.5e{e}") for n in (1000, 1234, 4321, 9999) for e in range(-16, 24)]
    powers = [float(f"{d}e{e}") for d in ("1", "9.9995", "9.99949", "9.9994999999999") for e in range(-16, 27)]
    return [*EDGES, *spread.tolist(), *ties, *powers, *rng.integers(0, 10**7, 200).tolist()]


@pytest.mark.parametrize("unit", UNITS)
def test_a_page_writes_numbers_as_python_does(unit):
    values = np.random.default_rng(2).uniform(1990, 2040, 500).tolist() if unit == "year" else samples()
    values = [x for x in values if abs(x) < 1e300]  # a percentage is written a hundred times as large
    for ours, theirs in ((show, "show"), (show_tex, "showTex")):
        texts = LIVE(f"({json.dumps(values)}).map((x) => {theirs}(x, {json.dumps(unit)}))")
        wrong = [(x, ours(x, unit), text) for x, text in zip(values, texts, strict=True) if ours(x, unit) != text]
        assert not wrong, wrong[:5]


@each_case("numbers as they are shown", "value, unit, text", globals())
def test_shown(value, unit, text):
    assert show(value, unit) == text


# Calling with what you know


H100 = accelerators.h100
KERNEL = {"flops": 2e12, "traffic": 4e9, "peak_flops": 1e15, "hbm_bandwidth": 2e12}


def test_numbers_rows_keywords_strings_and_results():
    said = ridge_intensity(peak_flops="989.4 TFLOP/s", hbm_bandwidth="3.35 TB/s")
    assert ridge_intensity(H100) == said == 989.4e12 / 3.35e12
    assert ridge_intensity(H100, peak_flops=1e15) == 1e15 / 3.35e12
    assert ridge_intensity({"peak_flops": "1 PFLOP/s"}, hbm_bandwidth=np.int64(10**12)) == 1000
    assert memory_time(roofline(**KERNEL)) == 0.002
    assert type(ridge_intensity(H100)) is Quantity and type(1 * ridge_intensity(H100)) is float
    assert ridge_intensity(peak_flops=sympy.Integer(10) ** 15, hbm_bandwidth=sympy.Rational(10**12)) == 1000


def test_arrays():
    widths = [1e12, 2e12, 4e12]
    array = np.array(widths)
    for given_as in (widths, tuple(widths), array, array.astype(np.float32), array.astype(int)):
        assert ridge_intensity(H100, hbm_bandwidth=given_as) == pytest.approx(989.4e12 / array, rel=1e-6)
    assert ridge_intensity(peak_flops=[[1e15], [2e15]], hbm_bandwidth=widths).shape == (2, 3)
    large = np.full((3, 20_000), 1e12)
    assert (ridge_intensity(peak_flops=1e15, hbm_bandwidth=large) == 1000).all()
    many = np.array([10**18, 3 * 10**18])
    assert weight_memory(params=many, weight_bits=np.array([64])) == pytest.approx([8e18, 2.4e19])


def test_knowing_less_leaves_a_formula():
    less = ridge_intensity(peak_flops=1e15)
    assert isinstance(less, Formula) and less.inputs == ("hbm_bandwidth",) and less(hbm_bandwidth=1e12) == 1000
    assert ridge_intensity().rhs == ridge_intensity.rhs
    odd = 0.1e15 + 0.125
    assert ridge_intensity(peak_flops=odd)(hbm_bandwidth=1e12) == ridge_intensity(peak_flops=odd, hbm_bandwidth=1e12)


def test_expressions():
    grown = ridge_intensity(peak_flops=batch * 1e12)
    assert grown.inputs == ("batch", "hbm_bandwidth") and grown(batch=4, hbm_bandwidth=1e12) == 4
    plain = ridge_intensity(peak_flops=sympy.Symbol("batch"))(batch=4)
    assert plain.inputs == ("hbm_bandwidth",) and plain(hbm_bandwidth=1) == 4


def test_assumptions_by_position():
    known = {"batch": 1, "context": 4096, "kv_bits": 16}
    model = models.gpt_oss_120b
    assert kv_cache(full_attention, model, **known) > kv_cache(model, **known)
    assert kv_cache(model, full_attention, **known) == kv_cache(full_attention)(model, **known)
    given_it = kv_cache(cached=4096, kv_cache_per_token="1 MB", batch=2)
    assert given_it == 2 * 4096 * 1e6


def test_a_keyword_overrides_what_followed_from_the_row():
    assert kv_cache_per_token(models.llama2_7b, kv_heads=8, kv_bits=16) == 524288 / 4
    row = roofline(**KERNEL)
    assert roofline(row, flops=4e12).roofline_time == 0.004
    assert roofline(row, compute_time=1).roofline_time == 1


# Composing


def test_composition_and_travelling_sources():
    f = roofline_time.compose(compute_time, memory_time)
    assert f.inputs == ("flops", "hbm_bandwidth", "peak_flops", "traffic") and f(**KERNEL) == 0.002
    assert set(f.sources) == {*roofline_time.sources, *compute_time.sources, *memory_time.sources}
    assert set(decode_rate(token_time).sources) >= set(token_time.sources)
    wide, deep = stated("hidden", layers + batch, "g"), stated("layers", batch * 2, "h")
    assert stated("intensity", hidden * layers).compose(wide, deep).rhs == 6 * batch**2
    assert f.name == "roofline_time" and f.meaning == roofline_time.meaning


def test_solving_keeps_sources():
    assert ridge_intensity.solve("peak_flops").sources == ridge_intensity.sources
    assert max_batch.solve("hbm_capacity").sources[: len(max_batch.sources)] == max_batch.sources


# Solving


def form(f):
    """A right-hand side without its numbers and with the signs of its letters, each factor once, for their names."""
    said = re.sub(r"[a-z_]\w*|[\d.]+", lambda x: NOTATION[x[0]].sign if x[0] in NOTATION else "#", str(f.rhs))
    return re.sub(r"\b(\w+)(\*\1)+\b", r"\1", said)


@every({form(f): f for f in STATED if f.inputs}.values(), name=lambda f: f.name)
def test_solving_for_a_letter_gives_it_back(f):
    """Of formulas of one form one is solved."""
    drawn = draw(f.inputs, 5000, seed=5, grouped=bool(f.domain))
    with np.errstate(all="ignore"):
        heights = np.broadcast_to(f.numpy(*drawn.values()), 5000)
    inside = np.logical_and.reduce([np.broadcast_to(x.holds(drawn), 5000) for x in f.domain] or [True])
    at = np.flatnonzero(np.isfinite(heights) & (heights > 0) & inside)[0]
    values, value = {n: float(x[at]) for n, x in drawn.items()}, float(heights[at])
    name = f.inputs[len(f.name) % len(f.inputs)]  # of a form's letters one: in forms much alike it is another
    inverse, others = f.solve(name), {n: x for n, x in values.items() if n != name}
    assert inverse.letter == name and inverse.method in ("symbolic", "numeric")
    try:
        found = inverse(**others, **{f.letter: value})
    except ValueError as refused:  # where it must be refused: no single value, or none of the letter's sign
        why = ("values of", "must be", "no value", "holds for", f"no {name} between")
        assert any(x in str(refused) for x in why), refused
    else:
        assert f(**others, **{name: found}) == pytest.approx(value, rel=1e-6)


def test_of_two_roots_the_right_one_is_taken():
    """SymPy may hand over a single root, and that the wrong one: each is tried out."""
    f, known = FORMULAS["ttft_beside"], dict(prompt_time=0.3, tpot=0.1)
    inverse = f.solve("prompt_load")
    assert inverse.method == "symbolic"
    assert inverse(**known, ttft=f(**known, prompt_load=0.5)) == pytest.approx(0.5)


# Where a formula holds


GROUPED = {
    "groups of pp": lambda microbatches, pp: sympy.Eq(sympy.Mod(microbatches, pp), 0),
    "at least 2 pp": lambda microbatches, pp: microbatches >= 2 * pp,
}
GIVES = formula("bubble", "huang2019 §2.3", domain=GROUPED)
REST = stated("idle_fraction", symbol("bubble") / (1 + symbol("bubble")), "rest")


def grouped(pp, microbatches, chunks):
    """Idle over busy."""
    return (pp - 1) / (chunks * microbatches)


@pytest.fixture(name="grouped")
def _grouped():
    yield GIVES(grouped)
    FORMULAS.pop("grouped")


def test_a_formula_is_refused_where_it_does_not_hold(grouped):
    assert grouped(pp=4, microbatches=8, chunks=1) == 3 / 8
    for letters, words in [
        (dict(microbatches=9), "^grouped holds for groups of pp, not at microbatches=9, pp=4$"),
        (dict(microbatches=4), "^grouped holds for at least 2 pp, not at microbatches=4, pp=4$"),
        (dict(microbatches=[8, 9, 10]), "groups of pp, not in 2 of 3 rows, the first at microbatches=9, pp=4$"),
        (dict(microbatches=[[8], [9]]), "groups of pp, not in 1 of 2 rows, the first at microbatches=9, pp=4$"),
    ]:
        for call in (grouped, grouped.worked) if np.ndim(letters["microbatches"]) == 0 else (grouped,):
            refuses(OutsideDomain, words, call, pp=4, chunks=1, **letters)
    assert list(grouped(pp=4, microbatches=[8, 12], chunks=1)) == [3 / 8, 3 / 12]
    [groups, _] = grouped.domain
    assert list(groups.holds({"microbatches": np.array([8.0, 9.0]), "pp": 4.0})) == [True, False]
    assert "holds for groups of pp, at least 2 pp" in grouped._repr_html_()


def test_conditions_travel(grouped):
    """Through knowing some letters, through composition, between processes; what is known to hold is dropped."""
    partly = grouped(pp=4)
    for f in (partly, REST.compose(grouped)(pp=4), REST.compose(grouped(pp=4)), pickle.loads(pickle.dumps(partly))):
        assert f(microbatches=8, chunks=1) > 0
        refuses(OutsideDomain, "holds for groups of pp, not at microbatches=9", f, microbatches=9, chunks=1)
    assert not grouped(pp=4, microbatches=8).domain
    refuses(OutsideDomain, "at least 2 pp, not at microbatches=4, pp=4", grouped, pp=4, microbatches=4)
    shares = grouped.compose(stated("microbatches", 2 * batch))
    assert "batch" in shares.inputs and shares(pp=4, batch=4, chunks=1) == 3 / 8
    refuses(OutsideDomain, "groups of pp, not at batch=5, pp=4", shares, pp=4, batch=5, chunks=1)


@pytest.mark.parametrize("between", [None, (1, 1000)])
def test_solved_for_a_number_it_asks_no_whole_groups_but_enough(grouped, between):
    solved = grouped.solve("microbatches", between)
    assert solved.method == ("numeric" if between else "symbolic")
    assert solved(pp=4, chunks=1, bubble=0.3) == pytest.approx(10)
    assert solved(pp=4, chunks=1, bubble=3 / 8) == pytest.approx(8)
    few = "grouped holds for at least 2 pp, not at microbatches=6, pp=4"
    refuses(OutsideDomain, few, solved, pp=4, chunks=1, bubble=0.5)
    one = "in 1 of 2 rows, the first at microbatches=6, pp=4"
    refuses(OutsideDomain, one, solved, pp=4, chunks=1, bubble=[0.3, 0.5])
    chunks = grouped.solve("chunks", between)
    refuses(OutsideDomain, "groups of pp, not at microbatches=9, pp=4", chunks, pp=4, microbatches=9, bubble=0.1)


def test_a_sheet_and_its_page_have_no_value_where_a_formula_does_not_hold(grouped):
    sheet = language.Sheet("s", grouped, REST)
    assert sheet.conditions == [(grouped, x) for x in grouped.domain]
    row = sheet(pp=4, microbatches=9, chunks=1)
    said = "idle_fraction of s has no value here: grouped holds for groups of pp"
    refuses(AttributeError, said, getattr, row, "idle_fraction")
    assert "in 1 of 2 rows" in sheet(pp=4, microbatches=[8, 9], chunks=1).missing["bubble"]
    assert list(sheet(pp=4, microbatches=[8, 12], chunks=1).bubble) == [3 / 8, 3 / 12]
    points = [dict(pp=4, microbatches=m, chunks=1) for m in (8, 9, 4, 12)]
    pages = [x["bubble"] for x in LIVE.each(sheet.js, [[p] for p in points])]
    assert pages == [3 / 8, None, None, 3 / 12]


def test_symbolic():
    f = ridge_intensity.solve("hbm_bandwidth")
    assert f.method == "symbolic" and f.rhs == symbol("peak_flops") / symbol("ridge_intensity")
    root = stated("flops", batch**2 + 3).solve("batch")
    assert root.method == "symbolic" and root(flops=7) == 2
    assert kv_cache_per_token.solve("kv_bits")(models.llama2_7b, kv_cache_per_token=524288) == 16


def test_through_assumptions():
    assert kv_cache.solve("context")(models.llama2_7b, batch=2, kv_cache=2 * 2**30, kv_bits=16) == 2048
    assert repr(kv_cache.solve("context")) == "context = kv_cache/(batch*kv_cache_per_token)"
    model, known = models.gpt_oss_120b, {"batch": 3, "kv_bits": 16}
    assert 0 < model.window_layers < model.layers
    for assumed in ([], [full_attention], [serving.sliding_window]):
        for f in (kv_cache, kv_cache.compose(kv_cache_per_token)):
            size = f(model, *assumed, context=100_000, **known)
            assert f.solve("context")(model, *assumed, kv_cache=size, **known) == pytest.approx(100_000)
    slow = latency_floor(models.llama2_7b, weight_bits=16, hbm_bandwidth=1)
    bandwidth = latency_floor.solve("hbm_bandwidth")(models.llama2_7b, weight_bits=16, latency_floor="4 ms")
    assert bandwidth == pytest.approx(slow / 0.004)


def test_several_branches_are_searched_and_narrowed():
    parabola = stated("flops", (batch - 3) ** 2)
    f = parabola.solve("batch")
    assert f.method == "numeric" and "found numerically" in repr(f) and "b" in f.latex
    assert f(flops=16) == pytest.approx(7)
    assert parabola.solve("batch", between=(3, 10))(flops=1) == pytest.approx(4)
    assert parabola.solve("batch", between=(0.5, 3))(flops=1) == pytest.approx(2)


def test_numeric():
    f = roofline_time.solve("compute_time")
    assert f.method == "numeric" and f(memory_time=2, roofline_time=3) == 3
    assert list(f(memory_time=[1, 2], roofline_time=3)) == [3, 3]
    assert roofline_time.solve("flops")({**KERNEL, "roofline_time": 0.004}) == pytest.approx(4e12)
    steps = stated("microbatches", ceiling(batch / 8))
    assert steps.solve("batch")(microbatches=3) == pytest.approx(16, abs=1e-6)
    bent = stated("flops", Piecewise((batch, batch < 10), (batch * 3, True)))
    assert bent.solve("batch")(flops=60) == pytest.approx(20)
    least = stated("flops", Min(batch, 5))
    assert least(batch=least.solve("batch")(flops=4)) == pytest.approx(4)


def test_numeric_with_rows_and_assumptions():
    known = {"max_batch": 59, "weight_bits": 16, "kv_bits": 16}
    context = max_batch.solve("context")(models.llama3_8b, H100, **known)
    assert max_batch(models.llama3_8b, H100, context=context, weight_bits=16, kv_bits=16) == 59
    assert max_batch(models.llama3_8b, H100, context=context * 0.999, weight_bits=16, kv_bits=16) == 60
    f = max_batch.solve("cached")
    composed = f.compose(weight_memory)
    given_ = {"hbm_capacity": 80e9, "kv_cache_per_token": 131072, "max_batch": 59, "params": 8e9, "weight_bits": 16}
    few = {k: given_[k] for k in list(given_)[:3]}
    assert composed(**given_) == f(weight_memory, **given_) == f(weight_memory=16e9, **few)
    assert "= 59" in repr(composed.worked(**given_))
    assert f.solve("max_batch") is f.formula


# Worked, text and LaTeX


def test_worked():
    text = repr(weight_memory.worked(params=7e9, weight_bits=4))
    below = "\n              = "
    assert text == f"weight_memory = params*weight_bits/8{below}(7 billion)*(4 bit)/8{below}3.5 GB"
    page = weight_memory.worked(params=7e9, weight_bits=4)._repr_latex_()
    assert page.startswith("$$") and page.endswith("$$") and "⟦" not in page and r"3.5\,\mathrm{GB}" in page
    assert ridge_intensity.worked(H100).value == ridge_intensity(H100)


@every(STATED, name=lambda f: f.name)
def test_worked_view_of_every_formula(f):
    values = {n: float(x[0]) for n, x in draw(f.inputs, 1, seed=5, grouped=bool(f.domain)).items()}
    try:
        worked = f.worked(**values)
    except ValueError:
        return
    assert "⟦" not in worked._repr_latex_() and len(repr(worked).split("\n")) == 3
    assert repr(worked).endswith(show(worked.value, f.unit))


# Errors


@each_case("values that are no number", "value, error, words", globals())
def test_values_that_are_refused(value, error, words):
    for call in (ridge_intensity, roofline):
        with pytest.raises(error, match=words) as refused:
            call(hbm_bandwidth=value, peak_flops=1e15)
        said = str(refused.value)
        assert "hbm_bandwidth" in said and "memory bandwidth of one device" in said and "B/s" in said


def test_a_share_lies_between_0_and_1():
    for said, value in (("90 %", 0.9), (1 + 1e-12, 1)):
        one, two = (token_time_overhead(memory_time=1, layers=1, block_overhead=1, bandwidth_efficiency=x)
                    for x in (said, value))  # fmt: skip
        assert one == two


# Code


a, b, c = sympy.symbols("a b c", positive=True)


@each_case("expressions that are written as code", "expr", globals())
def test_what_is_written_is_what_sympy_says(expr):
    points = np.random.default_rng(1).uniform(0.5, 8, (12, 3))
    wanted = [float(expr.subs(dict(zip((a, b, c), map(float, x), strict=True)))) for x in points]
    point = code.point("abc", [("flops", expr)], ["flops"])
    assert [point(*map(float, x))[0] for x in points] == pytest.approx(wanted, rel=1e-12)
    # `shared` makes a part of it occur twice.
    shared = [("flops", expr), ("traffic", 1 + expr * (a + b)), ("batch", sympy.Symbol("traffic") / (a + b))]
    arrays = code.vector("abc", shared, ["flops", "batch"])(*points.T)
    assert arrays[0] == pytest.approx(wanted, rel=1e-12)
    assert arrays[1] == pytest.approx(1 / points[:, :2].sum(axis=1) + wanted, rel=1e-12)


def test_code():
    shared = [("flops", (batch + 1) ** 2 / layers), ("traffic", flops * (batch + 1) ** 2)]
    assert code.vector(["batch", "layers"], shared, ["traffic"])(np.array([1.0]), 2.0)[0] == [8]
    wide = Max(batch, hidden, layers, 3)
    [found] = code.vector(["batch", "hidden", "layers"], [("flops", wide)], ["flops"])(np.array([1.0, 9.0]), 4.0, 2.0)
    assert found.tolist() == [4, 9]


def test_what_others_call_a_letter_is_no_letter_and_leads_to_one():
    for other, name in OTHERS.items():
        assert name in {*NOTATION, *WORDS, *WORDS["optimizer"].values} and other not in NOTATION
        hint = "did you mean" if name == "adam" else f"here it is '{name}'"
        refuses(LookupError, f"no letter is called '{other}'; {hint}", NOTATION.__getitem__, other)
