"""The formats of weights that runs of serving name: their bits, and the precision in which a device multiplies them."""

__all__ = ["BITS", "is_unpacked", "precision_for"]

BITS = {"fp8": 8, "fp8_block": 8, "nvfp4": 4.5, "fp4": 4.5, "bf16": 16, "": 16, "int4_wo": 4.25, "w4a16_mxfp4": 4.25}


def precision_for(device, bits) -> str:
    """The narrowest of the device's precisions in which weights of these bits are multiplied.

    >>> from scalebook.tables import accelerators
    >>> precision_for(accelerators.h100, 4.5), precision_for(accelerators.b200, 4.5)
    ('fp8', 'fp4')
    """
    names = {16: ("bf16",), 8: ("fp8", "bf16"), 4: ("fp4", "fp8", "bf16")}[16 if bits > 8 else 8 if bits > 5 else 4]
    return next(x for x in names if f"peak_{x}" in device)


def is_unpacked(device, bits) -> bool:
    """Whether experts of these bits are multiplied in 16, for want of a narrower format with their scales.

    >>> from scalebook.tables import accelerators
    >>> is_unpacked(accelerators.h100, 4.25), is_unpacked(accelerators.b200, 4.25)
    (True, False)
    """
    return bits == 4.25 and "peak_fp4" not in device
