"""Drawings of mechanisms in a few lines: devices that hold tensors, links between them, and messages.

>>> scene = Scene("Two devices", "The second device gets what it lacks.")
>>> one = scene.device((10, 10), "device 1", {"weights": [1, 1]})
>>> two = scene.device((230, 10), "device 2", {"weights": [1, 0]})
>>> _ = scene.arrow(one, two, "second half")
>>> scene
Two devices: device 1 holds weights; device 2 holds a part of weights; from device 1 to device 2: second half.

A drawing is 340 units wide and as high as its contents.  Arithmetic is blue, memory green, the network orange, waiting
grey.  A darker part is present to a larger share.  Colours follow the page's light or dark scheme.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from math import hypot
from typing import NamedTuple

from scalebook.book.drawings.looks import LEAST, PHONE

from scalebook.display.scheme import COLOURS, following

__all__ = ["Box", "Scene"]

SIZE, LINE = 12, 15  # of letters, and from line to line
MARGIN = 4


def _style():
    light, dark = (";".join(f"--sb-{name}:{pair[x]}" for name, pair in COLOURS.items()) for x in (0, 1))
    hues = "".join(f".sb-drawing .sb-{name}{{--sb-hue:var(--sb-{name})}}" for name in COLOURS)
    return (
        f"{following('.sb-drawing', light + ';--sb-hue:currentColor', dark)}{hues}"
        ".sb-drawing rect{fill:var(--sb-hue);stroke:var(--sb-hue)}"
        ".sb-drawing .sb-line{fill:none;stroke:var(--sb-hue);stroke-width:1.6}"
        ".sb-drawing .sb-head{fill:var(--sb-hue);stroke:none}"
        f".sb-drawing text{{font:{SIZE}px system-ui,sans-serif;fill:currentColor;stroke:none}}"
        ".sb-drawing .sb-name{font-weight:600}"
    )


# A piece travels along its arrow while a reader points at the drawing, and not where less motion is asked for.
MOVING = (
    ".sb-drawing .sb-piece{fill:var(--sb-hue);stroke:none;opacity:0}"
    "@media (prefers-reduced-motion:no-preference){"
    "svg:hover>.sb-drawing .sb-piece{opacity:1;animation:sb-travel 1.6s ease-in-out infinite}}"
    "@keyframes sb-travel{from{offset-distance:0}to{offset-distance:100%}}"
)


class Box(NamedTuple):
    """Something drawn: its upper left corner, its size and its name."""

    x: float
    y: float
    width: float
    height: float
    name: str = ""

    def point(self, across: float, down: float) -> tuple[float, float]:
        """Return a point of the box: (0, 0) is the upper left corner, (1, 0.5) the middle of the right edge."""
        return self.x + across * self.width, self.y + down * self.height


def text_width(text: str, bold: bool = False) -> float:
    """Return an upper bound of a line's width: its width in DejaVu Sans, the widest of common fonts."""
    narrow, wide = "iljtfrI.,:;'|!()[] /-·", "mwMW@%→×−+="
    ems = sum(0.4 if x in narrow else 0.92 if x in wide else 0.72 if x.isupper() else 0.63 for x in text)
    return SIZE * ems * (1.1 if bold else 1)


def _n(x):
    return f"{round(float(x), 1):g}"


class Scene:
    """A drawing to which parts are added; `caption` says what to see.

    Raises ValueError if a part would leave the drawing.

    >>> print(Scene("Nothing yet", "An empty page.").svg[:49])
    <svg xmlns="http://www.w3.org/2000/svg" viewBox="
    """

    def __init__(self, title: str, caption: str, width: float = 340):
        widest = SIZE * PHONE / LEAST
        if not 0 < width <= widest:
            raise ValueError(f"a drawing is at most {widest:.0f} wide, so that a phone shows its text; this is {width}")
        self.title, self.caption, self.width, self.height = title, caption, width, 0.0
        self._marks, self._said = [], []

    def device(
        self,
        at: tuple[float, float],
        name: str,
        holds: Mapping[str, Sequence[float]] | None = None,
        size: tuple[float, float] = (100, 0),
        kind: str = "memory",
    ) -> Box:
        """Draw a box with its memory inside: `holds` maps tensors to the shades of their parts, 0 for an absent part.

        The box is as high as its contents, or higher if `size` says so.
        """
        holds = holds or {}
        height = max(size[1], (LINE + 8 if name else 6) + 18 * len(holds))
        box = Box(*at, size[0], height, name)
        self._rect(box, "", fill=0.05, line=0.5, corner=5)
        y = at[1] + 6
        if name:
            self._text((at[0] + size[0] / 2, y + 10), name, "middle", "sb-name")
            y += LINE
        for parts in holds.values():
            self._bar(Box(at[0] + 6, y, size[0] - 12, 14), parts, kind, (), "columns")
            y += 18
        there = [("" if all(x) else "a part of ") + tensor for tensor, x in holds.items() if any(x)]
        self._say(f"{name} holds {', '.join(there)}" if there else name)
        return box

    def tensor(
        self,
        at: tuple[float, float],
        parts: Sequence[float] = (1,),
        kind: str = "memory",
        size: tuple[float, float] = (88, 16),
        texts: Sequence[str] = (),
        split: str = "columns",
        name: str = "",
    ) -> Box:
        """Draw a bar or a matrix in parts, each with a shade from 0 (empty) to 1; `texts` are written into the parts.

        `split` is "columns" (parts in a row) or "rows" (parts in a column).
        """
        box = Box(*at, *size, name)
        self._bar(box, parts, kind, texts, split)
        if name:
            self._say(name)
        return box

    def link(self, a: Box, b: Box, kind: str = "waiting") -> None:
        """Draw a line between two boxes with a port at each end: a link that carries nothing at the moment."""
        start, end = _between(a, b)
        self._path(start, end, kind)
        for x, y in (start, end):
            self._rect(Box(x - 3, y - 3, 6, 6), kind, fill=1, line=1, corner=1)

    def arrow(
        self, a, b, text: str = "", kind: str = "network", beside: tuple[float, float] = (0, -5), moving: bool = False
    ) -> None:
        """Draw a message from a box or a point to another; `beside` offsets its text from the middle.

        With `moving`, a piece travels along the arrow while a reader points at the drawing.
        """
        start, end = _between(a, b)
        length = hypot(end[0] - start[0], end[1] - start[1]) or 1
        ux, uy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
        neck = end[0] - 7 * ux, end[1] - 7 * uy
        self._path(start, neck, kind)
        tips = [end, (neck[0] - 4 * uy, neck[1] + 4 * ux), (neck[0] + 4 * uy, neck[1] - 4 * ux)]
        points = " ".join(f"{_n(x)},{_n(y)}" for x, y in tips)
        self._marks.append(f'<polygon class="sb-head sb-{kind}" points="{points}"/>')
        if moving:
            way = f"M{_n(start[0])} {_n(start[1])}L{_n(end[0])} {_n(end[1])}"
            self._marks.append(f'<circle class="sb-piece sb-{kind}" r="5" style="offset-path:path(\'{way}\')"/>')
        names = [x.name for x in (a, b) if isinstance(x, Box) and x.name]
        way = f"from {names[0]} to {names[1]}" if len(names) == 2 else ""
        self._say(": ".join(filter(None, (way, text))))
        self._text(((start[0] + end[0]) / 2 + beside[0], (start[1] + end[1]) / 2 + beside[1]), text, "middle", "")

    def note(self, at: tuple[float, float], text: str, anchor: str = "start", bold: bool = False) -> None:
        """Write lines of text; `anchor` says which part of them is at the given point: "start", "middle" or "end"."""
        for k, line in enumerate(text.split("\n")):
            self._text((at[0], at[1] + k * LINE), line, anchor, "sb-name" if bold else "")
        self._say(text.replace("\n", " "))

    def _bar(self, box, parts, kind, texts, split):
        for k, shade in enumerate(parts):
            if not 0 <= shade <= 1:
                raise ValueError(f"the shade of a part lies between 0 and 1; this is {shade}")
            share = 1 / len(parts)
            left, top = box.point(k * share, 0) if split == "columns" else box.point(0, k * share)
            wide, high = (share, 1) if split == "columns" else (1, share)
            part = Box(left, top, box.width * wide, box.height * high)
            self._rect(
                part, kind if shade else "waiting", fill=0.62 * shade, line=0.9 if shade else 0.45, dashed=not shade
            )
            if k < len(texts) and texts[k]:
                self._text((part.x + part.width / 2, part.y + part.height / 2 + 4.3), texts[k], "middle", "")

    def _rect(self, box, kind, fill, line, corner=1.5, dashed=False):
        self._inside(box.x, box.x + box.width, box.y, box.y + box.height, box.name or "a box")
        colour = f' class="sb-{kind}"' if kind else ""
        dash = ' stroke-dasharray="2 2"' if dashed else ""
        self._marks.append(
            f'<rect{colour} x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" height="{_n(box.height)}"'
            f' rx="{corner}" fill-opacity="{fill:.2f}" stroke-opacity="{line}"{dash}/>'
        )

    def _path(self, start, end, kind):
        self._inside(start[0], start[0], start[1], start[1], "an arrow")
        self._inside(end[0], end[0], end[1], end[1], "an arrow")
        way = f"M{_n(start[0])} {_n(start[1])}L{_n(end[0])} {_n(end[1])}"
        self._marks.append(f'<path class="sb-line sb-{kind}" d="{way}"/>')

    def _text(self, at, text, anchor, style):
        if not text:
            return
        wide = text_width(text, bool(style))
        left = at[0] - {"start": 0, "middle": 0.5, "end": 1}[anchor] * wide
        self._inside(left, left + wide, at[1] - SIZE, at[1] + 4, f"the text {text!r}")
        kept = f' class="{style}"' if style else ""
        self._marks.append(
            f'<text{kept} x="{_n(at[0])}" y="{_n(at[1])}" text-anchor="{anchor}">{escape(text, quote=False)}</text>'
        )

    def _inside(self, left, right, top, bottom, what):
        if left < 0 or right > self.width or top < 0:
            raise ValueError(
                f"{what} would leave the drawing: it reaches from {left:.0f} to {right:.0f} of {self.width:g} across, "
                f"{top:.0f} down"
            )
        self.height = max(self.height, bottom + MARGIN)

    def _say(self, text):
        if text:
            self._said.append(text)

    @property
    def description(self) -> str:
        """Describe the drawing's parts, in the order in which they were drawn, for readers who cannot see it."""
        return "; ".join(dict.fromkeys(self._said)) + "."

    @property
    def svg(self) -> str:
        """Return the drawing as SVG, to write to a file."""
        body = "".join(self._marks)
        moving = MOVING if "sb-piece" in body else ""
        key = sha256((self.title + body).encode()).hexdigest()[:8]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(self.width)} {_n(self.height)}" role="img" '
            f'aria-labelledby="t{key} d{key}"><title id="t{key}">{escape(self.title)}</title>'
            f'<desc id="d{key}">{escape(self.description)}</desc><style>{_style()}{moving}</style>'
            f'<g class="sb-drawing">{body}</g></svg>'
        )

    def _repr_html_(self) -> str:
        """Return the drawing as SVG inside HTML, because an image could not follow the page's light or dark scheme."""
        wide = f"max-width:{_n(1.36 * self.width)}px"  # letters as high as those of the page
        return (
            f'<figure class="sb-figure" style="margin:.5em 0;{wide}">{self.svg}'
            f'<figcaption style="font-size:.9em;margin-top:.3em">{escape(self.caption)}</figcaption></figure>'
        )

    def __repr__(self):
        return f"{self.title}: {self.description}"


def _between(a, b):
    """Return the ends of an arrow: points as they are, boxes at the edges that face each other."""
    if isinstance(a, Box) and isinstance(b, Box):
        if a.x + a.width <= b.x:
            return a.point(1, 0.5), b.point(0, 0.5)
        if b.x + b.width <= a.x:
            return a.point(0, 0.5), b.point(1, 0.5)
        return (a.point(0.5, 1), b.point(0.5, 0)) if a.y < b.y else (a.point(0.5, 0), b.point(0.5, 1))
    return a, b
