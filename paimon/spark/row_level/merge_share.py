"""What one task of a MERGE merges: its share of the source, in parts that fit the memory budget, and of the target.

Invariant: the parts are those of an embedded merge. A share of the source that is too large is spilled, and then the
rows of the target are spilled too, because each part reads them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, groupby

import numpy as np
import pyarrow as pa
from attrs import define, field, frozen
from pyspark import Accumulator

from paimon.domain.assignment.merge_clauses import MergeAction
from paimon.domain.assignment.merge_columnar import Mask
from paimon.operations.row_level.merge_match import MergeMatcher, RowChanges
from paimon.operations.row_level.merge_source import (
    ReadPart,
    SourceRows,
    index_source,
    part_bytes,
    store_piece,
    store_source,
)
from paimon.ports.engine import Engine
from paimon.spark.row_level.merge_source import MergeJob, is_unit
from paimon.spark.tasks.message_tasks import Counts
from paimon.spark.tasks.shuffle import ReceivedRows, receive_rows


@frozen(eq=False)
class MergePart:
    """A part of the source of one task, and the target rows among which it finds matches."""

    matcher: MergeMatcher
    # May include rows that match other parts
    target: Iterable[ReceivedRows]
    # For each source row, whether it matched a target row so far; `find_changes` updates it
    matched: Mask

    def find_changes(self, batch: pa.RecordBatch) -> RowChanges:
        """Find the changed rows of a batch of the target, and remember the rows of the source that matched."""
        changes = self.matcher.find_changes(batch)
        self.matched[changes.matched] = True
        return changes


@frozen(eq=False)
class TaskShare:
    """The share of a MERGE that one task computes."""

    number: int
    job: MergeJob
    # Received source rows, in memory or spilled
    source: SourceRows
    target: Iterator[ReceivedRows]
    # Changed rows by action so far; the task updates it
    counts: Counter[MergeAction] = field(factory=Counter)

    @classmethod
    def receive(cls, job: MergeJob, batches: Iterable[pa.RecordBatch]) -> TaskShare | None:
        """Receive the source rows, which arrive before the target rows; None if nothing was sent to this task."""
        received = receive_rows(batches)
        first = next(received, None)
        if first is None:
            return None
        target: list[ReceivedRows] = []
        tables = _take_source(chain([first], received), target)
        source = store_source(job.context, job.merge.on, job.fields, tables)
        return cls(first.task, job, source, chain(target, received))

    def parts(self) -> Iterator[MergePart]:
        """Yield the parts one after another; only the current one is in memory.

        Raises `InvalidRequest` if a part does not fit the memory budget. Deletes the spilled rows at the end.
        """
        reads, engine = self.source.parts(), self.job.context.engine
        target = self.target if len(reads) == 1 else SpilledTarget(engine)
        try:
            if isinstance(target, SpilledTarget):
                target.fill(self.target)
            for read in reads:
                yield self._open_part(read, target)
        finally:
            self.source.drop()
            if isinstance(target, SpilledTarget):
                target.drop()

    def _open_part(self, read: ReadPart, target: Iterable[ReceivedRows]) -> MergePart:
        matcher = index_source(self.job.context, self.job.merge, read(), is_share=True)
        return MergePart(matcher, target, np.zeros(matcher.source.num_rows, np.bool_))

    def report(self, counts: Accumulator[Counts]) -> None:
        """Report how many rows the task changed."""
        counts.add({("merged", self.number): tuple(self.counts[action] for action in MergeAction)})


def _take_source(received: Iterator[ReceivedRows], target: list[ReceivedRows]) -> Iterator[pa.Table]:
    """Yield the rows of the source; the first item of the target, which ends them, is added to `target`."""
    for item in received:
        if item.source >= 0:
            target.append(item)
            return
        yield item.rows


@frozen(eq=False)
class _StoredRows:
    """Received rows that are a batch of a piece, or a unit, which stays in memory."""

    item: ReceivedRows
    handle: str = ""
    batch: int = 0


@define(eq=False)
class SpilledTarget:
    """A state machine: the received rows of the target in pieces on local disk; each iteration reads them."""

    engine: Engine
    stored: list[_StoredRows] = field(factory=list)
    handles: list[str] = field(factory=list)

    def fill(self, received: Iterable[ReceivedRows]) -> None:
        """Store all rows; memory holds one piece."""
        piece: list[tuple[ReceivedRows, pa.RecordBatch]] = []
        size = 0
        for item in received:
            if is_unit(item):
                self.stored.append(_StoredRows(item))
                continue
            for batch in item.rows.combine_chunks().to_batches():
                if piece and (size > part_bytes(self.engine) or not piece[0][1].schema.equals(batch.schema)):
                    self._store(piece)
                    piece, size = [], 0
                piece.append((item, batch))
                size += batch.nbytes
        self._store(piece)

    def _store(self, piece: list[tuple[ReceivedRows, pa.RecordBatch]]) -> None:
        if not piece:
            return
        handle = store_piece(self.engine.temp, [batch for _, batch in piece])
        self.handles.append(handle)
        for number, (item, _) in enumerate(piece):
            empty = item._replace(rows=pa.Table.from_batches([], item.rows.schema))
            self.stored.append(_StoredRows(empty, handle, number))

    def __iter__(self) -> Iterator[ReceivedRows]:
        for handle, group in groupby(self.stored, key=lambda stored: stored.handle):
            batches = self.engine.temp.map_batches(handle) if handle else ()
            for stored in group:
                if not batches:
                    yield stored.item
                    continue
                batch = batches[stored.batch].replace_schema_metadata(stored.item.rows.schema.metadata)
                yield stored.item._replace(rows=pa.Table.from_batches([batch]))

    def drop(self) -> None:
        """Delete the pieces."""
        for handle in self.handles:
            self.engine.temp.drop(handle)
