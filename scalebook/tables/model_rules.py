"""The rules of model_types.toml: how fields of a config.json give a letter, or a condition on a block.

The head of that file explains how a rule is written.
"""

import json
import operator
from collections.abc import Mapping
from functools import cache

from scalebook.language.notation import NOTATION, quoted

__all__ = ["holds", "part_of", "typed", "value_of"]

MOST = 10**15  # far more than any model has


@cache
def _alternatives(rule: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(x.split()) for x in rule.split(" | "))


def part_of(rule, config, place) -> str:
    """Return the name of a part: the rule if it is a name, else the first name whose condition holds."""
    return rule if isinstance(rule, str) else next((x for x, y in rule.items() if holds(y, config, place)), "")


def holds(rule, config, place) -> bool:
    """Return True if a condition holds for a block, or if every condition of a list does."""
    if isinstance(rule, list):
        return all(holds(x, config, place) for x in rule)
    return bool(value_of(rule, config, place, ""))


def value_of(rule, config, letters, letter, needed=False):
    """Return the value of the first alternative of a rule whose fields are all there, or None."""
    if not isinstance(rule, str):
        return rule
    for words in _alternatives(rule):
        if words[-1] == "none":
            if all(_is(config, x[:-1]) for x in words[:-1]):
                return None
        elif (value := _computed(words, config, letters, letter)) is not None:
            return value
    if needed:
        fields = [x for words in _alternatives(rule) for x in words if x[0].isalpha() and not x.endswith("?")]
        raise ValueError(f"a configuration of model_type {quoted(config['model_type'])} needs the field {fields[0]!r}")
    return None


_OPERATIONS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    ">=": operator.ge, "<=": operator.le, "<": operator.lt, "=": operator.eq,
    "/": lambda a, b: None if a % b else a // b, "up": lambda a, b: -(-int(a) // b) * b,
}  # fmt: skip


def _computed(words, config, letters, letter):
    """Compute an alternative from left to right; None if a field is missing or a condition is not met."""
    value, pending = None, ""
    for word in words:
        if pending == "is":
            value, pending = _called(words[-3], value, word.split(","), letters), ""
        elif word.endswith("?"):
            if not _is(config, word[:-1]):
                return None
        elif word in _OPERATIONS or word in ("in", "notin", "is"):
            pending = word
        elif pending in ("in", "notin"):
            if (listed := typed(letters["whole"], word, list)) is None:
                return None
            value, pending = (value in listed) == (pending == "in"), ""
        else:
            least = int(NOTATION[letter].sign != "nonnegative") if letter else int(pending in ("%", "/", "//"))
            if (term := _term(word, config, letters, least, words)) is None:
                return None
            value, pending = _OPERATIONS[pending](value, term) if pending else term, ""
            if value is None:
                return None
    return value


def _is(config, condition) -> bool:
    field, _, wanted = condition.partition("=")
    wanted = json.loads(wanted or "true")
    if isinstance(wanted, bool):
        return typed(config, field, bool) is wanted
    return field in config and config[field] == wanted


def _field(config: Mapping, path: str):
    """Return a field's value, or None; `a.b` is the field b of the object a."""
    for key in path.split("."):
        config = config.get(key) if isinstance(config, Mapping) else None
    return config


def _called(field, value, wanted, place) -> bool:
    """Return whether a block is called so in a list of the blocks' kinds."""
    if not field.endswith("_pattern"):
        typed(place["whole"], field, list)
    said = value if isinstance(value, str) else quoted(value)
    known = said in place["known"] or any(said in x.split(",") for y, x in place["named"] if y == field)
    if isinstance(value, (list, dict)) or not known:
        other = {"sparse": "'dense'", "1": 0}.get(wanted[0], "'full_attention'")
        kind, blocks = quoted(place["whole"]["model_type"]), place["layers"]
        said = f"{field!r} of model_type {kind} must call each of its {blocks} blocks"
        raise ValueError(
            f"{said} {int(wanted[0]) if other == 0 else repr(wanted[0])} or {other}; it has {quoted(value)}: "
            "name a type with such blocks as like="
        )
    return str(value) in wanted


def _term(word, config, letters, least, words):
    """Return the value of a number, of a letter (=heads), of the block's number, or of a field (and its default)."""
    if word[0].isdigit():
        return int(word)
    if word[0] == "=" or word == "block":
        return letters[word.lstrip("=")]
    if word[0] == "#":
        listed = config.get(word[1:])
        return len(listed) if isinstance(listed, (list, str)) and listed else None
    field, _, default = word.lstrip("~").partition(":")
    value = _field(config, field)
    if value is None or ("is" in words and isinstance(value, list) and not value):
        return int(default) if default else None
    if "is" in words:
        return value
    where = f"{field!r} of model_type {quoted(config['model_type'])}"
    number, least = ((int, float), 0) if word[0] == "~" else (int, least)
    if isinstance(value, bool) or not isinstance(value, number) or not value >= least:
        raise ValueError(f"{where} must be a whole number, {least} or more; it is {quoted(value)}")
    if value > MOST:
        raise ValueError(f"{where} is read up to {MOST:,}; it is {quoted(value)}")
    return value


def typed(config: Mapping, field: str, kind: type, default=None):
    if (value := _field(config, field)) is None:
        return default
    if not isinstance(value, kind):
        wanted = {bool: "true or false", list: "a list", dict: "an object of fields"}[kind]
        raise ValueError(f"{field!r} must be {wanted}; it is {quoted(value)}")
    return value
