"""Commit messages and callbacks by the names of pypaimon.

Source: `pypaimon.write.commit_message`, `pypaimon.write.commit_callback`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from attrs import define

import paimon
from paimon.compat.snapshot import Snapshot, from_paimon_snapshot
from paimon.domain.commit.message import CommitMessage as PaimonMessage
from paimon.domain.errors import BucketCountConflict, CommitConflict, RowUpdateConflict
from paimon.domain.row.binary_row import deserialize
from paimon.domain.row.values import to_array

if TYPE_CHECKING:
    from paimon.compat.table import FileStoreTable

_PEER_WORDS = {
    BucketCountConflict: "Total buckets differ.",
    RowUpdateConflict: "multiple 'MERGE INTO' operations have encountered conflicts",
}
"""Words of pypaimon's errors, which programs look for before they try again."""


@define
class CommitMessage:
    """The files that a writer added in one bucket; it pickles.

    Parameters
    ----------
    partition : tuple
        The values of the partition columns.
    inner : PaimonMessage
        The message of this library.
    """

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
    def new_files(self) -> list[Any]:
        """The metadata of the files that were written."""
        return list(self.inner.data.new_files)

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


def from_paimon_messages(messages: Iterable[PaimonMessage], table: FileStoreTable) -> list[CommitMessage]:
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
    """A commit that is published.

    Parameters
    ----------
    snapshot : Snapshot
        The snapshot of the commit.
    commit_entries : list
        The files that were added and deleted.
    identifier : int
        The commit identifier.
    """

    snapshot: Snapshot | None
    commit_entries: list[Any]
    identifier: int


class CommitCallback:
    """The base of objects that are called after commits."""

    def call(self, context: CommitCallbackContext) -> None:
        """Handle a commit.

        Raises
        ------
        NotImplementedError
            Always: subclasses define it.
        """
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
    """Raise the conflict of a commit as the RuntimeError of pypaimon.

    Yields
    ------
    None
        Other errors pass unchanged.

    Raises
    ------
    RuntimeError
        Another commit contradicts this one; nothing was published.
    """
    try:
        yield
    except CommitConflict as error:
        words = _PEER_WORDS.get(type(error))
        raise RuntimeError(str(error) if words is None else f"{error} ({words})") from error
