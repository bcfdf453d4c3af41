"""Colours mean something: a part has one kind and one colour in every bar, figure and equation."""

import ast
import re
from functools import cache
from itertools import combinations
from math import atan2, degrees, dist, hypot

import matplotlib.pyplot as plt
import nbformat
import pytest
import sympy
from matplotlib.colors import to_hex
from scalebook.book.drawings.figures import _coloured, curve
from scalebook.book.drawings.gantt import KINDS
from scalebook.book.drawings.looks import DEVICES, INKS, device_look, hues

from scalebook.display.colours import contrast, in_oklab, linear, of_linear
from scalebook.display.meanings import PARTS, SHADES, coloured_terms, ink_of, meaning
from scalebook.display.scheme import UNKNOWN, WHOLE, ink_on, on_dark, shades_style
from scalebook.inference.tokens import token_time
from scalebook.language import NOTATION, symbol
from scalebook.machine.roofline import memory_time, roofline_time
from scalebook.tables import accelerators
from tools.notebooks import notebooks

from .support import STATED, calculators, cases

INK = re.compile(r"\\textcolor\{(#\w+)\}")


@cache
def specs(path):
    """The calculators of a notebook, made once: each spec, and what stands in its bars row by row."""
    made = [(calc.choice, calc.spec) for _, calc in calculators(path)]
    return [(*x, [(bar, row["pieces"]) for bar in x[1].get("bars", ()) for row in bar["rows"]]) for x in made]


@pytest.mark.parametrize("path", notebooks(), ids=lambda x: x.stem)
def test_every_part_of_every_bar_has_a_meaning_a_short_name_and_its_colour_in_the_equation(path):
    for choice, spec, pieces in specs(path):
        for bar, parts in pieces:
            assert all(x["kind"] in SHADES and x["shade"] < len(SHADES[x["kind"]]) for x in parts), bar["letter"]
            assert len({(x["kind"], x["shade"]) for x in parts}) == len(parts), f"two parts of {bar['letter']} alike"
            for x in [*parts, *bar["rows"]]:
                if "js" in x or len(bar["rows"]) > 1:
                    assert 0 < len(x["label"]) <= 28 and re.fullmatch(r"[\w ,'-]+", x["label"]), x
                    assert "_" not in x["label"] and x["title"]
        answer = spec["outputs"][0]["letter"]
        drawn = [x for bar, own in pieces if bar["letter"] == answer for x in own]
        if drawn and "equation" not in choice:  # one that a chapter composed is stored as it was
            inks = {INKS[x["kind"]][x["shade"]] for x in drawn}
            assert inks == set(INK.findall(spec["right"])) == set(INK.findall(spec["template"]))


PAGES = {"light": ("#FFFFFF", str), "dark": ("#161B22", on_dark)}  # the lighter of what is behind a bar in the dark
ALL = SHADES | {"other": UNKNOWN, "whole": WHOLE}


def hue(colour):
    """Which family a colour is of, by its angle in Oklab; grey is waiting."""
    _, a, b = in_oklab(colour)
    angle = degrees(atan2(b, a)) % 360
    families = {"network": (25, 90), "memory": (120, 195), "arithmetic": (210, 295), "other": (300, 385)}
    if hypot(a, b) < 0.03:
        return "waiting"
    return next(
        (kind for kind, (low, high) in families.items() if low <= angle <= high or low <= angle + 360 <= high), ""
    )


@pytest.mark.parametrize("scheme", PAGES)
def test_every_shade_is_seen_without_an_outline_and_letters_on_it_are_read(scheme):
    page, of = PAGES[scheme]
    for kind, own in ALL.items():
        for shade in map(of, own):
            assert contrast(shade, page) >= 3, (kind, shade)
            assert contrast(ink_on(shade), shade) >= 4.5, (kind, shade)


@pytest.mark.parametrize("scheme", PAGES)
def test_kinds_differ_in_hue_and_shades_of_a_kind_from_each_other(scheme):
    _, of = PAGES[scheme]
    for kind, own in (SHADES | {"other": UNKNOWN}).items():
        assert {hue(of(x)) for x in own} == {kind}
        for one, two in combinations(map(of, own), 2):
            assert dist(in_oklab(one), in_oklab(two)) > 0.05, (kind, one, two)  # told apart where they touch
    shades = [x for own in SHADES.values() for x in own]
    assert len(set(shades)) == len(shades)


# What protanopes, deuteranopes and tritanopes see of red, green and blue light: Machado, Oliveira and Fernandes, A
# Physiologically-based Model for Simulation of Color Vision Deficiency, 2009, https://doi.org/10.1109/TVCG.2009.113
EYES = cases("what eyes see of light", globals())


def apart(one, two):
    """How far two colours are from each other in Oklab, for whom they are nearest, on either page."""

    def seen(colour, eye):
        light = linear(colour)
        return in_oklab(of_linear([sum(m * x for m, x in zip(row, light, strict=True)) for row in eye]))

    return min(dist(seen(of(one), eye), seen(of(two), eye)) for eye in EYES.values() for of in (str, on_dark))


def side_by_side():
    """Pairs of shades: all of a kind, and of several kinds those that are in one bar, sum or maximum."""
    wholes = [*map(list, SHADES.values()), list(UNKNOWN)]
    for path in notebooks():
        for *_, pieces in specs(path):
            wholes += [[SHADES[x["kind"]][x["shade"]] for x in parts] for _, parts in pieces]
    for whole in (x for f in STATED for x in f.rhs.atoms(sympy.Add, sympy.Max)):
        parts = [meaning(x.name for x in term.free_symbols) for term in whole.args]
        wholes.append([x.fill for x in parts if x])
    return {pair for whole in wholes for pair in combinations(sorted(set(whole)), 2)}


def test_shades_side_by_side_are_told_apart_by_the_colour_blind():
    near = {pair: far for pair in side_by_side() if (far := apart(*pair)) < 0.045}
    assert not near, near


def test_a_device_has_one_look_that_everyone_tells_from_the_others():
    colours = [colour for colour, *_ in DEVICES.values()]
    for one, two in combinations(colours, 2):
        assert apart(one, two) > 0.09, (one, two)
    for page, of in PAGES.values():
        assert min(contrast(of(x), page) for x in colours) >= 3
    for mark in (1, 2):
        assert len({str(look[mark]) for look in DEVICES.values()}) == len(DEVICES), "a dash and a mark of its own"
    names = {row.name: device_look(row) for row in accelerators.values()}
    assert {look["color"] for look in names.values() if look} == set(colours), "each is of the table"


def test_what_is_written_has_the_hue_of_what_is_drawn_and_can_be_read():
    for kind, own in INKS.items():
        for ink, shade in zip(own, SHADES[kind], strict=True):
            assert hue(ink) == kind and contrast(ink, "#FFFFFF") >= 4.5 and contrast(on_dark(ink), "#14181C") >= 4.5
            assert dist(in_oklab(ink), in_oklab(shade)) < 0.11, (kind, ink)
            assert dist(in_oklab(on_dark(ink)), in_oklab(on_dark(shade))) < 0.11, (kind, ink)


def test_one_word_has_one_colour():
    words = {}
    for part in PARTS.values():
        assert words.setdefault(part.word, part.fill) == part.fill, part.word
    gantt = {x.word: x.fill for x in KINDS.values()}
    assert {x: words[x] for x in gantt if x in words} == {x: y for x, y in gantt.items() if x in words}
    assert len(set(gantt.values())) == len(gantt)


@pytest.mark.parametrize("path", notebooks(), ids=lambda x: x.stem)
def test_a_figure_draws_a_part_in_the_colour_of_its_bars(path):
    """A line or a bar whose label is a part's word asks `hues`, and has no colour of its own."""
    words = {x.word for x in PARTS.values()}
    cells = [
        x.source for x in nbformat.read(path, as_version=4).cells if x.cell_type == "code" and "label=" in x.source
    ]
    for node in (x for source in cells for x in ast.walk(ast.parse(source))):
        named = {x.arg: x.value for x in node.keywords if x.arg} if isinstance(node, ast.Call) else {}
        label = named.get("label")
        if isinstance(label, ast.Constant) and label.value in words:
            assert "color" in named and "hue" in ast.unparse(named["color"]), f"{label.value}: color=hues([...])"


@pytest.mark.parametrize("path", notebooks(), ids=lambda x: x.stem)
def test_a_line_that_is_called_by_a_device_has_that_devices_look(path):
    cells = [x.source for x in nbformat.read(path, as_version=4).cells if x.cell_type == "code"]
    for call in (x for source in cells if "label=" in source for x in ast.walk(ast.parse(source))):
        labels = [ast.unparse(x.value) for x in getattr(call, "keywords", ()) if x.arg == "label"]
        if any(re.search(r"accelerators\[|\bdevice\.name", x) for x in labels):
            assert "look" in ast.unparse(call), f"**device_look(...): {labels}"


def test_every_letter_with_a_meaning_is_a_letter():
    assert PARTS.keys() <= NOTATION.keys()
    for name, part in PARTS.items():
        assert part.ink == ink_of(part.fill) and len(part.word) <= 28, name


def test_figures_and_pages_have_the_colours_of_bars():
    assert hues(["weights", "cache", "queue"]) == dict(
        weights=SHADES["memory"][2], cache=SHADES["memory"][1], queue=SHADES["waiting"][0]
    )
    style = shades_style(".x")
    for kind, shades in SHADES.items():
        for i, shade in enumerate(shades):
            assert f"--sb-{kind}-{i}:{shade};" in style and f"--sb-{kind}-{i}:{on_dark(shade)};" in style
    ax = curve(token_time, "memory_time", [1e-3, 2e-3], compute_time=1e-3)
    assert to_hex(ax.lines[0].get_color()).upper() == "#0072B2"  # no part, but a whole: the style's first
    ax = curve(memory_time, "traffic", [1e9, 2e9], hbm_bandwidth=1e12, ax=plt.figure().subplots())
    assert ax.lines[0].get_color() == PARTS["memory_time"].fill
    plt.close("all")


def test_a_sum_of_parts_is_written_in_the_colours_of_its_bars():
    assert token_time.latex == (
        r"T_{\mathrm{tok}} = \max\left(\textcolor{#0072B2}{T_F}, \textcolor{#00865D}{T_W}\right)"
    )
    assert r"\textcolor{#0072B2}{⟦compute_time⟧}" in roofline_time.template()
    assert PARTS["compute_time"].ink == "#0072B2" and PARTS["memory_time"].ink == "#00865D"


def test_every_part_of_a_sum_is_coloured_where_there_are_several():
    coloured = [f for f in STATED if INK.search(f.latex)]
    assert len(coloured) > 100
    for f in coloured:
        inks = coloured_terms(f.rhs)
        assert set(INK.findall(f.latex)) <= set(inks.values()) and len(set(inks.values())) > 1, f.name
        assert not re.search(r"\\textcolor\{(#\w+)\}\{\\textcolor\{\1\}", f.latex), f.name
    for f in STATED:
        for whole in f.rhs.atoms(sympy.Add, sympy.Max):
            letters = [x for x in whole.args if x.is_Symbol and x.name in PARTS]
            if len({PARTS[x.name].ink for x in letters}) > 1:
                assert all(PARTS[x.name].ink in f.latex for x in letters), f.name


def test_what_is_derived_is_shown_in_the_same_colours():
    shown = _coloured(symbol("latency_floor") + symbol("launches_time"))
    assert INK.findall(shown) == [PARTS["latency_floor"].ink, PARTS["launches_time"].ink] and shown.startswith("$")
