"""Pack changes as the binlog table returns them: each column is a list of one value, or of both values of an update.

The sequence number of a packed change is that of its first row, as in Java.

Invariant: equals `paimon.domain.changelog.binlog_reference`, wherever the stream is cut into batches.

Source: `BinlogTable`, `PackChangelogReader`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.row.kinds import RowKind
from paimon.domain.types.arrow_arrays import from_numpy, to_numpy
from paimon.domain.types.system_columns import SEQUENCE_NUMBER, VALUE_KIND

Rows = npt.NDArray[np.int64]


def pack_changes(batches: Iterable[pa.RecordBatch], keys: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    """Pack a stream of rows with `_VALUE_KIND` into one row for each change, in the order of the stream.

    `keys` pair the two rows of an update; None makes every row a change. A -U at the end of a batch waits for the next.
    """
    held: pa.RecordBatch | None = None
    for batch in batches:
        if held is not None:
            batch, held = pa.concat_batches([held, batch]), None
        if keys is not None and batch.num_rows and _kinds(batch)[-1] == RowKind.UPDATE_BEFORE:
            held, batch = batch.slice(batch.num_rows - 1), batch.slice(0, batch.num_rows - 1)
        if batch.num_rows:
            yield _pack_batch(batch, _starts(batch, keys))
    if held is not None:
        yield _pack_batch(held, _starts(held, keys))


def _kinds(batch: pa.RecordBatch) -> npt.NDArray[np.int8]:
    return to_numpy(pc.fill_null(batch[VALUE_KIND.name], 0))


def _starts(batch: pa.RecordBatch, keys: Sequence[str] | None) -> Rows:
    """Return the row number at which each change begins."""
    if keys is None or batch.num_rows < 2:
        return np.arange(batch.num_rows, dtype=np.int64)
    kinds = _kinds(batch)
    follows = (kinds[:-1] == RowKind.UPDATE_BEFORE) & (kinds[1:] == RowKind.UPDATE_AFTER)
    for name in keys:
        same = pc.equal(batch[name].slice(1), batch[name].slice(0, batch.num_rows - 1))
        follows &= np.asarray(pc.fill_null(same, False))
    return np.flatnonzero(np.append(True, ~follows))


def _pack_batch(batch: pa.RecordBatch, starts: Rows) -> pa.RecordBatch:
    ends = np.append(starts[1:], batch.num_rows)
    offsets = from_numpy(np.append(starts, batch.num_rows).astype(np.int32))
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name == VALUE_KIND.name:
            columns.append(column.take(from_numpy(ends - 1)))
        elif name == SEQUENCE_NUMBER.name:
            columns.append(column.take(from_numpy(starts)))
        else:
            columns.append(pa.ListArray.from_arrays(offsets, column, type=pa.list_(pa.field("element", column.type))))
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
