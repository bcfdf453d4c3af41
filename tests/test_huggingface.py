"""A config.json gives the shape that models.toml states, letter by letter; a bad one gives one clear error."""

import json

import pytest

from scalebook.language.notation import NOTATION
from scalebook.tables import Table, models
from scalebook.tables.huggingface import TYPES, from_config

from .support import ROOT, each_case
from .test_block import MODELS

# By row of models.toml the configuration that its publisher released; and kinds that have no row, with their letters.
# The nested configurations of Gemma 3 leave out whatever their class would put.
GIVEN = json.loads((ROOT / "tests" / "configs.json").read_text("utf-8"))
CONFIGS, LITERAL = GIVEN["published"], GIVEN["of no row"]
LLAMA = CONFIGS["llama3_8b"]
DIFFERS = {  # what the configuration says otherwise than the source of the row, and rightly so
    ("gemma3_4b", "vocab"): 262208,  # 64 entries more, for images
    ("gemma3_27b", "vocab"): 262208,
    ("deepseek_v2_lite", "max_context"): 163840,  # the limit of the positions; the README prints 32K
}


def without(config, *fields):
    return {field: value for field, value in config.items() if field not in fields}


@pytest.mark.parametrize("key", CONFIGS)
def test_a_configuration_gives_the_row_of_the_table(key):
    row = without(MODELS[key], "source", "params", "active_params", "linear_bits")
    differs = {letter: value for (other, letter), value in DIFFERS.items() if other == key}
    assert all(row[letter] != value for letter, value in differs.items()), "a stated difference is none"
    assert from_config(CONFIGS[key], name=row["name"]) == row | differs


@pytest.mark.parametrize("kind", LITERAL)
def test_a_configuration_of_a_kind_without_a_row(kind):
    read = from_config(LITERAL[kind]["config"])
    assert {letter: read.get(letter) for letter in LITERAL[kind]["letters"]} == LITERAL[kind]["letters"]


def test_every_kind_is_tried_and_every_letter_is_in_the_notation():
    configs = [*CONFIGS.values(), *(x["config"] for x in LITERAL.values())]
    tried = {x["model_type"] for x in configs}
    tried |= {"gemma3_text", "llama4_text", "qwen3_5_moe_text", "qwen3_5"}  # or what they are nested in
    assert tried <= set(TYPES)  # the others are in test_configurations.py
    for config in configs:
        assert set(from_config(config)) - {"name", "attention", "norm", "family", "windows"} <= set(NOTATION)


def test_a_path_a_folder_and_a_dict_read_alike(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8")
    assert from_config(path) == from_config(str(path)) == from_config(tmp_path) == from_config(LLAMA)


@each_case("a changed field of a configuration", "key, change, expected", globals())
def test_a_changed_field_changes_its_letters(key, change, expected):
    """Also in the text's part of a configuration, alone or nested."""
    config = CONFIGS[key]
    inner = config.get("text_config", config) | change
    for given in (inner, config | {"text_config": inner}) if "text_config" in config else (inner,):
        read = from_config(given)
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


@each_case("files that are no configuration", "text, message", globals())
def test_a_bad_file_gives_one_clear_error(tmp_path, text, message):
    path = tmp_path / "config.json"
    if text is not None:
        path.write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=message) as caught:
        from_config(path)
    assert "config.json" in str(caught.value) and "\n" not in str(caught.value)


def test_a_configuration_is_a_row_of_a_table():
    """Its cells cite no source of the tables, and are shown all the same."""
    mine = models.read(LLAMA, name="mine")
    page = Table("mine", {"mine": mine})._repr_html_()
    assert '<td title="config.json" data-value="32.0">32</td>' in page and page.count("<td") == len(mine)
    assert "[mine: config.json]" in repr(mine.why("layers")) and "config.json" in mine._repr_html_()
