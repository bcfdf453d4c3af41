"""A box in which a reader types an answer: the page says how far off it is, with or without a kernel."""

from importlib.resources import files

import anywidget
import traitlets

from scalebook.language.notation import quoted, word
from scalebook.language.units import show

from .live import Calculator, stored

__all__ = ["Guess", "guess"]

_HERE = files(__name__.rpartition(".")[0])


class Guess(anywidget.AnyWidget):
    """The widget that `guess` returns. `asked` holds the question, the answer in base units and its unit."""

    _esm = "\n".join((_HERE / f"{x}.js").read_text("utf-8") for x in ("live", "elements", "guess"))
    _css = Calculator._css
    asked = traitlets.Dict().tag(sync=True)

    def __repr__(self):
        return f"Guess({show(self.asked['answer'], self.asked['unit'])!r})"

    def _repr_mimebundle_(self, **kwargs):
        return stored(self, super()._repr_mimebundle_(**kwargs), {"guess": self.asked})


def guess(question: str, answer: float, unit: str | None = None, within: float = 0.1) -> Guess:
    """Return a box that takes the reader's own answer to a question and says how far off it is.

    `answer` is in base units. A formula's result brings its `unit`; any other number is given one. Answers within the
    share `within` of it are right. Raises ValueError for an unknown unit, an answer that is not finite, or zero.

    >>> guess("How many bytes do the weights of a 70-billion model fill in 16 bits?", 140e9, "B")
    Guess('140 GB')
    """
    unit = getattr(answer, "unit", "") if unit is None else unit
    show(answer, unit)
    if not isinstance(within, int | float) or not 0 < within < 1:
        raise ValueError(f"within is a share of the answer, such as 0.1, not {quoted(within)}")
    if not answer:
        raise ValueError("the answer is 0, and a guess is judged by its ratio to the answer")
    return Guess(asked=dict(question=word(question, "a question"), answer=float(answer), unit=unit, within=within))
