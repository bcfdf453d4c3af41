"""Colours mean something: a part has one kind and one colour in every bar, figure and equation."""

import re

import pytest
import sympy
from matplotlib.colors import to_rgb

from scalebook.display.scheme import contrast, hues, on_dark, shades_style
from scalebook.inference.tokens import token_time
from scalebook.language import NOTATION
from scalebook.language.meanings import INKS, PARTS, SHADES, coloured_terms
from scalebook.machine.roofline import roofline_time
from tools.notebooks import notebooks

from .support import STATED, calculators

INK = re.compile(r"\\textcolor\{(#\w+)\}")


def pieces(calc):
    for bar in calc.spec.get("bars", ()):
        for row in bar["rows"]:
            yield bar, row["pieces"]


@pytest.mark.parametrize("path", notebooks(), ids=lambda x: x.stem)
def test_every_part_of_every_bar_has_a_meaning_a_short_name_and_its_colour_in_the_equation(path):
    for _, calc in calculators(path):
        for bar, parts in pieces(calc):
            assert all(x["kind"] in SHADES and x["shade"] < len(SHADES[x["kind"]]) for x in parts), bar["letter"]
            assert len({(x["kind"], x["shade"]) for x in parts}) == len(parts), f"two parts of {bar['letter']} alike"
            for x in [*parts, *bar["rows"]]:
                if "js" in x or len(bar["rows"]) > 1:
                    assert 0 < len(x["label"]) <= 28 and re.fullmatch(r"[\w ,'-]+", x["label"]), x
                    assert "_" not in x["label"] and x["title"]
        answer = calc.spec["outputs"][0]["letter"]
        drawn = [x for bar, own in pieces(calc) if bar["letter"] == answer for x in own]
        if drawn and "equation" not in calc.choice:  # one that a chapter composed is stored as it was
            inks = {INKS[x["kind"]][x["shade"]] for x in drawn}
            assert inks == set(INK.findall(calc.spec["right"])) == set(INK.findall(calc.spec["template"]))


def hue(colour):
    """Which of the four families a colour is of, by its channels."""
    red, green, blue = to_rgb(colour)
    if max(red, green, blue) - min(red, green, blue) < 0.09:
        return "waiting"
    if red >= green > blue:
        return "network" if red > green + 0.02 else "memory"
    return "arithmetic" if blue > green else "memory"


def test_kinds_differ_in_hue_and_a_kind_has_one():
    for kind, shades in SHADES.items():
        for shade, ink in zip(shades, INKS[kind], strict=True):
            grey = "#C3D0C9"  # the palest green
            assert hue(ink) == kind or shade == grey, (kind, ink)
            assert hue(shade) == kind or shade == grey, (kind, shade)
    assert len({x for own in SHADES.values() for x in own}) == sum(map(len, SHADES.values()))


def test_inks_can_be_read_on_both_pages():
    for ink in (x for own in INKS.values() for x in own):
        assert contrast(ink, "#FFFFFF") >= 4.5 and contrast(ink, "#14181C") >= 3
        assert contrast(on_dark(ink), "#14181C") >= 6


def test_every_letter_with_a_meaning_is_a_letter():
    assert PARTS.keys() <= NOTATION.keys()
    for name, part in PARTS.items():
        assert part.ink == INKS[part.kind][part.shade] and len(part.word) <= 28, name


def test_figures_and_pages_have_the_colours_of_bars():
    assert hues(["weights", "cache", "queue"]) == dict(
        weights=SHADES["memory"][2], cache=SHADES["memory"][1], queue=SHADES["waiting"][0]
    )
    style = shades_style(".x")
    for kind, shades in SHADES.items():
        for i, shade in enumerate(shades):
            assert f"--sb-{kind}-{i}:{shade};" in style and f"--sb-{kind}-{i}:{on_dark(shade)};" in style


def test_a_sum_of_parts_is_written_in_the_colours_of_its_bars():
    assert token_time.latex == (
        r"T_{\mathrm{tok}} = \max\left(\textcolor{#0072B2}{T_F}, \textcolor{#00845B}{T_W}\right)"
    )
    assert r"\textcolor{#0072B2}{⟦compute_time⟧}" in roofline_time.template()
    assert PARTS["compute_time"].ink == "#0072B2" and PARTS["memory_time"].ink == "#00845B"


def test_an_equation_is_coloured_as_a_whole_or_not_at_all():
    coloured = {f: terms for f in STATED if (terms := coloured_terms(f.rhs))}
    assert len(coloured) > 40
    for f in STATED:
        terms = coloured.get(f, {})
        assert len(set(INK.findall(f.latex))) == len(set(terms.values())) != 1, f.name
        assert not terms or isinstance(f.rhs, sympy.Add | sympy.Max), f.name
