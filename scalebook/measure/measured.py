"""A measured machine: its kernel times, its row for the table of accelerators, and its timed steps."""

import json
import platform
import re
import tempfile
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property
from os import PathLike
from pathlib import Path

from scalebook.language import show
from scalebook.language.notation import quoted
from scalebook.language.tabular import aligned, page_table, styled
from scalebook.measure.backends import Backend, backend
from scalebook.measure.cells import cells_of, stanza
from scalebook.measure.clock import Sample
from scalebook.measure.errors import Confronted, confronted
from scalebook.measure.probes import Measurement, plan
from scalebook.measure.steps import DECODED, Timed, shapes, timed
from scalebook.measure.transformer import Shape
from scalebook.tables import Device, accelerators

__all__ = ["OWN", "Measured", "measure", "saved_at", "stored"]

OWN = Path(__file__).with_name("own.toml")  # measurements of a machine of ours
_VENDORS = ("NVIDIA", "AMD", "Intel", "Apple", "Google")
_TIMES = 5  # timed training steps
_HEAD = ["kernel", "precision", "shape", "median", "8 in 10 of", "rate"]
_HELD_UP = 0.1  # share of disturbed kernels that is reported; on an idle machine it is one in fifty


@dataclass(frozen=True)
class Measured:
    """All measurements of one machine, and its names.

    `rows` are times of single kernels, and `device` follows from them; `times` are steps of a small transformer.
    `note` says what is missing if the measurement was interrupted.
    """

    host: str
    date: str
    library: str
    name: str
    memory: float
    cores: int
    devices: int
    rows: list[Measurement]
    times: list[Timed]
    note: str = ""

    @property
    def source(self) -> str:
        return f"scalebook-measure measured by scalebook.measure on {self.host} at {self.date}"

    @cached_property
    def stanza(self) -> str:
        """The row of the table of accelerators, as TOML."""
        cells = cells_of(self.rows, self.memory, self.cores, self.devices)
        key = re.sub(r"[^a-z0-9]+", "_", self.host.lower()).strip("_") or "mine"
        vendor = next((x for x in _VENDORS if x.lower() in self.name.lower()), "")
        return stanza(key, f"{self.name} with {self.library}", cells, self.source, vendor)

    @cached_property
    def device(self) -> Device:
        """The row as `accelerators.read` reads it from the file that `save` writes."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "measured.toml")
            path.write_text(self.stanza + "\n", "utf-8")
            return accelerators.read(path)

    @property
    def disturbed(self) -> str:
        """A sentence if kernel times show that other programs were running, otherwise ""."""
        held_up = sum(x.sample.high > 2 * x.sample.median for x in self.rows)
        if held_up <= _HELD_UP * len(self.rows):
            return ""
        often = f"{held_up} of {len(self.rows)} kernels took more than twice their median in a tenth of their times"
        return f"{often}: other programs were at work; measure again without them"

    def confront(self) -> Confronted:
        return confronted(self.device, self.times, self.disturbed)

    def save(self, path) -> None:
        """Write the row to a TOML file, and every measured time to a .json file of the same name."""
        path = saved_at(path)
        path.write_text(self.stanza + "\n", "utf-8")
        record = asdict(self)
        for x in (*record["rows"], *record["times"]):
            [x["seconds"]] = x.pop("sample")
        text = json.dumps(record).replace('{"kind"', '\n{"kind"').replace('{"letter"', '\n{"letter"')
        path.with_suffix(".json").write_text(text + "\n", "utf-8")

    def __repr__(self):
        return f"{self._title}\n{aligned([_HEAD, *map(_line, self.rows)], gap='  ')}"

    def _repr_html_(self):
        return styled(page_table(_HEAD, map(_line, self.rows), self._title))

    @property
    def _title(self) -> str:
        said = f"{self.name}, {self.library}, {self.host}, {self.date}"
        return "; ".join(filter(None, [said, self.note, self.disturbed]))


def _line(row: Measurement) -> list[str]:
    rate, shape = row.rate(row.sample.median), show(row.traffic, "B") if row.traffic else ""
    if row.rows:
        shape = f"{row.rows} x {row.columns} x {row.inner}"
    rate = show(rate, "FLOP/s" if row.flops else "B/s") if row.flops or row.traffic else ""
    return [row.kind.replace("_", " "), row.precision, shape, show(row.sample.median, "s"), row.sample.spread, rate]


def measure(quick: bool = False, on: str | Backend | None = None, progress: bool | None = None) -> Measured:
    """Measure this machine in about a minute: products, streams, launches, copies, collectives, and transformer steps.

    `quick` takes a second or two and says less, because its sizes fit in caches. `on` is "numpy", "torch", "jax" or a
    backend; the default is a framework that sees an accelerator, or NumPy. `progress` shows or hides a progress bar; by
    default it is shown on a terminal. If you interrupt it, it returns the measurements so far, and `note` says what is
    missing. Raises LookupError for an unknown framework, or one that is not installed.
    """
    from tqdm.auto import tqdm

    on = on if isinstance(on, Backend) else backend(on)
    probes, rows, steps, times, note = plan(on, quick), [], [], 2 if quick else _TIMES, ""
    parts, hidden = len(probes) + times + 1 + len(DECODED), None if progress is None else not progress
    with tqdm(total=parts, unit="part", disable=hidden) as bar:
        try:
            for probe in probes:
                bar.set_description(probe.name)
                rows += probe.run(3) if quick else probe.run()
                bar.update()
            bar.set_description("steps of a small transformer")
            steps = timed(on, *shapes(on, quick), times=times, told=bar.update)
        except KeyboardInterrupt:
            if not rows:
                raise
            note = f"interrupted after {len(rows)} measurements of kernels, and no step of a transformer was timed"
    host, date = platform.node() or "this machine", datetime.now().strftime("%Y-%m-%d %H:%M")
    return Measured(host, date, on.name, on.device, on.memory, on.cores, on.devices, rows, steps, note)


def saved_at(path) -> Path:
    """Return the path where a row may be saved: a TOML file in a writable folder, new or with an earlier row.

    Raises ValueError for any other path, so that a measurement is not lost and no other file is overwritten.
    """
    path = _path(path)
    if path.suffix != ".toml":
        raise ValueError(f"a row is saved in a TOML file, such as my.toml, not in {quoted(str(path))}")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
        for old, is_ours in ((path, _is_a_row), (path.with_suffix(".json"), _is_a_record)):
            if old.exists() and not is_ours(old):
                raise ValueError(f"{old} holds something else than a row that was measured: save under another name")
    except OSError as error:
        raise ValueError(f"{path} could not be written: {error.strerror}; save to another folder") from None
    return path


def _path(path):
    if not isinstance(path, str | PathLike):
        raise TypeError(f"a row lies in a TOML file, whose path is 'my.toml', say, not {quoted(path)}")
    return Path(path)


def _is_a_row(path):
    """Return True if a file holds one machine's row as `save` writes it, or nothing."""
    with path.open("r+", encoding="utf-8") as file:
        text = file.read()
    return not text.strip() or (text.count("\n[") == 0 and '\nsource = "scalebook-measure ' in text)


def _is_a_record(path):
    try:
        return bool(stored(path))
    except ValueError:
        return False


def stored(path=OWN) -> Measured:
    """Read the measurements that `save` wrote next to a TOML file. The default file describes one of our machines.

    Raises ValueError for a file that is missing or that `save` did not write.

    >>> stored().library
    'NumPy'
    """
    path = _path(path).with_suffix(".json")
    try:
        record = json.loads(path.read_text("utf-8"))
        rows, times = ([_again(kind, x) for x in record.pop(n)] for n, kind in _KINDS.items())
        return Measured(**record, rows=rows, times=times)
    except OSError as error:
        raise ValueError(f"{path} could not be read: {error.strerror}; `--save` writes it beside the row") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValueError(f"{path} holds no measurements as `python -m scalebook.measure --save` writes them") from None


_KINDS = {"rows": Measurement, "times": Timed}


def _again(kind, record):
    said = {name: Shape(**x) if name == "shape" else x for name, x in record.items() if name != "seconds"}
    return kind(**said, sample=Sample(tuple(record["seconds"])))
