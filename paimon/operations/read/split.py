"""Reads one split: the function that every task of a read runs, embedded or distributed.

Law: the answer holds exactly the rows of the split where the predicate is true, in the columns asked for; no file is
opened before the first batch is asked for. Source: `TableRead`, `SplitRead`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from paimon.domain.changelog.binlog.columnar import packed
from paimon.domain.errors import Unsupported
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.predicate.columnar import evaluate
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import only_columns
from paimon.domain.row.kinds import KIND_TEXTS
from paimon.domain.scan.splits import DataSplit, DeletionFile
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.arrow import arrow_field
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system import LEVEL, ROW_KIND, SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.read.changes.difference_read import DifferenceRead
from paimon.operations.read.data_file import BATCH_ROWS, Bucket, read_data_file
from paimon.operations.read.deletion.vectors import read_vector
from paimon.operations.read.fallback import table_of_split
from paimon.operations.read.merge_read import MergeRead, live_rows
from paimon.operations.read.projection import Projection, ReadPlan, defaults_of, output_schema, shown, wanted_fields
from paimon.operations.read.side_by_side import read_side_by_side
from paimon.ports.engine import Engine

__all__ = ["ReadPlan", "output_schema", "read_split"]

WINDOW_BYTES = 64 * 1024 * 1024
"""What a merge window holds at most: larger ones were slower (fresh memory), much smaller ones too (fixed costs)."""


def read_split(engine: Engine, table: TableDefinition, split: DataSplit, read: ReadPlan) -> Iterator[pa.RecordBatch]:
    """The rows of a split as batches of `output_schema(table, read)`."""
    projection = Projection.of(table, read)
    left = read.limit
    bucket = evolve(
        Bucket.of(engine, table_of_split(engine, table, split), split),
        ignores_lost=table.options.scan_ignore_lost_files,
        ignores_corrupt=table.options.scan_ignore_corrupt_files,
    )
    rows = _rows(bucket, split, read)
    for batch in _changes(table, read, rows) if read.binlog else rows:
        if read.row_kinds:
            batch = _with_kinds(batch)
        if read.predicate is not None:
            batch = batch.filter(evaluate(read.predicate, batch))
        if left is not None:
            batch = batch.slice(0, left)
            left -= batch.num_rows
        if batch.num_rows:
            yield projection.apply(batch)
        if left == 0:
            return


def _rows(bucket: Bucket, split: DataSplit, read: ReadPlan) -> Iterator[pa.RecordBatch]:
    engine, table = bucket.engine, bucket.table
    numbered = SEQUENCE_NUMBER.name in {*read.columns, *read.predicate_columns}
    if split.before_files:
        if numbered:
            raise Unsupported("sequence numbers of a difference of two states", hint="leave out '_SEQUENCE_NUMBER'")
        yield from _difference(bucket, split, read)
        return
    keep_retracts = read.row_kinds or read.keep_retracts
    keys = table.schema.trimmed_primary_keys if read.binlog else ()
    names = {*read.columns, *read.predicate_columns, *keys} - {ROW_KIND.name, SEQUENCE_NUMBER.name}
    wanted = (*wanted_fields(table.schema.fields, names), *((SEQUENCE_NUMBER,) if numbered else ()))
    skip = None if read.predicate is None else only_columns(read.predicate, table.schema.names)
    if read.row_kinds:
        wanted = (*wanted, VALUE_KIND)
    vectors = {f.file_name: d for f, d in zip(split.files, split.deletion_files, strict=False) if d is not None}

    merged = not split.raw_convertible and bool(table.schema.primary_keys)

    def read_file(
        file: DataFileMeta, columns: Sequence[DataField], predicate: Predicate | None, batch_rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        vector = read_vector(engine, vectors[file.file_name]) if file.file_name in vectors else None
        return read_data_file(bucket, file, columns, predicate, vector, batch_rows, merged)

    if merged:
        spec = MergeSpec.of(table.schema, table.options)
        some = wanted or spec.key_fields[:1]  # a batch without columns would not know its rows
        merging = MergeRead(spec, some, skip, read_file, _window_bytes(engine), keep_retracts)
        yield from merging.rows(split.files)
        return
    if table.options.data_evolution_enabled and not split.raw_convertible:
        yield from read_side_by_side(bucket, split.files, wanted or (LEVEL,))
        return
    for file in split.files:
        if table.schema.primary_keys:
            yield from live_rows(read_file, file, wanted or (LEVEL,), skip, keep_retracts)
        else:
            yield from read_file(file, wanted or (LEVEL,), skip)


def _changes(table: TableDefinition, read: ReadPlan, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows as a binlog shows them; merged rows are no updates."""
    defaults = defaults_of(table)
    keys = table.schema.trimmed_primary_keys if read.keep_retracts else None
    return packed((shown(batch, defaults) for batch in rows), keys)


def _difference(bucket: Bucket, split: DataSplit, read: ReadPlan) -> Iterator[pa.RecordBatch]:
    engine, table = bucket.engine, bucket.table
    keys = None if read.predicate is None else only_columns(read.predicate, table.schema.primary_keys)

    def read_version(
        file: DataFileMeta, deleted: DeletionFile | None, columns: Sequence[DataField]
    ) -> Iterator[pa.RecordBatch]:
        vector = None if deleted is None else read_vector(engine, deleted)
        return read_data_file(bucket, file, columns, keys, vector)

    spec = MergeSpec.of(table.schema, table.options)
    reading = DifferenceRead(spec, read_version, _window_bytes(engine), read.row_kinds or read.keep_retracts)
    yield from reading.rows(split)


def _window_bytes(engine: Engine) -> int:
    return min(engine.memory.bytes // 3, WINDOW_BYTES)


def _with_kinds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with its row kinds as text; rows of append tables, which store none, are inserts."""
    kinds = pc.fill_null(batch[VALUE_KIND.name], 0)
    return batch.append_column(arrow_field(ROW_KIND), pa.array(KIND_TEXTS).take(kinds))
