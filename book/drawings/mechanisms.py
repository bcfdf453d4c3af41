"""Drawings of mechanisms that several chapters use. Each function returns a `Scene`, which a notebook shows.

>>> from scalebook.book.drawings import ring
>>> ring(4).title
'A ring all-reduce of 4 devices'

All numbers are computed from a function's arguments: sizes by formulas, and who holds what by executing the algorithm.
"""

from itertools import pairwise
from math import cos, pi, sin

from scalebook.book.drawings.schematic import Box, Scene, text_width

from scalebook.block import LLAMA
from scalebook.inference.disaggregation import handover_whole
from scalebook.language import Row, show
from scalebook.memory import kv_cache
from scalebook.memory import state as training_memory
from scalebook.pipeline.simulation import Run
from scalebook.training.shardings import SHARDINGS

__all__ = [
    "block_tensors", "experts_exchange", "pipeline_phases", "prefill_decode_pools", "ring", "splits", "tiers",
    "zero_stages",
]  # fmt: skip

STEPS = {
    "query, key, value": ("Wq", "Wk", "Wv"), "attention": (), "output": ("Wo",), "up and gate": ("Wup", "Wgate"),
    "down": ("Wdown",),
}  # fmt: skip
SPLIT, WHOLE = 0.9, 0.45  # shades of a part that a device holds, and of what all have


def block_tensors(model: Row, weight_bits: float, kv_bits: float, context: float) -> Scene:
    """Draw the matrix products of a Llama block and what each reads: weights or one sequence's cache, sized by bytes.

    >>> from scalebook.tables import models
    >>> "weights, 117.4 MB" in block_tensors(models.llama3_8b, weight_bits=16, kv_bits=16, context=8192).description
    True
    """
    size = {
        x.name: float(x.elements.subs({s: model[s.name] for s in x.elements.free_symbols})) * weight_bits / 8
        for x in LLAMA.weights
    }
    read = {step: sum(size[x] for x in names) for step, names in STEPS.items()}
    read["attention"] = kv_cache(model, batch=1, context=context, kv_bits=kv_bits) / model.layers
    scene = Scene(
        f"A block of {model.name}, and what it reads",
        "Blue: what is computed, from top to bottom. Green: what must be read for it, in proportion. The weights are "
        f"the same for every sequence; the cache, here of {context:,.0f} tokens, is each sequence's own.",
    )
    scene.note((69, 14), "arithmetic", "middle", bold=True)
    scene.note((200, 14), "memory", bold=True)
    above = None
    for k, (step, amount) in enumerate(read.items()):
        top = 26 + 42 * k
        box = scene.tensor((2, top), (0.6,), "arithmetic", (134, 26), (step,), name=step)
        long = max(3, 132 * amount / max(read.values()))
        held = scene.tensor((200, top + 8), (0.8 if step != "attention" else 0.35,), "memory", (long, 18))
        scene.arrow(held._replace(y=top, height=26), box, kind="memory")
        scene.note((200, top + 4), f"{'cache' if step == 'attention' else 'weights'}, {show(amount, 'B')}")
        if above:
            scene.arrow(above, box, kind="arithmetic")
        above = box
    return scene


def splits(ways: int = 2) -> Scene:
    """Draw a product u = x W split by the columns of W and by its rows: what each device holds, computes and sends.

    >>> splits(2).height < 500
    True
    """
    scene = Scene(
        f"Two ways to split a product over {ways} devices",
        "By columns each device has all of x and makes its own columns of u: nothing is sent. By rows each has its "
        "part of x and makes an addend of all of u: orange, the sum over the devices.",
    )
    top = 14
    for split in ("columns", "rows"):
        scene.note((2, top), f"split by {split}", bold=True)
        made = []
        for k in range(ways):
            y = top + 10 + 74 * k
            own = [SPLIT * (j == k) for j in range(ways)]
            scene.device((2, y), f"device {k + 1}", size=(284, 66))
            scene.tensor((14, y + 26), (WHOLE,) if split == "columns" else own, "arithmetic", (54, 28), name="x")
            scene.note((84, y + 44), "×", "middle")
            scene.tensor((100, y + 22), own, "memory", (64, 38), split=split, name="its part of W")
            scene.note((182, y + 44), "=", "middle")
            full = (WHOLE,) if split == "rows" else own
            made.append(
                scene.tensor(
                    (200, y + 26), full, "arithmetic", (64, 28), name="u" if split == "columns" else "an addend of u"
                )
            )
        if split == "rows":
            for a, b in pairwise(made):
                scene.arrow(a.point(0.5, 1), b.point(0.5, 0))
                scene.arrow(b.point(0.3, 0), a.point(0.3, 1))
            scene.note((292, top + 14 + 37 * ways), "sum")
        top += 10 + 74 * ways + 22
    return scene


def ring(devices: int = 4) -> Scene:
    """Draw an executed ring all-reduce: how many addends each piece holds at the start, midway and at the end.

    >>> ring(6)
    Traceback (most recent call last):
        ...
    ValueError: a ring is drawn of 3 to 5 devices; this is 6
    """
    if not 3 <= devices <= 5:
        raise ValueError(f"a ring is drawn of 3 to 5 devices; this is {devices}")
    scene = Scene(
        f"A ring all-reduce of {devices} devices",
        "A number says how many devices' gradients a piece already holds. In each step every device sends one piece to "
        "its neighbour: first sums grow, until each device has one whole; then the whole ones go round. "
        "Point at it, and the pieces move.",
    )
    held = [[1] * devices for _ in range(devices)]
    half = devices - 1
    looks = {0: "at the start", 1: "after one step", half: f"after {half}: summed", 2 * half: f"after {2 * half}: done"}
    for step in range(2 * half + 1):
        sent = [(d - step) % devices if step < half else (d + 1 - step + half) % devices for d in range(devices)]
        if step in looks:
            k = list(looks).index(step)
            x, y = 2 + 172 * (k % 2), 14 + 168 * (k // 2)
            scene.note((x + 82, y), looks[step], "middle", bold=True)
            _round(scene, (x + 82, y + 82), held, sent if step < 2 * half else None)
        came = [(d, (d + 1) % devices, sent[d], held[d][sent[d]]) for d in range(devices)]
        for _, to, piece, addends in came:
            held[to][piece] = addends + held[to][piece] * (step < half)
    return scene


def _round(scene, centre, held, sent):
    """Draw devices on a circle, each with its pieces, and arrows to the next device for the pieces that are sent."""
    n, wide = len(held), 64
    angles = [2 * pi * d / n - pi / 2 for d in range(n)]
    boxes = [
        Box(centre[0] + 45 * cos(a) - wide / 2 - 4, centre[1] + 54 * sin(a) - 13, wide + 8, 26, f"device {d + 1}")
        for d, a in enumerate(angles)
    ]
    for box, pieces in zip(boxes, held, strict=True):
        shades, texts = [x / n for x in pieces], [str(x) for x in pieces]
        scene.device(box[:2], "", size=box[2:4])
        scene.tensor((box.x + 4, box.y + 4), shades, "arithmetic", (wide, 18), texts, name=f"{box.name} has {pieces}")
    for d in range(n if sent else 0):
        a, b = boxes[d], boxes[(d + 1) % n]
        down = b.y - a.y
        ends = (a.point(0.5, down > 0), b.point(0.5, down < 0)) if abs(down) > 20 else (a, b)
        scene.arrow(*ends, moving=True)


def tiers(device: Row, link: Row, blocks: int = 7) -> Scene:
    """Draw two memory tiers during offloading: one block computes, the next is copied in, the previous is copied out.

    >>> from scalebook.tables import accelerators, links
    >>> "450 GB/s" in tiers(accelerators.gb200, links.nvlink_c2c).description
    True
    """
    if blocks < 3:
        raise ValueError(f"a block at work has one before it and one behind, so 3 are the least; this has {blocks}")
    now, places = (blocks + 1) // 2, range(-1, 2)
    scene = Scene(
        f"Two tiers of memory behind {device.name}",
        "While a block is computed, the next is fetched and the last goes back. Near memory needs places for these "
        "three, the second tier one for every block. Nothing waits if orange takes no longer than blue.",
    )
    names = {x: f"block {now + x}" for x in places}
    work = scene.tensor((92, 2), (0.6,), "arithmetic", (156, 26), (f"computes {names[0]}",), name="arithmetic")
    near = scene.device((50, 66), f"near memory, {show(device.hbm_capacity, 'B')}", size=(240, 54))
    shades = [0.9 if x == 0 else 0.4 for x in places]
    scene.tensor((60, 88), shades, "memory", (220, 24), list(names.values()), name=", ".join(names.values()))
    scene.arrow(near, work, kind="memory")
    scene.note((180, 52), show(device.hbm_bandwidth, "B/s"))
    far = scene.device((2, 200), "second tier", size=(336, 56))
    numbers = [str(k + 1) for k in range(blocks)]
    scene.tensor((10, 224), [0.9 if x == str(now) else 0.4 for x in numbers], "memory", (320, 24), numbers)
    back, fetched = ((now + x - 0.5) / blocks for x in (-1, 1))
    scene.arrow(near.point(0.2, 1), far.point(back, 0))
    scene.arrow(far.point(fetched, 0), near.point(0.8, 1))
    scene.note((98, 164), "goes back", "end")
    scene.note((242, 164), "is fetched")
    scene.note((170, 157), f"{show(link.link_bandwidth, 'B/s')}\neach way", "middle")
    return scene


def zero_stages(
    devices: int = 4, weight_bits: float = 16, gradient_bits: float = 32, optimizer_bits: float = 96
) -> Scene:
    """Draw what each device holds of a model's state under each stage of ZeRO, with its bytes per parameter.

    >>> "7.5 B a parameter" in zero_stages(4, gradient_bits=16, weight_bits=32).description
    True
    """
    bits = dict(weight=weight_bits, gradient=gradient_bits, optimizer=optimizer_bits)
    scene = Scene(
        f"ZeRO on {devices} devices",
        "A box is a device; its bars are as high as their bits. Green is held; what is dashed lies on the other "
        "devices, and must come from them when it is needed.",
    )
    wide, gap = 262 / devices, 5
    high = {kind: 36 * x / max(bits.values()) for kind, x in bits.items()}
    for row, name in enumerate(("replicated", "zero1", "zero2", "zero3")):
        top = 14 + (sum(high.values()) + 50) * row
        formula = getattr(training_memory, name)
        letters = {"dp": devices, **{f"{kind}_bits": x for kind, x in bits.items()}}
        held = formula(**{x: letters[x] for x in formula.inputs}) / 8
        scene.note((2, top), name.replace("zero", "ZeRO-"), bold=True)
        scene.note((wide * devices - 4, top), f"{held:.3g} B a parameter", "end")
        for d in range(devices):
            scene.device((2 + wide * d, top + 8), "", size=(wide - 6, sum(high.values()) + 4 * gap))
        y = top + 8 + gap
        for kind, tall in high.items():
            whole = SHARDINGS[name].parts(kind) == ("one",)
            for d in range(devices):
                parts = (0.8,) if whole else [0.8 * (x == d) for x in range(devices)]
                scene.tensor((7 + wide * d, y), parts, "memory", (wide - 16, tall))
            scene.note((wide * devices + 4, y + tall / 2 + 4), f"{kind}s" if kind != "optimizer" else kind)
            y += tall + gap
    return scene


def pipeline_phases(run: Run) -> Scene:
    """Draw a simulated schedule while the pipeline fills, is full and drains: each device's passes and idle time.

    >>> from scalebook.pipeline import simulate
    >>> "closing" in pipeline_phases(simulate("1f1b", pp=4, microbatches=6)).description
    True
    """
    left, high = 16, 22
    unit = (338 - left) / float(run.makespan)
    work = [[x for x in run.slots if x.device == d] for d in range(run.pp)]
    full = max(x[0].start for x in work), min(x[-1].end for x in work)
    if full[0] >= full[1]:
        raise ValueError(f"{run} is never full: one device ends before another starts; take more micro-batches")
    scene = Scene(
        f"{run.schedule} opens and closes: {run.pp} devices, {run.microbatches} micro-batches",
        "Time runs to the right, a row is a device. Faint: forward passes, with their micro-batch; strong: backward. "
        f"Dashed is idle: the bubble, {float(run.bubble):.1%} of the work.".replace("%", " %"),
    )
    ends = [0, *full, run.makespan]
    for k, (name, anchor) in enumerate((("opening", "start"), ("full", "middle"), ("closing", "end"))):
        x = left + unit * float(ends[k]), left + unit * float(ends[k + 1])
        scene.note((x[0] + (x[1] - x[0]) * k / 2, 14), name, anchor, bold=True)
        scene.tensor((x[0] + 1, 20), (0.5,), "waiting", (x[1] - x[0] - 2, 4))
    for d, slots in enumerate(work):
        y = 32 + (high + 4) * d
        scene.note((0, y + 15), str(d + 1))
        scene.tensor((left, y), (0,), "waiting", (338 - left, high))
        for x in slots:
            wide = unit * float(x.end - x.start)
            first = x.operations[0]
            shade, text = 0.3 if first.kind == "F" else 0.95, str(first.microbatch + 1)
            fits = [text] if wide > text_width(text) + 2 else []
            scene.tensor((left + unit * float(x.start), y), [shade], "arithmetic", (wide, high), fits)
    return scene


def experts_exchange(devices: int = 4, experts: int = 8, top_k: int = 2) -> Scene:
    """Draw which device sends tokens to which in expert parallelism, if routers spread tokens evenly over experts.

    >>> experts_exchange(4, experts=6)
    Traceback (most recent call last):
        ...
    ValueError: 6 experts cannot be dealt out evenly to 4 devices
    """
    if experts % devices:
        raise ValueError(f"{experts} experts cannot be dealt out evenly to {devices} devices")
    each, wide = experts // devices, 340 / devices
    scene = Scene(
        f"Experts on {devices} devices",
        f"Above, each device's own tokens, of which every one goes to {top_k} of {experts} experts; below, the experts "
        "with the tokens of all. Orange crosses the network; what stays on its device is grey. "
        "The results come back the same way.",
    )
    above, below = [], []
    for d in range(devices):
        above.append(
            scene.device((2 + wide * d, 2), f"device {d + 1}", {"tokens": [0.5] * devices}, (wide - 8, 0), "arithmetic")
        )
    for d in range(devices):
        numbers = [str(d * each + k + 1) for k in range(each)]
        box = scene.device((2 + wide * d, 168), "", size=(wide - 8, 58))
        below.append(box)
        scene.tensor((8 + wide * d, 174), [0.5] * devices, "arithmetic", (wide - 20, 14))
        scene.tensor(
            (8 + wide * d, 196),
            [0.8] * each,
            "memory",
            (wide - 20, 24),
            numbers,
            name=f"experts {numbers[0]} to {numbers[-1]}",
        )
    for d, a in enumerate(above):
        for e, b in enumerate(below):
            ends = a.point((e + 0.5) / devices * 0.86 + 0.07, 1), b.point((d + 0.5) / devices * 0.86 + 0.07, 0)
            scene.arrow(*ends, kind="waiting" if d == e else "network")
    share = top_k * (devices - 1) / devices
    scene.note(
        (170, 246),
        f"a token sends {top_k} × ({devices} − 1)/{devices} = {share:g} copies\nof itself to other devices",
        "middle",
    )
    return scene


def prefill_decode_pools(
    model: Row,
    prompt: float,
    prompt_time: float,
    kv_bits: float,
    link_bandwidth: float,
    readers: int = 2,
    writers: int = 3,
) -> Scene:
    """Draw disaggregated serving: `readers` (prefill devices), `writers` (decode devices), and the caches sent between.

    >>> from scalebook.tables import models
    >>> drawn = prefill_decode_pools(models.llama3_70b, 1024, prompt_time=30e-3, kv_bits=16, link_bandwidth=50e9)
    >>> "a cache: 335.5 MB, at 50 GB/s: 6.711 ms" in drawn.description
    True
    """
    scene = Scene(
        "A pool that reads, a pool that writes",
        "Prompts are read on one pool, whose arithmetic is full; answers are written on the other, whose memory is. A "
        "request crosses once, with the keys and values of its prompt, to a device with a free place.",
    )
    reads, writes = [], []
    scene.note((67, 14), "read prompts", "middle", bold=True)
    scene.note((273, 14), "write answers", "middle", bold=True)
    for d in range(readers):
        reads.append(scene.device((2, 24 + 60 * d), f"device {d + 1}", size=(130, 52)))
        scene.tensor((10, 48 + 60 * d), (0.95,), "arithmetic", (114, 20), (f"{prompt:,.0f} tokens",))
    for d in range(writers):
        y = 24 + 60 * d
        writes.append(scene.device((208, y), f"device {readers + d + 1}", size=(130, 52)))
        scene.tensor(
            (216, y + 24), (0.7, 0.7, 0.7, 0.7, 0), "memory", (114, 20), name="caches of users, and a free place"
        )
    for k, a in enumerate(reads):
        for b in writes:
            scene.link(a, b)
        scene.arrow(a, writes[(k * writers + 1) // readers])
    cache = kv_cache(model, batch=1, context=prompt, kv_bits=kv_bits)
    late = handover_whole(model, prompt=prompt, prompt_time=prompt_time, kv_bits=kv_bits, link_bandwidth=link_bandwidth)
    under = 24 + 60 * readers + 12
    scene.note((2, under), f"a cache: {show(cache, 'B')},\nat {show(link_bandwidth, 'B/s')}: {show(late, 's')}")
    return scene
