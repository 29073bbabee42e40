"""Observer: the port that receives progress, metrics and events.

Invariant: an observer never changes a result. Suite: `paimon.testing.contracts.effects`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from attrs import field, frozen

METRICS: Mapping[str, str] = {
    "commit.callback_failed": "Callbacks that raised after a commit.",
    "commit.compaction_overwritten": "Compactions of this process that another writer replaced.",
    "commit.compaction_planned_again": "Buckets compacted again, so that reads show the rows of a write.",
    "commit.hint_failed": "Commits after which the LATEST hint could not be written.",
    "commit.late_files": "Buckets whose rows became late during a commit, and were written again.",
    "commit.late_rows_kept": "Commits whose late rows keep their sequence numbers.",
    "commit.manifests_left_behind": "Manifests that a failed attempt could not delete.",
    "commit.orphans": "Failed deletions of files that no snapshot names; they are orphan files.",
    "hint.write_failed": "Hints of the earliest or latest snapshot that could not be written.",
    "key_index.loaded": "Keys that a writer of a cross-partition table loaded.",
    "lookup.local_copies": "Files whose keys a compaction with lookups copied to local disk.",
    "maintenance.failed": "Maintenance that failed after a commit.",
    "read.files.corrupt": "Damaged files that a scan left out, as `scan.ignore-corrupt-files` allows.",
    "read.files.lost": "Missing files that a scan left out, as `scan.ignore-lost-files` allows.",
    "storage.clock_differs": "Times at which the clock of the storage differed from the local one.",
    "stream.batches": "Batches that streams on Spark committed.",
    "stream.files": "Files that these batches added.",
    "stream.report_failed": "Reports of a stream on Spark that failed.",
    "stream.rows": "Rows that these batches wrote.",
    "write.compaction_skipped": "Compactions of a write that were left to a later one.",
}
"""The metrics of `Observer.count`, with what they count. Scans also count bytes for `Maintain.health`."""

EVENTS: Mapping[str, tuple[str, ...]] = {
    "commit": ("snapshot_id", "kind", "rows", "files", "retries", "millis"),
    "compaction": ("snapshot_id", "kind", "rows", "files", "retries", "millis"),
    "conflict": ("reason",),
    "expiry": ("kind", "deleted", "files", "first", "last", "tag"),
    "retry": ("retry", "wait_millis"),
}
"""The events of `EventObserver.event`, with the names of their values."""


class Observer(Protocol):
    """Receives progress and metrics.

    Both methods must return quickly and must not raise. They may be called from several threads.
    """

    def progress(self, activity: str, done: int, total: int | None = None) -> None:
        """Receive the progress of an activity.

        Calls of one activity arrive in ascending order of `done`. There need not be a last call with `done == total`.

        Parameters
        ----------
        activity : str
            A short text for people, such as ``"read splits"``.
        done : int
            The number of finished units (splits, files, snapshots, …).
        total : int, optional
            The number of all units. None if it is not known.
        """

    def count(self, metric: str, value: int) -> None:
        """Receive an increment of a metric.

        Parameters
        ----------
        metric : str
            A dotted name, such as ``"commit.hint_failed"``. An observer accepts names that it does not know.
        value : int
            What to add. The sum does not depend on the order of the calls.
        """


@frozen
class Event:
    """Something that happened to a table once.

    Attributes
    ----------
    name : str
        A key of `EVENTS`.
    location : str
        The directory or URL of the table.
    values : mapping of str to int or str
        Values of those that `EVENTS` names.
    """

    name: str
    location: str
    values: Mapping[str, int | str] = field(factory=dict)


@runtime_checkable
class EventObserver(Protocol):
    """What an `Observer` also has if it receives events."""

    def event(self, event: Event) -> None:
        """Receive an event. The method must return quickly and must not raise; several threads may call it.

        Parameters
        ----------
        event : Event
            The event. An observer accepts names and values that it does not know.
        """


def report_event(observer: Observer, name: str, location: str, **values: int | str) -> None:
    """Report an event to an observer that receives events.

    Parameters
    ----------
    observer : Observer
        The observer.
    name : str
        A key of `EVENTS`.
    location : str
        The directory or URL of the table.
    **values : int or str
        The values that `EVENTS` names.
    """
    if isinstance(observer, EventObserver):
        observer.event(Event(name, location, values))
