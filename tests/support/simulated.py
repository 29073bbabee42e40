"""Engines for the simulated world, and mistakes to plant into the library, each of a kind that has cost data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from attrs import evolve

import paimon.maintain
import paimon.operations.commit.attempt as attempt
import paimon.operations.commit.commit as commits
import paimon.operations.commit.publish as publishing
import paimon.operations.maintain.retention.holders as holders
import paimon.operations.maintain.retention.leavings as leavings
import paimon.operations.maintain.retention.orphans as orphans
import paimon.operations.write.restore as restoring
from paimon.adapters.cache import LruCache
from paimon.adapters.executors.serial import SerialExecutor
from paimon.adapters.formats.avro import AvroFormat
from paimon.adapters.formats.records import AvroRecordIO
from paimon.adapters.observers import SilentObserver
from paimon.adapters.snapshots.renaming import FileSnapshotCommit
from paimon.adapters.temp.local import LocalTempStore
from paimon.domain.errors import NotFound, StorageError
from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.json import snapshot_to_json
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.snapshots import find_snapshot
from paimon.ports.effects import Clock, Ids, Random
from paimon.ports.engine import Engine
from paimon.ports.files import FileIO
from paimon.ports.snapshots import PublishOutcome


def assemble(files: FileIO, clock: Clock, ids: Ids, random: Random) -> Engine:
    """One process's engine."""
    return Engine(
        files=files,
        formats={"avro": AvroFormat()},
        records=AvroRecordIO(),
        snapshots=FileSnapshotCommit(files),
        clock=clock,
        ids=ids,
        random=random,
        executor=SerialExecutor(),
        temp=LocalTempStore(),
        observer=SilentObserver(),
        cache=LruCache(),
    )


Patches = list[tuple[Any, str, Any]]


@contextmanager
def planted(mistake: str) -> Iterator[None]:
    """The library with this mistake in it."""
    patches = MISTAKES[mistake]()
    kept = [(where, name, getattr(where, name)) for where, name, _ in patches]
    for where, name, wrong in patches:
        setattr(where, name, wrong)
    try:
        yield
    finally:
        for where, name, right in kept:
            setattr(where, name, right)


def _overwrites() -> Patches:
    def publish(self: FileSnapshotCommit, paths: TablePaths, snapshot: Snapshot, base: object) -> PublishOutcome:
        self.files.replace(paths.snapshot(snapshot.id), snapshot_to_json(snapshot))
        return PublishOutcome.PUBLISHED

    return [(FileSnapshotCommit, "publish", publish)]


def _exists_is_lost() -> Patches:
    def publish(engine: Engine, table: Any, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
        outcome = engine.snapshots.publish(table.paths, snapshot, base)
        return PublishOutcome.LOST if outcome is PublishOutcome.UNKNOWN else outcome

    return [(attempt, "publish", publish)]


def _unknown_is_published() -> Patches:
    right = FileSnapshotCommit.publish

    def publish(self: FileSnapshotCommit, paths: TablePaths, snapshot: Snapshot, base: Any) -> PublishOutcome:
        try:
            outcome = right(self, paths, snapshot, base)
        except StorageError:
            return PublishOutcome.PUBLISHED
        return PublishOutcome.PUBLISHED if outcome is PublishOutcome.UNKNOWN else outcome

    return [(FileSnapshotCommit, "publish", publish)]


def _no_look_back() -> Patches:
    return [(publishing, "_confirmed", lambda *_: PublishOutcome.PUBLISHED)]


def _forgets_its_commits() -> Patches:
    return [
        (commits, "happened", lambda *_: False),
        (attempt.Attempts, "_done_by_twin", lambda *_: None),
    ]


def _no_conflicts() -> Patches:
    nothing = [(commits, name, lambda *_: None) for name in ("check_conflicts", "check_vectors", "check_overtaken")]
    return [*nothing, (commits, "needs_check", lambda *_: False)]


def _believes_the_hint() -> Patches:
    def latest(engine: Engine, paths: TablePaths) -> Snapshot | None:
        try:
            return find_snapshot(engine, paths, int(engine.files.read(paths.latest_hint)))
        except NotFound:
            return None

    return [(attempt, "latest_snapshot", latest)]


def _keeps_the_head() -> Patches:
    right = attempt.latest_snapshot

    def latest(engine: Engine, paths: TablePaths) -> Snapshot | None:
        head = engine.cache.get("head")
        if head is None:
            head = right(engine, paths)
            engine.cache.put("head", head, 1)
        return head  # type: ignore[return-value]

    return [(attempt, "latest_snapshot", latest)]


def _numbers_begin_anew() -> Patches:
    right = restoring.Restoring.state_of

    def state_of(self: Any, *given: Any) -> Any:
        found = right(self, *given)
        return evolve(found, next_sequence=dict.fromkeys(found.next_sequence, 0))

    return [(restoring.Restoring, "state_of", state_of)]


def _expires_what_is_tagged() -> Patches:
    return [(holders, "_tag_holders", lambda *_: [])]


def _expires_what_is_held() -> Patches:
    return [(leavings, "held_files", lambda engine, held, names, partitions=None: np.zeros(len(names), bool))]


def _cleans_what_is_young() -> Patches:
    right = orphans.remove_orphans
    return [(paimon.maintain, "remove_orphans", lambda e, t, _: right(e, t, e.clock.now_millis() + 1))]


def _cleans_what_tags_hold() -> Patches:
    right = orphans.all_holders
    return [(orphans, "all_holders", lambda *given: [h for h in right(*given) if "/snapshot/" in h.path])]


MISTAKES: Mapping[str, Callable[[], Patches]] = {
    "a snapshot is overwritten": _overwrites,
    "a lost answer is a lost race": _exists_is_lost,
    "an unknown outcome is a success": _unknown_is_published,
    "no look back after a put": _no_look_back,
    "commits are not known again": _forgets_its_commits,
    "conflicts are not looked for": _no_conflicts,
    "a hint is believed": _believes_the_hint,
    "a head is kept": _keeps_the_head,
    "sequence numbers begin anew": _numbers_begin_anew,
    "tags do not hold": _expires_what_is_tagged,
    "later snapshots do not hold": _expires_what_is_held,
    "young files are cleaned": _cleans_what_is_young,
    "the cleaner knows no tags": _cleans_what_tags_hold,
}
