"""Arrange the text of a figure: break long lines, and keep tick labels and names of lines from overlapping."""

import warnings
from itertools import pairwise

from matplotlib.backend_bases import RendererBase
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator
from matplotlib.transforms import blended_transform_factory
from scalebook.book.drawings.figures import END
from scalebook.book.drawings.looks import LINE

__all__ = ["arrange", "break_names", "break_text", "break_words", "broken", "height_of_names", "thin_ticks"]


def arrange(figure, under=0.0):
    """Arrange a figure's axes with `under` points free below them. A figure that is too low for its text grows."""
    for _ in range(6 if (engine := figure.get_layout_engine()) else 0):
        if under:
            engine.set(rect=(0, under / figure.bbox.height, 1, 1 - under / figure.bbox.height))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            engine.execute(figure)
        if not any("collapsed" in str(x.message) for x in warned):
            return
        figure.set_figheight(1.2 * figure.get_figheight())


def _is_word(text):
    return sum(x.isalpha() for x in text) > 4


def _labels(axis):
    low, high = sorted(axis.get_view_interval())
    ticks = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=False)
    return [(at, x) for at, x in ticks if low <= at <= high and x.get_visible() and x.get_text()]


def height_of_names(ax):
    """Return the height in points that the names on the y axis need."""
    names = [x.get_text() for _, x in _labels(ax.yaxis)]
    most = max((x.count("\n") + 1.3 for x in names), default=1)
    return LINE * most * len(names) if any(map(_is_word, names)) else 0


def _wide(text, like):
    return 1.02 * RendererBase().get_text_width_height_descent(text, like.get_fontproperties(), False)[0]


def broken(text, like, room):
    """Break a text between words into lines no wider than `room` in the font of the Matplotlib text `like`."""
    if "$" in text or max(_wide(x, like) for x in text.split("\n")) <= room:
        return text
    lines = []
    for word in text.split():
        if lines and _wide(f"{lines[-1]} {word}", like) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)


def break_text(text, room):
    if text.get_text():
        text.set_text(broken(text.get_text(), text, room))


def break_names(ax, single):
    """Break the long names of bars into lines if the figure is a `single` column of axes, so that bars stay long."""
    whole = ax.figure.bbox.width
    names = [x for _, x in _labels(ax.yaxis)]
    if any(_wide(x.get_text(), x) > 0.4 * whole and _is_word(x.get_text()) for x in names) and single:
        places = ax.get_yticks()
        ax.set_yticks(places, [broken(x.get_text(), x, 0.38 * whole) for x in ax.get_yticklabels()])


def break_words(ax, single):
    """Break titles and axis names into as many lines as they need; in a `single` column they use the whole width."""
    figure, whole = ax.figure, ax.figure.bbox.width
    for title in (x for x in ax.get_children() if isinstance(x, Text) and x not in ax.texts):
        if title.get_text() and single and title.get_ha() == "left":
            title.set_x(0)
            title.set_transform(blended_transform_factory(figure.transFigure, title.get_transform()))
        break_text(title, whole - 4 if single else ax.bbox.width + 4)
    middle = (ax.bbox.x0 + ax.bbox.x1) / 2
    break_text(ax.xaxis.label, 2 * min(middle, whole - middle) if single else ax.bbox.width + 6)
    break_text(ax.yaxis.label, ax.bbox.height + 8)
    for text in ax.texts:
        if text.get_gid() == END:
            break_text(text, 0.24 * whole if single else 0.3 * ax.bbox.width)


def thin_ticks(ax):
    """Leave out numbers at ticks that would overlap. Words at ticks are broken or turned instead."""
    shown = _labels(ax.xaxis)
    if len(shown) < 2 or not _crowded(shown, 0):
        upward = _labels(ax.yaxis)
        if len(upward) > 2 and not any(_is_word(x.get_text()) for _, x in upward):
            _every(ax.yaxis, upward, 1)
        return
    if any(_is_word(x.get_text()) for _, x in shown):
        room = ax.bbox.width / len(shown)
        places = ax.get_xticks()
        ax.set_xticks(places, [broken(x.get_text(), x, room) for x in ax.get_xticklabels()])
        arrange(ax.figure)
        if _crowded(_labels(ax.xaxis), 0):
            for x in ax.get_xticklabels():
                x.set(text=x.get_text().replace("\n", " "), rotation=40, ha="right", rotation_mode="anchor")
            ax.set_xticks(places, [x.get_text().replace("\n", " ") for x in ax.get_xticklabels()])
        return
    _every(ax.xaxis, shown, 0)


def _every(axis, shown, side):
    for step in range(1, len(shown)):
        if not _crowded(shown[::step], side):
            break
    if step > 1:
        axis.set_major_locator(FixedLocator([at for at, _ in shown[::step]]))


def _crowded(shown, side):
    """Return True if labels overlap, across or (with side=1) upward."""
    ends = sorted(tuple(x.get_window_extent().get_points()[:, side]) for _, x in shown)
    return any(b[0] < a[1] + (5 if side == 0 else -1) for a, b in pairwise(ends))
