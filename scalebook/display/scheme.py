"""Colours of drawings and figures on a light page and on a dark one, and how a drawing learns which it stands on."""

from collections.abc import Iterable

from matplotlib.colors import to_hex, to_rgb

from scalebook.language.meanings import INKS, PARTS, SHADES

__all__ = [
    "COLOURS", "LEAST", "PHONE", "SHADES", "contrast", "following", "hues", "ink_on", "on_dark", "shades_style",
]  # fmt: skip

PHONE, LEAST = 350, 11  # on a phone as wide, no letter is lower: pixels both

# What a colour means wherever mechanisms are drawn: on a light page, on a dark one.
COLOURS = {
    "arithmetic": ("#0072B2", "#56B4E9"),
    "memory": ("#009E73", "#2BD4A4"),
    "network": ("#D55E00", "#F0A030"),
    "waiting": ("#7A7F87", "#9DA7B3"),
}

WHOLE = ("#57606A",)  # what parts add up to, beside them
UNKNOWN = ("#9A6FB0", "#C7699B", "#6A3D80", "#8F2D56")  # of parts that a reader makes, and the book gives no kind
_OTHERS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
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
    """A colour for each part of a chart, a word or a letter: its own, a shade of its kind, else one of none.

    >>> hues(["work", "work space", "weights", "waiting", "a batch", "dp_exposed"])["a batch"]
    '#9A6FB0'
    >>> hues(["weights", "weight_memory"])
    {'weights': '#00563F', 'weight_memory': '#00563F'}
    """
    names = list(names)
    found = {x: _SHADE_OF[x] for x in names if x in _SHADE_OF}
    for name in names:
        if name not in found:
            several = SHADES.get(_KIND_OF.get(name, ""), (*UNKNOWN, *_OTHERS))
            found[name] = next((x for x in several if x not in found.values()), several[0])
    return {x: found[x] for x in names}


# The style's other hues on a dark page: as far from it, and from letters on them, as they are on a light one.
_DARK = {light.lower(): dark for light, dark in COLOURS.values()} | {
    "#56b4e9": "#2E86C1",
    "#cc79a7": "#B8649A",
    "#e69f00": "#AE9200",
    "#f0e442": "#7D7600",
    "#000000": "#E6EAEE",
    "#ffffff": "#14181C",
}

_FILLS = {x.upper() for own in (*SHADES.values(), UNKNOWN, WHOLE) for x in own}
_INKS = {ink: shade for kind, own in INKS.items() for ink, shade in zip(own, SHADES[kind], strict=True) if ink != shade}
DARK = "html[data-theme=dark],[data-jp-theme-light=false],html[theme=dark]"  # the site, JupyterLab, Colab
SAID = "[data-theme],[theme],:has([data-jp-theme-light])"  # a page that says its scheme is believed, else the system's


def following(drawing: str, light: str, dark: str) -> str:
    """The style of a drawing, by its selector, that takes what is for light pages or what is for dark ones."""
    return (
        f"{drawing}{{{light}}}:is({DARK}) {drawing}{{{dark}}}"
        f"@media(prefers-color-scheme:dark){{:root:not({SAID}) {drawing}{{{dark}}}}}"
    )


def shades_style(within: str) -> str:
    """The style, within a selector, of what a part fills, `.sb-memory-2`, and of letters on it."""
    shades = {
        f"{kind}-{i}": x
        for kind, own in (SHADES | {"other": UNKNOWN, "whole": WHOLE}).items()
        for i, x in enumerate(own)
    }
    light, dark = (
        ";".join(f"--sb-{name}:{of(x)};--sb-{name}-on:{ink_on(of(x))}" for name, x in shades.items())
        for of in (str, on_dark)
    )
    rules = "".join(f"{within} .sb-{name}{{background:var(--sb-{name});color:var(--sb-{name}-on)}}" for name in shades)
    return following(within, light, dark) + rules


def on_dark(colour: str) -> str:
    """The colour that does on a dark page what this one does on a light one: of the same hue, as far from the page.

    >>> on_dark("#0072B2"), on_dark("#333333")
    ('#56B4E9', '#b6b6b6')
    """
    if colour.upper() in _INKS:
        return _lighter(on_dark(_INKS[colour.upper()]), 4.5)
    return _DARK.get(colour.lower()) or (_mirrored_fill if colour.upper() in _FILLS else _mirrored)(colour)


def ink_on(shape: str) -> str:
    """The letters' colour, white or black, that is easier to read on a shape of a colour: one of them always can be.

    >>> ink_on("#F0A030"), ink_on("#113f55")
    ('#000000', '#FFFFFF')
    """
    return max(("#FFFFFF", "#000000"), key=lambda ink: contrast(ink, shape))


def contrast(a: str, b: str) -> float:
    """How far apart the lightness of two colours is, from 1 to 21, as WCAG 2 has it.

    >>> contrast("#000000", "#FFFFFF")
    21.0
    """
    low, high = sorted(_product([(0.2126, 0.7152, 0.0722)], map(_linear, to_rgb(x)))[0] for x in (a, b))
    return (high + 0.05) / (low + 0.05)


def _lighter(colour, needed):
    """As much lighter as a dark page needs for it to be so far from it."""
    lightness, a, b = _in_oklab(colour)
    while contrast(colour, _DARK["#ffffff"]) < needed:
        lightness += 0.004
        colour = _from_oklab(lightness, a, b)
    return colour


def _mirrored_fill(shade):
    """A part's: dark for light, and no paler than that, so that parts of a kind stay as far apart."""
    lightness, a, b = _in_oklab(shade)
    return _lighter(_from_oklab(1.25 - lightness, a, b), 3.2)


def _in_oklab(colour):
    return _product(_FROM_CONES, [x ** (1 / 3) for x in _product(_TO_CONES, map(_linear, to_rgb(colour)))])


def _mirrored(colour):
    """Light for dark in Oklab, where lightness is as it looks: 1.05 - 0.85 of it, so that white becomes nearly black.

    What can be told from a white page with ease can be told from a dark one.
    """
    lightness, a, b = _in_oklab(colour)
    return _lighter(_from_oklab(1.05 - 0.85 * lightness, a, b), min(contrast(colour, "#FFFFFF"), 3.2))


def _from_oklab(lightness, a, b):
    cones = [x**3 for x in _product(_TO_ROOTS, (lightness, a, b))]
    return to_hex([_encoded(min(max(x, 0.0), 1.0)) for x in _product(_TO_RED, cones)])


def _linear(x):
    return x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4


def _encoded(x):
    return 12.92 * x if x <= 0.0031308 else 1.055 * x ** (1 / 2.4) - 0.055


def _product(matrix, vector):
    vector = list(vector)
    return [sum(m * x for m, x in zip(row, vector, strict=True)) for row in matrix]


# Oklab, by B. Ottosson, 2020: https://bottosson.github.io/posts/oklab
_TO_CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_FROM_CONES = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)
_TO_ROOTS = (
    (1.0, 0.3963377774, 0.2158037573),
    (1.0, -0.1055613458, -0.0638541728),
    (1.0, -0.0894841775, -1.2914855480),
)
_TO_RED = (
    (4.0767416621, -3.3077115913, 0.2309699292),
    (-1.2684380046, 2.6097574011, -0.3413193965),
    (-0.0041960863, -0.7034186147, 1.7076147010),
)
