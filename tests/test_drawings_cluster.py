"""The drawings of devices together, and of weights in few bits: as every drawing, nothing held twice."""

import re

import pytest
from scalebook.book.drawings import cluster as drawings_cluster
from scalebook.book.drawings.cluster import layouts_of_devices, node_and_ports, one_scale, two_of_four

from scalebook.tables import accelerators, precisions
from tests.test_schematics import (  # noqa: F401 (what every drawing must be)
    test_it_has_the_colours_of_the_vocabulary_in_both_schemes,
    test_it_is_well_formed_and_says_what_it_shows,
    test_its_text_stays_on_it_and_is_large_enough_on_a_phone,
)

KNOWN = {
    "two_walls": dict(layers=126, message_time=16e-6, batch_tokens=16e6, ridge_tokens=591),
    "node_and_ports": dict(device=accelerators.h100),
}


@pytest.fixture(params=drawings_cluster.__all__)
def scene(request):
    return getattr(drawings_cluster, request.param)(**KNOWN.get(request.param, {}))


def test_bits_are_those_of_the_table():
    assert f"= {precisions.nvfp4.weight_bits:g} bits a value" in one_scale().description
    assert "5 bits instead of 8" in two_of_four(element_bits=8).description


@pytest.mark.parametrize("layout", [(8, 1, 1), (1, 8, 1), (4, 2, 1), (2, 2, 2), (1, 1, 8)])
def test_every_device_stands_once_in_a_layout(layout):
    numbers = re.findall(r">(\d)</text>", layouts_of_devices([layout]).svg)
    assert sorted(numbers) == list("12345678")


def test_a_node_that_is_too_large_is_refused():
    with pytest.raises(ValueError, match=r"^a node that is drawn has at most 8 devices; one of .* has 72$"):
        node_and_ports(accelerators.gb200)
