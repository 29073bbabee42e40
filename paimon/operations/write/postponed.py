"""Write the rows of tables with postponed buckets (`bucket` = -2): append them to files that no read merges.

Invariant: the rows of a partition keep the order in which they were written, retracts included. Rows of a kind that the
merge engine refuses are refused here, because the compaction could not move them. Source: `PostponeBucketWriter`,
`PostponeUtils.getKnownNumBuckets`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.bucket.postponed import (
    POSTPONED_SEQUENCE_NUMBER,
    compute_first_buckets,
    to_postponed_files_table,
)
from paimon.domain.merge.merge_columnar import merge
from paimon.domain.merge.merge_engines import get_merge_engine
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.row.kinds import RETRACTS, RowKind
from paimon.domain.types.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.data_files.file_layout import FileLayout
from paimon.operations.metadata.manifests import read_data_manifests, read_live_columns
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.table_context import TableContext
from paimon.operations.write.append import AppendWriter
from paimon.operations.write.buckets import Buckets
from paimon.operations.write.committed import CommittedFiles
from paimon.operations.write.restore import read_total_buckets
from paimon.operations.write.route import Address, Codes

_WRITER_ID_MASK = 2**31 - 1


class PostponedWriter:
    """Append rows with their kinds to the postponed files of their partitions: a state machine.

    Parameters
    ----------
    buckets : Buckets
        The postponed buckets of the writer.
    spec : MergeSpec
        The merge of the table, which the rows must fit.
    limit_bytes : int
        The memory for buffered rows.
    """

    def __init__(self, buckets: Buckets, spec: MergeSpec, limit_bytes: int) -> None:
        get_merge_engine(spec)  # refuses unknown merge engines before the first row
        self._rows = AppendWriter(buckets, limit_bytes)
        self._spec = spec
        self._unchecked_kinds = RETRACTS

    def add(self, rows: pa.Table, codes: Codes) -> None:
        """Buffer rows, which have a `_VALUE_KIND` column, with the bucket number of each row.

        Raises
        ------
        InvalidRequest
            The merge engine does not accept a row of this kind.
        """
        self._check_retracts(rows)
        numbers = pa.array(np.full(rows.num_rows, POSTPONED_SEQUENCE_NUMBER, np.int64))
        self._rows.add(rows.append_column(SEQUENCE_NUMBER.name, numbers), codes)

    def flush(self) -> None:
        """Write all buffered rows, and close the files."""
        self._rows.flush()

    def abort(self) -> None:
        """Drop all rows that are not in files yet."""
        self._rows.abort()

    def _check_retracts(self, rows: pa.Table) -> None:
        """Merge the first row of each kind of retract with an insert of the same row, as a compaction may do."""
        kinds = rows[VALUE_KIND.name]
        for kind in self._unchecked_kinds.to_pylist():
            found = pc.index(kinds, kind).as_py()
            if found >= 0:
                twice = rows.take(pa.array([found, found]))
                position = twice.column_names.index(VALUE_KIND.name)
                pair = pa.array([RowKind.INSERT.value, kind], pa.int8())
                merge(twice.set_column(position, VALUE_KIND.name, pair), self._spec)
                self._unchecked_kinds = self._unchecked_kinds.filter(pc.not_equal(self._unchecked_kinds, kind))


class PartitionBucketCounts:
    """The number of buckets of partitions: that of their files, or the first one by the options; only caches.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    committed : CommittedFiles
        Reads the files in the table.
    """

    def __init__(self, context: TableContext, committed: CommittedFiles) -> None:
        self._first = compute_first_buckets(context.options, 0, 0)
        self._committed = committed
        self._known: dict[bytes, int] = {}

    def read(self, partitions: Collection[bytes]) -> Mapping[bytes, int]:
        """Return the number of buckets of at least these partitions."""
        new = [partition for partition in partitions if partition not in self._known]
        if new:
            found = self._committed.restore([Address(partition, 0) for partition in new]).total_buckets
            self._known |= {partition: found.get(partition, self._first) for partition in new}
        return self._known

    def total_of(self, partition: bytes) -> int:
        """Return the number of buckets of one partition."""
        return self.read([partition])[partition]


def build_postponed_layout(context: TableContext, commit_user: str) -> FileLayout:
    """Return the layout of the postponed files of a new writer, whose names no other writer uses."""
    writer_id = crc32(context.engine.ids.uuid().encode()) & _WRITER_ID_MASK
    return FileLayout.of(to_postponed_files_table(context.table, commit_user, writer_id))


def read_bucket_counts(context: TableContext) -> Mapping[bytes, int]:
    """Return the number of real buckets of each partition that has some, in the newest snapshot."""
    snapshot = latest_snapshot(context)
    if snapshot is None:
        return {}
    live = read_live_columns(context, read_data_manifests(context, snapshot))
    return read_total_buckets(live.filter(live.buckets >= 0))
