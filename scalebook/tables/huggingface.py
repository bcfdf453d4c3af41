"""Read the shape of a model from its Hugging Face config.json, under the names of this package.

Each `model_type` is a stanza of model_types.toml, whose head explains the rules: which field holds which quantity, and
which blocks have which parts. A missing field has the default of transformers 5.
"""

import itertools
import json
import re
from collections import Counter
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from scalebook.language.notation import NOTATION, brief, nearest, quoted
from scalebook.language.stanzas import tables_of
from scalebook.tables.model_rules import holds, part_of, typed, value_of

__all__ = ["BLOCK_WORDS", "NOT_DECODERS", "TYPES", "from_config", "read_config"]

MOST_BLOCKS = 100_000  # far more than any model has; blocks are visited one by one
_EXPERT_LETTERS = ["experts", "top_k", "expert_ffn", "shared_experts", "shared_ffn"]
_JSON = (str, int, float, list, tuple, Mapping, type(None))
_OF_TEXT = ("quantization_config", "generation_config", "attn_config", "ffn_config", "compression_config")
_WRAPPED = ("text_config", "llm_config", "language_config", "thinker_config", "decoder_config")
_STATED = tables_of(__package__, "model_types.toml")
NOT_DECODERS = {name: what for what, names in _STATED.pop("refused").items() for name in names.split()}
BLOCK_WORDS = set(_STATED.pop("words")["of blocks"].split())
_CONDITIONS = ("slides", "linear", "attends", "feeds", "routes")  # of a block
_PARTS = ("attention", "state", "feed", "routed")  # names of listings, where they do not follow from the letters
_WORDS = ("norm", "family", "windows")


def _whole(name: str) -> dict:
    """Return a type's stanza, with the rules of the stanza that it is like; an empty rule is none."""
    own = _STATED[name]
    whole = (_whole(own.get("like", "usual")) if name != "usual" else {}) | own
    return {key: rule for key, rule in whole.items() if key != "like" and rule != ""}


_ENCODER = _STATED.pop("encoder")
TYPES = {name: _whole(name) for name in _STATED}
_UNKNOWN = TYPES.pop("unknown")
del TYPES["usual"]


def from_config(config: Mapping | str | PathLike, name: str | None = None, like: str | None = None) -> dict:
    """Return the shape of a model: options (attention, norm) and numbers (layers, heads) that apply, by name.

    >>> gpt2 = dict(model_type="gpt2", n_layer=12, n_embd=768, n_head=12, vocab_size=50257, n_positions=1024)
    >>> from_config(gpt2)["ffn"]
    3072
    """
    return read_config(config, name, like)[0]


def read_config(config, name: str | None = None, like: str | None = None) -> tuple[dict, str]:
    """Return the shape that a config.json states, and a sentence on what was left out or assumed ("" if nothing was).

    `config` is the path of the file or of its folder, or the parsed dict. `like` names the `model_type` whose rules are
    used instead of its own. If blocks differ in more than numbers can say, the option `blocks` lists their parts.
    Raises TypeError for anything but a path or a dict, and ValueError for a file that cannot be read, a model that is
    not a decoder, and missing or contradictory fields.
    """
    whole = config if isinstance(config, Mapping) else _load(config)
    config, said = _language_model(whole)
    stanza, more = _stanza(config, like)
    shapes = _blocks(config, stanza)
    names = dict.fromkeys(x for _, own in shapes for x in own)
    letters = {"shared_experts": 0} | {
        x: Counter(own[x] for _, own in shapes if x in own).most_common(1)[0][0]
        for x in names  # parts say the rest
    }
    letters |= _counted(config, stanza, [x for x, _ in shapes]) | _scaled(config) | (encoder := _encoder(whole))
    said += f" of {encoder['encoder_params']:.3g} parameters in its blocks" if encoder else ""
    if letters["moe_layers"] and letters.get("experts", 0) < letters.get("top_k", 1):
        said = f"{letters.get('experts', 0)} experts of model_type {quoted(config['model_type'])}"
        raise ValueError(f"{said} are fewer than a token visits")
    words = {"name": name or config["model_type"], "attention": _attention(letters)}
    words |= {x: stanza[x] for x in _WORDS if x in stanza and (x != "windows" or "window" in letters)}
    words |= _irregular(config, stanza, shapes, letters)
    unused = {"ffn"} if letters["moe_layers"] == len(shapes) else set()
    unused |= set() if letters["moe_layers"] else set(_EXPERT_LETTERS)
    unused |= set() if letters["shared_experts"] else {"shared_ffn"}
    kept = letters.get("linear_layers") or "linear" not in stanza
    unused |= set() if kept else {x for x in letters if x.startswith("linear_")}
    return words | {x: y for x, y in letters.items() if x not in unused}, "; ".join(filter(None, (said, more)))


# Which type it is


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


def _language_model(config: Mapping) -> tuple[dict, str]:
    """Return the configuration of the language model, which may be nested, and what is left out of the whole."""
    objects = [x for x in (config, *map(config.get, _WRAPPED)) if isinstance(x, Mapping)]
    for field, value in itertools.chain.from_iterable(x.items() for x in objects):
        if not isinstance(field, str) or not isinstance(value, _JSON):
            said = f"holds {quoted(field)}: {quoted(value)}"
            raise TypeError(f"a configuration {said}, but JSON has text, numbers, lists, objects, true, false and null")
    outer, inner = config.get("model_type"), next((x for x in _WRAPPED if typed(config, x, dict, {})), None)
    if inner is None or (isinstance(outer, str) and outer in NOT_DECODERS):
        nested, inner = {}, ""
    else:
        nested = config[inner]
    left = [x for x, y in config.items() if x.endswith("_config") and isinstance(y, dict) and x.count("_") == 1]
    left = [x for x in left if x not in (inner, *_OF_TEXT)]
    whole = brief(outer) if isinstance(outer, str) else "model"
    said = f"only the text part of this {whole} is read, without its {', '.join(left)}" if left else ""
    own = {x: config[x] for x in ("tie_word_embeddings",) if inner and x in config}  # the whole model ties them
    config = {**config, **nested, **own, "model_type": nested.get("model_type", outer)}
    if inner == "thinker_config":
        return _language_model(nested)[0], said
    return config, said


def _stanza(config: Mapping, like: str | None) -> tuple[dict, str]:
    """Return the rules for a configuration, and what is assumed if its type is not known."""
    kind = config.get("model_type") if like is None else like
    if not isinstance(kind, str):
        raise ValueError(f"a configuration needs the field 'model_type', such as 'llama'; {len(TYPES)} are known")
    if kind in TYPES:
        return TYPES[kind], f"without {TYPES[kind]['without']}" if "without" in TYPES[kind] else ""
    if like is not None:
        raise ValueError(f"model_type {quoted(kind)} is not one that can be read; {nearest(kind, TYPES)}")
    if kind in NOT_DECODERS or config.get("is_encoder_decoder") is True:
        what = NOT_DECODERS.get(kind, "an encoder-decoder")
        raise ValueError(f"model_type {quoted(kind)} is {what}: models.read reads decoders, such as 'llama'")
    if lacking := [x for x in ("layers", "hidden", "heads", "vocab") if value_of(_UNKNOWN[x], config, {}, x) is None]:
        said = f"model_type {quoted(kind)} is not one that can be read, and no field known here gives its"
        raise ValueError(f"{said} {', '.join(lacking)}; {nearest(kind, TYPES)}")
    known = set(" ".join(str(x) for x in _UNKNOWN.values()).replace(":", " ").replace("?", " ").split())
    odd = [x for x, y in config.items() if x not in known and isinstance(y, (int, list, dict)) and y and y is not True]
    odd = [x for x in odd if not x.endswith(("_id", "_config", "_ids")) and x not in ("architectures", "auto_map")]
    return _UNKNOWN, (
        f"model_type {quoted(kind)} is not known: read as a decoder by the fields that most models share; "
        f"not understood: {', '.join(odd[:12]) or 'nothing'}; like='llama' states the rest; {nearest(kind, TYPES)}"
    )


# Blocks and their letters


def _blocks(config: Mapping, stanza: Mapping) -> list[tuple[dict, dict]]:
    layers = value_of(stanza["layers"], config, {}, "layers", needed=True)
    if layers > MOST_BLOCKS:
        raise ValueError(f"the blocks of a configuration are read up to {MOST_BLOCKS:,}; it has {quoted(layers)}")
    lists = {x: y for x, y in config.items() if isinstance(y, list) or (isinstance(y, str) and x.endswith("_pattern"))}
    more = config.get("num_nextn_predict_layers")  # a list may also hold the blocks that predict further tokens
    lists = {x: y for x, y in lists.items() if len(y) in (layers, layers + (more if isinstance(more, int) else 0))}
    named, found, shapes = typed(config, "per_layer_config", dict, {}), [], {}
    named = {int(x): y for x, y in named.items() if str(x).isdigit() and isinstance(y, dict)}
    words = re.findall(r"(\w+) is ([^\s'\"]+)", str(stanza))  # by which its rules call blocks
    for block in range(layers):
        own = {x: y[block] for x, y in lists.items()} | named.get(block, {})
        view = {**config, **own}
        place = {"block": block, "whole": config, "layers": layers, "named": words, "known": BLOCK_WORDS}
        has = {x: holds(stanza.get(x, x == "feeds"), view, place) for x in _CONDITIONS}
        has["attends"] = has["attends"] if "attends" in stanza else not has["linear"]
        has |= {x: name for x in _PARTS if x in stanza and (name := part_of(stanza[x], view, place))}
        has["also"] = [x for x, rule in stanza.get("also", {}).items() if holds(rule, view, place)]
        key = repr(own) if own else ""
        if key not in shapes:
            letters = {"layers": layers} | _letters(view, stanza)
            shapes[key] = next((x for x in shapes.values() if x == letters), letters)
        found.append((has, shapes[key]))
    return found


def _letters(config, stanza) -> dict:
    letters = {}
    for letter, rule in stanza.items():
        if letter in NOTATION and letter not in ("layers", "window"):
            may_lack = isinstance(rule, str) and rule.endswith(" | none")
            if (value := value_of(rule, config, letters, letter, needed=not may_lack)) is not None:
                letters[letter] = int(value) if value % 1 == 0 else value
    heads, kv_heads = letters.get("heads", 1), letters.get("kv_heads", 1)
    if heads % kv_heads:
        said = f"the {kv_heads} key-value heads of model_type {quoted(config['model_type'])}"
        raise ValueError(f"{said} do not divide its {heads} heads")
    for field, letter in stanza.get("same", {}).items():
        value = config.get(field, letters[letter])
        if not isinstance(value, int) or value != letters[letter]:
            said = f"{quoted(config['model_type'])} configuration whose {field} is not {stanza[letter]}"
            raise ValueError(f"a {said} has no letters here")
    if "kv_rank" in letters:  # an unknown type may state both
        letters = {x: y for x, y in letters.items() if x not in ("kv_heads", "head_dim")}
    return letters


def _counted(config, stanza, blocks) -> dict:
    """Count the blocks that slide, keep a state or have routed experts, and read the window."""
    found, sliding = {}, sum(x["slides"] for x in blocks)
    if sliding and (window := value_of(stanza.get("window", 0), config, {}, "window", needed=True)):
        found = {"window_layers": sliding, "window": window}
    if "linear" in stanza:
        found["linear_layers"] = sum(x["linear"] for x in blocks)
    return found | {"moe_layers": sum(x["routes"] or "experts" in x["also"] for x in blocks)}


def _irregular(config, stanza, shapes, letters) -> dict[str, str]:
    """Return the list of parts of a model whose letters do not say which blocks have which parts."""
    named = any(has["also"] or any(x in has for x in _PARTS) for has, _ in shapes) or stanza.get("once")
    plain = all(own is shapes[0][1] and has["attends"] != has["linear"] and has["feeds"] for has, own in shapes)
    if plain and not named:
        return {}
    parts = Counter()
    for has, own in shapes:
        differ = " ".join(f"{x}={y}" for x, y in own.items() if y != letters.get(x))
        differ += f" window={letters['window']}" if has["slides"] and "window" in letters else ""
        kinds = [(has["attends"], has.get("attention", "attention")), (has["linear"], has.get("state", "linear"))]
        kinds += [(has["feeds"], has.get("routed", "experts") if has["routes"] else has.get("feed", "feed"))]
        kinds += [(True, x) for x in has["also"]]
        differ = f" ({differ.strip()})" if differ else ""
        parts.update(name + differ for there, name in kinds if there)
    once = {x: int(value_of(rule, config, {}, "") or 0) for x, rule in stanza.get("once", {}).items()}
    parts.update({x: n for x, n in once.items() if n})
    return {"blocks": " + ".join(f"{n} {x}" for x, n in parts.items())}


# What stands beside the blocks, and what the letters say together


def _encoder(whole: Mapping) -> dict[str, int]:
    """Return the letters of a wrapper's encoder of images, or else of speech; none if a field is missing."""
    whole = whole | typed(whole, "thinker_config", dict, {})
    part = next((x for name in ("vision_config", "audio_config") if (x := typed(whole, name, dict, {}))), {})
    beside = {x: whole[x] for x in ("mm_tokens_per_image", "audio_merge_size", "spatial_merge_size") if x in whole}
    config, letters = {"model_type": "encoder"} | beside | part, {}
    for letter, rule in _ENCODER.items():
        if (value := value_of(rule, config, letters, letter)) is None:
            return {}
        letters[letter] = value
    return letters


def _scaled(config: Mapping) -> dict[str, int]:
    """Return letters for inputs that share a scale in 8-bit checkpoints, and for query-key norms over all heads."""
    found = {}
    scales = typed(config, "quantization_config", dict, {})
    if sizes := typed(scales, "weight_block_size", list, None):
        sized = config | {"weight_block_size": sizes[-1]}
        found["scale_block"] = value_of("weight_block_size", sized, {}, "scale_block")
    if typed(config, "use_qk_norm", bool, False) and config.get("qk_norm_type") == "per_layer":
        found["norm_sums"] = 1
    return found


def _attention(letters: Mapping) -> str:
    if "kv_rank" in letters:
        return "mla"
    return {letters.get("heads"): "mha", 1: "mqa", None: "none"}.get(letters.get("kv_heads"), "gqa")
