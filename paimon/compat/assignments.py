"""New values of columns by the names of pypaimon: values, Arrow arrays, and functions of the matched rows.

Source: `pypaimon.write.table_update`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from paimon.compat.arrow_types import arrow_schema_of
from paimon.domain.types.data_types import DataField


def check_assignments(
    assignments: Mapping[str, Any], read_columns: Sequence[str], names: Sequence[str], partition_keys: Sequence[str]
) -> None:
    """Check the assignments of `update_by_predicate` as pypaimon does."""
    if not assignments:
        raise ValueError("assignments must not be empty.")
    calls = any(callable(value) for value in assignments.values())
    if read_columns and not calls:
        raise ValueError("read_columns requires a callable assignment.")
    if calls and any(_is_array(value) for value in assignments.values()):
        raise ValueError("Callable assignments cannot be combined with Arrow array assignments.")
    if calls and not read_columns:
        raise ValueError("Callable assignments require read_columns.")
    for name in read_columns:
        if name not in names:
            raise ValueError(f"Read column {name} is not in table schema.")
    for name in assignments:
        if name not in names:
            raise ValueError(f"Column {name} is not in table schema.")
        if name in partition_keys:
            raise ValueError(f"update_by_predicate does not support updating partition column '{name}'.")


class AssignedColumns:
    """The new columns of rows, computed for one group of rows after the other."""

    def __init__(self, assignments: Mapping[str, Any], fields: Sequence[DataField]) -> None:
        kinds = arrow_schema_of([field for field in fields if field.name in assignments])
        self._kinds = {name: kinds.field(name).type for name in assignments}
        self._assignments = assignments
        self._rows = 0

    def compute(self, rows: pa.Table) -> pa.Table:
        """Return the new columns of the next rows."""
        first, self._rows = self._rows, self._rows + rows.num_rows
        columns = {name: self._fill(name, value, first, rows) for name, value in self._assignments.items()}
        return pa.table(columns)

    def check_all_used(self) -> None:
        """Check that no array has more values than there were rows."""
        for value in self._assignments.values():
            if _is_array(value) and len(value) != self._rows:
                raise _length_error(len(value), f"{self._rows}")

    def _fill(self, name: str, value: Any, first: int, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
        kind = self._kinds[name]
        if callable(value):
            value = value(rows)
            if not _is_array(value):
                raise ValueError(f"Callable assignment for {name} must return a pyarrow.Array or pyarrow.ChunkedArray.")
            if len(value) != rows.num_rows:
                raise _length_error(len(value), f"{rows.num_rows}")
            return value.cast(kind)
        if _is_array(value):
            part = value.slice(first, rows.num_rows)
            if len(part) != rows.num_rows:
                raise _length_error(len(value), f"at least {first + rows.num_rows}")
            return part.cast(kind)
        return pa.repeat(pa.scalar(value.as_py() if isinstance(value, pa.Scalar) else value, kind), rows.num_rows)


def _is_array(value: object) -> bool:
    return isinstance(value, pa.Array | pa.ChunkedArray)


def _length_error(given: int, rows: str) -> ValueError:
    return ValueError(f"Assignment array length must match matched row count: {given} != {rows}.")
