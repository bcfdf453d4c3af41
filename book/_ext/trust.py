"""The page "How far to trust this book": errors, intervals and peers, from the record that `make confront` writes."""

import math
import tomllib

from linking import BOOK, plain, repository

from scalebook.language.tabular import Markup, page_table, table_cell
from scalebook.measurements import CONFRONTATIONS
from scalebook.measurements.coverage import LEAST_ROWS
from scalebook.measurements.evidence import FAMILIES, whole
from scalebook.measurements.record import TOLERANCE, recorded
from scalebook.measurements.spreads import PARTS_OF_ROWS, TAIL
from scalebook.tables import accelerators

LEVEL = 1 - 2 * TAIL
HEAD = f"""# How far to trust this book

Every figure here is an error of a prediction: of rows that others published, that were measured on real machines, and
on which nothing was calibrated. `make confront` predicts all of them anew and writes this record; a change that makes
an error of a set worse than recorded by more than {100 * TOLERANCE:.0f} % fails the tests, which name the set.

**How to read it.** An error is |predicted/measured − 1|. *Bias* is its signed mean: below zero, what is predicted is
too small. *One number* is the error of the best single number in the place of the model, a constant share of the peak
or the roofline, where a set has been held against one: where it is smaller than ours, the model is not worth its
trouble there. A row is predicted by the call that a reader would type: its layout, the rows of tables that it names (a
device, a framework or an engine, libraries, a cluster) and nothing else. `confront("torchtitan").rows[3].call` prints
it, and `confront("serving_ttft").rows[3].call` one of a service. *Within* is the share of rows that lie in
the interval of `interval()`, which promises
{100 * LEVEL:.0f} % when all that is uncertain is learnt without the set, without others of its table, and without rows
that anything was calibrated on; *width* is how far its ends are apart, over the value.
"""

METHOD = """## Where an interval comes from

```python
run = training_step(
    models.llama3_70b, accelerators.h100, frameworks.nemo, tp=8, pp=4, dp=8, batch=1, global_batch=128, seq=8192
)
run.interval("step_time")
```

A call that names no framework has two ends instead: everything hidden and fused, and nothing hidden with eager
kernels and libraries of 2023. The interval reaches from 0.95 of the first to 1.05 of the second, and names what
decides.

Shares of peaks, launches and latencies carry a low and a high end beside their typical value, from what they would
have to be for each measured kernel to be predicted right: the 10th and the 90th percentile. A device of which no
kernel was measured has the ends of the devices that were. What remains is learnt as one factor for each of step time,
memory, first tokens, the kinds of kernels, and decoding without and with experts, and stands as *what no formula has*;
the parts of a decoding step that are kernels of attention, of experts or between devices have the factors of these.
Four hundred draws are made of all that a result rests on, one for each thing, so that all products of one device and
precision are slow together; what you give in a call is taken as given. The result names what moves it most.

An interval knows of what the rows behind it know: software as it was published, tuned by those who published it, on
machines without a fault. It does not know your network's neighbours, your container or your data loader.
"""

DEVICES = f"""## By device

The other check is of rows instead of sets: lots divide the rows of every set into {PARTS_OF_ROWS} parts, and each part
is asked what lies within when all that is uncertain was learnt from the rest. That is what a reader meets who
measures more of the same on a device of the table. *All* counts every row of the device; a kind with fewer than
{LEAST_ROWS} rows on it has no figure of its own. Devices whose numbers are the same in our tables count as the first
of them: an H800's products as an H100's, a GB300's attention as a GB200's.
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
    figures = ["median", "90 %", "bias", "one number"]
    heads = ["What is predicted", "sets", "rows", *figures, "within", "of a table", "width"]
    return [
        "## By what is predicted",
        *table(heads, lines),
        "*Within* counts rows, *of a table* is the mean of the tables; the width is the median of the sets. Of first",
        "tokens and of streams there are two tables each, of which neither says much of the other: no promise is made.",
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
    said = [f"# {x}, row {c().rows[0]['row_id']}\n{c().rows[0].call}" for x, c in calls]
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
        "AIConfigurator interpolates in tables of measured kernels, of the kind that our kernels were fitted on.",
        "Calculon's model runs here in its own words, with the system file that its authors validated it with. Of",
        "SimuMax's published predictions none is on a row that the package holds: it cannot be compared here.",
        "",
    ]


def trust() -> str:
    where = f"[every row and its source](<{repository()}/blob/main/scalebook/measurements/README.md>)"
    return "\n".join([HEAD, *families(), METHOD, *devices(), *beside(), *sets(), f"The measurements: {where}.", ""])
