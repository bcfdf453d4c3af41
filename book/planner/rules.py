"""Rules on strategies and on model configurations as data for the page, traced from the Python that states them.

>>> from scalebook.training.rules import RULES
>>> rules([x for x in RULES if x.name == "chunks divide a stage"], {})[0]["js"]
'((stage_blocks%chunks)==0)'
"""

import itertools
from collections.abc import Iterable, Mapping

from scalebook.block.counts import LISTINGS
from scalebook.language import NOTATION
from scalebook.tables.huggingface import BLOCK_WORDS, NOT_DECODERS, TYPES

__all__ = ["Traced", "configurations", "rules"]


def _operator(js: str, turned: bool = False):
    def method(self, other):
        a, b = (other, self) if turned else (self, other)
        return Traced(f"({_text(a)}{js}{_text(b)})")

    return method


def _text(x) -> str:
    return x.js if isinstance(x, Traced) else str(bool(x)).lower() if x is True or x is False else f"{x!r}"


class Traced:
    """A letter in a condition. It records every operation on it as JavaScript, in `js`.

    >>> tp, heads = Traced("tp"), Traced("heads")
    >>> ((heads % tp == 0) | (tp == 1)).js
    '(((heads%tp)==0)|(tp==1))'
    """

    __hash__ = None

    def __init__(self, js: str):
        self.js = js

    __add__, __radd__ = _operator("+"), _operator("+", True)
    __sub__, __rsub__ = _operator("-"), _operator("-", True)
    __mul__, __rmul__ = _operator("*"), _operator("*", True)
    __truediv__, __rtruediv__ = _operator("/"), _operator("/", True)
    __mod__, __rmod__ = _operator("%"), _operator("%", True)
    __or__, __ror__, __and__, __rand__ = _operator("|"), _operator("|", True), _operator("&"), _operator("&", True)
    __eq__, __ne__ = _operator("=="), _operator("!=")
    __lt__, __le__, __gt__, __ge__ = _operator("<"), _operator("<="), _operator(">"), _operator(">=")

    def __floordiv__(self, other):
        return Traced(f"Math.floor({_text(self)}/{_text(other)})")

    def __neg__(self):
        return Traced(f"(-{self.js})")

    def __bool__(self):
        raise TypeError("a rule is made of arithmetic: it cannot branch on a letter")


def rules(stated: Iterable, words: Mapping[str, Iterable]) -> list[dict]:
    """Return rules as data: the letters they need, their sentence, and their condition for each value of `words`."""
    found = []
    for rule in stated:
        own = [x for x in rule.needs if x in words]
        js = {}
        for values in itertools.product(*(words[x] for x in own)):
            said = dict(zip(own, values, strict=True))
            js["|".join(map(str, values))] = _text(rule.holds(*(said.get(x, Traced(x)) for x in rule.needs)))
        line = dict(name=rule.name, letter=rule.letter, needs=list(rule.needs), says=rule.says)
        line |= dict(words=own, js=js) if own else dict(js=js[""])
        found.append(line | (dict(advice=1) if getattr(rule, "advice", False) else {}))
    return found


def configurations() -> dict[str, dict]:
    """Return how a config.json spells a model: the stanzas of model_types.toml, with what each inherits.

    >>> configurations()["types"]["gpt2"]["ffn"]
    'n_inner | 4 * =hidden'
    """
    zero = [x for x, letter in NOTATION.items() if letter.sign == "nonnegative"]
    parts = {"mixers": ["attention", "linear", *LISTINGS["attention"]], "once": [*LISTINGS["once"]]}
    return {"types": TYPES, "refused": NOT_DECODERS, "words": sorted(BLOCK_WORDS), "zero": zero, "parts": parts}
