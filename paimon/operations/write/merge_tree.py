"""Writing primary-key tables: a full buffer is merged per key and becomes level-0 files.

Law: one flush orders and merges the rows of all its buckets at once, the bucket being the first column of the key;
each record keeps the sequence number that it got on arrival, so gaps are normal.
Source: `MergeTreeWriter`, `SortBufferWriteBuffer`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from attrs import evolve

from paimon.domain.merge.columnar.merge import merge
from paimon.domain.merge.columnar.order import groups_of
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.types.data_types import BigIntType, DataField
from paimon.domain.types.system import KEY_PREFIX, SEQUENCE_NUMBER
from paimon.operations.write.buckets import Buckets, BucketState
from paimon.operations.write.buffer import WriteBuffer
from paimon.operations.write.route import Codes

_BUCKET = DataField(0, KEY_PREFIX, BigIntType(nullable=False))
"""The number of a row's bucket among the writer's, as a key column: no column of a table has such a name."""


def flush_spec(spec: MergeSpec) -> MergeSpec:
    """The table's merge, for a buffer with rows of several buckets: no level is known, deletes are filtered before."""
    return evolve(spec, key_fields=(_BUCKET, *spec.key_fields), lookup=False, ignore_delete=False)


def write_merged(buffer: WriteBuffer, buckets: Buckets, spec: MergeSpec, input_changelog: bool = False) -> None:
    """Merges all buffered rows (which have a `_VALUE_KIND` column) and writes them as level-0 files.

    With `input_changelog` the rows as they came, ordered but not merged, become changelog files too.
    """
    drained = buffer.drain()
    if drained is None:
        return
    table, codes = drained
    numbers = _sequence_numbers(codes, buckets)
    # Arrival stands for the sequence number: it ascends over all buckets, so that the merge need not sort by it.
    arrival = pa.array(np.arange(table.num_rows, dtype=np.int64))
    table = table.append_column(SEQUENCE_NUMBER.name, arrival).append_column(_BUCKET.name, pa.array(codes))
    if input_changelog:
        raw = table.take(pa.array(groups_of(table, spec).order))
        for state, rows in _by_bucket(raw, numbers, buckets):
            buckets.write_changelog(state, rows)
    for state, rows in _by_bucket(merge(table, spec), numbers, buckets):
        buckets.files_of(state).write(rows)
        buckets.finish(state)


def _by_bucket(ordered: pa.Table, numbers: Codes, buckets: Buckets) -> Iterator[tuple[BucketState, pa.Table]]:
    """Ordered rows cut into buckets, with their own sequence numbers in place of their arrival."""
    codes = np.asarray(ordered[_BUCKET.name])
    place = ordered.column_names.index(SEQUENCE_NUMBER.name)
    given = pa.array(numbers[np.asarray(ordered[SEQUENCE_NUMBER.name])])
    ordered = ordered.set_column(place, SEQUENCE_NUMBER.name, given)
    for code in np.unique(codes).tolist():
        start, end = np.searchsorted(codes, [code, code + 1]).tolist()
        yield buckets.states[code], ordered.slice(start, end - start)


def _sequence_numbers(codes: Codes, buckets: Buckets) -> Codes:
    """The number of each row: ascending within its bucket, from the bucket's next one on."""
    order = buckets.order_of(codes)
    counts = np.bincount(codes, minlength=len(buckets.states))
    starts = np.cumsum(counts) - counts
    following = np.array([state.next_sequence for state in buckets.states], np.int64)
    numbers = np.empty(len(codes), np.int64)
    numbers[order] = np.arange(len(codes)) + np.repeat(following - starts, counts)
    for state, count in zip(buckets.states, counts.tolist(), strict=True):
        state.next_sequence += count
    return numbers
