"""Every figure: part of its page, readable on a phone, in both schemes, by those who do not see it; always the same."""

import re
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from matplotlib.colors import to_hex
from scalebook.book.drawings.figures import caption
from scalebook.book.drawings.looks import LEAST, PHONE, SIZE
from scalebook.book.pages.fitting import WIDTH
from scalebook.book.pages.vector import describe, figure_html

from scalebook.display.colours import contrast
from scalebook.display.scheme import COLOURS, on_dark
from tools.notebooks import notebooks

SVG = "{http://www.w3.org/2000/svg}"
PAGES = {"light": "#FFFFFF", "dark": "#14181C"}


def stored(path):
    """The figures of a notebook as they are stored, each with its description."""
    outputs = [o for c in nbformat.read(path, as_version=4).cells for o in c.get("outputs", []) if "data" in o]
    assert not [o for o in outputs if "image/png" in o.data], "a figure is stored as an image"
    shown = [(o.data.get("text/html", ""), o.data["text/plain"]) for o in outputs]
    return [(html, said) for html, said in shown if 'class="sb-plot"' in html]


@pytest.mark.parametrize("path", notebooks(), ids=lambda p: p.stem)
def test_every_stored_figure_is_part_of_its_page_and_has_a_caption(path):
    ids = []
    for html, said in stored(path):
        page = ElementTree.fromstring(html)
        under = page.find("figcaption")
        assert under is not None and under.text == said, f"say what to see, caption('...'): {said}"
        drawing = next(page.iter(f"{SVG}svg"))
        assert drawing.get("role") == "img" and drawing.get("aria-label") == said and len(said) > 20
        assert page.tag == "figure" and list(drawing.iter(f"{SVG}text")), "words are words"
        assert large_enough(drawing), f"letters below {LEAST} px on a phone: {said}"
        ids += [x.get("id") for x in page.iter() if x.get("id")]
    assert len(ids) == len(set(ids)), "two figures of a page share a name"


def large_enough(drawing):
    """Whether a phone shows no letter too small; where it cannot show the figure whole, it scrolls."""
    wide = float(drawing.get("viewBox").split()[2])
    least = re.search(r"min-width:(\d+)px", drawing.get("style"))
    scale = max(PHONE, int(least[1]) if least else 0) / wide
    sizes = [float(x.get("font-size", SIZE)) for x in drawing.iter(f"{SVG}text")]
    return min(sizes) * scale >= LEAST - 0.05


def full():
    """A figure with all that may not fit: a long title and labels, many names, small letters, bars' names."""
    fig, ax = plt.subplots(figsize=(4.6, 2.5))
    x = np.geomspace(1, 1e6, 50)
    for k in range(6):
        ax.semilogx(x, np.sin(x / 10**k), label=f"the line of number {k}, with more words", alpha=0.5 if k == 3 else 1)
    ax.set(
        title="A title that says all that the figure shows and that no phone could show in a single line of its own",
        xlabel="a quantity whose meaning and whose unit take more room than there is under these axes (B/s)",
        ylabel="another that is as long, and goes upward (FLOP/s)",
    )
    ax.annotate("small", (10, 0), fontsize=6)
    ax.legend(fontsize=7, ncols=3)
    caption("Nothing leaves the figure.")
    return fig


@pytest.fixture
def drawing():
    fig = full()
    yield next(ElementTree.fromstring(figure_html(fig, describe(fig))).iter(f"{SVG}svg"))
    plt.close("all")


def test_everything_finds_room(drawing):
    left, top, wide, high = map(float, drawing.get("viewBox").split())
    assert wide <= 72 * WIDTH + 3 and large_enough(drawing) and "min-width" not in drawing.get("style")
    assert {x.text for x in drawing.iter(f"{SVG}text")} >= {"small", "0.0"}
    for text in drawing.iter(f"{SVG}text"):
        if not text.get("transform"):
            assert left <= float(text.get("x")) <= left + wide and top <= float(text.get("y")) <= top + high, text.text


def test_it_is_the_same_every_time_and_has_a_name_of_its_own():
    one, two = figure_html(full(), "said"), figure_html(full(), "said")
    assert one == two and "<?xml" not in one and "matplotlib" not in one.lower()
    other = plt.figure(figsize=(3, 2))
    other.subplots().plot([1, 2])
    names = [re.search(r'<svg[^>]* id="(\w+)"', x)[1] for x in (one, figure_html(other, "said"))]
    assert names[0] != names[1]
    ways = "".join(re.findall(r' d="([^"]*)"', one))
    assert not re.search(r"\.\d\d", ways), "a screen cannot show more than tenths"
    plt.close("all")


def test_its_colours_are_the_pages(drawing):
    """Each is a variable with a value for both schemes; there is no ground."""
    text = ElementTree.tostring(drawing, encoding="unicode")
    assert not re.findall(r'(?:fill|stroke)="(?!var|none)[^"]*"', text)
    for scheme in ("html[data-theme=dark]", "[data-jp-theme-light=false]", "@media(prefers-color-scheme:dark)"):
        assert scheme in text
    styled = next(drawing.iter(f"{SVG}style")).text
    assert "--c0:" in styled and COLOURS["arithmetic"][1] in styled


def test_lines_can_be_seen_and_told_apart_on_either_page():
    cycle = [to_hex(x["color"]) for x in plt.rcParams["axes.prop_cycle"]]
    for page, of in (("light", str), ("dark", on_dark)):
        drawn = [of(x) for x in cycle]
        assert len(set(drawn)) == len(cycle) and min(contrast(x, PAGES[page]) for x in drawn) >= 3
    for pair in COLOURS.values():
        assert all(contrast(x, page) >= 3 for x, page in zip(pair, PAGES.values(), strict=True))


@pytest.mark.parametrize("colour", ["#333333", "#888888", "#777777", "#cc3333", "#3f77a5", "#014171", "#523808"])
def test_any_colour_is_as_easy_to_see_on_either_page(colour):
    assert contrast(on_dark(colour), PAGES["dark"]) >= min(contrast(colour, PAGES["light"]), 3.2)


def test_many_points_are_painted():
    fig, ax = plt.subplots()
    ax.plot(*np.random.default_rng(0).random((2, 9000)), "o")
    html = figure_html(fig, "a cloud")
    assert html.count("<image ") == 1 and len(html) < 200_000
    plt.close("all")
