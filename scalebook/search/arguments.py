"""Read the arguments of a `search` call into a `Problem`; refuse each that makes no sense with one sentence."""

import itertools
import re
from collections.abc import Mapping, Sized
from typing import Any

import numpy as np

from scalebook import tables
from scalebook.language import NOTATION, Formula, Row
from scalebook.language.arguments import as_list, is_number, is_whole
from scalebook.language.interval import SPREADS
from scalebook.language.notation import either, found_by, known_as, nearest, quoted, refuse_stray, unused
from scalebook.language.row import gather, one_number, quantity
from scalebook.tables import Engine, Framework, Program, Table, vendor_of

from .problem import Limit, Problem
from .space import Searchable, Space, needs, searchable

__all__ = [
    "at_most", "choice", "each", "limit", "margins", "not_running", "plain", "problem_of", "refuse_no_count",
    "refuse_unused", "running_on", "sizes_of", "strangers", "whole_range", "within", "without_unable",
]  # fmt: skip

# of a search besides letters
_ASKED = ("minimize", "maximize", "against", "subject_to", "lift", "best", "pareto", "most")
_VALUES = 1_000_000  # values of one letter; more are probably a mistake
_BOUND = re.compile(r"\s*(\w*)\s*([<>≤≥]=?)\s*(.+?)\s*")  # a letter or nothing, a relation, and a bound
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?", re.ASCII)
_RELATIONS = {"<": "<=", "≤": "<=", ">": ">=", "≥": ">="}


def problem_of(sheet, knowns, minimize, maximize, against, subject_to, lift, best, letters: Mapping) -> Problem:
    """Turn the arguments of a `search` call into a `Problem`."""
    subject_to = _texts("subject_to", subject_to, "memory <= 70 GB")
    lift = _texts("lift", lift, "tp within scaleup_size")
    letters = dict(letters)
    margin = letters.pop("memory_margin", None)
    thing = searchable(sheet, knowns, letters)
    space = thing.space
    several, fixed = _split(thing, letters)
    rows = tuple(x for x in knowns if not isinstance(x, Formula))
    fixed, values = _values(space, rows, several, fixed)
    for name in space.needed:
        if name not in values and name not in several:
            raise TypeError(f"a search needs {name}: give {name}=..., one number or a list of them")
    for name, x in (space.usual(values) | space.stated(rows, several)).items():
        if name not in several and name not in fixed and not any(name in row for row in rows):
            several[name] = x if name in space.words else tuple(map(float, x))
    if not several:
        how = f"give a letter of {thing.name} as a list of values, as in batch=[1, 2, 4]"
        if hasattr(thing, "targets"):
            how = "give users or a rate, with prompt and output, and all layouts are searched; or a letter as a list"
        raise TypeError(f"there is nothing to search: {how}")
    words = {n: several[n] for n in space.words if n in several}
    searched = {n: several[n] for n in (*space.layout, *several) if n in several and n not in space.words}
    fixed = {n: float(quantity(n, x)) for n, x in fixed.items()}
    for name, x in ((n, x) for n, own in (searched | {n: (x,) for n, x in fixed.items()}).items() for x in own):
        if said := space.wrong(name, x):
            raise ValueError(said)
    axes = _axes(thing, minimize, maximize, against)
    if given := next((x for x in axes if x in fixed and x not in getattr(thing, "takes", ())), None):
        raise TypeError(found_by(thing.name, given, letters[given]))
    varied = {*several}.union(*(row for row in rows if "hbm_bandwidth" in row))  # there may be several devices
    if same := next((x for x in axes if x in values and x not in varied), None):
        usual = f", such as {space.axes[0]}" if space.axes else ""
        raise TypeError(f"{same} is the same for every strategy: minimize or maximize a result{usual}")
    limits, lifted = _limits(space, subject_to, lift, margins(thing, margin)), frozenset(lift)
    return Problem(thing, knowns, fixed, values, words, searched, axes, limits, lifted, int(best), maximize is not None)


def refuse_unused(problem: Problem, letters: Mapping) -> None:
    """Raise TypeError if a search call gives a quantity that no strategy uses, unless its value is the default."""
    space = problem.space
    within = {x for f in space.within(problem) for x in needs(f)} | {text.split()[2] for text in space.limits}
    known = {"memory_margin", "devices", *space.layout, *space.words, *space.needed, *space.follows, *space.offloads}
    known |= within | {*getattr(problem.sheet, "inside", ())}
    known |= getattr(problem.sheet, "billed", set()) if "train_tokens" in letters else set()
    own = {n: problem.letters.get(n, (problem.values.get(n),)) for n in letters}
    left = [n for n in letters if n not in known and own[n] != (space.letters.get(n, ""),)]
    rows = tuple(x for x in problem.knowns if not isinstance(x, Formula))
    told = dict.fromkeys([*problem.letters, *space.layout], 1.0) | problem.fixed
    told |= {"offload": True} if problem.offloads(problem.letters) else {}
    used: set[str] = set()
    for words in itertools.product(*problem.words.values()):
        if not (left := [x for x in left if x not in used]):
            return
        sheet = problem.sheet.sheet(rows, told | dict(zip(problem.words, words, strict=True)))[0]
        used |= sheet.letters - sheet._results(getattr(problem.sheet, "finds", ()))
    if left := [x for x in left if x not in used]:
        if left[0] in sheet.letters:
            raise TypeError(found_by(problem.sheet.name, left[0], letters[left[0]]))
        raise TypeError(unused(problem.sheet.name, left[0], used))


def _values(space: Space, rows: tuple, several: Mapping, fixed: Mapping) -> tuple[dict, dict]:
    """Return the call's letters with a single value; then these letters together with the rows' and the space's."""
    # Drops the rows' own values of searched letters, and what depends on these.
    placed = {n: x[0] for n, x in several.items() if n not in space.words}
    cells = gather(rows, {n: float(quantity(n, x)) for n, x in {**fixed, **placed}.items()})
    if stray := next((n for n, c in cells.items() if not is_number(c.value)), None):
        how = "give its values by keyword, as a list"
        raise TypeError(f"{stray} is no single number in what is given by position: {how}")
    values = {n: float(c.value) for n, c in cells.items() if n not in placed}
    more = {n: x for n, x in space.assumed(values).items() if n not in several}
    return {**fixed, **more}, {**space.letters, **values, **more}


def refuse_no_count(best) -> None:
    """Raise TypeError or ValueError unless `best` is a whole number from 1 up."""
    if not is_whole(best):
        raise TypeError(f"best={quoted(best)} is no whole number: best=10 keeps the best ten strategies")
    if best < 1:
        raise ValueError(f"best={best} keeps no strategy: best=1 is the least")


def margins(thing: Searchable, margin=None) -> dict[str, float]:
    """Return each quantity's margin below its default limit, as a share: `margin`, or its interval's end."""
    if margin is None:
        return {n: SPREADS[n].high - 1 for n in thing.space.margins}
    if not thing.space.margins:
        raise TypeError(f"{thing.name} does not use memory_margin; a search of training_step does")
    return dict.fromkeys(thing.space.margins, one_number("memory_margin", margin))


def _limits(space: Space, subject_to, lift, margins: Mapping[str, float]) -> tuple[Limit, ...]:
    """Return the limits of the space and of the call, except lifted limits.  Only the space's own keep a margin."""
    limits = [x._replace(margin=margins.get(x.letter, 0.0)) for x in map(limit, space.limits)]
    limits += map(limit, subject_to)
    names = [x.name for x in (*space.rules, *limits)]
    if unknown := next((x for x in lift if x not in names), None):
        raise LookupError(f"no rule or limit is called {unknown!r}; {nearest(unknown, names)}")
    return tuple(x for x in limits if x.name not in lift)


_KINDS = {Framework: "framework", Engine: "engine"}  # rows that a search takes several of, as a word


def each(knowns: tuple, letters: Mapping) -> tuple[list[tuple[tuple, str]], dict, dict[str, list]]:
    """Return one list of table rows for each device of a list or table, with the device's name, and the keyword values.

    If no list is given there is one list of rows, with the name "".  A list of frameworks or engines becomes the values
    of the option `framework` or `engine`; the rows of a whole table are also returned by the option, for `running_on`.
    """
    rest, devices, letters, whole = [], None, dict(letters), {}
    for x in knowns:
        if not isinstance(x, list | tuple | Table):
            rest.append(x)
            continue
        rows = list(x.values()) if isinstance(x, Table) else list(x)
        if kind := next((word for row, word in _KINDS.items() if rows and all(isinstance(y, row) for y in rows)), None):
            rows = [y for y in rows if y.is_program or not isinstance(x, Table)]
            letters[kind] = [y.kin[0] for y in rows]
            if isinstance(x, Table):
                whole[kind] = rows
            continue
        for y in rows:
            if not isinstance(y, Row) or "hbm_bandwidth" not in y:
                kinds = "devices, such as [accelerators.h100], of frameworks or of engines"
                raise TypeError(f"a list by position is of {kinds}, and {quoted(y)} is none")
        if devices is not None or not rows:
            raise TypeError("a search takes one list of devices by position, of one device or more")
        devices = rows
        rest.append(None)
    if devices is None:
        return [(tuple(rest), "")], letters, whole
    return [(tuple(y if x is None else x for x in rest), y.name) for y in devices], letters, whole


def without_unable(thing, knowns: tuple, whole: Mapping[str, list]) -> tuple[dict[str, list], dict[str, str]]:
    """Return the programs of whole tables that can run, and why the others cannot, by name. All, if none can."""
    unable = getattr(thing, "space", Space()).unable
    why = {x.name: unable(knowns, x) for rows in whole.values() for x in rows}
    kept = {n: [x for x in rows if not why[x.name]] or rows for n, rows in whole.items()}
    return kept, {n: f"left out: {x}" for n, x in why.items() if x}


def running_on(knowns: tuple, letters: Mapping, whole: Mapping[str, list]) -> dict:
    """Return the keyword values of one device, with those programs of a whole table that run on its vendor's devices.

    If none does, the option is left to its default.
    """
    able = {n: [x.kin[0] for x in rows if x.runs_on(vendor_of(knowns))] for n, rows in whole.items()}
    return {n: able.get(n, x) for n, x in letters.items() if able.get(n, True)}


def not_running(cases: list[tuple[tuple, str]], whole: Mapping[str, list]) -> str:
    """Say how many programs of whole tables do not run on a device that a search is of; "" if all do."""
    vendors = {vendor_of(knowns): None for knowns, _ in cases}
    lost = {n: sorted({sum(not x.runs_on(v) for x in rows) for v in vendors}) for n, rows in whole.items()}
    numbers = {n: f"{x[0]} to {x[-1]}" if x[1:] else x[0] for n, x in lost.items() if x[-1]}
    said = (f"{x} of {len(whole[n])} {n}s do not run on devices of {either(vendors)}" for n, x in numbers.items())
    return "; ".join(said)


def strangers(knowns: tuple, words: Mapping[str, tuple]) -> str:
    """Name the frameworks and engines of a search that do not run on its device's vendor; "" if all do."""
    rows = [x for x in knowns if isinstance(x, Program)]
    rows += [getattr(tables, f"{kind}s")[x] for kind in _KINDS.values() for x in words.get(kind, ())]
    return ", ".join(x.said_on(vendor_of(knowns)) for x in rows if not x.runs_on(vendor_of(knowns)))


def within(thing, letters: Mapping, subject_to) -> tuple[dict, list[str]]:
    """Split a search's keywords into values and limits: memory="<= 70 GB" becomes a text such as "memory <= 70 GB".

    A range such as batch="1..64" becomes a list of numbers.  A target of a service, tpot="<30 ms", stays a value.
    """
    left, limits = {}, [*_texts("subject_to", subject_to, "memory <= 70 GB")]
    for name, x in letters.items():
        if not (found := isinstance(x, str) and _BOUND.fullmatch(x)) or found[1]:
            is_range = isinstance(x, str) and ".." in x and name in NOTATION
            left[name] = whole_range(name, x) if is_range else x
        elif name in getattr(thing, "targets", ()) and found[2][0] in "<≤":
            left[name] = at_most(name, x)
        else:
            limits.append(f"{name} {_RELATIONS[found[2][0]]} {found[3]}")
    return left, limits


def whole_range(name: str, text: str) -> list[int]:
    """Return the whole numbers of a range of values of a letter.

    >>> whole_range("batch", "2..4")
    [2, 3, 4]
    """
    first, _, last = text.partition("..")
    if first.isdecimal() and last.isdecimal() and int(first) <= int(last) <= 10**6:
        return [*range(int(first), int(last) + 1)]
    raise ValueError(f"{name}={quoted(text)} is no range: one reads 1..64, from a whole number to a larger one")


def at_most(name: str, given) -> Any:
    """Return the value of a target, which is an upper limit.

    >>> at_most("tpot", "<30 ms"), at_most("tpot", "< 0.03"), at_most("tpot", 0.03)
    (0.03, 0.03, 0.03)
    """
    found = isinstance(given, str) and _BOUND.fullmatch(given)
    if found and (found[1] or found[2][0] in ">≥"):
        raise ValueError(f"{name} is the most that may be, such as {name}='< {found[3]}', not {quoted(given)}")
    return quantity(name, plain(found[3]) if found else given)


def plain(text: str) -> float | str:
    """Return a number without a unit, which is in base units; another text stays."""
    return float(text) if _NUMBER.fullmatch(text) else text


def sizes_of(thing, letters: dict) -> list[dict]:
    """Return a search's keywords once for each number of devices, if `devices` has several and `thing` a layout."""
    letters = {n: x.item() if isinstance(x, np.ndarray) and not x.ndim else x for n, x in letters.items()}
    many = as_list(letters.get("devices"))
    if many is None or not getattr(thing, "space", Space()).layout:
        return [letters]
    found = list(dict.fromkeys(one_number("devices", x) for x in many))
    if not found:
        raise ValueError("devices has no values to search: give at least one")
    return [{**letters, "devices": x} for x in found]


def _texts(name: str, given, example: str) -> tuple[str, ...]:
    """Return one text, or several, as a tuple of texts."""
    texts = (given,) if (many := as_list(given)) is None else tuple(many)
    if not all(isinstance(x, str) for x in texts):
        raise TypeError(f"{name} takes a text or several, such as {name}={example!r}, not {quoted(given)}")
    return texts


def _split(thing: Searchable, letters: Mapping) -> tuple[dict[str, tuple], dict[str, Any]]:
    """Split letters into single values and all others (lists of values, words and layout letters)."""
    space, several, fixed = thing.space, {}, {}
    for name, x in letters.items():
        if name in space.elsewhere:
            raise TypeError(space.elsewhere[name])
        if name not in space.words and name not in NOTATION:
            own = {*getattr(thing, "letters", ()), *space.words, *space.layout, *space.needed}
            refuse_stray(thing.name, name, own.union(_ASKED))
        x = x.tolist() if isinstance(x, np.ndarray) else x
        if isinstance(x, Sized) and not isinstance(x, str) and len(x) > _VALUES:
            raise ValueError(f"{name} has {len(x):,} values, and a search takes at most {_VALUES:,} of a letter")
        many = as_list(x)
        own = [x] if many is None else many
        if name not in space.words and any(as_list(y) is not None for y in own):
            raise TypeError(f"{name} is one value or a list of values, not a list in a list: {quoted(x)}")
        if name in space.words:
            own = dict.fromkeys(choice(space, name, value) for value in own)
        elif many is not None or name in space.layout:
            own = dict.fromkeys(one_number(name, value) for value in own)
        else:
            one_number(name, x)
            fixed[name] = x
            continue
        if not own:
            raise ValueError(f"{name} has no values to search: give at least one")
        several[name] = tuple(sorted(own, key=space.order[name])) if name in space.order else tuple(own)
    if space.layout and "devices" in several:
        raise TypeError("a search is of one number of devices: search each and compare")
    return several, fixed


def choice(space: Space, name: str, value):
    """Return the value of an option that a caller names; raise LookupError or ValueError for none."""
    value = known_as(value.item() if isinstance(value, np.generic) else value, space.words[name])
    if isinstance(value, (str, bool, int)) and value in space.words[name]:
        return space.words[name][space.words[name].index(value)]
    if name in space.spelled:
        return space.spelled[name](value)
    if name in _KINDS.values() and isinstance(value, str):
        getattr(tables, f"{name}s")[value]  # raises LookupError with the nearest names
    raise ValueError(f"{name} is {either(map(repr, space.words[name]))}, not {quoted(value)}")


def _axes(thing: Searchable, minimize, maximize, against) -> tuple[str, str]:
    """Return the two letters to rank strategies by; they are equal if no second one is asked for or is the default."""
    if minimize and maximize:
        raise TypeError(f"a search has one aim: minimize={quoted(minimize)} or maximize={quoted(maximize)}")
    usual = thing.space.axes
    aim = minimize or maximize or next(iter(usual), None)
    if aim is None:
        gives = getattr(thing, "finds", None) or sorted(thing.sheet((), {})[0].formulas)
        raise TypeError(f"say what is sought of {thing.name}, by minimize= or maximize=: {either(gives)}")
    usual = usual[::-1] if thing.space.is_front and aim == usual[1] else usual  # a Pareto front needs both objectives
    other = against or (usual[1] if usual and aim != usual[1] else aim)
    return NOTATION[aim].name, NOTATION[other].name


def limit(text: str) -> Limit:
    """Read a limit such as "memory < 70 GB" or "mfu >= 40 %".  A number alone is in the base unit: bytes, or 0.4.

    Raises ValueError for text of another form, and for a number that is unlikely to be meant in that unit.
    """
    parts = _BOUND.fullmatch(text)
    if not parts or not parts[1]:
        raise ValueError(f"a limit reads 'memory <= 70 GB' or 'mfu >= 0.4', not {quoted(text)}")
    letter, relation, bound = parts[1], _RELATIONS[parts[2][0]], parts[3]
    name, unit = f"{letter} {relation} {bound}", NOTATION[letter].unit
    if bound in NOTATION:
        return Limit(letter, relation, bound, name)
    value = plain(bound)
    if isinstance(value, str):
        return Limit(letter, relation, quantity(letter, value), name)
    if unit == "%" and value > 1:
        whole = f"{letter} {relation} {100 * value:.6g} %"
        raise ValueError(f"{name!r} asks for {100 * value:,.6g} %: say '{name} %', or '{whole}' where that is meant")
    if unit == "B" and 0 < value < 1000:
        raise ValueError(f"{name!r} asks for {value:g} bytes: say '{name} GB', or '{name} B' where that is meant")
    return Limit(letter, relation, quantity(letter, value), name)
