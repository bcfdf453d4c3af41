"""Framework flags for the planner's layouts, as templates made from what `scalebook.flags` writes.

Each letter is written as its own prime number, which is then replaced by the letter, so no flag is stated twice.
"""

import itertools
import re
from functools import cache
from graphlib import TopologicalSorter

from scalebook.flags import SERVERS, write
from scalebook.pipeline.schedules import SCHEDULES
from scalebook.training.shardings import SHARDINGS
from scalebook.training.strategy import CHOICES

from .sheets import MODULES

__all__ = ["flag_texts"]

# The value that stands for each letter where it is above one.
PLACES = dict(
    tp=7, cp=11, ep=13, pp=17, chunks=19, batch=23, global_batch=29 * 23 * 31, seq=8191, devices=7 * 11 * 17 * 31
)
WAYS = ("tp", "cp", "ep", "pp", "chunks")
# By framework: its name, and what stands between the pieces of its texts.
FRAMEWORKS = {"megatron": ("Megatron-LM", " ", r" (?=--)"), "torchtitan": ("torchtitan", "\n", r"\n+")}


# What a text depends on; the last five are whether a way is above one.
FACTORS = ("precision", "recompute", "sharding", "schedule", *WAYS)


@cache
def flag_texts(
    precisions=("bf16", "fp8"), recomputed=(*CHOICES["recompute"], MODULES), shardings=SHARDINGS, schedules=SCHEDULES
):
    """Return each framework's flag templates in order, each with the choices for which it is written.

    The choices are a list of boxes, which map a factor to its values.  `sign` joins the pieces; the first is all text.

    >>> found = flag_texts(("bf16",), ("none",), ("zero1", "zero3"), ("1f1b",))["train"]["megatron"]
    >>> found["pieces"][1]
    ['--tensor-model-parallel-size ⟦tp⟧', [{'tp': [1]}]]
    """
    train = {}
    for framework, (name, sign, cut) in FRAMEWORKS.items():
        texts = {}
        words = itertools.product(precisions, recomputed, shardings, schedules)
        for said, ways in itertools.product(words, list(itertools.product((0, 1), repeat=len(WAYS)))):
            if text := _found(framework, said, ways):
                texts[said + ways] = re.split(cut, text)
        domain = [precisions, recomputed, shardings, schedules, *[(0, 1)] * len(WAYS)]
        every = set(itertools.product(*domain))
        pieces = [["", _boxes(set(texts), every)]]
        for piece in _ordered(texts.values()):
            pieces.append([piece, _boxes({x for x, y in texts.items() if piece in y}, set(texts))])
        train[framework] = dict(name=name, sign=sign, pieces=pieces)
    servers = {x: dict(y._asdict(), flags=[list(z) for z in y.flags]) for x, y in SERVERS.items()}
    return dict(train=train, serve=servers)


def _ordered(texts) -> list[str]:
    """Return all pieces in an order that agrees with every text. Raises ValueError if there is no such order."""
    after: dict[str, set] = {}
    for pieces in texts:
        for i, piece in enumerate(pieces):
            after.setdefault(piece, set()).update(pieces[:i])
    order = TopologicalSorter(after).static_order()
    return list(order)


def _boxes(where: set, among: set) -> list[dict]:
    """Return boxes that cover exactly the combinations `where`: one if possible, else split by a factor's values."""
    if not where:
        return []
    values = [list(dict.fromkeys(sorted({x[i] for x in where}, key=str))) for i in range(len(FACTORS))]
    box = {x for x in among if all(x[i] in y for i, y in enumerate(values))}
    if box == where:
        every = [{x[i] for x in among} for i in range(len(FACTORS))]
        return [{n: values[i] for i, n in enumerate(FACTORS) if len(values[i]) < len(every[i])}]
    i, groups = min(((i, _grouped(where, i)) for i in range(len(FACTORS))), key=lambda x: (len(x[1]) < 2, len(x[1])))
    found = []
    for own in groups:
        part = ({x for x in combinations if x[i] in own} for combinations in (where, among))
        found += [{FACTORS[i]: own, **box} for box in _boxes(*part)]
    return found


def _grouped(where: set, i: int) -> list[list]:
    """Return the values of factor `i`, grouped if they occur with the same values of all other factors."""
    rests: dict = {}
    for x in where:
        rests.setdefault(x[i], set()).add(x[:i] + x[i + 1 :])
    groups: dict = {}
    for value in sorted(rests, key=str):
        groups.setdefault(frozenset(rests[value]), []).append(value)
    return list(groups.values())


def _found(framework, words, ways) -> str:
    """Return the flags of a combination, or "" if the framework has none for it."""
    chunks = SCHEDULES[words[-1]].chunks
    if (chunks is None) != bool(ways[4]) or (not ways[3] and (ways[4] or words[-1] != "1f1b")):
        return ""
    try:
        text = _text(framework, *words, ways)
    except ValueError:
        return ""
    return "\n\n".join(sorted(text.split("\n\n")))  # a TOML's sections, in one order


def _text(framework, precision, recompute, sharding, schedule, ways) -> str:
    """Return the flags of one combination, with letters in place of their numbers."""
    numbers = {x: PLACES[x] if is_on else 1 for x, is_on in zip(WAYS, ways, strict=True)}
    said = dict(numbers, batch=PLACES["batch"], recompute=recompute, sharding=sharding, schedule=schedule)
    said |= dict(global_batch=PLACES["global_batch"], seq=PLACES["seq"], precision=precision)
    if ways[0]:
        said["sequence_parallel"] = True
    if framework == "torchtitan":
        said.pop("global_batch")
    text = write(said, framework)
    known = {x: y for x, y in said.items() if isinstance(y, int) and not isinstance(y, bool) and y > 1}
    for letter, number in sorted(known.items(), key=lambda x: -x[1]):
        text = re.sub(rf"(?<![\d.]){number}(?![\d.])", f"⟦{letter}⟧", text)
    return text
