"""The texts of configurations: an argument list or YAML, a JSON, a TOML, into flags with values and back.

Of YAML only `key: value` is read, at any depth; keys are then flags.  Of a shell script comments, lines that are
continued and plain assignments are understood, and nothing of it is run.

>>> parsed("TP=8\\ntorchrun train.py --tensor-model-parallel-size $TP --bf16  # all", "megatron")
{'tensor-model-parallel-size': '8', 'bf16': True}
>>> parsed('{"zero_optimization": {"stage": 3}}', "deepspeed")
{'zero_optimization.stage': 3}
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
_WORDS = {"true": True, "false": False, "null": None, "~": None, "none": None, "": None}


def guess(source: str | Mapping) -> str:
    """Whose configuration it is.  Raises ValueError where it could be of several or of none.

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
    raise ValueError(
        f"{quoted(source[:60])} is no argument list, YAML, JSON or TOML: "
        "say framework='megatron', 'deepspeed' or 'torchtitan', and give its text or the path of its file"
    )


def parsed(source: str | Mapping, framework: str) -> dict:
    """Flags with their values: those of JSON and TOML by the names of their sections, joined by dots."""
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
    """Settings of settings by their path; by their last name alone where asked."""
    found = {}
    for name, value in settings.items():
        path = name if last or not before else f"{before}.{name}"
        found |= _flat(value, path, last) if isinstance(value, Mapping) else {path: value}
    return found


def _flag(key: str) -> str:
    return key.rpartition(".")[2].replace("_", "-")


def _plain(text: str):
    """A value of YAML: a truth, nothing, or text without its quotation marks."""
    text = re.sub(r"\s+#.*$", "", text or "").strip()
    return _WORDS.get(text.lower(), text.strip("\"'"))


def _yaml(text: str) -> dict:
    lines = (x.split(" #")[0] for x in text.splitlines() if not x.lstrip().startswith("#"))
    found = [x for x in map(_YAML.match, lines) if x]
    return {_flag(x[1]): _plain(x[2]) for x in found if x[2]}  # a key alone begins a section


def _arguments(text: str) -> dict:
    """Options of a command line; raises ValueError for one that is given twice, differently."""
    text = re.sub(r"(^|\s)#.*$", "", text, flags=re.M)
    values = dict(_ASSIGNED.findall(text))
    text = re.sub(r"\$\{?(\w+)\}?", lambda x: values.get(x[1], x[0]), text.replace("\\\n", " "))
    try:
        tokens = shlex.split(re.sub(r"[()]", " ", text))
    except ValueError as error:
        raise ValueError(f"this is no argument list: {error}") from None
    tokens = [x for token in tokens for x in (token.split() if token.lstrip().startswith("--") else [token])]
    pairs: list[list] = []
    for token in tokens:
        if token.startswith("--") and len(token) > 2:
            flag, is_given, value = token[2:].partition("=")
            pairs.append([flag.replace("_", "-"), value if is_given else True])
        elif pairs and pairs[-1][1] is True:
            pairs[-1][1] = token  # further values, and a program's name, are left
    found: dict = {}
    for flag, value in pairs:
        if found.get(flag, value) != value:
            raise ValueError(f"--{flag} is given twice, as {found[flag]} and as {value}: leave one of them out")
        found[flag] = value
    return found


def written(settings: Mapping, framework: str) -> str:
    """The text of flags and values, as the framework reads it.

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
