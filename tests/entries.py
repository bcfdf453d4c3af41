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
from scalebook.language import Formula, Sheet

from .support import MODULES

display_module = importlib.import_module("scalebook.display.calculator")
# Calls of what has no example of its own.
MORE = """
>>> import json
>>> import numpy as np
>>> from importlib.resources import files
>>> from scalebook import accelerators, calculator, confront, flags, models, search, training_step
>>> from scalebook.answers import *
>>> from scalebook.block import model_active_params
>>> from scalebook.calculon import *
>>> from scalebook.calculon.sheet import priced
>>> from scalebook.flags import first_formulas, number, text_of
>>> from scalebook.inference import *
>>> from scalebook.language import same
>>> from scalebook.machine.roofline import ridge_intensity
>>> from scalebook.measurements import find
>>> from scalebook.tables import cells_of_libraries, libraries_on
>>> from scalebook.training import useful_times
>>> from scalebook.display import guess
>>> llama, h100 = models.llama3_8b, accelerators.h100
>>> guess("How many bytes?", 140e9, "B"), guess("How many?", 2, within=0.1)
>>> served = dict(users=8, prompt=1000, output=200)
>>> row = serve(llama, h100, tp=1, engine="vllm", **served)
>>> prefill_step(llama, h100, read_chunk=512)
>>> sharing(llama, h100, tp=2, batch=1, context=4096, weight_bits=16, kv_bits=16)
>>> mixed_step(llama, h100, batch=8, context=4096, read_chunk=512)
>>> serve.apart(llama, h100, devices=8, rate=4, prompt=1000, output=200, scaleout_bandwidth="50 GB/s")
>>> run = training_step(llama, h100, devices=64, global_batch=128, seq=4096)
>>> answer_of(run), all_changes(run), fits(run), quick_changes(run)
>>> run.to_dict(), run.states("tp"), row.to_dict()
>>> run.answer.lines(), run.answer.text()
>>> found = search(training_step, llama, h100, devices=8, global_batch=16, seq=4096, tp=[1, 2], batch=[1], chunks=[1])
>>> found.records(), found.to_dict(), found.to_csv()
>>> found.neighbours(found.best[0])
>>> decoding.only("token_time"), decoding.using(decoding.formulas["token_time"]), decoding.formula("token_time")
>>> known = dict(prompt=1000, output=200)
>>> serve.capacity(llama, h100, tpot=0.1, **known), serve.offline(llama, h100, tpot=0.1, requests=100, **known)
>>> serve.priced(llama, h100, tp=1, **served)
>>> agents = dict(turns=8, prefix=500, appended=200, output=50, pause=2.0)
>>> serve.sessions(llama, h100, sessions=8, **agents)
>>> loop = sessions_on(serve, llama, h100, **agents)
>>> loop.point(8.0, False), simulate_sessions(loop, 8, 60.0)
>>> trace = Trace(np.array([0.0, 1.0, 2.0]), [[1, 2], [1], [1, 2]])
>>> trace.found(1024), trace.kept_time(1024), trace.found_in_closed_form(1024)
>>> read_trace("trace.jsonl")
>>> serve.static(llama, h100, batch=4, **known)
>>> accelerators.having("hbm_bandwidth")
>>> shown = confront("batch1_floor")
>>> find("batch1_floor"), shown.of(shown.fitted), shown.worst(3), shown.record()
>>> f = ridge_intensity
>>> f.of(peak_flops=1e15), f.compose(f), f.typeset(), f.template(), f.text()
>>> f.worked(peak_flops=1e15, hbm_bandwidth=1e12)
>>> same("usual_seq", "seq", "context", "narayanan2021", "Sequence length if only the context is known.")
>>> libraries_on(h100), cells_of_libraries(h100, ["cublas"]), model_active_params(llama)
>>> decode_step(llama, h100, batch=8, context=4096)
>>> useful_times(run), answer_letter(run), assumed(run, 3), nearest_fit(run)
>>> megatron = flags.frameworks()["megatron"]
>>> flag = megatron.find("tensor-model-parallel-size")
>>> megatron.find("tensor-model-parallel-size"), flag.formulas(), flag.says(8)
>>> first_formulas(), number("--micro-batch-size", 8), text_of(True)
>>> given, machine = execution(library.example), library.systems["a100_80g"]
>>> execution(library.example)
>>> system(json.loads(files("scalebook.calculon").joinpath("systems.json").read_text())["a100_80g"])
>>> shape("gpt3-175B"), priced(library.models["gpt3-175B"], library.example, machine)
>>> machine.tables(given), machine.all_tables("float16"), machine.letters("float16"), machine.row(given)
>>> chosen = calculator(ridge_intensity, device=accelerators)
>>> chosen.choose(device="h100")
"""
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
                own = {n: f for n, f in vars(x).items() if inspect.isfunction(f) and n[0] != "_"}
                own = [f for n, f in own.items() if f.__module__.startswith("scalebook.") and f.__name__ == n]
                found |= {f.__qualname__: inspect.unwrap(f) for f in own}
            elif callable(x) and not isinstance(x, Formula) and type(x) is not Sheet:
                found[f"{room}.{name}"] = inspect.unwrap(x)
    return found


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
    for site in _sites()[name.rpartition(".")[2]]:
        if found and (len(found) > 3 or (is_more and site[0])):
            break
        try:
            called, *given = _made(*site)
        except Exception:  # an example that shows an error, or one line of many
            continue
        if inspect.unwrap(getattr(called, "__func__", called)) is entry:
            found.append((called, *given))
            is_more = site[0] is None
    return found


def is_part(name):
    """Whether an entry takes a part of the engine by its signature: a block, a sheet's plan, an expression."""
    parts = r"Block|Op\b|Tensor|Work\b|Expr|Sheet|Choices|Callable|tuple\b"
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
