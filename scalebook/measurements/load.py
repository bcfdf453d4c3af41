"""Engines that are never out of requests: as many sequences as memory holds, and prompts read as answers end."""

import numpy as np

from scalebook.inference import assumptions, decode_step, mixed_step, room
from scalebook.inference.step import Step
from scalebook.language import Sheet

from .priced import priced

__all__ = ["GIB_OVER_GB", "room_for", "step_of_load"]

GIB_OVER_GB = 2**30 / 1e9  # makers print GB for memories that hold GiB, as drivers report: 80 GB are 85.5 on the H100
_PARITY = {"NVIDIA L40S": 15 / 16}  # what is left where parity is kept in GDDR6: its driver reports 48.3 GB


class _Room(Step):
    """The memory of a service alone: what serve says of it, without the time of its steps."""

    def __init__(self):
        super().__init__("decode", "What a service holds on a device.")

    def sheet_of(self, dense, moe, work, *more):
        held = [f for f in room.room_formulas(dense, moe) if f.letter in ("held_weights", "token_cache")]
        usual = (room.workspace_usual, assumptions.result_bits, *([assumptions.expert_ways_left] if moe else ()))
        return Sheet("room", *held, *usual)


_ROOM = _Room()


def room_for(asked, tokens, share, of_free=1.0) -> np.ndarray:
    """Sequences of so many tokens whose caches fit beside the weights of a group, below 0 where these do not fit.

    `asked` are rows, model before device, and letters of a step; devices of a group attend together.  The engine has
    `share` of a device's memory, in GiB as drivers report it, and gives caches the part `of_free` of what weights and
    work space leave.

    >>> from scalebook.tables import accelerators, models
    >>> llama, h200 = models.llama2_70b, accelerators.h200.at("fp8")
    >>> room_for([((llama, h200), dict(tp=n)) for n in (1, 2)], 441, 0.9).round().tolist()
    [903.0, 2768.0]
    """
    said = priced(_ROOM, asked, "held_weights", "workspace", "token_cache")
    capacity = GIB_OVER_GB * np.array([_PARITY.get(device.name, 1) * device.hbm_capacity for (_, device), _ in asked])
    left = share * capacity - said["held_weights"] - said["workspace"]
    return of_free * left / (tokens * said["token_cache"])


def step_of_load(asked, batch, prompt, output, chunk=8192) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of a step in which sequences of a group decode, and what reading a prompt adds to it.

    Of each `output` steps of a sequence one is its last, so batch/output prompts come to a step.  They are read
    together, one at least and no more than fit into `chunk` tokens; longer ones in parts, a step each.  While a
    pipeline's stage reads a prompt the others work on, so it adds to a round what it takes a stage.
    `batch` has a line for each call.
    """
    decodes, mixes, counts = [], [], []
    for (rows, letters), b, p, o in zip(asked, batch, prompt, output, strict=True):
        steady, parts = letters | dict(batch=b, context=p + o / 2), np.ceil(p / chunk)
        together = np.clip(b / o, 1, max(1, chunk / p))
        counts.append(together / parts * letters.get("pp", 1))
        decodes.append((rows, steady))
        mixes.append((rows, steady | dict(prompts=together, read_chunk=p / parts, past=(p - p / parts) / 2)))
    step = priced(decode_step, decodes, "pass_time")["pass_time"]
    mixed = priced(mixed_step, mixes, "pass_time")["pass_time"]
    return step, (mixed - step) / np.array(counts)
