"""Every device answers every question: what its data sheet leaves out is a range of what comparable devices have."""

import numpy as np
import pytest

from scalebook import accelerators, links, models, search, training_step
from scalebook.inference import serve
from scalebook.tables import assumed

from .every import every
from .support import cases

MODEL, REQUEST = models.llama3_8b, dict(prompt=1000, output=100)
NETWORK = {"scaleup_bandwidth", "scaleup_size", "scaleout_bandwidth", "host_bandwidth"}
FILLED = NETWORK | {"peak_vector", "price_hour", "tdp"}
RENTED_OUT = "Amazon", "Google", "Microsoft"  # whose devices nobody else can buy
QUESTIONS = cases("questions of every device", globals())


@every(accelerators)
def test_no_device_is_without_an_answer(key):
    for ask in QUESTIONS.values():
        assert np.isfinite(found := ask(accelerators[key])) and found > 0


@every(accelerators)
def test_an_assumed_cell_is_a_range_and_says_so(key):
    device, stated = accelerators[key], accelerators[key].published
    assert ("device_price" in device) is (device.words["vendor"] not in RENTED_OUT)
    assert set(device) >= FILLED and not any(cell.is_assumed for cell in stated.cells.values())
    for letter in set(device) - set(stated):
        cell = device.cells[letter]
        assert cell.is_assumed and cell.low <= cell.value <= cell.high and cell.low < cell.high
        assert "assumed" in repr(device.why(letter)) and "eight in ten of them give" in cell.note


@every(accelerators)
def test_a_device_is_compared_by_each_figure_that_it_states(key):
    for letter, rule in assumed._rules().items():
        named = accelerators._rows.stanzas.mentioning(*rule.get("by", [letter]))
        assert key in named or len(accelerators[key].kin) > 1 or not accelerators[key].states(letter)


@pytest.mark.parametrize("peak", ["peak_bf16", "peak_fp8"])
def test_a_readers_own_device_is_completed_as_one_of_the_table_is(peak, tmp_path):
    figures = f'{peak} = "500 TFLOP/s"\nhbm_capacity = "64 GB"\nhbm_bandwidth = "2 TB/s"\n'
    (path := tmp_path / "mine.toml").write_text(f'[mine]\nsource = "scalebook-measure"\n{figures}', "utf-8")
    device = accelerators.read(path)
    filled = FILLED | {"device_price", "peak_flops"} - {*device.published}
    assert {n for n, x in device.cells.items() if x.is_assumed} == filled
    assert all(device.cells[n].low <= device[n] <= device.cells[n].high for n in FILLED)
    assert all(np.isfinite(found := ask(device)) and found > 0 for ask in QUESTIONS.values())
    path.write_text(path.read_text("utf-8").replace(peak, "peak_fp32"), "utf-8")
    assert "peak_flops" not in accelerators.read(path)  # in proportion to no peak that is stated


def test_an_assumption_widens_the_interval_and_gives_way_to_what_is_given():
    device, asked = accelerators.mi325x, dict(users=16, **REQUEST)
    open_price = serve(MODEL, device, **asked).interval("million_cost")
    known = serve(MODEL, device, price_hour=device.price_hour, **asked).interval("million_cost")
    assert open_price.ranked[0].letter == "price_hour" and open_price.width > 1.3 * known.width
    step = training_step(MODEL, device, global_batch=8, seq=4096)
    assert step.interval("step_cost").ranked[0].letter == "price_hour" and step.interval("step_time").ranked
    given = serve(MODEL, device, {"price_hour": 3}, **asked)
    assert given.price_hour == 3 and serve(MODEL, {"price_hour": 3}, device, **asked).price_hour == 3


def test_a_price_that_rests_on_an_assumed_rent_is_as_open_as_the_rent():
    steps = (
        training_step(MODEL, accelerators[x], global_batch=8, seq=4096, train_tokens=1e9) for x in ("mi300x", "h800")
    )
    spreads = [y.high / y.low if y.low else 1 for x in steps for y in x.answer.prices]
    assert spreads[0] == 1 < spreads[1] and spreads[1] < spreads[3] > spreads[2]


def test_a_table_shows_what_is_assumed_and_having_takes_what_is_published():
    assert ">≈ " in accelerators[["rubin"]]._repr_html_() and ">≈ " not in accelerators[["h100"]]._repr_html_()
    assert "rubin" not in accelerators.having("tdp") and "h100" in accelerators.having("tdp")
    assert len(links.having("link_bandwidth")) == len(links)


@pytest.mark.parametrize(("precision", "rate"), [("fp8", 20e15), ("fp4", 40e15)])
def test_mi455x_has_the_rates_that_its_source_prints(precision, rate):
    assert accelerators.mi455x.at(precision).peak_flops == rate


def test_a_search_marks_what_rests_on_assumed_cells():
    devices = [accelerators.h100, accelerators.gaudi3]
    found = search(serve, MODEL, devices, rate=20, tpot="<30 ms", progress=False, **REQUEST)
    rests = {x.device: x.assumed for x in found.best}
    assert not rests[accelerators.h100.name] and "price_hour" in rests[accelerators.gaudi3.name]["million_cost"]
    table, marked = repr(found).splitlines(), accelerators.gaudi3.name
    assert all(("≈" in x) == (marked in x) for x in table if marked in x or accelerators.h100.name in x)
    assert "peak_vector, price_hour" in table[-1] and table[-1] in found._repr_html_()
    assert dict(zip(found.to_dict()["device"], found.to_dict()["assumed"], strict=True))[accelerators.h100.name] is None
    assert '"peak_vector, price_hour"' in found.to_csv()
