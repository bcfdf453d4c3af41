"""Colours of drawings and figures on light and dark pages, and the CSS that selects between them."""

from collections.abc import Iterable

from scalebook.display.colours import DARK, LIGHT, away, contrast, in_oklab, of_oklab
from scalebook.display.meanings import PARTS, SHADES, ink_of

__all__ = [
    "COLOURS", "DEVICES", "INKS", "LEAST", "LINE", "PHONE", "SHADES", "SIZE", "device_look", "following", "hues",
    "ink_on", "on_dark", "shades_style",
]  # fmt: skip

PHONE, LEAST = 350, 11  # width of a phone and least height of letters on it, in pixels
SIZE = 10.5  # smallest letters of a figure, in points
LINE = 1.2 * SIZE  # height of a line of them

# Meanings of colours in all drawings, with the colour on a light page and on a dark one.
COLOURS = {
    "arithmetic": ("#0072B2", "#56B4E9"),
    "memory": ("#009E73", "#2BD4A4"),
    "network": ("#D55E00", "#F0A030"),
    "waiting": ("#7A7F87", "#9DA7B3"),
}

WHOLE = ("#57606A",)  # a whole next to its parts
UNKNOWN = ("#9C71B6", "#C56995", "#693C81", "#8E2B52")  # parts that the book does not know
_OTHERS = ("#0072B2", "#D55E00", "#009E73", "#B8649A", "#BE7C00", "#3798CC", "#000000")

# Colour, dash and mark of each device, by a word of its name.
DEVICES = {
    "V100": ("#462100", (0, (3, 1, 1, 1)), "v"),
    "A100": ("#12467C", (0, (8, 2)), "p"),
    "H100": ("#0072B2", "-", "o"),
    "H200": ("#7289EE", (0, (5, 1, 1, 1, 1, 1)), "s"),
    "B200": ("#9B5862", (0, (5, 2)), "P"),
    "GB200": ("#E45B28", "--", "^"),
    "MI300X": ("#75430B", "-.", "D"),
    "MI325X": ("#B6809A", (0, (1, 1)), "X"),
}
_KINDS = {
    "arithmetic": "steps work decoding prompt_read",
    "memory": "reading state",
    "network": "prefetch",
    "waiting": "waiting",
}
_KIND_OF = {word.replace("_", " "): kind for kind, words in _KINDS.items() for word in words.split()}
_SHADE_OF = {x: part.fill for name, part in PARTS.items() for x in (name, part.word)}
_SAME = {"caches": "cache", "exchange": "messages", "compute": "arithmetic", "computing": "arithmetic"}
_SHADE_OF |= {other: _SHADE_OF[word] for other, word in _SAME.items()}


def hues(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each name of a part of a bar: its own, a shade of its kind, or an unused one.

    >>> hues(["weights", "weight_memory", "a batch"])
    {'weights': '#4B9042', 'weight_memory': '#4B9042', 'a batch': '#9C71B6'}
    """
    names = list(names)
    found = {x: _SHADE_OF[x] for x in names if x in _SHADE_OF}
    for name in names:
        if name not in found:
            several = SHADES.get(_KIND_OF.get(name, ""), (*UNKNOWN, *_OTHERS))
            found[name] = next((x for x in several if x not in found.values()), several[0])
    return {x: found[x] for x in names}


def device_look(row) -> dict:
    """Return how to draw a device, as keywords of Matplotlib's `plot`; {} for a device that is not listed."""
    looks = [DEVICES[word] for word in row.name.split() if word in DEVICES]
    return dict(zip(("color", "linestyle", "marker"), looks[0], strict=True)) if looks else {}


# The style's other colours on a dark page, with the same contrast to page and text as on a light one.
_DARK = {light.lower(): dark for light, dark in COLOURS.values()} | {
    "#3798cc": "#2E86C1",
    "#b8649a": "#B8649A",
    "#be7c00": "#AE9200",
    "#f0e442": "#7D7600",
    "#000000": "#E6EAEE",
    "#ffffff": "#14181C",
}

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
