"""TableWriter: rows in, data files and commit messages out.

Law: nothing that it writes is visible before its messages are committed; what was not handed out is removed by
`abort` and `close`.
Source: `TableWriteImpl`, `AbstractFileStoreWrite`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.conform import conform
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import InvalidRequest, Unsupported, did_you_mean
from paimon.domain.merge.registry import engine_of
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.options.parse import LARGEST_LONG, parse_memory
from paimon.domain.row.kinds import RETRACTS, kinds_of
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.domain.types.system import VALUE_KIND
from paimon.operations.write.append import AppendWriter
from paimon.operations.write.buckets import Buckets
from paimon.operations.write.buffer import pieces
from paimon.operations.write.committed import CommittedFiles
from paimon.operations.write.inline import InlineCompaction
from paimon.operations.write.merge_tree import MergeTreeWriter
from paimon.operations.write.route import Address, Routing
from paimon.ports.engine import Engine

_APPEND_BUFFER_BYTES = 64 * 1024 * 1024
"""Append tables sort nothing, so there is no gain in holding more rows than fill a row group."""
_BUFFER_SHARE = 2
"""The write buffer's part of the engine's memory: what leaves it is sorted, and so held twice."""
_SPILL = "write-buffer-spill.max-disk-size"


class TableWriter:
    """Writes one table for one job.

    Parameters
    ----------
    engine : Engine
    table : TableDefinition
    commit_user : str
        Who will commit. (Only dynamic buckets will need it: their writers share work by user.)
    ignore_previous : bool
        For overwrites: sequence numbers begin anew, and partitions may have had another number of buckets.

    Raises
    ------
    Unsupported
        For tables that cannot be written yet (dynamic and postponed buckets, external paths).
    """

    def __init__(
        self, engine: Engine, table: TableDefinition, commit_user: str, *, ignore_previous: bool = False
    ) -> None:
        schema, options = table.schema, table.options
        self._table = table
        self._keyed = bool(schema.primary_keys)
        total = _total_buckets(table)
        self._routing = Routing.of(schema, total, options.bucket_function)
        compacts = total > 0 and not options.write_only
        # Without buckets every writer begins at number 0: order by number means nothing there.
        ignores = ignore_previous or total < 1
        committed = None if ignores else CommittedFiles(engine, table, keeps_files=compacts)
        self._buckets = Buckets(engine, table, total, committed)
        self._compaction = InlineCompaction(engine, table, self._buckets, committed, total) if compacts else None
        limit = min(options.write_buffer_bytes, max(1, engine.memory.bytes // _BUFFER_SHARE))
        self._limit = limit if self._keyed else min(limit, _APPEND_BUFFER_BYTES)
        self._rows = (
            _merge_tree_writer(engine, table, self._buckets, limit, ignore_previous)
            if self._keyed
            else AppendWriter(self._buckets, self._limit)
        )

    def write(self, data: pa.Table | pa.RecordBatch, kinds: str | pa.Int8Array | None = None) -> None:
        """Takes some rows.

        Parameters
        ----------
        data : Arrow table or batch
            Columns of the table by name, in types that cast to the table's without loss.
        kinds : str or int8 array, optional
            Row kinds: the name of a text column of `data` that is not stored, or the kinds' numbers. Default: inserts,
            or what the table's `rowkind.field` says.

        Raises
        ------
        InvalidRequest
            The rows do not fit the table; nothing of them was taken.
        """
        table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
        if isinstance(kinds, str):
            table, kinds = _without_kinds(table, kinds)
        rows = conform(table, self._table.schema.fields, f"table {self._table.identifier}")
        rows = self._accepted(rows, kinds)
        for piece in pieces(rows, self._limit):
            addresses, codes = self._routing.route(piece)
            self._rows.add(piece, self._buckets.numbers_of(addresses, codes))

    def compact(self, partition: bytes, bucket: int, full: bool) -> None:
        """Compact this bucket at the next `prepare_commit` (`full`: into one run), with what was written before."""
        if self._compaction is not None:
            self._compaction.ask(Address(partition, bucket), full)
        elif full:
            raise InvalidRequest(
                f"writers of {self._table.identifier} do not compact",
                subject="write-only",
                hint="compact the table apart (Table.compact), or set write-only to false and give it buckets",
            )

    def flush(self) -> None:
        """Writes what is buffered to files: what the table would refuse has been refused afterwards."""
        if self._compaction is not None:
            self._buckets.advance()
        self._rows.flush()

    def prepare_commit(self, identifier: int | None = BATCH_COMMIT_IDENTIFIER) -> list[CommitMessage]:
        """Writes what is buffered, and compacts; one message for each bucket that changed since the last call.

        Parameters
        ----------
        identifier : int, optional
            That of the commit to come, by which `full-compaction.delta-commits` counts; None: not known.
        """
        self.flush()
        if self._compaction is None:
            return self._buckets.messages(kept=())
        self._compaction.run(identifier)
        return self._buckets.messages(self._compaction.kept)

    def abort(self) -> None:
        """Forgets what is buffered and removes the files that were not handed out."""
        self._rows.abort()
        self._buckets.abort()
        if self._compaction is not None:
            self._compaction.close()

    def close(self) -> None:
        """Like `abort`; after `prepare_commit` there is nothing left to remove."""
        self.abort()

    def _accepted(self, rows: pa.Table, kinds: pa.Int8Array | None) -> pa.Table:
        """The rows that are to be written, for keyed tables with their kinds."""
        options = self._table.options
        if kinds is None and options.rowkind_field is not None:
            kinds = kinds_of(_kind_column(rows, options.rowkind_field), options.rowkind_field)
        if kinds is not None:
            rows, kinds = _filtered(rows, kinds, options.ignore_delete, options.ignore_update_before)
        if not self._keyed:
            _check_no_retracts(self._table, kinds)
            return rows
        if options.get("primary-key.nullable") != "true":
            _check_keys(self._table, rows)
        inserts = pa.array(np.zeros(rows.num_rows, np.int8))
        return rows.append_column(VALUE_KIND.name, inserts if kinds is None else kinds)


def _merge_tree_writer(
    engine: Engine, table: TableDefinition, buckets: Buckets, limit_bytes: int, ignore_previous: bool
) -> MergeTreeWriter:
    options = table.options
    given = options.get(_SPILL)
    spill_bytes = LARGEST_LONG if given is None else parse_memory(given, _SPILL)
    spill_bytes = spill_bytes if options.write_buffer_spillable else 0
    # Overwrites tell no changes.
    changelog = options.changelog_producer == "input" and not ignore_previous
    spec = MergeSpec.of(table.schema, options)
    engine_of(spec)  # refuses unknown engines before any row comes
    return MergeTreeWriter(engine, buckets, spec, limit_bytes, spill_bytes, changelog)


def _total_buckets(table: TableDefinition) -> int:
    """The number of buckets that new files say; -1 for append tables without buckets."""
    options, keyed = table.options, bool(table.schema.primary_keys)
    if options.data_file_external_paths_strategy != "none":
        raise Unsupported("writing to external paths", hint="set data-file.external-paths.strategy to none")
    if options.bucket == -1 and not keyed:
        return -1
    if options.bucket < 1:
        what = "postponed buckets" if options.bucket == -2 else "dynamic buckets"
        raise Unsupported(f"writing {table.identifier} with {what}", hint="set the option bucket to a number above 0")
    return options.bucket


def _kind_column(rows: pa.Table, name: str) -> pa.ChunkedArray:
    if name not in rows.column_names:
        raise InvalidRequest(f"option 'rowkind.field' names {name!r}, which is no column", subject="rowkind.field",
                             hint=did_you_mean(name, rows.column_names))  # fmt: skip
    return rows[name]


def _without_kinds(table: pa.Table, column: str) -> tuple[pa.Table, pa.Int8Array]:
    if column not in table.column_names:
        raise InvalidRequest(
            f"there is no column {column!r} to take row kinds from", subject=column,
            hint=did_you_mean(column, table.column_names),
        )  # fmt: skip
    return table.drop_columns([column]), kinds_of(table[column], column)


def _filtered(
    rows: pa.Table, kinds: pa.Int8Array, ignore_delete: bool, ignore_update_before: bool
) -> tuple[pa.Table, pa.Int8Array]:
    dropped = RETRACTS if ignore_delete else RETRACTS[:1] if ignore_update_before else RETRACTS[:0]
    kept = pc.invert(pc.is_in(kinds, dropped))
    return (rows, kinds) if kept.false_count == 0 else (rows.filter(kept), kinds.filter(kept))


def _check_no_retracts(table: TableDefinition, kinds: pa.Int8Array | None) -> None:
    if kinds is not None and pc.any(pc.is_in(kinds, RETRACTS)).as_py():
        raise InvalidRequest(
            f"{table.identifier} has no primary key, so it takes no -U and -D rows",
            hint="set ignore-delete to drop them, or create the table with a primary key",
        )


def _check_keys(table: TableDefinition, rows: pa.Table) -> None:
    for name in table.schema.primary_keys:
        if rows[name].null_count:
            raise InvalidRequest(f"column {name!r} is part of the primary key of {table.identifier}, but has nulls",
                                 subject=name)  # fmt: skip
