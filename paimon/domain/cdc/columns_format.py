"""Rows with the columns of a table and a column for the operation, as a change log in a file has them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.cdc.binlog_formats import find_plain_operations
from paimon.domain.cdc.changes import IGNORED, Operation, Rejections
from paimon.domain.cdc.event_formats import TargetTable
from paimon.domain.cdc.rows_columnar import KIND_COLUMN, conform_isolating
from paimon.domain.errors import InvalidRequest, did_you_mean

_KINDS = ("+I", "+U", "-D")


def convert_columns(
    events: pa.Table, operation_column: str, target: TargetTable
) -> tuple[pa.Table, dict[int, str], int]:
    """Convert rows; return them with their row kinds, the reasons of rejected rows and the number of ignored rows.

    Raises `InvalidRequest` if the rows have no operation column.
    """
    if operation_column not in events.schema.names:
        raise InvalidRequest(
            f"The events have no operation column {operation_column!r}.",
            subject=operation_column,
            hint=did_you_mean(operation_column, events.schema.names) or "pass operation_column='…'",
        )
    names = events[operation_column].combine_chunks().cast(pa.string())
    operations = find_plain_operations(names)
    rejected, numbers = Rejections(), np.arange(events.num_rows)
    rejected.add(numbers[operations < 0], f"Column {operation_column!r} is not a known operation.")
    is_change = (operations >= 0) & (operations < IGNORED)
    if target.is_insert_only:
        rejected.add(numbers[is_change & (operations != Operation.INSERT)], target.refusal)
        is_change &= operations == Operation.INSERT
    rows = events.drop_columns([operation_column]).filter(pa.array(is_change))
    made = conform_isolating(rows, numbers[is_change], target, rejected)
    kept = is_change & ~rejected.contains(numbers)
    kinds = pa.array(_KINDS).take(pa.array(operations[kept].astype(np.int64)))
    ignored = int((operations == IGNORED).sum())
    return made.append_column(KIND_COLUMN, pc.cast(kinds, pa.string())), rejected.reasons, ignored
