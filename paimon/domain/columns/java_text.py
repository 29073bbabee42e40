"""Floating-point numbers as Java prints them.

Invariant: numbers from 0.001 to 10 million are plain, others have an exponent. The text has as few digits as identify
the number, but at least two.
Source: `Double.toString`, `Float.toString`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def format_java_float(value: np.floating[Any]) -> str:
    """Format one number; a numpy float32 has the digits of Java's FLOAT, a float64 those of DOUBLE.

    >>> format_java_float(np.float64(1e10)), format_java_float(np.float32(0.1))
    ('1.0E10', '0.1')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return np.format_float_positional(value, unique=True, trim="0")
    mantissa, _, exponent = _scientific(value).partition("e")
    return f"{mantissa}E{int(exponent)}"


def _scientific(value: np.floating[Any]) -> str:
    text = np.format_float_scientific(value, unique=True, trim="0")
    two_digits = f"{float(value):.1e}"
    # Where one digit would do, Java takes the nearest number of two digits: 4.9E-324, not 5.0E-324.
    return two_digits if ".0e" in text and type(value)(two_digits) == value else text
