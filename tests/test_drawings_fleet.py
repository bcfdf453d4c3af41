"""Drawings of a fleet: as every drawing is, and with what executing, or a formula, says."""

from collections import OrderedDict
from itertools import pairwise

import pytest
from scalebook.book.drawings import fleet as drawings_fleet
from scalebook.book.drawings.fleet import _asked, _found, _schedule

from scalebook.inference import next_generation
from scalebook.machine.tiles import tile_efficiency
from scalebook.runs import training_apart
from scalebook.tables import accelerators, models

from .test_schematics import (  # noqa: F401 (what every drawing must be)
    test_it_has_the_colours_of_the_vocabulary_in_both_schemes,
    test_it_is_well_formed_and_says_what_it_shows,
    test_its_text_stays_on_it_and_is_large_enough_on_a_phone,
)

H100 = accelerators.h100.at("bf16")
PIECES = [(1.0, 1.1, 1.0, 1.5), (1.2, 1.0, 1.05, 1.0), (1.0, 1.7, 1.1, 1.2)]
SITES = dict(sites=2, mfu=0.4, exchange_bits=16, site_bandwidth=1e10, site_distance=100, devices=512)
DRAWN = {
    "waiting_for_last": (PIECES,),
    "shared_tiles": (900, 700, 256, 128, 10),
    "next_device": (
        {"read": next_generation(reading_share=0.4, computing_share=0.01, bandwidth_ratio=2.39, flops_ratio=2.27)},
        "H100",
        "B200",
    ),
    "prefixes_kept": (),
    "two_sites": (training_apart(models.llama3_70b, H100, SITES, batch_tokens=2**23, local_steps=1), H100),
}


@pytest.fixture(params=drawings_fleet.__all__)
def scene(request):
    return getattr(drawings_fleet, request.param)(*DRAWN[request.param])


@pytest.mark.parametrize("name", DRAWN)
def test_it_is_the_same_every_time(name):
    one, two = (getattr(drawings_fleet, name)(*DRAWN[name])._repr_html_() for _ in range(2))
    assert one == two


@pytest.mark.parametrize(("often", "until"), [(True, 4.4), (False, 3.8)])
def test_devices_work_as_long_either_way_and_never_stand_still_unseen(often, until):
    bars, sums = _schedule(PIECES, often)
    assert sums[-1] == pytest.approx(until)
    for device in range(4):
        own = sorted(x[1:] for x in bars if x[0] == device)
        assert own[0][0] == 0 and own[-1][1] == sums[-1]
        assert all(a[1] == b[0] for a, b in pairwise(own))
        assert sum(end - start for start, end, works in own if works) == pytest.approx(sum(x[device] for x in PIECES))


@pytest.mark.parametrize(("rows", "columns"), [(900, 700), (256, 128), (1, 1), (512, 175)])
def test_what_is_asked_of_tiles_is_their_efficiency(rows, columns):
    shares = _asked(rows / 256, columns / 128)
    size = dict(rows=rows, columns=columns, copies=1, tile_rows=256, tile_columns=128)
    assert sum(shares) / len(shares) == pytest.approx(tile_efficiency(size))


@pytest.mark.parametrize("asked", ["ABACAB", "AAAA", "ABCABC", "ABCDABECBDA"])
@pytest.mark.parametrize("held", [1, 2, 3, 5])
def test_what_is_found_is_what_an_lru_cache_finds(asked, held):
    cache = OrderedDict()
    for letter, found, kept in _found(asked, held):
        assert found == (letter in cache)
        cache[letter] = None
        cache.move_to_end(letter)
        if len(cache) > held:
            cache.popitem(last=False)
        assert list(reversed(cache)) == list(kept)
