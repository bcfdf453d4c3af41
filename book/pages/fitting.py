"""Fit a figure to a phone: choose a text size that is readable there, and arrange the rest around the text."""

from matplotlib.figure import Figure
from matplotlib.text import Text
from scalebook.book.drawings.figures import spread
from scalebook.book.drawings.looks import LEAST, PHONE, SIZE

from .legends import place
from .lettering import arrange, break_names, break_text, break_words, height_of_names, thin_ticks

__all__ = ["WIDTH", "fit"]

WIDTH = SIZE * PHONE / LEAST / 72  # inches that a phone shows whole at that size


def fit(figure: Figure) -> None:
    """Arrange a Matplotlib figure for the width of a phone; a figure with panels side by side keeps its width."""
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
        break_text(text, figure.bbox.width * (1 - text.get_position()[0]) - 4)
        if text.get_position()[1] <= 0:  # a note below: it grows downward
            text.set(y=-0.01, va="top")
    panels = [ax for ax in figure.axes if ax.get_visible()]
    legends = {ax: ax.get_legend() for ax in panels if ax.get_legend()}
    for legend in legends.values():
        legend.set_in_layout(False)
    for ax in panels:  # roughly, for a first arrangement; then as there is room
        break_text(ax.yaxis.label, 0.75 * figure.bbox.height / _share(ax))
        break_names(ax, single)
    arrange(figure)
    heights = {ax: ax.bbox.height for ax in panels}
    for ax in panels:
        break_words(ax, single)
    heights = {ax: max(high, height_of_names(ax)) for ax, high in heights.items()}
    arrange(figure)
    for ax in panels:
        thin_ticks(ax)
    under = max((place(legend, ax, single) for ax, legend in legends.items()), default=0)
    figure.set_figheight(figure.get_figheight() + under / 72)
    arrange(figure, under)
    for _ in range(2):
        lost = max(((heights[ax] - ax.bbox.height) * _share(ax) for ax in panels), default=0)
        over = figure.get_tightbbox().width - WIDTH if whole else 0
        if lost < 1 and over <= 0.03:
            break
        figure.set_figheight(figure.get_figheight() + max(lost, 0) / 72)
        if over > 0.03:
            figure.set_figwidth(max(figure.get_figwidth() - over, 0.8 * WIDTH))
        arrange(figure, under)
    figure.set_layout_engine("none")  # all has its place
    for ax in panels:
        spread(ax)
        thin_ticks(ax)


def _columns(figure):
    specs = [ax.get_subplotspec() for ax in figure.axes]
    return max((x.get_topmost_subplotspec().get_gridspec().ncols for x in specs if x), default=1)


def _share(ax):
    """Return the number of rows of axes in a figure; missing height is added once for each."""
    spec = ax.get_subplotspec()
    return spec.get_gridspec().nrows if spec else 1
