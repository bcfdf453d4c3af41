"""The engine that sessions of agents share: a decode step linear in its batch, and the times to read turns."""

from dataclasses import dataclass

import numpy as np

from scalebook.inference.capacity import valued
from scalebook.inference.rules import with_copies
from scalebook.inference.session_percentiles import length_nodes
from scalebook.inference.sessions import session_sheet
from scalebook.language.notation import unused
from scalebook.language.row import one_number
from scalebook.language.stanzas import tables_of

__all__: list[str] = []

_PRICED = "cache_room", "token_cache", "cached_tokens", "devices", "pass_time", "mixed_time"  # of the service's sheet
_FOLLOW = frozenset(tables_of(__package__, "defaults.toml")["without"]["sessions"]) - {"pp"}


def engine_of(serve, knowns: tuple, letters: dict, session: dict) -> dict:
    """Return the quantities of a session's engine: a decode step linear in its batch, and the times to read turns."""
    turns, appended, output = (session[n] for n in ("turns", "appended", "output"))
    turn = np.arange(1, turns + 1)
    inputs = session["prefix"] + appended * turn + output * (turn - 1)
    mean = float(inputs.mean())
    sheet, rows, left, known = _of_one_service(serve, knowns, letters, prompt=mean, output=output)
    memory = sheet.only(*_PRICED[:4])
    row = memory(*rows, **{n: x for n, x in left.items() if n in memory.letters})
    context = mean + output / 2
    token = row.token_cache * row.cached_tokens / context
    chunk, room = known["chunk_tokens"], valued(row, "cache_room") / token
    most = max(2.0, room / context)
    new = np.array([chunk, chunk, min(appended, chunk), min(appended, chunk), chunk])
    past = np.array([0, 0, 0, context, context])
    batch = np.array([most / 8, most / 2, most / 4, most / 4, most / 4])
    more = dict(batch=batch, context=context, prompt=new + 2 * past, chunks_of_prompt=(new + 2 * past) / new)
    more |= dict(prompts_together=1.0, prompts_beside=1e12, prompts_ahead=0.0, prompts_met=0.0)
    part = sheet.only(*_PRICED[4:])
    more = {n: x for n, x in (left | more).items() if n in part.letters}
    step, usual = part(*rows, **more), part(*rows, **{n: x[-1] if np.ndim(x) else x for n, x in more.items()})
    decode, mixed = (valued(step, x) for x in _PRICED[4:])
    reading = np.maximum(mixed - decode, 0)[[0, 2, 3, 4]]
    if "step_tokens" in sheet.formulas:  # times are per token, of which a step with drafts gives several
        drafts = sheet.only("step_tokens", "draft_cost")
        drafts = drafts(*rows, **{n: x for n, x in left.items() if n in drafts.letters})
        decode = decode * (1 + known["drafted"] * drafts.draft_cost) / drafts.step_tokens
    added = max(0.0, float(np.diff(decode[:2])[0] / np.diff(batch[:2])[0]))
    each_step, tokens, old = _linear(reading, new[[0, 2, 3, 4]], past[[0, 2, 3, 4]])

    def seconds(tokens_new, tokens_past):
        steps = np.ceil(tokens_new / chunk)
        return steps * each_step + tokens_new * (tokens + old * (tokens_past + tokens_new / 2))

    each, own, spread = appended + output, inputs - session["prefix"], session["prompt_spread"]
    z, chances = length_nodes(max(spread, session["answer_spread"]))
    new = appended * np.exp(spread * z - spread**2 / 2)[:, None]
    varied = (appended**2 * np.expm1(spread**2) + output**2 * np.expm1(session["answer_spread"] ** 2)) / each**2
    spread = np.sqrt(np.log1p(varied / turn))  # of all lengths of a session up to a turn
    found = seconds(new, inputs - appended)
    lost = seconds(own * np.exp(spread * z[:, None] - spread**2 / 2), session["prefix"])
    lost[:, 0] = found[:, 0]  # the first turn has no cache of its own to lose
    later, middle = lost[:, min(1, len(turn) - 1) :], seconds(new[:, 0], mean - appended)
    return known | {
        "devices": row.devices, "base_time": float(decode[0] - batch[0] * added), "added_time": added,
        "found_time": float((chances @ found).mean()), "lost_time": float((chances @ later).mean()),
        "found_spread": float(chances @ middle**2 / (chances @ middle) ** 2),
        "lost_spread": float((chances @ later**2).mean() / (chances @ later).mean() ** 2),
        "token_cache": token, "cache_room": row.cache_room, "context": context, "reading": (each_step, tokens, old),
        "turns_read": ReadingTimes(found, lost, chances), "usual": usual,
    }  # fmt: skip


@dataclass(frozen=True)
class ReadingTimes:
    """Seconds to read each turn of a session, with its cache found or lost, for several lengths and their chances."""

    found: np.ndarray
    lost: np.ndarray
    chances: np.ndarray

    def of_all(self, found_turns: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the times of all turns and the chance of each."""
        lost = np.full(self.found.shape[1], 1 - found_turns)
        lost[0] = 0
        chances = self.chances[:, None] * np.stack([1 - lost, lost])[:, None] / len(lost)
        return np.concatenate([self.found, self.lost]).ravel(), chances.ravel()

    def of_lost(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the times of lost turns and the chance of each."""
        times = self.lost[:, min(1, self.lost.shape[1] - 1) :]
        return times.ravel(), np.repeat(self.chances / times.shape[1], times.shape[1])


def _of_one_service(serve, knowns, letters, **lengths) -> tuple:
    """Return the sheet of a service with its rows and letters, all of one value. Raises TypeError or ValueError."""
    if stray := next((x for x in letters if x in serve.finds), None):
        raise TypeError(f"serve.sessions says what {stray} is: leave it out; search(serve.sessions, ...) takes targets")
    if stray := next((x for x in letters if x in _FOLLOW), None):
        raise TypeError(unused("serve.sessions", stray, serve.letters))
    given = {"replicas": 1.0, "attention_dp": 1.0, **with_copies(knowns, letters)}
    groups = one_number("replicas", given["replicas"]) * one_number("attention_dp", given["attention_dp"])
    sheet, rows, left, known = serve.checked(knowns, given | {"users": groups, **lengths})
    drafts = [x for x in ("step_tokens", "draft_cost") if x in sheet.formulas]
    used = {*sheet.only(*_PRICED, *drafts).letters, *serve.choices, *({*session_sheet().inputs} & sheet.letters)}
    if stray := next((x for x in letters if x not in used), None):
        raise TypeError(unused("serve.sessions", stray, used - _FOLLOW))
    serve.refuse(sheet, known)
    if several := [n for n, x in known.items() if np.ndim(x)]:
        raise TypeError(f"sessions are of one way to serve: give {several[0]} one value, and ask for each in turn")
    if known.get("pp", 1) != 1:
        raise ValueError("sessions have no pipelines: leave pp out, more tp would hold more")
    return sheet, rows, left, known


def _linear(seconds, new, past) -> np.ndarray:
    """Return the terms of reading: per step, per token, and per pair of tokens, none of them negative."""
    if not (seconds > 0).all():
        raise ValueError("a chunk of a prompt takes no longer here than the decode step beside it: give other times")
    terms = np.stack([np.ones_like(new), new, new * (past + new / 2)], 1)
    found = np.linalg.lstsq(terms / seconds[:, None], np.ones_like(seconds), rcond=None)[0]
    return np.maximum(found, 0)
