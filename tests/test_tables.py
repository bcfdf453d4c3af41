"""The tables as they load: every cell sourced and shown, errors that name the place, the promised numbers."""

import re
import tomllib
from dataclasses import replace
from functools import reduce
from importlib.resources import files
from operator import or_

import numpy as np
import pytest

from scalebook.language import NOTATION, SOURCES, cite
from scalebook.language.notation import _group
from scalebook.language.row import quantity
from scalebook.language.stanzas import Stanzas
from scalebook.language.tabular import plain_page
from scalebook.machine.roofline import ridge_intensity
from scalebook.memory.serving import kv_cache_per_token, linear_memory
from scalebook.tables import (
    Device,
    Table,
    accelerators,
    clusters,
    efficiencies,
    efficiencies_of,
    engines,
    frameworks,
    libraries,
    links,
    models,
    precisions,
    ranges,
    runs,
    shapes,
)  # fmt: skip
from scalebook.tables.plausible import refuse_outliers

from .every import every
from .support import each_case, refuses

TABLES = [accelerators, links, models, precisions, engines, runs, ranges, efficiencies]
ROWS = [(table, key) for table in TABLES for key in table]
tables = pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
FOLDER = files("scalebook.tables")
DEVICES = """v100 a100 h100 h100_pcie h100_nvl h200 b200 b300 gb200 gb300 mi250x mi300x mi300a mi325x mi350x mi355x
    tpu_v4 tpu_v5e tpu_v5p tpu_v6e tpu_v7 trainium1 trainium2 trainium3 inferentia2 gaudi2 gaudi3 maia100
    l40s rtx_pro_6000 rtx_4090 rtx_5090 arc_pro_b60"""
WORDS = "vendor vendors fabric kind peak attention family norm windows model device precision kernel exchange blocks"


@every(DEVICES.split())
def test_required_device(key):
    device = accelerators[key]
    is_said = not key.startswith(("tpu", "trainium", "inferentia", "maia"))
    assert {"hbm_capacity", "hbm_bandwidth", "tdp", "launch"} <= set(device) or not is_said
    assert device.peak_flops == device.at("bf16" if "peak_bf16" in device else "fp16").peak_flops
    for name in device:
        if name.startswith("peak_") and name not in ("peak_flops", "peak_vector"):
            at = device.at(name.removeprefix("peak_"))
            assert at.peak_flops == device[name] and name.removeprefix("peak_") in at.why("peak_flops").cell.note
            assert at.at("bf16" if "peak_bf16" in device else "fp16").peak_flops == device.peak_flops


@every(efficiencies)
def test_what_is_typical_in_training_lies_between_low_and_high(key):
    row = efficiencies[key]
    assert 0 < row.efficiency_low < row.efficiency_typical < row.efficiency_high <= 1
    assert efficiencies_of(row.device)[row.precision] is row
    device = accelerators[row.device].at(row.precision)
    assert device.training_efficiency == row.efficiency_typical
    assert "by source" in device.cells["training_efficiency"].note


@every(ROWS, name=lambda x: f"{x[0].name}-{x[1]}")
def test_row(table, key):
    row = table[key]
    assert row is getattr(table, key) and row.name and key.isidentifier() and key not in dir(Table)
    for name, cell in row.cells.items():
        assert quantity(name, cell.value) == cell.value
        assert row.sources[name].split()[0].rstrip(",") in SOURCES
        if cell.formula is None:
            assert cite(cell.source).startswith(cite(cell.source.split()[0]))
        else:
            assert cell.formula(row) == cell.value
        assert f"{name} = " in repr(row.why(name))
    assert row.name in repr(row)
    page = plain_page(row._repr_html_())
    assert all(f"<code>{name}</code>" in page for name in row)
    known = "div|table|caption|thead|tbody|tr|th|td|code|span|details|summary|ul|li|small|p|a"
    assert not re.search(rf"<(?!/?({known})\b)", page)


@tables
def test_table(table):
    assert len({row.name for row in table.values()}) == len(table), "two rows of one name are one entry of a menu"
    page, said = table._repr_html_(), repr(table)
    assert page.count("<tr>") == len(table) + 1
    chosen = {"peak_flops", "matmul_efficiency", "training_efficiency", "grouped_efficiency"}  # by a precision
    assert page.count("<td") == len(table) * len(NOTATION.keys() & {x for row in table.values() for x in row} - chosen)
    assert all(key in said for key in table)
    columns = table.columns
    assert all(np.array_equal(columns[x], [row[x] for row in table.values()]) for x in columns)
    assert all(x in columns for x in next(iter(table.values())) if all(x in row for row in table.values()))


def test_choosing_rows():
    fp8 = accelerators.having("peak_fp8", "scaleup_bandwidth")
    assert "h100" in fp8 and "a100" not in fp8 and all("peak_fp8" in row for row in fp8.values())
    assert list(accelerators[["h200", "h100"]]) == ["h200", "h100"]
    assert ridge_intensity(accelerators[["h200", "h100"]].columns).shape == (2,)
    assert len(accelerators.having("kv_heads").columns) == 0
    assert accelerators.get("h10") is None and SOURCES.get("nobody2000") is None


def refusal(folder, text):
    """What is said of a table with this text, which is refused."""
    (path := folder / "mine.toml").write_text(text, "utf-8")
    with pytest.raises(ValueError) as refused:
        Table.load(path)
    return str(refused.value)


@each_case("a cell that is wrong", "stanza, words", globals())
def test_a_mistake_stops_the_load(tmp_path, stanza, words):
    good = '[good]\nsource = "williams2009"\ncores = 3\n'
    said = refusal(tmp_path, f'{good}[bad]\nsource = "williams2009"\n{stanza}\n')
    assert said.startswith("mine.toml, [bad], ") and not [x for x in words if x not in said]


@each_case("a table that is wrong", "text, words", globals())
def test_other_mistakes(tmp_path, text, words):
    assert refusal(tmp_path, text).startswith(words)


def swapped(key, **cells):
    """The table of devices with cells of one row in another unit."""
    row = accelerators[key]
    other = Device(row.name, row.cells | {x: replace(row.cells[x], value=y) for x, y in cells.items()}, row.words)
    other.kin = row.kin
    return {**accelerators} | {key: other}


@each_case("cells a thousand times beyond their peers", "letter, value, said", globals())
def test_a_device_a_thousand_times_beyond_all_others_is_refused(letter, value, said):
    rows, said = swapped("h100", **{letter: value}), rf"accelerators.toml, \[h100\], {letter}: .*{said}"
    refuses(ValueError, said, refuse_outliers, "accelerators.toml", rows)


@pytest.mark.parametrize("table", [*TABLES, clusters, frameworks, libraries], ids=lambda t: t.name)
def test_each_stanza_is_read_by_itself_as_in_the_whole_file(table):
    """A table makes a row from its stanza alone: the file is valid TOML, has the same stanzas, and no outlier."""
    path = FOLDER / f"{table.name}.toml"
    assert dict(Stanzas(path.name, path.read_text("utf-8"))) == tomllib.loads(path.read_text("utf-8"))
    if table.name not in ("ranges", "runs", "models", "efficiencies", "precisions", "libraries"):
        refuse_outliers(path.name, table)


def test_sources_are_read_stanza_by_stanza_as_in_their_files():
    files_ = [x for x in FOLDER.iterdir() if x.name.startswith("sources")]
    whole = reduce(or_, (tomllib.loads(x.read_text("utf-8")) for x in files_))
    assert len(files_) > 4 and dict(SOURCES) == whole


@pytest.mark.parametrize("package", ["scalebook.language", "scalebook.calculon"])
def test_groups_of_letters_are_read_as_in_their_files(package):
    text = (files(package) / "letters.toml").read_text("utf-8")
    assert dict(Stanzas("letters.toml", text, _group)) == tomllib.loads(text)


def test_a_row_that_others_are_like_is_compared_with_strangers():
    parent = next(row.kin[-1] for row in accelerators.values() if len(row.kin) > 1 and "hbm_bandwidth" in row)
    wrong = {key: row for key, row in accelerators.items() if row.kin[-1] == parent}
    rows = {**accelerators}
    for key in wrong:
        rows |= {key: swapped(key, hbm_bandwidth=8e15)[key]}
    said = r"hbm_bandwidth: .* the most that any other row has, 23.3 TB/s"
    refuses(ValueError, said, refuse_outliers, "accelerators.toml", rows)


def test_a_readers_own_device_may_be_slow_and_not_impossibly_fast(tmp_path):
    stanza = '[mine]\nsource = "scalebook-measure"\nhbm_capacity = "16 GB"\npeak_bf16 = "50 GFLOP/s"\n'
    (path := tmp_path / "mine.toml").write_text(stanza + 'hbm_bandwidth = "8 GB/s"\n', "utf-8")
    assert accelerators.read(path).hbm_bandwidth == 8e9
    path.write_text(stanza + 'hbm_bandwidth = "8000 TB/s"\n', "utf-8")
    refuses(ValueError, r"\[mine\], hbm_bandwidth: .* is 343 times the most that any other", accelerators.read, path)


@every(ROWS, name=lambda x: f"{x[0].name}-{x[1]}")
def test_words_and_counts(table, key):
    row = table[key]
    strange = set(row.words) - set(WORDS.split())
    assert not strange, f"{key} has words that no table knows: {strange}"
    assert all(row.words.values()), f"{key} has an empty word"
    for name, cell in row.cells.items():
        is_mean = cell.note == "computed from its shape"  # over blocks that differ
        is_plain = NOTATION[name].unit == "" and NOTATION[name].sign != "share" and not is_mean
        if is_plain and name not in ("pue", "system_factor"):
            assert cell.value == int(cell.value), f"{name} of {key} is a count, not {cell.value}"


@every(models)
def test_attention_and_norm_are_of_the_kinds_that_the_head_of_the_table_lists(key):
    words = models[key].words
    assert words.get("attention") in (kinds := ["mha", "gqa", "mqa", "mla", "none"]), f"attention is one of {kinds}"
    assert words.get("norm") in (kinds := ["layernorm", "rmsnorm"]), f"norm is one of {kinds}"


def test_no_window_is_claimed_where_none_is_published():
    for model in models.values():
        assert ("window_layers" in model) and ("window" in model)
        if not model.window_layers:
            assert model.why("window_layers").cell.note == "no sliding window is published"
            assert model.window == model.max_context


@pytest.mark.parametrize("key", [k for k in precisions if precisions[k].kind == "format"])
def test_a_format_of_16_bit_products_runs_in_bf16(key):
    """A server widens narrow weights to the activations it has; the peak of a device without a word is bf16 too."""
    if precisions[key].activation_bits == 16 and key != "fp16":
        assert precisions[key].peak == "peak_bf16"


@each_case("the cache of a token by hand", "key, cached", globals())
def test_the_cache_of_a_token_in_16_bits(key, cached):
    assert kv_cache_per_token(models[key], kv_bits=16) == cached


def test_the_state_of_a_sequence():
    """By hand, of the smaller Qwen3.5 27B: a 128 x 128 matrix for each of 48 heads, and four inputs to convolve."""
    shape = dict(linear_layers=48, linear_key_heads=16, linear_key_dim=128, linear_value_heads=48)
    state = shapes.linear_state(**shape, linear_value_dim=128, linear_conv=4)
    assert linear_memory(linear_state=state, linear_bits=16) == 48 * (48 * 128 * 128 + 4 * 10240) * 2 == 79429632
    assert models.qwen3_5_397b.linear_state == shapes.linear_state(models.qwen3_5_397b)


@pytest.mark.parametrize("key", [key for key, row in engines.items() if "chunk_tokens" not in row])
def test_an_engine_of_one_user_has_its_letters(key):
    lacking = {"bandwidth_efficiency", "block_overhead", "turn_time"} - set(engines[key])
    assert not lacking, f"engine {key} serves one user (no chunk_tokens) and needs {', '.join(sorted(lacking))}"


@pytest.mark.parametrize("key", [key for key, row in engines.items() if "chunk_tokens" in row])
def test_an_engine_has_every_letter(key):
    row = engines[key]
    times = ("step_overhead", "layer_overhead", "first_overhead")
    lacking = {*times, "cache_share", "chunk_tokens", "first_tokens", "scale_kernels"} - set(row)
    assert not lacking, f"the row of engine {key} lacks {', '.join(sorted(lacking))}"
    assert 0.5 < row.cache_share <= 1, f"cache_share of engine {key} is a share of free memory, 0.5 to 1"
    for letter in times:
        cell = row.cells[letter]
        said = f"{letter} of engine {key} is 0: if nobody measured it, its note begins with 'not calibrated yet'"
        assert key == "ideal" or cell.value > 0 or "calibrated" in cell.note, said
        assert key != "ideal" or cell.value == 0, f"the ideal engine costs nothing, so {letter} is 0"
