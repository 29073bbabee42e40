"""Engines for the simulated world, and mistakes to plant into the library, each of a kind that has cost data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from attrs import evolve

import paimon.operations.commit.attempt as attempt
import paimon.operations.commit.checks.on_base as on_base
import paimon.operations.commit.commit as commits
import paimon.operations.commit.publish as publishing
import paimon.operations.maintain.compact as compacting
import paimon.operations.maintain.retention.expire_snapshots as expiry
import paimon.operations.maintain.retention.holders as holders
import paimon.operations.maintain.retention.leavings as leavings
import paimon.operations.maintain.retention.orphans as orphans
import paimon.operations.maintain.work as work
import paimon.operations.read.time_travel as time_travel
import paimon.operations.write.commit_written as commit_written
import paimon.operations.write.restore as restoring
import paimon.upkeep.maintain
from paimon.adapters.cache import LruCache
from paimon.adapters.executors.serial import SerialExecutor
from paimon.adapters.formats.avro import AvroFormat
from paimon.adapters.formats.records import AvroRecordIO
from paimon.adapters.observers import SilentObserver
from paimon.adapters.snapshots.renaming import FileSnapshotCommit
from paimon.adapters.temp.local import LocalTempStore
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import CorruptTable, NotFound, StorageError
from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.json import snapshot_to_json
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.manifests import data_manifests, live_entries
from paimon.operations.read.snapshots import find_snapshot, find_tag, latest_snapshot, tag_names
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
    nothing = [(on_base, name, lambda *_: None) for name in ("check_conflicts", "check_vectors", "check_overtaken")]
    return [*nothing, (on_base, "needs_check", lambda *_: False)]


def _believes_the_hint() -> Patches:
    """Whoever commits takes the hint for the head, and loses every race where it could not be written."""

    def latest(engine: Engine, paths: TablePaths) -> Snapshot | None:
        try:
            return find_snapshot(engine, paths, int(engine.files.read(paths.latest_hint)))
        except (NotFound, ValueError):
            return None

    return [(attempt, "latest_snapshot", latest)]


def _reads_by_the_hint() -> Patches:
    """Readers take the hint for the head: one that could not be written hides what was acknowledged."""
    right = time_travel.latest_snapshot

    def latest(engine: Engine, paths: TablePaths) -> Snapshot | None:
        try:
            hinted = find_snapshot(engine, paths, int(engine.files.read(paths.latest_hint)))
        except (NotFound, ValueError):
            hinted = None
        return hinted or right(engine, paths)

    return [(time_travel, "latest_snapshot", latest)]


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
    return [(leavings, "held_files", lambda engine, held, names, *rest: np.zeros(len(names), bool))]


def _cleans_what_is_young() -> Patches:
    right = orphans.remove_orphans
    return [(paimon.upkeep.maintain, "remove_orphans", lambda e, t, _: right(e, t, e.clock.now_millis() + 1))]


def _cleans_what_tags_hold() -> Patches:
    right = orphans.all_holders
    return [(orphans, "all_holders", lambda *given: [h for h in right(*given) if "/snapshot/" in h.path])]


def _skipping(right: Callable[..., Any]) -> Callable[..., Any]:
    """What names or holds, one by one, without those that cannot be read."""

    def tolerant(engine: Engine, paths: TablePaths) -> list[Any]:
        found = []
        for name in tag_names(engine, paths):
            try:
                found.append(right(engine, paths, name))
            except (StorageError, CorruptTable):
                continue
        return [tag for tag in found if tag is not None]

    return tolerant


def _takes_unreadable_tags_for_none() -> Patches:
    return [(holders, "tags", _skipping(find_tag))]


def _cleans_on_after_errors() -> Patches:
    right = orphans.held_files

    def held_files(engine: Engine, found: Any, names: Any, again: Any) -> Any:
        held = np.zeros(len(names), dtype=bool)
        for holder in found:
            try:
                held |= right(engine, [holder], names, list)
            except (StorageError, CorruptTable):
                continue
        return held

    return [(orphans, "held_files", held_files)]


def _drops_deletes_early() -> Patches:
    right = work.unit_plan
    return [(work, "unit_plan", lambda *given: evolve(right(*given), drop_deletes=True))]


def _replaces_what_it_did_not_read() -> Patches:
    right = compacting.compact_bucket

    def compact_bucket(engine: Engine, table: Any, todo: Any) -> CommitMessage:
        message = right(engine, table, todo)
        head = latest_snapshot(engine, table.paths)
        assert head is not None
        known = {f.file_name for f in message.compact.compact_before}
        live = live_entries(engine, table, data_manifests(engine, table, head))
        place = message.partition, message.bucket
        meanwhile = [e.file for e in live if (e.partition, e.bucket) == place and e.file.file_name not in known]
        before = (*message.compact.compact_before, *meanwhile)
        return evolve(message, compact=evolve(message.compact, compact_before=before))

    return [(compacting, "compact_bucket", compact_bucket)]


def _hides_what_it_acknowledged() -> Patches:
    """A lost compaction is not planned again, although reads skip level 0."""
    return [(commit_written, "must_show_rows", lambda table: False)]


def _deletes_data_before_snapshots() -> Patches:
    """The order of deletions is turned round: what expiry deletes of metadata waits until its data are gone."""
    right = expiry._expire

    def expire(engine: Engine, *given: Any) -> Any:
        return right(evolve(engine, files=_DataFirst(engine.files)), *given)

    return [(expiry, "_expire", expire)]


class _DataFirst:
    """Holds deletions of snapshots back until data were deleted, or the end of them is plain by the hint."""

    def __init__(self, files: FileIO) -> None:
        self._files = files
        self._late: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def delete(self, paths: Any) -> None:
        if all("/snapshot/" in path for path in paths):
            self._late += paths
            return
        self._files.delete(paths)
        self._files.delete(self._late)

    def read(self, path: str, *limit: int) -> bytes:
        if path in self._late:
            raise NotFound("file", path)
        return self._files.read(path, *limit)


MISTAKES: Mapping[str, Callable[[], Patches]] = {
    "a snapshot is overwritten": _overwrites,
    "a lost answer is a lost race": _exists_is_lost,
    "an unknown outcome is a success": _unknown_is_published,
    "no look back after a put": _no_look_back,
    "commits are not known again": _forgets_its_commits,
    "conflicts are not looked for": _no_conflicts,
    "a hint is believed": _believes_the_hint,
    "readers believe the hint": _reads_by_the_hint,
    "a head is kept": _keeps_the_head,
    "sequence numbers begin anew": _numbers_begin_anew,
    "tags do not hold": _expires_what_is_tagged,
    "later snapshots do not hold": _expires_what_is_held,
    "young files are cleaned": _cleans_what_is_young,
    "the cleaner knows no tags": _cleans_what_tags_hold,
    "an unreadable tag is none": _takes_unreadable_tags_for_none,
    "the cleaner goes on after errors": _cleans_on_after_errors,
    "deletes are dropped too early": _drops_deletes_early,
    "a compactor replaces what it did not read": _replaces_what_it_did_not_read,
    "a lost compaction hides rows": _hides_what_it_acknowledged,
    "data go before their snapshot": _deletes_data_before_snapshots,
}
