"""A figure made to fit a phone: letters large enough to read there, and everything else arranged round them.

Figures say what they show; how wide a title may run or where a legend has room is seen here, once all is drawn.
"""

import warnings
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator
from matplotlib.transforms import ScaledTranslation, blended_transform_factory

from .scheme import LEAST, PHONE

__all__ = ["END", "SIZE", "WIDTH", "fit", "spread"]

SIZE = 10.5  # points of the smallest letters
WIDTH = SIZE * PHONE / LEAST / 72  # inches that a phone shows whole at that size
LINE = 1.2 * SIZE
END = "sb-end"  # the name of a line, at its end
CORNERS = ("upper right", "upper left", "lower right", "lower left", "center right", "center left")


def fit(figure: Figure) -> None:
    """Arrange a figure for the width of a phone; one with panels side by side keeps its width."""
    if getattr(figure, "_fitted", False):
        return
    figure._fitted = True
    figure.set_dpi(72)
    figure.set_layout_engine(figure.get_layout_engine() or "constrained")
    single = _columns(figure) == 1
    whole = single and figure.get_figwidth() < WIDTH + 0.05
    for text in figure.findobj(Text):
        text.set_fontsize(max(text.get_fontsize(), SIZE))
    for text in figure.texts:
        _break(text, figure.bbox.width * (1 - text.get_position()[0]) - 4)
        if text.get_position()[1] <= 0:  # a note below: it grows downward
            text.set(y=-0.01, va="top")
    panels = [ax for ax in figure.axes if ax.get_visible()]
    legends = {ax: ax.get_legend() for ax in panels if ax.get_legend()}
    for legend in legends.values():
        legend.set_in_layout(False)
    for ax in panels:  # roughly, for a first arrangement; then as there is room
        _break(ax.yaxis.label, 0.75 * figure.bbox.height / _share(ax))
        _break_names(ax, single)
    _arrange(figure)
    heights = {ax: ax.bbox.height for ax in panels}
    for ax in panels:
        _break_words(ax, single)
    heights = {ax: max(high, _rows(ax)) for ax, high in heights.items()}
    _arrange(figure)
    for ax in panels:
        _thin_ticks(ax)
    under = max((_place(legend, ax, single) for ax, legend in legends.items()), default=0)
    figure.set_figheight(figure.get_figheight() + under / 72)
    _arrange(figure, under)
    for _ in range(2):
        lost = max(((heights[ax] - ax.bbox.height) * _share(ax) for ax in panels), default=0)
        over = figure.get_tightbbox().width - WIDTH if whole else 0
        if lost < 1 and over <= 0.03:
            break
        figure.set_figheight(figure.get_figheight() + max(lost, 0) / 72)
        if over > 0.03:
            figure.set_figwidth(max(figure.get_figwidth() - over, 0.8 * WIDTH))
        _arrange(figure, under)
    figure.set_layout_engine("none")  # all has its place
    for ax in panels:
        spread(ax)
        _thin_ticks(ax)


def _arrange(figure, under=0.0):
    """Give axes their places, with so many points left free under all of them; a figure too low for that grows."""
    for _ in range(6 if (engine := figure.get_layout_engine()) else 0):
        if under:
            engine.set(rect=(0, under / figure.bbox.height, 1, 1 - under / figure.bbox.height))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            engine.execute(figure)
        if not any("collapsed" in str(x.message) for x in warned):
            return
        figure.set_figheight(1.2 * figure.get_figheight())


def spread(ax: Axes) -> None:
    """Push the names at lines' ends apart, from the top down, so that none leaves the axes."""
    ends = [x for x in ax.texts if x.get_gid() == END]
    unit = ax.figure.dpi / 72
    places = {x: ax.transData.transform(x.xy)[1] / unit for x in ends}
    high = float("inf")
    for text in sorted(ends, key=places.get, reverse=True):
        half = LINE * (1 + text.get_text().count("\n")) / 2
        high = min(high - half, places[text])
        text.xyann = (text.xyann[0], high - places[text])
        high -= half


def _columns(figure):
    specs = [ax.get_subplotspec() for ax in figure.axes]
    return max((x.get_topmost_subplotspec().get_gridspec().ncols for x in specs if x), default=1)


def _share(ax):
    """How many rows of axes a figure has: what each lacks, the figure lacks as often."""
    spec = ax.get_subplotspec()
    return spec.get_gridspec().nrows if spec else 1


def _is_word(text):
    return sum(x.isalpha() for x in text) > 4


def _labels(axis):
    low, high = sorted(axis.get_view_interval())
    ticks = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=False)
    return [(at, x) for at, x in ticks if low <= at <= high and x.get_visible() and x.get_text()]


def _rows(ax):
    """How high the axes must be for each of its names to have its lines."""
    names = [x.get_text() for _, x in _labels(ax.yaxis)]
    most = max((x.count("\n") + 1.3 for x in names), default=1)
    return LINE * most * len(names) if any(map(_is_word, names)) else 0


def _wide(text, like):
    return 1.02 * RendererBase().get_text_width_height_descent(text, like.get_fontproperties(), False)[0]


def _broken(text, like, room):
    """The text in lines that are no wider than there is room, broken between words."""
    if "$" in text or max(_wide(x, like) for x in text.split("\n")) <= room:
        return text
    lines = []
    for word in text.split():
        if lines and _wide(f"{lines[-1]} {word}", like) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)


def _break(text, room):
    if text.get_text():
        text.set_text(_broken(text.get_text(), text, room))


def _break_names(ax, single):
    """Names of bars, which would leave the bars no room."""
    whole = ax.figure.bbox.width
    names = [x for _, x in _labels(ax.yaxis)]
    if any(_wide(x.get_text(), x) > 0.4 * whole and _is_word(x.get_text()) for x in names) and single:
        places = ax.get_yticks()
        ax.set_yticks(places, [_broken(x.get_text(), x, 0.38 * whole) for x in ax.get_yticklabels()])


def _break_words(ax, single):
    """Titles and names of axes, in as many lines as they need."""
    figure, whole = ax.figure, ax.figure.bbox.width
    for title in (x for x in ax.get_children() if isinstance(x, Text) and x not in ax.texts):
        if title.get_text() and single and title.get_ha() == "left":
            title.set_x(0)
            title.set_transform(blended_transform_factory(figure.transFigure, title.get_transform()))
        _break(title, whole - 4 if single else ax.bbox.width + 4)
    middle = (ax.bbox.x0 + ax.bbox.x1) / 2
    _break(ax.xaxis.label, 2 * min(middle, whole - middle) if single else ax.bbox.width + 6)
    _break(ax.yaxis.label, ax.bbox.height + 8)
    for text in ax.texts:
        if text.get_gid() == END:
            _break(text, 0.24 * whole if single else 0.3 * ax.bbox.width)


def _thin_ticks(ax):
    """Leave out labels that would run into each other; words are broken, or turned, and none left out."""
    shown = _labels(ax.xaxis)
    if len(shown) < 2 or not _crowded(shown, 0):
        upward = _labels(ax.yaxis)
        if len(upward) > 2 and not any(_is_word(x.get_text()) for _, x in upward):
            _every(ax.yaxis, upward, 1)
        return
    if any(_is_word(x.get_text()) for _, x in shown):
        room = ax.bbox.width / len(shown)
        places = ax.get_xticks()
        ax.set_xticks(places, [_broken(x.get_text(), x, room) for x in ax.get_xticklabels()])
        _arrange(ax.figure)
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
    """Whether labels touch: across, or with side=1 upward."""
    ends = sorted(tuple(x.get_window_extent().get_points()[:, side]) for _, x in shown)
    return any(b[0] < a[1] + (5 if side == 0 else -1) for a, b in pairwise(ends))


def _place(legend, ax, single):
    """Within the axes where that hides nothing, else below them, in as many columns as there is room for.

    Says how many points of height it takes below all axes; where others stand below it, the layout makes room.
    """
    figure, box = ax.figure, legend.get_window_extent()
    if all(ax.bbox.padded(2).contains(*corner) for corner in (box.p0, box.p1)):
        for corner in (None, *CORNERS):
            if corner:
                legend.set_loc(corner)
            if not _hides(legend, ax):
                legend.set_in_layout(True)
                return 0
    spec = ax.get_subplotspec()
    last = single and (not spec or spec.rowspan.stop == spec.get_gridspec().nrows)
    drop = (ax.bbox.y0 - ax.get_tightbbox().y0 + 5) / 72
    room = figure.bbox.width - (0 if last else ax.bbox.x0) if single else ax.bbox.width + 8
    across = figure.transFigure if last else ax.transAxes
    below = blended_transform_factory(across, ax.transAxes + ScaledTranslation(0, -drop, figure.dpi_scale_trans))
    legend = _dealt_out(legend, ax, room, below)
    legend.set_in_layout(not last)
    return legend.get_window_extent().height + 3 if last else 0


def _dealt_out(legend, ax, room, below):
    """The legend anew, in as many columns as there is room for."""
    names = [_broken(x.get_text(), x, room - 3.2 * SIZE) for x in legend.get_texts()]
    said = dict(handles=legend.legend_handles, labels=names, title=legend.get_title().get_text() or None)
    place = dict(loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=below, borderaxespad=0)
    for columns in range(min(len(names), 5), 0, -1):
        legend = ax.legend(**said, **place, ncols=columns, fontsize=SIZE, frameon=legend.get_frame_on())
        if legend.get_window_extent().width <= room:
            break
    return legend


def _hides(legend, ax):
    box = legend.get_window_extent()
    if box.width > ax.bbox.width or box.height > ax.bbox.height:
        return True
    lines = (x.get_path().transformed(x.get_transform()) for x in ax.lines)
    shapes = (x.get_window_extent() for x in (*ax.patches, *ax.texts))
    clouds = (x.get_offset_transform().transform(x.get_offsets()) for x in ax.collections)
    return (
        any(x.intersects_bbox(box, filled=False) for x in lines)
        or any(x.overlaps(box) for x in shapes)
        or any(box.count_contains(x) for x in clouds if len(x))
    )
