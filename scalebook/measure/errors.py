"""Predictions for the timed steps, from the device's row alone, and their errors."""

from dataclasses import dataclass, field

from scalebook.inference import decode_step
from scalebook.language import NOTATION, show
from scalebook.language.tabular import aligned, page_table, styled
from scalebook.measure.backends import BITS
from scalebook.measure.clock import Sample
from scalebook.measure.steps import Timed
from scalebook.tables import Device
from scalebook.training import training_step
from scalebook.training.profile import profile

__all__ = ["Confronted", "Line", "confronted"]

_HEAD = ["what", "predicted", "measured", "8 in 10 of", "error"]


@dataclass(frozen=True)
class Line:
    """One timed step: what was timed, the prediction and the measurement."""

    letter: str
    what: str
    predicted: float
    measured: Sample

    @property
    def error(self) -> float:
        """Predicted over median measured time, minus one."""
        return self.predicted / self.measured.median - 1


@dataclass(frozen=True)
class Confronted:
    """The comparison of predicted and timed steps on one device: a line for each step, and what was timed."""

    device: str
    said: list[str]
    lines: list[Line] = field(default_factory=list)

    def __getitem__(self, letter: str) -> Line:
        """Return the line of a letter. Raises LookupError, naming the letters that were timed, for any other."""
        found = {line.letter: line for line in self.lines}
        if letter not in found:
            raise LookupError(f"no time of {letter} was taken, only of {', '.join(found)}")
        return found[letter]

    def _table(self):
        return [
            [x.what, show(x.predicted, "s"), show(x.measured.median, "s"), x.measured.spread, f"{x.error:+.0%}"]
            for x in self.lines
        ]

    def __repr__(self):
        table = aligned([_HEAD, *self._table()], gap="  ")
        return "\n".join([f"On {self.device}, predicted from kernels measured alone:", *self.said, table])

    def _repr_html_(self):
        return styled(page_table(_HEAD, self._table(), f"On {self.device}: {'; '.join(self.said)}"))


def confronted(device: Device, times: list[Timed], disturbed: str = "") -> Confronted:
    """Compare the timed steps with the predictions of `training_step` and `decode_step`.

    Weights, gradients, both optimizer moments and all activations have the width of the precision. Attention scores are
    written to memory, as in the timed step. `disturbed` is a sentence about disturbances, shown with the result.
    """
    lines, said = [], []
    for x in times:
        row, bits = x.shape.row(), BITS[x.precision]
        at = device.at(x.precision)
        if x.letter == "pass_time":
            found = decode_step(row, at, batch=x.batch, context=x.seq)["pass_time"]
            said.append(f"decoding, {row.name}, after {x.seq} tokens, {x.precision}")
        else:
            given = dict(batch=1, global_batch=1, seq=x.seq, attention="unfused", logit_bits=bits)
            given |= dict(weight_bits=bits, activation_bits=bits, gradient_bits=bits, optimizer_bits=2 * bits)
            if x.letter == "products":
                found = sum(line.time for line in profile(row, at, **given).lines if line.kind == "product")
            else:
                found = training_step(row, at, **given)[x.letter]
            said.append(f"training, {row.name}, {x.seq} tokens, {x.precision}")
        what = _WORDS.get(x.letter) or NOTATION[x.letter].meaning
        lines.append(Line(x.letter, what.format(x.batch), found, x.sample))
    return Confronted(device.name, [*dict.fromkeys(said), *filter(None, [disturbed])], lines)


_WORDS = {"products": "matrix products of a step", "pass_time": "a step of decoding, batch {}"}
