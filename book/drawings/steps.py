"""Drawings of training steps: gradient sums, the parts of a step, a run's costs, flags, and deep and wide models.

>>> from scalebook.book.drawings.steps import steps_and_sums
>>> steps_and_sums(step_time=4, site_exchange=4.8).title
'Steps, and the sums between them'

The package's formulas compute all numbers of a drawing from the function's arguments.
"""

from collections.abc import Sequence

from scalebook.book.drawings.schematic import Scene

from scalebook.display.meanings import PARTS
from scalebook.flags import Setup, frameworks
from scalebook.language import Row, show
from scalebook.runs import sites_lost_waiting
from scalebook.training.shapes import block_params_wide, hidden_of_size, layers_of_size

__all__ = ["chain_of_costs", "deep_and_wide", "flags_of_a_step", "steps_and_sums", "time_of_a_step"]

# A step's parts in the order in which a device comes to them, and what each is.
ORDER = {
    "step_forward": "arithmetic", "step_again": "arithmetic", "step_backward": "arithmetic", "step_head": "arithmetic",
    "tp_exposed": "network", "cp_exposed": "network", "ep_exposed": "network", "pp_exposed": "network",
    "offload_exposed": "memory", "bubble_time": "waiting", "host_exposed": "waiting",
    "dp_exposed": "network", "optimizer_time": "memory",
}  # fmt: skip


def steps_and_sums(step_time: float, site_exchange: float, compression: float = 4, local_steps: int = 10) -> Scene:
    """Draw two replicas that sum gradients after every step, compressed, or only every `local_steps`. Times in seconds.

    >>> "after every 10 steps: 11 % lost" in steps_and_sums(step_time=4, site_exchange=4.8).description
    True
    """
    if local_steps != int(local_steps) or local_steps < 1:
        raise ValueError(f"steps between two sums are a whole number from 1 on; these are {local_steps}")
    scene = Scene(
        "Steps, and the sums between them",
        "Time runs to the right; the rows are two of the replicas. Blue is a step, which each takes by itself; orange "
        "the sum of what they found, for which all wait. Smaller sums leave more time for steps, and so do rarer ones.",
    )
    unit = 338 / (local_steps * step_time + site_exchange)
    ways = {
        "after every step": (site_exchange, 1),
        f"{compression:g} times smaller": (site_exchange / compression, 1),
        f"after every {local_steps} steps": (site_exchange, local_steps),
    }
    for k, (said, (takes, steps)) in enumerate(ways.items()):
        y, now, done = 14 + 66 * k, 0.0, 0
        lost = sites_lost_waiting(site_exchange=takes, local_steps=steps, step_time=step_time)
        scene.note((1, y), f"{said}: {100 * lost:.0f} % lost")
        while (left := 338 - unit * now) > 1:
            is_sum = done == steps
            lasts, rows = (takes, (8,)) if is_sum else (step_time, (8, 26))
            for down in rows:
                size = min(unit * lasts, left), 34 if is_sum else 16
                scene.tensor((1 + unit * now, y + down), (0.8,), "network" if is_sum else "arithmetic", size)
            now, done = now + lasts, 0 if is_sum else done + 1
    return scene


def chain_of_costs(run: Row) -> Scene:
    """Draw how parameters and tokens give a run's device hours, and how these give dollars, electricity and carbon.

    >>> from scalebook.tables import accelerators, models, ranges
    >>> from scalebook.runs import run_costs
    >>> h100 = {x: accelerators.h100[x] for x in ("peak_flops", "tdp")}
    >>> run = run_costs(models.llama3_405b, h100, ranges.usual, train_tokens=15.6e12, devices=16384)
    >>> "× 2.95 $/h" in chain_of_costs(run).description
    True
    """
    scene = Scene(
        "What a run costs, factor by factor",
        "Blue is arithmetic. An arrow multiplies or divides by what stands beside it, so one per cent of any factor is "
        "one per cent of all that follows. Everything is paid in hours of devices.",
    )
    params = scene.device((2, 2), f"{show(run.active_params)} parameters", size=(184, 26))
    tokens = scene.device((192, 2), show(run.train_tokens, "token") + "s", size=(146, 26))
    work = scene.tensor((2, 62), (0.6,), "arithmetic", (336, 26), (show(run.run_flops, "FLOP"),), name="arithmetic")
    hours = scene.device((2, 138), f"{show(run.device_hours, 'h')} of devices", size=(336, 26))
    dollars = scene.device((2, 214), show(run.run_cost, "$"), size=(152, 26))
    energy = scene.device((166, 214), show(run.run_energy, "MWh"), size=(172, 26))
    carbon = scene.device((166, 274), f"{show(run.run_carbon, 't')} of CO₂", size=(172, 26))
    for a, b, x, factor in (
        (params, work, 60, "× 6 operations"),
        (tokens, work, 216, ""),
        (work, hours, 60, f"÷ {show(run.peak_flops, 'FLOP/s')}, the peak,\n÷ {show(run.mfu, '%')}, the share of it"),
        (hours, dollars, 20, f"× {show(run.price_hour, '$/h')}"),
        (hours, energy, 184, f"× {show(run.device_power, 'W')} a device,\n× {show(run.pue)}, the PUE"),
        (energy, carbon, 184, f"× {show(run.carbon_intensity, 't/MWh')}"),
    ):
        scene.arrow((x, a.y + a.height), (x, b.y), kind="waiting")
        middle = (a.y + a.height + b.y) / 2
        scene.note((x + 10, middle + (4 if "\n" not in factor else -3)), factor)
    return scene


def flags_of_a_step(setup: Setup, run: Row, shown: Sequence[str]) -> Scene:
    """Draw the `shown` flags of a configuration, the letter that each sets, the first formula that uses it, the step.

    >>> from scalebook.tables import accelerators, models
    >>> from scalebook.flags import read
    >>> from scalebook.training import training_step
    >>> setup = read("--tensor-model-parallel-size 8 --micro-batch-size 1 --global-batch-size 64 --lr 1e-4")
    >>> run = training_step(models.llama3_8b, accelerators.h100.at("bf16"), **setup.knowns, dp=1, seq=8192)
    >>> "--micro-batch-size; batch = 1" in flags_of_a_step(setup, run, ["--micro-batch-size", "--lr"]).description
    True
    """
    scene = Scene(
        "From a flag to a step",
        "A flag says a letter or a word, which enters formulas; the first of them is named, and together they give the "
        "step. Dashed: a flag that has no letter, since nothing here depends on it.",
    )
    known = frameworks()[setup.framework]
    step = scene.device((284, 20), "a step", size=(54, 50 * len(shown) - 28))
    for k, flag in enumerate(shown):
        y, entry = 13 + 50 * k, known.find(flag.removeprefix("--"))
        names = [x for x in entry.names if x in setup.knowns] if entry else []
        scene.note((2, y), flag, bold=True)
        if not names:
            scene.tensor((2, y + 7), (0,), size=(122, 22), texts=("no letter",), name="no letter")
            continue
        value = setup.knowns[names[0]]
        said = f"{names[0]} = {value:g}" if isinstance(value, int | float) else f"{names[0]} = {value}"
        letter = scene.tensor((2, y + 7), (0.35,), "waiting", (122, 22), (said,), name=said)
        formula = entry.formulas()[0]
        enters = scene.tensor((140, y + 7), (0.5,), "arithmetic", (128, 22), (formula,), name=formula)
        scene.arrow(letter, enters, kind="waiting")
        scene.arrow(enters.point(1, 0.5), (step.x, y + 18), kind="arithmetic")
    scene.note(step.point(0.5, 0.62), show(run.step_time, "s").replace(" ", "\n"), "middle")
    return scene


def time_of_a_step(run: Row) -> Scene:
    """Draw the parts of a training step one after another, and the collectives that overlap with one of them.

    >>> from scalebook.tables import accelerators, models
    >>> from scalebook.training import training_step
    >>> run = training_step(models.llama3_8b, accelerators.h100.at("bf16"), tp=2, dp=4, global_batch=64, seq=8192)
    >>> time_of_a_step(run).description.startswith("forward")
    True
    """
    scene = Scene(
        "A training step, part by part",
        "Each part begins where the one above it ends, so none counts a second twice. Blue is arithmetic; orange "
        "messages that are waited for; grey the bubble; green what waits for memory. Faint: messages that run beside "
        "the backward pass.",
    )
    left, wide, y, now = 190, 148, 2.0, 0.0
    unit = wide / run.step_time
    for part, kind in ORDER.items():
        takes = run.get(part, 0)
        if not takes:
            continue
        scene.note((2, y + 12), PARTS[part].word)
        scene.note((left - 6, y + 12), f"{takes / run.step_time:.1%}".replace("%", " %"), "end")
        scene.tensor((left + unit * now, y), (0.8,), kind, (unit * takes, 16))
        hidden = _hidden(run) if part == "step_backward" else 0
        if hidden:
            y += 20
            scene.note((2, y + 12), "messages beside it")
            scene.tensor((left + unit * now, y), (0.25,), "network", (unit * hidden, 16))
        y, now = y + 20, now + takes
    return scene


def _hidden(run):
    """Return the seconds of collectives in a step that overlap with weight gradients."""
    fits = min(run.tp_beside * run.tp_async, run.weight_gradient_compute)
    return run.microbatches * run.stage_blocks * fits


def deep_and_wide(params: float, aspects: tuple[float, float] = (50, 400), bars: int = 8) -> Scene:
    """Draw a deep and a wide model with equal parameters as stacks of bars. `aspects` is width over depth, deep first.

    >>> "322 blocks; 16,091 wide" in deep_and_wide(1e12).description
    True
    """
    if not aspects[0] < aspects[1]:
        raise ValueError(f"the first aspect is the deep model's, so the smaller; these are {aspects[0]}, {aspects[1]}")
    widths, depths = ([f(params=params, aspect=x) for x in aspects] for f in (hidden_of_size, layers_of_size))
    each = depths[1] / bars
    scene = Scene(
        f"A deep and a wide model of {show(params)} parameters",
        f"A bar is {each:.0f} blocks, as wide as the model. The areas are equal, and so are the parameters. The higher "
        "stack keeps more of each token and sends more: both go as the widths of all blocks together. The lower has "
        "larger blocks, and a block must be near while it is at work.",
    )
    counts = [round(x / each) for x in depths]
    sizes = [(144 * x / widths[1], 16 * x / widths[1]) for x in widths]
    bottom = 50 + max(n * size[1] for n, size in zip(counts, sizes, strict=True))
    for centre, aspect, hidden, layers, n, (wide, high) in zip(
        (85, 255), aspects, widths, depths, counts, sizes, strict=True
    ):
        top = bottom - n * high
        scene.note((centre, top - 36), f"aspect {aspect:g}", "middle", bold=True)
        scene.note((centre, top - 21), f"{layers:,.0f} blocks", "middle")
        scene.note((centre, top - 6), f"{hidden:,.0f} wide", "middle")
        shades = [0.5] * n
        scene.tensor((centre - wide / 2, top), shades, "memory", (wide, n * high), split="rows", name="a stack of them")
        scene.note((centre, bottom + 16), f"a block: {show(block_params_wide(hidden=hidden))}", "middle")
        scene.note((centre, bottom + 31), f"all widths: {show(layers * hidden)}", "middle")
    return scene
