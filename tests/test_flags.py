"""Flags of frameworks are letters and words: every line of the table is sound, and what is written is read back."""

import ast
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scalebook.book.drawings.flags import SUBJECTS
from scalebook.book.drawings.flags import subject as of_subject

from scalebook import accelerators, flags, models, search, tables
from scalebook.flags.rules import letters_when
from scalebook.flags.table import first_formulas, frameworks
from scalebook.flags.text import guess
from scalebook.language import FORMULAS, NOTATION, SOURCES
from scalebook.language.words import WORDS
from scalebook.pipeline.schedules import SCHEDULES
from scalebook.training import overlap, training_step
from scalebook.training.strategy import Strategy

from .every import every
from .support import ROOT, cases, each_case

assert overlap  # whose formulas the table names
SCRIPTS = ROOT / "tests" / "scripts"
SAID = cases("what configurations say", {})
EVERY = [y for flags_of in frameworks().values() for y in flags_of.values()]


@every(EVERY, name=lambda x: f"{x.framework}: {x.flag}")
def test_a_line_of_the_table(flag):
    assert all(x in NOTATION or x in WORDS or x == "precision" for x in flag.names)
    for means in flag.means.values():
        for name, value in means.items():
            assert name in NOTATION or WORDS[name].value(value) is not None
    assert flag.source.partition(" ")[0] in SOURCES
    assert flag.subject in (*SUBJECTS, "shape")
    assert all(x in frameworks()[flag.framework] for x in flag.needs)
    assert not flag.usual or flag.usual in flag.means or (not flag.means and flag.usual.isdigit())
    assert all(name in FORMULAS for name in flag.formulas())
    texts = [*flag.when.values(), *(x[1:] for x in flag.when if x[:1] == "=")]
    names = {x.id for text in texts for x in ast.walk(ast.parse(text)) if isinstance(x, ast.Name)}
    assert names <= letters_when({}, None).keys() | {"round"}


@every((x, y) for x, y in first_formulas().items() if x in NOTATION)
def test_the_formula_of_a_letter(letter, name):
    formula = FORMULAS[name]
    assert letter in {x for f in (formula, *formula.given) for x in f.inputs}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_table_of_a_subject(subject):
    table = of_subject(subject)
    page, said = table._repr_html_(), repr(table)
    assert len(table.flags) >= 8 and page.count("<tr>") == len(table.flags) + 1 and "nan" not in said
    assert all(flag.shown in said for flag in table.flags)


def test_a_script_of_megatron():
    setup = flags.read(SCRIPTS / "megatron.sh")
    assert setup.framework == "megatron" and setup.precision == "bf16"
    assert setup.knowns == SAID["megatron.sh"]
    assert setup.shape == dict(layers=96, hidden=12288, heads=96)
    assert setup.without == ("--lr", "--data-path")
    [unknown] = setup.unknown
    assert unknown.startswith("--use-nothing-of-this: did you mean '--") and unknown.count("'--") == 3
    run = training_step(models.gpt3_175b, accelerators.a100.at(setup.precision), **setup.knowns)
    assert run.dp == 2 and 10 < run.step_time < 40
    assert "<table" in setup._repr_html_() and "not known: --use-nothing-of-this" in repr(setup)


def test_yaml_of_megatron():
    setup = flags.read(SCRIPTS / "megatron.yaml")
    assert setup.framework == "megatron"
    assert {**setup.knowns, "tp": 4, "pp": 2, "recompute": "full", "seq": 8192, "batch": 1} == setup.knowns
    assert setup.knowns["sequence_parallel"] is True and "chunks" not in setup.knowns


def test_deepspeed():
    path = SCRIPTS / "deepspeed.json"
    config = json.loads(path.read_text("utf-8"))
    for source in (path, str(path), config, json.dumps(config)):
        setup = flags.read(source)
        assert setup.framework == "deepspeed" and setup.precision == "bf16"
        assert setup.knowns == SAID["deepspeed.json"]
    run = training_step(models.llama3_8b, accelerators.h100, **setup.knowns, seq=4096)
    assert run.devices == 32 and run.step_time > 0


def test_what_others_fill_in():
    setup = flags.read({"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}})
    assert setup.notes == ("train_micro_batch_size_per_gpu is left open: give batch",)
    assert setup.knowns == dict(sharding="zero2", dp_overlap=0)


def test_torchtitan():
    setup = flags.read(SCRIPTS / "torchtitan.toml", devices=512)
    assert setup.knowns == SAID["torchtitan.toml"]
    assert any("between none and full" in x for x in setup.notes)
    assert training_step(models.llama3_405b, accelerators.h100.at("bf16"), **setup.knowns).step_time > 0


def test_what_torchtitan_does_where_nothing_is_said():
    """Eight sequences of 2,048 tokens a device, and every second block run again, which is said and no word."""
    setup = flags.read("[parallelism]\ntensor_parallel_degree = 2", devices=16)
    assert setup.knowns == SAID["defaults of torchtitan"] and setup.precision == "bf16"
    [note] = setup.notes
    assert note.startswith("activation_checkpoint.mode selective, since it is not given: ")
    said = flags.read('[activation_checkpoint]\nmode = "none"\n[training]\nlocal_batch_size = 2')
    assert said.knowns["recompute"] == "none" and said.knowns["batch"] == 2 and not said.notes


@each_case("chunks of torchtitan", "layers, each, ends, chunks", globals())
def test_torchtitan_counts_embedding_and_head(layers, each, ends, chunks):
    """As it cuts stages: ceil((layers + first + last) / layers per stage), over the devices of the pipeline."""
    given = dict(pipeline_parallel_degree=4, pipeline_parallel_schedule="Interleaved1F1B")
    given["pipeline_parallel_layers_per_stage"] = each
    if ends:
        given |= dict(zip((f"pipeline_parallel_{x}_stage_less_layers" for x in ("first", "last")), ends, strict=True))
    if chunks:
        assert flags.read({"parallelism": given}, layers=layers).knowns["chunks"] == chunks
    else:
        with pytest.raises(ValueError, match=r"for the ends, no multiple of pp=4$"):
            flags.read({"parallelism": given}, layers=layers)


def test_equal_chunks_are_written_without_ends():
    text = flags.write(dict(pp=4, chunks=4, schedule="interleaved"), "torchtitan", layers=128)
    assert "layers_per_stage = 8" in text and text.count("_stage_less_layers = 0") == 2


def test_nothing_is_executed(tmp_path):
    path = tmp_path / "made"
    flags.read(f"--lr $(touch {path}) --bf16 `touch {path}`")
    assert not path.exists()


WAYS = st.sampled_from([1, 2, 4, 8])
LAYOUT = dict(tp=WAYS, cp=WAYS, pp=WAYS, batch=st.sampled_from([1, 2, 4]), seq=st.sampled_from([4096, 8192]))


@each_case("strategies that flags say", "framework, strategies", globals())
def test_what_is_written_is_read_back(framework, strategies):
    @settings(max_examples=150, deadline=None, derandomize=True, database=None)
    @given(strategies)
    def round_trip(wanted):
        if wanted.get("sharding") not in ("zero3_hpz", "hybrid"):
            wanted.pop("shard_group", None)
        if wanted.get("pp") == 1:
            wanted.pop("chunks", None)
        if framework == "torchtitan" and wanted["sharding"] == "replicated":
            wanted["cp"] = 1  # context ways always shard there
        text = flags.write(wanted, framework=framework)
        assert guess(text) == framework
        back = flags.read(text, framework)
        assert not back.unknown and not back.without
        again = flags.write({**back.knowns, "precision": back.precision}, framework=framework)
        assert flags.read(again, framework).knowns == back.knowns

    round_trip()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("framework", ["megatron", "torchtitan"])
def test_a_schedule_is_written_or_refused(framework, schedule):
    wanted = dict(pp=4, schedule=schedule, **({"chunks": 2} if SCHEDULES[schedule].chunks is None else {}))
    able = dict(megatron=("1f1b", "interleaved"), torchtitan=("1f1b", "interleaved", "gpipe", "zb_v"))[framework]
    if schedule in able:
        assert flags.write(wanted, framework=framework)
    else:
        with pytest.raises(ValueError, match=f"has no flags for schedule='{schedule}'$"):
            flags.write(wanted, framework=framework)


def test_a_strategy_and_a_row():
    assert "--use-distributed-optimizer" in flags.write(Strategy(recompute="full"))
    run = training_step(
        models.llama3_70b, accelerators.h100.at("bf16"), tp=8, pp=4, dp=2, microbatches=16, recompute="full"
    )
    text = flags.write(run, sharding="zero1", recompute="full")
    assert "--tensor-model-parallel-size 8" in text and "--global-batch-size 32" in text


def test_what_a_search_found_and_what_another_says():
    found = search(
        training_step, models.llama3_8b, accelerators.h100.at("bf16"), tables.frameworks.megatron, devices=16,
        global_batch=64, seq=4096, progress=False,
    )  # fmt: skip
    text = flags.write(found.best[0])
    assert "--global-batch-size 64" in text and "--seq-length 4096" in text
    setup = flags.read(text, devices=16)
    again = training_step(models.llama3_8b, accelerators.h100.at("bf16"), setup.row, **setup.knowns)
    assert again.step_time == pytest.approx(found.best[0].step_time, rel=0.02)  # what overlaps is the program's usual
    fsdp = flags.read("--tensor-model-parallel-size 2 --sequence-parallel --use-torch-fsdp2 --bf16")
    other = flags.write(fsdp, "torchtitan", dp_overlap=1)
    assert "tensor_parallel_degree = 2" in other and 'fsdp_reshard_after_forward = "always"' in other
