"""Two-batch overlap: the batch is split into halves, and one half computes while the other's messages travel."""

from functools import cache

from sympy import Expr, S

from scalebook.block import LLAMA, Block, Hybrid  # noqa: F401  (the first stands in an example)
from scalebook.inference.kernels import Work, beside_blocks, counted, step_parts, stretches
from scalebook.language import Formula, formulas_of, symbol
from scalebook.language.defaults import equations
from scalebook.language.notation import replaced

_HERE = "deepseek2025-inference"
_OWN = equations(__name__)  # those of two_batch_overlap.toml


@cache
def parts_of_step(dense: Block | Hybrid | None, moe: Block | Hybrid | None, work: Work) -> dict[str, Expr]:
    """Return the time of a serving step by part; with two-batch overlap, only messages that are not hidden count."""
    if work.drafts:
        parts = parts_of_step(dense, moe, Work(work.phase, work.exchange, work.overlap))
        return {part: with_drafts(time, part == "cache_time") for part, time in parts.items()}
    one = Work(work.phase, work.exchange)
    if work.passes == 1:
        return step_parts(dense, moe, one)
    exposed, last = 2 * _half(beside_blocks(one)["exchange_time"]), S.Zero
    slower = _OWN.slowing_by_cores.rhs if work.reads and work.exchange == "all_to_all" else S.Zero
    for kind, count in counted(dense, moe):
        halves = stretches(kind.block, one)
        first, second = ({n: _half(kind.of(time)) for n, time in part.items()} for part in halves)
        there, back = first.pop("exchange_time"), second.pop("exchange_time")
        attends, works = sum(first.values()), sum(second.values())
        known = dict(attention_stretch=attends * (1 + slower), experts_messages=back)
        waits = _OWN.exposed_messages.of(**known, attention_messages=there, experts_stretch=works * (1 + slower))
        exposed += count * (waits + 2 * slower * (attends + works))
        last = _OWN.alternating_end.of(**known)
    parts = {part: 2 * _half(time) for part, time in step_parts(dense, moe, one).items()}
    return parts | {"exchange_time": exposed + last}


def with_drafts(time: Expr, is_attention: bool = False) -> Expr:
    """Return the time of a step that checks drafted tokens: each sequence has several tokens, which share its cache.

    In attention they are more query heads on the same keys and values, so that these are read once for all of them.
    """
    several = symbol("heads" if is_attention else "device_batch")
    return replaced(time, {several: several * (symbol("drafted") + 1)})


def _half(time: Expr) -> Expr:
    """Return the time with half of the prompts. The tokens of a pass already count half a batch."""
    return replaced(time, {symbol("prompts"): symbol("prompts") / 2})


@cache
def messages_of(dense: Block | Hybrid | None, moe: Block | Hybrid | None, work: Work) -> Formula:
    """Return the formula for the time of all messages of a serving step, hidden or not."""
    sent = work.passes * _half(step_parts(dense, moe, Work(work.phase, work.exchange))["exchange_time"])
    return Formula("messages_of_step", "messages_time", sent, (_HERE,))


__all__ = [*formulas_of(__name__), "messages_of", "parts_of_step"]
