"""Drawings of machines: as every drawing is, and with what the formulas and the executed array say."""

import re
from collections import Counter

import pytest
from scalebook.book.drawings import machine as drawings_machine
from scalebook.book.drawings.machine import fat_tree, headline_factors, score_tiles, state_and_memory, systolic_array

from scalebook.machine.topologies import fat_tree_devices, switch_hops
from scalebook.tables import accelerators, models
from tests.test_schematics import (  # noqa: F401 (what every drawing must be)
    test_it_has_the_colours_of_the_vocabulary_in_both_schemes,
    test_it_is_well_formed_and_says_what_it_shows,
    test_its_text_stays_on_it_and_is_large_enough_on_a_phone,
)

KNOWN = {
    "headline_factors": dict(device=accelerators.gb200.at("fp4"), printed_devices=72),
    "state_and_memory": dict(model=models.llama3_70b, device=accelerators.h100),
    "score_tiles": dict(model=models.llama3_8b, device=accelerators.h100, seq=8192),
}


@pytest.fixture(params=drawings_machine.__all__)
def scene(request):
    return getattr(drawings_machine, request.param)(**KNOWN.get(request.param, {}))


def test_it_is_the_same_every_time():
    for name in drawings_machine.__all__:
        one, two = (getattr(drawings_machine, name)(**KNOWN.get(name, {})) for _ in range(2))
        assert one._repr_html_() == two._repr_html_()


def test_a_headline_is_two_times_one_device_times_all():
    said = headline_factors(**KNOWN["headline_factors"])
    assert re.findall(r"[\d.]+ \w+/s", said.description) == [
        "20 PFLOP/s", "10 PFLOP/s", "1.8 TB/s", "900 GB/s", "1.44 EFLOP/s", "10 PFLOP/s",
    ]  # fmt: skip


@pytest.mark.parametrize(("optimizer_bits", "said"), [(96, ["2 B", "18 B"]), (48, ["2 B", "12 B"])])
def test_bytes_to_serve_and_to_train(optimizer_bits, said):
    drawn = state_and_memory(models.llama3_70b, accelerators.h100, optimizer_bits=optimizer_bits)
    assert re.findall(r"([\d.]+ B) each", drawn.description) == said


@pytest.mark.parametrize("side", [2, 3])
def test_numbers_at_work_lie_in_a_slanted_wave(side):
    """At the moment that is drawn, half of the array above the diagonal and the diagonal work."""
    svg = systolic_array(side).svg
    assert svg.count('class="sb-arithmetic" x=') - svg.count('width="24"') == side * (side + 1) // 2


def test_an_array_too_large_is_refused():
    with pytest.raises(ValueError, match=r"^an array is drawn of side 2 or 3; this is 4$"):
        systolic_array(4)


def test_fused_attention_moves_less():
    whole, tiled = re.findall(r"([\d.]+) GB moved", score_tiles(**KNOWN["score_tiles"]).description)
    assert float(whole) > 3 * float(tiled)


def test_the_tree_uses_each_port_once_and_its_longest_way_has_as_many_switches_as_the_formula_says():
    radix, tiers = drawings_machine.RADIX, drawings_machine.TIERS
    devices = round(fat_tree_devices(switch_radix=radix, switch_tiers=tiers))
    links = drawings_machine._links(devices, radix // 2)
    up = Counter((tier, child) for tier, child, *_ in links)
    down = Counter((tier + 1, parent) for tier, _, _, parent, *_ in links)
    assert all(up[x] + down[x] == (1 if x[0] == 0 else radix) for x in up | down)
    way = [x for x in links if x[-1]]
    assert len({(t, c) for t, c, *_ in way if t} | {(t + 1, p) for t, _, _, p, *_ in way}) == switch_hops(
        switch_tiers=tiers
    )
    assert fat_tree().title.startswith(f"{devices} devices")
