"""Order of single values, row-wise.

Law: the order is total: null comes first, NaN last, -0.0 before 0.0. Source: `InternalRowUtils.compare`.
"""

from __future__ import annotations

import math
from typing import Any


def compare_values(a: Any, b: Any) -> int:
    """-1, 0 or 1: null first, floats as Java's `Double.compare`, else natural order."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    if isinstance(a, float):
        return _compare_floats(a, b)
    return int(a > b) - int(a < b)


def compare_by_operators(a: Any, b: Any) -> int:
    """As Java's operators compare user sequences: null first, the zeros are equal, and NaN equals everything."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    return int(a > b) - int(a < b)


def _compare_floats(a: float, b: float) -> int:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) - math.isnan(b)
    if a == b == 0.0:
        return int(math.copysign(1, a) - math.copysign(1, b)) // 2
    return (a > b) - (a < b)
