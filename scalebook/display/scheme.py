"""Colours of drawings and figures on light and dark pages, and the CSS that selects between them."""

from scalebook.display.colours import DARK, LIGHT, STATED, away, contrast, in_oklab, of_oklab
from scalebook.display.meanings import SHADES, ink_of
from scalebook.language.renamed import renamed

__all__ = ["COLOURS", "SHADES", "following", "ink_on", "on_dark", "shades_style"]

__getattr__ = renamed(__name__)

# Meanings of colours in all drawings, with the colour on a light page and on a dark one.
COLOURS = {kind: tuple(pair) for kind, pair in STATED["drawings"].items()}
WHOLE, UNKNOWN = (tuple(STATED["further"][x]) for x in ("whole", "unknown"))
_DARK = {light.lower(): dark for light, dark in COLOURS.values()} | STATED["dark"]
_FILLS = {
    x.upper() for own in (*SHADES.values(), UNKNOWN, WHOLE, [x for x, *_ in STATED["devices"].values()]) for x in own
}
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
