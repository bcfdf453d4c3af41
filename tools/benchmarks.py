"""`make bench`: how fast the package is and how heavy its pages are.  Printed, and written to bench.json."""

import gzip
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import sympy

from scalebook.block import LLAMA
from scalebook.display import calculator
from scalebook.inference.tokens import decoding
from scalebook.language import Formula, code, symbol
from scalebook.machine.roofline import ridge_intensity
from scalebook.memory.serving import kv_cache
from scalebook.tables import accelerators, models
from scalebook.training import training_step
from scalebook.training.rules import check
from tests.browser import browser, new_page, serve
from tests.test_validity import interleaved

ROOT = Path(__file__).parents[1]
SITE = ROOT / "book" / "_build" / "html"
CHAPTER = "notebooks/1-scaling-compute/memory-bottlenecks.html"


def seconds(call, repeat=7, at_least=0.02):
    """The median time of one call, each sample long enough to be read off the clock: of one core's work, for beside
    other work on the machine a call takes twice as long, and no longer than before in the same process.
    """

    def run(number):
        start = time.process_time()
        for _ in range(number):
            call()
        return time.process_time() - start

    number = 1
    while run(number) < at_least:
        number *= 2
    return statistics.median(run(number) / number for _ in range(repeat))


def importing():
    """Import of the package beyond `import sympy, numpy`, in fresh processes."""

    def run(code):
        start = spent()
        subprocess.run([sys.executable, "-c", code], check=True)
        return spent() - start

    def spent():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    base, ours = (
        "import sympy, numpy",
        "import sympy, numpy; import scalebook.memory; from scalebook.tables import accelerators, models",
    )
    run(ours)
    return statistics.median(run(ours) - run(base) for _ in range(9))


def hundred_operations():
    """The roofline time of one transformer block, summed over its listing."""
    flops, traffic = LLAMA.flops / symbol("peak_flops"), LLAMA.traffic / symbol("hbm_bandwidth")
    return Formula("block", "roofline_time", sympy.Max(flops, traffic, evaluate=False))


def rate(formula, rows=1_000_000):
    rng = np.random.default_rng(0)
    letters = {name: rng.uniform(1, 9, rows) for name in formula.inputs}
    return rows / seconds(lambda: formula(**letters), repeat=5)


def by_hand(operations, rows=1_000_000, block=16_384):
    """Rows a second of as many products by NumPy, in place and in the core's cache: the limit of the arithmetic."""
    a, b = np.full(block, 1.5), np.full(block, 1.000001)

    def run():
        for _ in range(rows // block):
            for _ in range(operations):
                np.multiply(a, b, out=a)
            a.fill(1.5)

    return rows // block * block / seconds(run, repeat=3)


# The first sheet of a process, CPU seconds beside the import.
FIRST = """
import time
from scalebook import {sheet}
from scalebook.tables import accelerators, models
model, device = models.llama3_8b, accelerators.h100.at("bf16")
start = time.process_time()
{sheet}(model, device, {known})
print(time.process_time() - start)
"""
DECODING = dict(sheet="decoding", known="batch=8, context=8192, weight_bits=16, kv_bits=16")
TRAINING = dict(sheet="training_step", known="tp=8, dp=8, microbatches=8, seq=8192")

# The best of all strategies of Megatron-1T at one system size in thirty-three, of every power of two; two processes.
SWEPT = """
import json, resource
from concurrent.futures import ProcessPoolExecutor
from scalebook.book.measured.sizes import EACH, SYSTEMS, at_sizes
with ProcessPoolExecutor(2) as pool:
    found = at_sizes("megatron-1T", SYSTEMS[0], EACH[::33], pool, progress=False)
peak = sum(resource.getrusage(x).ru_maxrss for x in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 2**20
print(json.dumps([*(sum(getattr(x, n) for x in found.values()) for n in ("count", "seconds")), peak]))
"""


def step_by_hand():
    """Seconds of a training step's arithmetic as one Python function of floats, and of the call that it is part of."""
    model, device = models.llama3_8b, accelerators.h100.at("bf16")
    known = dict(tp=8, dp=8, microbatches=8, seq=8192)

    def step():
        return training_step(model, device, **known)

    whole, row = seconds(step), step()
    names = [n for n, x in row.cells.items() if x.formula is not None]
    inputs = [n for n, x in row.cells.items() if x.formula is None]
    steps = [(n, row.cells[n].formula.guarded) for n in names]
    function = code.point(inputs, steps, names)
    values = [row[n] for n in inputs]
    return seconds(lambda: function(*values)), whole


def planner(address, chromium):
    """The planner's page: seconds to an answer, strategies it goes through a second, compressed bytes of its script."""
    weight = compressed(SITE / "_static" / "planner.js")
    times, speed = [], []
    for _ in range(3):
        with new_page(chromium, viewport={"width": 1300, "height": 900}) as shown:
            start = time.perf_counter()
            shown.goto(f"{address}/book/planner.html", wait_until="commit")
            shown.wait_for_function(PLANNED, timeout=120_000)
            times.append(time.perf_counter() - start)
            said = shown.locator(".pl small").all_inner_texts()
            priced = next((x for x in map(PRICED.search, said) if x), None)
            if priced:
                speed.append(float(priced[1].replace(",", "")) / (float(priced[2]) * (1e-3 if priced[3] else 1)))
    return statistics.median(times), statistics.median(speed) if speed else float("nan"), weight


PLANNED = "document.querySelector('.pl-num') && !document.querySelector('.pl[aria-busy], progress')"
PRICED = re.compile(r"of ([\d,]+) strategies .*gone through in ([\d.]+) (m?)s")


def build():
    start = time.perf_counter()
    command = ["make", "site", f"BIN={Path(sys.executable).parent}"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - start


# When a curve is first drawn, in milliseconds of the page's own clock since it was asked for.
LIVE = """new MutationObserver((_, own) => {
  if (!document.querySelector(".sb-calculator .sb-curve path")) return;
  globalThis.live = performance.now();
  own.disconnect();
}).observe(document, { childList: true, subtree: true });"""


def page(address, chromium):
    """Bytes a first visit fetches (as a server that compresses sends them), and seconds of two kinds.

    Those until a calculator answers, and those that the page's own thread computes until it rests.
    """
    times, work, weight = [], [], 0
    for _ in range(5):
        with new_page(chromium, viewport={"width": 1300, "height": 900}) as shown:
            fetched = []
            metrics = shown.context.new_cdp_session(shown)
            metrics.send("Performance.enable", {"timeDomain": "threadTicks"})
            shown.on(
                "requestfinished",
                lambda r, fetched=fetched: fetched.append(r.url.removeprefix(address).partition("?")[0]),
            )
            shown.add_init_script(LIVE)
            shown.goto(f"{address}/{CHAPTER}", wait_until="commit")
            shown.wait_for_function("globalThis.live")
            times.append(1e-3 * shown.evaluate("globalThis.live"))
            shown.wait_for_load_state("load")
            shown.wait_for_timeout(1500)  # fonts come later
            counted = {x["name"]: x["value"] for x in metrics.send("Performance.getMetrics")["metrics"]}
            work.append(counted["TaskDuration"])
            files = [SITE / url.lstrip("/") for url in set(fetched)]
            weight = sum(compressed(x) for x in files if x.is_file())
    return weight, statistics.median(times), statistics.median(work)


def compressed(path):
    data = path.read_bytes()
    return len(data) if path.suffix in (".woff2", ".woff", ".png") else len(gzip.compress(data, 6))


# Calculon's search of Megatron-1T on 4,096 GPUs, strategy for strategy, each priced by Calculon's own formulas.
CALCULONS = """
import json, resource
from scalebook.calculon import Strategies, application, library
from scalebook.search import search
machine, model = library.systems["h100_80g_nvl8"], library.models["megatron-1T"]
found = search(Strategies(machine), application(model), devices=4096, global_batch=4096)
strategies = found.fitting + sum(found.rejected.values())
print(json.dumps([strategies, found.seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20]))
"""

# The same search in our words, of all that is priced.  As there: every tp, pp, dp,
# chunks and batch that divide, recompute none, attention only or full, sequence parallelism or not, attention fused or
# not, optimizer sharded or not, the collectives of tp hidden in three degrees, of dp in two, each of weights,
# activations and optimizer near or away.  It has besides, and we have not: a third kind of tp collective and gathering
# an input again; we have besides: cp, two more shardings, five more schedules, transfers hidden or not.
SPACE = """
import json, resource
from scalebook.search import search
from scalebook.tables import accelerators, models
from scalebook.training import training_step
found = search(
    training_step, models.megatron_1t, accelerators.h100.at("bf16"), devices=4096, global_batch=4096, seq=2048,
    host_capacity="512 GB", host_bandwidth="450 GB/s", lift=["tp within scaleup_size"], **dict(
        recompute=["none", "selective", "full"], sequence_parallel=[True, False], attention=["flash", "unfused"],
        sharding=["replicated", "zero1", "zero2", "zero3"], cp=[1, 2, 4], batch=[2**i for i in range(13)],
        schedule=["1f1b", "interleaved", "gpipe", "zb_h1", "zb_h2", "zb_v", "dualpipe"],
        chunks=[2**i for i in range(8)], tp_overlap=[0, 0.5, 0.9], dp_overlap=[0, 1], pp_overlap=[0, 1],
        weight_offload=[0, 1], activation_offload=[0, 1], optimizer_offload=[0, 1],
    ),
)
print(json.dumps([found.count, found.seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20]))
"""


# Layouts that serve DeepSeek-V3 within a target: every tp, ep, attention_dp and exchange on up to 64 devices of two
# kinds, with each number of users; and on up to 1,024 the copies too, with the users that a rate takes.
SERVED = """
import json, resource
from scalebook.inference import serve
from scalebook.search import search
from scalebook.tables import accelerators, models
devices = [accelerators[x].at("fp8") for x in ("h200", "b200")]
asked = dict(prompt=1000, output=300, tpot="50 ms", progress=False)
by_users = search(serve, models.deepseek_v3, devices, devices=64, users=range(1, 2049), **asked)
by_rate = search(serve, models.deepseek_v3, devices, devices=1024, rate=400, **asked)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([by_users.count, by_users.seconds, by_rate.count, by_rate.seconds, peak]))
"""


def searching(code):
    """What is measured in a fresh process: of searches strategies, seconds and peak memory (GiB), their sheets built in
    the time.
    """
    return json.loads(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def main():
    by_floats, step = step_by_hand()
    h100, llama = accelerators.h100, models.llama3_8b
    knowns = dict(batch=8, context=8192, weight_bits=16, kv_bits=16)
    box = calculator(
        decoding, "token_time", also=["decode_rate", "idle_fraction"], device=accelerators, model=models,
        precision=["bf16", "fp8"], weight_bits=[16, 8], kv_bits=[16, 8], batch=(1, 1024), context=(128, 131072),
    )  # fmt: skip
    places = iter(range(10**9))

    def event():
        box.choose(batch=1 + next(places) % 18)

    hundred, strategy = hundred_operations(), interleaved()
    batch = np.arange(1, 1_000_001, dtype=float)
    theirs, theirs_searched, theirs_peak = searching(CALCULONS)
    strategies, searched, peak = searching(SPACE)
    swept, swept_seconds, swept_peak = searching(SWEPT)
    first_sheet, first_step = (
        statistics.median(searching(FIRST.format(**x)) for _ in range(5)) for x in (DECODING, TRAINING)
    )
    operations = hundred.rhs.count_ops()
    by_users, users_seconds, by_rate, rate_seconds, served_peak = searching(SERVED)
    figures = {
        "import beyond sympy and numpy (CPU s)": (importing(), 0.3),
        "one evaluation, by a row (µs)": (1e6 * seconds(lambda: ridge_intensity(h100)), 100),
        "one evaluation, by a row and keywords (µs)": (
            1e6 * seconds(lambda: kv_cache(llama, batch=8, context=8192, kv_bits=16)),
            100,
        ),
        f"one sheet of {len(decoding.formulas)} letters (µs)": (
            1e6 * seconds(lambda: decoding(llama, h100, **knowns)),
            None,
        ),
        "one check of a strategy (ms)": (1e3 * seconds(lambda: check(*strategy)), 1),
        "one slider event in Python (ms)": (1e3 * seconds(event), 5),
        f"formula of {operations} operations (million a second)": (1e-6 * rate(hundred), -10),
        "  the limit: as many products in NumPy, by hand": (1e-6 * by_hand(operations), None),
        "decoding sheet over a million batches (million a second)": (
            1 / seconds(lambda: decoding(llama, h100, **knowns | dict(batch=batch)), repeat=3),
            None,
        ),
        "Calculon's search of Megatron-1T on 4,096 (million strategies)": (1e-6 * theirs, -14.55),
        "first sheet of a process, decoding (CPU s)": (first_sheet, 0.1),
        "first sheet of a process, a training step (CPU s)": (first_step, 0.1),
        "a training step (ms)": (1e3 * step, 0.5),
        "  the limit: its arithmetic as one function of floats": (1e3 * by_floats, None),
        "Calculon's search (s)": (theirs_searched, 2),
        "Calculon's search (million strategies a second)": (1e-6 * theirs / theirs_searched, -1),
        "Calculon's search, peak memory (GiB)": (theirs_peak, 1),
        "Megatron-1T at 63 sizes (million strategies)": (1e-6 * swept, None),
        "the same, two processes (million strategies a second)": (1e-6 * swept / swept_seconds, None),
        "the same, peak memory of a process and its largest child (GiB)": (swept_peak, 2),
        "our search of Megatron-1T on 4,096 (million strategies)": (1e-6 * strategies, -14.55),
        "the same (s)": (searched, 20),
        "the same (million strategies a second)": (1e-6 * strategies / searched, -1),
        "the same, peak memory (GiB)": (peak, 1),
        "search of layouts that serve DeepSeek-V3 (million layouts)": (1e-6 * by_users, None),
        "the same (million layouts a second)": (1e-6 * by_users / users_seconds, -0.1),
        "layouts whose users a rate takes (million a second)": (1e-6 * by_rate / rate_seconds, None),
        "both, peak memory (GiB)": (served_peak, 1),
        "site build (s)": (build(), None),
    }
    with browser() as chromium, serve(SITE) as address:
        weight, ready, work = page(address, chromium)
        ready_planner, planner_speed, planner_weight = planner(address, chromium)
    figures["chapter page, compressed (MB)"] = (weight / 1e6, 0.7)
    figures["chapter page, time to a live calculator (s)"] = (ready, 0.8)
    figures["chapter page, work of its thread (s)"] = (work, None)
    figures["planner, time to the first answer (s)"] = (ready_planner, 1.5)
    figures["planner, strategies gone through a second in its first search"] = (planner_speed, -1e5)
    figures["planner, compressed script (kB)"] = (1e-3 * planner_weight, 230)
    for name, (value, aim) in figures.items():
        said = ""
        if aim is not None:  # a negative aim is a lower bound
            met = value >= -aim if aim < 0 else value <= aim  # of what is not a number neither holds
            said = f"aim {'at least' if aim < 0 else 'at most'} {abs(aim):g}: {'met' if met else 'MISSED'}"
        print(f"{name:<60}{value:>10.3g}  {said}")
    machine = dict(
        python=platform.python_version(), machine=platform.machine(), cores=os.cpu_count(), sympy=sympy.__version__,
        numpy=np.__version__,
    )  # fmt: skip
    (ROOT / "bench.json").write_text(
        json.dumps({"machine": machine, "figures": {n: v for n, (v, _) in figures.items()}}, indent=1)
    )
    subprocess.run([sys.executable, "-m", "tools.speeds"], cwd=ROOT, check=True)  # those that README.md states


if __name__ == "__main__":
    main()
