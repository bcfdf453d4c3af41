"""What the README claims is what the records of confrontations and of speeds say."""

import json
import re

import yaml
from scalebook.book.measured.record import recorded

from scalebook.language import show

from . import ROOT

README = (ROOT / "README.md").read_text("utf-8")
FAMILIES = {
    "A training step": "step time",
    "Memory of training": "memory",
    "Kernels: products, attention, collectives, experts": "kernels",
}


def percent(x: float) -> str:
    return f"{100 * x:.1f} %"


def lines() -> list[str]:
    """The table's rows, from the record."""
    kept = recorded()
    families = {x["name"]: x for x in kept["families"]}
    own = [(said, families[name], "–") for said, name in FAMILIES.items()]
    peers = {(x["what"], x["who"]): x for x in kept["peers"]}
    for (what, who), x in peers.items():
        if who != "scalebook":
            said = what[0].upper() + what[1:]
            own.append((said, peers[what, "scalebook"], f"{who}: {percent(x['median'])}, {percent(x['p90'])}"))
    return [f"| {said} | {x['rows']:,} | {percent(x['median'])}, {percent(x['p90'])} | {y} |" for said, x, y in own]


def test_the_table_is_the_record():
    stands = [line for line in README.splitlines() if line.startswith("| ") and "%" in line]
    assert stands == lines(), "the table of README.md should read:\n" + "\n".join(lines())


SPEEDS = json.loads((ROOT / "scalebook" / "measurements" / "speeds.json").read_text("utf-8"))


def fast(value: float, unit: str) -> str:
    """Seconds with their unit, and rates as whole numbers."""
    return show(value, "s") if unit == "s" else f"{value:,.0f} {unit}"


def beside(peer: dict) -> str:
    values = peer["value"] if isinstance(peer["value"], list) else [peer["value"]]
    names = peer["who"].split("; ")
    return "; ".join(f"{who}: {fast(x, peer['unit'])}" for who, x in zip(names, values, strict=True))


def speeds() -> list[str]:
    """The table's rows, from what `make bench` keeps."""
    ours, theirs = SPEEDS["scalebook"], SPEEDS["peers"]
    said = {name: x["what"][0].upper() + x["what"][1:] for name, x in ours.items()}
    return [f"| {said[n]} | {fast(x['value'], x['unit'])} | {beside(theirs[n])} |" for n, x in ours.items()]


def test_the_speeds_are_those_kept():
    table = README.partition("| How fast")[2].partition("\n\n")[0].splitlines()[2:]
    assert table == speeds(), "the table of README.md should read:\n" + "\n".join(speeds())
    assert SPEEDS["day"] in README and all(x["day"] in README for x in SPEEDS["peers"].values())


def test_what_is_linked_is_there():
    """Pages of the site that the README names are in the table of contents; files are in the repository."""
    base = "https://scalebook.github.io/scalebook/"
    contents = (ROOT / "book" / "_toc.yml").read_text("utf-8")
    pages = {x.partition(".html")[0] for x in re.findall(rf"{base}([\w/-]+\.html)", README)}
    assert pages and all(x in contents for x in pages)
    for name in re.findall(r"github\.com/scalebook/scalebook/blob/main/([\w./-]+)", README):
        assert (ROOT / name).exists(), name


def test_it_is_cited_as_the_file_for_citing_says():
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    entry = README.partition("```bibtex\n")[2].partition("```")[0]
    name = f"{said['title']}: {said['abstract'][0].lower()}{said['abstract'][1:].rstrip('.')}"
    cited = said | {"title": name}
    assert all(f"  {x} = {{{cited[x]}}},\n" in entry for x in ("title", "version", "license", "url"))
