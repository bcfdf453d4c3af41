"""A planner's layouts as flags of frameworks: texts that `scalebook.training.knobs` wrote, with room for numbers.

Numbers are written as primes that stand for letters and are then taken out, so that no flag is stated twice.
"""

import itertools
import re

from scalebook.training.knobs import flags

__all__ = ["flag_texts"]

# The value that stands for each letter where it is above one.
PLACES = dict(
    tp=7, cp=11, ep=13, pp=17, chunks=19, batch=23, global_batch=29 * 23 * 31, seq=8191, devices=7 * 11 * 17 * 31
)
WAYS = ("tp", "cp", "ep", "pp", "chunks")
FRAMEWORKS = {"megatron": "Megatron-LM", "torchtitan": "torchtitan"}
# What engines call the ways to serve: vLLM's and SGLang's own arguments of their servers.
SERVERS = {
    "vllm": dict(
        name="vLLM", command="vllm serve MODEL", ep="--enable-expert-parallel",
        letters=dict(tp="--tensor-parallel-size", pp="--pipeline-parallel-size", attention_dp="--data-parallel-size"),
    ),
    "sglang": dict(
        name="SGLang", command="python -m sglang.launch_server --model-path MODEL", ep="",
        letters=dict(tp="--tp-size", pp="--pp-size", ep="--ep-size", attention_dp="--enable-dp-attention --dp-size"),
    ),
}  # fmt: skip


def flag_texts(precisions=("bf16", "fp8"), shardings=("zero1", "zero2", "zero3")) -> dict:
    """By framework, its texts and which combination of words and ways has which.

    >>> found = flag_texts(("bf16",), ("zero3",))["train"]["megatron"]
    >>> found["texts"][found["of"]["bf16|none|zero3|1f1b|1|0|0|0|0"]].split()[:2]
    ['--tensor-model-parallel-size', '⟦tp⟧']
    """
    train = {}
    for framework, name in FRAMEWORKS.items():
        texts, of = [], {}
        words = itertools.product(precisions, ("none", "full"), shardings, ("1f1b", "interleaved"))
        for (precision, recompute, sharding, schedule), ways in itertools.product(
            words, itertools.product((0, 1), repeat=len(WAYS))
        ):
            if (schedule == "interleaved") != bool(ways[4]) or (ways[4] and not ways[3]):
                continue
            try:
                text = _text(framework, precision, recompute, sharding, schedule, ways)
            except ValueError:  # the framework has no flags for it
                continue
            if text not in texts:
                texts.append(text)
            key = "|".join(map(str, (precision, recompute, sharding, schedule, *ways)))
            of[key] = texts.index(text)
        train[framework] = dict(name=name, texts=texts, of=of)
    return dict(train=train, serve=SERVERS)


def _text(framework, precision, recompute, sharding, schedule, ways) -> str:
    """The flags of one combination, letters in the place of their numbers."""
    numbers = {x: PLACES[x] if is_on else 1 for x, is_on in zip(WAYS, ways, strict=True)}
    said = dict(numbers, batch=PLACES["batch"], recompute=recompute, sharding=sharding, schedule=schedule)
    said |= dict(global_batch=PLACES["global_batch"], seq=PLACES["seq"], precision=precision)
    if ways[0]:
        said["sequence_parallel"] = True
    if framework == "torchtitan":
        said.pop("global_batch")
    text = flags(said, framework)
    known = {x: y for x, y in said.items() if isinstance(y, int) and not isinstance(y, bool) and y > 1}
    for letter, number in sorted(known.items(), key=lambda x: -x[1]):
        text = re.sub(rf"(?<![\d.]){number}(?![\d.])", f"⟦{letter}⟧", text)
    return text
