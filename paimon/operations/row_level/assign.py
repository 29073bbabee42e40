"""Compute rows with new values in some columns.

Invariant: each expression sees the row before the change, and the columns keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from paimon.domain.assignment.expression import Assignment
from paimon.domain.columns.convert import convert_array
from paimon.operations.read.evaluate import evaluate_expression
from paimon.ports.engine import Engine


def apply_assignments(engine: Engine, batch: pa.RecordBatch, assignments: Sequence[Assignment]) -> pa.Table:
    """Return the rows of a batch, which has all columns of the table, after the assignments."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for assignment in assignments:
        column = assignment.column
        values = evaluate_expression(engine, assignment.expression, batch, column)
        columns[column.name] = convert_array(values, column.type, column.name)
    return pa.Table.from_arrays(list(columns.values()), schema=batch.schema)
