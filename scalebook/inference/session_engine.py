"""The engine that sessions of agents share: a decode step linear in its batch, and the times to read turns."""

import numpy as np

from scalebook.language.notation import unused
from scalebook.language.row import quantity

__all__: list[str] = []

_OF_PROMPTS = (
    "prompts_together", "prompts_beside", "prompts_ahead", "prompts_met", "chunks_of_prompt", "batch", "encoder_tokens",
)  # fmt: skip


def engine_of(serve, knowns: tuple, letters: dict, session: dict) -> dict:
    """Return the letters of a session's engine: a decode step linear in its batch, and the times to read turns."""
    turns, appended, output = (session[n] for n in ("turns", "appended", "output"))
    turn = np.arange(1, turns + 1)
    inputs = session["prefix"] + appended * turn + output * (turn - 1)
    mean = float(inputs.mean())
    sheet, rows, left, known = _of_one_service(serve, knowns, letters, prompt=mean, output=output)
    memory = sheet.only("cache_room", "token_cache", "cached_tokens", "devices")
    row = memory(*rows, **{n: x for n, x in left.items() if n in memory.letters})
    context = mean + output / 2
    token = row.token_cache * row.cached_tokens / context
    chunk, room = known["chunk_tokens"], row.cache_room / token
    most = max(2.0, room / context)
    new = np.array([chunk, chunk, min(appended, chunk), min(appended, chunk), chunk])
    past = np.array([0, 0, 0, context, context])
    batch = np.array([most / 8, most / 2, most / 4, most / 4, most / 4])
    more = dict(batch=batch, context=context, prompt=new + 2 * past, chunks_of_prompt=(new + 2 * past) / new)
    more |= dict(prompts_together=1.0, prompts_beside=1e12, prompts_ahead=0.0, prompts_met=0.0)
    part = sheet.only("pass_time", "mixed_time")
    step = part(*rows, **{n: x for n, x in (left | more).items() if n in part.letters})
    decode = step.pass_time
    if "step_tokens" in sheet.formulas:  # times are per token, of which a step with drafts gives several
        drafts = sheet.only("step_tokens", "draft_cost")
        drafts = drafts(*rows, **{n: x for n, x in left.items() if n in drafts.letters})
        decode = step.pass_time * (1 + known["drafted"] * drafts.draft_cost) / drafts.step_tokens
    added = max(0.0, float(np.diff(decode[:2])[0] / np.diff(batch[:2])[0]))
    reading = np.maximum(step.mixed_time - step.pass_time, 0)[[0, 2, 3, 4]]
    each, tokens, old = _linear(reading, new[[0, 2, 3, 4]], past[[0, 2, 3, 4]])

    def seconds(tokens_new, tokens_past):
        steps = np.ceil(tokens_new / chunk)
        return steps * each + tokens_new * (tokens + old * (tokens_past + tokens_new / 2))

    own = inputs - session["prefix"]
    found, lost = seconds(appended, inputs - appended), seconds(own[-max(1, len(own) - 1) :], session["prefix"])
    return known | {
        "devices": row.devices, "base_time": float(decode[0] - batch[0] * added), "added_time": added,
        "found_time": float(found.mean()),
        "lost_time": float(lost.mean()), "lost_spread": float((lost**2).mean() / lost.mean() ** 2),
        "token_cache": token, "cache_room": row.cache_room, "context": context, "reading": (each, tokens, old),
        "turns_read": (found, np.append(found[0], lost)[: len(found)]),
    }  # fmt: skip


def _of_one_service(serve, knowns, letters, **lengths) -> tuple:
    """Return the sheet of a service with its rows and letters, all of one value. Raises TypeError or ValueError."""
    given = {"replicas": 1.0, "attention_dp": 1.0} | letters
    groups = float(quantity("replicas", given["replicas"]) * quantity("attention_dp", given["attention_dp"]))
    sheet, rows, left, known = serve.checked(knowns, given | {"users": groups, **lengths})
    own = {"users", "prompt", "rate", "generations", *_OF_PROMPTS}
    if strange := next((x for x in letters if x in own or x not in (*sheet.letters, *serve.choices)), None):
        raise TypeError(unused("serve.sessions", strange, {*sheet.letters, *serve.choices} - own))
    serve.refuse(sheet, known)
    if several := [n for n, x in known.items() if np.ndim(x)]:
        raise TypeError(f"sessions are of one way to serve: give {several[0]} one value, and ask for each in turn")
    if known.get("pp", 1) != 1:
        raise ValueError("sessions have no pipelines: leave pp out, more tp would hold more")
    return sheet, rows, left, known


def _linear(seconds, new, past) -> np.ndarray:
    """Return the terms of reading: per step, per token, and per pair of tokens, none of them negative."""
    terms = np.stack([np.ones_like(new), new, new * (past + new / 2)], 1)
    found = np.linalg.lstsq(terms / seconds[:, None], np.ones_like(seconds), rcond=None)[0]
    return np.maximum(found, 0)
