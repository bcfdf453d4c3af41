"""Number formats: bits per value with its scales, range, and rounding errors. The loss of accuracy is not modelled."""

from sympy import Integer, Rational

from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations

_OWN = equations(__name__)  # those of formats.toml


# Floating point: range, precision, and how loss scaling extends the range


@formula("exponent_bias", "ieee754 §3.3")
def exponent_bias_ieee(exponent_bits):
    """Exponent bias of an IEEE format. It centres the exponents on 1; the largest exponent is reserved for infinities.

    >>> exponent_bias_ieee(exponent_bits=5), exponent_bias_ieee(exponent_bits=8)
    (15.0, 127.0)
    """
    return Integer(2) ** (exponent_bits - 1) - 1


@formula("largest_number", "ieee754 §3.4", given=[exponent_bias_ieee])
def largest_number_ieee(exponent_bias, mantissa_bits):
    """Largest finite number: all fraction bits are one, at the largest exponent that is not reserved for infinities.

    Formats that reserve a single code or none reach further: 448 for E4M3 and 6 for E2M1 (see `tables.precisions`).

    >>> largest_number_ieee(exponent_bits=5, mantissa_bits=10)
    65504.0
    """
    return (2 - Integer(2) ** -mantissa_bits) * Integer(2) ** exponent_bias


@formula("least_number", "ieee754 §3.4", given=[exponent_bias_ieee])
def least_number_subnormal(exponent_bias, mantissa_bits):
    """Smallest subnormal number, with the last fraction bit. Numbers up to half of it round to zero.

    >>> least_number_subnormal(exponent_bits=5, mantissa_bits=10) == 2**-24
    True
    """
    return Integer(2) ** (1 - exponent_bias - mantissa_bits)


@formula("unit_roundoff", "ieee754 §4.3")
def unit_roundoff_nearest(mantissa_bits):
    """Half a step of the format, relative to a power of two. Rounding to nearest discards any smaller relative change.

    >>> unit_roundoff_nearest(mantissa_bits=7)
    0.00390625
    """
    return Rational(1, 2) * Integer(2) ** -mantissa_bits


@formula("loss_scale", "micikevicius2018 §3.2", given=[least_number_subnormal, exponent_bias_ieee])
def loss_scale_least(least_number, least_gradient):
    """Smallest loss scale that lifts the least gradient that matters into the format's range. Below 1 none is needed.

    >>> loss_scale_least(exponent_bits=5, mantissa_bits=10, least_gradient=2**-27)
    8.0
    """
    return least_number / least_gradient


number_range = Sheet(
    "number range", exponent_bias_ieee, largest_number_ieee, least_number_subnormal, unit_roundoff_nearest,
    doc="Range and precision of a format with given exponent and fraction bits.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "number_range"]
