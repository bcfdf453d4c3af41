"""Documentation of what a call takes and gives, for `help`, `?` and completion, with units and defaults."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from inspect import Parameter, Signature, cleandoc, signature
from typing import Any

from .notation import GROUPS, NOTATION, either, refuse_stray
from .row import Call, Row, one_number
from .words import WORDS

__all__ = ["Guided", "GuidedMethod", "named_parameters"]


class _OfInstance:
    """An attribute that an instance computes; its class has another value, or none."""

    def __init__(self, make, of_class=None):
        self.make, self.of_class = make, of_class

    def __get__(self, instance, kind):
        if instance is not None:
            return self.make(instance)
        if self.of_class is None:
            raise AttributeError
        return self.of_class


class Guided:
    """Base class of things that are called with named inputs: it generates their docstring and signature.

    `takes` maps inputs and options to defaults or None, `choices` options to values; `gives` lists results, `doc`
    describes it.  `defaults_said` says defaults of inputs in words, if they depend on rows.
    `billed` are further inputs, which only the costs of an answer (`run.answer.prices`) depend on.
    """

    billed: frozenset[str] = frozenset()
    choices: Mapping[str, Iterable] = {}
    defaults_said: Mapping[str, str] = {}
    gives: Iterable[str] = ()
    own: Mapping[str, Parameter] = {}  # parameters of the function itself

    def __init_subclass__(cls):
        cls.__doc__ = _OfInstance(_documented, cls.__dict__.get("__doc__") or "")

    __signature__ = _OfInstance(lambda x: x._signature)

    def unbilled(self, letters: dict, needs: str = "") -> dict:
        """Check the values of the letters that only costs depend on, and return the call's other letters.

        Raises TypeError if the call has such letters and lacks `needs`, the letter without which it has no costs.
        """
        own = {n: one_number(n, letters[n]) for n in self.billed & letters.keys()}
        if own and needs and needs not in letters:
            raise TypeError(f"{min(own)} is of what a whole run costs: give {needs}=... too")
        return {n: x for n, x in letters.items() if n not in own} if own else letters

    def _refuse_strange(self, letters: Iterable[str]) -> None:
        """Raise for the first name of a call that is neither a quantity nor an option of this thing."""
        if name := next((x for x in letters if not (x in NOTATION or x in self.choices or x in self.letters)), None):
            refuse_stray(self.name, name, self.letters)

    @property
    def _signature(self) -> Signature:
        takes = dict.fromkeys(self.billed) | self.takes
        named = dict.fromkeys([x for group in _grouped(takes).values() for x in group] + [*self.choices])
        keywords = [Parameter(x, Parameter.KEYWORD_ONLY, default=takes.get(x)) for x in named if x not in self.own]
        rest = Parameter("knowns", Parameter.VAR_POSITIONAL), Parameter("letters", Parameter.VAR_KEYWORD)
        return Signature(sorted([*self.own.values(), *keywords, *rest], key=lambda x: x.kind))


def _grouped(letters: Iterable[str]) -> dict[str, list[str]]:
    found = {head: [x for x in group if x in letters] for head, group in GROUPS.items()}
    return {head: group for head, group in found.items() if group}


def _documented(x: Guided) -> str:
    words = [_option(n, own, x.takes.get(n)) for n, own in x.choices.items()]
    takes = {n: default if default in (None, "") else f"{default:g}" for n, default in x.takes.items() if n in NOTATION}
    takes = dict.fromkeys(x.billed) | takes | x.defaults_said
    lines = [
        cleandoc(x.doc),
        "",
        "A call takes rows of tables by position, and letters by keyword, as numbers or as text with a unit:",
    ]
    for heads, letters in (("", takes), ("It gives, and a search minimizes, maximizes and limits:", x.gives)):
        lines += ["", heads] if heads and letters else []
        for head, group in _grouped(letters).items():
            lines += ["", head, *(_line(n, letters[n] if letters is takes else None) for n in group)]
        lines += ["", "Words", *words] if words and not heads else []
    return "\n".join(lines)


def _line(name: str, default: str | None) -> str:
    letter = NOTATION[name]
    return f"    {name:<22} {letter.unit:<8} {letter.meaning}{'' if default is None else f'; by default {default}'}"


def _option(name: str, values: Iterable, default) -> str:
    word = WORDS.get(name)
    said = [word.meaning] if word else []
    said += [either(map(repr, values))]
    said += [f"or some of {', '.join(word.parts)} with commas between"] if word and word.parts else []
    said += [f"by default {default!r}"] if default is not None else []
    return f"    {name:<22} {'; '.join(said)}"


def named_parameters(function: Callable) -> dict[str, Parameter]:
    """Return the parameters of a function that have a name in a call, by that name."""
    found = signature(function).parameters.values()
    return {x.name: x for x in found if x.kind not in (x.VAR_POSITIONAL, x.VAR_KEYWORD)}


class GuidedMethod(Guided):
    """A function of an owner, such as `serve.apart`, that passes further letters on to it, and so shows them too.

    It takes the owner's letters, except those in `without`.
    """

    def __init__(self, function: Callable, owner: Guided, without: Iterable[str] = ()):
        self.__wrapped__, self.owner, self.name = function, owner, f"{owner.name}.{function.__name__}"
        self.without = without
        self.__module__, self.doc = function.__module__, function.__doc__

    def __repr__(self):
        return f"{self.name}(model, device, {', '.join(f'{x}=' for x in self.own)}, ...)"

    @cached_property
    def own(self) -> Mapping[str, Parameter]:
        _, *rest = named_parameters(self.__wrapped__).items()
        return dict(rest)

    choices = property(lambda self: self.owner.choices)
    defaults_said = property(lambda self: self.owner.defaults_said)

    @property
    def takes(self) -> Mapping[str, Any]:
        given = {n: None if x.default is x.empty else x.default for n, x in self.own.items() if n in NOTATION}
        return {n: x for n, x in self.owner.takes.items() if n not in self.without} | given

    def __call__(self, *knowns, **letters):
        try:
            found = self.__wrapped__(self.owner, *knowns, **letters)
        except TypeError as error:  # of a step that it is made of, which nobody called
            said = re.sub(rf"^({self.owner.name}|\w+[ _]step) does not use", f"{self.name} does not use", str(error))
            raise (error if said == str(error) else TypeError(said)) from None
        (found if isinstance(found, Row) else found.row).asked = Call(self, knowns, letters)
        return found
