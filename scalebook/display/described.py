"""Turn what a notebook stores of a calculator into everything that the calculator shows.

Notebooks store formulas and tables by name, the range of each slider, and where each control starts; only formulas that
the package lacks are stored in full. Menus, labels, units and JavaScript are made from it here, in a kernel or when the
site is built, so no page can show an outdated table.
"""

import itertools
import re
from collections.abc import Mapping

import numpy as np

from scalebook import tables
from scalebook.display.meanings import PARTS
from scalebook.language import FORMULAS, NOTATION, Formula, code, show
from scalebook.language.interval import SPREADS
from scalebook.language.notation import Letter, nearest, quoted
from scalebook.language.row import quantity

from .menus import BY_PRECISION, READ, STATED_BY_ROWS, as_read, cells_for, cut, is_priced_otherwise, row_of, steps
from .parts import bars

__all__ = ["Described", "brief", "merge", "record", "reference", "typeset"]

SET = 400  # characters of TeX; longer equations are not shown
# Letters that must fit in a device's memory.
HELD = ("memory", "decode_memory", "device_memory", "near_memory", "train_memory")


def reference(f: Formula) -> str | dict:
    """Return how a notebook stores a formula: its name if the package has it, otherwise the dict of `record`."""
    return f.name if FORMULAS.get(f.name) is f and f.__module__.startswith("scalebook.") else record(f)


def record(f: Formula) -> dict:
    """Return all that a calculator needs to evaluate a formula, as a dict: JavaScript, inputs, conditions and name."""
    said = dict(name=f.name, letter=f.letter, sign=NOTATION[f.letter].sign, inputs=list(f.inputs))
    if f.domain:
        said["holds"] = [[x.words, list(x.letters)] for x in f.domain]
    if not f.inputs:
        said["value"] = f()
    return said | dict(js=code.expression(f.guarded))


def typeset(f: Formula) -> list[str]:
    """Return a formula's right-hand side as TeX twice: with symbols, and with placeholders for their values."""
    return [_wrapped(f.typeset()), _wrapped(f.template())]


def brief(meaning: str) -> str:
    """Return the first words of a meaning, up to its first comma, colon or semicolon."""
    return re.split("[,:;]", meaning)[0]


def merge(data: dict, more: dict) -> None:
    """Add one calculator's formulas and table rows (`more`) to the data that a page's calculators share (`data`)."""
    data["formulas"].update(more["formulas"])
    for table, rows in more["tables"].items():
        known = data["tables"].setdefault(table, {})
        for key, row in rows.items():
            old = known.get(key, {})
            both = {x: {**old[x], **row[x]} for x in ("letters", "ends") if x in old and x in row}
            known[key] = {**old, **row, **{x: dict(sorted(own.items())) for x, own in both.items()}}


class Described:
    """A calculator, made from what a notebook stores of it: `spec` for the browser, `options` of menus, `start` state.

    A state maps each menu to a row's key, the precision to its name, and each slider to a number. The spec refers to
    formulas and rows by name, and `data` holds them. Raises TypeError or LookupError, naming the part, if parts of the
    stored choice do not fit together.
    """

    def __init__(self, choice: dict):
        self.choice, self.spec, self.data = choice, {}, dict(formulas={}, tables={})
        self._letters = {name: Letter(name, *said) for name, said in choice["letters"].items()}
        self._rows = {c["name"]: _rows(c) for c in choice["controls"] if "table" in c}
        self._left_out = left_out = []
        self._formulas()
        self.options, self.start, controls = {}, {}, []
        for c in choice["controls"]:
            name = c["name"]
            if "table" in c:
                controls.append(self._menu(c, left_out))
            else:
                self.options[name] = self._listed(c)
                controls.append(self._shown(c))
            self.start[name] = _begin(c, self.options[name])
        self._refuse()
        self.spec |= dict(controls=controls, fixed=choice["fixed"], warn=choice["warn"], lacking=left_out)
        self.spec |= self._words()
        self.spec |= dict(first=self._first(), start=self.start)
        self._uncertain()

    def checked(self, state: Mapping) -> dict:
        """Return the state of all controls, by default the start.  Raises an error for a value that is not on offer."""
        if strange := [x for x in state if x not in self.options]:
            raise TypeError(f"{quoted(strange[0])} is no control here; {nearest(str(strange[0]), self.options)}")
        whole = self.start | dict(state)
        for name, value in whole.items():
            options = self.options[name]
            if name in self._sliders:
                whole[name] = float(quantity(name, value) if name not in self._letters else value)
            elif not isinstance(value, str) or value not in [o["key"] for o in options]:
                near = nearest(quoted(value), [o["key"] for o in options])
                raise LookupError(f"{name} has no {quoted(value)} to offer; {near}")
        return whole

    def letters(self, name: str, value) -> dict:
        """Return, by name, the quantities that a slider or menu sets when it stands at this value."""
        if name in self._sliders:
            return {name: value}
        return self.option(name, value)["letters"]

    def option(self, name: str, key: str) -> dict:
        """Return one option of a menu as a dict, by the name of the menu and the option's key, such as "h100"."""
        return next(o for o in self.options[name] if o.get("key") == key)

    def letter(self, name: str) -> Letter:
        """Return the entry (unit, meaning, printed form) of a quantity of the book or of this notebook alone."""
        return self._letters.get(name) or NOTATION[name]

    def _formulas(self):
        known = [(x, _stated(x) if isinstance(x, str) else x) for x in self.choice["formulas"]]
        stated, asked = {f["letter"] for _, f in known}, {x for _, f in known for x in f["inputs"]}
        for own in self._rows.values():
            for key in [k for k, row in own.items() if is_priced_otherwise(row["letters"], stated, asked)]:
                said = "(other formulas: training_step and the planner have them)"
                self._left_out.append(f"{own.pop(key)['name']} {said}")
        self._read = {f["letter"]: READ[f["name"]] for _, f in known if f["name"] in READ}
        self._rows = {x: {k: as_read(row, self._read) for k, row in own.items()} for x, own in self._rows.items()}
        rows = [row for own in self._rows.values() for row in own.values()]
        given = {x for row in rows for x in row["letters"]}
        self._constants = [f for _, f in known if "value" in f and f["letter"] in given]
        self._usual = {f["letter"]: f["value"] for _, f in known if "value" in f and f["letter"] in given}
        known = [(x, f) for x, f in known if f["letter"] not in self._usual]
        self.spec["formulas"] = [x for x, _ in known]
        self.data["formulas"] = {x: f for x, f in known if isinstance(x, str)}
        self.formulas = {f["letter"]: f for _, f in known}
        self.inputs = sorted({x for f in self.formulas.values() for x in f["inputs"]} - self.formulas.keys())
        controls = self.choice["controls"]
        self._sliders = [c["name"] for c in controls if "values" in c or "range" in c]
        self._precisions = next((c["precisions"] for c in controls if "precisions" in c), [])
        chosen = self.choice["fixed"].keys() | {c["name"] for c in controls}
        by_precision = any("precisions" in c for c in controls)
        given |= {x for row in rows for _, at in row.get("peaks", ()) for x in at}
        over = [x for x in STATED_BY_ROWS if x in self.formulas and x in given - chosen]
        self._at = [x for x in BY_PRECISION if by_precision and (x in self.inputs or x in over) and x not in chosen]
        self._over = [x for x in over if x not in self._at]
        self.spec |= dict(by_precision=self._at, over=over)

    def _menu(self, c, left_out):
        rows = self._rows[c["name"]]
        if self._precisions and any("peaks" in row for row in rows.values()):
            has = {k: {p for p, _ in row["peaks"]} & set(self._precisions) for k, row in rows.items()}
            left_out += [f"{rows[k]['name']} (no {' or '.join(self._precisions)})" for k, x in has.items() if not x]
            rows = {k: row for k, row in rows.items() if has[k]}
        own = [x for x in self.inputs if any(x in row["letters"] for row in rows.values())]
        needed = [x for x in own if x not in self._at]
        lacking = {k: [x for x in needed if x not in {**self._usual, **row["letters"]}] for k, row in rows.items()}
        said = {x: brief(self.letter(x).meaning) for x in needed}
        left_out += [f"{rows[k]['name']} ({', '.join(said[y] for y in x)})" for k, x in lacking.items() if x]
        keys = [k for k, x in lacking.items() if not x]
        if not keys:
            said = f"which {self.choice['sheet']} needs"
            raise TypeError(f"no row of {c['table']} has all of {', '.join(needed)}, {said}")
        letters = [*needed, *self._over, *(x for x in self._beside() if x not in self.formulas and x not in needed)]
        usual = {x: self._usual[x] for x in [*letters, *own] if x in self._usual}
        groups = {k: rows[k].get("group") or re.match(r"\w[^\W\d]*", rows[k]["name"])[0] for k in keys}
        read = {x: cell for x, cell in self._read.items() if x in letters}
        kept = {k: cut(rows[k], cells_for(rows[k], letters, read), by_precision=bool(self._at)) for k in keys}
        rows = {k: cut(rows[k], letters, by_precision=bool(self._at)) for k in keys}
        self.options[c["name"]] = [
            dict(rows[k], key=k, label=rows[k]["name"], letters={**usual, **rows[k]["letters"]}) for k in keys
        ]
        control = dict(name=c["name"], label=c["name"].replace("_", " "), keys=keys, groups=groups, usual=usual)
        control |= dict(read=read) if read else {}
        if "rows" in c:
            return control | dict(rows=kept)
        merge(self.data, dict(formulas={}, tables={c["table"]: kept}))
        return control | dict(table=c["table"], letters=[*letters, *read.values()])

    def _listed(self, c):
        if "precisions" in c:
            return [dict(label=p, letters={}, peak=p, key=p) for p in c["precisions"]]
        values = c["values"] if "values" in c else steps(*c["range"])
        return [dict(label=show(x, self.letter(c["name"]).unit), letters={c["name"]: x}) for x in values]

    def _shown(self, c):
        if "precisions" in c:
            return dict(name=c["name"], label="precision of arithmetic", options=self.options[c["name"]])
        letter, values = self.letter(c["name"]), [o["letters"][c["name"]] for o in self.options[c["name"]]]
        said = dict(name=c["name"], label=letter.meaning, unit=letter.unit, sign=letter.sign, values=values)
        return said | ({"whole": True} if letter.whole else {})

    def _first(self):
        """Return the controls that are open at first: two tables, the curve's slider, and others up to three."""
        along = self.choice["curve"][:1]
        menus = [x for x in self.options if x not in self._sliders and x != "precision" and len(self.options[x]) > 1]
        several = [*menus[:2], *along, *(x for x in self._sliders if x not in along), *menus[2:]]
        several += [x for x in self.options if x not in (*several, "precision")]
        return several if len(several) < 5 else several[:3]

    def _limits(self):
        found = {left: right for left, right, _ in self.choice["warn"] if self.letter(left).unit == "B"}
        held = [x for x in (self.choice["answer"], *self.choice["also"]) if x in HELD and x not in found]
        has_capacity = any("hbm_capacity" in row["letters"] for rows in self._rows.values() for row in rows.values())
        return found | dict.fromkeys(held if has_capacity else (), "hbm_capacity")

    def _beside(self):
        return list(dict.fromkeys([*self._warned(), *self._limits().values()]))

    def _warned(self):
        return list(dict.fromkeys(x for left, right, _ in self.choice["warn"] for x in (left, right)))

    def _refuse(self):
        """Raise TypeError if the sheet lacks a letter or an argument names an unknown one."""
        by_precision = "precision" in self.options
        if by_precision and not any("peaks" in o for options in self.options.values() for o in options):
            raise TypeError("precision chooses among the peaks of a device: give a table of accelerators too")
        first, every = [x[0] for x in self.options.values()], [o for x in self.options.values() for o in x]
        given = {x for o in first for x in o["letters"]} | self.choice["fixed"].keys()
        given |= {x for o in every for _, at in o.get("peaks", ()) for x in self._at if x in at}
        if lacking := [x for x in self.inputs if x not in given]:
            how = f"give a table that has it, a range such as {lacking[0]}=(1, 64), or a number"
            raise TypeError(f"the calculator needs {', '.join(lacking)}: {how}")
        known = given | self.formulas.keys() | {x for o in every for x in o["letters"]}
        for left, right, text in self.choice["warn"]:
            said = re.findall(r"\{(\w+)\}", text)
            if strange := [x for x in (left, right, *said) if x not in known]:
                raise TypeError(f"warn names {strange[0]!r}, which nothing here gives; {nearest(strange[0], known)}")
        if self.choice["curve"] and (along := self.choice["curve"][0]) not in self._sliders:
            raise TypeError(f"the curve runs along a slider, and {along!r} is none; {nearest(along, self.options)}")

    def _uncertain(self):
        names = {f["letter"]: f["name"] for f in (*self.formulas.values(), *self._constants)}
        apart = SPREADS.with_experts  # if these differ, their two ends follow
        if spread := {x: [*SPREADS[x], name, *apart.get(x, ())] for x, name in names.items() if x in SPREADS}:
            self.spec["spread"] = spread
        if shares := [x for x in (*self.inputs, *self.spec["over"]) if self.letter(x).sign == "share"]:
            self.spec["shares"] = shares

    def _words(self):
        answer, also, (x, *ys) = self.choice["answer"], self.choice["also"], self.choice["curve"] or [""]
        main = self.formulas[answer]
        equation = self.choice.get("equation") or typeset(FORMULAS[main["name"]])
        left, right, template = self.letter(answer).tex, *equation
        placed = [name for _, _, text in self.choice["warn"] for name in re.findall(r"\{(\w+)\}", text)]
        of_domains = [n for f in self.formulas.values() for _, names in f.get("holds", ()) for n in names]
        limits = self._limits()
        drawn = bars(self.formulas, [answer, *limits, *also], limits, self.letter)
        names = [*main["inputs"], *self._beside(), *placed, *of_domains, *self.formulas, *self.inputs]
        words = dict(
            outputs=[self._line_of(x) for x in [answer, *also]], left=left, right=right, template=template,
            units={n: self.letter(n).unit for n in names},
            letters={n: [self.letter(n).tex, self.letter(n).meaning] for n in dict.fromkeys([answer, *names])},
            name=self.choice["sheet"],
        )  # fmt: skip
        if drawn:
            words["bars"] = drawn
        warned = [x[0] for x in self.choice["warn"]]
        if unsaid := [x for x in limits.items() if x[0] not in warned and x[0] in self.formulas]:
            words["limits"] = unsaid
        if x:
            unit, control = self.letter(x).unit, next(c for c in self.choice["controls"] if c["name"] == x)
            label = f"{brief(self.letter(x).meaning)}{f' ({unit})' if unit else ''}"
            lines = _beside_parts([self._line_of(y) for y in ys or [answer]])
            words["curve"] = dict(x=x, unit=unit, label=label, y=lines)
            if len(control.get("values", ())) in range(1, 25):  # a short list has nothing between its values
                words["curve"]["steps"] = True
        return words

    def _line_of(self, name):
        letter = self.letter(name)
        said = dict(letter=name, unit=letter.unit, sign=letter.sign, meaning=letter.meaning)
        return said | (dict(kind=PARTS[name].kind, shade=PARTS[name].shade) if name in PARTS else {})


def _beside_parts(lines):
    """Colour lines as wholes if other lines are parts."""
    if any("kind" in x for x in lines):
        return [dict(kind="whole", shade=0) | x for x in lines]
    return lines


def _stated(name):
    if name not in FORMULAS:
        raise LookupError(f"the package states no formula {name!r}: store the notebook anew (make notebooks)")
    f = FORMULAS[name]
    said = record(f) | dict(module=f.__module__, sources=list(f.sources))
    return said if len(tex := typeset(f)[0]) > SET else said | dict(tex=tex)


def _rows(c):
    """Return a menu's rows by key: a chapter's own, some of a table, or all (of models, those with equal blocks)."""
    if "rows" in c:
        return {row["key"]: row for row in c["rows"]}
    table = getattr(tables, c["table"])
    own = {key: table[key] for key in c.get("keys", table)}
    if c["table"] == "models" and "keys" not in c:
        own = {key: row for key, row in own.items() if "blocks" not in row.words}
    vendor = {key: row.words.get("vendor") for key, row in own.items()}
    return {key: row_of(table[key]) | ({"group": x} if x else {}) for key, x in vendor.items()}


def _begin(c, options):
    """Return a control's first value: its author's choice (a slider takes the nearest step), else the first option."""
    if "table" in c or "precisions" in c:
        keys = [o["key"] for o in options]
        if not isinstance(start := c.get("start", keys[0]), str) or start not in keys:
            said = quoted(start)
            raise LookupError(f"start: {c['name']} has no {said} to offer; {nearest(said, keys)}")
        return start
    values = [o["letters"][c["name"]] for o in options]
    if c.get("start", values[0]) in values:
        return c.get("start", values[0])
    with np.errstate(divide="ignore"):  # a slider may begin at 0
        return values[int(np.argmin(np.abs(np.log(values) - np.log(c["start"]))))]


def _wrapped(typeset, most=5):
    places, depth = [], 0
    for found in re.finditer(r"\\left|\\right|\\[{}]|[{}]| [+-] ", typeset):
        mark = found.group()
        depth += (mark in ("\\left", "{")) - (mark in ("\\right", "}"))
        if not depth and mark in (" + ", " - "):
            places.append(found.start())
    if len(places) < most:
        return typeset
    cuts = [0, *places[most - 1 :: most], len(typeset)]
    return r" \\ &\quad {}".join(typeset[a:b].strip() for a, b in itertools.pairwise(cuts))
