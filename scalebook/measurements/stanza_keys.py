"""Keys of the stanzas that describe measured sets, and how the stanzas are read.

A stanza has the keys below. Expressions are arithmetic over columns (`"n_gpus / (tp * pp)"`), with `or` for an empty
cell.

- `file`, `what`, `sources`, `measured` (a column), `unit`, `group`, `calibrated`: as in a `Confrontation`. In `group`,
  keys of tables replace columns of the same name, and `{at}` is the key of the precision.
- `call`: the public thing to call, by default `training_step`; a text with `{column}` names one for each row.
- `answer`: a letter of the call's result, or arithmetic over letters, in the unit of the measured column. `roofline`
  and `peak` are written the same way: the device at its peaks, and a limit that nothing can beat.
- `parts`: a list of calls to add up; each may override keys of the stanza. `figure`: arithmetic that gives the compared
  number, over `total` (the sum, or the only answer), its terms `first`, `second` and so on, and columns. Example:
  `"2 * m * n * k / total / 1e12"`.
- `model`, `device`, `precision` (if two, the second is the experts'), `framework`, `cluster`, `libraries`, `engine`:
  keys of tables, or texts with `{column}` that `[NAME.names]` maps to keys by patterns. `shape`: letters and words of a
  model with the row's own shape. `formulas`: names of formulas that replace the sheet's. `rows`: other rows, such as
  `links.pcie4` or `calculon.shape {model}`.
- `letters`: letters by expressions; `words`: words of a strategy.
- `when`: a list of `{if = {column = pattern}, where = expression, ...}`. If all patterns are found and the expression
  holds, the other keys are added to the stanza's. `also`: more such cases, after the cases of the stanza it is `like`.
- `left_out`: a list of `[column, pattern, reason]`, `[expression, reason]` or `{if = ..., where = ..., why = ...}`.
  These expressions may name cells and letters of the row's call; expressions of `letters` may name cells. With
  `{over = {letter = other}, why = ...}`, rows are left out if the letter exceeds another letter of the result.
  `also_left_out` adds to the list of the stanza it is `like`.
- `refused`: why rows are left out whose call raises ValueError, because what they name does not fit.
- `floor`: another set, whose predictions are this set's roofline and peak. `alike`: a text of columns; rows with the
  same text can share one number.
- `at_most`: `{letter = other}` limits a letter to another letter of the call's result, such as users to `max_users`.
- `calibrates`: the rows that something was calibrated on: `{even = true}`, `{half = [columns]}`,
  `{where = expression}`, or patterns of columns; a list if any of several is enough.
- `why`: why the set needs Python, if it does.
- `extract`: new columns: `[column, pattern]`, a list of such pairs (the first match counts), an expression, or
  `{of = text}`. With `names = {pattern = text}` the first matching name is used; `names` may also be the key of another
  set of names. `complete`: a function of this room that adds columns.
- `labels`: new columns of words: `{size = [["tokens < 1024", "small"], [{mode = "x"}, "mine"], ["", "large"]]}` takes
  the first word whose expression, or whose patterns of columns, hold.
- `tuned`: letters and words that the source tuned but does not print, each with a list or `divisors(...)`. Chosen is
  our fastest prediction that fits into the `fits` share of memory, or the one with the highest `best` that runs. Only
  choices for which the expression `where` holds count. `follows`: letters that follow from these.
- `blend`: a word that differs in a part of the blocks: `{recompute = ["none", "full"], share = "..."}`. The share may
  name letters of the result with the second value.
- `bound`: true if the figures are lower bounds, which are kept separate from the sets.
- `readings`: a function of this room, or `{word = [values]}` if rows do not say a word; all values are equally likely.
- `like`: another stanza, whose keys are the defaults of this one; tables of keys are joined.
"""

import tomllib
from collections.abc import Mapping
from importlib.resources import files

from scalebook.language.notation import nearest, quoted

__all__ = ["inherited", "joined", "written"]

_KEYS = (
    "also", "also_left_out", "alike", "answer", "at_most", "blend", "bound", "calibrated", "calibrates", "call",
    "cluster", "complete", "device", "engine", "extract", "figure", "file", "floor", "follows", "formulas", "framework",
    "group", "labels", "left_out", "letters", "libraries", "like", "measured", "model", "names", "optional", "parts",
    "peak", "precision", "readings", "refused", "roofline", "rows", "shape", "sources", "tuned", "unit", "what", "when",
    "why", "words",
)  # fmt: skip
_JOINED = ("letters", "words", "names", "extract", "shape", "labels")  # tables of keys that are joined


def joined(first: Mapping, second: Mapping) -> dict:
    """Return one stanza over another: tables of keys are joined, every other key is the second's."""
    both = {**first, **second}
    for key in _JOINED:
        if key in first and key in second:
            both[key] = {**first[key], **second[key]}
            for inner, x in second[key].items():
                if isinstance(x, Mapping) and isinstance(first[key].get(inner), Mapping):
                    both[key][inner] = {**first[key][inner], **x}
    return both


def written() -> dict[str, dict]:
    """Return every stanza of the folder by name, with the keys that it takes over by `like`."""
    said: dict[str, dict] = {}
    for path in sorted(files(__package__).joinpath("stanzas").iterdir(), key=lambda x: x.name):
        if path.name.endswith(".toml"):
            said |= tomllib.loads(path.read_text("utf-8"))
    return {name: inherited(name, said) for name in said}


def inherited(name: str, said: Mapping) -> dict:
    """Return a stanza with the keys of those it is like. Raises ValueError, naming it, for an unknown key."""
    own = dict(said[name])
    for part in (own, *own.get("when", ()), *own.get("also", ()), *own.get("parts", ())):
        if strange := next((x for x in part if x not in (*_KEYS, "if", "where")), None):
            raise ValueError(f"{name}: a stanza has no key {quoted(strange)}; {nearest(strange, _KEYS)}")
    if (other := own.pop("like", None)) is None:
        return own
    if other not in said:
        raise ValueError(f"{name} is like {quoted(other)}, which is no set; {nearest(other, said)}")
    return joined(inherited(other, said), own)
