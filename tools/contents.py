"""The start notebook's index of chapters, made from the book's table of contents: `python -m tools.contents` writes it.

Each chapter has its title, a sentence of its own answer, and the minutes that its prose takes to read.
"""

import json
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
START = ROOT / "notebooks" / "start.ipynb"
HEADING = "## All chapters, in reading order"
WORDS_A_MINUTE = 200

# Where the first sentence of a chapter's answer is not the one that says most: how the chosen one begins.
CHOSEN = {
    "memory-bottlenecks": "there is a context beyond which no batch",
    "reading-a-data-sheet": "Large products reach",
    "your-own-machine": "the formulas predict a training step",
    "memory-walls": "from 25 billion parameters on",
    "custom-silicon": "In 16-bit precision, memory is the limit",
    "the-network": "however many devices add up",
    "quadratic-attention": "In Llama 3.1 8B attention costs as much",
    "how-large-can-a-run-be": "Moving data ends a run",
    "memory-of-a-sharded-model": "FSDP cannot train a model of any size",
    "mixed-precision-accumulation-recomputation": "Recomputing everything costs 35 %",
    "data-parallelism": "a batch has a wall",
    "fully-sharded-data-parallelism": "FSDP hides its traffic",
    "interconnects-and-memory-tiers": "A group with one device in each node",
    "operating-a-cluster": "Llama 3.1 405B stopped",
    "tensor-parallelism": "at a width of 8,192, eight H100s",
    "pipeline-parallelism": "16 stages need 300 micro-batches",
    "mixture-of-experts": "a batch of 64 sequences visits",
    "adaptive-parallelism": "Changing one setting at a time",
    "quantization-and-pruning": "Narrow weights alone",
    "fewer-synchronisations": "64 workers that never wait",
    "what-a-run-costs": "The same model on the same data",
    "knobs": "without --fp8-format",
    "modelling-a-training-step": "Eight published steps of Megatron-LM",
    "shapes-of-multi-trillion-models": "The step leaves the aspect nearly free",
    "tensor-offloading": "Activations are the cheapest",
    "users-queues-and-first-tokens": "Tokens within twice their least time",
    "a-bill-and-two-pools": "At the list price of one cloud",
    "jitter-and-more-devices": "If delays have no memory",
    "shapes-that-fit": "An odd size costs",
    "bandwidth-or-flops": "Where one device holds the model",
    "capacity-pipelines-caches-prefixes": "A pipeline of",
    "centralised-training": "With 10 GB/s between the sites",
    "can-we": "Three plans come near 60 days",
    "lab-1-layout": "In 14 days the best layout",
    "lab-2-service": "The cheapest service for 400",
}


def prose(path: Path) -> list[str]:
    """The Markdown of a notebook, cell by cell."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(x["source"]) for x in cells if x["cell_type"] == "markdown"]


def minutes(path: Path) -> int:
    """How long the prose of a notebook takes to read, a minute at least."""
    return max(1, round(sum(len(x.split()) for x in prose(path)) / WORDS_A_MINUTE))


def sentences(path: Path) -> list[str]:
    """The sentences of a chapter's answer, which stands under a heading of its own."""
    answer = re.search(r"(?ms)^## The answers? first\n(.*?)(?=^## |\Z)", "\n\n".join(prose(path)))[1]
    items = re.split(r"(?m)^(?:[-*] |\d+\. |\s*$)", answer)
    lines = (" ".join(x.split()) for x in items)
    return [s for line in lines if line for s in re.split(r"(?<=[a-zäöü0-9)%*$][.:;])\s+(?=[A-Z*`\[$])", line)]


def result(path: Path) -> str:
    """One sentence of a chapter's answer, in plain words: without links and emphasis."""
    start = CHOSEN.get(path.stem, "")
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", x).replace("**", "").replace("*", "") for x in sentences(path))
    found = next((x[x.replace("`", "").index(start) :] for x in plain if start in x.replace("`", "")), "")
    if not found:
        raise ValueError(f"{path.stem}: no sentence of its answer has {start!r}")
    return f"{found[:1].upper()}{found[1:].rstrip(':;., ')}."


def index() -> str:
    """The index as Markdown: a table for each part, and links that open a chapter beside this notebook."""
    lines = [HEADING, ""]
    for part in yaml.safe_load((ROOT / "book" / "_toc.yml").read_text("utf-8"))["parts"]:
        files = [ROOT / f"{x['file']}.ipynb" for x in part["chapters"] if x["file"].startswith("notebooks/")]
        chapters = [x for x in files if x != START and x.parent.name != "appendix"]
        if not chapters:
            continue
        lines += [f"### {part['caption']}", "", "| Chapter | What it finds | min |", "| :-- | :-- | --: |"]
        for path in chapters:
            title = prose(path)[0].splitlines()[0].removeprefix("# ")
            said = result(path).replace("|", r"\|")
            lines.append(f"| [{title}]({path.relative_to(START.parent)}) | {said} | {minutes(path)} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def main() -> None:
    """Put today's index where the old one stands."""
    book = json.loads(START.read_text("utf-8"))
    [cell] = [x for x in book["cells"] if "".join(x["source"]).startswith(HEADING)]
    cell["source"] = index().splitlines(keepends=True)
    START.write_text(json.dumps(book, indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
