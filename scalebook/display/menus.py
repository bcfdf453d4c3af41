"""What menus of calculators take of a table's rows, and where sliders stop."""

from collections.abc import Iterable, Mapping

from scalebook.inference.assumptions import GROUPED, LATENT

__all__ = ["READ", "as_read", "cut", "steps", "told"]

# By a formula that says how the H100 reads a kind of cache, the cell in which a device says so of its own kernels.
READ = {f.name: f"{f.letter}_{kind}" for kind, own in (("grouped", GROUPED), ("latent", LATENT)) for f in own}


def as_read(row: dict, read: Mapping[str, str]) -> dict:
    """A row that says, of what its device reads caches with, what the kind of cache decides, if it says anything.

    >>> as_read(dict(letters=dict(read_launch_grouped=1e-5)), {"read_launch": "read_launch_grouped"})["letters"]
    {'read_launch_grouped': 1e-05, 'read_launch': 1e-05}
    """
    found = {}
    for part in {"letters", "ends"} & row.keys():
        own = dict(row[part])
        for x, cell in read.items():
            if cell in own:
                own[x] = own[cell] = own.get(x, own[cell])
        found[part] = own
    return row | found


def told(row: dict, letters: Iterable[str], read: Mapping[str, str]) -> list[str]:
    """The cells that say these letters: pages share a row, whatever kind of cache their calculators read.

    >>> told(dict(letters=dict(item_time_latent=1e-5)), ["item_time", "cores"], {"item_time": "item_time_latent"})
    ['item_time_latent', 'cores']
    """
    return [read[x] if read.get(x) in row["letters"] else x for x in letters]


def cut(row: dict, letters: Iterable[str], by_precision: bool) -> dict:
    """What a page needs of a row: some letters of it, and some by precision."""
    cut = dict(name=row["name"], letters={x: row["letters"][x] for x in letters if x in row["letters"]})
    if ends := {x: own for x, own in row.get("ends", {}).items() if x in cut["letters"]}:
        cut["ends"] = ends
    return cut | ({x: row[x] for x in ("peaks", "ends_at") if x in row} if by_precision else {})


def steps(low, high):
    """Powers of two and the steps half-way between, from low to high.

    >>> steps(1, 10)
    [1, 2, 3.0, 4, 6.0, 8, 10]
    """
    found, x = [], low
    while x < high:
        found += [x, x * 3 / 2] if x > 1 and x * 3 / 2 < high else [x]
        x *= 2
    return [*found, high]
