"""Compacting one bucket: the function that every task of a compaction runs, embedded or distributed.

Law: what is written holds, key by key, what merging the files read holds; memory stays within the budget however
large the files are; a failed task leaves no file. Source: `MergeTreeCompactRewriter`, `AppendCompactTask`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from attrs import evolve, frozen

from paimon.domain.commit.message import CommitMessage, CompactIncrement
from paimon.domain.lsm.sorted_run import Section, SortedRun
from paimon.domain.maintenance.small_files import Pack
from paimon.domain.manifest.entries import DataFileMeta, FileSource
from paimon.domain.merge.columnar.merge import merge
from paimon.domain.merge.columnar.order import retracts
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.merge.windows import Piece, windows
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system import SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.maintain.work import BucketWork
from paimon.operations.read.data_file import BATCH_ROWS, Bucket, read_data_file
from paimon.operations.read.split import WINDOW_BYTES
from paimon.operations.write.data_files import RollingFiles
from paimon.operations.write.file_layout import FileLayout
from paimon.ports.engine import Engine

_LEAST_ROWS = 256
_UNPACKED = 4
"""Rows take about so many times the bytes in memory that they take in files."""


def compact_bucket(engine: Engine, table: TableDefinition, work: BucketWork) -> CommitMessage:
    """Do the work; its message says which files replace which."""
    bucket = Bucket.of(engine, table, _as_split(work))
    made: list[DataFileMeta] = []
    try:
        for files, tables in _rewrites(bucket, work):
            made += _written(bucket, work, files, tables)
    except BaseException:
        engine.files.delete([f"{work.directory}/{f.file_name}" for f in made])
        raise
    upgrades = work.unit.upgrades if work.unit else ()
    moved = tuple(evolve(f, level=work.unit.output_level) for f in upgrades) if work.unit else ()
    increment = CompactIncrement((*work.rewritten, *upgrades), (*made, *moved))
    return CommitMessage(work.partition, work.bucket, work.total_buckets, work.directory, compact=increment)


def _as_split(work: BucketWork) -> DataSplit:
    return DataSplit(0, work.partition, work.bucket, work.total_buckets, work.directory, work.rewritten)


def _rewrites(bucket: Bucket, work: BucketWork) -> Iterator[tuple[Pack, Iterator[pa.Table]]]:
    """Files that are replaced together, and the rows that replace them."""
    for pack in work.packs:
        yield pack, _rows_in_order(bucket, pack)
    if work.unit is not None:
        reading = _SectionRead(bucket, MergeSpec.of(bucket.table.schema, bucket.table.options), work.unit.drop_deletes)
        for group in work.unit.rewrites:
            files = tuple(f for section in group for run in section for f in run.files)
            yield files, (rows for section in group for rows in reading.rows(section))


def _written(bucket: Bucket, work: BucketWork, files: Pack, tables: Iterator[pa.Table]) -> list[DataFileMeta]:
    level = work.unit.output_level if work.unit else 0
    layout = evolve(FileLayout.of(bucket.table, level, FileSource.COMPACT), target_rows=None)
    rolling = RollingFiles(bucket.engine, layout, work.directory, files[0].min_sequence_number)
    try:
        for rows in tables:
            if rows.num_rows:
                rolling.write(rows)
        return rolling.close()
    except BaseException:
        rolling.abort()
        raise


def _rows_in_order(bucket: Bucket, files: Sequence[DataFileMeta]) -> Iterator[pa.Table]:
    for file in files:
        for batch in read_data_file(bucket, file, bucket.table.schema.fields):
            yield pa.Table.from_batches([batch])


@frozen(eq=False)
class _SectionRead:
    """Reads sections as merged rows, ascending by key, with their sequence numbers and kinds."""

    bucket: Bucket
    spec: MergeSpec
    drop_deletes: bool

    def rows(self, section: Section) -> Iterator[pa.Table]:
        """The rows of one section."""
        budget = min(self.bucket.engine.memory.bytes // 3, WINDOW_BYTES)
        rows = _batch_rows(section, budget)
        runs = [self._pieces(run, age, rows) for age, run in enumerate(section)]
        for table in self._merged(runs, budget) if len(runs) > 1 else map(_table, runs[0]):
            gone = retracts(table) if self.drop_deletes else None
            yield table if gone is None or not gone.any() else table.filter(pa.array(~gone))

    def _merged(self, runs: Sequence[Iterator[Piece]], budget: int) -> Iterator[pa.Table]:
        for window in windows(runs, self.spec.key_fields, budget):
            yield merge(pa.Table.from_batches([piece.batch for piece in window]), self.spec)

    def _pieces(self, run: SortedRun, age: int, rows: int) -> Iterator[Piece]:
        columns: tuple[DataField, ...] = (*self.bucket.table.schema.fields, SEQUENCE_NUMBER, VALUE_KIND)
        for file in run.files:
            for batch in read_data_file(self.bucket, file, columns, batch_rows=rows):
                yield Piece(batch, age)


def _table(piece: Piece) -> pa.Table:
    return pa.Table.from_batches([piece.batch])


def _batch_rows(section: Section, budget: int) -> int:
    """Rows of a batch, of which every run holds one: together they take about half of the budget."""
    row_bytes = max(_UNPACKED * run.file_size // max(1, run.row_count) for run in section)
    return max(_LEAST_ROWS, min(BATCH_ROWS, budget // (2 * len(section) * max(1, row_bytes))))
