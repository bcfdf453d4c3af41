"""Write the command that starts a vLLM or SGLang server with a given layout, from the table `servers.toml`.

An argument that is not given gets no flag, so the server uses its own default.
"""

import math
from typing import NamedTuple

from scalebook.inference.rules import with_copies
from scalebook.inference.step import SERVING
from scalebook.language.arguments import checked
from scalebook.language.notation import either, quoted
from scalebook.language.renamed import renamed
from scalebook.language.row import one_number
from scalebook.language.stanzas import tables_of

__all__ = ["SERVERS", "Server", "ServerFlag", "server_flags"]

__getattr__ = renamed(__name__)


class ServerFlag(NamedTuple):
    """A server's flag. It is written, with its number `of`, if quantity `above` exceeds 1 and `equal` holds."""

    name: str
    of: tuple[str, ...] = ()
    above: str = ""
    equal: tuple = ()


class Server(NamedTuple):
    """A serving engine's command, its flags, and the source that documents them."""

    name: str
    command: str
    source: str
    flags: tuple[ServerFlag, ...]
    all_experts: bool = False


_WAYS = "tp", "pp", "ep", "attention_dp", "replicas"
_SAID = tables_of(__package__, "servers.toml")
SERVERS = {x: Server(**y | {"flags": tuple(ServerFlag(**flag) for flag in y["flags"])}) for x, y in _SAID.items()}


@checked
def server_flags(engine: str, **letters) -> str:
    """Return the command that starts a server of an engine ("vllm" or "sglang") with a layout, given as for `serve`.

    Raises ValueError for an engine without known flags or an impossible layout, and LookupError for an unknown
    argument.

    >>> server_flags("vllm", tp=8, users=64, prompt=1024, output=1024)
    'vllm serve MODEL --tensor-parallel-size 8 --max-model-len 2048 --max-num-seqs 64'
    >>> server_flags("vllm", devices=8, users=64).splitlines()
    ['vllm serve MODEL --tensor-parallel-size 1 --max-num-seqs 8', '# 8 such servers behind one router']
    """
    if engine not in SERVERS:
        raise ValueError(f"flags are known of {either(map(repr, SERVERS))}, not of {quoted(engine)}")
    given = {n: x if n in SERVING.words else one_number(n, x) for n, x in letters.items()}
    for name, choices in SERVING.words.items():
        if name in given and given[name] not in choices:
            raise ValueError(f"{name} is {either(map(repr, choices))}, not {quoted(given[name])}")
    if said := next(filter(None, (SERVING.wrong(n, x) for n, x in given.items() if n not in SERVING.words)), None):
        raise ValueError(said)
    server, known = SERVERS[engine], dict.fromkeys(_WAYS, 1) | with_copies((), given)
    said = [server.command, *(x for flag in server.flags if (x := _written(flag, known)))]
    devices, ep, copies = known["tp"] * known["attention_dp"], known["ep"], known["replicas"]
    notes = []
    if server.all_experts and 1 < ep < devices:
        no_flag = f"no flag deals them to {ep:g} and splits each over {devices / ep:g}"
        notes.append(f"# {server.name} deals experts to all {devices:g} devices: {no_flag}")
    if copies > 1:
        notes.append(f"# {copies:g} such servers behind one router")
    return "\n".join([" ".join(said), *notes])


def _written(flag: ServerFlag, known) -> str:
    operation, *of = flag.of or ("",)
    if any(x not in known for x in of) or (flag.above and not known.get(flag.above, 1) > 1):
        return ""
    if flag.equal and known.get(flag.equal[0]) != flag.equal[1]:
        return ""
    if not of:
        return flag.name
    first, *rest = (known[x] for x in of)
    if operation == "/":
        number = math.ceil(first / math.prod(rest))
    else:
        number = first + sum(rest) if operation == "+" else math.prod(rest, start=first)
    return f"{flag.name} {number:g}" if number < 1 else f"{flag.name} {round(number)}"
