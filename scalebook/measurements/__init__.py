"""Published measurements, and what the formulas say about them.

>>> from scalebook.measurements import confront
>>> list(confront("batch1_decode").groups)[:3]
['calibrated on', 'Apple', 'RTX workstation']
>>> confront("batch1_dcode")
Traceback (most recent call last):
    ...
LookupError: no confrontation is called 'batch1_dcode'; did you mean 'batch1_decode' or ...?
"""

from scalebook.language.notation import nearest, quoted, word

from . import calculon, training_seconds
from .confrontation import Confrontation, Result
from .own import Own, confront_own
from .sets import confrontations

__all__ = ["CONFRONTATIONS", "Confrontation", "Own", "Result", "confront", "find"]

# In the order in which the list and the trust page show them: sets that are data, then those that are code.
CONFRONTATIONS: dict[str, Confrontation] = {
    **confrontations(), **training_seconds.CONFRONTATIONS, **calculon.CONFRONTATIONS,
}  # fmt: skip


def find(name: str) -> Confrontation:
    """The confrontation of that name; raises LookupError, naming the nearest, where there is none."""
    if word(name, "a confrontation") not in CONFRONTATIONS:
        raise LookupError(f"no confrontation is called {quoted(name)}; {nearest(name, CONFRONTATIONS)}")
    return CONFRONTATIONS[name]


def confront(of, csv=None, measured: str | None = None) -> Result:
    """Run a confrontation by its name on the package's measurements, or on another CSV file with the same columns; or
    hold measurements of one's own against a sheet, a formula or training_step.

    Of one's own, `csv` is the path of a file or the open file, whose columns are letters and words (tp, recompute),
    stems of rows (`model`, `device`, `link`), a `precision`, and `measured`, a letter that is answered, step_time where
    nothing is said.  Its result is an Own: it says what the worst rows' predictions are made of, and why a row has no
    price.

    Raises LookupError for an unknown name, TypeError for what cannot be called,
    ValueError for a file that does not fit.

    >>> confront("batch1_floor").summary["rows"]
    120
    >>> from io import StringIO
    >>> from scalebook import decoding
    >>> heads = "model,device,batch,context,weight_bits,kv_bits,token_time"
    >>> mine = StringIO(f"{heads}\\nllama3_8b,h100,1,8192,16,16,6 ms\\n")
    >>> round(confront(decoding, mine, "token_time").summary["bias"], 2)
    -0.2
    """
    if not isinstance(of, str) and callable(of):
        return confront_own(of, csv, "step_time" if measured is None else measured)
    if measured is not None:
        raise TypeError(f"measured goes with a sheet or a formula; what {quoted(of)} measures, it says itself")
    return find(of)(csv)
