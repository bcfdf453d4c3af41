"""The hardware tables say what they mean: every cell has a unit and a source, and notes agree with numbers."""

import re
import tomllib

import pytest

from scalebook.language.notation import NOTATION
from scalebook.language.units import parse
from scalebook.tables import SOURCES as EVERY_SOURCE

from . import ROOT
from .every import every

FOLDER = ROOT / "scalebook" / "tables"


def read(name):
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def whole(rows):
    """Rows with what they take from those that they are like, which may themselves be like others."""

    def full(row):
        return (full(rows[row["like"]]) if "like" in row else {}) | {n: y for n, y in row.items() if n != "like"}

    return {k: full(x) for k, x in rows.items()}


OWN, LINKS, SOURCES = read("accelerators"), read("links"), read("sources-hardware")
DEVICES = whole(OWN)
WORDS = {"name", "source", "vendor", "fabric", "kind", "like"}
CELLS = [
    (key, letter, cell if isinstance(cell, dict) else {"value": cell})
    for table in (OWN, LINKS)
    for key, row in table.items()
    for letter, cell in row.items()
    if letter not in WORDS
]
KINDS = {"scale-up", "scale-out", "host", "memory", "storage"}
PRECISIONS = ["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4"]  # each at least as fast as those before


def number(row, letter):
    """A cell in base units, or None where the table has none."""
    cell = row.get(letter)
    value = cell["value"] if isinstance(cell, dict) else cell
    return parse(value, NOTATION[letter].unit) if isinstance(value, str) else value


def note(row, letter):
    return row[letter].get("note", "") if isinstance(row[letter], dict) else ""


def cited_by(row):
    return [row["source"], *(c["source"] for c in row.values() if isinstance(c, dict) and "source" in c)]


def quantity(digits, unit):
    return parse(f"{digits.replace(',', '')} {unit.replace('OPS', 'FLOP/s')}", "B/s" if "B" in unit else "FLOP/s")


@every([*DEVICES.values(), *LINKS.values()])
def test_row(row):
    assert row["name"]
    assert row["source"].split()[0] in (SOURCES if row in OWN.values() or "vendor" not in row else EVERY_SOURCE)


@every(CELLS)
def test_cell(key, letter, cell):
    assert letter in NOTATION, f"no letter is called {letter!r}"
    assert set(cell) <= {"value", "low", "high", "source", "note"}, f"{letter} of {key} has more than a cell may have"
    if "source" in cell:  # what we calibrated cites the measurements, and says so
        source = cell["source"].split()[0]
        assert source in SOURCES or (
            source in EVERY_SOURCE and ("like" in OWN.get(key, ()) or cell["note"].startswith("calibrated by us"))
        ), f"{source!r} is no source on hardware: if {letter} of {key} was fitted, its note begins 'calibrated by us'"
    assert cell.get("note", "x"), f"the note of {letter} of {key} is empty: leave it out"
    if isinstance(cell["value"], str):
        least = parse(cell["value"], NOTATION[letter].unit)
        assert least > 0 or (letter == "chunk_time" and least == 0), "nothing is cut into chunks there"
    else:
        assert NOTATION[letter].unit == "" and cell["value"] > 0, f"{letter} of {key} is positive, and a unit is text"


@every(SOURCES)
def test_source(key):
    source = SOURCES[key]
    assert set(source) - {"read"} == {"title", "author", "year", "url"}, f"{key} has title, author, year and url"
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", key), f"a source's key is small letters and digits with -, not {key}"
    assert source["url"].startswith("https://") and 2010 < source["year"] < 2030, f"url or year of {key}"
    assert not re.search("askai|genixplay|allpcb|cloudnews|aiwiki", source["url"]), "a copy or an answer site"
    cited = {str(x).split()[0] for row in (*DEVICES.values(), *LINKS.values()) for x in cited_by(row)}
    assert key in cited, f"no device and no link cites the source {key}"


@every(LINKS.values())
def test_link(row):
    assert row["kind"] in KINDS
    bandwidth, achieved = number(row, "link_bandwidth"), number(row, "link_achieved")
    assert note(row, "link_bandwidth")
    assert achieved is None or achieved < bandwidth
    assert "link_latency" not in row or note(row, "link_latency")


of_every_device = every(DEVICES.values(), name=lambda row: row["name"])


@of_every_device
def test_has_what_every_device_needs(row):
    assert row["vendor"], f"{row['name']} names no vendor"
    assert {"hbm_capacity", "hbm_bandwidth"} <= set(row), f"{row['name']} needs hbm_capacity and hbm_bandwidth"
    assert any(letter.startswith("peak_") for letter in row), f"{row['name']} needs a peak, such as peak_bf16"


@of_every_device
def test_lower_precision_is_no_slower(row):
    peaks = [peak for p in PRECISIONS if (peak := number(row, f"peak_{p}"))]
    assert peaks == sorted(peaks), f"a wider format of {row['name']} is faster than a narrower one: is one peak sparse?"
    if {"peak_int8", "peak_bf16"} <= set(row) and "cut" not in note(row, "peak_int8"):
        assert number(row, "peak_int8") >= number(row, "peak_bf16")
    if {"peak_vector", "peak_fp32"} <= set(row):
        assert number(row, "peak_vector") <= number(row, "peak_fp32")


@of_every_device
def test_says_what_the_vendor_counts_otherwise(row):
    for letter in {"scaleup_bandwidth", "scaleout_bandwidth", "host_capacity", "host_bandwidth"} & set(row):
        assert note(row, letter), f"the note of {letter} says what it counts, and what the vendor prints"
    if "peak_int8" in row:
        assert note(row, "peak_int8").startswith("integer operations"), "the note of peak_int8 begins so"
    if "preliminary" in row["name"]:
        unmarked = [x for x in row if x not in WORDS | {"launch"} and "preliminary" not in note(row, x)]
        assert not unmarked, "a preliminary device says 'preliminary' in each note"
    if row["name"].startswith(("NVIDIA A", "NVIDIA H", "NVIDIA B", "NVIDIA G", "AMD Instinct MI3")):
        fast = {f"peak_{p}" for p in ("tf32", "bf16", "fp16", "fp8", "int8")} & set(row)
        silent = [letter for letter in sorted(fast) if "sparsity" not in note(row, letter)]
        assert not silent, "a note repeats the rate with sparsity, or says that there is none"
        assert "peak_fp64" not in row or "cores" in note(row, "peak_fp64"), "of matrix or of vector units?"


@of_every_device
def test_links_fit_the_fabric(row):
    """A mesh has peers and a torus neighbours, and the note on the bandwidth counts as many links,
    or so many to each.
    """
    assert row.get("fabric", "switch") in ("switch", "mesh", "torus"), "a fabric is a switch, a mesh or a torus"
    assert ("mesh_peers" in row) == (row.get("fabric") == "mesh"), "a mesh, and nothing else, has mesh_peers"
    assert ("torus_neighbours" in row) == (row.get("fabric") == "torus"), "a torus alone has torus_neighbours"
    if "fabric" in row:
        assert {"scaleup_bandwidth", "scaleup_size"} <= set(row), "a fabric has a scaleup_bandwidth and a scaleup_size"
    if row.get("fabric") == "mesh":
        assert number(row, "mesh_peers") == number(row, "scaleup_size") - 1, "in a mesh every other device is a peer"
        if found := re.search(r"(\d+) links of .*one to each peer", note(row, "scaleup_bandwidth")):
            assert int(found[1]) == number(row, "mesh_peers")
        if found := re.search(r"(\d+) of the \d+ ports .*, (\d+) to each peer", note(row, "scaleup_bandwidth")):
            assert int(found[1]) == int(found[2]) * number(row, "mesh_peers")
    if row.get("fabric") == "torus" and (
        found := re.search(r"(\d) links .*in a (\d)D torus", note(row, "scaleup_bandwidth"))
    ):
        assert number(row, "torus_neighbours") == int(found[1]) == 2 * int(found[2])


@of_every_device
def test_a_price_says_whose_and_when(row):
    """On demand, of one cloud, in a year; and the share of one device is what the instance costs."""
    if "price_hour" in row:
        text = note(row, "price_hour")
        assert "on demand" in text and re.search(r"\b20\d\d\b", text)
        assert "price" in row["price_hour"]["source"]
        if found := re.search(r"derived: ([\d,.]+) \$/h for ([\d,]+)(?: chips)? on demand", text):
            whole, devices = (float(x.replace(",", "")) for x in found.groups())
            assert number(row, "price_hour") == pytest.approx(whole / devices, abs=0.005)


@of_every_device
def test_cards_without_nvlink_have_one_link(row):
    """What they exchange goes by the link to the host, in one direction."""
    if "scaleup_bandwidth" in row and "no NVLink" in note(row, "scaleup_bandwidth"):
        assert number(row, "scaleup_bandwidth") == number(row, "host_bandwidth") and "fabric" not in row


@of_every_device
def test_host_link_is_the_devices_own(row):
    """A specification of PCIe does not say what a device has; what the vendor leaves open is marked."""
    if "host_bandwidth" in row:
        assert "source" not in row["host_bandwidth"] or row["host_bandwidth"]["source"] != "pci-sig"
        if lanes := re.search(r"PCIe (\d)\.0 x16.*?; (\d+) GB/s raw", note(row, "host_bandwidth")):
            assert number(row, "host_bandwidth") == float(lanes[2]) * 1e9 == 2 ** int(lanes[1]) * 2e9
    if row["name"].startswith("NVIDIA GB"):
        assert note(row, "host_bandwidth").startswith("derived") and "disputed" in note(row, "host_bandwidth")


@of_every_device
def test_capacities_that_drivers_report(row):
    text = note(row, "hbm_capacity")
    if found := re.search(r"reports ([\d,]+) MiB, which is ([\d.]+) GB", text):
        assert float(found[1].replace(",", "")) * 2**20 / 1e9 == pytest.approx(float(found[2]), abs=0.06)
    if found := re.search(r"lists (\d+) GiB, which is (\d+) GB", text):
        assert int(found[1]) * 2**30 / 1e9 == pytest.approx(int(found[2]), abs=0.5)


@of_every_device
def test_notes_agree_with_the_numbers(row):
    for letter in (x for x in row if x.startswith("peak_")):
        value, text = number(row, letter), note(row, letter)
        if found := re.search(r"(?:^|; )([\d,.]+) ([TP](?:FLOP/s|OPS)) with sparsity", text):
            with_sparsity = quantity(*found.groups())
            if row["vendor"] in ("NVIDIA", "AMD") and letter != "peak_fp4":
                assert with_sparsity == pytest.approx(2 * value, rel=0.012), letter
            assert with_sparsity > value, letter
        if found := re.search(r"half of the ([\d,.]+) ([TP](?:FLOP/s|OPS))", text):
            assert quantity(*found.groups()) == pytest.approx(2 * value, rel=1e-3), letter
        if found := re.search(r"derived: ([\d,.]+) (\w+/?\w*) .*?for (8|two GPUs|the two GPUs)(.*)", text):
            digits, unit, devices, rest = found.groups()
            share = (8 if devices == "8" else 2) * (2 if rest.startswith(" with sparsity") else 1)
            assert quantity(digits, unit) / share == pytest.approx(value, rel=0.01), letter


@every(x for x in CELLS if x[1] in ("scaleup_bandwidth", "link_bandwidth"))
def test_one_direction_is_half_of_both_and_the_sum_of_its_links(key, letter, cell):
    value, text = parse(cell["value"], "B/s"), cell["note"]
    if both := re.search(r"([\d,.]+) ([GT]B/s)(?: for both directions|.*taken as both directions)", text):
        assert quantity(*both.groups()) == pytest.approx(2 * value)
    if "half of" in text and (printed := re.search(r"half of the ([\d,.]+) ([GT]i?B/s)", text)):
        assert quantity(*printed.groups()) == pytest.approx(2 * value)
    if links := re.search(r"(\d+) links of ([\d.]+) (GB/s)", text):
        assert int(links[1]) * quantity(links[2], links[3]) == pytest.approx(value)
    if lanes := re.search(r"(\d+) lanes of (\d+) GT/s", text):
        assert int(lanes[1]) * int(lanes[2]) / 8 * 1e9 == value
    if channels := re.search(r"(\d+) channels of 8 bytes at ([\d,]+) MT/s", text):
        assert int(channels[1]) * 8 * float(channels[2].replace(",", "")) * 1e6 == value
