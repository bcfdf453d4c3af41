"""Read the text of a configuration (an argument list, YAML, JSON or TOML) into flags with values, and write it.

Of YAML, `key: value` is read at any depth; of a shell script, plain assignments and options. Nothing is executed.
"""

import json
import re
import shlex
import tomllib
from collections.abc import Mapping

from scalebook.language.notation import quoted

__all__ = ["guess", "parsed", "written"]

_ASSIGNED = re.compile(r"^\s*(?:export\s+)?(\w+)=[\"']?([\w./:-]+)[\"']?\s*;?\s*$", re.M)
_YAML = re.compile(r"^\s*-?\s*([A-Za-z][\w.-]*)\s*:(?:\s+(.*?))?\s*$")
_SEVERAL = ("recompute-modules",)  # flags that take several values, which are read with commas between them
_WORDS = {"true": True, "false": False, "null": None, "~": None, "none": None, "": None}


def guess(source: str | Mapping) -> str:
    """Guess which framework a configuration is for. Raises ValueError if the text fits none of them.

    >>> guess("[parallelism]\\ntensor_parallel_degree = 8"), guess("tensor_model_parallel_size: 8")
    ('torchtitan', 'megatron')
    """
    if isinstance(source, Mapping):
        return "torchtitan" if {"parallelism", "training"} & source.keys() else "deepspeed"
    if source.lstrip().startswith("{"):
        return "deepspeed"
    if re.search(r"^\s*\[(parallelism|training|model|job)\]", source, re.M):
        return "torchtitan"
    if re.search(r"(^|\s)--[a-z]", source) or any(_YAML.match(x) for x in source.splitlines()):
        return "megatron"
    more = "say framework='megatron', 'deepspeed' or 'torchtitan', and give its text or the path of its file"
    raise ValueError(f"{quoted(source[:60])} is no argument list, YAML, JSON or TOML: {more}")


def parsed(source: str | Mapping, framework: str) -> dict:
    """Return the flags of a configuration with their values. A key inside a section is named "section.key".

    >>> parsed("TP=8\\ntorchrun train.py --tensor-model-parallel-size $TP --bf16  # all", "megatron")
    {'tensor-model-parallel-size': '8', 'bf16': True}
    """
    if framework == "megatron":
        if isinstance(source, Mapping):
            return {_flag(x): y for x, y in _flat(source, last=True).items()}
        return _arguments(source) if re.search(r"(^|\s)--[a-z]", source) else _yaml(source)
    return _flat(source if isinstance(source, Mapping) else _loaded(source, framework))


def _loaded(text: str, framework: str) -> Mapping:
    load, kind = (json.loads, "JSON") if framework == "deepspeed" else (tomllib.loads, "TOML")
    try:
        found = load(text)
    except (ValueError, RecursionError) as error:  # both kinds of syntax errors are ValueErrors
        raise ValueError(f"this is no {kind}: {error}") from None
    if not isinstance(found, Mapping):
        raise ValueError(f"this {kind} holds {quoted(found)}: sections with settings belong there")
    return found


def _flat(settings: Mapping, before: str = "", last: bool = False) -> dict:
    """Flatten nested settings by their path, or by their last name alone if `last`."""
    found = {}
    for name, value in settings.items():
        path = name if last or not before else f"{before}.{name}"
        found |= _flat(value, path, last) if isinstance(value, Mapping) else {path: value}
    return found


def _flag(key: str) -> str:
    return key.rpartition(".")[2].replace("_", "-")


def _plain(text: str):
    """Return a YAML value: a bool, None, or text without its quotation marks."""
    text = re.sub(r"\s+#.*$", "", text or "").strip()
    return _WORDS.get(text.lower(), text.strip("\"'"))


def _yaml(text: str) -> dict:
    lines = (x.split(" #")[0] for x in text.splitlines() if not x.lstrip().startswith("#"))
    found = [x for x in map(_YAML.match, lines) if x]
    return {_flag(x[1]): _plain(x[2]) for x in found if x[2]}  # a key without a value begins a section


def _arguments(text: str) -> dict:
    """Parse the options of a command line. Raises ValueError if one is given twice with different values."""
    text = re.sub(r"(^|\s)#.*$", "", text, flags=re.M)
    values = dict(_ASSIGNED.findall(text))
    text = re.sub(r"\$\{?(\w+)\}?", lambda x: values.get(x[1], x[0]), text.replace("\\\n", " "))
    text = re.sub(r"[()]", " ", text)
    try:
        tokens = shlex.split(text) if re.search(r"[\"'\\]", text) else re.findall(r"[^ \t\r\n]+", text)
    except ValueError as error:
        raise ValueError(f"this is no argument list: {error}") from None
    tokens = [x for token in tokens for x in (token.split() if token.lstrip().startswith("--") else [token])]
    pairs: list[list] = []
    for token in tokens:
        if token.startswith("--") and len(token) > 2:
            flag, is_given, value = token[2:].partition("=")
            pairs.append([flag.replace("_", "-"), value if is_given else True])
        elif pairs and pairs[-1][1] is True:
            pairs[-1][1] = token
        elif pairs and pairs[-1][0] in _SEVERAL:
            pairs[-1][1] += f",{token}"  # further values of other flags, and a program's name, are skipped
    found: dict = {}
    for flag, value in pairs:
        if found.get(flag, value) != value:
            raise ValueError(f"--{flag} is given twice, as {found[flag]} and as {value}: leave one of them out")
        found[flag] = value
    return found


def written(settings: Mapping, framework: str) -> str:
    """Write flags and values as configuration text: an argument list for "megatron", JSON or TOML for other frameworks.

    >>> written({"pipeline-model-parallel-size": 4, "bf16": True}, "megatron")
    '--pipeline-model-parallel-size 4 --bf16'
    """
    if framework == "megatron":
        return " ".join(f"--{x}" if y is True else f"--{x} {y}" for x, y in settings.items())
    nested: dict = {}
    for path, value in settings.items():
        *sections, name = path.split(".")
        place = nested
        for section in sections:
            place = place.setdefault(section, {})
        place[name] = value
    if framework == "deepspeed":
        return json.dumps(nested, indent=2)
    return "\n\n".join(
        "\n".join([f"[{section}]", *(f"{x} = {json.dumps(y)}" for x, y in lines.items())])
        for section, lines in nested.items()
    )
