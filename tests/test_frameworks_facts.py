"""What the table of frameworks promises: its rows, one fact for a flag and a cell, and what stands before what."""

from dataclasses import replace
from importlib.resources import files

import pytest

from scalebook.flags import frameworks as flags_of_frameworks
from scalebook.flags import read
from scalebook.language.words import WORDS
from scalebook.tables import _TABLES, Framework, Table, accelerators, clusters, frameworks, libraries, models
from scalebook.training import training_step

from .every import every
from .support import each_case

PLAIN = dict(dp=8, batch=1, seq=8192, global_batch=8)


# A flag's usual value and the framework's cell are one fact

USUAL = [
    (key, table, flag, name, value)
    for key, table in flags_of_frameworks().items()
    for flag, entry in table.items()
    if entry.usual and table.rows
    for name, value in entry.says(entry.usual).items()
]


@every(USUAL, name=lambda x: f"{x[0]}: {x[2]} gives {x[3]}")
def test_a_flags_usual_value_is_what_the_framework_has(key, table, flag, name, value):
    row = frameworks[table.rows[-1][1]]  # the one where no flag is given
    if name in WORDS:
        usual = WORDS[name].usual
        assert row.words.get(name, str(usual)) == str(value)
    elif name in row:
        assert row[name] == value


@each_case("flags that say little", "key, text", globals())
def test_what_no_flag_says_is_what_the_framework_has(key, text):
    """Letters and words that follow from flags that are not given, the framework's row says too."""
    setup = read(text)
    assert setup.row is frameworks[key]
    said = setup.knowns
    row = setup.row
    assert {n: x for n, x in said.items() if n in row and row[n] != x} == {}
    for name in WORDS.keys() & said.keys():
        assert str(said[name]) == row.words.get(name, str(WORDS[name].usual)), name
    # A call by flags and a call by the row alone are one call.
    layout = {n: x for n, x in said.items() if n not in row and n not in WORDS}
    rows = models.llama3_8b, accelerators.h100.at("bf16"), row
    by_flags, by_row = training_step(*rows, **PLAIN | said), training_step(*rows, **PLAIN | layout)
    assert by_flags.step_time == by_row.step_time


# The order of precedence: letter in the call, flags read, release, framework, library, device, formula


def test_what_stands_before_what():
    device = accelerators.h100.at("bf16")
    asked = lambda *more, **letters: training_step(  # noqa: E731
        models.llama3_8b, *more, **PLAIN | {"tp": 2} | letters
    )
    bare = accelerators.l40s.at("bf16")
    assert "attention_efficiency" not in bare and "attention_efficiency" in device
    formula = training_step(models.llama3_8b, bare, frameworks.plain, **PLAIN).attention_efficiency
    of_device = asked(device, frameworks.plain)
    assert of_device.attention_efficiency == device.attention_efficiency != formula
    # A framework's library stands before the device.
    of_framework = asked(device, frameworks.torchtitan)
    assert of_framework.attention_reached < of_device.attention_reached
    assert of_framework.library_rate == libraries.products_2023.library_rate
    # A cell of the framework itself stands before the device's and before that of a cluster's device.
    cells = frameworks.torchtitan.cells | {
        "far_efficiency": replace(clusters.hf_h100.cells["far_efficiency"], value=0.3)
    }
    mine = Framework("mine", cells, frameworks.torchtitan.words)
    assert asked(device.on(clusters.hf_h100), mine).far_efficiency == 0.3
    assert asked(device.on(clusters.hf_h100), frameworks.torchtitan).far_efficiency == 0.55
    # A release stands before what it is like.
    release = asked(device, frameworks.torchtitan_compile)
    assert frameworks.torchtitan_compile.words["blocks"] == "fused" and frameworks.torchtitan.words["blocks"] == "eager"
    assert release.step_time < of_framework.step_time
    # Flags are letters of the call, which stand before the release.
    flags = "[parallelism]\ntensor_parallel_degree = 2\nenable_async_tensor_parallel = true\n[compile]\nenable = true\n"
    setup = read(flags + "[training]\nlocal_batch_size = 1\nseq_len = 8192\n[activation_checkpoint]\nmode = 'full'\n")
    assert setup.row is frameworks.torchtitan_async and setup.knowns["recompute"] == "full"
    by_flags = training_step(models.llama3_8b, device, setup.row, **PLAIN | setup.knowns)
    assert by_flags.recompute == "full" if "recompute" in by_flags else by_flags.again_flops > 0
    assert by_flags.tp_overlap == pytest.approx(0.25) == setup.knowns["tp_overlap"]
    # A letter of the caller stands before the flags.
    given = training_step(models.llama3_8b, device, setup.row, **PLAIN | setup.knowns | {"tp_overlap": 0.9})
    assert given.tp_overlap == 0.9 and given.step_time < by_flags.step_time


# What follows from a model's row


def read_with(tmp_path, table, stanza):
    """Read a table of the package to whose file a contributor has added a stanza."""
    file = tmp_path / f"{table}.toml"
    file.write_text((files("scalebook.tables") / file.name).read_text("utf-8") + stanza, "utf-8")
    return Table.load(file, **_TABLES[table]).mine


def test_a_stanza_makes_a_framework_and_a_cluster(tmp_path):
    """As CONTRIBUTING says: an invented program that hides nothing of a slow network, and that network."""
    device = accelerators.h100.at("bf16")
    stanza = '\n[mine]\nname = "Invented"\nsource = "scalebook-measure by its owner"\n'
    program = read_with(tmp_path, "frameworks", stanza + 'like = "nemo"\ndp_overlap = "0 %"\nblock_launch = "99 ms"\n')
    network = read_with(tmp_path, "clusters", stanza + 'scaleout_bandwidth = "5 GB/s"\nfar_efficiency = "50 %"\n')

    def step(device, framework):
        layout = dict(tp=1, dp=64, batch=1, global_batch=64, seq=8192)
        return training_step(models.llama3_8b, device, framework, **layout)

    known, mine = step(device, frameworks.nemo), step(device, program)
    assert mine.dp_overlap == 0 < known.dp_overlap and mine.step_time > known.step_time
    assert mine.host_exposed > 0
    slow = step(device.on(network), program)
    assert slow.far_efficiency == 0.5 and slow.dp_exposed > 5 * mine.dp_exposed
