"""Number the rows of an append table, so that a query engine can name rows of a table without a primary key.

Invariant: the number of a row is the number of rows in the files before it, plus its position in its file. Deleted rows
count, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import field, frozen

from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.text import format_predicate
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.scan.splits import DataSplit, DeletionFile
from paimon.domain.scan.state_difference import file_vectors
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import LEVEL
from paimon.operations.data_files.deletion_vectors import read_vector
from paimon.operations.data_files.read_data_file import Bucket, read_data_file
from paimon.operations.read.evaluate import evaluate_condition
from paimon.operations.read.plan import plan_scan
from paimon.operations.read.projection import Projection, ReadPlan, bind_predicate, select_fields
from paimon.operations.table_context import TableContext

_Rows: TypeAlias = tuple[pa.RecordBatch, npt.NDArray[np.int64]]
"""Rows and their numbers."""


@frozen(eq=False)
class NumberedFile:
    """A file and the numbers of its rows."""

    split: DataSplit
    file: DataFileMeta
    deleted: DeletionFile | None
    first: int

    @property
    def end(self) -> int:
        """The number of the first row after the file."""
        return self.first + self.file.row_count


def _to_tuple(values: Iterable[NumberedFile]) -> tuple[NumberedFile, ...]:
    return tuple(values)


@frozen(eq=False)
class NumberedRows:
    """The live rows of an append table at one snapshot, with their numbers."""

    context: TableContext
    # None for an empty table
    snapshot: Snapshot | None
    # The columns, without the number, and the condition
    read: ReadPlan
    number_name: str
    # The files in which the condition can be true, in the order of their numbers
    files: tuple[NumberedFile, ...] = field(converter=_to_tuple)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns, and the number as int64 at the end."""
        schema = Projection.of(self.context.table, self.read).schema
        return schema.append(pa.field(self.number_name, pa.int64(), nullable=False))

    def to_batches(self) -> pa.RecordBatchReader:
        """Read the rows; each call reads them again."""
        return pa.RecordBatchReader.from_batches(self.arrow_schema, self._read())

    def explain(self) -> str:
        """Describe what is read, in lines for people."""
        condition = "" if self.read.predicate is None else f"\n  where:   {format_predicate(self.read.predicate)}"
        return f"  columns: {', '.join(self.read.columns)}, and the number of each row{condition}"

    def _read(self) -> Iterator[pa.RecordBatch]:
        projection = Projection.of(self.context.table, self.read)
        names = {*self.read.columns, *self.read.predicate_columns}
        columns = select_fields(self.context.schema.fields, names) or (LEVEL,)
        schema = self.arrow_schema
        for numbered in self.files:
            for rows, numbers in self._read_file(numbered, columns):
                shown = projection.apply(rows).columns
                yield pa.RecordBatch.from_arrays([*shown, pa.array(numbers)], schema=schema)

    def _read_file(self, numbered: NumberedFile, columns: Sequence[DataField]) -> Iterator[_Rows]:
        engine, predicate = self.context.engine, self.read.predicate
        vector = None if numbered.deleted is None else read_vector(engine, numbered.deleted)
        start = 0
        # No row group may be skipped, because the position of a row is the number of rows before it.
        for batch in read_data_file(Bucket.of(self.context, numbered.split), numbered.file, columns):
            live = np.ones(batch.num_rows, np.bool_) if vector is None else ~vector.mask(start, batch.num_rows)
            if predicate is not None:
                live &= evaluate_condition(engine, predicate, batch).to_numpy(zero_copy_only=False)
            numbers = np.flatnonzero(live)
            yield batch if live.all() else batch.take(pa.array(numbers)), numbers + (numbered.first + start)
            start += batch.num_rows


def plan_numbered_rows(
    context: TableContext,
    snapshot: Snapshot | None,
    columns: Sequence[str],
    predicate: Predicate | None,
    number_name: str,
) -> NumberedRows:
    """Plan a read of rows with their numbers from an append table; no data file is read.

    `predicate` applies to the columns as reads show them. A snapshot of None is an empty table.
    """
    bound = None if predicate is None else bind_predicate(predicate, context.table, context.schema.fields)
    files: list[NumberedFile] = []
    first = 0
    for split in plan_scan(context, ScanRequest(snapshot, bound)).splits if snapshot is not None else ():
        for file, deleted in file_vectors(split.files, split.deletion_files):
            files.append(NumberedFile(split, file, deleted, first))
            first += file.row_count
    return NumberedRows(context, snapshot, ReadPlan(tuple(columns), bound), number_name, files)
