"""What a source of rows reads of tables, and how it is read again from newer snapshots.

Rows that are computed from a table and replace rows of it are out of date once another user changes the table. So the
commit names the oldest snapshot that was read, and is refused if later commits changed rows. A source that can be read
again is then read from the newest snapshot. Another one is refused: a reader has only the rows of its snapshot.

    merge(t.scan()):            read t at 5 -> commit refused, 6 changed rows -> read t at 6 -> committed
    merge(t.scan().to_batches()):  read t at 5 -> commit refused, 6 changed rows -> ReadConflict

Invariant: a snapshot that the caller chose, for instance by a tag, is no such read: its rows are meant to be old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import singledispatch
from typing import Any
from weakref import WeakKeyDictionary

from attrs import evolve, field, frozen

from paimon.domain.commit.entries import find_oldest
from paimon.domain.commit.message import CommitMessage, ReadState
from paimon.domain.errors import InvalidRequest
from paimon.domain.row.binary_row import serialize
from paimon.domain.schema.table_definition import TableDefinition


@frozen
class SnapshotRead:
    """A read of the snapshot of a table that was the newest one; `state` is None if that is not known."""

    location: str
    branch: str
    state: ReadState | None


def _to_reads(values: Iterable[SnapshotRead]) -> tuple[SnapshotRead, ...]:
    return tuple(values)


@frozen(eq=False)
class SourceReads:
    """What a source reads; `again` returns the source as newer snapshots show it, and is None if it cannot."""

    reads: tuple[SnapshotRead, ...] = field(converter=_to_reads, default=())
    again: Callable[[], Any] | None = None


_READERS: WeakKeyDictionary[Any, Callable[[], SourceReads]] = WeakKeyDictionary()
"""What readers that this library made read: they are objects of pyarrow, and cannot hold it themselves."""


def note_reader(reader: Any, describe: Callable[[], SourceReads]) -> Any:
    """Record what a reader or generator reads, and return it."""
    if _is_weakly_referable(reader):
        _READERS[reader] = describe
    return reader


@singledispatch
def find_reads(data: Any) -> SourceReads:
    """Return what a source reads; nothing of data that is in memory already."""
    is_noted = type(data).__hash__ is not None and _is_weakly_referable(data)
    describe = _READERS.get(data) if is_noted else None
    return SourceReads() if describe is None else evolve(describe(), again=None)


def _is_weakly_referable(data: Any) -> bool:
    return type(data).__weakrefoffset__ > 0


@find_reads.register(list)
@find_reads.register(tuple)
def _find_reads_of_parts(data: Sequence[Any]) -> SourceReads:
    parts = [find_reads(part) for part in data if not isinstance(part, Mapping)]
    reads = [read for found in parts for read in found.reads]
    functions = [found.again for found in parts if found.again is not None]
    return SourceReads(reads, (lambda: [read() for read in functions]) if len(functions) == len(data) else None)


@frozen(eq=False)
class OwnReads:
    """The reads of the table that a source changes: the oldest snapshot, and `again` as in `SourceReads`."""

    state: ReadState
    again: Callable[[], Any] | None


def find_own_reads(table: TableDefinition, data: Any) -> OwnReads | None:
    """Return what a source reads of the table that it changes; None for nothing.

    Refuses a source whose snapshot of the table is not known, because the commit could not detect conflicts.
    """
    found = find_reads(data)
    own = [read.state for read in found.reads if (read.location, read.branch) == (table.location, table.branch)]
    if None in own:
        raise InvalidRequest(
            f"The rows come from table {table.table_name!r}, which they change, and their snapshot is not known.",
            subject="source",
            hint="read the table with paimon.spark.read, or pass paimon.spark.merge a function that returns the frame",
        )
    oldest = find_oldest(own)
    return None if oldest is None else OwnReads(oldest, found.again)


def stamp_messages(
    table: TableDefinition, messages: Sequence[CommitMessage], state: ReadState | None, overwrites: bool = False
) -> list[CommitMessage]:
    """Return messages that name the snapshot from which their rows were computed.

    An overwrite without rows gets an empty message, because it removes rows.
    """
    if state is None:
        return list(messages)
    if not messages and overwrites:
        types = [column.type for column in table.schema.partition_fields]
        messages = [CommitMessage(serialize([None] * len(types), types), 0, 0, "")]
    return [evolve(m, read_state=find_oldest([m.read_state, state])) for m in messages]
