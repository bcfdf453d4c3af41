"""Standard figures of the book. Each function draws on a Matplotlib Axes, by default a new one, and returns it."""

from collections.abc import Iterable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import sympy
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator
from scalebook.book.drawings.looks import LINE, device_look, hues

from scalebook.display.meanings import PARTS, coloured_terms
from scalebook.display.scheme import COLOURS, SHADES
from scalebook.language import NOTATION, Formula, Sheet, show, tex
from scalebook.machine.roofline import attainable_flops, ridge_intensity
from scalebook.measurements import Result

__all__ = [
    "COLOURS", "SHADES", "bars", "caption", "confrontation", "curve", "device_look", "end_labels", "hues", "roofline",
    "scale_axis", "spread",
]  # fmt: skip

END = "sb-end"  # marks the name of a line, at its end

plt.style.use(Path(__file__).with_name("scalebook.mplstyle"))


def _label(name):
    letter = NOTATION[name]
    said = letter.meaning.partition(":")[0]
    return f"{said} ({letter.unit})" if letter.unit else said


def scale_axis(axis, name, values):
    """Label one axis ("x" or "y") with a quantity's meaning and unit; use a log scale if values span a factor of 20."""
    values = np.asarray(values, float)
    axis.set_label_text(_label(name))
    if values.min() > 0 and values.max() / values.min() > 20:
        axis._set_axes_scale("log")
        axis.set_major_locator(LogLocator(numticks=9))
        axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(_ticks(name))


def _ticks(name):
    """Return tick labels: units that take prefixes are on every tick, others only in the axis label."""
    unit = NOTATION[name].unit
    own = unit if unit in ("B", "B/s", "FLOP", "FLOP/s", "s", "J", "W", "year", "%") else ""
    return FuncFormatter(lambda x, _: show(x, own))


def end_labels(ax: Axes) -> None:
    """Name every line of a figure at its right end, and move close labels apart. Set the scales of the axes first."""
    for line in ax.get_lines():
        if not line.get_label().startswith("_"):
            end, place = (line.get_xdata()[-1], line.get_ydata()[-1]), dict(xytext=(8, 0), textcoords="offset points")
            look = dict(va="center", color=line.get_color(), annotation_clip=False, gid=END)
            ax.annotate(line.get_label(), end, **place, **look)
    ax.figure.draw_without_rendering()
    spread(ax)
    ax.set_xmargin(0)


def spread(ax: Axes) -> None:
    """Move the names at the right ends of lines apart, from the top down, so that all are readable."""
    ends = [x for x in ax.texts if x.get_gid() == END]
    unit = ax.figure.dpi / 72
    places = {x: ax.transData.transform(x.xy)[1] / unit for x in ends}
    high = float("inf")
    for text in sorted(ends, key=places.get, reverse=True):
        half = LINE * (1 + text.get_text().count("\n")) / 2
        high = min(high - half, places[text])
        text.xyann = (text.xyann[0], high - places[text])
        high -= half


def _short(row):
    return row.name.removeprefix(row.words.get("vendor", "")).partition(" (")[0].strip()


def roofline(rows: Iterable, marks: dict[str, float] | None = None, ax: Axes | None = None) -> Axes:
    """Draw rooflines: the FLOP/s that each device reaches at an arithmetic intensity, with a dot at its ridge point.

    `rows` are devices. `marks` are intensities in FLOP/B by name, drawn as vertical lines.

    >>> from scalebook.tables import accelerators
    >>> roofline([accelerators.h100, accelerators.mi300x]).get_title(loc="left")
    'Rooflines'
    """
    ax = ax or plt.gca()
    at = np.geomspace(0.3, 3e3, 200)
    for row in rows:
        look = device_look(row) | {"marker": ""}
        (line,) = ax.plot(at, attainable_flops(row, intensity=at), label=_short(row), **look)
        ax.plot(ridge_intensity(row), row.peak_flops, "o", color=line.get_color(), label="_ridge")
    scale_axis(ax.xaxis, "intensity", at)
    scale_axis(ax.yaxis, "attainable_flops", [1, 1e3])
    for name, value in (marks or {}).items():
        ax.axvline(value, color="#777777", linewidth=1, linestyle="-", label="_mark")
        place = dict(xycoords=("data", "axes fraction"), rotation=90, va="bottom", ha="right")
        box = dict(facecolor="white", alpha=0.8, linewidth=0, pad=0.5)
        ax.annotate(name, (value, 0.02), color="#555555", bbox=box, **place)
    low, high = ax.get_ylim()
    ax.set_ylim(low / 12 if marks else low, high * 2)
    ax.set_title("Rooflines")
    end_labels(ax)
    return ax


def curve(
    what: Formula | Sheet,
    against: str,
    values,
    *knowns,
    answer: str | None = None,
    label: str | None = None,
    look: dict | None = None,
    ax: Axes | None = None,
    **letters,
) -> Axes:
    """Draw a formula, or a quantity that a sheet computes, against one of its inputs.

    `against` names the input and `values` are its values; `knowns` and `letters` give the others. `answer` names the
    sheet's quantity. `look` has keywords of Matplotlib's `plot`. If `label` is not given, a known part of a sum has its
    own colour.

    >>> from scalebook.machine.roofline import ridge_intensity
    >>> curve(ridge_intensity, "hbm_bandwidth", [1e12, 2e12], peak_flops=1e15).get_xlabel()
    'memory bandwidth of one device (B/s)'
    """
    ax = ax or plt.gca()
    values = np.asarray(values, float)
    result = what(*knowns, **letters, **{against: values})
    name = what.letter if isinstance(what, Formula) else answer
    own = look or (dict(color=hues([name])[name]) if name in PARTS and not label else {})
    drawn = result if isinstance(what, Formula) else result[name]
    ax.plot(values, drawn, label=label or NOTATION[name].meaning.partition(":")[0], **own)
    drawn = np.concatenate([np.ravel(x.get_ydata()).astype(float) for x in ax.get_lines()])
    scale_axis(ax.xaxis, against, values)
    scale_axis(ax.yaxis, name, drawn)
    return ax


def bars(
    parts: dict[str, dict[str, float]], name: str, ax: Axes | None = None, limit: dict[str, float] | None = None
) -> Axes:
    """Draw stacked horizontal bars of one quantity, from `{bar: {part: value}}`; `limit` adds named vertical lines.

    >>> bars({"a": {"weights": 1e9, "cache": 2e9}}, "weight_memory").get_xlabel()
    'memory for weights (B)'
    """
    ax = ax or plt.gca()
    names = list(dict.fromkeys(p for bar in parts.values() for p in bar))
    left, colors = np.zeros(len(parts)), hues(names)
    for part in names:
        widths = np.array([bar.get(part, 0.0) for bar in parts.values()])
        ax.barh(list(parts), widths, left=left, label=part, height=0.62, color=colors[part], edgecolor="white")
        left += widths
    for text, value in (limit or {}).items():
        ax.axvline(value, color="#444444", linewidth=1.2, linestyle="--", label="_limit")
        place = dict(xycoords=("data", "axes fraction"), va="bottom", ha="center")
        ax.annotate(f" {text}", (value, 1.0), color="#444444", **place)
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ax.set_xlabel(_label(name))
    ax.xaxis.set_major_formatter(_ticks(name))
    ax.legend(loc="upper left", bbox_to_anchor=(0, -0.22), ncols=3, borderaxespad=0)
    return ax


def confrontation(result: Result, ax: Axes | None = None, kinds: list[str] | None = None) -> Axes:
    """Draw predicted against measured values, with a mark for each kind of row and a line where they are equal."""
    ax = ax or plt.gca()
    rows = zip(result.rows, result.fitted, strict=True)
    group = ["calibrated on" if fitted else result.confrontation.group(row) for row, fitted in rows]
    values = np.concatenate([result.measured, result.predicted])
    ends = np.array([values.min() * 0.8, values.max() * 1.25])
    ax.plot(ends, ends, color="#888888", linewidth=1, linestyle="-", label="_equal")
    order = kinds or sorted(set(group) - {"calibrated on"})
    looks = {kind: (f"C{k % 7}", "^sDvP*Xo<>"[k % 10]) for k, kind in enumerate(order)}
    looks["calibrated on"] = ("#666666", "o")
    for kind, (color, mark) in looks.items():
        here = np.array([g == kind for g in group])
        if here.any():
            style = dict(linestyle="none", color=color, markersize=5, alpha=0.85, label=f"{kind} ({here.sum()})")
            ax.plot(result.measured[here], result.predicted[here], mark, **style)
    unit = result.confrontation.unit
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel=f"measured ({unit})", ylabel=f"predicted ({unit})")
    plain = FuncFormatter(lambda x, _: show(x))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(plain)
        axis.set_minor_formatter(NullFormatter())
    ax.legend(loc="upper left", bbox_to_anchor=(-0.02, -0.2), ncols=2, borderaxespad=0)
    return ax


def caption(text: str) -> None:
    """Set the caption below the current figure. It is also the text that describes the figure to blind readers."""
    plt.gcf().set_label(text)


def _coloured(expr):
    return rf"$\displaystyle {tex(expr, inks=coloured_terms(expr))}$"


def _in_notebooks():
    """Make notebooks show SymPy expressions in the book's notation, and figures as SVG in the page."""
    try:
        from IPython import get_ipython
    except ImportError:
        return
    if shell := get_ipython():
        shell.display_formatter.formatters["text/latex"].for_type(sympy.Basic, _coloured)
        from scalebook.book.pages.vector import show_figures  # it imports this module

        show_figures(shell)


_in_notebooks()
