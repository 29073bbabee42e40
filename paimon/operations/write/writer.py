"""Write rows to data files and return commit messages: the writer behind all methods that write.

Invariant: rows are visible only after their messages are committed; `abort` and `close` delete the files that no
message contains. Source: `TableWriteImpl`, `AbstractFileStoreWrite`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

import pyarrow as pa
from attrs import evolve

from paimon.domain.bucket.postponed import depends_on_rows
from paimon.domain.commit.message import CommitMessage, DataIncrement, ReadState
from paimon.domain.commit.overwrite import partitions_of_spec
from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.check import check_aggregates
from paimon.domain.merge.merge_engines import get_merge_engine
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.options.parse import LARGEST_LONG, parse_memory
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.operations.buckets.bucket_assigner import BucketAssigner
from paimon.operations.buckets.key_index import KeyIndex
from paimon.operations.commit.history import is_committed
from paimon.operations.data_files.write_data_files import FileLayout
from paimon.operations.table_context import TableContext
from paimon.operations.write.buckets import Buckets
from paimon.operations.write.inline import InlineCompaction
from paimon.operations.write.input_rows import prepare_rows
from paimon.operations.write.postponed import (
    PartitionBucketCounts,
    PostponedWriter,
    WaitingRows,
    build_postponed_layout,
)
from paimon.operations.write.restore import CommittedFiles
from paimon.operations.write.route import (
    Address,
    Codes,
    CrossPartitionRouting,
    DynamicRouting,
    PartitionRouting,
    PostponedRouting,
    Router,
    Routing,
    check_other_partitions,
)
from paimon.operations.write.row_writers import AppendWriter, MergeTreeWriter, cut_into_slices
from paimon.ports.cancellation import check_stop

_APPEND_BUFFER_BYTES = 64 * 1024 * 1024
"""Append tables do not sort, so buffering more rows than fill a row group has no benefit."""
_SORT_BYTES = 32 * 1024 * 1024
"""Memory next to the write buffer, in which parts of it are copied and sorted, and the source of an update is read."""
_SPILL = "write-buffer-spill.max-disk-size"


class RowWriter(Protocol):
    """Buffers the rows of all buckets, and writes them to files."""

    def add(self, rows: pa.Table, codes: Codes) -> None:
        """Buffer rows with the bucket number of each row."""

    def flush(self) -> None:
        """Write all buffered rows, and close the files."""

    def abort(self) -> None:
        """Drop all rows that are not in files yet."""


class TableWriter:
    """Write one table for one job.

    Overwrites set `ignore_previous`: sequence numbers start at 0, and the number of buckets may differ. Their
    `replaced` is a partition spec ({} is the whole table); None replaces the partitions that are written. A `level`
    above 0 requires that partitions are replaced as a whole and rows are flushed once, because files of a level do not
    overlap. `planned_buckets` are the numbers of buckets of postponed partitions. `streaming` means that more commits
    follow. `concurrent` encodes columns of append files in the executor; a task must not set it. `number_gap` lets
    several writers number rows of a fixed bucket for one commit; see `commit_rows.join_messages`.
    """

    def __init__(  # noqa: PLR0913  (what a job sets once)
        self,
        context: TableContext,
        commit_user: str,
        *,
        ignore_previous: bool = False,
        replaced: Mapping[str, object] | None = None,
        streaming: bool = False,
        level: int = 0,
        concurrent: bool = False,
        planned_buckets: Mapping[bytes, int] = MappingProxyType({}),
        number_gap: int = 0,
    ) -> None:
        options = context.options
        self._context = context
        self._table = context.table
        self._has_keys = bool(context.schema.primary_keys)
        self._compaction: InlineCompaction | None = None
        limit = min(options.write_buffer_bytes, _choose_buffer_bytes(context.engine.memory.bytes))
        self._limit = limit if self._has_keys else min(limit, _APPEND_BUFFER_BYTES)
        self._router: Router | CrossPartitionRouting
        self._is_streaming = streaming
        self._context, self._commit_user, self._number_gap = context, commit_user, number_gap
        self._may_repeat = streaming
        self._rows: RowWriter
        self._assigner: BucketAssigner | None = None
        self._key_index: KeyIndex | None = None
        self._waiting: WaitingRows | None = None
        self._replaced = replaced
        self._leaves_partitions = ignore_previous and replaced != {} and bool(context.schema.partition_keys)
        if context.table.bucket_mode is not BucketMode.POSTPONED:
            layout = evolve(FileLayout.of(context.table, level), is_concurrent=concurrent)
            self._use_table_buckets(context, commit_user, ignore_previous, layout)
        elif options.postpone_batch_write_fixed_bucket and not streaming:
            self._use_partition_buckets(context, ignore_previous, planned_buckets)
        else:
            self._use_postponed_buckets(context, commit_user)

    def _use_table_buckets(
        self, context: TableContext, commit_user: str, ignore_previous: bool, layout: FileLayout
    ) -> None:
        """Write to buckets whose number is that of the table, or to dynamic buckets."""
        options, total = context.options, context.options.bucket
        if context.table.bucket_mode is BucketMode.DYNAMIC:
            self._assigner = BucketAssigner(context, ignore_previous=ignore_previous)
            self._router = DynamicRouting(context, self._assigner)
        elif context.table.bucket_mode is BucketMode.CROSS_PARTITION:
            self._key_index = KeyIndex(
                context, commit_user, ignore_previous=ignore_previous, is_bounded=not self._is_streaming
            )
            self._router = CrossPartitionRouting(context, self._key_index)
        else:
            self._router = Routing.of(context.schema, total, options.bucket_function)
        has_buckets = context.table.bucket_mode is not BucketMode.UNAWARE
        compacts = has_buckets and not options.write_only and not options.clustering_incremental
        # Without buckets every writer starts at sequence number 0, because rows have no order there.
        ignores = ignore_previous or not has_buckets
        committed = None if ignores else CommittedFiles(context, compacts or self._key_index is not None)
        self._buckets = Buckets(context, lambda _: total, committed, layout, self._number_gap)
        self._compaction = InlineCompaction(context, self._buckets, committed, total) if compacts else None
        self._rows = (
            _create_merge_tree_writer(context, self._buckets, self._limit, ignore_previous)
            if self._has_keys
            else AppendWriter(self._buckets, self._limit)
        )

    def _use_partition_buckets(
        self, context: TableContext, ignore_previous: bool, planned_buckets: Mapping[bytes, int]
    ) -> None:
        """Write to the real buckets of postponed partitions, and leave compaction to others, as Java does."""
        committed = CommittedFiles(context, keeps_files=False)
        counts = PartitionBucketCounts(context, committed, planned_buckets, ignore_previous)
        routing = Routing.of(context.schema, 1, context.options.bucket_function)
        self._router = PartitionRouting(routing, counts.read)
        if depends_on_rows(context.options):
            self._waiting = WaitingRows(routing, counts, self._limit // 2)
        self._buckets = Buckets(context, counts.total_of, None if ignore_previous else committed)
        self._rows = _create_merge_tree_writer(context, self._buckets, self._limit, ignore_previous)

    def _use_postponed_buckets(self, context: TableContext, commit_user: str) -> None:
        """Append to postponed buckets."""
        self._router = PostponedRouting(Routing.of(context.schema, POSTPONED, context.options.bucket_function))
        self._buckets = Buckets(context, lambda _: POSTPONED, None, build_postponed_layout(context, commit_user))
        _check_merge(context)
        self._rows = PostponedWriter(self._buckets, min(self._limit, _APPEND_BUFFER_BYTES))

    def write(
        self, data: pa.Table | pa.RecordBatch, kinds: str | pa.Int8Array | None = None, are_stored: bool = False
    ) -> None:
        """Buffer rows, and write files when the buffer is full; see `prepare_rows`.

        Raise InvalidRequest if a row does not fit the table; then none of the rows is accepted.
        """
        rows = prepare_rows(self._table, data, kinds, are_stored)
        for piece in cut_into_slices(rows, self._limit):
            for ready in [piece] if self._waiting is None else self._waiting.add(piece):
                self._write_piece(ready)

    def _write_piece(self, piece: pa.Table) -> None:
        check_stop()
        known = self._key_index.base if self._key_index is not None else None
        routed = self._route(piece)
        if self._key_index is not None and self._key_index.base != known:
            self._buckets.advance()  # a -D row must be newer than the rows that the key index has just learned of
        self._add(*routed)

    def write_routed(self, rows: pa.Table, addresses: list[Address], codes: Codes, base: ReadState | None) -> None:
        """Buffer rows of a cross-partition table that the key index of another process routed.

        The arguments are the result of `CrossPartitionRouting.route`. `base` is the snapshot from which that key index
        was built; None for overwrites.
        """
        if self._key_index is None:
            raise InvalidRequest(
                f"Table {self._table.table_name!r} is not a cross-partition table, so it takes no routed rows",
                hint="pass the rows to 'write'",
            )
        self._key_index.base = base
        self._add(rows, addresses, codes)

    def _add(self, rows: pa.Table, addresses: list[Address], codes: Codes) -> None:
        self._rows.add(rows, self._buckets.assign_numbers(addresses, codes))

    def _route(self, rows: pa.Table) -> tuple[pa.Table, list[Address], Codes]:
        """Return the rows to write, and their addresses; only an index across partitions changes rows."""
        if isinstance(self._router, CrossPartitionRouting):
            return self._router.route(rows)
        return rows, *self._router.route(rows)

    def compact(self, partition: bytes, bucket: int, full: bool) -> None:
        """Compact a bucket at the next `prepare_commit`, including the rows that were written before.

        `full` merges all sorted runs into one. Raise InvalidRequest for a full compaction if writers of this table do
        not compact.
        """
        if self._compaction is not None:
            self._compaction.request(Address(partition, bucket), full)
        elif full:
            raise InvalidRequest(
                f"Table {self._table.table_name!r} is not compacted by its writers",
                subject="write-only",
                hint="call Table.compact, or set 'write-only' to false and 'bucket' to a positive number",
            )

    def flush(self) -> None:
        """Write all buffered rows to files; rows that the table rejects raise at the latest here."""
        for ready in [] if self._waiting is None else self._waiting.take():
            self._write_piece(ready)
        if self._compaction is not None:
            self._buckets.advance()
        self._rows.flush()

    def prepare_commit(self, identifier: int | None = BATCH_COMMIT_IDENTIFIER) -> list[CommitMessage]:
        """Write all buffered rows, and compact; return one message for each bucket that changed since the last call.

        `full-compaction.delta-commits` counts by `identifier`, that of the next commit; None if it is not known.
        """
        self.flush()
        if self._key_index is not None and self._leaves_partitions:
            self._key_index.base = self._check_other_partitions(self._key_index)
        if self._compaction is not None:
            self._compaction.run(identifier)
        if self._assigner is not None:
            self._add_index_files(self._assigner)
        if self._key_index is not None:
            self._key_index.end_batches(is_repeated=self._repeats_commit(identifier))
            for state in self._buckets.states:
                state.key_index = self._key_index.base if state.written != DataIncrement() else None
        if self._compaction is None:
            return self._buckets.take_messages(kept=())
        return self._buckets.take_messages(self._compaction.addresses_to_keep)

    def abort(self) -> None:
        """Drop all buffered rows, and delete the files that no message contains."""
        if self._waiting is not None:
            self._waiting.drop()
        self._rows.abort()
        self._buckets.abort()
        if self._assigner is not None:
            self._assigner.discard()
        if self._key_index is not None:
            self._key_index.close()
        if self._compaction is not None:
            self._compaction.close()

    def close(self) -> None:
        """Release all resources, as `abort` does; after `prepare_commit` no file is deleted."""
        self.abort()

    def _check_other_partitions(self, index: KeyIndex) -> ReadState:
        """Check that no key of the rows is in a partition that the overwrite leaves."""
        if self._replaced is not None:
            return check_other_partitions(self._context, index, partitions_of_spec(self._table, self._replaced))
        written = {state.address.partition for state in self._buckets.states if state.written != DataIncrement()}
        return check_other_partitions(self._context, index, written.__contains__)

    def _add_index_files(self, assigner: BucketAssigner) -> None:
        prepared = assigner.prepare()
        for (partition, bucket), change in prepared.changes.items():
            self._buckets.get_state(Address(partition, bucket)).index = change
        for state in self._buckets.states:
            if state.written != DataIncrement():
                state.index_base = prepared.get_base(*state.address)

    def _repeats_commit(self, identifier: int | None) -> bool:
        """Return whether a stream that started again prepares a commit that it made before; its files are not used."""
        if self._may_repeat and identifier is not None:
            self._may_repeat = is_committed(self._context, self._commit_user, identifier)
            return self._may_repeat
        return False


def _create_merge_tree_writer(
    context: TableContext, buckets: Buckets, limit_bytes: int, ignore_previous: bool
) -> MergeTreeWriter:
    options = context.options
    given = options.get(_SPILL)
    spill_bytes = LARGEST_LONG if given is None else parse_memory(given, _SPILL)
    spill_bytes = spill_bytes if options.write_buffer_spillable else 0
    # Overwrites produce no changelog.
    changelog = options.changelog_producer == "input" and not ignore_previous
    return MergeTreeWriter(context.engine, buckets, _check_merge(context), limit_bytes, spill_bytes, changelog)


def _choose_buffer_bytes(budget_bytes: int) -> int:
    """Return half of the budget without the memory of a sort, but at least a quarter of the budget."""
    return max(1, budget_bytes // 4, budget_bytes // 2 - _SORT_BYTES)


def _check_merge(context: TableContext) -> MergeSpec:
    """Return the merge of a table; tables of other writers may have an engine or aggregates that take no rows."""
    spec = MergeSpec.of(context.schema, context.options)
    get_merge_engine(spec)
    check_aggregates(context.schema, context.options)
    return spec
