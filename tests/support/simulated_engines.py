"""Engines for the simulation, and bugs to plant into the library. Each is of a kind that lost data before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from attrs import evolve

import paimon.adapters.snapshots.commits as snapshot_commits
import paimon.domain.commit.conflicts.files as conflicting_files
import paimon.domain.commit.plan_change as planning
import paimon.maintain
import paimon.operations.commit.attempts as attempts
import paimon.operations.commit.commit as commits
import paimon.operations.commit.manifest_writer as manifest_writer
import paimon.operations.commit.publish as publishing
import paimon.operations.commit.publish as withdraw
import paimon.operations.compact.compact as compacting
import paimon.operations.compact.plan_bucket as work
import paimon.operations.expire.expire_snapshots as expiry
import paimon.operations.expire.orphan_files as orphans
import paimon.operations.metadata.snapshots as snapshot_listing
import paimon.operations.read.time_travel as time_travel
import paimon.operations.write.commit_rows as commit_rows
import paimon.operations.write.restore as restoring
from paimon.adapters.cache import LruCache
from paimon.adapters.executors.local import SerialExecutor
from paimon.adapters.formats.avro import AvroFormat
from paimon.adapters.formats.records import AvroRecordIO
from paimon.adapters.observers import SilentObserver
from paimon.adapters.snapshots.commits import PutIfAbsentSnapshotCommit
from paimon.adapters.temp.local import LocalTempStore
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import CorruptTable, NotFound, StorageError
from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.snapshot import Snapshot, snapshot_to_json
from paimon.operations.expire import files_to_delete, references
from paimon.operations.metadata.manifests import read_data_manifests, read_live_entries
from paimon.operations.metadata.schemas import schema_ids
from paimon.operations.metadata.snapshots import find_snapshot, find_tag, latest_snapshot, tag_names
from paimon.operations.metadata.storage_time import OlderThan
from paimon.operations.table_context import TableContext
from paimon.ports.effects import Clock, Ids, Random
from paimon.ports.engine import Engine
from paimon.ports.files import FileIO, PutOutcome
from paimon.ports.snapshots import PublishOutcome
from support.bucket_mistakes import CROSS_PARTITION_MISTAKES, DYNAMIC_MISTAKES, POSTPONED_MISTAKES, Patches


def assemble(files: FileIO, clock: Clock, ids: Ids, random: Random) -> Engine:
    """Return the engine of one simulated process."""
    return Engine(
        files=files,
        formats={"avro": AvroFormat()},
        records=AvroRecordIO(),
        snapshots=PutIfAbsentSnapshotCommit(files),
        clock=clock,
        ids=ids,
        random=random,
        executor=SerialExecutor(),
        temp=LocalTempStore(),
        observer=SilentObserver(),
        cache=LruCache(),
    )


@contextmanager
def plant_mistake(mistake: str) -> Iterator[None]:
    """Run the body with this mistake in the library."""
    patches = MISTAKES[mistake]()
    original = [(where, name, getattr(where, name)) for where, name, _ in patches]
    for where, name, wrong in patches:
        setattr(where, name, wrong)
    try:
        yield
    finally:
        for where, name, right in original:
            setattr(where, name, right)


def _overwrite_snapshots() -> Patches:
    def publish(self: PutIfAbsentSnapshotCommit, paths: TablePaths, snapshot: Snapshot, base: object) -> PublishOutcome:
        self.files.replace(paths.snapshot(snapshot.id), snapshot_to_json(snapshot))
        return PublishOutcome.PUBLISHED

    return [(PutIfAbsentSnapshotCommit, "publish", publish)]


def _take_unknown_for_lost() -> Patches:
    def publish(context: TableContext, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
        outcome = context.engine.snapshots.publish(context.paths, snapshot, base)
        return PublishOutcome.LOST if outcome is PublishOutcome.UNKNOWN else outcome

    return [(attempts, "publish", publish)]


def _take_unknown_for_published() -> Patches:
    right = PutIfAbsentSnapshotCommit.publish

    def publish(self: PutIfAbsentSnapshotCommit, paths: TablePaths, snapshot: Snapshot, base: Any) -> PublishOutcome:
        try:
            outcome = right(self, paths, snapshot, base)
        except StorageError:
            return PublishOutcome.PUBLISHED
        return PublishOutcome.PUBLISHED if outcome is PublishOutcome.UNKNOWN else outcome

    return [(PutIfAbsentSnapshotCommit, "publish", publish)]


def _skip_confirmation() -> Patches:
    return [(publishing, "_confirm_publication", lambda *_: PublishOutcome.PUBLISHED)]


def _ignore_earlier_commits() -> Patches:
    return [
        (commits, "is_already_committed", lambda *_: False),
        (attempts, "_find_same_commit", lambda *_: None),
    ]


def _skip_conflict_checks() -> Patches:
    checks = ("check_conflicts", "check_vectors", "check_dropped_deletes", "check_level_order")
    nothing = [(planning, name, lambda *_: None) for name in checks]
    return [*nothing, (planning, "needs_check", lambda *_: False)]


def _commit_by_hint() -> Patches:
    """A committer trusts the hint, and loses every race after a failed write of a hint."""

    def latest(context: TableContext) -> Snapshot | None:
        try:
            return find_snapshot(context, int(context.files.read(context.paths.latest_hint)))
        except (NotFound, ValueError):
            return None

    return [(attempts, "latest_snapshot", latest)]


def _read_by_hint() -> Patches:
    """A reader trusts the hint: a hint that could not be written hides acknowledged commits."""
    right = time_travel.latest_snapshot

    def latest(context: TableContext) -> Snapshot | None:
        try:
            hinted = find_snapshot(context, int(context.files.read(context.paths.latest_hint)))
        except (NotFound, ValueError):
            hinted = None
        return hinted or right(context)

    return [(time_travel, "latest_snapshot", latest)]


def _cache_latest_snapshot() -> Patches:
    right = attempts.latest_snapshot

    def latest(context: TableContext) -> Snapshot | None:
        head = context.engine.cache.get("head")
        if head is None:
            head = right(context)
            context.engine.cache.put("head", head, 1)
        return head  # type: ignore[return-value]

    return [(attempts, "latest_snapshot", latest)]


def _restart_sequence_numbers() -> Patches:
    right = restoring.BucketStateReader.read_states

    def state_of(self: Any, *given: Any) -> Any:
        found = right(self, *given)
        return evolve(found, next_sequence=dict.fromkeys(found.next_sequence, 0))

    return [(restoring.BucketStateReader, "read_states", state_of)]


def _ignore_tags_in_expiry() -> Patches:
    return [(references, "_tag_references", lambda *_: [])]


def _ignore_references_in_expiry() -> Patches:
    return [(files_to_delete, "find_referenced_files", lambda references, names, *rest: np.zeros(len(names), bool))]


def _remove_young_files() -> Patches:
    right = orphans.remove_orphans
    return [(paimon.maintain, "remove_orphans", lambda c, *_, **__: right(c, OlderThan(0), allow_young=True))]


def _ignore_tags_in_cleaning() -> Patches:
    right = orphans.read_all_references
    return [(orphans, "read_all_references", lambda *given: [r for r in right(*given) if "/snapshot/" in r.path])]


def _skip_unreadable(right: Callable[..., Any]) -> Callable[..., Any]:
    """Return the tags that can be read, without an error for the others."""

    def read_tags(context: TableContext) -> list[Any]:
        found = []
        for name in tag_names(context):
            try:
                found.append(right(context, name))
            except (StorageError, CorruptTable):
                continue
        return [tag for tag in found if tag is not None]

    return read_tags


def _ignore_unreadable_tags() -> Patches:
    return [(references, "tags", _skip_unreadable(find_tag))]


def _ignore_errors_in_cleaning() -> Patches:
    right = orphans.find_referenced_files

    def find_referenced_files(found: Any, names: Any, again: Any) -> Any:
        referenced = np.zeros(len(names), dtype=bool)
        for reference in found:
            try:
                referenced |= right([reference], names, list)
            except (StorageError, CorruptTable):
                continue
        return referenced

    return [(orphans, "find_referenced_files", find_referenced_files)]


def _drop_deletes_early() -> Patches:
    """A compaction drops all deletes, and its commit does not check which rows need them."""
    right = work.plan_unit
    return [
        (work, "plan_unit", lambda *given: evolve(right(*given), drop_deletes=True)),
        (planning, "check_dropped_deletes", lambda *_: None),
    ]


def _replace_unread_files() -> Patches:
    right = compacting.compact_bucket

    def compact_bucket(context: TableContext, todo: Any) -> CommitMessage:
        message = right(context, todo)
        head = latest_snapshot(context)
        assert head is not None
        known = {f.file_name for f in message.compact.compact_before}
        live = read_live_entries(context, read_data_manifests(context, head))
        place = message.partition, message.bucket
        concurrent = [e.file for e in live if (e.partition, e.bucket) == place and e.file.file_name not in known]
        before = (*message.compact.compact_before, *concurrent)
        return evolve(message, compact=evolve(message.compact, compact_before=before))

    return [(compacting, "compact_bucket", compact_bucket)]


def _hide_acknowledged_rows() -> Patches:
    """A lost compaction is not planned again, although reads skip level 0."""
    return [(commit_rows, "must_show_rows", lambda table: False)]


def _delete_data_before_snapshots() -> Patches:
    """Expiry deletes data files before the snapshot files that name them."""
    right = expiry._expire

    def expire(context: TableContext, *given: Any) -> Any:
        return right(context.with_engine(evolve(context.engine, files=_DataFirstFiles(context.files))), *given)

    return [(expiry, "_expire", expire)]


class _DataFirstFiles:
    """Delays deletions of snapshot files until the next deletion of data files."""

    def __init__(self, files: FileIO) -> None:
        self._files = files
        self._delayed: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def delete(self, paths: Any) -> None:
        if all("/snapshot/" in path for path in paths):
            self._delayed += paths
            return
        self._files.delete(paths)
        self._files.delete(self._delayed)

    def read(self, path: str, *limit: int) -> bytes:
        if path in self._delayed:
            raise NotFound("file", path)
        return self._files.read(path, *limit)


def _skip_bucket_counts() -> Patches:
    return [(planning, "has_other_bucket_count", lambda change, options: False)]


def _ignore_rows_in_rescales() -> Patches:
    return [(conflicting_files, "_check_replaced_as_a_whole", lambda live, change: None)]


def _skip_table_confirmation() -> Patches:
    return [(attempts, "confirm_same_table", lambda *_: None)]


def _trust_open_tables() -> Patches:
    """A commit looks neither before nor after its publication whether its table is there."""
    return [
        (attempts, "list_schemas_of_table", lambda c: schema_ids(c.engine, c.paths)),
        (attempts, "confirm_same_table", lambda *_: None),
        (snapshot_listing, "check_table_exists", lambda *_: None),
    ]


def _leave_refused_snapshots() -> Patches:
    return [(withdraw, "_take_back", lambda *_: withdraw._Left.NOTHING)]


def _flush_no_prepared_files() -> Patches:
    return [(manifest_writer, "_list_added_paths", lambda *_: [])]


def _acknowledge_unflushed_snapshots() -> Patches:
    outcomes = {**snapshot_commits._OUTCOMES, PutOutcome.NOT_DURABLE: PublishOutcome.PUBLISHED}
    return [(snapshot_commits, "_OUTCOMES", outcomes)]


def _trust_visible_snapshots() -> Patches:
    return [(publishing, "is_durable", lambda *_: True)]


MISTAKES: Mapping[str, Callable[[], Patches]] = {
    "a snapshot is overwritten": _overwrite_snapshots,
    "an unknown outcome is a lost race": _take_unknown_for_lost,
    "an unknown outcome is published": _take_unknown_for_published,
    "a put is not confirmed": _skip_confirmation,
    "a repeated commit is not recognized": _ignore_earlier_commits,
    "conflicts are not checked": _skip_conflict_checks,
    "a committer trusts the hint": _commit_by_hint,
    "a reader trusts the hint": _read_by_hint,
    "the latest snapshot is cached": _cache_latest_snapshot,
    "sequence numbers restart": _restart_sequence_numbers,
    "expiry ignores tags": _ignore_tags_in_expiry,
    "expiry ignores later snapshots": _ignore_references_in_expiry,
    "the cleaner removes young files": _remove_young_files,
    "the cleaner ignores tags": _ignore_tags_in_cleaning,
    "an unreadable tag is ignored": _ignore_unreadable_tags,
    "the cleaner ignores errors": _ignore_errors_in_cleaning,
    "deletes are dropped too early": _drop_deletes_early,
    "a compactor replaces files that it did not read": _replace_unread_files,
    "a lost compaction hides rows": _hide_acknowledged_rows,
    "data files are deleted before their snapshot": _delete_data_before_snapshots,
    "a commit does not check the number of buckets": _skip_bucket_counts,
    "a rescale does not see concurrent rows": _ignore_rows_in_rescales,
    "a commit does not confirm its table": _skip_table_confirmation,
    "a commit trusts its open table": _trust_open_tables,
    "a refused snapshot is not taken back": _leave_refused_snapshots,
    "a commit flushes no prepared file": _flush_no_prepared_files,
    "a snapshot that is not flushed is acknowledged": _acknowledge_unflushed_snapshots,
    "a repeated commit is not flushed": _trust_visible_snapshots,
    **DYNAMIC_MISTAKES,
    **CROSS_PARTITION_MISTAKES,
    **POSTPONED_MISTAKES,
}
