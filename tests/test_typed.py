"""Quantities as people type them: in Python, in the shell, and in a search mean the same."""

import pytest

from scalebook import accelerators, models, training_step
from scalebook.__main__ import main
from scalebook.inference import serve
from scalebook.language import Row
from scalebook.language.units import parse
from scalebook.shell.named import row, value

from .support import each_case

KNOWN = models.llama3_8b, accelerators.h100


@each_case("quantities as they are typed", "text, unit, number", globals())
def test_what_is_typed_is_understood(text, unit, number):
    assert parse(text, unit) == pytest.approx(number, rel=1e-12)


def test_a_call_and_the_shell_read_alike():
    asked = dict(dp=8, global_batch=64, seq=8192)
    typed, plain = (training_step(*KNOWN, **asked, train_tokens=x) for x in ("15 trillion tokens", 15e12))
    assert typed.train_time == plain.train_time
    assert value(training_step, "train_tokens", "15T") == 15e12 and value(training_step, "seq", "8,192") == 8192


def test_a_device_carries_its_precision():
    device = accelerators["h100@fp8"]
    assert device.peak_flops == accelerators.h100.at("fp8").peak_flops == row("h100@fp8").peak_flops
    assert [*accelerators[["h100@fp8", "mi300x"]]] == ["h100@fp8", "mi300x"]
    asked = ["devices=2", "users=16", "prompt=1000", "output=100"]
    shown = main(["search", "serve", "llama3_8b", "h100@fp8,h200", *asked])
    assert "NVIDIA H100 SXM at fp8" in shown and "NVIDIA H200" in shown


@each_case("arguments that are typed in two ways", "typed, plain", globals())
def test_two_ways_to_type_arguments_have_one_answer(typed, plain):
    assert main(typed) == main(plain)


def test_python_reads_names_in_any_case_as_the_shell_does():
    assert "B200" in accelerators and [*accelerators[["MI300X"]].values()] == [accelerators.mi300x]
    one, other = (serve(*KNOWN, users=8, prompt=1000, output=100, engine=x).tpot for x in ("VLLM", "vllm"))
    step, same = (training_step(*KNOWN, dp=8, global_batch=8, framework=x).step_time for x in ("NeMo", "nemo"))
    assert one == other and step == same


@pytest.mark.parametrize("entry", [serve.capacity, serve.apart, serve.offline], ids=lambda x: x.name)
def test_a_target_is_typed_as_an_upper_limit(entry):
    asked = dict(prompt=1000, output=200) | (dict(devices=8, rate=2) if entry is serve.apart else {})
    answers = (entry(*KNOWN, **asked, tpot=x) for x in (0.03, "<30 ms", "≤ 30 ms"))
    assert len({repr(dict(x) if isinstance(x, Row) else vars(x)) for x in answers}) == 1
    with pytest.raises(ValueError, match="tpot is the most that may be"):
        entry(*KNOWN, **asked, tpot="> 30 ms")
