"""Quantities as people type them: in Python, in the shell, and in a search mean the same."""

import pytest

from scalebook import accelerators, models, training_step
from scalebook.__main__ import main
from scalebook.language.units import parse
from scalebook.shell.named import row, value

TYPED = [
    ("15T", "token", 15e12), ("15 trillion", "token", 15e12), ("15 trillion tokens", "token", 15e12),
    ("15T tokens", "token", 15e12), ("1.2e13", "token", 12e12), ("1,024 tokens", "token", 1024), ("1,024", "", 1024),
    ("8B", "", 8e9), ("70 billion", "", 70e9), ("12,345,678", "", 12345678), ("10 days", "s", 864000),
    ("10 days", "h", 240), ("90 min", "s", 5400), ("1 week", "s", 604800), ("30 ms", "s", 0.03), ("$2/h", "$/h", 2),
    ("$2.50 per hour", "$/h", 2.5), ("2 $/hour", "$/h", 2), ("$5 million", "$", 5e6), ("$30,000", "$", 30000),
    ("80 GB", "B", 80e9), ("989 TFLOPS", "FLOP/s", 989e12), ("3.8e25 FLOPs", "FLOP", 3.8e25), ("16 bits", "bit", 16),
    ("5 million tokens/s", "token/s", 5e6), ("200 requests/s", "request/s", 200), ("4 t", "t", 4),
]  # fmt: skip


@pytest.mark.parametrize(("text", "unit", "number"), TYPED)
def test_what_is_typed_is_understood(text, unit, number):
    assert parse(text, unit) == pytest.approx(number, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "unit"),
    [("80", "B"), ("1,024", "B"), ("10 days", "B"), ("15Q", "token"), ("8 TB", ""), ("12,34", ""), ("$", "$"), ("", ""),
     ("5 kGB", "B"), ("3 lightyears", "s"), ("nan", ""), ("inf", "token"), ("trillion", "token")],
)  # fmt: skip
def test_what_is_no_such_quantity_is_refused(text, unit):
    with pytest.raises(ValueError, match=r"is not a (plain )?number"):
        parse(text, unit)


def test_a_call_and_the_shell_read_alike():
    asked = dict(dp=8, global_batch=64, seq=8192)
    typed = training_step(models.llama3_8b, accelerators.h100, **asked, train_tokens="15 trillion tokens")
    assert (
        typed.train_time == training_step(models.llama3_8b, accelerators.h100, **asked, train_tokens=15e12).train_time
    )
    assert value(training_step, "train_tokens", "15T") == 15e12 and value(training_step, "seq", "8,192") == 8192


def test_a_device_carries_its_precision():
    device = accelerators["h100@fp8"]
    assert device.peak_flops == accelerators.h100.at("fp8").peak_flops == row("h100@fp8").peak_flops
    assert [*accelerators[["h100@fp8", "mi300x"]]] == ["h100@fp8", "mi300x"]
    asked = ["devices=2", "users=16", "prompt=1000", "output=100"]
    shown = main(["search", "serve", "llama3_8b", "h100@fp8,h200", *asked])
    assert "NVIDIA H100 SXM at fp8" in shown and "NVIDIA H200" in shown
    for wrong, near in (("h100@fp9", "fp8"), ("h1000@fp8", "did you mean"), ("llama3_8b@fp8", "llama3_8b")):
        with pytest.raises(LookupError, match=near):
            row(wrong)
