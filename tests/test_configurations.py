"""Configurations that nobody here wrote are read, and counted as PyTorch counts what transformers builds from them."""

import gzip
import itertools
import json
import random

import numpy as np
import pytest

from scalebook import accelerators, calculator, models, training_step
from scalebook.block import counts, reaching
from scalebook.inference import decoding, serve
from scalebook.language import NOTATION
from scalebook.memory import context_costs, kv_cache
from scalebook.tables.huggingface import NOT_DECODERS, TYPES, read_config
from scalebook.training import memory_sheet

from .support import ROOT, cases, csv_rows, each_case

# Made by tools/configurations.py.
with gzip.open(ROOT / "tests" / "configurations.jsonl.gz", "rt", encoding="utf-8") as lines:
    ROWS = {x["name"]: x for x in map(json.loads, lines)}
UNMET = {(x["name"], x["quantity"]): x["reason"] for x in csv_rows("configurations_unmet.csv")}
H200 = accelerators.h200.at("fp8")
LIMITS = {"params": 0.003, "flops": 0.02, "cache": 0.01}
DECODERS = [x for x in ROWS if ROWS[x]["config"]["model_type"] not in NOT_DECODERS]


def counted(row, tokens):
    """Parameters, FLOPs of a forward pass, and elements of the cache and of the state after it, by the package."""
    width = {"linear_bits": 8} if "linear_state" in row else {}
    cache = kv_cache(row, batch=1, context=tokens, kv_bits=8, **width) if "kv_width" in row else 0
    return {"params": row.params, "flops": counts(row, tokens)["flops"], "cache": cache}


@pytest.mark.parametrize("name", DECODERS)
def test_a_configuration_is_counted_as_transformers_builds_it(name):
    """A quantity beyond its limit has a reason in configurations_unmet.csv, and none within it has."""
    said = ROWS[name]
    row = models.read(said["config"])
    for there in (said, said.get("shorter", {})):  # the same at another length
        own = counted(row, there.get("tokens", 1024))
        for quantity, limit in LIMITS.items():
            if quantity in there:
                is_met = own[quantity] == pytest.approx(there[quantity], rel=limit)
                unmet = (name, quantity) in UNMET or (there is not said and (name, f"shorter {quantity}") in UNMET)
                assert is_met != unmet or (unmet and there is not said), (quantity, own[quantity], there[quantity])


def check_prices(row, tokens):
    """A step, a service and a step of decoding have finite values, and the step has the FLOPs of the reader's count."""
    step, long = (training_step(row, H200, dp=8, global_batch=8, seq=x) for x in (tokens, 2**17))
    served = serve(row, H200, hbm_capacity="10 PB", users=64, prompt=1000, output=200)
    decoded = decoding(row, H200, hbm_capacity="10 PB", batch=1, context=1000, weight_bits=8, kv_bits=8)
    assert step.model_flops / 3 / 8 <= 1.02 * counts(row, tokens)["flops"]  # of which some are outside of windows
    assert step.model_flops / 3 / 8 >= (0.94 if row.get("window_layers") else 0.98) * counts(row, tokens)["flops"]
    assert step.weight_memory == pytest.approx(2 * counts(row)["params"], rel=0.02)
    values = (step.step_time, step.mfu, step.memory, served.tpot, served.ttft, served.max_users, decoded.token_time)
    assert np.isfinite(values).all() and min(values) > 0 and long.hfu < 1
    shown = calculator(kv_cache, model=row, batch=1, context=[1100], kv_bits=8).values["kv_cache"]
    assert shown == pytest.approx(kv_cache(row, batch=1, context=1100, kv_bits=8)) and memory_sheet(row).formulas
    if not row.get("window_layers") and not row.get("index_heads"):
        assert shown == pytest.approx(1100 * served.token_cache + served.get("sequence_state", 0))


@pytest.mark.parametrize("name", DECODERS[::8])
def test_a_configuration_that_is_read_has_a_step_a_service_and_a_decoding(name):
    check_prices(models.read(ROWS[name]["config"]), 512)


@pytest.mark.parametrize("key", [x for x in models if "embeddings" in models[x] and not x.startswith("poster")])
def test_a_row_of_the_table_has_a_step_a_service_and_a_decoding(key):
    check_prices(models[key], 512)


@pytest.mark.parametrize("name", [x for x in ROWS if x not in DECODERS])
def test_what_is_no_decoder_is_refused_in_a_sentence(name):
    config = ROWS[name]["config"]
    with pytest.raises(ValueError, match=NOT_DECODERS[config["model_type"]]) as caught:
        models.read(config)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200


# A row of the table by what it was read from: the name of a configuration, and fields that its publisher changed.
STATED = cases("rows by their configurations", globals())


@pytest.mark.parametrize("key", STATED)
def test_a_row_of_the_table_is_what_its_configuration_says(key):
    """The configuration states neither published parameters nor the precision of a state."""
    name, changed = STATED[key]
    config = {x: y for x, y in (ROWS[name]["config"] | changed).items() if y is not None}
    row, read = models[key], models.read(config)
    assert row.words == read.words
    apart = ("params", "active_params", "linear_bits")
    assert {x: read[x] for x in read if x not in apart} == {x: row[x] for x in row if x not in apart}


@each_case("parameters that publishers print", "key, total, active", globals())
def test_parameters_are_those_that_the_publisher_prints(key, total, active):
    """Publishers round, and leave one embedding or both out of the active parameters, or none."""
    row = models[key]
    counted, ends = counts(row), row.vocab * row.hidden
    assert counted["params"] == pytest.approx(total, rel=0.02)
    assert any(counted["active_params"] - n * ends == pytest.approx(active, rel=0.05) for n in (0, 1, 2))


def test_a_compressed_cache_grows_with_the_context():
    """DeepSeek-V4 Pro: each layer keeps 128 tokens; an entry of 128 or of 4 tokens has 512 values, an indexer's 128."""
    row, context = models.read(ROWS["deepseek-ai/DeepSeek-V4-Pro"]["config"]), 2**20
    kept = 61 * 128 * 512 + 31 * context / 128 * 512 + 30 * context / 4 * (512 + 128)
    assert kv_cache(row, batch=1, context=context, kv_bits=8) == pytest.approx(kept)


def test_what_is_unmet_is_a_row_with_a_reason():
    assert {name for name, _ in UNMET} <= set(ROWS) and all(len(x) > 20 for x in UNMET.values())


def test_what_was_left_out_is_said():
    for name, part in {"gemma3": "vision_config", "moss_transcribe_diarize": "audio_config"}.items():
        assert part in models.read(ROWS[name]["config"]).cells["params"].note
    assert read_config(ROWS["longcat_flash"]["config"])[1] == "without its experts that compute nothing"


def test_an_encoder_adds_its_tokens_and_its_arithmetic_to_a_prompt():
    """Fields of Qwen3-VL 8B. None leaves every digit; more make prompts longer to read and caches larger."""
    vision = dict(depth=27, hidden_size=1152, intermediate_size=4304, num_heads=16, spatial_merge_size=2)
    row = models.read(ROWS["Qwen/Qwen3-VL-8B-Instruct"]["config"] | {"vision_config": vision})
    assert row.encoder_params == 27 * 1152 * (4 * 1152 + 2 * 4304) and row.encoder_merge == 4
    assert "vision_config of 4.11e+08 parameters" in row.cells["params"].note

    def served(**more):
        return serve(row, H200, engine="vllm", users=16, prompt=1000, output=200, **more)

    text, *seen = served(), *(served(encoder_tokens=x) for x in (0, 64, 256, 1024, 4096))
    assert {x: seen[0][x] for x in text} == dict(text)
    assert all(a.ttft < b.ttft and a.tpot < b.tpot and a.max_users > b.max_users for a, b in itertools.pairwise(seen))
    longer = serve(row, H200, engine="vllm", users=16, prompt=2024, output=200)
    assert seen[3].mixed_time == pytest.approx(longer.mixed_time + seen[3].encoder_time)


def test_an_unknown_type_is_read_by_its_keys_and_says_so():
    config = ROWS["llama"]["config"]
    row = models.read(config | {"model_type": "llama7", "window_of_thought": 8})
    assert row.params == models.read(config).params
    note = row.cells["params"].note
    assert "'llama7' is not known" in note and "window_of_thought" in note and "like=" in note
    assert "not known" not in models.read(config | {"model_type": "llama7"}, like="llama").cells["params"].note


@pytest.mark.parametrize("name", DECODERS[::2])
def test_a_wrong_configuration_gives_one_sentence(name):
    """A field is missing, or of another kind."""
    config, rng = ROWS[name]["config"], random.Random(name)
    wrong = [(x, y) for x in config for y in (None, -1, "many", [1, 2], {"a": 1}, 10**18)]
    for field, other in rng.sample(wrong, 12):
        broken = {x: y for x, y in config.items() if x != field} | ({} if other is None else {field: other})
        try:
            models.read(broken)
        except (ValueError, TypeError) as error:
            assert "\n" not in str(error) and len(str(error)) < 3000, (field, other)


def test_a_stanza_has_letters_conditions_and_words_alone():
    keys = {"norm", "family", "windows", "slides", "linear", "attends", "feeds", "routes", "attention", "state", "feed"}
    keys |= {"routed", "also", "once", "without", "same"}
    assert {x for kind in TYPES.values() for x in kind} - set(NOTATION) <= keys


@pytest.mark.parametrize("key", [*STATED, "llama3_8b", "deepseek_v3_2", "gpt_oss_120b", "qwen3_5_397b"])
def test_what_a_token_costs_at_a_context(key):
    """Its FLOPs are those of a pass over one token, its memory the cache and the states; it reads no more than that."""
    row, million = models[key], dict(context=2**20, kv_bits=16)
    costs = context_costs(reaching(row), million)
    first = context_costs(reaching(row), context=1, kv_bits=16).token_flops
    assert first == pytest.approx(counts(row)["flops"], rel=0.015)  # used parameters are rounded
    state = 4 * row.get("linear_state", 0)
    kept = kv_cache(row, batch=1, **million)  # with the states
    assert costs.context_memory == pytest.approx(kept) and costs.context_reads <= kept + state + 1


def test_a_million_tokens_cost_what_their_publishers_say():
    """DeepSeek-V4 against V3.2: 27 % of the FLOPs of a token and 10 % of the cache; GLM-5.2 against GLM-5: a 2.9th."""
    pro, old, glm, shared = (
        context_costs(reaching(models[x]), context=2**20, kv_bits=16)
        for x in ("deepseek_v4_pro", "deepseek_v3_2", "glm_5", "glm_5_2")
    )
    assert pro.token_flops / old.token_flops == pytest.approx(0.27, abs=0.015)
    assert pro.context_memory / old.context_memory == pytest.approx(0.10, abs=0.015)
    assert glm.token_flops / shared.token_flops == pytest.approx(2.9, rel=0.06)
