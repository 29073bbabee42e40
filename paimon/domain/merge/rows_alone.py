"""Refuse rows that a merge with other rows of their key would refuse, whatever the others are.

A single row of a key is stored as it is, so a flush alone does not find them; they would block reads and compactions of
their bucket. Each row is merged with an insert of the same row.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from paimon.domain.columns.buffers import Mask
from paimon.domain.merge.aggregate.aggregate_functions import can_refuse_values
from paimon.domain.merge.merge_columnar import merge
from paimon.domain.merge.merge_engines import MERGE_ENGINES
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.row.kinds import RETRACTS
from paimon.domain.types.arrow_arrays import from_numpy, to_numpy
from paimon.domain.types.data_types import BigIntType, DataField
from paimon.domain.types.system_columns import KEY_PREFIX, VALUE_KIND

_PAIR = DataField(0, KEY_PREFIX, BigIntType(nullable=False))
"""The number of a row and its insert, as a key column: no column of a table has such a name."""


def check_rows_alone(rows: pa.Table, spec: MergeSpec) -> None:
    """Refuse rows with a `_VALUE_KIND` column that no merge can take: a retract, damaged bytes, a missing value."""
    engine = MERGE_ENGINES.get(spec.engine)
    if engine is None or engine.newest_wins:
        return
    doubtful = rows.filter(pa.array(_mask_refusable(rows, spec)))
    if doubtful.num_rows:
        kinds = from_numpy(np.zeros(doubtful.num_rows, np.int8))
        inserts = doubtful.set_column(doubtful.column_names.index(VALUE_KIND.name), VALUE_KIND.name, kinds)
        pairs = from_numpy(np.tile(np.arange(doubtful.num_rows), 2))
        both = pa.concat_tables([inserts, doubtful]).append_column(_PAIR.name, pairs)
        merge(both, evolve(spec.for_write_buffer(_PAIR), retracts_first=False))


def _mask_refusable(rows: pa.Table, spec: MergeSpec) -> Mask:
    """Mark retracts, and rows with values of a kind that can be refused."""
    mask = to_numpy(pc.is_in(rows[VALUE_KIND.name].combine_chunks(), RETRACTS))
    if MERGE_ENGINES[spec.engine].aggregates:
        for aggregate in spec.aggregates:
            column = rows[aggregate.column.name]
            if can_refuse_values(aggregate):
                mask = mask | to_numpy(column.is_valid().combine_chunks())
            elif not aggregate.column.type.nullable and column.null_count:
                mask = mask | to_numpy(column.is_null().combine_chunks())
    return mask
