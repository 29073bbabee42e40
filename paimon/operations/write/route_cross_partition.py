"""Route rows of cross-partition tables by a key index, which may also replace, drop and add rows.

Invariant: no key has live rows in two partitions. Source: `GlobalIndexAssigner`, `ExistingProcessor`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.buffers import combine_column
from paimon.domain.row.binary_row import deserialize
from paimon.domain.row.kinds import RowKind
from paimon.domain.row.values import to_array
from paimon.domain.types.arrow import arrow_field
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import VALUE_KIND
from paimon.operations.buckets.key_index import KeyIndex, RoutedRows
from paimon.operations.table_context import TableContext
from paimon.operations.write.route import Address, Codes, encode_partitions, to_dense_codes

_BUCKETS = 1 << 31
"""Bucket numbers are smaller."""


def find_addresses(table: pa.Table, fields: Sequence[DataField], buckets: Codes) -> tuple[list[Address], Codes]:
    """Return the distinct addresses of rows that another process routed, and for each row the position of its address.

    The rows have the values of the partition in which they are written.
    """
    return _to_addresses(*encode_partitions(table, fields), buckets)


def _to_addresses(partitions: Sequence[bytes], codes: Codes, buckets: Codes) -> tuple[list[Address], Codes]:
    values, address_codes = to_dense_codes(codes * _BUCKETS + buckets)
    pairs = (divmod(value, _BUCKETS) for value in values.tolist())
    return [Address(partitions[partition], bucket) for partition, bucket in pairs], address_codes


class CrossPartitionRouting:
    """Route rows to the places of their keys."""

    def __init__(self, context: TableContext, index: KeyIndex) -> None:
        self._partition_fields = context.schema.partition_fields
        self._key_fields = [context.schema.field_of(name) for name in context.schema.primary_keys]
        self._index = index

    def route(self, table: pa.Table) -> tuple[pa.Table, list[Address], Codes]:
        """Compute the rows to write, their distinct addresses, and for each row the position of its address.

        The returned rows have the values of the partition in which they are written. Their number can differ from that
        of the input, which has row kinds.
        """
        partitions, codes = encode_partitions(table, self._partition_fields)
        columns = [combine_column(table[f.name]) for f in self._key_fields]
        keys = pa.RecordBatch.from_arrays(columns, [f.name for f in self._key_fields])
        routed = self._index.route(keys, partitions, codes)
        return self._select_rows(table, routed), *_to_addresses(routed.partitions, routed.codes, routed.buckets)

    def _select_rows(self, table: pa.Table, routed: RoutedRows) -> pa.Table:
        is_whole = len(routed.rows) == table.num_rows and not routed.is_retract.any()
        rows = table if is_whole else table.take(pa.array(routed.rows))
        if routed.is_retract.any():
            kinds = pc.if_else(pa.array(routed.is_retract), pa.scalar(RowKind.DELETE, pa.int8()), rows[VALUE_KIND.name])
            rows = rows.set_column(rows.column_names.index(VALUE_KIND.name), VALUE_KIND.name, kinds)
        types = [f.type for f in self._partition_fields]
        partitions = list(zip(*(deserialize(p, types) for p in routed.partitions), strict=True))
        for field, values in zip(self._partition_fields, partitions, strict=False):
            column = to_array(values, field.type).take(pa.array(routed.codes.astype(np.int64)))
            rows = rows.set_column(rows.column_names.index(field.name), arrow_field(field), column)
        return rows
