"""Place the legend of a figure inside the axes if it hides nothing there, else below them."""

from matplotlib.transforms import ScaledTranslation, blended_transform_factory
from scalebook.book.drawings.looks import SIZE

from .lettering import broken

__all__ = ["place"]

CORNERS = ("upper right", "upper left", "lower right", "lower left", "center right", "center left")


def place(legend, ax, single):
    """Place a legend inside the axes if it hides nothing there, else below them in as many columns as fit.

    Returns the height in points that the legend takes below the axes.
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
    """Build the legend again with as many columns as fit."""
    names = [broken(x.get_text(), x, room - 3.2 * SIZE) for x in legend.get_texts()]
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
