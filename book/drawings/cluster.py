"""Drawings of several devices (the walls of a large run, link tiers, splits, layouts), and of low-precision weights.

>>> layouts_of_devices().title
'Eight devices, laid out in 4 of 10 ways'
"""

from collections.abc import Sequence
from itertools import product
from math import prod

from scalebook.book.drawings.schematic import Scene

from scalebook.language import Row, show
from scalebook.memory.formats import weight_bits_pruned, weight_bits_scaled
from scalebook.runs import groups_of_batch

__all__ = ["layouts_of_devices", "node_and_ports", "one_scale", "split_in_two", "two_of_four", "two_walls"]

HELD, FAINT = 0.85, 0.4  # shades


def two_walls(
    layers: float, message_time: float, batch_tokens: float, ridge_tokens: float, stage_microbatches: float = 2
) -> Scene:
    """Draw a run's latency wall (sums of `message_time` seconds one by one) and bandwidth wall (a batch over groups).

    >>> said = two_walls(layers=126, message_time=16e-6, batch_tokens=16e6, ridge_tokens=500).description
    >>> "126 blocks × 4 sums × 16 µs = 8.064 ms a step" in said and "at most 16,000 groups" in said
    True
    """
    groups = groups_of_batch(
        batch_tokens=batch_tokens, ridge_tokens=ridge_tokens, stage_microbatches=stage_microbatches
    )
    scene = Scene(
        "Two walls of a run",
        "Above, time runs to the right: blue are the products of a block, orange the sums between devices, each of "
        "which waits for the one before. Below, a batch is dealt out to groups of devices: each reads its weights "
        "(green) for its few tokens (blue), and its devices share what they made (orange).",
    )
    scene.note((2, 14), "latency: one sum after another", bold=True)
    for k in range(4):
        scene.tensor((2 + 84 * k, 24), (0.6,), "arithmetic", (46, 24))
        scene.tensor((48 + 84 * k, 24), (0.6,), "network", (36, 24), ("sum",))
    scene.note((86, 64), "a block forward", "middle")
    scene.note((254, 64), "and backward", "middle")
    scene.note((170, 84), f"{layers:g} blocks × 4 sums × {show(message_time, 's')} = "
               f"{show(4 * layers * message_time, 's')} a step", "middle")  # fmt: skip
    scene.note((2, 116), "moving data: a batch dealt out", bold=True)
    batch = scene.tensor((2, 126), [0.5] * 16, "arithmetic", (336, 18), name=f"a batch of {batch_tokens:,.0f} tokens")
    for k in range(4):
        box = scene.device((2 + 86 * k, 168), "a group", size=(78, 70))
        scene.arrow(batch.point((box.x + 37) / 336, 1), box.point(0.5, 0), kind="arithmetic")
        scene.tensor((box.x + 6, 192), (0.5,), "arithmetic", (66, 12))
        one, two = (scene.tensor((box.x + x, 212), (HELD,), "memory", (22, 18)) for x in (6, 50))
        scene.link(one, two, "network")
    scene.note((170, 257), f"{batch_tokens:,.0f} tokens, {ridge_tokens:,.0f} in a micro-batch:\n"
               f"at most {groups:,.0f} groups", "middle")  # fmt: skip
    return scene


def node_and_ports(device: Row) -> Scene:
    """Draw two nodes: the links inside a node and each device's network port, with widths in proportion to bandwidth.

    >>> from scalebook.tables import accelerators
    >>> "50 GB/s for each device" in node_and_ports(accelerators.h100).description
    True
    """
    count = int(device.scaleup_size)
    if count > 8:
        raise ValueError(f"a node that is drawn has at most 8 devices; one of {device.name} has {count}")
    near, far = (show(x, "B/s") for x in (device.scaleup_bandwidth, device.scaleout_bandwidth))
    scene = Scene(
        f"Two nodes of {device.name}",
        f"Green are devices, each with memory of its own at {show(device.hbm_bandwidth, 'B/s')}. Orange links are as "
        "wide as they are fast: wide to the devices of a node, narrow to all others.",
    )
    pitch, wide = 328 / count, 27
    narrow = wide * device.scaleout_bandwidth / device.scaleup_bandwidth
    for k, y in enumerate((2, 172)):
        scene.device((2, y), "", size=(336, 96))
        ups, links, chips, ports = (y + 22, y + 42, y + 62, y + 90) if k == 0 else (y + 54, y + 34, y + 6, y - 26)
        scene.note((170, y + 15 if k == 0 else y + 89), f"node {k + 1}", "middle", bold=True)
        scene.tensor((6, ups), (0.3,), "network", (328, 20), (f"inside: {near} for each device",))
        for d in range(count):
            middle = 6 + pitch * (d + 0.5)
            scene.tensor((middle - wide / 2, links), (0.8,), "network", (wide, 20))
            scene.tensor((middle - 16, chips), (0.6,), "memory", (32, 28), (str(d + 1),))
            scene.tensor((middle - narrow / 2, ports), (0.8,), "network", (narrow, 32))
    scene.tensor((2, 124), (0.3,), "network", (336, 22), ("",), name=f"outside: {far} for each device")
    scene.note((170, 139), f"outside: {far} for each device", "middle")
    return scene


def split_in_two() -> Scene:
    """Draw how much state and activations the first of two devices holds under each way to split a model in two.

    >>> "pipeline, 1F1B: 1/2 of the state, all of the activations" in split_in_two().description
    True
    """
    scene = Scene(
        "What a split between two devices divides",
        "Green is what the first of two devices holds; dashed is the other's. Blocks lie below each other, the width "
        "of a block runs to the right. Tensor parallelism divides both. A pipeline halves the blocks, but its first "
        "stage keeps two micro-batches under way; data-parallel copies bring tokens of their own.",
    )
    scene.note((130, 14), "state", "start", bold=True)
    scene.note((224, 14), "activations", "start", bold=True)
    left, top, every, whole = ((1, 0), (1, 0)), ((1, 1), (0, 0)), ((1, 0), (0, 1)), ((1, 1), (1, 1))
    ways = {
        "data parallel": (whole, [whole]),
        "ZeRO-3 (FSDP)": (every, [whole]),
        "tensor parallel": (left, [left]),
        "pipeline, 1F1B": (top, [top, top]),
    }
    words = {2: "1/2", 4: "all"}
    for k, (name, (state, kept)) in enumerate(ways.items()):
        y = 24 + 58 * k
        scene.note((2, y + 26), name)
        parts = [sum(map(sum, x)) for x in (state, *kept)]
        said = words[parts[0]], words[sum(parts[1:])]
        for x, cells in zip((130, 224, 284), (state, *kept), strict=False):
            for row, halves in enumerate(cells):
                first = f"{name}: {said[0]} of the state, {said[1]} of the activations" if x == 130 else ""
                scene.tensor((x, y + 15 * row), [HELD * c for c in halves], "memory", (54, 15), name=first)
        for x, text in zip((157, 251 + 30 * (len(kept) - 1)), said, strict=True):
            scene.note((x, y + 44), text, "middle")
    return scene


def layouts_of_devices(
    layouts: Sequence[tuple[int, int, int]] = ((8, 1, 1), (2, 4, 1), (2, 2, 2), (1, 2, 4)),
) -> Scene:
    """Draw eight devices in several layouts, each a (tp, pp, dp): who shares a product, who is a stage, who a copy.

    >>> layouts_of_devices([(2, 2, 3)])
    Traceback (most recent call last):
        ...
    ValueError: a layout of eight devices multiplies to 8; 2 × 2 × 3 is 12
    """
    for x in layouts:
        if prod(x) != 8:
            raise ValueError(f"a layout of eight devices multiplies to 8; {' × '.join(map(str, x))} is {prod(x)}")
    all_ways = sum(prod(x) == 8 for x in product((1, 2, 4, 8), repeat=3))
    scene = Scene(
        f"Eight devices, laid out in {len(layouts)} of {all_ways} ways",
        "A cell is a device. Devices in one box share every product (tp); arrows lead to the next stage of a pipeline "
        "(pp); rows are copies with other tokens (dp). More of one leaves less for the others.",
    )
    y = 14
    for tp, pp, dp in layouts:
        scene.note((2, y), f"tp {tp} · pp {pp} · dp {dp}", bold=True)
        gap = min(24, (336 - pp * (22 * tp + 8)) / max(1, pp - 1))
        for copy in range(dp):
            before = None
            for stage in range(pp):
                first = (copy * pp + stage) * tp
                box = scene.device((2 + stage * (22 * tp + 8 + gap), y + 8 + 34 * copy), "", size=(22 * tp + 8, 28))
                numbers = [str(first + i + 1) for i in range(tp)]
                scene.tensor((box.x + 4, box.y + 4), [FAINT] * tp, "arithmetic", (22 * tp, 20), numbers)
                if before:
                    scene.arrow(before, box)
                before = box
        y += 34 * dp + 30
    return scene


def one_scale(element_bits: int = 4, scale_bits: int = 8, block_values: int = 16) -> Scene:
    """Draw a block of quantized values and the scale that they share, with widths in proportion to their bits.

    >>> "(16 × 4 + 8) bits / 16 = 4.5 bits a value" in one_scale().description
    True
    """
    each = weight_bits_scaled(element_bits=element_bits, scale_bits=scale_bits, zero_bits=0, block_values=block_values)
    scene = Scene(
        "Values with one scale",
        "Each part is as wide as its bits. The values of a block are multiplied by its one scale; a larger block "
        "has fewer bits of scale for each value, and coarser steps where its largest value is larger.",
    )
    unit = 330 / (element_bits * block_values + scale_bits)
    wide = unit * element_bits * block_values
    scene.note((2, 14), f"{block_values} values of {element_bits} bits")
    scene.note((338, 14), "a scale", "end")
    scene.tensor((2, 24), [FAINT] * block_values, "memory", (wide, 24))
    scene.tensor((8 + wide, 24), (0.95,), "memory", (unit * scale_bits, 24))
    scene.note((170, 68), f"({block_values} × {element_bits} + {scale_bits}) bits / {block_values} = "
               f"{float(each):g} bits a value", "middle")  # fmt: skip
    return scene


def two_of_four(element_bits: int = 16, place_bits: int = 2, groups: int = 3) -> Scene:
    """Draw 2:4 sparsity: of every four weights two are kept, and their values and positions are stored.

    >>> "9 bits instead of 16" in two_of_four().description
    True
    """
    each = weight_bits_pruned(element_bits=element_bits, place_bits=place_bits, kept_weights=2, group_weights=4)
    scene = Scene(
        "Two of four neighbours are kept",
        "Above, groups of four weights: dashed ones are left out. Below, what is stored of them: two weights, and "
        f"beside each the {place_bits} bits, drawn wider than they are, that say which of the four it was.",
    )
    kept = [(1, 4), (2, 3), (1, 2), (2, 4), (1, 3), (3, 4)]
    scene.note((2, 14), "a weight's places")
    for k in range(groups):
        x, pair = 2 + 336 / groups * k, kept[k % len(kept)]
        wide = 336 / groups - 12
        places = range(1, 5)
        above = scene.tensor(
            (x, 22), [HELD if p in pair else 0 for p in places], "memory", (wide, 24), list(map(str, places))
        )
        scene.tensor((x, 76), [HELD, FAINT, HELD, FAINT], "memory", (wide, 24), ("", str(pair[0]), "", str(pair[1])))
        scene.arrow(above.point(0.5, 1), (x + wide / 2, 76), kind="memory")
    scene.note((170, 122), f"a weight takes {float(each):g} bits instead of {element_bits}", "middle")
    return scene
