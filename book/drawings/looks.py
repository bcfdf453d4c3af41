"""Colours, dashes, marks and sizes of figures and drawings."""

from collections.abc import Iterable

from scalebook.display.colours import STATED
from scalebook.display.meanings import PARTS, SHADES, ink_of
from scalebook.display.scheme import UNKNOWN

__all__ = ["DEVICES", "INKS", "LEAST", "LINE", "PHONE", "SIZE", "device_look", "hues"]

PHONE, LEAST = 350, 11  # width of a phone and least height of letters on it, in pixels
SIZE = 10.5  # smallest letters of a figure, in points
LINE = 1.2 * SIZE  # height of a line of them

# Colour, dash and mark of each device, by a word of its name.
DEVICES = {
    word: (colour, dash if isinstance(dash, str) else (0, tuple(dash)), mark)
    for word, (colour, dash, mark) in STATED["devices"].items()
}
INKS = {kind: tuple(map(ink_of, own)) for kind, own in SHADES.items()}  # colours of text
_SHADE_OF = {x: part.fill for name, part in PARTS.items() for x in (name, part.word)}
_SHADE_OF |= {other: _SHADE_OF[word] for other, word in STATED["same"].items()}


def hues(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each name of a part of a bar: its own, a shade of its kind, or an unused one.

    >>> hues(["weights", "weight_memory", "a batch"])
    {'weights': '#4B9042', 'weight_memory': '#4B9042', 'a batch': '#9C71B6'}
    """
    names = list(names)
    found = {x: _SHADE_OF[x] for x in names if x in _SHADE_OF}
    for name in names:
        if name not in found:
            several = SHADES.get(STATED["words"].get(name, ""), (*UNKNOWN, *STATED["further"]["others"]))
            found[name] = next((x for x in several if x not in found.values()), several[0])
    return {x: found[x] for x in names}


def device_look(row) -> dict:
    """Return how to draw a device, as keywords of Matplotlib's `plot`; {} for a device that is not listed."""
    looks = [DEVICES[word] for word in row.name.split() if word in DEVICES]
    return dict(zip(("color", "linestyle", "marker"), looks[0], strict=True)) if looks else {}
