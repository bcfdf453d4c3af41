"""Every drawing: readable on a phone, in both schemes, by those who do not see it, and the same every time."""

import re
from xml.etree import ElementTree

import pytest
from scalebook.book.drawings import recompute

from scalebook.book import drawings
from scalebook.display.figures import COLOURS
from scalebook.display.schematic import LEAST, PHONE, SIZE, Scene, text_width
from scalebook.pipeline import SCHEDULES, simulate
from scalebook.tables import accelerators, links, models

DRAWINGS = {name: getattr(room, name) for room in (drawings, recompute) for name in room.__all__}
KNOWN = {
    "kept_and_run_again": dict(model=models.gpt3_175b, seq=2048),
    "block_tensors": dict(model=models.llama3_8b, weight_bits=16, kv_bits=16, context=8192),
    "tiers": dict(device=accelerators.h100, link=links.pcie5),
    "pipeline_phases": dict(run=simulate("1f1b", pp=4, microbatches=6)),
    "prefill_decode_pools": dict(
        model=models.llama3_70b, prompt=1024, prompt_time=30e-3, kv_bits=16, link_bandwidth=50e9
    ),
}
SVG = "{http://www.w3.org/2000/svg}"


def drawn(name):
    return DRAWINGS[name](**KNOWN.get(name, {}))


@pytest.fixture(params=DRAWINGS)
def scene(request):
    return drawn(request.param)


def test_it_is_well_formed_and_says_what_it_shows(scene):
    root = ElementTree.fromstring(scene.svg)
    title, said = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title.text == scene.title and len(said.text) > 20 and root.get("role") == "img"
    assert root.get("aria-labelledby").split() == [title.get("id"), said.get("id")]
    page = ElementTree.fromstring(scene._repr_html_())
    assert page.find("figcaption").text == scene.caption and len(scene.caption) > 60


def test_its_text_stays_on_it_and_is_large_enough_on_a_phone(scene):
    root = ElementTree.fromstring(scene.svg)
    _, _, width, height = map(float, root.get("viewBox").split())
    assert SIZE * PHONE / width >= LEAST
    for text in root.iter(f"{SVG}text"):
        wide = text_width(text.text, text.get("class") is not None)
        left = float(text.get("x")) - {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor")] * wide
        assert left >= -0.1 and left + wide <= width + 0.1 and SIZE - 0.1 <= float(text.get("y")) <= height, text.text
    for box in root.iter(f"{SVG}rect"):
        assert float(box.get("x")) + float(box.get("width")) <= width
        assert float(box.get("y")) + float(box.get("height")) <= height


def test_it_has_the_colours_of_the_vocabulary_in_both_schemes(scene):
    assert set(re.findall(r"#[0-9A-Fa-f]{3,8}\b", scene.svg)) == {x for pair in COLOURS.values() for x in pair}
    used = set(re.findall(r'class="(?:sb-line |sb-head )?sb-(\w+)"', scene.svg)) - {"drawing", "name"}
    assert used <= set(COLOURS) and used
    for scheme in ("html[data-theme=dark]", "[data-jp-theme-light=false]", "@media(prefers-color-scheme:dark)"):
        assert scheme in scene.svg
    assert not re.search(r'(fill|stroke)="', scene.svg), "a colour is the style's"


@pytest.mark.parametrize("name", DRAWINGS)
def test_it_is_the_same_every_time(name):
    assert drawn(name)._repr_html_() == drawn(name)._repr_html_()


@pytest.mark.parametrize("devices", [3, 4, 5])
def test_a_ring_ends_with_whole_sums_everywhere(devices):
    said = drawings.ring(devices).description
    for d in range(devices):
        assert f"device {d + 1} has {[devices] * devices}" in said


def test_the_bytes_on_zeros_drawing_are_those_of_the_formulas():
    said = drawings.zero_stages(8, gradient_bits=16).description
    assert re.findall(r"([\d.]+) B a parameter", said) == ["16", "5.5", "3.75", "2"]


@pytest.mark.parametrize(("seq", "said"), [(2048, ["114 B", "34 B", "2 B"]), (8192, ["354 B", "34 B", "2 B"])])
def test_what_a_block_keeps_is_what_korthikanti_et_al_print(seq, said):
    """34 bytes a token and unit of width and 5 a s / h for the scores; 34; 2."""
    drawn = recompute.kept_and_run_again(models.gpt3_175b, seq)
    assert re.findall(r"\d+ B", drawn.description) == said


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_is_drawn_whole(name):
    run = simulate(name, pp=4, microbatches=8, chunks=SCHEDULES[name].chunks or 2)
    root = ElementTree.fromstring(drawings.pipeline_phases(run).svg)
    assert len(list(root.iter(f"{SVG}rect"))) == len(run.slots) + 4 + 3  # and a row each, and three phases


def test_what_would_leave_a_drawing_is_refused():
    with pytest.raises(ValueError, match=r"^the text 'far too far' would leave the drawing: .* of 340 across"):
        Scene("t", "c").note((300, 20), "far too far")
    with pytest.raises(ValueError, match="at most 382 wide, so that a phone shows its text; this is 700"):
        Scene("t", "c", width=700)
    with pytest.raises(ValueError, match="lies between 0 and 1; this is 2"):
        Scene("t", "c").tensor((0, 0), [2])
