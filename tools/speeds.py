"""The speeds that README.md states, beside what peers reach: `python -m tools.speeds`, or `make bench`, measures ours.

They are committed, as errors are in record.json: `scalebook/measurements/speeds.json`.  Ours are seconds of one core's
work, so that other work on the machine does not slow them; peers' are of a run by their own commands on an idle machine
of two cores, on the day that stands beside them.
"""

import contextlib
import datetime
import io
import json
import platform
import time
from pathlib import Path

from scalebook.calculon import Strategies, application, library
from scalebook.inference import serve
from scalebook.search import search
from scalebook.tables import accelerators, models
from scalebook.training import training_step

from .benchmarks import SPACE

KEPT = Path(__file__).parents[1] / "scalebook" / "measurements" / "speeds.json"
PEERS = {
    "calculons": dict(who="Calculon", value=62, unit="s", day="2026-11-21"),
    "strategies": dict(who="Calculon", value=177, unit="a second", day="2026-11-21"),
    "layouts": dict(who="AIConfigurator 0.12", value=90 / 7.8, unit="a second", day="2026-11-21"),
    "step": dict(who="Calculon; SimuMax 1.2", value=[2.9e-3, 50e-3], unit="s", day="2026-11-21"),
}


def spent(call) -> tuple:
    """What a call gives, and its seconds of one core's work."""
    start = time.process_time()
    found = call()
    return found, time.process_time() - start


def calculons():
    """Calculon's search of Turing-NLG 530B on 5,128 A100s, strategy for strategy, by Calculon's own formulas."""
    machine, model = library.systems["a100_80g"], library.models["turing-530B"]
    asked = dict(devices=5128, global_batch=2520, fused=True, progress=False)
    _, seconds = spent(lambda: search(Strategies(machine), application(model), **asked))
    return dict(value=seconds, unit="s", what="Calculon's search of Turing-NLG 530B on 5,128 A100s")


def strategies():
    """Of Megatron-1T on 4,096 H100s, with all that a strategy may say: the search of `tools.benchmarks`."""
    found, seconds = spent(lambda: ran(SPACE))
    return dict(value=found[0] / seconds, unit="a second", what="strategies of training priced")


def ran(code: str) -> list:
    """What a text of the benchmarks prints, run here."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(code, {})
    return json.loads(said.getvalue())


def layouts():
    asked = dict(prompt=1000, output=300, tpot="50 ms", progress=False)
    h200 = accelerators.h200.at("fp8")
    found, seconds = spent(lambda: search(serve, models.deepseek_v3, h200, devices=64, users=range(1, 513), **asked))
    return dict(value=found.count / seconds, unit="a second", what="layouts of serving priced")


def step():
    """One step of a strategy whose kind was priced before."""
    h100, asked = accelerators.h100.at("bf16"), dict(tp=8, pp=4, global_batch=512, seq=8192, schedule="1f1b")
    training_step(models.llama3_70b, h100, dp=8, **asked)  # its sheet is built once for a kind of strategy
    ways = [*range(1, 21)] * 20
    _, seconds = spent(
        lambda: [
            training_step(models.llama3_70b, h100, dp=x, **asked | dict(global_batch=4 * x)).step_time for x in ways
        ]
    )
    return dict(value=seconds / len(ways), unit="s", what="one training step, called by itself")


def main() -> None:
    ours = {f.__name__: f() for f in (calculons, strategies, layouts, step)}
    for x in ours.values():
        x["value"] = float(f"{x['value']:.2g}")
        print(f"{x['what']:<60} {x['value']:g} {x['unit']}")
    machine = f"{platform.machine()}, Python {platform.python_version()}, one core"
    kept = dict(machine=machine, day=f"{datetime.date.today()}", scalebook=ours, peers=PEERS)
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
