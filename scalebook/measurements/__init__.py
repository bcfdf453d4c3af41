"""Published measurements, and the errors of the formulas' predictions for them.

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

# In the order of the list and the trust page: sets that are data first, then sets that are code.
CONFRONTATIONS: dict[str, Confrontation] = {
    **confrontations(), **training_seconds.CONFRONTATIONS, **calculon.CONFRONTATIONS,
}  # fmt: skip


def find(name: str) -> Confrontation:
    """Return the confrontation with this name. Raises LookupError, naming the nearest, if there is none."""
    if word(name, "a confrontation") not in CONFRONTATIONS:
        raise LookupError(f"no confrontation is called {quoted(name)}; {nearest(name, CONFRONTATIONS)}")
    return CONFRONTATIONS[name]


def confront(of, csv=None, measured: str | None = None) -> Result:
    """Compare predictions with measurements: a confrontation by name, or a reader's own file against a callable.

    Called with a name, it runs that confrontation on the package's measurements, or on another CSV file with the same
    columns.

    Called with a sheet, a formula or training_step, it compares the predictions with a reader's own measurements. `csv`
    is then the path of a file or the open file. Its columns are letters and words (tp, recompute), rows of tables by
    their stems (`model`, `device`, `link`), a `precision`, and `measured`, the letter that was measured (by default
    step_time). The result is an Own: it shows what the worst rows' predictions consist of, and why a row has no price.

    Raises LookupError for an unknown name, TypeError for something that cannot be called, and ValueError for a file
    that does not fit.

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
