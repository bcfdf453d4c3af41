"""Published measurements, what the formulas predict for them, and the errors of the predictions.

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
    """Return the confrontation (measured set) of a name such as "batch1_decode".  Raises LookupError for another."""
    if word(name, "a confrontation") not in CONFRONTATIONS:
        raise LookupError(f"no confrontation is called {quoted(name)}; {nearest(name, CONFRONTATIONS)}")
    return CONFRONTATIONS[name]


@checked
def confront(of, csv=None, measured: str | None = None) -> Result:
    """Compare predictions with measurements, either of the package or of your own, and return the errors.

    With a name, such as "batch1_decode", this runs that measured set, on the package's own file or on another CSV file
    with the same columns. With a sheet, a formula or training_step, it compares your own CSV file with its predictions;
    `confront_own` describes the file. `measured` then names the quantity that you measured (by default step_time).
    Raises LookupError for an unknown name, TypeError for what cannot be called, and ValueError for an unusable file.

    >>> confront("batch1_floor").summary["rows"]
    120
    """
    if not isinstance(of, str) and callable(of):
        return confront_own(of, csv, "step_time" if measured is None else measured)
    if measured is not None:
        raise TypeError(f"measured goes with a sheet or a formula; what {quoted(of)} measures, it says itself")
    return find(of)(csv)
