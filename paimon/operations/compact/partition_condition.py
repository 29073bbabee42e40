"""Select partitions by a condition on partition columns, which may be any scalar SQL expression.

Invariant: a partition is selected if and only if the condition is true for its values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.bind import bind
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import columns_of
from paimon.domain.row import binary_row
from paimon.domain.row.values import to_array
from paimon.operations.read.evaluate import check_condition, evaluate_condition
from paimon.operations.table_context import TableContext


def bind_partition_condition(context: TableContext, where: Predicate) -> Predicate:
    """Bind a condition that selects partitions; other columns raise `InvalidRequest`."""
    schema = context.schema
    predicate = bind(where, schema.fields)
    others = sorted(columns_of(predicate) - set(schema.partition_keys))
    if others:
        known = ", ".join(schema.partition_keys) or "none"
        raise InvalidRequest(
            f"Condition of a maintenance call names {others[0]!r}, which is not a partition column.",
            subject=others[0],
            hint=f"partition columns of {context.table.table_name!r}: {known}",
        )
    check_condition(context.engine, predicate, schema.partition_fields)
    return predicate


def match_partitions(context: TableContext, partitions: Sequence[bytes], predicate: Predicate) -> npt.NDArray[np.bool_]:
    """Return for each partition, given as a binary row, whether a condition is true."""
    fields = context.schema.partition_fields
    rows = [binary_row.deserialize(partition, [f.type for f in fields]) for partition in partitions] if fields else []
    columns = {f.name: to_array([row[i] for row in rows], f.type) for i, f in enumerate(fields)}
    batch = pa.record_batch(columns or {"": pa.nulls(len(partitions))})
    found: npt.NDArray[np.bool_] = evaluate_condition(context.engine, predicate, batch).to_numpy(zero_copy_only=False)
    return found
