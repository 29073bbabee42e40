"""The contracts of CommitCallback and PartitionDoneCallback as tests, with the events of real tables in memory.

A callback that keeps the contracts of `paimon.ports.callbacks` passes. Derive a class from the contract, whose
`make_callback` returns the callback, and a function that describes what the other system knows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Generic, TypeVar

from attrs import evolve

from paimon.embed import make_catalog, make_engine
from paimon.ports.callbacks import CommitCallback, CommitEvent, PartitionDoneCallback, PartitionDoneEvent
from paimon.testing.memory_files import MemoryFiles

_Callback = TypeVar("_Callback", CommitCallback, PartitionDoneCallback)


class _CallbackContract(ABC, Generic[_Callback]):
    @abstractmethod
    def make_callback(self) -> tuple[_Callback, Callable[[], object]]:
        """Return a callback of a system that knows nothing yet, and a function that returns what the system knows.

        Two results of the function are equal if the system knows the same.
        """


class CommitCallbackContract(_CallbackContract[CommitCallback]):
    """The tests of the port. A subclass implements `make_callback`."""

    def test_each_commit_is_accepted(self) -> None:
        """With and without partitions: rows, deletions, a compaction, an overwrite, and a commit without rows."""
        callback, _ = self.make_callback()
        for event in _collect_events()[0]:
            callback(event)

    def test_a_commit_whose_files_are_unknown_is_accepted(self) -> None:
        """The retry of a commit whose snapshot has expired knows only the commit identifier."""
        callback, _ = self.make_callback()
        for event in _collect_events()[0][:2]:
            callback(CommitEvent(event.table, event.commit_user, event.identifier, repeated=True))

    def test_a_repeated_call_changes_nothing(self) -> None:
        """Directly after the first call, and after the calls of later commits."""
        callback, describe = self.make_callback()
        events = _collect_events()[0]
        for event in events:
            callback(event)
            known = describe()
            callback(evolve(event, change=None, repeated=True))
            assert describe() == known
        for event in events:
            callback(evolve(event, change=None, repeated=True))
            assert describe() == known


class PartitionDoneCallbackContract(_CallbackContract[PartitionDoneCallback]):
    """The tests of the port. A subclass implements `make_callback`."""

    def test_a_partition_may_be_marked_again(self) -> None:
        """Also after others. A null, a text with a slash, and a date are values of partitions."""
        callback, describe = self.make_callback()
        for event in (events := _collect_events()[1]):
            callback(event)
        known = describe()
        for event in events:
            callback(event)
            assert describe() == known

    def test_events_of_commits_are_accepted(self) -> None:
        """The table that it is registered with calls it for its commits, too, which mark nothing as done."""
        callback, describe = self.make_callback()
        known = describe()
        for event in _collect_events()[0]:
            callback(event)  # type: ignore[arg-type]
        assert describe() == known


@cache
def _collect_events() -> tuple[tuple[CommitEvent, ...], tuple[PartitionDoneEvent, ...]]:
    """Return the events of two small tables, one of them partitioned, in the order of their calls."""
    events: list[CommitEvent | PartitionDoneEvent] = []
    catalog = make_catalog(make_engine(MemoryFiles()), "/lake")
    catalog.create_database("shop")
    for name, partition_keys in (("orders", []), ("sales", ["day", "shop"])):
        options = {"bucket": "1", "partition.mark-done-action": "custom"}
        options["partition.mark-done-action.custom.class"] = "marks"
        created = catalog.create_table(
            f"shop.{name}",
            "id INT NOT NULL, day DATE, shop STRING",
            primary_keys=["id", *partition_keys],
            partition_keys=partition_keys,
            options=options,
        )
        table = created.with_callbacks({"marks": events.append})
        table.write([{"id": 1, "day": "2026-01-01", "shop": "a/b"}, {"id": 2, "day": "2026-01-02", "shop": "ü"}])
        table.write([{"id": 1, "day": "2026-01-01", "shop": "a/b"}])
        table.delete(where="id = 2")
        table.compact(full=True)
        table.overwrite([{"id": 3, "day": "2026-01-03", "shop": "c"}])
        table.overwrite([])
        if partition_keys:
            table.write([{"id": 4, "day": "2026-01-03", "shop": "c"}, {"id": 5, "day": "2026-01-01", "shop": "a/b"}])
            table.maintain.mark_partitions_done({"day": "2026-01-03"}, {"shop": "a/b"})
    commits = tuple(event for event in events if isinstance(event, CommitEvent))
    return commits, tuple(event for event in events if isinstance(event, PartitionDoneEvent))
