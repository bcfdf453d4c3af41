"""Drawings of a fleet: stragglers, tiles on cores, a faster device, a prefix cache, and training at two sites.

>>> prefixes_kept().title
'6 prompts, and room for 2 prefixes'
"""

from collections.abc import Mapping, Sequence
from math import ceil

from scalebook.book.drawings.schematic import Scene, text_width

from scalebook.language import Row, show
from scalebook.machine.tiles import fill, sharded_columns

__all__ = ["next_device", "prefixes_kept", "shared_tiles", "two_sites", "waiting_for_last"]

WORKS, WAITS = 0.8, 0.4  # shades


def waiting_for_last(pieces: Sequence[Sequence[float]]) -> Scene:
    """Draw devices that wait for the slowest after every piece of work, and the same devices waiting only at the end.

    pieces: the times of each piece of work, one for each device.

    >>> "behind every piece: done after 4.5" in waiting_for_last([(1, 2), (2.5, 1)]).description
    True
    """
    scene = Scene(
        "Waiting for the last, often and once",
        "Time runs to the right, a row is a device. Blue is work, and the same above and below; grey waits for the "
        "last; at an orange line all add up what they have. Delays that are not awaited average out.",
    )
    left, high = 16, 18
    unit = (336 - left) / sum(map(max, pieces))
    for k, often in enumerate((True, False)):
        top = 14 + k * (22 * len(pieces[0]) + 34)
        bars, sums = _schedule(pieces, often)
        scene.note(
            (0, top), f"waiting {'behind every piece' if often else 'once'}: done after {sums[-1]:.3g}", bold=True
        )
        for device in range(len(pieces[0])):
            scene.note((0, top + 24 + 22 * device), str(device + 1))
        for device, start, end, works in bars:
            kind, shade = ("arithmetic", WORKS) if works else ("waiting", WAITS)
            scene.tensor((left + unit * start, top + 10 + 22 * device), (shade,), kind, (unit * (end - start), high))
        for now in sums:
            scene.tensor((left + unit * now - 1.5, top + 6), (1,), "network", (3, 22 * len(pieces[0]) + 4))
    return scene


def _schedule(pieces, often):
    """Return each period as (device, start, end, whether it works), and the times at which all devices have arrived."""
    bars, sums, now = [], [], [0.0] * len(pieces[0])
    for k, piece in enumerate(pieces):
        for device, takes in enumerate(piece):
            bars.append((device, now[device], now[device] + takes, True))
            now[device] += takes
        if often or k == len(pieces) - 1:
            sums.append(max(now))
            bars += [(device, came, sums[-1], False) for device, came in enumerate(now) if came < sums[-1]]
            now = [sums[-1]] * len(now)
    return bars, sums


def shared_tiles(
    rows: float, columns: float, tile_rows: float, tile_columns: float, cores: int, ways: Sequence[int] = (1, 2, 4)
) -> Scene:
    """Draw a matrix product split over more and more devices (`ways`): its tiles in waves, and cores without a tile.

    >>> "2 devices: 48 % filled" in shared_tiles(900, 700, tile_rows=256, tile_columns=128, cores=10).description
    True
    """
    scene = Scene(
        f"{rows:,} rows and {columns:,} columns, shared",
        f"A box is a device, a row in it a wave, a place in it one of {cores} cores. Blue is a tile, fainter the more "
        "of it sticks out over the result; a dashed core has none. Shared by more devices, a product has fewer waves "
        "on each, and a last one that is not full costs more.",
    )
    top = 14
    for tp in ways:
        each = sharded_columns(weight_columns=columns, tp=tp)
        filled = fill(rows=rows, columns=each, copies=1, tile_rows=tile_rows, tile_columns=tile_columns, cores=cores)
        text = f"{tp} device{'s' * (tp > 1)}: {filled:.0%} filled".replace("%", " %")
        scene.note((2, top), text, bold=True)
        tiles = _asked(rows / tile_rows, each / tile_columns)
        waves = [tiles[k : k + cores] for k in range(0, len(tiles), cores)]
        wide = (342 - 6 * tp) / tp - 2
        for d in range(tp):
            x = 2 + d * (wide + 6)
            scene.device((x, top + 8), "", size=(wide, 18 * len(waves) + 6))
            for k, wave in enumerate(waves):
                parts = [*wave, *[0] * (cores - len(wave))]
                scene.tensor((x + 4, top + 12 + 18 * k), parts, "arithmetic", (wide - 8, 16))
        top += 18 * len(waves) + 40
    return scene


def _asked(down, across):
    """Return the used share of each tile, for a result that is `down` tiles high and `across` tiles wide."""
    return [min(1, down - y) * min(1, across - x) for y in range(ceil(down)) for x in range(ceil(across))]


def next_device(gains: Mapping[str, Row], old: str, new: str) -> Scene:
    """Draw steps on a device and on its successor: reading and computing take less time, and the rest does not.

    gains: rows returned by `next_generation`, by the name of the step.

    >>> from scalebook.inference import generation_gain, next_generation
    >>> row = next_generation(reading_share=0.5, computing_share=0.25, bandwidth_ratio=2, flops_ratio=2.5)
    >>> "half read: 1.67 times as fast" in next_device({"half read": row}, "old", "new").description
    True
    """
    scene = Scene(
        f"A step on {old}, and on {new}",
        "Green is reading, which gets faster as bandwidth does, blue arithmetic, as FLOPS do. Grey, launches and "
        "messages, stays as it is. Dashed is the time that the new device saves.",
    )
    left = max(text_width(x) for x in (old, new)) + 6
    whole = 338 - left
    for k, (name, row) in enumerate(gains.items()):
        top = 14 + 90 * k
        scene.note((0, top), f"{name}: {row.generation_gain:.2f} times as fast", bold=True)
        read, compute = row.reading_share, row.computing_share
        for j, (label, bytes_, flops) in enumerate(((old, 1, 1), (new, row.bandwidth_ratio, row.flops_ratio))):
            x, y = left, top + 10 + 32 * j
            scene.note((0, y + 17), label)
            scene.tensor((left, y), (0,), "waiting", (whole, 26))
            parts = (
                ("memory", read / bytes_, "read"),
                ("arithmetic", compute / flops, "compute"),
                ("waiting", 1 - read - compute, "wait"),
            )
            for kind, share, text in parts:
                wide = whole * share
                if wide > 0:
                    fits = (text,) if wide > text_width(text) + 4 else ()
                    scene.tensor((x, y), (WAITS if kind == "waiting" else WORKS,), kind, (wide, 26), fits)
                x += wide
    return scene


def prefixes_kept(asked: str = "ABACAB", held: int = 2) -> Scene:
    """Draw prompts (a letter of `asked` is a prompt's prefix) and a cache of the `held` most recently used prefixes.

    >>> "found: 2 of 6" in prefixes_kept().description
    True
    """
    scene = Scene(
        f"{len(asked)} prompts, and room for {held} prefixes",
        "Each prompt begins with a prefix, named by a letter, and goes on with words of its own. Blue is computed; "
        "green was in memory and is not. Who finds no place takes that of the one not asked for the longest.",
    )
    scene.note((2, 14), "kept then", bold=True)
    scene.note((150, 14), "prompts, one after another", bold=True)
    rows = _found(asked, held)
    for k, (letter, found, kept) in enumerate(rows):
        y = 24 + 30 * k
        places = [*kept, *[""] * (held - len(kept))]
        memory = scene.tensor((2, y), [WORKS * bool(x) for x in places], "memory", (80, 22), places)
        begins = f"{letter}, {'found' if found else 'computed'}"
        prefix = scene.tensor(
            (150, y), (WORKS,), "memory" if found else "arithmetic", (112, 22), (begins,), name=begins
        )
        scene.tensor((262, y), (WAITS,), "arithmetic", (76, 22), ("its own",))
        scene.arrow(*((memory, prefix) if found else (prefix, memory)), kind="memory")
    scene.note((2, 24 + 30 * len(rows) + 12), f"found: {sum(x[1] for x in rows)} of {len(rows)}")
    return scene


def _found(asked, held):
    """Return each prompt's prefix, whether the cache had it, and the prefixes cached then, most recent first."""
    kept, rows = [], []
    for letter in asked:
        found = letter in kept
        kept = [letter, *(x for x in kept if x != letter)][:held]
        rows.append((letter, found, tuple(kept)))
    return rows


def two_sites(trained: Row, device: Row) -> Scene:
    """Draw two sites that train one model, the link between them, and a round of local steps with its exchange.

    trained: the row that `training_apart` returns for the two sites.

    >>> from scalebook.tables import accelerators, models
    >>> from scalebook.runs import training_apart
    >>> h100 = accelerators.h100.at("bf16")
    >>> row = training_apart(models.llama3_405b, h100, sites=2, devices=8192, mfu=0.4, batch_tokens=16e6,
    ...                      exchange_bits=16, site_bandwidth="10 GB/s", site_distance=1000, local_steps=1)
    >>> "at 10 GB/s: 81." in two_sites(row, h100).description
    True
    """
    scene = Scene(
        "Two sites and the line between them",
        "Inside a site every device has a port of its own; between the sites there is one line for all. Each site "
        "holds the whole model, green. After its steps it waits, grey, until the line has carried the exchange.",
    )
    sites, ports = [], 8
    for k in range(2):
        x = 2 + 206 * k
        sites.append(scene.device((x, 2), f"site {k + 1}", {"the model": [WORKS]}, (130, 122)))
        for port in range(ports):
            box = scene.tensor((x + 6 + 15 * port, 44), (WORKS,), "arithmetic", (12, 16))
            scene.arrow(box.point(0.5, 1), (x + 12 + 15 * port, 78))
        scene.tensor((x + 6, 78), (1,), "network", (118, 5))
        inside = trained.devices * device.scaleout_bandwidth
        scene.note((x + 65, 99), f"{trained.devices:,.0f} devices,\n{show(inside, 'B/s')} in all", "middle")
    scene.arrow((170, 80.5), sites[0].point(1, 78.5 / 122))
    scene.arrow((170, 80.5), sites[1].point(0, 78.5 / 122))
    scene.note((170, 70), show(trained.site_bandwidth, "B/s"), "middle")
    left, work = 40, trained.local_steps * trained.step_time
    unit = (338 - left) / (work + trained.site_exchange)
    steps = "a step" if trained.local_steps == 1 else f"{trained.local_steps:g} steps"
    for y, label in ((152, "sites"), (182, "line")):
        scene.note((0, y + 15), label)
    scene.tensor((left, 152), (WORKS,), "arithmetic", (unit * work, 22))
    scene.tensor((left + unit * work, 152), (WAITS,), "waiting", (unit * trained.site_exchange, 22))
    scene.tensor((left, 182), (0,), "waiting", (unit * work, 22))
    scene.tensor((left + unit * work, 182), (WORKS,), "network", (unit * trained.site_exchange, 22))
    sent, line = show(trained.site_bytes, "B"), show(trained.site_bandwidth, "B/s")
    scene.note((left, 144), f"{steps}: {show(work, 's')}")
    scene.note((left, 219), f"{sent} at {line}: {show(trained.site_exchange, 's')}")
    return scene
