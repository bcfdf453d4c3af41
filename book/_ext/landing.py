"""What the landing page holds that is made of the package: the live sentence, the strip of evidence, the parts.

`book/index.md` names each as a substitution, so that its prose stays prose.
"""

import html
import json
from functools import cache

from linking import BOOK, contents, imported, plain, stems
from scalebook.book.claims import claims
from scalebook.book.measured.record import recorded

from scalebook.book import drawings
from scalebook.display import calculator
from scalebook.inference import decoding, latency_floor
from scalebook.language import FORMULAS, show
from scalebook.memory.state import replicated
from scalebook.pipeline import bubble_interleaved, simulate
from scalebook.tables import accelerators, links, models
from scalebook.tables.huggingface import TYPES

NOTEBOOKS = BOOK.parent / "notebooks"
WORDS_A_MINUTE = 200
# What stands under "why": a letter of the calculator, and the words around its number.
WHY = [
    ("traffic", "weights and cache read", "decode_traffic"),
    ("memory_time", "reading them", "memory_time"),
    ("flops", "operations", "decode_flops"),
    ("compute_time", "computing them", "compute_time"),
    ("token_time", "the longer of the two: a token", "token_time_fitting"),
]


@cache
def live():
    """One token of one sequence of 8,192: weights in 16, 8 or 4 bits, arithmetic and cache in 16."""
    devices = accelerators[[key for key, row in accelerators.items() if "peak_bf16" in row.cells]]
    return calculator(
        decoding,
        "token_time",
        also=["memory_time", "compute_time", "decode_memory", "traffic", "flops"],
        model=models,
        device=devices,
        precision=["bf16"],
        weight_bits=[16, 8, 4],
        kv_bits=16,
        batch=1,
        context=8192,
        start=dict(model="llama3_70b", device="h100", weight_bits=8),
        warn=[("decode_memory", "hbm_capacity", "It does not fit.")],
    )


def waiting(made) -> str:
    """The share of a token's time in which arithmetic waits for memory."""
    return show(1 - made.values["compute_time"] / made.values["memory_time"], "%")


def menu(made, name: str, label: str) -> str:
    """A menu of the sentence, by the keys of rows or by numbers."""
    options = []
    for x in made.options[name]:
        value = x["key"] if "key" in x else x["letters"][name]
        chosen = " selected" * (value == made.state[name])
        options.append(f'<option value="{value}"{chosen}>{html.escape(said(x["label"]))}</option>')
    return f'<select name="{name}" aria-label="{label}">{"".join(options)}</select>'


def said(label: str) -> str:
    """An option as the sentence says it.

    >>> said("8 bit"), said("Llama 3.1 70B")
    ('8 bits', 'Llama 3.1 70B')
    """
    return label + "s" if label.endswith(" bit") else label


def entry(name: str) -> str:
    """The address of a formula's entry, seen from the landing page."""
    return f"reference/formulas.html#formula-{name.replace('_', '-')}"


def sentence() -> str:
    """The first thing that moves: a model, its bits, a device, and how long a token takes there."""
    made = live()
    menus = (
        menu(made, "model", "Model"),
        menu(made, "weight_bits", "Bits of a weight"),
        menu(made, "device", "Device"),
    )
    texts = made.texts
    lines = "".join(
        f'<li><a href="{entry(name)}">{words}</a>: <b data-letter="{letter}">{texts[letter]}</b></li>'
        for letter, words, name in WHY
    )
    return (
        '<div class="sb-sentence"><p>'
        f'{menus[0]} in {menus[1]} on one <span class="sb-glued">{menus[2]}:</span> '
        '<span aria-live="polite"><span class="sb-answered">a token takes '
        f'<b data-said="time">{texts["token_time"]}</b>, <b data-said="waiting">{waiting(made)}</b> of it '
        "waiting for memory."
        '</span><span class="sb-refused" data-said="refused" hidden></span></span></p>'
        '<div class="sb-shares" aria-hidden="true"><span class="sb-at-work"></span><span class="sb-waits"></span></div>'
        '<p class="sb-key" aria-hidden="true"><span class="sb-at-work">arithmetic at work</span> '
        '<span class="sb-waits">waiting for memory</span></p>'
        f"<details><summary>Why?</summary><p>One sequence of 8,192 tokens; arithmetic and cache in 16 bits.</p>"
        f"<ul>{lines}</ul></details></div>"
    )


def minutes(part: str) -> int:
    """How long the prose of a part takes to read, in whole minutes."""
    words = 0
    for stem in stems(part):
        cells = json.loads((NOTEBOOKS / part / f"{stem}.ipynb").read_text("utf-8"))["cells"]
        words += sum(len("".join(x["source"]).split()) for x in cells if x["cell_type"] == "markdown")
    return round(words / WORDS_A_MINUTE)


def spent(time: int) -> str:
    """Minutes in words.

    >>> spent(45), spent(125)
    ('45 min', '2 h 5 min')
    """
    hours, rest = divmod(time, 60)
    return f"{hours} h {rest} min" if hours else f"{rest} min"


def fold(x: float) -> str:
    """A ratio in two figures."""
    return f"{x:.2g}-fold"


def grown() -> str:
    old, new = accelerators.v100, accelerators.gb200
    work, read = new.peak_bf16 / old.peak_fp16, new.hbm_bandwidth / old.hbm_bandwidth
    return (
        f"From V100 to GB200 arithmetic in 16 bits grew {fold(work)}, the bandwidth that feeds it {fold(read)}: "
        "chips wait for memory."
    )


def idle() -> str:
    lost = [bubble_interleaved(pp=4, microbatches=8, chunks=n) for n in (1, 4)]
    shares = [f"{100 * x / (1 + x):.0f} %" for x in lost]
    return (
        f"A pipeline of 4 stages fed with 8 microbatches stands idle {shares[0]} of the time, "
        f"and {shares[1]} where each stage holds 4 chunks."
    )


def borrowed() -> str:
    held = replicated(weight_bits=16, gradient_bits=16, optimizer_bits=96) / 8 * 128e12 / 4096
    return (
        f"To train 128 trillion parameters each of 4,096 H100s would have to hold {held / 1e9:.0f} GB of state beside "
        f"its {accelerators.h100.hbm_capacity / 1e9:.0f} GB: the rest lives a link away."
    )


def floor() -> str:
    time = latency_floor(models.llama3_70b, accelerators.h100, weight_bits=8) / 8
    return (
        f"Eight H100s cannot pass through Llama 3.1 70B in 8 bits in less than {1e3 * time:.1f} ms, whatever the "
        "engine: so long they take to read its weights."
    )


def block():
    return drawings.block_tensors(models.llama3_8b, weight_bits=16, kv_bits=16, context=8192)


def pipeline():
    return drawings.pipeline_phases(simulate("1f1b", pp=4, microbatches=8))


def pools():
    return drawings.prefill_decode_pools(models.llama3_70b, 1024, prompt_time=30e-3, kv_bits=16, link_bandwidth=50e9)


# Of each part: what it finds in a sentence, and a mechanism of it drawn.
RESULTS = {
    "1-scaling-compute": (grown, block),
    "2-parallelism": (idle, pipeline),
    "3-multi-trillion": (borrowed, lambda: drawings.tiers(accelerators.h100, links.pcie5)),
    "4-inference": (floor, pools),
}


def part(stem: str) -> list[str]:
    """A part as a card: its figure, what it finds, and how long it takes to read."""
    [caption] = [x["caption"] for x in contents()["parts"] if x["chapters"][0]["file"] == f"book/parts/{stem}"]
    result, figure = RESULTS[stem]
    chapters = stems(stem)
    return [
        "```{grid-item-card}",
        f":link: parts/{stem}",
        ":link-type: doc",
        f":link-alt: {plain(caption)}",
        "",
        f'<div class="sb-part-figure">{figure().svg}</div>',
        "",
        f"**{plain(caption)}**",
        "",
        result(),
        "",
        f"<small>{len(chapters)} chapters, {spent(minutes(stem))} to read</small>",
        "```",
    ]


def parts() -> str:
    """The parts that follow an article, as cards."""
    cards = ["", *(line for stem in RESULTS for line in [*part(stem), ""])]
    return "\n".join(["````{grid} 1 2 2 2", ":gutter: 3", ":class-container: sb-parts", *cards, "````"])


def medians() -> dict[str, str]:
    """How far off what is asked for most is at the median, as the record has it."""
    families = {x["name"]: x for x in recorded()["families"]}
    named = {"a training step": "step time", "a token of a service": "decoding"}
    return {what: f"{families[name]['median']:.0%}".replace("%", " %") for what, name in named.items()}


def speed() -> tuple[str, str]:
    """Strategies that a search prices a second, and a peer's, as `make bench` kept them."""
    kept = json.loads((BOOK.parent / "scalebook" / "measurements" / "speeds.json").read_text("utf-8"))
    own, peer = kept["scalebook"]["strategies"]["value"], kept["peers"]["strategies"]
    return (
        f"{own / 1e6:.2g} million",
        f"strategies of training priced a second in Python; {peer['who']}: {peer['value']}",
    )


def evidence() -> str:
    """What the book rests on, counted now."""
    imported()
    counts, rows = claims.verdicts(), sum(x["rows"] for x in recorded()["sets"].values())
    facts = [
        (f"{counts.total.total()}", "sentences of four articles judged", "reference/claims.html"),
        (f"{len(FORMULAS)}", "formulas, each with its source", "reference/formulas.html"),
        (f"{rows:,}", "measured rows beside them", "reference/trust.html"),
        *((off, f"off at the median: {what}", "reference/trust.html") for what, off in medians().items()),
        (*speed(), "../notebooks/2-parallelism/adaptive-parallelism.html"),
        (f"{len(accelerators)}", "accelerators, a source for each cell", "reference/accelerators.html"),
        (
            f"{len(TYPES)}",
            "types of model read from their config.json",
            "../notebooks/1-scaling-compute/reading-a-config.html",
        ),
    ]
    items = "".join(f'<li><a href="{at}"><b>{number}</b> {words}</a></li>' for number, words, at in facts)
    return f'<ul class="sb-evidence">{items}</ul>'


def script() -> str:
    """What the sentence computes with, as the script that its page loads."""
    made = live()
    return f"globalThis.scalebook_landing = {json.dumps(dict(spec=made.spec, data=made.data), sort_keys=True)};\n"


def gather(app, config):
    (BOOK / "_build" / "assets" / "landing-data.js").write_text(script(), "utf-8")
    config.myst_substitutions = dict(
        live_sentence=sentence(), parts=parts(), evidence=evidence(), counts=claims.verdicts().sentence()
    )


def own_scripts(app, name, template, context, doctree):
    if name == "book/index":
        app.add_js_file("landing-data.js", loading_method="defer", priority=800)
        app.add_js_file("landing.js", loading_method="defer", priority=801)


def setup(app):
    app.connect("config-inited", gather, priority=900)  # after the folder of assets is made
    app.connect("html-page-context", own_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
