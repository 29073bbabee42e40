"""Which leaves of a Parquet file get a dictionary.

Law: only size and speed depend on it. A column gets one where the first rows say that a dictionary and the codes take
fewer bytes than the values: building one of values that never repeat is the dearest part of writing a file. Nested
columns always get one. Source: `DictionaryValuesWriter.isCompressionSatisfying`, which asks at the first page.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_MOST_ROWS = 20_000
_SHARE = 8
"""The eighth part of the rows is looked at, as far as that is no more than a page of Java's."""
_LEAST_ROWS = 1_000
_GLANCE_ROWS = 2_000
_PLAIN, _SAVING = 0.99, 0.1
"""The share of distinct values in a glance at a column above, or below, which no longer look is needed."""


def dictionary_leaves(table: pa.Table) -> list[str]:
    """The paths of the leaves that get one, given the first rows of a file as they are stored."""
    rows = min(_MOST_ROWS, max(_LEAST_ROWS, table.num_rows // _SHARE))
    leaves: list[str] = []
    for field in table.schema:
        if pa.types.is_nested(field.type):
            leaves += _leaf_paths(field.name, field.type)
        elif _saves(table.column(field.name).slice(0, rows)):
            leaves.append(field.name)
    return leaves


def _saves(values: pa.ChunkedArray) -> bool:
    """Whether a dictionary and codes are smaller than the values."""
    rows = len(values) - values.null_count
    if rows == 0:
        return True
    if rows == len(values) > _GLANCE_ROWS:
        share = pc.count_distinct(values.slice(0, _GLANCE_ROWS)).as_py() / _GLANCE_ROWS
        if not _SAVING <= share <= _PLAIN:
            return bool(share < _SAVING)
    distinct = pc.count_distinct(values, mode="only_valid").as_py()
    plain_bits = 8 * values.nbytes
    return bool(plain_bits * distinct / rows + rows * max(1, (distinct - 1).bit_length()) < plain_bits)


def _leaf_paths(path: str, kind: pa.DataType) -> list[str]:
    if pa.types.is_struct(kind):
        return [leaf for part in kind for leaf in _leaf_paths(f"{path}.{part.name}", part.type)]
    if pa.types.is_map(kind):
        parts = (("key", kind.key_type), ("value", kind.item_type))
        return [leaf for name, part in parts for leaf in _leaf_paths(f"{path}.key_value.{name}", part)]
    return _leaf_paths(f"{path}.list.element", kind.value_type) if pa.types.is_nested(kind) else [path]
