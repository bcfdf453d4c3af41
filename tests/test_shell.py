"""`python -m scalebook`: everything by its name, and one line on whatever is wrong."""

import doctest
import json
import os
import random
import subprocess
import sys

import pytest

import scalebook
import scalebook.__main__ as shell
from scalebook import accelerators, decoding, models, training_step
from scalebook.__main__ import main
from scalebook.language import NOTATION, Formula, Sheet, show
from scalebook.shell.named import find, parts_of_serve, things, words

from .fuzz import Record
from .support import ROOT, SHEETS, STATED, cases, each_case
from .test_huggingface import CONFIGS

DECODING = ["decoding", "llama3_8b", "h100", "batch=1", "context=8192", "weight_bits=16", "kv_bits=16"]
SERVE = ["serve", "llama3_70b", "h200", "tp=8", "users=64", "prompt=1024", "output=1024"]
STEP = ["training_step", "llama3_70b", "h100", "tp=8", "pp=4", "dp=8", "global_batch=512", "seq=8192"]


def run(*arguments, **more):
    return subprocess.run([sys.executable, "-m", "scalebook", *arguments], text=True, **more)


def refused(arguments, capsys):
    """What is said of arguments that make no sense, or of what fits nowhere: one line, and the exit code."""
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    told = capsys.readouterr()
    assert stopped.value.code in (2, 3) and not told.out and told.err.count("\n") == 1
    return told.err


def test_its_examples():
    """Pytest runs those of all other modules, and skips files of this name."""
    assert doctest.testmod(shell, optionflags=doctest.ELLIPSIS).failed == 0


def test_alone_it_says_what_there_is():
    lines = main([]).splitlines()
    assert len(lines) < 90 and max(map(len, lines)) <= 140
    said = {x.split()[0] for x in lines if " " in x.strip()}
    assert {n for n, x in things().items() if not isinstance(x, Formula)} <= said
    assert main(["--help"]) == main([]) == main(["accelerators", "-h"])
    assert main(["decoding", "h100", "--help"]) == decoding.__doc__ and main(["--version"]).startswith("scalebook 0.")
    assert main(["search", "--help"]) == scalebook.search.__doc__
    assert main(["accelerators", "h100", "h200"]) == f"{accelerators.h100!r}\n\n{accelerators.h200!r}"


@pytest.mark.parametrize("example", [x.split()[3:] for x in shell.EXAMPLES.splitlines()], ids=lambda x: x[0])
def test_the_examples_run(example):
    assert main(example)


def test_a_model_and_a_device_of_ones_own_are_files(tmp_path, capsys):
    config, device = tmp_path / "config.json", tmp_path / "mine.toml"
    config.write_text(json.dumps(CONFIGS["llama3_8b"]), "utf-8")
    device.write_text(
        '[mine]\nname = "Mine"\nsource = "scalebook-measure"\nhbm_bandwidth = "3.35 TB/s"\nhbm_capacity = "80 GB"\n'
        'vendor = "Me"\npeak_bf16 = "1 PFLOP/s"\n',
        "utf-8",
    )
    letters = ["dp=1", "global_batch=1", "seq=128"]
    own = main(["training_step", str(config), "h100", *letters])
    assert own.splitlines()[1:] == main(["training_step", "llama3_8b", "h100", *letters]).splitlines()[1:]
    assert main(["training_step", f"model={config}", str(device), "precision=bf16", *letters])
    assert "give the path of a config.json" in refused(["training_step", str(tmp_path / "no.json"), "h100"], capsys)
    assert "could not be read" in refused(["training_step", "llama3_8b", str(tmp_path / "no.toml")], capsys)
    assert "has no peak at ''" in refused(["training_step", "llama3_8b", "h100", "precision=", *letters], capsys)


def test_the_commands_of_the_readme_are_the_examples():
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert {x.strip() for x in shell.EXAMPLES.splitlines()} <= {*lines}


def test_a_row_and_its_parts():
    told = main([*STEP, "--all"])
    row = training_step(models.llama3_70b, accelerators.h100, tp=8, pp=4, dp=8, global_batch=512, seq=8192)
    assert told.startswith(row.listing)
    parts = told.partition("\nstep_time ")[2].partition("\n\n")[0]
    assert f"{show(row.step_time, 's')}  is the sum of" in parts
    share = f"{100 * row.step_backward / row.step_time:.1f} %"
    assert f"step_backward        {show(row.step_backward, 's')}   {share}" in parts
    assert "cp_exposed" not in parts and "\ntrain_memory " in told


def test_a_sheet_that_does_not_fit_says_so():
    large = [x.replace("8b", "70b") for x in DECODING]
    assert "No value:\n  token_time " in main([*large, "--all"])
    assert main(large).splitlines()[1].startswith("token_time ") and "weight_bits=8 bit would do" in main(large)


def test_an_answer_begins_with_what_was_asked():
    told = main(["serve.offline", "llama3_8b", "h100", "prompt=4096", "output=512", "requests=10000"]).splitlines()
    assert told[0] == "serve.offline: Llama 3.1 8B, NVIDIA H100 SXM at bf16 by default, 1 device" and len(told) <= 12
    assert [x.split()[0] for x in told[1:4]] == ["fits", "makespan", "bound"]


def test_a_formula():
    assert main(["ridge_intensity", "peak_flops=1e15", "hbm_bandwidth=4 TB/s"]).endswith("= 250 FLOP/B")
    assert main(["weight_memory"]).startswith("weight_memory = params*weight_bits/8\nMemory of all the weights")


@pytest.mark.parametrize("name", ["roofline", "sharing", "kv_cache", *random.Random(1).sample(sorted(things()), 20)])
def test_each_can_be_called_by_its_name(name):
    if isinstance(find(name), Sheet | Formula):
        assert 0 < main([name]).count("\n") < 12


def test_every_sheet_and_formula_has_its_name():
    found = {id(x) for x in things().values()}
    above = ("scalebook.calculon", "scalebook.measurements", "scalebook.display", "scalebook.book")
    assert all(id(f) in found for f in STATED if not f.__module__.startswith(above))
    assert all(id(x) in found for x in SHEETS) and find("decoding") is decoding


@each_case("what the shell refuses", "arguments, said", globals())
def test_what_is_wrong_is_said(arguments, said, capsys):
    assert said in refused(arguments, capsys)


def test_as_a_command():
    right, wrong = run(*DECODING, capture_output=True), run("decodin", capture_output=True)
    assert right.returncode == 0 and right.stdout.strip() == main(DECODING) and not right.stderr
    assert wrong.returncode == 2 and not wrong.stdout
    assert wrong.stderr.startswith("nothing to call is named 'decodin'; did you mean 'decoding', '")


def test_it_ends_quietly_when_its_reader_has_gone():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as gone:
        ended = run(*DECODING, stdout=gone, stderr=subprocess.PIPE)
    assert ended.returncode == 1 and ended.stderr == ""


[TEXTS] = cases("odd arguments of the shell", globals()).values()


ROWS_OF = ["llama3_8b", "h100", "h200@fp8", "a100,h100", "nvlink4", *shell.TABLES]
FIRST = [*parts_of_serve(), "serve", "training_step", "rl_step", "decoding"]
VALUES = ["1", "2", "<1", "1e50", "full", "vllm", "none", "1..4", "1,2", "0.5", "8 GB", "x"]


def own_words(rng):
    """A random call in the shell's own words: what is called, rows, and letters and words of it with odd values."""
    name = rng.choice(rng.choice([[*things()], FIRST]))
    letters = [*words(find(name)), *getattr(find(name), "letters", ()), *NOTATION][:40]
    given = [f"{n}={rng.choice(VALUES)}" for n in rng.sample(letters, rng.randint(1, 5))]
    called = ["search"] * (rng.random() < 0.3) + [name, *rng.sample(ROWS_OF, rng.randint(1, 3)), *given]
    return called + rng.sample(["--all", "--json", "--csv"], rng.random() < 0.2)


def strange(rng, record):
    sought = ["search", *DECODING[:3], *DECODING[4:], "batch=1..4", "maximize=batch"]
    known = rng.choice([DECODING, STEP, SERVE, sought, ["weight_memory", "params=7e9"], [rng.choice(TEXTS)]])
    arguments = [x for x in known if rng.random() > 0.1] + rng.sample(TEXTS, rng.choice([0, 1, 1, 2]))
    arguments = own_words(rng) if rng.random() < 0.5 else arguments
    record("main", arguments, lambda: shell._answer(arguments))


def test_no_arguments_give_an_error_from_inside():
    record = Record()
    for seed in range(250):
        strange(random.Random(seed), record)
    record.check(250)
