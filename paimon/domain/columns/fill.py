"""Nulls replaced by a default: that of a column when it is written, that of an option when it is read.

Law: values that are there stay. Source: `DefaultValueRow`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.row.values import to_array
from paimon.domain.types.data_types import DataType


def filled(array: pa.Array, default: Any, data_type: DataType) -> pa.Array:
    """The column of this type with `default`, an internal value, in place of nulls."""
    if array.null_count == 0:
        return array
    return pc.if_else(array.is_null(), to_array([default], data_type)[0], array)
