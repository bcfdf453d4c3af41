"""Prompts of a service: how many a step reads, how long reading takes, and what it delays.

Compared with `simulate_serving` (1 to 256 users, prompts of 1,024 to 65,536 tokens, answers of 32 or 256), end-to-end
times are 0 to 7 % too long, times per output token 0 to 9 %, and times to first token between -23 and +16 %. Two cases
are worse: `ttft` of 256 users with short prompts (1.4 times too long with 16 prompts a step, 3.5 times with 128 tokens
each), and two users whose prompts take more steps than their answers (`ttft` +20 %, `tpot` -25 %).
"""

from scalebook.language import formulas_of
from scalebook.language.defaults import equations

READING = tuple(vars(equations(__name__)).values())  # those of prompts.toml

__all__ = [*formulas_of(__name__), "READING"]
