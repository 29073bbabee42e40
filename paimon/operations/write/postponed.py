"""Write the rows of tables with postponed buckets (`bucket` = -2): append them to files that no read merges.

Invariant: the rows of a partition keep the order in which they were written, retracts included. Rows of a kind that the
merge engine refuses are refused here, because the compaction could not move them. Source: `PostponeBucketWriter`,
`PostponeUtils.getKnownNumBuckets`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from zlib import crc32

import numpy as np
import pyarrow as pa

from paimon.domain.bucket.postponed import POSTPONED_SEQUENCE_NUMBER, compute_written_buckets, to_postponed_files_table
from paimon.domain.errors import InvalidRequest
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.system_columns import SEQUENCE_NUMBER
from paimon.operations.data_files.write_data_files import FileLayout
from paimon.operations.metadata.manifests import read_data_manifests, read_live_columns
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.table_context import TableContext
from paimon.operations.write.buckets import Buckets
from paimon.operations.write.restore import CommittedFiles, read_total_buckets
from paimon.operations.write.route import Address, Codes, Routing, encode_partitions
from paimon.operations.write.row_writers import AppendWriter

_WRITER_ID_MASK = 2**31 - 1


class PostponedWriter:
    """Append rows with their kinds to the postponed files of their partitions: a state machine."""

    def __init__(self, buckets: Buckets, limit_bytes: int) -> None:
        self._rows = AppendWriter(buckets, limit_bytes)

    def add(self, rows: pa.Table, codes: Codes) -> None:
        """Buffer rows with `_VALUE_KIND` and bucket numbers; refuse kinds that the engine does not accept."""
        numbers = from_numpy(np.full(rows.num_rows, POSTPONED_SEQUENCE_NUMBER, np.int64))
        self._rows.add(rows.append_column(SEQUENCE_NUMBER.name, numbers), codes)

    def flush(self) -> None:
        """Write all buffered rows, and close the files."""
        self._rows.flush()

    def abort(self) -> None:
        """Drop all rows that are not in files yet."""
        self._rows.abort()


class PartitionBucketCounts:
    """The number of buckets of partitions: that of their files, or the first one by the options; caches them.

    `planned` has priority over the options, and with `replaces`, for overwrites, over the files.
    """

    def __init__(
        self, context: TableContext, committed: CommittedFiles, planned: Mapping[bytes, int], replaces: bool
    ) -> None:
        self._options = context.options
        self._committed = committed
        self._planned = planned
        self._replaces = replaces
        self._known: dict[bytes, int] = {}

    def read(self, partitions: Collection[bytes]) -> Mapping[bytes, int]:
        """Return the number of buckets of at least these partitions."""
        self.plan(dict.fromkeys(partitions, (0, 0)))
        return self._known

    def plan(self, sizes: Mapping[bytes, tuple[int, int]]) -> None:
        """Set the number of buckets of new partitions, from the rows and bytes to write to each."""
        new = [partition for partition in sizes if partition not in self._known]
        if new:
            found = self._committed.restore([Address(partition, 0) for partition in new]).total_buckets
            for partition in new:
                total = found.get(partition)
                first = self._planned.get(partition) or compute_written_buckets(self._options, *sizes[partition])
                is_replaced = self._replaces and partition in self._planned
                if total not in (None, first) and partition in self._planned and not is_replaced:
                    raise InvalidRequest(
                        f"A partition has {total} buckets, and the bucket plan says {first}.",
                        subject="bucket plan",
                        hint="plan again, or overwrite the partition",
                    )
                self._known[partition] = first if total is None or is_replaced else total

    def total_of(self, partition: bytes) -> int:
        """Return the number of buckets of one partition."""
        return self.read([partition])[partition]


class WaitingRows:
    """Rows that wait for the bucket counts that the first of them, up to `limit_bytes`, decide."""

    def __init__(self, routing: Routing, counts: PartitionBucketCounts, limit_bytes: int) -> None:
        self._fields = routing.partition_fields
        self._counts = counts
        self._limit = limit_bytes
        self._rows: list[pa.Table] = []
        self._bytes = 0

    def add(self, rows: pa.Table) -> list[pa.Table]:
        """Let rows wait; return those that need not wait any longer."""
        self._rows.append(rows)
        self._bytes += rows.nbytes
        return self.take() if self._bytes >= self._limit else []

    def take(self) -> list[pa.Table]:
        """Decide the number of buckets of the partitions of all waiting rows, and return the rows."""
        taken, self._rows, self._bytes = self._rows, [], 0
        sizes: dict[bytes, tuple[int, int]] = {}
        for table in taken:
            for partition, rows in self._divide(table):
                count, size_bytes = sizes.get(partition, (0, 0))
                sizes[partition] = count + rows.num_rows, size_bytes + rows.nbytes
        self._counts.plan(sizes)
        return taken

    def drop(self) -> None:
        """Forget the waiting rows."""
        self._rows, self._bytes = [], 0

    def _divide(self, table: pa.Table) -> Iterator[tuple[bytes, pa.Table]]:
        """Yield each partition with its rows."""
        partitions, codes = encode_partitions(table, self._fields)
        grouped = table if len(partitions) == 1 else table.take(from_numpy(np.argsort(codes, kind="stable")))
        start = 0
        for partition, count in zip(partitions, np.bincount(codes, minlength=len(partitions)).tolist(), strict=True):
            yield partition, grouped.slice(start, count)
            start += count


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
