"""Contrast between two colours, and lighter or darker versions of a colour.  A colour is a text such as "#0072B2".

>>> contrast("#000000", "#FFFFFF")
21.0
>>> away("#009E73", "#FFFFFF", 4.5)
'#00865d'
"""

from scalebook.language.stanzas import tables_of

__all__ = ["DARK", "LIGHT", "STATED", "away", "contrast", "in_oklab", "linear", "of_linear", "of_oklab"]

STATED = tables_of(__package__, "colours.toml")
_OKLAB = STATED["oklab"]
LIGHT, DARK = "#FFFFFF", "#14181C"  # the pages that letters stand on


def linear(colour: str) -> list[float]:
    """Return the intensities of red, green and blue light in a colour, each from 0 to 1."""
    shown = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in shown]


def of_linear(light: list[float]) -> str:
    """Return the colour nearest to the given intensities of red, green and blue light."""
    held = [min(max(x, 0.0), 1.0) for x in light]
    shown = [12.92 * x if x <= 0.0031308 else 1.055 * x ** (1 / 2.4) - 0.055 for x in held]
    return "#" + "".join(f"{round(255 * x):02x}" for x in shown)


def contrast(a: str, b: str) -> float:
    """Return the WCAG 2 contrast ratio of two colours, from 1 (equal) to 21 (black on white)."""
    low, high = sorted(_product([(0.2126, 0.7152, 0.0722)], linear(x))[0] for x in (a, b))
    return (high + 0.05) / (low + 0.05)


def in_oklab(colour: str) -> list[float]:
    """Return a colour's coordinates in the Oklab colour space: lightness, green to red, blue to yellow."""
    return _product(_OKLAB["from_cones"], [x ** (1 / 3) for x in _product(_OKLAB["to_cones"], linear(colour))])


def of_oklab(lightness: float, a: float, b: float) -> str:
    """Return the colour nearest to a point of the Oklab colour space."""
    return of_linear(_product(_OKLAB["to_red"], [x**3 for x in _product(_OKLAB["to_roots"], (lightness, a, b))]))


def away(colour: str, page: str, needed: float) -> str:
    """Darken or lighten a colour until its contrast with the colour `page` is at least `needed`, if it is lower."""
    lightness, a, b = in_oklab(colour)
    step = 0.004 if contrast(page, "#000000") < contrast(page, "#FFFFFF") else -0.004
    while contrast(colour, page) < needed:
        lightness += step
        colour = of_oklab(lightness, a, b)
    return colour


def _product(matrix, vector):
    vector = list(vector)
    return [sum(m * x for m, x in zip(row, vector, strict=True)) for row in matrix]
