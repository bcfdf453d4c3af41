"""Every public entry, with calls of it from the package's own examples."""

import ast
import doctest
import importlib
import inspect
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import scalebook
from scalebook import inference
from scalebook.language import Formula, Sheet

from .support import MODULES

display_module = importlib.import_module("scalebook.display.calculator")
# Calls of what has no example of its own.
MORE = """
>>> from scalebook import accelerators, models, calculator, training_step, search
>>> from scalebook.inference import *
>>> from scalebook.answers import *
>>> from scalebook.calculon import *
>>> from scalebook.training import are_shared
>>> llama, h100 = models.llama3_8b, accelerators.h100
>>> served = dict(users=8, prompt=1000, output=200)
>>> row = serve(llama, h100, tp=1, engine="vllm", **served)
>>> prefill_step(llama, h100, read_chunk=512)
>>> mixed_step(llama, h100, batch=8, context=4096, read_chunk=512)
>>> serve.apart(llama, h100, devices=8, rate=4, prompt=1000, output=200, scaleout_bandwidth="50 GB/s")
>>> run = training_step(llama, h100, devices=64, global_batch=128, seq=4096)
>>> [f(x) for f in (answer_of, all_changes, fits, quick_changes) for x in (row, run)]
>>> answer_of(run), all_changes(run), fits(run), quick_changes(run)
>>> run.to_dict(), run.states("tp"), row.to_dict()
>>> run.answer.lines(), run.answer.text()
>>> found = search(training_step, llama, h100, devices=8, global_batch=16, seq=4096, tp=[1, 2], batch=[1], chunks=[1])
>>> found.records(), found.to_dict(), found.to_csv()
>>> found.neighbours(found.best[0])
>>> decoding.only("token_time"), decoding.using(decoding.formulas["token_time"]), decoding.formula("token_time")
>>> accelerators.having("hbm_bandwidth")
"""
_PARSE = doctest.DocTestParser().get_examples
_DEFINED = ast.Assign, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.With, ast.For


def public():
    """Return what is public and called: functions and callable objects of rooms, and methods of the rooms' types."""
    found = {}
    for room in scalebook.ROOMS[:-1]:
        module = importlib.import_module(f"scalebook.{room}")
        for name in getattr(module, "__all__", ()):
            x = getattr(module, name)
            if isinstance(x, type):
                own = {n: f for n, f in inspect.getmembers(x, inspect.isfunction) if n[0] != "_"}
                found |= {f"{f.__qualname__}": f for n, f in own.items() if f.__module__.startswith("scalebook.")}
            elif callable(x) and not isinstance(x, Formula) and type(x) is not Sheet:
                found[f"{room}.{name}"] = inspect.unwrap(x)
    return found


@cache
def _sites():
    """Return the examples with a call, by the name of what is called: the module, the examples and their number."""
    found = defaultdict(list)
    texts = [(inference, MORE)]
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


def _made(module, before, call):
    """Return what an example calls, with its arguments, evaluated."""
    names = dict(vars(module))
    for line in before:
        kept = [x for x in line.body if isinstance(x, _DEFINED)]
        exec(compile(ast.Module(kept, []), module.__name__, "exec"), names)

    def value(x):
        return eval(compile(ast.Expression(x), module.__name__, "eval"), names)

    plain = [y for x in call.args for y in (value(x.value) if isinstance(x, ast.Starred) else [value(x)])]
    named = {}
    for x in call.keywords:
        named |= {x.arg: value(x.value)} if x.arg else value(x.value)
    return value(call.func), plain, named


@cache
def calls(name):
    """Return calls of an entry: what is called, its arguments and its keywords."""
    entry, found = public()[name], []
    for site in _sites()[name.rpartition(".")[2]]:
        try:
            called, *given = _made(*site)
        except Exception:  # an example that shows an error, or one line of many
            continue
        if inspect.unwrap(getattr(called, "__func__", called)) is entry:
            found.append((called, *given))
        if len(found) == 4:
            break
    return found


def _is_engine(x):
    """Whether an argument is a part of the engine, such as a block, that no reader writes."""
    return type(x).__module__.startswith("scalebook.") and not isinstance(x, (Mapping, Formula)) and not callable(x)


@cache
def fuzzed():
    """The names of the entries that a reader gives numbers, texts, rows and sheets."""
    return [n for n in public() if any(not any(map(_is_engine, (*x[1], *x[2].values()))) for x in calls(n))]
