"""Choose the leaf columns of a Parquet file that get a dictionary.

A column gets one if the first rows show that a dictionary and its codes take fewer bytes than the values. To build a
dictionary of values that never repeat is the most expensive part of writing a file. Nested columns always get one.

Invariant: only size and speed depend on the choice. Source: `DictionaryValuesWriter.isCompressionSatisfying`, which
decides after the first page.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_MOST_ROWS = 20_000
_SHARE = 8
"""One row in eight is looked at, but no more rows than a page of Java has."""
_LEAST_ROWS = 1_000
_SAMPLE_ROWS = 2_000
_PLAIN, _SAVING = 0.99, 0.1
"""If the share of distinct values in the sample is above the first or below the second, the sample decides."""


def choose_dictionary_leaves(table: pa.Table) -> list[str]:
    """Return the paths of the leaf columns that get a dictionary, from the first stored rows of a file."""
    rows = min(_MOST_ROWS, max(_LEAST_ROWS, table.num_rows // _SHARE))
    leaves: list[str] = []
    for field in table.schema:
        if pa.types.is_nested(field.type):
            leaves += _leaf_paths(field.name, field.type)
        elif _is_smaller_with_dictionary(table.column(field.name).slice(0, rows)):
            leaves.append(field.name)
    return leaves


def _is_smaller_with_dictionary(values: pa.ChunkedArray) -> bool:
    """Return whether a dictionary and its codes are smaller than the values."""
    rows = len(values) - values.null_count
    if rows == 0:
        return True
    if rows == len(values) > _SAMPLE_ROWS:
        share = pc.count_distinct(values.slice(0, _SAMPLE_ROWS)).as_py() / _SAMPLE_ROWS
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
