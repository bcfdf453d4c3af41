"""Server flags of vLLM and SGLang for a layout.

vLLM's tensor parallelism counts the devices of one attention group; SGLang's counts the devices of all groups together.
vLLM spreads the experts over all devices of a copy or over none. A letter that is not given gets no flag, so the server
uses its own default.
"""

import math
from typing import NamedTuple

from scalebook.inference.step import SERVING
from scalebook.language.notation import either, quoted
from scalebook.language.renamed import renamed
from scalebook.language.row import quantity

__all__ = ["SERVERS", "Server", "ServerFlag", "server_flags"]

__getattr__ = renamed(__name__)


class ServerFlag(NamedTuple):
    """A flag, the number it takes, and when it is written.

    The number is `of`, an operation on letters; an empty `of` means a flag without a number. The flag is written only
    if the letter `above` is more than one, or the letter or word in `equal` has the value given there.
    """

    name: str
    of: tuple[str, ...] = ()
    above: str = ""
    equal: tuple = ()


class Server(NamedTuple):
    """A server's command, its flags and their source.

    `all_experts` is True if the server spreads experts over all devices or over none.
    """

    name: str
    command: str
    source: str
    flags: tuple[ServerFlag, ...]
    all_experts: bool = False


SERVERS = {
    "vllm": Server(
        "vLLM",
        "vllm serve MODEL",
        "vllm-parallel",
        (
            ServerFlag("--tensor-parallel-size", ("*", "tp")),
            ServerFlag("--pipeline-parallel-size", ("*", "pp"), above="pp"),
            ServerFlag("--data-parallel-size", ("*", "attention_dp"), above="attention_dp"),
            ServerFlag("--enable-expert-parallel", above="ep"),
            ServerFlag("--all2all-backend deepep_low_latency", above="ep", equal=("exchange", "all_to_all")),
            ServerFlag("--max-model-len", ("+", "prompt", "output")),
            ServerFlag("--max-num-seqs", ("/", "users", "replicas", "attention_dp")),  # of each group
            ServerFlag("--max-num-batched-tokens", ("*", "chunk_tokens")),
            ServerFlag("--gpu-memory-utilization", ("*", "cache_share")),
            ServerFlag("--kv-cache-dtype fp8", equal=("kv_bits", 8)),
        ),
        all_experts=True,
    ),
    "sglang": Server(
        "SGLang",
        "python -m sglang.launch_server --model-path MODEL",
        "sglang",
        (
            ServerFlag("--tp-size", ("*", "tp", "attention_dp")),
            ServerFlag("--pp-size", ("*", "pp"), above="pp"),
            ServerFlag("--dp-size", ("*", "attention_dp"), above="attention_dp"),
            ServerFlag("--enable-dp-attention", above="attention_dp"),
            ServerFlag("--ep-size", ("*", "ep"), above="ep"),
            ServerFlag("--moe-a2a-backend deepep", above="ep", equal=("exchange", "all_to_all")),
            ServerFlag("--context-length", ("+", "prompt", "output")),
            ServerFlag("--max-running-requests", ("/", "users", "replicas")),  # of all groups
            ServerFlag("--chunked-prefill-size", ("*", "chunk_tokens")),
            ServerFlag("--mem-fraction-static", ("*", "cache_share")),
            ServerFlag("--kv-cache-dtype fp8_e4m3", equal=("kv_bits", 8)),
        ),
    ),
}


def server_flags(engine: str, **letters) -> str:
    """Return the command that starts a server with this layout, from letters and words of `serve`.

    Lengths and users become flags if they are given. Raises ValueError for an engine without known flags or an
    impossible layout, and LookupError for an unknown letter.

    >>> server_flags("vllm", tp=8, users=64, prompt=1024, output=1024).split(" ", 4)[-1]
    '8 --max-model-len 2048 --max-num-seqs 64'
    >>> server_flags("lmdeploy", tp=8)
    Traceback (most recent call last):
        ...
    ValueError: flags are known of 'vllm' or 'sglang', not of 'lmdeploy'
    """
    if engine not in SERVERS:
        raise ValueError(f"flags are known of {either(map(repr, SERVERS))}, not of {quoted(engine)}")
    given = {n: x if n in SERVING.words else _number(n, x) for n, x in letters.items()}
    for name, choices in SERVING.words.items():
        if name in given and given[name] not in choices:
            raise ValueError(f"{name} is {either(map(repr, choices))}, not {quoted(given[name])}")
    if said := next(filter(None, (SERVING.wrong(n, x) for n, x in given.items() if n not in SERVING.words)), None):
        raise ValueError(said)
    server, known = SERVERS[engine], dict.fromkeys(("tp", "pp", "ep", "attention_dp", "replicas"), 1) | given
    said = [server.command, *(x for flag in server.flags if (x := _written(flag, known)))]
    devices, ep, copies = known["tp"] * known["attention_dp"], known["ep"], known["replicas"]
    notes = []
    if server.all_experts and 1 < ep < devices:
        notes.append(
            f"# {server.name} deals experts to all {devices:g} devices: "
            f"no flag deals them to {ep:g} and splits each over {devices / ep:g}"
        )
    if copies > 1:
        notes.append(f"# {copies:g} such servers behind one router")
    return "\n".join([" ".join(said), *notes])


def _number(name: str, value) -> float:
    """Return a letter's number. Raises what `quantity` raises, and TypeError for several values."""
    if not isinstance(number := quantity(name, value), float):
        raise TypeError(f"{name} of a server is one number, not {quoted(value)}")
    return number


def _written(flag: ServerFlag, known) -> str:
    operation, *of = flag.of or ("",)
    if any(x not in known for x in of) or (flag.above and not known.get(flag.above, 1) > 1):
        return ""
    if flag.equal and known.get(flag.equal[0]) != flag.equal[1]:
        return ""
    if not of:
        return flag.name
    first, *rest = (known[x] for x in of)
    number = {
        "*": lambda: math.prod(rest, start=first),
        "+": lambda: first + sum(rest),
        "/": lambda: math.ceil(first / math.prod(rest)),
    }[operation]()
    return f"{flag.name} {number:g}" if number < 1 else f"{flag.name} {round(number)}"
