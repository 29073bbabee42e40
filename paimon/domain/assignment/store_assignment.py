"""Rows of a query as the columns of a table: cast as INSERT casts them, and completed by a static partition.

Invariant: a column that cannot be cast stays as it is, and is refused where the rows are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from paimon.domain.assignment.store_casts import can_store, store_array
from paimon.domain.columns.accept import can_accept
from paimon.domain.columns.convert import convert_array
from paimon.domain.errors import InvalidRequest
from paimon.domain.row.values import to_array
from paimon.domain.types.arrow_arrays import make_array
from paimon.domain.types.data_types import DataField


def _by_name(fields: Sequence[DataField]) -> dict[str, DataField]:
    return {f.name: f for f in fields}


@frozen(eq=False)
class StoreAssignment:
    """Converts batches of a query to rows that a table can store; a picklable value that tasks call."""

    fields: dict[str, DataField] = field(converter=_by_name)
    # the time zone of dates and times of day
    zone: str
    # internal values of a static partition by column; rows may lack these columns
    partition: Mapping[str, Any] = field(factory=dict)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield the rows to write of each batch, as `assign_rows` returns them."""
        for batch in batches:
            yield self.assign_rows(pa.Table.from_batches([batch]))

    def assign_rows(self, rows: pa.Table) -> pa.Table:
        """Return rows in the table's types, with the static partition; InvalidRequest for misfits."""
        for position, name in enumerate(rows.schema.names):
            column = self.fields.get(name)
            if column is not None and can_store(column.type, rows.schema.field(position).type):
                rows = self._store_column(rows, position, column)
        return self._complete_rows(rows)

    def _store_column(self, rows: pa.Table, position: int, column: DataField) -> pa.Table:
        given = rows.column(position).chunks or [make_array([], rows.schema.field(position).type)]
        made = [store_array(chunk, column, self.zone) for chunk in given]
        if all(stored is chunk for stored, chunk in zip(made, given, strict=True)):
            return rows
        return rows.set_column(position, column.name, pa.chunked_array(made))

    def _complete_rows(self, rows: pa.Table) -> pa.Table:
        for name, value in self.partition.items():
            column = self.fields[name]
            constant = to_array([value], column.type)
            if name not in rows.schema.names:
                count = rows.num_rows
                filled = pa.nulls(count, constant.type) if value is None else pa.repeat(constant[0], count)
                rows = rows.append_column(name, filled)
            elif can_accept(column.type, rows.schema.field(name).type):
                _check_partition(rows[name], column, constant)
        return rows


def _check_partition(values: pa.ChunkedArray, column: DataField, constant: pa.Array) -> None:
    """Refuse values that differ from the value of a static partition."""
    for chunk in values.chunks:
        given = convert_array(chunk, column.type.with_nullable(True), column.name)
        same = given.is_null() if constant.null_count else pc.fill_null(pc.equal(given, constant[0]), False)
        if same.false_count:
            found, wanted = (str(value.as_py()) for value in (given.filter(pc.invert(same))[0], constant[0]))
            raise InvalidRequest(
                f"Column {column.name!r} contains {found!r}, but the rows belong to the partition with {wanted!r}.",
                subject=column.name,
                hint="drop the column from the data, or leave it out of 'partition'",
            )
