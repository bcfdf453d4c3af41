"""Published measurements, and the errors of the formulas' predictions for them.

>>> from scalebook.measurements import confront
>>> list(confront("batch1_decode").groups)[:3]
['calibrated on', 'Apple', 'RTX workstation']
"""

from scalebook.language.arguments import checked
from scalebook.language.notation import nearest, quoted, word

from . import calculon
from .confrontation import Confrontation, Result
from .own import Own, confront_own
from .sets import confrontations

__all__ = ["CONFRONTATIONS", "Confrontation", "Own", "Result", "confront", "find"]

# In the order of the list and the trust page: sets that are data first, then sets that are code.
CONFRONTATIONS: dict[str, Confrontation] = confrontations() | calculon.CONFRONTATIONS


def find(name: str) -> Confrontation:
    """Return the confrontation with this name. Raises LookupError, naming the nearest, if there is none.

    >>> find("batch1_dcode")
    Traceback (most recent call last):
        ...
    LookupError: no confrontation is called 'batch1_dcode'; did you mean 'batch1_decode' or ...?
    """
    if word(name, "a confrontation") not in CONFRONTATIONS:
        raise LookupError(f"no confrontation is called {quoted(name)}; {nearest(name, CONFRONTATIONS)}")
    return CONFRONTATIONS[name]


@checked
def confront(of, csv=None, measured: str | None = None) -> Result:
    """Compare predictions with measurements: a confrontation by name, or a reader's own file against a callable.

    A name runs that confrontation on the package's measurements, or on another CSV file with the same columns. A sheet,
    a formula or training_step is compared with a reader's own file, as `confront_own` says; `measured` is the letter
    that was measured (by default step_time), and the result is an `Own`.

    Raises LookupError for an unknown name, TypeError for something that cannot be called, and ValueError for a file
    that does not fit.

    >>> confront("batch1_floor").summary["rows"]
    120
    """
    if not isinstance(of, str) and callable(of):
        return confront_own(of, csv, "step_time" if measured is None else measured)
    if measured is not None:
        raise TypeError(f"measured goes with a sheet or a formula; what {quoted(of)} measures, it says itself")
    return find(of)(csv)
