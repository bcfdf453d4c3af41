"""What data sheets print, taken apart: notes of the table repeat it, and what is left is what was measured."""

import re

from scalebook.book.claims.arithmetic import rack_flops, rack_links

from scalebook.language.units import parse
from scalebook.machine.datasheet import data_sheet, printed_flops, printed_links
from scalebook.tables import accelerators

from .every import every

SPARSE = [
    (key, letter, found[1])
    for key, row in accelerators.items()
    for letter, cell in row.cells.items()
    if letter.startswith("peak_") and (found := re.match(r"([\d,.]+ [TP]FLOP/s) with sparsity", cell.note or ""))
]


@every(SPARSE)
def test_notes_of_the_table_repeat_the_headline(key, letter, printed):
    """Twice the dense rate: but of Blackwell in 4 bits, and of Trainium, whose sparsity is another."""
    row = accelerators[key].at(letter.removeprefix("peak_"))
    said = printed_flops(row, sparsity_gain=2, printed_devices=1)
    other = key.startswith("trainium") or (key in ("b300", "gb300") and letter == "peak_fp4")
    assert (abs(said / parse(printed.replace(",", ""), "FLOP/s") - 1) < 0.005) != other


def test_a_rack_is_what_the_claims_add_up():
    gb200 = accelerators.gb200.at("fp4")
    one = dict(sparsity_gain=1, printed_devices=72, directions=2)
    assert printed_flops(gb200, one) == rack_flops(gb200, devices=72)
    assert printed_links(gb200, one) == rack_links(gb200, devices=72, directions=2, taper=1)


@every(accelerators.having("scaleup_bandwidth", "peak_flops"))
def test_what_is_left_is_less(key):
    row = data_sheet(accelerators[key], sparsity_gain=1, directions=1, printed_devices=1)
    assert 0.3 < row.usable_share < 0.95 and row.usable_bandwidth < accelerators[key].hbm_bandwidth
    assert row.usable_links < row.printed_links and row.pair_bandwidth <= row.printed_links
