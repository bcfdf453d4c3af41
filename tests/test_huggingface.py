"""A config.json gives the shape that models.toml states, letter by letter; a bad one gives one clear error."""

import json
import tomllib
from pathlib import Path

import pytest

import scalebook
from scalebook.language.notation import NOTATION
from scalebook.tables import Table, accelerators, models
from scalebook.tables.huggingface import KINDS, from_config
from scalebook.training.step import training_step

MODELS = tomllib.loads((Path(scalebook.__file__).parent / "tables/models.toml").read_text("utf-8"))


def without(config, *fields):
    return {field: value for field, value in config.items() if field not in fields}


def shape(layers, hidden, heads, ffn, vocab, context, **more):
    """The fields that most configurations share, by the names they share."""
    return {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "intermediate_size": ffn,
        "vocab_size": vocab,
        "max_position_embeddings": context,
        **more,
    }


def deepseek(layers, hidden, heads, ffn, vocab, context, q_rank, experts, top_k, expert_ffn, shared, dense):
    return shape(layers, hidden, heads, ffn, vocab, context, num_key_value_heads=heads) | {
        "q_lora_rank": q_rank,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "n_routed_experts": experts,
        "num_experts_per_tok": top_k,
        "moe_intermediate_size": expert_ffn,
        "n_shared_experts": shared,
        "first_k_dense_replace": dense,
        "moe_layer_freq": 1,
        "tie_word_embeddings": False,
    }


def qwen_experts(experts, top_k, width):
    return {
        "num_experts": experts,
        "num_experts_per_tok": top_k,
        "moe_intermediate_size": width,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "use_sliding_window": False,
        "sliding_window": None,
        "tie_word_embeddings": False,
    }


def gpt_oss(layers, experts):
    return shape(layers, 2880, 64, 2880, 201088, 131072, num_key_value_heads=8, head_dim=64) | {
        "model_type": "gpt_oss",
        "num_local_experts": experts,
        "num_experts_per_tok": 4,
        "sliding_window": 128,
        "layer_types": ["sliding_attention", "full_attention"] * (layers // 2),
        "tie_word_embeddings": False,
    }


def qwen_hybrid(kind, layers, hidden, heads, kv_heads, value_heads, **more):
    """As Qwen3-Next and Qwen3.5 spell them: every fourth block attends in full, the others linearly."""
    return shape(layers, hidden, heads, more.pop("ffn", None), 248320, 262144, num_key_value_heads=kv_heads) | {
        "model_type": kind,
        "head_dim": 256,
        "full_attention_interval": 4,
        "layer_types": [*["linear_attention"] * 3, "full_attention"] * (layers // 4),
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": value_heads,
        "linear_value_head_dim": 128,
        "tie_word_embeddings": False,
        **more,
    }


def gemma3(**text):
    return {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", **text}, "vision_config": {}}


def llama4(experts, step, context):
    """As Meta released the Instruct models: an empty list of no_rope_layers leaves every fourth block without."""
    text = shape(48, 5120, 40, 8192, 202048, context, num_key_value_heads=8, head_dim=128, tie_word_embeddings=False)
    text |= {"model_type": "llama4_text", "intermediate_size_mlp": 16384, "attention_chunk_size": 8192}
    text |= {"num_local_experts": experts, "num_experts_per_tok": 1, "interleave_moe_layer_step": step}
    return {"model_type": "llama4", "text_config": text | {"no_rope_layers": []}, "vision_config": {}}


SCALED = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
CONFIGS = {  # row of models.toml: the configuration its publisher released
    "llama3_8b": shape(32, 4096, 32, 14336, 128256, 131072, num_key_value_heads=8, model_type="llama"),
    "llama2_7b": shape(32, 4096, 32, 11008, 32000, 4096, model_type="llama", tie_word_embeddings=False),
    "mistral_7b": shape(
        32, 4096, 32, 14336, 32000, 32768, num_key_value_heads=8, sliding_window=4096, model_type="mistral"
    ),
    "mixtral_8x7b": shape(32, 4096, 32, 14336, 32000, 32768, num_key_value_heads=8, model_type="mixtral")
    | {"num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": None, "tie_word_embeddings": False},
    "qwen2_5_0_5b": shape(24, 896, 14, 4864, 151936, 32768, num_key_value_heads=2, model_type="qwen2")
    | {"use_sliding_window": False, "sliding_window": 32768, "max_window_layers": 24, "tie_word_embeddings": True},
    "qwen2_5_7b": shape(28, 3584, 28, 18944, 152064, 131072, num_key_value_heads=4, model_type="qwen2")
    | {"use_sliding_window": False, "sliding_window": 131072, "max_window_layers": 28, "tie_word_embeddings": False},
    "qwen3_0_6b": shape(28, 1024, 16, 3072, 151936, 40960, num_key_value_heads=8, head_dim=128, model_type="qwen3")
    | {"use_sliding_window": False, "sliding_window": None, "max_window_layers": 28, "tie_word_embeddings": True},
    "qwen3_30b_a3b": shape(48, 2048, 32, 6144, 151936, 40960, num_key_value_heads=4, head_dim=128)
    | {"model_type": "qwen3_moe", "max_window_layers": 48}
    | qwen_experts(128, 8, 768),
    "gemma2_9b": shape(42, 3584, 16, 14336, 256000, 8192, num_key_value_heads=8, head_dim=256)
    | {"model_type": "gemma2", "sliding_window": 4096, "cache_implementation": "hybrid"},
    "gemma3_1b": shape(26, 1152, 4, 6912, 262144, 32768, num_key_value_heads=1, head_dim=256)
    | {"model_type": "gemma3_text", "sliding_window": 512, "sliding_window_pattern": 6},
    # The nested configurations of Gemma 3 leave out whatever their class would put.
    "gemma3_4b": gemma3(hidden_size=2560, intermediate_size=10240, num_hidden_layers=34, sliding_window=1024),
    "gemma3_27b": gemma3(
        hidden_size=5376,
        intermediate_size=21504,
        num_hidden_layers=62,
        num_attention_heads=32,
        num_key_value_heads=16,
        head_dim=128,
        sliding_window=1024,
    ),
    "gpt2_xl": {
        "model_type": "gpt2",
        "n_layer": 48,
        "n_embd": 1600,
        "n_head": 25,
        "n_ctx": 1024,
        "n_positions": 1024,
        "vocab_size": 50257,
    },
    "gpt_neox_20b": shape(44, 6144, 64, 24576, 50432, 2048, model_type="gpt_neox", tie_word_embeddings=False),
    "opt_6_7b": {
        "model_type": "opt",
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "word_embed_proj_dim": 4096,
        "num_attention_heads": 32,
        "ffn_dim": 16384,
        "vocab_size": 50272,
        "max_position_embeddings": 2048,
    },
    "deepseek_v2_lite": {"model_type": "deepseek_v2"}
    | deepseek(27, 2048, 16, 10944, 102400, 163840, None, 64, 6, 1408, 2, 1),
    "deepseek_v3": {"model_type": "deepseek_v3"}
    | deepseek(61, 7168, 128, 18432, 129280, 163840, 1536, 256, 8, 2048, 1, 3)
    | SCALED,
    "deepseek_v3_2": {"model_type": "deepseek_v32", "index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048}
    | deepseek(61, 7168, 128, 18432, 129280, 163840, 1536, 256, 8, 2048, 1, 3),
    "llama4_scout": llama4(16, 1, 10485760),
    "llama4_maverick": llama4(128, 2, 1048576),
    "kimi_k2": {"model_type": "kimi_k2"}
    | deepseek(61, 7168, 64, 18432, 163840, 131072, 1536, 384, 8, 2048, 1, 1)
    | SCALED,
    "gpt_oss_120b": gpt_oss(36, 128),
    "gpt_oss_20b": gpt_oss(24, 32),
    "glm_5": {"model_type": "glm_moe_dsa", "index_n_heads": 32, "index_head_dim": 128, "index_topk": 2048}
    | deepseek(78, 6144, 64, 12288, 154880, 202752, 2048, 256, 8, 2048, 1, 3)
    | {"qk_nope_head_dim": 192, "v_head_dim": 256, "head_dim": 64},
    "minimax_m2_5": shape(62, 3072, 48, 1536, 200064, 196608, num_key_value_heads=8, head_dim=128)
    | {"model_type": "minimax_m2", "num_local_experts": 256, "num_experts_per_tok": 8, "tie_word_embeddings": False}
    | SCALED
    | {"use_qk_norm": True, "qk_norm_type": "per_layer"},
    "qwen3_5_397b": {
        "model_type": "qwen3_5_moe",
        "text_config": without(
            qwen_hybrid(
                "qwen3_5_moe_text",
                60,
                4096,
                32,
                2,
                64,
                num_experts=512,
                num_experts_per_tok=10,
                moe_intermediate_size=1024,
                shared_expert_intermediate_size=1024,
            ),
            "intermediate_size",
            "tie_word_embeddings",
        ),
        "tie_word_embeddings": False,
        "vision_config": {},
    },
    "falcon_180b": {
        "model_type": "falcon",
        "num_hidden_layers": 80,
        "hidden_size": 14848,
        "num_attention_heads": 232,
        "num_kv_heads": 8,
        "new_decoder_architecture": True,
        "multi_query": True,
        "vocab_size": 65024,
    },
    "gptj_6b": {
        "model_type": "gptj",
        "n_layer": 28,
        "n_embd": 4096,
        "n_head": 16,
        "n_inner": None,
        "n_positions": 2048,
        "vocab_size": 50400,
        "tie_word_embeddings": False,
    },
}
DIFFERS = {  # what the configuration says otherwise than the source of the row, and rightly so
    ("gemma3_4b", "vocab"): 262208,  # 64 entries more, for images
    ("gemma3_27b", "vocab"): 262208,
    ("deepseek_v2_lite", "max_context"): 163840,  # the limit of the positions; the README prints 32K
}
LITERAL = {  # kinds of which models.toml has no row: the letters worth a check
    "phi3": (
        shape(32, 3072, 32, 8192, 32064, 4096, num_key_value_heads=32, sliding_window=2047, model_type="phi3"),
        {"attention": "mha", "head_dim": 96, "window_layers": 32, "window": 2047, "embeddings": 2, "moe_layers": 0},
    ),
    "gemma": (
        shape(18, 2048, 8, 16384, 256000, 8192, num_key_value_heads=1, head_dim=256, model_type="gemma"),
        {"attention": "mqa", "head_dim": 256, "embeddings": 1, "gating": 1, "kv_heads": 1},
    ),
    "qwen2_moe": (
        shape(24, 2048, 16, 5632, 151936, 8192, num_key_value_heads=16, model_type="qwen2_moe")
        | qwen_experts(60, 4, 1408)
        | {"shared_expert_intermediate_size": 5632},
        {
            "moe_layers": 24,
            "experts": 60,
            "top_k": 4,
            "expert_ffn": 1408,
            "shared_experts": 1,
            "shared_ffn": 5632,
            "embeddings": 2,
        },
    ),
    "qwen3_next": (
        qwen_hybrid("qwen3_next", 48, 2048, 16, 2, 32, ffn=5120)
        | qwen_experts(512, 10, 512)
        | {"shared_expert_intermediate_size": 512},
        {
            "linear_layers": 36,
            "linear_value_heads": 32,
            "output_gate": 1,
            "moe_layers": 48,
            "ffn": None,
            "shared_experts": 1,
            "shared_ffn": 512,
        },
    ),
    "qwen3_5_text": (
        qwen_hybrid("qwen3_5_text", 64, 5120, 24, 4, 48, ffn=17408),
        {"linear_layers": 48, "linear_value_heads": 48, "ffn": 17408, "moe_layers": 0, "experts": None},
    ),
}
LLAMA = CONFIGS["llama3_8b"]


@pytest.mark.parametrize("key", CONFIGS)
def test_a_configuration_gives_the_row_of_the_table(key):
    row = {letter: cell["value"] if isinstance(cell, dict) else cell for letter, cell in MODELS[key].items()}
    row = without(row, "source", "params", "active_params", "linear_bits")
    row |= {letter: value for (other, letter), value in DIFFERS.items() if other == key}
    assert from_config(CONFIGS[key], name=row["name"]) == row


@pytest.mark.parametrize("key, letter", DIFFERS)
def test_the_stated_differences_are_differences(key, letter):
    cell = MODELS[key][letter]
    assert DIFFERS[key, letter] != (cell["value"] if isinstance(cell, dict) else cell)


@pytest.mark.parametrize("kind", LITERAL)
def test_a_configuration_of_a_kind_without_a_row(kind):
    config, expected = LITERAL[kind]
    read = from_config(config)
    assert {letter: read.get(letter) for letter in expected} == expected


def test_every_kind_is_tried_and_every_letter_is_in_the_notation():
    tried = {config["model_type"] for config in CONFIGS.values()} | set(LITERAL)
    tried |= {"gemma3_text", "llama4_text", "qwen3_5_moe_text", "qwen3_5"}  # or what they are nested in
    assert tried == set(KINDS)
    for config in [*CONFIGS.values(), *(config for config, _ in LITERAL.values())]:
        assert set(from_config(config)) - {"name", "attention", "norm", "family", "windows"} <= set(NOTATION)


def test_a_path_a_folder_and_a_dict_read_alike(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8")
    assert from_config(path) == from_config(str(path)) == from_config(tmp_path) == from_config(LLAMA)


@pytest.mark.parametrize(
    "key, change, expected",
    [
        ("llama3_8b", {"num_key_value_heads": None}, {"kv_heads": 32, "attention": "mha"}),
        ("llama3_8b", {"tie_word_embeddings": True}, {"embeddings": 1}),
        ("llama3_8b", {"sliding_window": 4096}, {"window": None}),  # transformers ignores it here
        ("llama3_8b", {"head_dim": 64}, {"head_dim": 64}),
        ("mistral_7b", {"sliding_window": None}, {"window": None, "window_layers": None}),
        ("mixtral_8x7b", {"sliding_window": 4096}, {"window": 4096, "window_layers": 32}),
        ("qwen2_5_7b", {"use_sliding_window": True, "max_window_layers": 20}, {"window_layers": 8, "window": 131072}),
        ("gpt2_xl", {"n_inner": 5000}, {"ffn": 5000}),
        ("gpt_oss_20b", {"layer_types": None}, {"window_layers": 12}),
        ("gpt_oss_20b", {"layer_types": ["full_attention"] * 24}, {"window_layers": None}),
        ("qwen2_5_7b", {"layer_types": ["sliding_attention"] * 28}, {"window_layers": None, "window": None}),
        ("qwen3_0_6b", {"layer_types": ["sliding_attention"] * 28, "sliding_window": 64}, {"window_layers": None}),
        (
            "qwen2_5_7b",
            {"layer_types": ["sliding_attention", "full_attention"] * 14, "use_sliding_window": True},
            {"window_layers": 14},
        ),
        ("qwen3_30b_a3b", {"mlp_only_layers": [0, 1]}, {"moe_layers": 46, "ffn": 6144}),
        ("qwen3_30b_a3b", {"decoder_sparse_step": 2}, {"moe_layers": 24, "ffn": 6144}),
        ("qwen3_30b_a3b", {"mlp_only_layers": list(range(48))}, {"moe_layers": 0, "experts": None, "top_k": None}),
        ("deepseek_v3", {"n_shared_experts": None}, {"shared_experts": 0, "shared_ffn": None}),
        ("deepseek_v3", {"moe_layer_freq": 2}, {"moe_layers": 29}),
        ("deepseek_v3", {"first_k_dense_replace": None}, {"moe_layers": 58}),
        ("deepseek_v2_lite", {"first_k_dense_replace": None}, {"moe_layers": 27, "ffn": None}),
        ("glm_5", {"first_k_dense_replace": None}, {"moe_layers": 75}),
        ("glm_5", {"mlp_layer_types": ["dense"] * 4 + ["sparse"] * 74}, {"moe_layers": 74}),
        ("glm_5", {"indexer_types": ["full"] * 78}, {"index_heads": 32}),
        ("falcon_180b", {"new_decoder_architecture": False}, {"kv_heads": 1, "attention": "mqa"}),
        ("falcon_180b", {"new_decoder_architecture": False, "multi_query": False}, {"kv_heads": 232}),
        ("falcon_180b", {"num_kv_heads": None}, {"kv_heads": 232, "attention": "mha"}),
        ("falcon_180b", {"ffn_hidden_size": 5000}, {"ffn": 5000}),
        ("gptj_6b", {"n_inner": 5000}, {"ffn": 5000, "learned_positions": 0}),
    ],
)
def test_a_changed_field_changes_its_letters(key, change, expected):
    read = from_config(CONFIGS[key] | change)
    assert {letter: read.get(letter) for letter in expected} == expected


@pytest.mark.parametrize("change, expected", [
    ({"attention_chunk_size": None}, {"window_layers": None, "window": None}),
    ({"no_rope_layers": None}, {"window_layers": 36}),
    ({"no_rope_layers": None, "no_rope_layer_interval": 2}, {"window_layers": 24}),
    ({"no_rope_layers": [1] * 40 + [0] * 8}, {"window_layers": 40}),
    ({"layer_types": ["chunked_attention"] * 12 + ["full_attention"] * 36}, {"window_layers": 12}),
    ({"moe_layers": [1, 3]}, {"moe_layers": 2, "ffn": 16384}),
    ({"moe_layers": []}, {"moe_layers": 0, "experts": None}),
])  # fmt: skip
def test_a_changed_field_of_llama_4(change, expected):
    config = CONFIGS["llama4_scout"]
    for nested in (config["text_config"] | change, config | {"text_config": config["text_config"] | change}):
        read = from_config(nested)
        assert {letter: read.get(letter) for letter in expected} == expected


@pytest.mark.parametrize("change, expected", [
    ({"layer_types": None}, {"linear_layers": 45}),
    ({"layer_types": None, "full_attention_interval": 2}, {"linear_layers": 30}),
    ({"layer_types": ["full_attention"] * 60}, {"linear_layers": None, "linear_conv": None, "output_gate": 1}),
])  # fmt: skip
def test_a_changed_field_of_qwen_3_5(change, expected):
    config = CONFIGS["qwen3_5_397b"]
    read = from_config(config | {"text_config": config["text_config"] | change})
    assert {letter: read.get(letter) for letter in expected} == expected


@pytest.mark.parametrize("key", CONFIGS)
def test_a_missing_field_is_named_or_stood_in_for(key):
    """No field can go missing and leave another shape behind without a word, except by a default of transformers."""
    config = CONFIGS[key]
    nested = config.get("text_config", config)
    stands_in = {"num_attention_heads", "num_key_value_heads", "head_dim", "sliding_window", "layer_types", "n_inner"}
    stands_in |= {"attention_chunk_size", "interleave_moe_layer_step"}  # of Llama 4
    stands_in |= {"tie_word_embeddings", "first_k_dense_replace", "max_window_layers", "use_sliding_window"}
    stands_in |= {"num_kv_heads", "new_decoder_architecture", "multi_query", "full_attention_interval"}
    stands_in |= {"quantization_config", "use_qk_norm", "qk_norm_type"}  # a checkpoint in 16 bits; norms of heads
    stands_in |= {"vocab_size", "max_position_embeddings"} if nested["model_type"] == "gemma3_text" else set()
    for field in nested:
        fewer = without(nested, field)
        try:
            read = from_config(config | {"text_config": fewer} if "text_config" in config else fewer)
        except ValueError as error:
            said = str(error)
            assert (repr(field) in said and "needs the field" in said) or "8 heads" in said  # the class puts 8
        else:
            assert field in stands_in or without(read, "name") == without(from_config(config), "name"), field


@pytest.mark.parametrize(
    "text, message", [(None, "cannot read"), ("{'a': 1}", "is not JSON"), ("[1]", "holds a list"), ("\xff", "not JSON")]
)
def test_a_bad_file_gives_one_clear_error(tmp_path, text, message):
    path = tmp_path / "config.json"
    if text is not None:
        path.write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=message) as caught:
        from_config(path)
    assert "config.json" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("config", [None, 5, [LLAMA], b"config.json", (("model_type", "llama"),)])
def test_what_is_neither_path_nor_dict(config):
    with pytest.raises(TypeError, match=f"given as a path or a dict, not as {type(config).__name__}$"):
        from_config(config)


@pytest.mark.parametrize("text, message", [
    (json.dumps(LLAMA), "give a path or a dict"), ("x" * 5000, "cannot read"), ("\0", "config.json"),
    ("", "config.json"),
])  # fmt: skip
def test_a_text_that_is_no_path(text, message):
    with pytest.raises(ValueError, match=message):
        from_config(text)


def test_a_configuration_is_a_row_of_a_table():
    """Its cells cite no source of the tables, and are shown all the same."""
    mine = models.read(LLAMA, name="mine")
    page = Table("mine", {"mine": mine})._repr_html_()
    assert '<td title="config.json" data-value="32.0">32</td>' in page and page.count("<td") == len(mine)
    assert "[mine: config.json]" in repr(mine.why("layers")) and "config.json" in mine._repr_html_()


def test_what_is_read_is_priced_like_a_row_of_the_table(tmp_path):
    """By the path of the file, of its folder, and as a dict:
    the same step as of the stated model, whose shape it is.
    """
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["llama3_8b"] | {"tie_word_embeddings": False}))
    given = dict(tp=2, dp=4, global_batch=64, seq=8192)
    stated = training_step(models.llama3_8b, accelerators.h100, **given)
    for config in (
        tmp_path,
        tmp_path / "config.json",
        str(tmp_path),
        json.loads((tmp_path / "config.json").read_text()),
    ):
        mine = models.read(config, name="mine")
        assert mine.name == "mine"
        assert training_step(mine, accelerators.h100, **given).step_time == stated.step_time


def test_the_table_says_what_is_wrong_with_a_configuration(tmp_path):
    with pytest.raises(ValueError, match=r"cannot read .*none\.json"):
        models.read(tmp_path / "none.json")
    with pytest.raises(TypeError, match="given as a path or a dict, not as int"):
        models.read(5)
