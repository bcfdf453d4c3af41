"""Every public entry, with calls of it from the package's own examples."""

import ast
import doctest
import importlib
import inspect
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import sympy

import scalebook
from scalebook.inference.session_search import SessionSearch
from scalebook.language import Formula, Sheet
from scalebook.language.guide import GuidedMethod
from scalebook.language.row import Call, Why
from scalebook.search.results import Found, Neighbours

from .support import MODULES

display_module = importlib.import_module("scalebook.display.calculator")
# Calls of what has no example of its own.
MORE = (Path(__file__).parent / "entries.txt").read_text("utf-8")
_PARSE = doctest.DocTestParser().get_examples
_DEFINED = ast.Assign, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.With, ast.For


@cache
def public():
    """Return what is public and called: functions and callable objects of rooms, and methods of the rooms' types."""
    found = {}
    for room in scalebook.ROOMS[:-1]:
        module = importlib.import_module(f"scalebook.{room}")
        for name in getattr(module, "__all__", ()):
            x = getattr(module, name)
            if isinstance(x, type):
                found |= methods(x)
            elif callable(x) and not isinstance(x, Formula) and type(x) is not Sheet:
                own = {n: f for n, f in vars(x).items() if isinstance(f, GuidedMethod)}  # such as serve.capacity
                found |= {f"{room}.{n}": inspect.unwrap(f) for n, f in ({name: x} | own).items()}
    for x in (Call, Found, Neighbours, SessionSearch, Why):  # which readers get, and need not import
        found |= methods(x)
    return found


def methods(kind):
    """The public functions of a type and of the package's types above it; of a strategy found, its call too."""
    known = {n: f for x in reversed(kind.__mro__) for n, f in vars(x).items() if inspect.isfunction(f)}
    own = [f for n, f in known.items() if f.__name__ == n and (n[0] != "_" or (kind is Found and n == "__call__"))]
    return {f.__qualname__: inspect.unwrap(f) for f in own if f.__module__.startswith("scalebook.")}


@cache
def _sites():
    """Return the examples with a call, by the name of what is called: the module, the examples and their number."""
    found = defaultdict(list)
    texts = [(None, MORE)]
    for module in (*MODULES.values(), display_module):
        nodes = ast.walk(ast.parse(Path(module.__file__).read_text("utf-8")))
        kept = (x for x in nodes if isinstance(x, (ast.Module, ast.ClassDef, ast.FunctionDef)))
        texts += [(module, x) for x in map(ast.get_docstring, kept) if x and ">>>" in x]
    for module, text in texts:
        lines = [ast.parse(x.source) for x in _PARSE(text)]
        for i, line in enumerate(lines):
            for call in (x for x in ast.walk(line) if isinstance(x, ast.Call)):
                name = getattr(call.func, "attr", getattr(call.func, "id", ""))
                found[name].append((module, lines[:i], call))
    return found


def _defined(lines, known=()):
    """Return the names that an example's lines define."""
    names = dict(known)
    for line in lines:
        kept = [x for x in line.body if isinstance(x, _DEFINED)]
        exec(compile(ast.Module(kept, []), "example", "exec"), names)
    return names


@cache
def _more():
    return _defined(ast.parse(x.source) for x in _PARSE(MORE))


def _made(module, before, call):
    """Return what an example calls, with its arguments, evaluated."""
    names = _defined(before, vars(module)) if module else _more()

    def value(x):
        return eval(compile(ast.Expression(x), "example", "eval"), names)

    plain = [y for x in call.args for y in (value(x.value) if isinstance(x, ast.Starred) else [value(x)])]
    named = {}
    for x in call.keywords:
        named |= {x.arg: value(x.value)} if x.arg else value(x.value)
    return value(call.func), plain, named


@cache
def calls(name):
    """Return calls of an entry: what is called, its arguments and its keywords. Those of MORE replace all others."""
    entry, found, is_more = public()[name], [], False
    for site in _sites()[name.rpartition(".")[2].replace("__call__", "")]:
        if found and (len(found) > 3 or (is_more and site[0])):
            break
        try:
            called, *given = _made(*site)
        except Exception:  # an example that shows an error, or one line of many
            continue
        if entry in (inspect.unwrap(getattr(called, "__func__", called)), inspect.unwrap(type(called).__call__)):
            found.append((called, *given))
            is_more = site[0] is None
    return found


def is_part(name):
    """Whether an entry takes a part of the engine by its signature: a block, a sheet's plan, an expression."""
    parts = r"Block|Op\b|Tensor|Work\b|Expr|Sheet|Choices|Callable|tuple\b|set\[|letters: dict"
    return bool(re.search(parts, str(inspect.signature(public()[name]))))


def _is_engine(x):
    """Whether it is a part of the engine, such as a block or a schedule, that no reader writes."""
    room = type(x).__module__.removeprefix("scalebook.").partition(".")[0]
    return isinstance(x, sympy.Basic) or (room in ("block", "pipeline", "calculon", "training") and not callable(x))


def by_keyword(called):
    """Whether it takes letters or words by keyword, and has to say itself which."""
    return any(x.kind in (x.KEYWORD_ONLY, x.VAR_KEYWORD) for x in inspect.signature(called).parameters.values())


@cache
def fuzzed():
    """The names of the entries that a reader gives numbers, texts, rows and sheets."""

    def is_readers(called, plain, named):
        given = (getattr(called, "__self__", None), *plain, *named.values())
        if any(map(_is_engine, given)):
            return False
        return by_keyword(called) or not any(isinstance(x, Formula) for x in plain)

    return [n for n in public() if any(is_readers(*x) for x in calls(n))]
