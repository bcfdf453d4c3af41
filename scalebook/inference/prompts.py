"""Prompts of a service: how many a step reads, how long reading takes, and what it delays.

Compared with `simulate_serving` (1 to 256 users, prompts of 1,024 to 65,536 tokens, answers of 32 or 256), end-to-end
times are 0 to 7 % too long, times per output token 0 to 9 %, and times to first token between -23 and +16 %. Two cases
are worse: `ttft` of 256 users with short prompts (1.4 times too long with 16 prompts a step, 3.5 times with 128 tokens
each), and two users whose prompts take more steps than their answers (`ttft` +20 %, `tpot` -25 %).
"""

from sympy import Max, Min, S, ceiling

from scalebook.inference.queues import SEVERAL_TOKENS
from scalebook.language import formula, formulas_of


@formula("chunks_of_prompt", "agrawal2024 §4.2")
def steps_of_prompt(prompt, chunk_tokens):
    """Number of steps that read a prompt: equal chunks of at most `chunk_tokens` tokens.

    >>> steps_of_prompt(prompt=20000, chunk_tokens=8192)
    3.0
    """
    return ceiling(prompt / chunk_tokens)


@formula("prompts_together", "agrawal2024 §4.2", "little1961")
def prompts_of_step(batch, output, pp, prompt, chunk_tokens):
    """Prompts read together in one step: as many as sequences end with a step, up to its token limit; at least one.

    >>> [prompts_of_step(batch=601, output=101, pp=1, prompt=p, chunk_tokens=8192) for p in (100, 4096)]
    [6.0, 2.0]
    """
    ending = (batch - 1) / (pp * Max(1, output - 1, evaluate=False))
    return Max(1, Min(ending, chunk_tokens / prompt, evaluate=False), evaluate=False)


@formula("prompt_time", "agrawal2024 §3", given=[steps_of_prompt])
def prompt_time_beside(chunks_of_prompt, mixed_time, pass_time, prompts_together, pp):
    """Time that reading a prompt adds to decode steps, divided among prompts read together and among pipeline stages.

    >>> part = dict(chunks_of_prompt=2, mixed_time="50 ms", pass_time="10 ms", prompts_together=1)
    >>> prompt_time_beside(part, pp=1), prompt_time_beside(part, pp=2)
    (0.08, 0.04)
    """
    return chunks_of_prompt * Max(0, mixed_time - pass_time, evaluate=False) / (prompts_together * pp)


@formula("wait_steps", "yu2022")
def wait_half_step(batch):
    """Steps that a request waits before the engine looks for new requests: half a step, or none for a single user.

    If an engine looks every k steps, requests wait for k/2 (SGLang's scheduler_recv_interval). If it waits for more
    requests, add the steps that it waits (TensorRT-LLM's batch_wait_timeout_iters).

    >>> wait_half_step(batch=64), wait_half_step(batch=1)
    (0.5, 0.0)
    """
    return S.Half * Min(1, batch - 1, evaluate=False)


@formula("ttft", "yu2022", "agrawal2024 §3", given=[wait_half_step])
def ttft_served(queue_time, chunks_of_prompt, mixed_time, pass_time, first_overhead, first_tokens, wait_steps):
    """Time to first token: waiting for the engine and for earlier prompts, then reading the prompt.

    >>> alone = dict(queue_time=0, chunks_of_prompt=1, mixed_time="40 ms", pass_time="10 ms", first_overhead="5 ms")
    >>> ttft_served(alone, batch=64, first_tokens=1), ttft_served(alone, first_tokens=1, wait_steps=15)
    (0.05, 0.195)
    """
    steps = first_tokens - 1 + wait_steps
    return first_overhead + queue_time + chunks_of_prompt * mixed_time + steps * pass_time


@formula("prompts_beside", "agrawal2024 §4.2")
def prompts_of_answer(output, pp, prompt, chunk_tokens):
    """Prompts that can be read during the decode steps of one answer: several short ones a step, or chunks.

    >>> [prompts_of_answer(output=201, pp=1, prompt=x, chunk_tokens=8192) for x in (1024, 16384, 20480)]
    [1600.0, 100.0, 80.0]
    """
    return Max(1, output - 1, evaluate=False) * pp * chunk_tokens / prompt


@formula("prompts_ahead", "little1961", given=[steps_of_prompt])
def prompts_ahead_out_of_step(batch, output, pp, chunks_of_prompt, prompts_together, prompts_beside):
    """Prompts read before one's own, for users who send requests at different times.

    It is half of the prompts that arrive with the same step or, if more, all that the steps of one answer cannot read.

    >>> part = dict(output=201, pp=1, chunks_of_prompt=1, prompts_together=1, prompts_beside=200)
    >>> [prompts_ahead_out_of_step(part, batch=b) for b in (1, 2, 101, 401)]
    [0.0, 0.0025, 0.25, 200.0]
    """
    others = batch - 1
    ending = others * chunks_of_prompt / (pp * Max(1, output - 1, evaluate=False))
    half = Min(others, ending / 2, prompts_together / 2, evaluate=False)
    return Max(half, others - (prompts_together - 1) - prompts_beside, evaluate=False)


@formula("prompts_met", "little1961")
def prompts_met_out_of_step(batch, prompts_together, prompts_ahead):
    """Share of the other users' prompts that are read while one's own answer is decoded, not before or with it.

    >>> prompts_met_out_of_step(batch=65, prompts_together=9, prompts_ahead=4)
    0.8125
    """
    before = prompts_ahead + prompts_together - 1
    return Max(0, 1 - before / Max(1, batch - 1, evaluate=False), evaluate=False)


@formula("queue_time", "kleinrock1975", "little1961", domain=SEVERAL_TOKENS)
def queue_time_of_group(batch, generations, prompts_ahead, chunks_of_prompt, mixed_time, prompts_together, pp):
    """Mean queueing time in a benchmark with a fixed number of users: one burst at the start, then users out of step.

    Each prompt of the burst is charged a step of its own, although short prompts share one.

    >>> queue = dict(batch=65, generations=10, mixed_time="40 ms", chunks_of_prompt=1, prompts_together=1, pp=1)
    >>> round(queue_time_of_group(queue, prompts_ahead=0.5, output=201), 3)
    0.146
    """
    ahead = ((batch - 1) / 2 + (generations - 1) * prompts_ahead) / generations
    return ahead * chunks_of_prompt * mixed_time / (prompts_together * pp)


READING = (
    steps_of_prompt, prompts_of_step, prompt_time_beside, wait_half_step, ttft_served, prompts_of_answer,
    prompts_ahead_out_of_step, prompts_met_out_of_step, queue_time_of_group,
)  # fmt: skip

__all__ = [*formulas_of(__name__), "READING"]
