"""Read the shape of a model from its Hugging Face config.json, under the names of this package.

Each `model_type` is one entry of KINDS. It says which field holds which quantity, and which default transformers 4.57
(5 for GLM-5 and Qwen3.5) uses if the field is missing.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from scalebook.language.notation import brief, nearest, quoted

__all__ = ["KINDS", "Kind", "from_config"]

MOST, MOST_BLOCKS = 10**15, 100_000  # far more than any model has; blocks are visited one by one
_BLOCKS = ("num_hidden_layers", "n_layer")
_EXPERT_LETTERS = ["experts", "top_k", "expert_ffn", "shared_experts", "shared_ffn"]


@dataclass(frozen=True)
class Kind:
    """How the configurations of one `model_type` state a model: a rule for each of our quantities.

    A rule is a number; the name of a required field; a field and its default if it is missing or null (a number or
    another quantity); or a function of the configuration and the quantities read before.
    """

    letters: dict[str, int | str | tuple | Callable]
    norm: str = "rmsnorm"
    tied: bool = False  # default of tie_word_embeddings
    window: int | None = None  # default of window_field
    window_field: str = "sliding_window"
    slides: Callable | None = None  # (config, block): does the block attend within the window?
    routes: Callable | None = None  # (config, block): is its feed-forward a mixture of experts?
    linear: Callable | None = None  # (config, block): is its attention linear?
    family: str = ""  # whose published code its blocks follow, if not Llama's


def from_config(config: Mapping | str | PathLike, name: str | None = None) -> dict:
    """Read the shape of a model from a config.json as a dict: options (attention, norm) and numbers (layers, heads).

    `config` is the path of the file or of its folder, or the parsed dict. If the language model is nested under
    `text_config`, that part is read. Numbers that do not apply are left out, as in models.toml, and so is `params`,
    which no configuration states.

    Raises TypeError for anything but a path or a dict. Raises ValueError for a missing file, one that is not JSON, an
    unknown `model_type`, a field that is missing or of the wrong type, and counts that do not fit together.

    >>> gpt2 = dict(model_type="gpt2", n_layer=12, n_embd=768, n_head=12, vocab_size=50257, n_positions=1024)
    >>> from_config(gpt2)["ffn"]
    3072
    """
    config = _language_model(config if isinstance(config, Mapping) else _load(config))
    kind, letters = KINDS[config["model_type"]], {}
    for letter, rule in kind.letters.items():
        letters[letter] = _read(config, rule, letters)

    letters["embeddings"] = 1 if _typed(config, "tie_word_embeddings", bool, kind.tied) else 2
    if "learned_positions" in letters:  # behind the embeddings, as in models.toml, so that sheets list both rows alike
        letters["learned_positions"] = letters.pop("learned_positions")

    blocks = range(letters["layers"])
    windowed = kind.slides and config.get(kind.window_field, kind.window) is not None
    if windowed and (sliding := sum(kind.slides(config, block) for block in blocks)):
        letters |= {"window_layers": sliding, "window": _count(config, kind.window_field, kind.window)}

    if kind.linear:
        letters["linear_layers"] = sum(kind.linear(config, block) for block in blocks)
    letters["moe_layers"] = sum(kind.routes(config, block) for block in blocks) if kind.routes else 0
    letters.setdefault("shared_experts", 0)
    letters |= _scaled(config)
    _refuse(config["model_type"], letters)
    unused = {"ffn"} if letters["moe_layers"] == len(blocks) else set()
    unused |= set() if letters["moe_layers"] else set(_EXPERT_LETTERS)
    unused |= set() if letters["shared_experts"] else {"shared_ffn"}
    unused |= set() if letters.get("linear_layers") else {x for x in letters if x.startswith("linear_")}
    words = {"name": name or config["model_type"], "attention": _attention(letters), "norm": kind.norm}
    words |= {"family": kind.family} if kind.family else {}
    words |= {"windows": "chunked"} if "window" in letters and kind.window_field == "attention_chunk_size" else {}
    return words | {letter: value for letter, value in letters.items() if letter not in unused}


def _scaled(config: Mapping) -> dict[str, int]:
    """Return letters for inputs that share a scale in 8-bit checkpoints, and for query-key norms over all heads."""
    found = {}
    scales = _typed(config, "quantization_config", dict, {})
    if sizes := _typed(scales, "weight_block_size", list, None):
        found["scale_block"] = _count(config | {"weight_block_size": sizes[-1]}, "weight_block_size")
    if _typed(config, "use_qk_norm", bool, False) and config.get("qk_norm_type") == "per_layer":
        found["norm_sums"] = 1
    return found


def _refuse(kind: str, letters: Mapping) -> None:
    heads, kv_heads = letters["heads"], letters.get("kv_heads", 1)
    if heads % kv_heads:
        raise ValueError(f"the {kv_heads} key-value heads of model_type {kind!r} do not divide its {heads} heads")
    if letters["moe_layers"] and letters["experts"] < letters["top_k"]:
        raise ValueError(f"{letters['experts']} experts of model_type {kind!r} are fewer than a token visits")


def _load(config) -> Mapping:
    if not isinstance(config, (str, PathLike)):
        raise TypeError(f"a configuration is given as a path or a dict, not as {type(config).__name__}")
    if isinstance(config, str) and config.lstrip().startswith(("{", "[")):
        raise ValueError("this is the text of a configuration: give a path or a dict, as json.loads makes of it")
    path = Path(config)
    try:
        path = path / "config.json" if path.is_dir() else path
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"cannot read {quoted(str(path))}: give the path of a config.json or of its folder") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{quoted(str(path))} is not JSON, as a Hugging Face config.json is: {brief(error)}") from None
    if not isinstance(config, Mapping):
        raise ValueError(f"'{path}' holds a {type(config).__name__}, but a config.json holds an object of fields")
    return config


def _language_model(config: Mapping) -> dict:
    config = {**config, **_typed(config, "text_config", dict, {})}
    if not isinstance(kind := config.get("model_type"), str):
        raise ValueError(f"a configuration needs the field 'model_type'; known are: {', '.join(sorted(KINDS))}")
    if kind not in KINDS:
        raise ValueError(f"model_type {quoted(kind)} is not one that can be read; {nearest(kind, KINDS)}")
    return config


def _count(config: Mapping, field: str, default: int | None = None, least: int = 1) -> int:
    value = config.get(field)
    if value is None:
        if default is None:
            raise ValueError(f"a configuration of model_type {config['model_type']!r} needs the field {field!r}")
        return default
    most, where = MOST_BLOCKS if field in _BLOCKS else MOST, f"{field!r} of model_type {config['model_type']!r}"
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{where} must be a whole number, {least} or more; it is {quoted(value)}")
    if value > most:
        raise ValueError(f"{where} is read up to {most:,}; it is {quoted(value)}")
    return value


def _typed(config: Mapping, field: str, kind: type, default):
    if (value := config.get(field)) is None:
        return default
    if not isinstance(value, kind):
        wanted = {bool: "true or false", list: "a list", dict: "an object of fields"}[kind]
        raise ValueError(f"{field!r} must be {wanted}; it is {quoted(value)}")
    return value


def _read(config: Mapping, rule, letters: dict) -> int:
    if callable(rule):
        return rule(config, letters)
    if isinstance(rule, int):
        return rule
    field, default = rule if isinstance(rule, tuple) else (rule, None)
    return _count(config, field, letters[default] if isinstance(default, str) else default)


def _attention(letters: Mapping) -> str:
    if "kv_rank" in letters:
        return "mla"
    return {letters["heads"]: "mha", 1: "mqa"}.get(letters["kv_heads"], "gqa")


# Rules that use more than one field.


def _head_dim(config, letters):
    hidden, heads = letters["hidden"], letters["heads"]
    if config.get("head_dim") is None and hidden % heads:
        said = f"a configuration of model_type {config['model_type']!r} needs the field 'head_dim' here"
        raise ValueError(f"{said}: its {heads} heads do not divide its hidden size, {hidden}")
    return _count(config, "head_dim", hidden // heads)


def _null_is_none(field):
    # Only null disables these; for a missing field transformers uses a default number.
    return lambda config, letters: 0 if config.get(field, 1) is None else _count(config, field, least=0)


def _same(letter):
    return lambda config, letters: letters[letter]


def _or_times(field, factor, letter):
    return lambda config, letters: _count(config, field, factor * letters[letter])


def _plus(field, more):
    return lambda config, letters: _count(config, field) + more


def _unprojected_vocab(config, letters):
    if _count(config, "word_embed_proj_dim", letters["hidden"]) != letters["hidden"]:
        raise ValueError("an 'opt' configuration whose word_embed_proj_dim is not hidden_size has no letters here")
    return _count(config, "vocab_size")


def _falcon_kv_heads(config, letters):
    # The new decoder gives the number of key-value heads; the old one has one, or as many as heads.
    if _typed(config, "new_decoder_architecture", bool, False):
        return _count(config, "num_kv_heads", letters["heads"])
    return 1 if _typed(config, "multi_query", bool, True) else letters["heads"]


def _own_indexers(config, letters):
    if "shared" in _typed(config, "indexer_types", list, []):
        raise ValueError(f"a {config['model_type']!r} configuration whose blocks share indexers has no letters here")
    return _count(config, "index_n_heads")


# Blocks with a sliding window.


def _every(config, block):
    return True


def _when_used(slides):
    # transformers ignores the window if use_sliding_window is false, whatever layer_types says.
    return lambda config, block: _typed(config, "use_sliding_window", bool, False) and slides(config, block)


def _upper(config, block):
    return block >= _count(config, "max_window_layers", 28, least=0)


def _even(config, block):
    return block % 2 == 0


def _all_but(field: str, default: int):
    """Return a rule for all blocks except each n-th, where `field` gives n (`default` if it is missing)."""
    return lambda config, block: (block + 1) % _count(config, field, default) != 0


def _listed(otherwise, local="sliding_attention", full="full_attention", field="layer_types"):
    """Return a rule that follows a field's list of layer types, if there is such a list."""

    def slides(config, block):
        if not (types := _typed(config, field, list, [])):
            return otherwise(config, block)
        if len(types) != config["num_hidden_layers"] or any(x not in (local, full) for x in types):
            said = f"{field!r} of model_type {config['model_type']!r} must call each of its"
            raise ValueError(f"{said} {config['num_hidden_layers']} blocks {local!r} or {full!r}")
        return types[block] == local

    return slides


# Blocks with a mixture of experts.


def _after_dense(first: int):
    def routes(config, block):
        dense = _count(config, "first_k_dense_replace", first, least=0)
        return block >= dense and block % _count(config, "moe_layer_freq", 1) == 0

    return routes


def _sparse_step(config, block):
    dense = _typed(config, "mlp_only_layers", list, [])
    return block not in dense and (block + 1) % _count(config, "decoder_sparse_step", 1) == 0


def _interleaved(config, block):
    if (routed := _typed(config, "moe_layers", list, None)) is not None:
        return block in routed
    return (block + 1) % _count(config, "interleave_moe_layer_step", 1) == 0


_LLAMA = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "kv_heads": ("num_key_value_heads", "heads"),
    "head_dim": _head_dim,
    "ffn": "intermediate_size",
    "gating": 1,
    "vocab": "vocab_size",
    "learned_positions": 0,
    "max_context": "max_position_embeddings",
}
# For these classes a missing num_key_value_heads has a default of its own, not the number of heads.
_MISTRAL = _LLAMA | {"kv_heads": "num_key_value_heads"}
_GEMMA = _MISTRAL | {"head_dim": "head_dim"}
_GEMMA3 = _LLAMA | {
    "heads": ("num_attention_heads", 8),
    "kv_heads": ("num_key_value_heads", 4),
    "head_dim": ("head_dim", 256),
    "vocab": ("vocab_size", 262208),
    "max_context": ("max_position_embeddings", 131072),
}
_NEOX = _LLAMA | {"kv_heads": _same("heads"), "gating": 0}
_GPT2 = _NEOX | {
    "layers": "n_layer",
    "hidden": "n_embd",
    "heads": "n_head",
    "ffn": _or_times("n_inner", 4, "hidden"),
    "learned_positions": "n_positions",
    "max_context": "n_positions",
}
_OPT = _NEOX | {
    "ffn": "ffn_dim",
    "vocab": _unprojected_vocab,
    "learned_positions": _plus("max_position_embeddings", 2),  # two rows for padding
}
_LOCAL_EXPERTS = {"experts": "num_local_experts", "top_k": "num_experts_per_tok", "expert_ffn": "intermediate_size"}
_LLAMA4 = _MISTRAL | _LOCAL_EXPERTS
_LLAMA4 |= {"ffn": "intermediate_size_mlp", "shared_experts": 1, "shared_ffn": "intermediate_size"}
_SIXTHS = _listed(_all_but("sliding_window_pattern", 6))
# Llama 4 attends within chunks, except in blocks without rotary positions.
_CHUNKED = _listed(_listed(_all_but("no_rope_layer_interval", 4), 1, 0, "no_rope_layers"), "chunked_attention")
_QWEN_EXPERTS = {"experts": "num_experts", "top_k": "num_experts_per_tok", "expert_ffn": "moe_intermediate_size"}
_DEEPSEEK = {letter: rule for letter, rule in _LLAMA.items() if letter not in ("kv_heads", "head_dim")} | {
    "q_rank": _null_is_none("q_lora_rank"),
    "kv_rank": "kv_lora_rank",
    "rope_dim": "qk_rope_head_dim",
    "nope_dim": "qk_nope_head_dim",
    "v_dim": "v_head_dim",
    "experts": "n_routed_experts",
    "top_k": "num_experts_per_tok",
    "expert_ffn": "moe_intermediate_size",
    "shared_experts": _null_is_none("n_shared_experts"),
    "shared_ffn": "moe_intermediate_size",
}
_INDEXED = _DEEPSEEK | {"index_heads": _own_indexers, "index_dim": "index_head_dim", "index_tokens": "index_topk"}
_HYBRID = _GEMMA | {
    "output_gate": 1,
    "linear_key_heads": "linear_num_key_heads",
    "linear_value_heads": "linear_num_value_heads",
    "linear_key_dim": "linear_key_head_dim",
    "linear_value_dim": "linear_value_head_dim",
    "linear_conv": "linear_conv_kernel_dim",
}
_HYBRID_MOE = {letter: rule for letter, rule in _HYBRID.items() if letter != "ffn"} | _QWEN_EXPERTS
_HYBRID_MOE |= {"shared_experts": 1, "shared_ffn": "shared_expert_intermediate_size"}
_HYBRID_NEXT = _HYBRID_MOE | {"ffn": "intermediate_size"}  # ffn of the blocks in mlp_only_layers, which have no experts
_LINEAR = _listed(_all_but("full_attention_interval", 4), "linear_attention")
_FALCON = _NEOX | {
    "kv_heads": _falcon_kv_heads,
    "ffn": _or_times("ffn_hidden_size", 4, "hidden"),
    "max_context": ("max_position_embeddings", 2048),
}
_GPTJ = _GPT2 | {"learned_positions": 0}
_MINIMAX = _GEMMA | _LOCAL_EXPERTS
_QWEN2_MOE = _MISTRAL | _QWEN_EXPERTS | {"shared_experts": 1, "shared_ffn": "shared_expert_intermediate_size"}

KINDS = {
    "llama": Kind(_LLAMA),
    "llama4_text": Kind(_LLAMA4, "rmsnorm", False, 8192, "attention_chunk_size", _CHUNKED, _interleaved),
    "mistral": Kind(_MISTRAL, window=4096, slides=_every),
    "mixtral": Kind(_MISTRAL | _LOCAL_EXPERTS, slides=_every, routes=_every),
    "phi3": Kind(_LLAMA, slides=_every),
    "qwen2": Kind(_MISTRAL, window=4096, slides=_when_used(_listed(_upper))),
    "qwen3": Kind(_GEMMA, window=4096, slides=_when_used(_listed(_upper)), family="qwen3"),
    "qwen2_moe": Kind(_QWEN2_MOE, window=4096, slides=_when_used(_upper), routes=_sparse_step),
    "qwen3_moe": Kind(
        _MISTRAL | _QWEN_EXPERTS, window=4096, slides=_when_used(_every), routes=_sparse_step, family="qwen3"
    ),
    "gemma": Kind(_GEMMA, tied=True),
    "gemma2": Kind(_GEMMA, tied=True, window=4096, slides=_listed(_even), family="gemma2"),
    "gemma3_text": Kind(_GEMMA3, tied=True, window=4096, slides=_SIXTHS, family="gemma3"),
    "gpt_oss": Kind(_GEMMA | _LOCAL_EXPERTS | {"clamped_experts": 1}, window=128, slides=_listed(_even), routes=_every),
    "deepseek_v2": Kind(_DEEPSEEK, routes=_after_dense(0)),
    "deepseek_v3": Kind(_DEEPSEEK | {"mtp_blocks": ("num_nextn_predict_layers", 1)}, routes=_after_dense(3)),
    "gpt2": Kind(_GPT2, norm="layernorm", tied=True, family="gpt2"),
    "gpt_neox": Kind(_NEOX, norm="layernorm"),
    "opt": Kind(_OPT, norm="layernorm", tied=True),
    "falcon": Kind(_FALCON, norm="layernorm", tied=True),
    "gptj": Kind(_GPTJ, norm="layernorm"),
    "minimax_m2": Kind(_MINIMAX, routes=_every),
    "deepseek_v32": Kind(_INDEXED, routes=_after_dense(3)),
    "glm_moe_dsa": Kind(_INDEXED, routes=_listed(_after_dense(3), "sparse", "dense", "mlp_layer_types")),
    "qwen3_next": Kind(_HYBRID_NEXT, routes=_sparse_step, linear=_LINEAR),
    "qwen3_5_text": Kind(_HYBRID, linear=_LINEAR),
    "qwen3_5_moe_text": Kind(_HYBRID_MOE, routes=_every, linear=_LINEAR),
}
# Nested configurations may omit the inner model_type; Kimi K2 is DeepSeek-V3 without its extra block.
KINDS |= {x: KINDS[f"{x}_text"] for x in ("gemma3", "llama4", "qwen3_5", "qwen3_5_moe")}
KINDS |= {"kimi_k2": Kind(_DEEPSEEK, routes=_after_dense(3))}
