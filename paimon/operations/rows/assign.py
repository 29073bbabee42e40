"""Rows with new values in some columns.

Law: every expression sees the row as it was; the columns keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from paimon.domain.assignment.columnar import assigned_column
from paimon.domain.assignment.expression import Assignment
from paimon.domain.columns.convert import converted


def assigned_rows(batch: pa.RecordBatch, assignments: Sequence[Assignment]) -> pa.Table:
    """The rows of a batch of the table's columns after the assignments."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for assignment in assignments:
        column = assignment.column
        values = assigned_column(assignment.expression, batch, column)
        columns[column.name] = converted(values, column.type, column.name)
    return pa.Table.from_arrays(list(columns.values()), schema=batch.schema)
