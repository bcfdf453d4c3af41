"""Requests of different lengths: percentiles of times to first token, per output token and end to end.

Lengths of prompts and answers are lognormal; `prompt_spread` and `answer_spread` are the standard deviations of their
logarithms. A time is a fixed part and a lognormal part whose mean and deviation follow from the prompts that are read
during it. In eight services with 8 to 200 users and spreads of 0.5 to 1, 50th, 95th and 99th percentiles differ from
`simulate_serving` by 4 % in the median, and by 19 % at most. Three cases are worse. Users with equal lengths fall in
step, and all wait for each other's prompts. Some services cannot read all prompts while they decode. Attention within
very long prompts grows with the square of their length, and this module uses the mean length.
"""

from functools import cache

from sympy import Expr, Max, exp, log, sqrt

from scalebook.inference.serving_memory import sliding_window
from scalebook.language import Formula, Sheet, constant, formula, formulas_of, symbol

_NORMAL = {"50": 0, "95": 1.6448536269514722, "99": 2.3263478740408408}  # quantiles of the normal distribution
PERCENTILES = tuple(f"{x}_p{n}" for x in ("ttft", "tpot", "end_to_end") for n in _NORMAL)

equal_prompts = constant("equal_prompts", "prompt_spread", 0, "scalebook", "All prompts are equally long.")
equal_answers = constant("equal_answers", "answer_spread", 0, "scalebook", "All answers are equally long.")


@formula("context", "kwon2023", "kleinrock1975")
def context_spread(prompt, output, answer_spread):
    """Mean tokens that a new token attends to, if lengths differ: most tokens belong to long answers.

    >>> [context_spread(prompt=1024, output=512, answer_spread=x).__round__() for x in (0, 1)]
    [1280, 1720]
    """
    return prompt + output * exp(answer_spread**2) / 2


@formula("cached_tokens", "kwon2023", "kleinrock1975", given=[context_spread])
def cached_tokens_spread(context, layers, window, window_layers):
    """Mean cached tokens of a sequence, if lengths differ: long answers stay in the cache longest.

    >>> cached_tokens_spread(context=8500, layers=36, window=128, window_layers=18)
    4314.0
    """
    return sliding_window.of(context=context, layers=layers, window=window, window_layers=window_layers)


def _ends(batch, output, pp) -> Expr:
    """Return the mean number of other answers that end, and of prompts that are then read, in a step."""
    return Max(0, batch - 1, evaluate=False) / (pp * Max(1, output - 1, evaluate=False))


@formula("ttft_deviation", "kleinrock1975")
def deviation_of_first(prompt_time, prompt_spread, batch, output, pp):
    """Standard deviation of the time to first token: prompts differ, and so do the prompts read together with them.

    >>> known = dict(prompt_time="29.6 ms", batch=64, output=500, pp=1)
    >>> [round(deviation_of_first(known, prompt_spread=x) * 1e3, 1) for x in (0, 1)]
    [10.5, 42.5]
    """
    return prompt_time * sqrt(exp(prompt_spread**2) - 1 + _ends(batch, output, pp) * exp(prompt_spread**2))


@formula("tpot_deviation", "kleinrock1975")
def deviation_of_tokens(prompt_time, prompt_spread, answer_spread, batch, output, pp):
    """Standard deviation of the time per output token: a short answer meets no prompt, or waits for one.

    >>> known = dict(prompt_time="29.6 ms", batch=64, output=500, pp=1)
    >>> [round(deviation_of_tokens(known, prompt_spread=x, answer_spread=x) * 1e3, 2) for x in (0, 1)]
    [0.47, 1.28]
    """
    steps = Max(1, output - 1, evaluate=False)
    return prompt_time * sqrt(exp(prompt_spread**2 + answer_spread**2) * _ends(batch, output, pp) / steps)


@formula("end_to_end_deviation", "kleinrock1975", given=[deviation_of_first, deviation_of_tokens])
def deviation_of_answers(ttft_deviation, tpot_deviation, tpot, output, answer_spread):
    """Standard deviation of the end-to-end time: first token, answer lengths and time per token vary independently.

    >>> known = dict(ttft_deviation="40 ms", tpot_deviation="1 ms", tpot="14 ms", output=500)
    >>> [round(deviation_of_answers(known, answer_spread=x), 2) for x in (0, 1)]
    [0.5, 9.17]
    """
    lengths = tpot**2 * (exp(answer_spread**2) - 1) + tpot_deviation**2
    return sqrt(ttft_deviation**2 + (output - 1) ** 2 * lengths)


def percentile(share: str, fixed, mean, deviation) -> Expr:
    """Return a percentile ("50", "95" or "99") of a fixed time plus a lognormal time with this mean and deviation.

    >>> round(float(percentile("95", 1, 2, 0.5)), 2)
    3.91
    """
    spread = log(1 + (deviation / mean) ** 2)
    return fixed + mean * exp(_NORMAL[share] * sqrt(spread) - spread / 2)


def _percentiles() -> list[Formula]:
    """Return the formulas of all percentiles of a service."""
    batch, output, pp, time, tpot, ttft = map(symbol, ("batch", "output", "pp", "prompt_time", "tpot", "ttft"))
    step = symbol("chunks_of_prompt") * symbol("mixed_time") / (symbol("prompts_together") * pp)
    alone, read = ttft - symbol("queue_time"), time * (1 + _ends(batch, output, pp))
    fixed = Max(0, alone + symbol("prompts_ahead") * step - read, evaluate=False)
    found = []
    for share in _NORMAL:
        in_burst = Max(0, 1 - (1 - int(share) / 100) * symbol("generations"), evaluate=False)
        first = percentile(share, fixed, read, symbol("ttft_deviation"))
        own = {
            "ttft": Max(first, fixed + in_burst * (read + (batch - 1) * step), evaluate=False),
            "tpot": percentile(share, 0, tpot, symbol("tpot_deviation")),
            "end_to_end": percentile(share, ttft, symbol("end_to_end") - ttft, symbol("end_to_end_deviation")),
        }
        for letter, time_of in own.items():
            said = f"The {share}th percentile, if the part that varies is lognormal. The first burst counts."
            found.append(
                Formula(f"{letter}_percentile_{share}", f"{letter}_p{share}", time_of, ("kleinrock1975",), said)
            )
    return found


@cache
def with_lengths(sheet: Sheet) -> Sheet:
    """Return a service's sheet with percentiles, for prompts and answers of different lengths.

    >>> from scalebook.inference import serve
    >>> from scalebook.tables import accelerators, models
    >>> chat = dict(tp=8, users=64, prompt=1000, output=500, engine="vllm", prompt_spread=1, answer_spread=1)
    >>> row = serve(models.llama3_70b, accelerators.h200.at("fp8"), **chat)
    >>> round(row.end_to_end_p95 / row.end_to_end, 1)
    3.1
    """
    own = (
        equal_prompts, equal_answers, context_spread, cached_tokens_spread, deviation_of_first, deviation_of_tokens,
        deviation_of_answers, *_percentiles(),
    )  # fmt: skip
    formulas = sheet.formulas | {f.letter: f for f in own}
    return type(sheet)(sheet.name, *formulas.values(), doc=sheet.doc, changes=sheet.changes)


__all__ = [*formulas_of(__name__), "PERCENTILES", "with_lengths"]
