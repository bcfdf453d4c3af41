"""Draw a Matplotlib figure as SVG that uses the page's fonts and follows its light or dark scheme.

Matplotlib's own SVG has fixed colours, letter widths of one font, and six digits per number.
"""

from base64 import b64encode
from hashlib import sha256
from html import escape
from io import BytesIO
from math import cos, radians, sin

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Affine2D, Bbox
from PIL import Image
from scalebook.book.drawings.looks import LEAST, PHONE, SIZE

from scalebook.display.colours import contrast
from scalebook.display.scheme import following, ink_on, on_dark

from .fitting import fit

__all__ = ["describe", "figure_html", "show_figures"]

MANY = 3000  # points; larger clouds become an image
LARGEST = 1.05  # largest height of letters over the page's, on a wide page
ANCHORS = {"left": "start", "center": "middle", "right": "end", "bottom": "start", "top": "end"}
ALONG = {"start": 0, "middle": 0.5, "end": 1}
KEPT = "sb-kept"  # text on a colour map keeps its colour, as the map does
LETTERS = {Path.MOVETO: "m", Path.LINETO: "l", Path.CURVE3: "q", Path.CURVE4: "c", Path.CLOSEPOLY: "z"}


def show_figures(shell) -> None:
    """Make notebooks of an IPython shell show Matplotlib figures as SVG in the page."""
    try:
        from matplotlib_inline.config import InlineBackend
    except ImportError:
        return
    # A formatter for figures would be dropped when the inline backend starts; a method is not.
    Figure._repr_pretty_ = lambda self, p, cycle: p.text(describe(self))
    Figure._repr_html_ = lambda self: figure_html(self, describe(self), self.get_label())
    InlineBackend.instance(parent=shell).figure_formats = set()  # not as an image beside it
    plt.rcParams["figure.constrained_layout.use"] = False  # it is arranged once, when it is shown,
    plt.get_backend()  # chosen now, since choosing it installs the hook
    plt.uninstall_repl_displayhook()  # and not drawn before


def describe(figure: Figure) -> str:
    """Return a text description of a figure: its caption, or else its titles, axis labels and lines.

    >>> fig, ax = plt.subplots()
    >>> _ = ax.plot([1, 2], label="H100"); _ = ax.set(title="Rooflines", xlabel="intensity", ylabel="rate")
    >>> describe(fig)
    'Figure: Rooflines. rate against intensity. Lines: H100.'
    """
    if figure.get_label():
        return figure.get_label()
    said = []
    for ax in figure.axes:
        title = ax.get_title(loc="left") or ax.get_title()
        upward = ax.get_ylabel() or ("bars" if ax.patches else "the same")
        text = f"{title + '. ' if title else ''}{upward} against {ax.get_xlabel() or 'position'}."
        names = [x for x in ax.get_legend_handles_labels()[1] if not x.startswith("_")]
        said.append(text + (f" Lines: {', '.join(names)}." if names else ""))
    return "Figure: " + " ".join(said).replace("\n", " ")


def figure_html(figure: Figure, said: str, caption: str = "") -> str:
    """Return a figure as HTML with an SVG, fitted to a phone: `said` describes it, `caption` is shown below it."""
    fit(figure)
    renderer, box = _drawn(figure)
    left, top, width, height = box.x0, renderer.height - box.y1, box.width, box.height
    least, most = f"min-width:{width * LEAST / SIZE:.0f}px", f"max-width:{width * LARGEST / SIZE:.1f}em"
    key = "f" + sha256("".join([said, *renderer.marks, *map(str, renderer.hues)]).encode()).hexdigest()[:8]
    body = "".join(renderer.marks).replace("\0", key)
    light, dark = (";".join(f"--c{k}:{pair[x]}" for k, pair in enumerate(renderer.hues)) for x in (0, 1))
    style = following(f"#{key}", light, dark)
    clips = "".join(f'<clipPath id="{key}{k}"><path d="{d}"/></clipPath>' for k, d in enumerate(renderer.clips))
    under = f'<figcaption style="font-size:.9em;margin-top:.3em">{escape(caption)}</figcaption>' if caption else ""
    fits = width * LEAST / SIZE <= PHONE
    return (
        f'<figure class="sb-figure" style="margin:.5em 0;{most}"><div style="overflow-x:auto">'
        f'<svg xmlns="http://www.w3.org/2000/svg" id="{key}" class="sb-plot" role="img" aria-label="{escape(said)}" '
        f'viewBox="{_n(left)} {_n(top)} {_n(width)} {_n(height)}" '
        f'style="display:block;width:100%;height:auto{"" if fits else ";" + least}" '
        f'fill="none" stroke-linejoin="round" font-size="{SIZE}">'
        f"<style>{style}</style>{clips and f'<defs>{clips}</defs>'}{body}</svg></div>{under}</figure>"
    )


def _drawn(figure):
    """Draw the figure; return the renderer and the bounding box of everything on it, in points."""
    for text in figure.findobj(Text):
        turned = text.get_rotation() == 90 and text.get_rotation_mode() != "anchor"
        text.set_gid(ANCHORS.get(text.get_va() if turned else text.get_ha(), "start"))
    for ax in figure.axes:
        if any(isinstance(x, AxesImage) or hasattr(x, "get_coordinates") for x in ax.get_children()):
            for artist in (*ax.lines, *ax.collections, *ax.images, *ax.patches):
                artist.set_gid(KEPT)
            for text in ax.texts:
                text.set_gid(f"{text.get_gid()} {KEPT}")
        for cloud in ax.collections:
            cloud.set_rasterized(hasattr(cloud, "get_coordinates") or len(cloud.get_offsets()) > MANY)
        for line in ax.lines:
            line.set_rasterized(len(line.get_xdata()) > MANY and line.get_marker() not in ("", "None", None))
    size = figure.get_size_inches() * 72
    renderer = Vector(*size)
    figure.draw(MixedModeRenderer(figure, *figure.get_size_inches(), 144, renderer))
    whole = Bbox.union([Bbox.from_bounds(0, 0, *size), Bbox(figure.get_tightbbox(renderer).get_points() * 72)])
    return renderer, whole


def _n(x):
    return f"{round(float(x), 1):g}"


def _tenths(x):
    text = f"{x // 10 if x >= 0 else -(-x // 10)}" if x % 10 == 0 else f"{x / 10:.1f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


class Vector(RendererBase):
    """A Matplotlib renderer that writes SVG; `hues` has the value of each colour on light and on dark pages."""

    def __init__(self, width, height):
        super().__init__()
        self.width, self.height = width, height
        self.marks, self.hues, self.clips = [], {}, {}
        self._open, self._last, self._shapes = [], None, []

    def get_canvas_width_height(self):
        return self.width, self.height

    def get_image_magnification(self):
        return 2.0

    def open_group(self, s, gid=None):
        self._open.append(gid or "")

    def close_group(self, s):
        self._open.pop()

    def draw_path(self, gc, path, transform, rgbFace=None):
        inside, window = gc.get_clip_rectangle(), None
        if rgbFace is None and inside is not None:  # a line is cut here, where it cannot be seen
            window = (inside.x0 - 2, self.height - inside.y1 - 2, inside.x1 + 2, self.height - inside.y0 + 2)
        ways, box = _ways(path, transform + self._flip(), window), transform.transform_path(path).get_extents()
        clip = self._clip(gc, box) if ways else ""
        if ways and rgbFace is not None and (len(rgbFace) < 4 or rgbFace[3] > 0.2) and gc.get_alpha() > 0.5:
            seen = transform.transform_path(path)
            self._shapes.append((box, seen, to_hex(rgbFace[:3]), rgbFace[3] if len(rgbFace) == 4 else 1))
        self._mark(gc, "".join(_at(at, way) for at, way in ways), rgbFace, clip)

    def draw_markers(self, gc, marker_path, marker_trans, path, trans, rgbFace=None):
        shape = _ways(marker_path, marker_trans + Affine2D().scale(1, -1))
        if across := _disc(marker_path, marker_trans, gc, rgbFace):  # a dot is a line of no length
            dot = self.new_gc()
            dot.copy_properties(gc)
            dot.set_linewidth(across)
            dot.set_capstyle("round")
            gc, shape, rgbFace = dot, [((0, 0), "h0")], None
        centres = [points[-2:] for points, _ in path.iter_segments(trans + self._flip(), simplify=False) if len(points)]
        spots = dict.fromkeys(tuple(np.round(10 * np.array(x)).astype(int).tolist()) for x in centres)
        if spots:
            box = Bbox.null()
            box.update_from_data_xy([(x / 10, self.height - y / 10) for x, y in spots])
            way = "".join(_at((x + a, y + b), way) for x, y in spots for (a, b), way in shape)
            self._mark(gc, way, rgbFace, self._clip(gc, box))

    def _flip(self):
        return Affine2D().scale(1, -1).translate(0, self.height)

    def draw_image(self, gc, x, y, im, transform=None):
        file, (high, wide) = BytesIO(), (np.array(im.shape[:2]) / self.get_image_magnification())
        Image.fromarray(np.ascontiguousarray(im[::-1])).save(file, format="png", optimize=True)
        data = b64encode(file.getvalue()).decode()
        self._last = None
        self.marks.append(
            f'<image x="{_n(x)}" y="{_n(self.height - y - high)}" width="{_n(wide)}" height="{_n(high)}" '
            f'preserveAspectRatio="none" href="data:image/png;base64,{data}"/>'
        )

    def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None):
        if ismath:
            return super().draw_text(gc, x, y, s, prop, angle, ismath, mtext)
        anchor = next((w for gid in reversed(self._open) for w in gid.split() if w in ALONG), "start")
        along = ALONG[anchor] * self.get_text_width_height_descent(s, prop, ismath)[0]
        x, y = x + along * cos(radians(angle)), y - along * sin(radians(angle))
        size, weight = prop.get_size_in_points(), prop.get_weight()
        said = "" if size == SIZE else f' font-size="{_n(size)}"'
        said += ' font-weight="600"' if weight in ("bold", "semibold") else ""
        said += ' font-style="italic"' if prop.get_style() == "italic" else ""
        said += "" if anchor == "start" else f' text-anchor="{anchor}"'
        said += f' transform="rotate({_n(-angle)} {_n(x)} {_n(y)})"' if angle else ""
        alpha = gc.get_alpha()
        said += f' opacity="{alpha:.2g}"' if alpha != 1 else ""
        self._last = None
        ink = self._hue(gc.get_rgb(), self._under(x, self.height - y))
        self.marks.append(f'<text x="{_n(x)}" y="{_n(y)}" fill="{ink}"{said}>{escape(s, quote=False)}</text>')

    def _mark(self, gc, way, face, clip):
        """Add a path; join it to the last one if both have the same paint."""
        alpha, forced = gc.get_alpha(), gc.get_forced_alpha()
        filled = face is not None and (forced or len(face) < 4 or face[3] > 0)
        lined = gc.get_linewidth() > 0 and (forced or gc.get_rgb()[3] > 0)
        if not way or alpha == 0 or not (filled or lined or gc.get_hatch()):
            return
        paint = ""
        if filled:
            paint += f' fill="{self._hue(face)}"'
            paint += f' fill-opacity="{face[3]:.2g}"' if len(face) == 4 and face[3] != 1 and not forced else ""
        if lined:
            rgb, (offset, dashes), cap = gc.get_rgb(), gc.get_dashes(), gc.get_capstyle()
            paint += f' stroke="{self._hue(rgb)}" stroke-width="{gc.get_linewidth():.2g}"'
            paint += f' stroke-opacity="{rgb[3]:.2g}"' if rgb[3] != 1 and not forced else ""
            paint += f' stroke-dasharray="{" ".join(map(_n, dashes))}"' if dashes is not None else ""
            paint += f' stroke-dashoffset="{_n(offset)}"' if dashes is not None and offset else ""
            paint += ' stroke-linecap="square"' if cap == "projecting" and dashes is None else ""
            paint += ' stroke-linecap="round"' if cap == "round" else ""
        paint += f' opacity="{alpha:.2g}"' if forced and alpha != 1 else ""
        paint += clip
        if paint == self._last and "opacity" not in paint:  # else it would no longer be seen where they overlap
            self.marks[-1] = self.marks[-1].removesuffix('"/>') + way + '"/>'
        else:
            self.marks.append(f'<path{paint} d="{way}"/>')
        self._last = paint
        if gc.get_hatch():
            self._hatch(gc, way)

    def _hatch(self, gc, way):
        """Draw lines within a shape: a tile of an inch, repeated."""
        tile = "".join(_at(at, way) for at, way in _ways(gc.get_hatch_path(), Affine2D().scale(72)))
        name = f"\0h{len(self.marks)}"
        self._last = None
        self.marks.append(
            f'<pattern id="{name}" width="72" height="72" patternUnits="userSpaceOnUse"><path d="{tile}" '
            f'stroke="{self._hue(gc.get_hatch_color())}" stroke-width="{gc.get_hatch_linewidth():.2g}"/></pattern>'
            f'<path fill="url(#{name})" d="{way}"/>'
        )

    def _hue(self, rgb, under=()):
        colour = to_hex(rgb[:3])
        if KEPT in " ".join(self._open):
            return colour
        pair = colour, on_dark(colour)
        if under:
            pair = tuple(_read(*x) for x in zip(pair, under, strict=True))
        return f"var(--c{self.hues.setdefault(pair, len(self.hues))})"

    def _under(self, x, y):
        """Return the visible background, on a light and on a dark page, of a text that starts at (x, y)."""
        for box, shape, hue, share in reversed(self._shapes):
            if box.x0 < x < box.x1 and box.y0 < y < box.y1 and shape.contains_point((x, y)):
                return [_over(of(hue), of("#ffffff"), share) for of in (str, on_dark)]
        return ()

    def _clip(self, gc, box):
        rectangle, (path, transform) = gc.get_clip_rectangle(), gc.get_clip_path()
        if path is not None:
            way = "".join(_at(at, way) for at, way in _ways(path, transform + self._flip()))
        elif rectangle is None or _within(box, rectangle):
            return ""
        else:
            corner = rectangle.x0, self.height - rectangle.y1
            x, y, wide, high = map(_n, (*corner, rectangle.width, rectangle.height))
            way = f"M{x} {y}h{wide}v{high}h-{wide}z"
        return f' clip-path="url(#\0{self.clips.setdefault(way, len(self.clips))})"'


def _over(colour, page, share):
    return to_hex([share * x + (1 - share) * y for x, y in zip(to_rgb(colour), to_rgb(page), strict=True)])


def _read(ink, shape):
    """Return the ink if it is readable on a shape, else the one of black and white that is."""
    return ink if contrast(ink, shape) >= 4.5 else ink_on(shape)


def _ways(path, transform, window=None):
    """Return the subpaths of a path: the start of each, in tenths of a point, and its relative steps."""
    ways, at, before = [], None, ""
    for vertices, code in path.iter_segments(transform, clip=window):
        letter = LETTERS[code]
        if letter == "z":
            if ways:
                ways[-1][1].append("z")
            at, before = ways[-1][0] if ways else at, "z"
            continue
        points = np.round(np.reshape(vertices, (-1, 2)) * 10).astype(int)
        if letter == "m":
            ways.append((points[0], []))
            before = ""
        elif letter != "l" or (points[0] != at).any():
            numbers = (points - at).ravel().tolist()
            if letter == "l" and 0 in numbers:
                letter, numbers = ("v", numbers[1:]) if numbers[0] == 0 else ("h", numbers[:1])
            text = " ".join(map(_tenths, numbers))
            ways[-1][1].append(f" {text}" if letter == before and letter in "lhv" else letter + text)
            before = letter
        at = points[-1]
    return [(tuple(at.tolist()), "".join(steps).replace(" -", "-")) for at, steps in ways if steps]


def _disc(path, transform, gc, face):
    """Return the width of a marker that is a disc of one colour, edge included (Matplotlib uses eight curves)."""
    if len(path.vertices) != 26 or path.codes is None or (path.codes[1:-1] != Path.CURVE4).any():
        return None
    edge = gc.get_linewidth()
    if face is None or (edge and tuple(face) != tuple(gc.get_rgb())):
        return None
    return transform.transform_path(path).get_extents().width + edge


def _at(at, way):
    return f"M{_tenths(at[0])} {_tenths(at[1])}{way}".replace(" -", "-")


def _within(box, rectangle):
    room = 1
    low = box.x0 >= rectangle.x0 - room and box.y0 >= rectangle.y0 - room
    return low and box.x1 <= rectangle.x1 + room and box.y1 <= rectangle.y1 + room
