"""Whether Arrow's ORC writer keeps nested rows.

Law: a trap of Arrow's writer: where a struct without nulls holds a struct with nulls, it loses values after the first
null. Such rows are written another way.
"""

from __future__ import annotations

import pyarrow as pa


def loses_nested_rows(array: pa.Array) -> bool:
    """Whether Arrow would lose values of this column."""
    kind = array.type
    if pa.types.is_struct(kind):
        children = [array.field(i) for i in range(kind.num_fields)]
        if not array.null_count and any(pa.types.is_struct(c.type) and c.null_count for c in children):
            return True
        return any(loses_nested_rows(child) for child in children)
    return pa.types.is_nested(kind) and loses_nested_rows(array.values)
