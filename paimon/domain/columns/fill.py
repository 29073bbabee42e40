"""Nulls replaced by a default: the default of a column when it is written, that of an option when it is read.

Invariant: values that are not null do not change.
Source: `DefaultValueRow`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.row.values import to_array
from paimon.domain.types.data_types import DataType


def fill_nulls(array: pa.Array, default: Any, data_type: DataType) -> pa.Array:
    """Replace the nulls of a canonical array by a default; an array without nulls is returned itself."""
    if array.null_count == 0:
        return array
    return pc.if_else(array.is_null(), to_array([default], data_type)[0], array)
