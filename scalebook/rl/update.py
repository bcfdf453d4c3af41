"""An update of reinforcement learning, from the kernels of its engine and the training step of its trainer.

>>> from scalebook.tables import accelerators, models
>>> run = rl_step(models.qwen3_32b, accelerators.h100, devices=32, responses=2048, response=3256, response_most=3976,
...               rollout=dict(tp=4), training=dict(tp=4, pp=4), forward_passes=1)
>>> round(run.update_time / 323, 1)  # NeMo-RL 0.7 took 323 s
0.9
"""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache, partial
from math import lcm

import numpy as np
from sympy import Basic

from scalebook.inference import decode_step, serve
from scalebook.inference.capacity import valued
from scalebook.inference.layouts import MOST_DEVICES
from scalebook.language import NOTATION, Row
from scalebook.language.guide import Guided, named_parameters
from scalebook.language.interval import SPREADS
from scalebook.language.notation import quoted, unused
from scalebook.language.row import Call, Cell, as_rows, one_number, quantity
from scalebook.language.stanzas import tables_of
from scalebook.search.space import Space
from scalebook.tables import Framework, frameworks
from scalebook.training.frameworks import framework_of
from scalebook.training.step import training_step

from .layouts import HELD, posed
from .lengths import Lengths
from .rollouts import forward_passes_two, update_sheet

__all__ = ["rl_step"]

_ROWS = {"gating": "model, such as models.llama3_8b", "hbm_bandwidth": "device, such as accelerators.h100"}
SYNC = "sync_share", "expert_gathers", "update_overhead"  # letters of the program that are the update's own
OF_PROGRAM = "step_overhead", "packed_share", *SYNC  # what a program says of an update
_OTHERS = tables_of(__package__, "update.toml")["others"]  # likely values of what a call leaves to its defaults
_POINTS = 160  # positions at which a decode step of a rollout is priced


@cache
def programs() -> tuple[str, ...]:
    """Return the names of the frameworks with an engine that writes answers."""
    return tuple(x for x, row in frameworks.items() if "engine" in row.words)


_lengths = lru_cache(256)(Lengths)  # their law takes as long as the rest of an update


@dataclass(frozen=True)
class _Asked:
    rows: tuple
    program: Framework
    devices: float
    responses: float
    lengths: Lengths
    prompt: float
    age: float
    share: str | float
    rollout: Mapping
    training: Mapping
    optimizer_steps: float
    letters: dict = field(default_factory=dict)

    def own(self, name: str) -> float:
        return one_number(name, self.letters[name]) if name in self.letters else self.program[name]

    def writing(self, devices: float) -> dict:
        """Return the letters of a rollout on `devices`, with a decode step that is linear in its answers."""
        ways = one_number("tp", self.rollout.get("tp", 1))
        if devices < ways or devices % ways:
            raise ValueError(f"{devices:g} devices that write answers hold no whole number of engines on {ways:g}")
        lengths, engines = self.lengths, devices / ways
        room = {"engine": self.program.words["engine"]} | dict(self.rollout)
        said = room | {"step_overhead": self.own("step_overhead")}
        alone = serve(*self.rows, users=1, prompt=self.prompt, output=lengths.mean, **room)
        most = one_number("max_users", valued(alone, "max_users"))
        whole = self.responses * max(self.age, 1) / engines
        group, context = max(1.0, min(whole, np.floor(most))), self.prompt + (lengths.square / lengths.mean - 1) / 2
        step = valued(decode_step(*self.rows, batch=np.array([1.0, group]), context=context, **said), "pass_time")
        if self.age:
            seconds, steps, found = float(step[-1]), 1.0, {"response_group": group, "in_flight": group * engines}
        else:
            written = max(0.0, whole - group) / group * lengths.mean * float(step[-1])  # while others take free places
            seconds, steps = written + self._begun(group, said), lengths.longest(self.responses)
            found = {"response_group": whole, "longest_response": steps}
        base = min(float(step[0]), seconds / steps)
        tokens = found["response_group"] * (1.0 if self.age else lengths.mean)
        return found | dict(
            rollout_devices=devices, pass_base=base, pass_token=0.0, pass_answer=(seconds - base * steps) / tokens
        )

    def _begun(self, group: float, said: Mapping) -> float:
        """Return the time of answers that begin together on all engines, until the longest of all has ended."""
        width = self.lengths.most / _POINTS
        at = (np.arange(_POINTS) + 0.5) * width
        longer = np.minimum(self.lengths.longer(at), 1 - 1e-12)
        any_here, any_left = (-np.expm1(n * np.log1p(-longer)) for n in (group, max(group, self.responses)))
        alive = np.maximum(1.0, group * longer / np.maximum(any_here, 1e-300))
        step = valued(decode_step(*self.rows, batch=alive, context=self.prompt + at, **said), "pass_time")
        return float((any_left * step).sum() * width)

    def learning(self, devices: float) -> tuple[dict, Row]:
        """Return the letters of learners on `devices`, and a training step of these."""
        said = {"recompute": "full"} | dict(self.training)
        ways = np.prod([one_number(x, said.get(x, 1)) for x in ("tp", "pp", "cp")])
        if devices < ways or devices % ways:
            raise ValueError(f"{devices:g} devices that learn hold no whole number of models on {ways:g}")
        dp, packed = devices / ways, self.lengths.most + self.prompt
        seq = min(packed, self.lengths.square / self.lengths.mean + self.prompt)
        seq = max(64.0, round(seq / 64) * 64.0)
        batch = max(1.0, np.floor(packed / seq))
        if not (share := self.own("packed_share")):
            raise ValueError("packed_share=0 leaves nothing to learn from: more than 0 would do, such as 0.85")
        tokens = self.responses * (self.lengths.mean + self.prompt) / self.optimizer_steps / share
        micro = tokens / (dp * batch * seq)
        whole = max(1.0, round(micro))
        step = training_step(
            *self.rows, self.program, dp=dp, batch=batch, seq=seq, global_batch=whole * batch * dp, **said
        )
        seconds = valued(step, "step_time") * self.optimizer_steps * micro / whole
        return dict(train_devices=devices, learning_time=seconds), step

    def update(self, first: float, last: float) -> Row:
        found, (learnt, step) = self.writing(first), self.learning(last)
        found |= learnt | dict(
            devices=self.devices, responses=self.responses, prompt=self.prompt, age=self.age,
            response=self.lengths.mean, response_square=self.lengths.square, response_most=self.lengths.most,
            response_spread=self.lengths.spread, response_typical=self.lengths.typical, weight_bits=16.0,
        )  # fmt: skip
        found |= {n: x for n, x in self.program.items() if n in SYNC} | self.letters
        sheet = update_sheet(self.age > 0)
        row = sheet(*self.rows, **{n: x for n, x in found.items() if n in sheet.letters})
        more = _held(step) | ({"rollout_share": Cell(first / self.devices, "given")} if self.age else {})
        return Row(row.name, row.cells | more, missing=row.missing)

    def settled(self) -> Row:
        """Return the update of the call. With the best share, engines and learners take equally long."""
        if not self.age:
            return self.update(self.devices, self.devices)
        tp, cp, ep, pp = (int(one_number(x, self.training.get(x, 1))) for x in ("tp", "cp", "ep", "pp"))
        block = lcm(int(one_number("tp", self.rollout.get("tp", 1))), pp * lcm(tp * cp, ep))
        whole = int(self.devices // block)
        if whole < 2:
            raise ValueError(f"{self.devices:g} devices hold no engine beside learners on {block}: give more devices")
        at = cache(lambda blocks: self.update(blocks * block, self.devices - blocks * block))
        if self.share != "best":
            return at(min(max(round(self.devices * self.share / block), 1), whole - 1))
        known = itertools.chain.from_iterable(x.items() for x in (*self.rows, self.letters) if isinstance(x, Mapping))
        if several := next((n for n, x in known if np.ndim(x)), None):
            raise TypeError(
                f"the best share of devices is that of one update: give rollout_share, or {several} one value"
            )
        few, many = 1, whole - 1
        while few < many:
            middle = (few + many) // 2
            is_slow = at(middle).rollout_time >= valued(at(middle), "update_time")  # it waits for engines
            few, many = (middle + 1, many) if is_slow else (few, middle)
        return min((at(max(1, few - 1)), at(few)), key=lambda x: valued(x, "update_time"))


class RLStep(Guided):
    """An update of reinforcement learning: `rl_step(model, device, "nemo_rl", devices=128, ...)` returns a Row.

    `framework` is a row of `tables.frameworks` with an engine, such as "nemo_rl", or its name. `responses` answers of
    `response` tokens on average (with the cap) are lognormal with `response_spread`, and end at `response_most`.
    `rollout` and `training` are inputs of `serve` and of `training_step`: the layouts. With `age=0` all devices write
    answers that begin together, then all learn. With `age=1` and more, a `share` of the devices writes while the others
    learn from answers that are `age` updates old on average; "best" lets neither wait. `optimizer_steps` divide the
    answers. `reward_time` is the time of a reward model. Other inputs replace the program's, such as `step_overhead`.

    The Row has `update_time` and its parts, `rollout_tail`, `idle_share`, `staleness`, `rollout_wall`, `rollout_share`,
    `update_rate` and `update_cost`. Reading the prompts is left out. Raises ValueError for layouts that cannot run, and
    TypeError for unused inputs.
    """

    name = "rl_step"
    space = Space(
        axes=("update_time", "devices"),
        words={"framework": programs(), "share": ("best",), "rollout": ("tp=4",), "training": ("tp=4 pp=4",)},
        spelled={"share": partial(quantity, "rollout_share"), "rollout": str, "training": str},
    )
    finds = ("update_time",)

    choices = space.words
    doc = property(lambda self: type(self).__doc__)
    own = property(lambda self: named_parameters(self._asked))

    @property
    def takes(self) -> dict[str, float | str | None]:
        """The inputs of an update by name, with defaults."""
        inputs = [*update_sheet(True).inputs, *update_sheet(False).inputs, "step_overhead", "packed_share"]
        return dict.fromkeys(inputs) | {n: x.default for n, x in self.own.items()} | {"framework": "nemo_rl"}

    @property
    def gives(self) -> tuple[str, ...]:
        return tuple({**update_sheet(True).formulas, **update_sheet(False).formulas})

    @cached_property
    def letters(self) -> frozenset[str]:
        return frozenset({*self.takes, *self.gives})

    def __repr__(self):
        return 'rl_step(model, device, "nemo_rl", devices=, responses=, response=, rollout=, training=, ...)'

    def _asked(
        self, *knowns, framework=None, devices=128, responses=8192, response=5000, response_spread=0.8,
        response_most=28_672, prompt=120, age=None, share="best", rollout="tp=4", training="", optimizer_steps=1,
        **letters,
    ) -> _Asked:  # fmt: skip
        if stray := next((x for x in letters if x not in self.letters), None):
            raise TypeError(unused(self.name, stray, self.letters))
        named = [x for x in knowns if isinstance(x, str)] + [framework] * (framework is not None)
        knowns = tuple(x for x in knowns if not isinstance(x, str))
        program = framework_of(knowns, {"framework": named[-1] if named else None}) or frameworks.nemo_rl
        if "engine" not in program.words:
            raise ValueError(f"{program.name} has no engine that writes answers; these have: {', '.join(programs())}")
        rows = as_rows(tuple(x for x in knowns if not isinstance(x, Framework)))
        if strays := [x for x in rows if not isinstance(x, Mapping)]:
            raise TypeError(f"rl_step takes a model, a device and a framework by position, not {quoted(strays[0])}")
        for letter, kind in _ROWS.items():
            if (number := sum(letter in x for x in rows)) != 1:
                raise TypeError(f"rl_step takes one {kind}, not {number or 'none'}")
        if symbols := [n for row in rows for n, x in row.items() if isinstance(x, Basic)]:
            raise TypeError(f"rl_step is priced for numbers, not for symbols ({', '.join(symbols)})")
        age = age if age is not None else float(program.words["placement"] == "apart")
        lengths = dict(response=response, response_spread=response_spread, response_most=response_most)
        numbers = dict(devices=devices, responses=responses, age=age, optimizer_steps=optimizer_steps, prompt=prompt)
        own, numbers = ({n: one_number(n, x) for n, x in said.items()} for said in (lengths, numbers))
        used = {x for f in update_sheet(numbers["age"] > 0).formulas.values() for x in f.inputs}
        used = used.union(OF_PROGRAM) - {"response_typical"}  # which follows from the lengths of answers
        used -= set() if letters.get("expert_gathers", program.get("expert_gathers")) else {"active_params"}
        if stray := next((x for x in letters if x not in used), None):
            raise TypeError(f"{self.name} does not use {stray} at age={numbers['age']:g}")
        share = share if isinstance(share, str) and share == "best" else one_number("rollout_share", share)
        if not numbers["age"] and share != "best":
            raise ValueError("share is of age=1 and more: at age=0 all devices write answers, and then all learn")
        if numbers["devices"] > MOST_DEVICES:
            raise ValueError(f"devices={devices!r} is more than {MOST_DEVICES:,}, the most of an update")
        return _Asked(
            tuple(rows), program, lengths=_lengths(*own.values()), share=share, rollout=_layout("rollout", rollout),
            training=_layout("training", training), letters=letters, **numbers,
        )  # fmt: skip

    def __call__(self, *knowns, **letters) -> Row:
        row = self._asked(*knowns, **letters).settled()
        row.call = Call(self, tuple(frameworks[x] if isinstance(x, str) else x for x in knowns), letters)
        return row

    def learner(self, run: Row) -> Row:
        """Return a training step of the learners of an update that this call returned."""
        return self._asked(*run.call.knowns, **run.call.letters).learning(run.train_devices)[1]

    def unsaid(self, *knowns, **letters) -> dict[str, tuple]:
        """Return the inputs that a call leaves to defaults or its program: by name, value, source and other values."""
        asked = self._asked(*knowns, **letters)
        program, own = asked.program, {n: x.default for n, x in self.own.items()}
        own |= {"framework": "nemo_rl", "forward_passes": float(forward_passes_two.rhs)}
        found = {n: (own[n], "the default", x) for n, x in _OTHERS.items()}
        found["age"] = asked.age, program.name, (1 - min(asked.age, 1.0),)
        for name, cell in program.cells.items():
            if name in OF_PROGRAM and cell.low is not None:
                found[name] = cell.value, program.name, (cell.low, cell.high)
        said = {*letters, *("framework" for x in knowns if isinstance(x, Framework))}
        return {n: x for n, x in found.items() if n not in said}

    def sheet(self, knowns: tuple, letters: Mapping):
        """Return the sheet of an update, for callers that need its quantities."""
        return update_sheet(bool(letters.get("age", 0))), (), {}

    posed = posed


def _held(step: Row) -> dict[str, Cell]:
    """Return the cells of a learner's memory on one device, without the cells that they were computed from."""
    found = {n: Cell(step[n], "a training step of the learners") for n in HELD if n in step}
    low, high = (step.memory * x for x in SPREADS["memory"])
    return found | {"memory": replace(found["memory"], low=low, high=high)}


def _layout(name: str, given) -> dict:
    if isinstance(given, str):  # "tp=4 pp=2", with commas too, or as in Python: "dict(tp=4, recompute='full')"
        text = re.sub(r"^\s*dict\((.*)\)\s*$", r"\1", given)
        parts = (x.partition("=") for x in re.split(r"[\s,]+(?=\w+\s*=)", text.strip()) if x)
        given = {n.strip(): x.strip().strip("'\"") for n, _, x in parts}
    if not isinstance(given, Mapping) or not all(isinstance(x, str) and x for x in given):
        raise TypeError(f"{name} is a layout, such as {name}=dict(tp=4), not {quoted(given)}")
    return {n: one_number(n, x) if n in NOTATION else x for n, x in given.items()}


rl_step = RLStep()
