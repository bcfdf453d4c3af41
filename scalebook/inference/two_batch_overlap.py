"""Two-batch overlap: the batch is split into halves, and one half computes while the other's messages travel."""

from functools import cache

from sympy import Expr, Max, Min, S

from scalebook.block import LLAMA, Block, Hybrid  # noqa: F401  (the first stands in an example)
from scalebook.inference.kernels import Work, beside_blocks, counted, step_parts, stretches
from scalebook.language import Formula, formula, formulas_of, symbol
from scalebook.language.notation import replaced

_HERE = "deepseek2025-inference"


@formula("device_batch", _HERE)
def device_batch_half(batch, pp):
    """Sequences of a device in one half batch.

    >>> device_batch_half(batch=64, pp=1)
    32.0
    """
    return batch / (2 * pp)


@formula("pass_tokens", _HERE)
def read_tokens_half(prompts, read_chunk):
    """Prompt tokens of one half batch; a single prompt is cut in two.

    >>> read_tokens_half(prompts=2, read_chunk=4096)
    4096.0
    """
    return prompts * read_chunk / 2


@formula("pass_tokens", _HERE, given=[device_batch_half])
def mixed_tokens_half(device_batch, prompts, read_chunk):
    """Tokens of one half batch in a mixed step: half of the sequences and half of the prompt tokens.

    >>> mixed_tokens_half(device_batch=32, prompts=1, read_chunk=512)
    288.0
    """
    return device_batch + prompts * read_chunk / 2


@formula("exposed_messages", _HERE, "johnson1954")
def exposed_messages(attention_stretch, attention_messages, experts_stretch, experts_messages):
    """Time in a block during which a message is not hidden by the other half's computation.

    Both messages, after attention and after the experts, each meet the other half's attention and its experts once.

    >>> exposed_messages(attention_stretch=3, attention_messages=1, experts_stretch=1, experts_messages=2)
    1.0
    """
    stretches = attention_stretch, experts_stretch
    pairs = ((sent, beside) for sent in (attention_messages, experts_messages) for beside in stretches)
    return sum(Max(0, sent - beside, evaluate=False) for sent, beside in pairs)


@formula("alternating_time", _HERE, "johnson1954", given=[exposed_messages])
def alternating_time(attention_stretch, experts_stretch, exposed_messages):
    """Time of a block for two half batches that take turns on the device and on its links.

    >>> even = dict(attention_stretch="2 ms", attention_messages="1 ms", experts_stretch="2 ms")
    >>> alternating_time(even, experts_messages="1 ms")
    0.008
    """
    return 2 * (attention_stretch + experts_stretch) + exposed_messages


@formula("alternating_end", _HERE)
def alternating_end(attention_stretch, experts_messages):
    """Extra time at a step's ends: the shorter of one half batch's attention and its messages after the experts.

    >>> alternating_end(attention_stretch="2 ms", experts_messages="1 ms")
    0.001
    """
    return Min(attention_stretch, experts_messages, evaluate=False)


@formula("slowing", "deepseek2024-v3 §3.2.2")
def slowing_by_cores(cores, exchange_cores):
    """Extra computing time, as a share, because communication kernels occupy some cores.

    >>> slowing_by_cores(cores=132, exchange_cores=20).__round__(3)
    0.179
    """
    return exchange_cores / (cores - exchange_cores)


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
    slower = slowing_by_cores.rhs if work.reads and work.exchange == "all_to_all" else S.Zero
    for kind, count in counted(dense, moe):
        halves = stretches(kind.block, one)
        first, second = ({n: _half(kind.of(time)) for n, time in part.items()} for part in halves)
        there, back = first.pop("exchange_time"), second.pop("exchange_time")
        attends, works = sum(first.values()), sum(second.values())
        known = dict(attention_stretch=attends * (1 + slower), experts_messages=back)
        waits = exposed_messages.of(**known, attention_messages=there, experts_stretch=works * (1 + slower))
        exposed += count * (waits + 2 * slower * (attends + works))
        last = alternating_end.of(**known)
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
