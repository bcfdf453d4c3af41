"""Drawings of machines: data-sheet factors, the state of a model, a systolic array, tiled attention, a fat tree.

>>> systolic_array().title
'A systolic array of side 3'
"""

from collections.abc import Mapping
from math import ceil

import numpy as np
from scalebook.book.drawings.schematic import Scene
from scalebook.book.drawings.systolic import execute

from scalebook.attention.kernels import flash_traffic, query_tile, unfused_traffic
from scalebook.display import Grid
from scalebook.language import Row, show
from scalebook.machine.datasheet import printed_flops, printed_links
from scalebook.machine.roofline import ridge_intensity
from scalebook.machine.topologies import fat_tree_devices, switch_hops
from scalebook.memory.state import least_devices

__all__ = ["fat_tree", "headline_factors", "score_tiles", "state_and_memory", "systolic_array"]

STRONG, FAINT = 0.9, 0.3  # shades
RADIX, TIERS = 4, 3  # the smallest tree of switches whose way leads through a middle


def devices_beside(devices: Mapping[str, Row]) -> Grid:
    """Return a table of devices in the order of their memory, which marks the figures that are only announced.

    >>> from scalebook.tables import accelerators
    >>> "22 TB/s, announced" in repr(devices_beside(accelerators[["h100", "rubin"]]))
    True
    """
    rows = sorted(devices.values(), key=lambda row: row.hbm_capacity)

    def said(row, letter, unit):
        if letter not in row:
            return "not published"
        is_announced = row.cells[letter].note.startswith("preliminary")
        return show(row[letter], unit) + (", announced" if is_announced else "")

    ridges = [show(ridge_intensity(row), "FLOP/B") if "peak_bf16" in row else "not published" for row in rows]
    columns = {
        "capacity": ("hbm_capacity", "B"),
        "bandwidth": ("hbm_bandwidth", "B/s"),
        "in 16 bits": ("peak_bf16", "FLOP/s"),
    }
    columns |= {"in 4 bits": ("peak_fp4", "FLOP/s")}
    figures = {head: [said(row, *cell) for row in rows] for head, cell in columns.items()}
    return Grid({"": [row.name.split(" (")[0] for row in rows]} | figures | {"ridge in 16 bits": ridges})


def headline_factors(device: Row, printed_devices: int, sparsity_gain: float = 2, directions: float = 2) -> Scene:
    """Draw the factors in a data sheet's headline figures: sparsity, both directions of a link, all devices of a rack.

    >>> from scalebook.tables import accelerators
    >>> "printed 1.44 EFLOP/s" in headline_factors(accelerators.gb200.at("fp4"), printed_devices=72).description
    True
    """
    scene = Scene(
        f"What lines of a data sheet count: {device.name}",
        "Above, products with zeros (dashed), which are skipped and yet counted; then a link's two directions, added "
        "up; below, every device of a rack. A step on one device has the dense products, one way, and the strong part.",
    )
    sparse = printed_flops(device, sparsity_gain=sparsity_gain, printed_devices=1)
    links = printed_links(device, directions=directions, printed_devices=1)
    rack = printed_flops(device, sparsity_gain=sparsity_gain, printed_devices=printed_devices)
    dense = show(device.peak_flops, "FLOP/s")
    scene.note((2, 14), "with sparsity", bold=True)
    scene.tensor((2, 24), [STRONG, 0] * 4, "arithmetic", (148, 20), name="of four weights two are zero")
    scene.note((172, 30), f"printed {show(sparse, 'FLOP/s')}\ndense {dense}")
    scene.note((2, 76), "both ways", bold=True)
    ends = scene.device((2, 86), "device", size=(56, 34)), scene.device((94, 86), "switch", size=(56, 34))
    scene.arrow(ends[0].point(1, 0.3), ends[1].point(0, 0.3))
    scene.arrow(ends[1].point(0, 0.7), ends[0].point(1, 0.7))
    scene.note((172, 99), f"printed {show(links, 'B/s')}\none way {show(device.scaleup_bandwidth, 'B/s')}")
    scene.note((2, 152), f"{printed_devices} devices", bold=True)
    for first in range(0, printed_devices, 12):  # twelve in a row, a row every twelve units
        here = min(12, printed_devices - first)
        shades = [FAINT if first + k else 1 for k in range(here)]
        scene.tensor((2, 162 + first), shades, "arithmetic", (148 * here / 12, 11))
    scene.note((172, 182), f"printed {show(rack, 'FLOP/s')}\none device, dense:\n{dense}")
    return scene


def state_and_memory(
    model: Row, device: Row, weight_bits: float = 16, gradient_bits: float = 32, optimizer_bits: float = 96
) -> Scene:
    """Draw the bytes per parameter, and the devices that a model fills: its weights to serve, its state to train.

    >>> from scalebook.tables import accelerators, models
    >>> "to train, 18 B each: 15.9 devices" in state_and_memory(models.llama3_70b, accelerators.h100).description
    True
    """
    scene = Scene(
        f"{model.name} in the memory of {device.name}",
        "Above, one parameter, a square for each byte. Below, the devices that all of them fill, of "
        f"{show(device.hbm_capacity, 'B')} each, before the first activation.",
    )
    bits = dict(weight=weight_bits, gradient=gradient_bits, optimizer=optimizer_bits)
    for k, (name, x) in enumerate(bits.items()):
        scene.note((2, 15 + 22 * k), name)
        squares = [STRONG] * ceil(x / 8)
        scene.tensor((84, 3 + 22 * k), squares, "memory", (16 * len(squares), 16))
        scene.note((90 + 16 * len(squares), 15 + 22 * k), f"{x / 8:g} B")
    all_state = least_devices(device, params=model.params, **{f"{name}_bits": x for name, x in bits.items()})
    top = 96
    for use, kinds in (("serve", ["weight"]), ("train", list(bits))):
        held = sum(bits[name] for name in kinds)
        need = all_state * held / sum(bits.values())
        scene.note((2, top), f"to {use}, {held / 8:g} B each: {need:.1f} devices", bold=True)
        for d in range(ceil(need)):
            x, y = 2 + 42 * (d % 8), top + 8 + 34 * (d // 8)
            scene.device((x, y), "", size=(38, 28))
            scene.tensor((x + 4, y + 5), (STRONG,), "memory", (30 * min(1, need - d), 18))
        top += 34 * ceil(need / 8) + 30
    return scene


def systolic_array(side: int = 3, rows: int = 4) -> Scene:
    """Draw a systolic array just after its first column became busy: weights stay, inputs move right, sums move down.

    >>> systolic_array(5)
    Traceback (most recent call last):
        ...
    ValueError: an array is drawn of side 2 or 3; this is 5
    """
    if side not in (2, 3):
        raise ValueError(f"an array is drawn of side 2 or 3; this is {side}")
    scene = Scene(
        f"A systolic array of side {side}",
        "Green: weights, which stay. Blue: numbers, with the row of the product that they belong to; in each cycle "
        "they move to the right, and sums of products move down. Each row starts one cycle later.",
    )
    now = side - 1  # cycles after the weights are there
    _, busy = execute(np.ones((rows, side), int), np.ones((side, side), int), side)
    wide, high, left, top = 52, 48, 338 - 68 * side, 28
    scene.note((2, 14), "numbers wait", bold=True)
    scene.note((left, 14), "multipliers", bold=True)
    for k in range(side):
        y = top + 66 * k
        for late in range(1, rows - now + k):
            at = left - 16 - 28 * late
            scene.tensor((at, y + 25), (FAINT,), "arithmetic", (24, 17), (str(now - k + late + 1),))
        scene.arrow((left - 14, y + 33), (left, y + 33), kind="arithmetic")
        for j in range(side):
            x = left + 68 * j
            scene.device((x, y), "", size=(wide, high))
            scene.tensor((x + 6, y + 5), (STRONG,), "memory", (wide - 12, 14))
            works = busy[side + now, k, j]
            text = str(now - k - j + 1) if works else ""
            scene.tensor((x + 6, y + 25), (0.7 * works,), "arithmetic", (wide - 12, 17), (text,))
            if j + 1 < side:
                scene.arrow((x + wide, y + 33), (x + 68, y + 33), kind="arithmetic")
            scene.arrow((x + wide / 2, y + high), (x + wide / 2, y + 66), kind="arithmetic")
    scene.note((left - 10, top + 66 * side - 4), "sums", "end", bold=True)
    return scene


def score_tiles(model: Row, device: Row, seq: float, activation_bits: float = 16, tiles: int = 4) -> Scene:
    """Draw attention scores written whole to memory, and computed tile by tile in on-chip memory (FlashAttention).

    >>> from scalebook.tables import accelerators, models
    >>> "17.35 GB moved" in score_tiles(models.llama3_8b, accelerators.h100, seq=8192).description
    True
    """
    known = dict(batch=1, seq=seq, activation_bits=activation_bits)
    rows = query_tile(device, model, activation_bits=activation_bits)
    moved = unfused_traffic(model, known), flash_traffic(model, known, query_tile=rows)
    scene = Scene(
        f"Scores of {seq:,.0f} tokens, whole and in tiles",
        "Left, all scores lie in memory (green), and cross to the chip and back. Right, a core holds some queries "
        f"(on {device.name} {rows:,.0f} at the most) while keys and values stream past; one tile of scores is there at "
        "a time (blue), and those that are dashed never lie in memory.",
    )
    side = 120 / tiles
    for panel, title in enumerate(("unfused", "fused, in tiles")):
        x, top = 24 + 176 * panel, 60
        scene.note((x + 60, 14), title, "middle", bold=True)
        scene.note((x + 60, 30), "keys, values", "middle")
        scene.note((x - 13, 52), "Q", "middle")
        here = [STRONG if not panel or k == 1 else FAINT for k in range(tiles)]
        scene.tensor((x, 38), here, "memory", (120, 14), name="keys and values")
        scene.tensor((x - 20, top), here, "memory", (14, 120), split="rows", name="queries")
        for k in range(tiles):
            shades = [(0.6 if not panel else STRONG * (k == j == 1)) for j in range(tiles)]
            scene.tensor((x, top + side * k), shades, "arithmetic" if panel else "memory", (120, side))
        scene.note((x + 60, 198), f"{show(moved[panel], 'B')} moved", "middle")
    return scene


def fat_tree() -> Scene:
    """Draw the smallest fat tree with three tiers of switches, and one of the longest paths between two devices.

    >>> fat_tree().title
    '16 devices under 3 tiers of switches with 4 ports'
    """
    half = RADIX // 2
    devices = round(fat_tree_devices(switch_radix=RADIX, switch_tiers=TIERS))
    hops = round(switch_hops(switch_tiers=TIERS))
    switches = devices // half  # in each tier but the top, whose ports all lead down
    scene = Scene(
        f"{devices} devices under {TIERS} tiers of switches with {RADIX} ports",
        "Devices (green) below, switches above. Except at the top each switch has as many ports up as down, so that "
        f"nothing narrows. Orange: the farthest two devices meet at the top only, {hops} switches between them.",
    )
    rows = [_row(scene, count, y) for count, y in ((devices, 206), (switches, 144), (switches, 74), (switches // 2, 4))]
    links = _links(devices, half)
    for kind in ("waiting", "network"):  # the way lies on top of the others
        for tier, child, up, parent, down, on_way in links:
            if on_way == (kind == "network"):
                scene.link(rows[tier][child].point(up, 0), rows[tier + 1][parent].point(down, 1), kind)
    for box in rows[0]:
        scene.tensor((box.x + 3, box.y + 8), (STRONG,), "memory", (box.width - 6, 8))
    scene.note((170, 242), f"the longest way: {hops} switches", "middle")
    return scene


def _row(scene, count, y):
    """Draw a row of `count` equal boxes across the whole width of the drawing."""
    pitch = 340 / count
    wide = min(44, pitch - 5)
    return [scene.device((pitch * (k + 0.5) - wide / 2, y), "", size=(wide, 20)) for k in range(count)]


def _links(devices, half):
    """Return a three-tier tree's links: tier, child, its port, parent, its port, whether the longest path uses it."""
    ports = [(k + 0.5) / half for k in range(half)]
    switches = devices // half
    last = devices - 1, switches - 1, switches - half  # where the way comes down again; it goes up at the left
    links = [(0, d, 0.5, d // half, ports[d % half], d in (0, last[0])) for d in range(devices)]
    for k in range(switches):
        pod, i = divmod(k, half)
        for j in range(half):
            links.append((1, k, ports[j], pod * half + j, ports[i], j == 0 and k in (0, last[1])))
            links.append((2, k, ports[j], i * half + j, (pod + 0.5) / RADIX, j == 0 and k in (0, last[2])))
    return links
