"""Commit messages and callbacks by the names of pypaimon.

Source: `pypaimon.write.commit_message`, `pypaimon.write.commit_callback`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from attrs import define, evolve

import paimon
from paimon.compat.snapshot import Snapshot, from_paimon_snapshot
from paimon.compat.stored_table import StoredTable
from paimon.domain.commit.message import CommitMessage as PaimonMessage
from paimon.domain.errors import (
    BucketCountConflict,
    CommitConflict,
    DeletionVectorConflict,
    HashIndexConflict,
    RowIdNotFound,
    RowUpdateConflict,
)
from paimon.domain.manifest.entries import DataFileMeta as PaimonDataFileMeta
from paimon.domain.row.binary_row import deserialize
from paimon.domain.row.values import to_array

_PEER_WORDS = {
    BucketCountConflict: "Total buckets differ.",
    DeletionVectorConflict: "Deletion vector index conflict",
    HashIndexConflict: "HASH index assignment conflict",
    RowUpdateConflict: "For Data Evolution table, multiple 'MERGE INTO' operations have encountered conflicts",
}
"""Words of pypaimon's errors, which programs look for before they try again."""


@define
class CommitMessage:
    """The files that a writer added in one bucket; it pickles."""

    partition: tuple[Any, ...]
    inner: PaimonMessage

    @property
    def bucket(self) -> int:
        """The number of the bucket."""
        return self.inner.bucket

    @property
    def total_buckets(self) -> int | None:
        """The number of buckets."""
        return self.inner.total_buckets

    @property
    def new_files(self) -> list[DataFileMeta]:
        """The metadata of the files that were written."""
        return [DataFileMeta(self, place) for place in range(len(self.inner.data.new_files))]

    @property
    def index_adds(self) -> list[Any]:
        """The index files that were written: deletion vectors and hash indexes."""
        return list(self.inner.data.new_index_files)

    @property
    def index_deletes(self) -> list[Any]:
        """The index files that were replaced."""
        return list(self.inner.data.deleted_index_files)

    @property
    def deleted_files(self) -> list[Any]:
        """The metadata of the files that were replaced."""
        return list(self.inner.data.deleted_files)

    @property
    def changelog_files(self) -> list[Any]:
        """The metadata of the changelog files that were written."""
        return list(self.inner.data.changelog_files)

    @property
    def compact_before(self) -> list[Any]:
        """The metadata of the files that a compaction replaced."""
        return list(self.inner.compact.compact_before)

    @property
    def compact_after(self) -> list[Any]:
        """The metadata of the files that a compaction wrote."""
        return list(self.inner.compact.compact_after)

    def is_empty(self) -> bool:
        """Return whether the message changes nothing."""
        return self.inner.is_empty


class DataFileMeta:
    """The metadata of a file that was written; its first row id can be set."""

    def __init__(self, message: CommitMessage, place: int) -> None:
        self._message = message
        self._place = place

    @property
    def first_row_id(self) -> int | None:
        """The id of the first row; a file of some columns of rows in the table gets the id of the first of them."""
        return self._file.first_row_id

    @first_row_id.setter
    def first_row_id(self, value: int) -> None:
        files = list(self._message.inner.data.new_files)
        files[self._place] = evolve(self._file, first_row_id=value)
        self._message.inner = evolve(self._message.inner, data=evolve(self._message.inner.data, new_files=files))

    @property
    def _file(self) -> PaimonDataFileMeta:
        return self._message.inner.data.new_files[self._place]

    def __getattr__(self, name: str) -> Any:
        if name in ("_message", "_place"):
            raise AttributeError(name)  # while it is unpickled
        return getattr(self._file, name)

    def __eq__(self, other: object) -> bool:
        return self._file == (other._file if isinstance(other, DataFileMeta) else other)

    def __hash__(self) -> int:
        return hash(self._file.file_name)


def from_paimon_messages(messages: Iterable[PaimonMessage], table: StoredTable) -> list[CommitMessage]:
    """Return the messages of pypaimon for those of this library."""
    types = [column.type for column in table.inner.table_schema.partition_fields]

    def read_partition(row: bytes) -> tuple[Any, ...]:
        stored = deserialize(row, types) if types else ()
        return tuple(to_array([value], kind)[0].as_py() for value, kind in zip(stored, types, strict=True))

    return [CommitMessage(read_partition(message.partition), message) for message in messages]


def to_paimon_messages(messages: Iterable[CommitMessage | PaimonMessage]) -> list[PaimonMessage]:
    """Return the messages of this library."""
    return [message.inner if isinstance(message, CommitMessage) else message for message in messages]


@define
class CommitCallbackContext:
    """A commit that is published."""

    snapshot: Snapshot | None
    commit_entries: list[Any]
    identifier: int


class CommitCallback:
    """The base of objects that are called after commits."""

    def call(self, context: CommitCallbackContext) -> None:
        """Handle a commit."""
        raise NotImplementedError

    def close(self) -> None:
        """Release what the object holds."""


def to_paimon_callback(callback: CommitCallback) -> Callable[[paimon.CommitEvent], None]:
    """Return the function of this library that calls an object of pypaimon."""

    def call(event: paimon.CommitEvent) -> None:
        snapshot = None if event.snapshot is None else from_paimon_snapshot(event.snapshot)
        entries = [] if event.change is None else list(event.change.entries)
        callback.call(CommitCallbackContext(snapshot, entries, event.identifier))

    return call


@contextmanager
def commit_errors() -> Iterator[None]:
    """Raise the conflict of a commit as the RuntimeError of pypaimon."""
    try:
        yield
    except CommitConflict as error:
        words = _PEER_WORDS.get(type(error))
        raise RuntimeError(str(error) if words is None else f"{error} ({words})") from error


@contextmanager
def row_id_errors() -> Iterator[None]:
    """Raise the error of an unknown row id with the words of pypaimon."""
    try:
        yield
    except RowIdNotFound as error:
        raise ValueError(f"{error} (Row ID is out of valid range: it does not belong to any valid range.)") from error


@contextmanager
def delete_errors() -> Iterator[None]:
    """Raise the error of a delete in a table without deletion vectors with the words of pypaimon."""
    try:
        yield
    except paimon.Unsupported as error:
        raise ValueError(f"delete requires 'deletion-vectors.enabled' = 'true'. {error}") from error
