"""Drawings of serving: weights and caches on devices, batches over time, a block's kernels, and fetched weights.

>>> from scalebook.book.drawings.serving import cache_holders
>>> cache_holders(tp=4).title
'Weights and caches on 4 devices'
"""

from collections.abc import Sequence
from itertools import pairwise

from scalebook.book.drawings.schematic import Scene

from scalebook.block import LLAMA, blocks_of
from scalebook.inference.shared import cache_ways
from scalebook.inference.simulation import simulate_serving
from scalebook.inference.step import decode_step
from scalebook.language import Row, show
from scalebook.pipeline import simulate

__all__ = ["batch_in_steps", "cache_holders", "copies_share_batch", "kernels_of_block", "weights_fetched"]

OWN, COMMON = 0.9, 0.4  # shades of a part that a device alone holds, and of what others hold too
KERNELS = {
    "norm": (), "query, key, value": ("Wq", "Wk", "Wv"), "attention": (), "output": ("Wo",), "all-reduce": (),
    "norm ": (), "up and gate": ("Wup", "Wgate"), "activation": (), "down": ("Wdown",), "all-reduce ": (),
}  # fmt: skip


def cache_holders(tp: int = 4, heads: Sequence[int] = (8, 2, 1)) -> Scene:
    """Draw the weights and the cache that each of `tp` devices holds, for several numbers of key-value heads (`heads`).

    >>> "2 heads: 1/2 of the cache on each" in cache_holders(tp=4).description
    True
    """
    scene = Scene(
        f"Weights and caches on {tp} devices",
        "A column is a device. Strong is held by it alone, faint by others too, dashed by others only. Weights are "
        "divided by all devices; a cache only by its heads: of fewer heads than devices several hold the same, and a "
        "latent, which is one for all heads, lies whole on each.",
    )
    wide = 338 / tp
    for k, count in enumerate((tp, *heads)):
        top = 14 + 50 * k
        ways = int(cache_ways(tp=tp, cache_heads=count))
        held = f"1/{ways}" if ways > 1 else "all"
        cached = f"{count} heads: {held} of the cache on each" if count > 1 else f"a latent: {held} of it on each"
        scene.note((2, top), cached if k else f"weights: {held} of them on each", bold=not k)
        for d in range(tp):
            mine = d * ways // tp
            shade = OWN if ways == tp else COMMON
            scene.tensor((2 + wide * d, top + 8), [shade * (x == mine) for x in range(ways)], "memory", (wide - 10, 22))
    return scene


def batch_in_steps(users: int = 5, places: int = 3, steps: int = 9, output: int = 5, seed: int = 0) -> Scene:
    """Draw continuous batching step by step: which requests wait, which are prefilled, and which get a token.

    >>> batch_in_steps(steps=2).description.count("waits")
    4
    """
    run = simulate_serving(
        prompt=1, output=output, shortest=0.3, users=users, requests=4 * users, max_batch=places, seed=seed,
        step=lambda batch, read: 1.0,
    )  # fmt: skip
    scene = Scene(
        f"A queue and a batch of {places}",
        "A column is a step, a number a request. Grey waits; strong blue has its prompt read, which gives its first "
        "token; faint blue gets one token more. When an answer ends, the next request takes its place in the "
        "next step, and nobody waits for the whole batch to end.",
    )
    left, high = 46, 24
    wide, waiting = (338 - left) / steps, users - places
    scene.note((0, 14), "step")
    scene.note((0, 38), "queue", bold=True)
    scene.note((0, 56 + high * waiting), "batch", bold=True)
    place_of = {}
    for now in range(steps):
        x = left + wide * now
        scene.note((x + wide / 2, 14), str(now + 1), "middle")
        there = [k for k, (a, b) in enumerate(zip(run.arrivals, run.ends, strict=False)) if a <= now < b]
        queue, batch = ([k for k in there if (run.starts[k] > now) == late] for late in (True, False))
        place_of = {k: p for k, p in place_of.items() if k in batch}
        for k in [x for x in batch if x not in place_of]:
            place_of[k] = min(set(range(places)) - set(place_of.values()))
        for p, k in enumerate(queue):
            at = x + 1, 22 + high * p
            scene.tensor(at, (0.4,), "waiting", (wide - 2, high - 3), [str(k + 1)], name=f"request {k + 1} waits")
        for p in range(places):
            of = [k for k in batch if place_of[k] == p]
            shade = [OWN if run.firsts[of[0]] > now else COMMON] if of else [0]
            at = x + 1, 40 + high * (waiting + p)
            scene.tensor(at, shade, "arithmetic", (wide - 2, high - 3), [str(k + 1) for k in of])
    return scene


def copies_share_batch(pp: int = 4, microbatches: int = 16, copies: Sequence[int] = (1, 2, 4)) -> Scene:
    """Draw one batch split over more and more copies of a 1F1B pipeline: one copy of each, on one time axis.

    >>> "4 copies of 4 micro-batches, bubble 75 %" in copies_share_batch().description
    True
    """
    runs = {n: simulate("1f1b", pp=pp, microbatches=microbatches // n) for n in copies}
    scene = Scene(
        "One batch, ever more copies",
        "Time runs to the right, a row is a device of one copy, dashed is idle. More copies have less work each, but "
        "a pipeline takes as long to fill and to empty: what is idle stays, and its share of the work grows.",
    )
    unit = 338 / max(float(x.makespan) for x in runs.values())
    top = 14
    for n, run in runs.items():
        said = f"{n} {'copies' if n > 1 else 'copy'} of {microbatches // n} micro-batches"
        scene.note((2, top), f"{said}, bubble {float(run.bubble):.0%}".replace("%", " %"))
        for d in range(pp):
            y = top + 7 + 15 * d
            scene.tensor((1, y), (0,), "waiting", (unit * float(run.makespan), 12))
            for x in run.slots:
                if x.device == d:
                    shade = 0.35 if x.operations[0].kind == "F" else OWN
                    size = unit * float(x.end - x.start), 12
                    scene.tensor((1 + unit * float(x.start), y), (shade,), "arithmetic", size)
        top += 15 * pp + 28
    return scene


def kernels_of_block(model: Row, device: Row, tp: int = 8, batch: int = 1, context: int = 4096) -> Scene:
    """Draw the kernels of one Llama block in a decode step, one after another: launch, reading and all-reduce time.

    >>> from scalebook.tables import accelerators, models
    >>> "all-reduce" in kernels_of_block(models.llama3_70b, accelerators.h200.at("fp8")).description
    True
    """
    pieces = block_pieces(model, device, tp, batch, context)
    whole = sum(sum(x.values()) for _, x in pieces)
    scene = Scene(
        f"A block of {model.name} on {tp} devices, kernel by kernel",
        "Time runs to the right, and each kernel begins when the last has ended. Grey is its launch, green what it "
        "reads, orange the waiting for other devices. Arithmetic and norms take less, and are left out.",
    )
    left = 122
    unit, now = (338 - left) / whole, 0.0
    for k, (name, parts) in enumerate(pieces):
        y = 2 + 22 * k
        scene.note((left - 6, y + 13), name.strip(), "end")
        for kind, takes in parts.items():
            scene.tensor((left + unit * now, y), (0.75,), kind, (unit * takes, 18))
            now += takes
    scene.note((338, 22 * len(pieces) + 18), f"{show(whole, 's')}, in each of {model.layers:g} blocks", "end")
    return scene


def block_pieces(model: Row, device: Row, tp: int, batch: int, context: int) -> list[tuple[str, dict[str, float]]]:
    """Return each kernel's name, and the seconds that it spends on its launch, on reading and on messages."""
    step = decode_step(model, device, tp=tp, batch=batch, context=context)
    size = _sizes(LLAMA, model)
    rate = step.stream_efficiency * step.hbm_bandwidth * tp
    pieces = []
    for name, weights in KERNELS.items():
        if name.startswith("all-reduce"):
            pieces.append((name, {"network": step.exchange_time / (2 * model.layers)}))
        elif name == "attention":
            pieces.append((name, {"waiting": step.read_launch, "memory": step.cache_time / model.layers}))
        else:
            read = sum(size[x] for x in weights) * step.weight_bits / 8 / rate
            pieces.append((name, {"waiting": step.kernel_launch} | ({"memory": read} if read else {})))
    return pieces


def _sizes(block, model):
    """Return the number of elements of each weight of a block, by name."""
    return {x.name: float(x.elements.subs({s: model[s.name] for s in x.elements.free_symbols})) for x in block.weights}


def weights_fetched(model: Row, tp: int, devices: int = 4, weight_bits: float = 16) -> Scene:
    """Draw how a block's weights come from the second tier: whole to every device, or a part each, then all-gathered.

    >>> from scalebook.tables import models
    >>> "whole" in weights_fetched(models.poster_96t, tp=64).description
    True
    """
    whole = sum(_sizes(blocks_of(model)[0], model).values()) * weight_bits / 8 / tp
    scene = Scene(
        f"A block of {model.name} fetched by {devices} data-parallel devices",
        "Below each device its second tier. Above, every device fetches the block's weights whole; below, each fetches "
        "its part, and the network between the devices brings the rest (faint). The more devices, "
        "the slower the link behind each may be.",
    )
    wide = 338 / devices
    for k, (way, share) in enumerate((("whole", 1), ("a part each", devices))):
        top = 14 + 158 * k
        scene.note((2, top), way, bold=True)
        scene.note((338, top), f"{show(whole / share, 'B')} over each link", "end")
        near = []
        for d in range(devices):
            mine = [x == d or share == 1 for x in range(devices)]
            x, size = 2 + wide * d, (wide - 20, 0)
            near.append(
                scene.device((x, top + 8), f"device {d + 1}", {"weights": [OWN if m else COMMON for m in mine]}, size)
            )
            far = scene.device((x, top + 84), f"tier {d + 1}", {"weights": [OWN * m for m in mine]}, size)
            scene.arrow(far, near[-1])
        for a, b in pairwise(near):
            if share > 1:
                scene.arrow(a.point(1, 0.35), b.point(0, 0.35))
                scene.arrow(b.point(0, 0.75), a.point(1, 0.75))
    return scene
