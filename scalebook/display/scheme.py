"""Colours of drawings and figures on light and dark pages, and the CSS that selects between them."""

from collections.abc import Iterable

from scalebook.display.colours import DARK, LIGHT, STATED, away, contrast, in_oklab, of_oklab
from scalebook.display.meanings import PARTS, SHADES, ink_of

__all__ = [
    "COLOURS", "DEVICES", "INKS", "LEAST", "LINE", "PHONE", "SHADES", "SIZE", "device_look", "following", "hues",
    "ink_on", "on_dark", "shades_style",
]  # fmt: skip

PHONE, LEAST = 350, 11  # width of a phone and least height of letters on it, in pixels
SIZE = 10.5  # smallest letters of a figure, in points
LINE = 1.2 * SIZE  # height of a line of them

# Meanings of colours in all drawings, with the colour on a light page and on a dark one.
COLOURS = {kind: tuple(pair) for kind, pair in STATED["drawings"].items()}
WHOLE, UNKNOWN, _OTHERS = (tuple(STATED["further"][x]) for x in ("whole", "unknown", "others"))
# Colour, dash and mark of each device, by a word of its name.
DEVICES = {
    word: (colour, dash if isinstance(dash, str) else (0, tuple(dash)), mark)
    for word, (colour, dash, mark) in STATED["devices"].items()
}
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
            several = SHADES.get(STATED["words"].get(name, ""), (*UNKNOWN, *_OTHERS))
            found[name] = next((x for x in several if x not in found.values()), several[0])
    return {x: found[x] for x in names}


def device_look(row) -> dict:
    """Return how to draw a device, as keywords of Matplotlib's `plot`; {} for a device that is not listed."""
    looks = [DEVICES[word] for word in row.name.split() if word in DEVICES]
    return dict(zip(("color", "linestyle", "marker"), looks[0], strict=True)) if looks else {}


_DARK = {light.lower(): dark for light, dark in COLOURS.values()} | STATED["dark"]
INKS = {kind: tuple(map(ink_of, own)) for kind, own in SHADES.items()}
_FILLS = {x.upper() for own in (*SHADES.values(), UNKNOWN, WHOLE, [x for x, *_ in DEVICES.values()]) for x in own}
_SHADE_OF_INK = {ink_of(x): x for own in SHADES.values() for x in own if ink_of(x) != x}
IN_THE_DARK = "html[data-theme=dark],[data-jp-theme-light=false],html[theme=dark]"  # the site, JupyterLab, Colab
SAID = "[data-theme],[theme],:has([data-jp-theme-light])"  # pages that state their scheme; others follow the system


def following(drawing: str, light: str, dark: str) -> str:
    """Return CSS that gives a selector (`drawing`) the style `light` on light pages and `dark` on dark ones."""
    return (
        f"{drawing}{{{light}}}:is({IN_THE_DARK}) {drawing}{{{dark}}}"
        f"@media(prefers-color-scheme:dark){{:root:not({SAID}) {drawing}{{{dark}}}}}"
    )


def shades_style(within: str) -> str:
    """Return CSS for the fill colours of parts (`.sb-memory-2`) and the text on them, inside the selector `within`."""
    kinds = SHADES | {"other": UNKNOWN, "whole": WHOLE}
    shades = {f"{kind}-{i}": x for kind, own in kinds.items() for i, x in enumerate(own)}
    light, dark = (
        ";".join(f"--sb-{name}:{of(x)};--sb-{name}-on:{ink_on(of(x))}" for name, x in shades.items())
        for of in (str, on_dark)
    )
    rules = "".join(f"{within} .sb-{name}{{background:var(--sb-{name});color:var(--sb-{name}-on)}}" for name in shades)
    return following(within, light, dark) + rules


def on_dark(colour: str) -> str:
    """Return the colour to use on a dark page instead of this one: same hue, same contrast to the page.

    >>> on_dark("#0072B2"), on_dark("#333333")
    ('#56B4E9', '#b6b6b6')
    """
    if colour.upper() in _SHADE_OF_INK:
        return away(on_dark(_SHADE_OF_INK[colour.upper()]), DARK, 4.5)
    return _DARK.get(colour.lower()) or (_mirrored_fill if colour.upper() in _FILLS else _mirrored)(colour)


def ink_on(shape: str) -> str:
    """Return white or black, whichever has the higher contrast as text on this colour."""
    return max(("#FFFFFF", "#000000"), key=lambda ink: contrast(ink, shape))


def _mirrored_fill(shade):
    """Return a fill for dark pages, no paler than the light one, so that parts of a kind stay distinguishable."""
    lightness, a, b = in_oklab(shade)
    return away(of_oklab(1.25 - lightness, a, b), DARK, 3.2)


def _mirrored(colour):
    """Mirror a colour's lightness in Oklab: 1.05 - 0.85 of it, so that white becomes nearly black."""
    lightness, a, b = in_oklab(colour)
    return away(of_oklab(1.05 - 0.85 * lightness, a, b), DARK, min(contrast(colour, LIGHT), 3.2))
