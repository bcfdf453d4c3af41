"""The page "How far to trust this book": errors, intervals and peers, from the record that `make confront` writes."""

import math
import tomllib

from linking import BOOK, plain, repository
from scalebook.book.measured.coverage import LEAST_ROWS
from scalebook.book.measured.evidence import FAMILIES, whole
from scalebook.book.measured.record import TOLERANCE, recorded
from scalebook.book.measured.spreads import PARTS_OF_ROWS, TAIL

from scalebook.language.tabular import Markup, page_table, table_cell
from scalebook.measurements import CONFRONTATIONS
from scalebook.tables import accelerators

LEVEL = 1 - 2 * TAIL
HEAD = f"""# How far to trust this book

Every figure on this page is the error of a prediction. The measurements were published by others and made on real
machines, and the rows counted here were not used to calibrate anything. `make confront` predicts all of them again and
writes this record. If a change makes the error of a set more than {100 * TOLERANCE:.0f} % worse than recorded, a test
fails and names the set.

**You can type every call.** A row is predicted by a public call: the model, the device, and the framework, engine,
libraries or cluster that its source names, then the layout and sizes that the row prints.
`print(confront("torchtitan").rows[3].call)` prints such a line under its imports. Typing them gives the same number to
the last digit. Below each group of sets there is one call of each.

**How to read the tables.** An error is |predicted/measured − 1|. *Bias* is the signed mean; below zero, predictions are
too small. *One number* is the error of the best single number instead of the model, for example one share of the peak
for all rows. Where it is smaller than ours, the model is not worth its trouble. *Within* is the share of rows inside
the 80 % interval of `interval()`, learnt without this set, without other sets of its table, and without calibrated
rows. *Width* is the distance between the ends of the interval over the value.
"""

METHOD = """## Where an interval comes from

```python
run = training_step(
    models.llama3_70b, accelerators.h100, frameworks.nemo, tp=8, pp=4, dp=8, batch=1, global_batch=128, seq=8192
)
run.interval("step_time")
```

A call that names no framework has two ends instead: everything hidden and fused, and nothing hidden with eager
kernels and libraries of 2023. The interval runs from 0.95 of the first to 1.05 of the second, and names the assumption
that decides.

Shares of peaks, launch times and latencies have a low and a high end beside their typical value. For each measured
kernel we compute the value that would make its prediction exact; the ends are the 10th and the 90th percentile of these
values. A device without measured kernels has the ends of the devices that were measured. The error that remains is
fitted as one factor for each of step time, memory, first tokens, each kind of kernel, and decoding with and without
experts. The parts of a decoding step that are kernels of attention, of experts or between devices have the factors of
those kernels. An interval draws everything uncertain four hundred times, each quantity once per draw, so all products
of one device and precision are slow together. Whatever you give in a call is taken as given. The result names what
moves it most.

An interval knows only what the rows behind it know: published software, tuned by those who published it, on machines
without a fault. It does not know your network's neighbours, your container or your data loader.
"""

DEVICES = f"""## By device

The second check leaves out rows instead of sets. The rows of every set are divided at random into {PARTS_OF_ROWS}
parts, and each part is predicted with everything uncertain learnt from the others. This is what a reader meets who
measures more of the same on a device of the table. *All* counts every row of the device. A kind of row with fewer than
{LEAST_ROWS} rows on a device has no figure of its own. Devices with the same numbers in our tables count as one: an
H800's products count as an H100's, and a GB300's attention as a GB200's.
"""


def percent(x, signed=False, places=1) -> str:
    return "" if x is None else f"{100 * x:{'+' if signed else ''}.{places}f}\xa0%".replace("-", "−")


def table(heads, lines, kind="") -> list[str]:
    return ["", page_table(heads, lines, kind=kind).replace("\n", " "), ""]


def families() -> list[str]:
    lines = [
        [
            x["name"], str(x["sets"]), f"{x['rows']:,}", percent(x["median"]), percent(x["p90"]),
            percent(x["bias"], True), percent(x.get("single")),
            *(percent(x[y], places=0) for y in ("covered", "covered_sets", "width")),
        ]
        for x in recorded()["families"]
    ]  # fmt: skip
    figures = ["median", "90 %", "bias", "one number"]
    heads = ["What is predicted", "sets", "rows", *figures, "within", "by table", "width"]
    return [
        "## By what is predicted",
        *table(heads, lines),
        "*Within* counts rows, *by table* averages over tables, and the width is the median of the sets. First tokens",
        "and streams come from two or three tables each, which say little of each other, so no coverage is promised",
        "for them.",
        "",
    ]


def devices() -> list[str]:
    """A line of each device, a column of each kind of rows: the share within, and in brackets the width."""
    kept = [x for x in recorded()["devices"] if x["device"]]
    kinds = [x for x in FAMILIES if any(x == y["family"] for y in kept)]
    lines = []
    for key in dict.fromkeys(x["device"] for x in kept):
        own = {x["family"]: x for x in kept if x["device"] == key}
        rows = sum(x["rows"] for x in own.values())
        mean = sum(x["covered"] * x["rows"] for x in own.values()) / rows
        each = [_within(own[x]) if x in own else "" for x in kinds]
        lines.append([accelerators[key].name, f"{rows:,}", percent(mean, places=0), *each])
    heads = ["device", "rows", "all", *(x.removeprefix("kernels: ") for x in kinds)]
    return [DEVICES, *table(heads, lines, "sb-one-line"), "In brackets how far the ends are apart, over the value.", ""]


def _within(x) -> str:
    return f"{percent(x['covered'], places=0)} ({percent(x['width'], places=0)})"


def one_set(name: str, kept: dict, covered: dict) -> list[str]:
    c = covered.get(name)
    within = [percent(c[x], places=0) for x in ("covered", "width")] if c else ["", ""]
    worst = f"{kept['worst_row']}: {percent(kept['worst_error'], True)}"
    figures = [percent(kept[x]) for x in ("median", "mean", "p90")]
    more = [percent(kept["bias"], True), percent(kept.get("single")), *within, worst]
    return [table_cell(Markup(f"<code>{name}</code>"), "th", scope="row"), f"{kept['rows']:,}", *figures, *more]


def sets() -> list[str]:
    kept, covered = recorded()["sets"], {}
    for x in recorded()["coverage"]:  # of a table of several kinds of rows, the first kind's
        covered.setdefault(whole(x["name"]), x)
    said = _said()
    whys, reasons = {x["name"]: " ".join(x["why"].split()) for x in said["families"]}, said["one_number"]
    heads = ["set", "rows", "median", "mean", "90 %", "bias", "one number", "within", "width", "worst row"]
    lines = ["## Set by set, and where the worst rows are", ""]
    by_family: dict[str, list[str]] = {}
    for name in kept:
        by_family.setdefault(covered[name]["family"] if name in covered else "", []).append(name)
    for family, names in sorted(by_family.items(), key=lambda x: (not x[0], x[0])):
        title = family or "floors, bounds, arithmetic and other models' predictions"
        lines += [
            f"### {title[:1].upper()}{title[1:]}",
            "",
            *([f"**Worst, and why.** {whys[family]}"] if family else []),
        ]
        lines += table(heads, [one_set(x, kept[x], covered) for x in names], "sb-one-line")
        lost = [x for x in names if kept[x].get("single", math.inf) < kept[x]["mean"]]
        lines += [*(["**Where one number is nearer than we are, and why.**", ""] if lost else [])]
        lines += [*(f"- `{x}`, {percent(kept[x]['single'])} against {percent(kept[x]['mean'])} in the mean: "
                    f"{' '.join(reasons.get(x, '').split())}" for x in lost), ""]  # fmt: skip
        each = [f"`{x}`: {plain(CONFRONTATIONS[x].what)}" for x in names if x in CONFRONTATIONS]
        lines += ["::::{dropdown} What each set is", "", *(f"- {x}" for x in each), "", "::::", ""]
        lines += typed(names)
        lines += [f"`{x}` needs Python of its own. {CONFRONTATIONS[x].why}\n" for x in names
                  if x in CONFRONTATIONS and CONFRONTATIONS[x].why]  # fmt: skip
    return lines


def typed(names) -> list[str]:
    """For each set that is data, the call that a reader types for its first row: the row's prediction is its value."""
    calls = [(x, CONFRONTATIONS[x]) for x in names if x in CONFRONTATIONS and CONFRONTATIONS[x].call]
    if not calls:
        return []
    lines = {x: c.first.call.splitlines() for x, c in calls}
    imported = sorted({line for *imports, _ in lines.values() for line in imports})
    said = ["\n".join(imported), *(f"# {x}, row {c.first['row_id']}\n{lines[x][-1]}" for x, c in calls)]
    head = "::::{dropdown} A call of each set: type it, and it gives the row's prediction"
    return [head, "", "```python", "\n\n".join(said), "```", "", "::::", ""]


def _said():
    return tomllib.loads((BOOK / "trust.toml").read_text("utf-8"))


def beside() -> list[str]:
    lines = [
        [x["what"], x["who"], f"{x['rows']:,}", percent(x["median"]), percent(x["p90"])] for x in recorded()["peers"]
    ]
    return [
        "## Beside other models, on the same rows",
        *table(["what", "whose", "rows", "median", "90 %"], lines),
        "AIConfigurator interpolates in tables of measured kernels, of the same kind that our kernels were fitted on.",
        "Calculon's model is reproduced here and runs with the system file that its authors validated it with. None of",
        "SimuMax's published predictions is on a row that the package holds, so it cannot be compared here.",
        "",
    ]


def trust() -> str:
    where = f"[every row and its source](<{repository()}/blob/main/scalebook/measurements/README.md>)"
    return "\n".join([HEAD, *families(), METHOD, *devices(), *beside(), *sets(), f"The measurements: {where}.", ""])
