"""What the README claims is what the record of confrontations says."""

from pathlib import Path

from scalebook.measurements.record import recorded

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
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
