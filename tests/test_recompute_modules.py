"""Recomputation by module, as Megatron-Core names the modules: what is no longer kept, what it costs, and its flags."""

from functools import partial

import pytest

from scalebook.block import backward, blocks_of
from scalebook.block.transformations import MODULES
from scalebook.flags import read, write
from scalebook.shell.named import value
from scalebook.tables import accelerators, frameworks, models
from scalebook.training import Strategy, training_step

BLOCKS = [
    (key, x) for key in ("gpt3_175b", "llama3_8b", "mixtral_8x7b", "deepseek_v3") for x in blocks_of(models[key]) if x
]
PUBLISHED = "layernorm,mla_up_proj,moe_act"  # DeepSeek-V3 §3.2.3: norms, up-projections of MLA, and SwiGLU's results
RUN = dict(pp=16, ep=64, dp=64, global_batch=15360, seq=4096, schedule="dualpipe", sharding="zero1")


@pytest.mark.parametrize("attention", ["flash", "unfused"])
@pytest.mark.parametrize("module", MODULES)
def test_a_module_keeps_less_and_its_lines_run_again(module, attention):
    for _, block in BLOCKS:
        plain, some, full = (
            Strategy(recompute=x, attention=attention).transformed(block) for x in ("none", module, "full")
        )
        lost = set(plain.saved_tensors) - set(some.saved_tensors)
        again = {op.name for op in backward(some).ops if op.name.endswith("_again")}
        assert bool(again - {op.name for op in backward(plain).ops}) == bool(lost)
        assert set(full.saved_tensors) <= set(some.saved_tensors)
        assert set(some.saved_tensors) - set(plain.saved_tensors) <= {"k_rope"}  # from which a dropped key is made


@pytest.mark.parametrize("model", dict(BLOCKS))
def test_one_more_module_never_holds_more(model):
    """A framework caches activations in 8 bits, and its default may name parts that a model lacks."""
    step = partial(training_step, models[model], accelerators.h800.at("fp8"), frameworks.deepseek, dp=8, seq=4096)
    named = ["none", "selective", *(",".join([*MODULES][: n + 1]) for n in range(len(MODULES))), "full"]
    memory = [step(global_batch=8, recompute=x).memory for x in named]
    assert memory == sorted(memory, reverse=True) and memory[0] == memory[1] == memory[2] > memory[-2] > memory[-1]
    assert memory[-2] < step(global_batch=8).memory < memory[0]


def test_unfused_selective_is_the_attention_core():
    for _, block in BLOCKS:
        both = [Strategy(recompute=x, attention="unfused").transformed(block) for x in ("selective", "core_attn")]
        assert both[0] == both[1]


@pytest.mark.parametrize("device", ["h100", "mi300x"])
def test_modules_lie_between_none_and_full(device):
    runs = {
        x: training_step(models.deepseek_v3, accelerators[device], frameworks.megatron, recompute=x, **RUN)
        for x in ("none", "layernorm", PUBLISHED, "moe,mla_up_proj,layernorm", "full")
    }
    memory = [x.memory for x in runs.values()]
    assert memory == sorted(memory, reverse=True) and len(set(memory)) == 5
    assert runs["none"].again_compute == 0 < runs[PUBLISHED].again_compute < runs["full"].again_compute
    assert runs["none"].step_time < runs["layernorm"].step_time < runs["full"].step_time


def test_deepseek_v3_fits_as_it_was_trained():
    """2,048 H800: its framework caches activations of products in 8 bits, keeps moments in 16, and recomputes some."""
    device = accelerators.h800.at("fp8")
    none, published, full = (
        training_step(models.deepseek_v3, device, frameworks.deepseek, **RUN | dict(dp=128) | said)
        for said in (dict(recompute="none"), {}, dict(recompute="full"))
    )
    assert published.words == {} and "19.9 s" in published.interval("step_time")
    assert full.memory < published.memory < 80e9 < none.memory


def test_names_in_any_order_and_form_mean_the_same():
    said = ["moe_act,layernorm", "layernorm, moe_act", ["layernorm", "moe_act"], ("moe_act", "layernorm")]
    assert {Strategy(recompute=x).recompute for x in said} == {"layernorm,moe_act"}
    assert value(training_step, "recompute", "moe_act,layernorm") == "layernorm,moe_act"


def test_flags_name_modules():
    text = "--recompute-granularity selective --recompute-modules moe_act layernorm --tensor-model-parallel-size 8"
    assert read(text).knowns["recompute"] == "layernorm,moe_act"
    assert "--recompute-modules layernorm moe_act" in (flags := write(dict(tp=8, recompute="moe_act,layernorm")))
    assert read(flags).knowns["recompute"] == "layernorm,moe_act"
    assert read("recompute_granularity: selective\nrecompute_modules: [mlp, moe]").knowns["recompute"] == "mlp,moe"
    said = {"recompute_granularity": "selective", "recompute_modules": ["mlp"]}
    assert read(said, "megatron").knowns["recompute"] == "mlp"
    assert read("--recompute-granularity selective --recompute-modules core_attn").knowns["recompute"] == "selective"
    assert read("--recompute-granularity full --recompute-modules core_attn").knowns["recompute"] == "full"
