"""Commit what writers prepared, and return once reads show the rows. All methods of `Table` that write rows use it.

Invariant: if reads skip level 0 (deletion vectors, first-row), a commit is acknowledged only when none of its rows is
on level 0; see `row_visibility`. For other tables a lost compaction is reported, and its files are deleted.
"""

# A write is acknowledged only when its rows are what a reader sees. Two things can stand between a published snapshot
# and that.
#
# Late rows. A writer numbers its rows after the rows of the snapshot that it read. If others commit to the bucket
# first, with the same or larger numbers, the merge takes their older commits for the newer rows:
#
#     snapshot 5: largest number 10      writer A writes key 1 as number 11
#     snapshot 6: key 1 is number 11     A commits: readers would still see the row of snapshot 6
#
# So the plan of the change (`plan_change`) raises LateRowsFound with the first free numbers. The files of level 0 are
# written again with higher numbers, and the commit is tried again. Rows, kinds and the distance between two numbers
# stay, also in the input changelog. Compactions of these files are dropped, because they have the old numbers; a later
# compaction does the same work. From the second try on, 2**16, 2**32, 2**40 numbers are left free, so that writers who
# did not see these rows cannot use them first. Above `commit.late-rows.max-size` the rows stay as they are, as in Java.
#
# Hidden rows. Where reads skip level 0 (deletion vectors, first-row), rows are visible only after a compaction. Then
# `commit` gets the planner of `row_visibility.py`, which plans a lost compaction again until reads show the rows. For
# other tables a lost compaction changes nothing that readers see: it is reported, and its files are deleted.

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, takewhile

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from paimon.domain.commit.conflicts.other_commits import BucketKey, LateRowsFound, list_numbered_files
from paimon.domain.commit.entries import find_oldest
from paimon.domain.commit.message import CommitMessage, CompactIncrement, DataIncrement
from paimon.domain.commit.plan_change import SafeSnapshot
from paimon.domain.commit.request import CommitRequest, CommitResult
from paimon.domain.errors import (
    CommitConflict,
    CommitOverwritten,
    CommitUncertain,
    CorruptTable,
    InvalidRequest,
    PaimonError,
    Unsupported,
)
from paimon.domain.manifest.entries import DataFileMeta, FileKind, ManifestEntry
from paimon.domain.scan.read_rules import ReadRules
from paimon.domain.scan.scan_plan import ScanKind
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon.domain.types.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from paimon.domain.undo import undo_on_failure
from paimon.operations.commit.commit import call_callbacks_again, commit
from paimon.operations.commit.history import iterate_user_snapshots
from paimon.operations.commit.prepared_files import abort, abort_on_refusal, list_prepared_paths
from paimon.operations.commit.publish import is_detached
from paimon.operations.data_files.read_data_file import Bucket, read_data_file
from paimon.operations.data_files.write_data_files import FileLayout, RollingFiles
from paimon.operations.metadata.manifests import read_manifest, read_manifest_list
from paimon.operations.metadata.snapshots import find_snapshot
from paimon.operations.table_context import TableContext
from paimon.operations.write.route import Address
from paimon.operations.write.row_visibility import (
    HiddenFiles,
    RowVisibilityPlanner,
    collect_written_level_0,
    discard_compactions,
)

_GAP_BITS, _MOST_GAP_BITS = 16, 40
"""How many numbers are left free at the second, third, … try to commit late rows, as a power of 2."""


def commit_rows(context: TableContext, request: CommitRequest, safe: SafeSnapshot | None = None) -> CommitResult:
    """Commit, and return once reads show the rows; CommitNotVisible: committed, but not compacted."""
    if not request.renumbers or not _orders_by_number(context.table):
        return _commit_once(context, evolve(request, renumbers=False), safe)
    return _commit_as_newest(context, request, safe)


def must_show_rows(table: TableDefinition) -> bool:
    """Return whether a commit must leave no file on level 0: reads skip level 0, and no option allows a delay."""
    options = table.options
    waits = options.write_only or not options.lookup_wait or options.lookup_compact_interval > 1
    return ReadRules.of(table, ScanKind.ALL).hides_level_0 and not waits


def _orders_by_number(table: TableDefinition) -> bool:
    """Return whether sequence numbers decide which row of a key is the newest; otherwise columns of the user do."""
    return bool(table.schema.primary_keys) and not table.options.sequence_fields


def _commit_once(context: TableContext, request: CommitRequest, safe: SafeSnapshot | None) -> CommitResult:
    if not must_show_rows(context.table):
        done = commit(context, request, safe)
        if done.lost_compaction is not None and not isinstance(done.lost_compaction, CommitUncertain):
            discard_compactions(context, request.messages, request.commit_user, min(done.snapshot_ids))
        return done

    def plans(published: Snapshot) -> RowVisibilityPlanner:
        """Return the planner that makes the rows of the published snapshot visible."""
        return RowVisibilityPlanner(context, request, collect_written_level_0(request.messages), published)

    done = commit(context, request, safe, plans)
    if done.already_committed:
        show_rows(context, request)
    return done


def _commit_as_newest(context: TableContext, request: CommitRequest, safe: SafeSnapshot | None) -> CommitResult:
    """Commit rows so that they are newer than all rows that were committed before.

    Rows that would lose are written again with higher numbers, up to a size. From the second time on, numbers are left
    free, so that other writers who did not see these rows cannot use them first.
    """
    given = request
    for retries in count():
        with abort_on_refusal(context, () if request is given else request.messages, request.commit_user, None):
            try:
                done = _commit_once(context, request, safe)
                break
            except LateRowsFound as late:
                request = _renumber(context, request, late, retries)
    if request.messages is given.messages:
        return done
    if done.already_committed:
        abort(context, request.messages, request.commit_user)
    drops_compaction = any(m.compact != CompactIncrement() for m in given.messages) and len(done.snapshot_ids) == 1
    if drops_compaction and done.lost_compaction is None:
        reason = f"Table {context.table.table_name!r}: others committed rows of the same buckets before this write."
        return evolve(done, lost_compaction=CommitConflict(reason))
    return done


def _renumber(context: TableContext, request: CommitRequest, late: LateRowsFound, retries: int) -> CommitRequest:
    """Return the request with late rows written again; above the limit they stay as they are, as in Java."""
    if _count_late_bytes(request.messages, late.first_numbers) > context.options.commit_late_rows_max_bytes:
        context.engine.observer.count("commit.late_rows_kept", 1)
        return evolve(request, renumbers=False)
    gap = 1 << min(_GAP_BITS * retries, _MOST_GAP_BITS) if retries else 0
    numbers = {key: number + gap for key, number in late.first_numbers.items()}
    return evolve(request, messages=_renumber_messages(context, request.messages, numbers))


def join_messages(context: TableContext, messages: Sequence[CommitMessage]) -> list[CommitMessage]:
    """Return one message for each bucket of a primary-key table that several writers wrote.

    A later message has the newer rows. Where its sequence numbers are not larger, its files are written again, whatever
    their size: nothing else orders the rows of one commit. If that fails, the files of all messages are deleted.
    """
    joined: dict[tuple[bytes, int, int], CommitMessage] = {}

    def undo() -> None:
        context.files.delete(list_prepared_paths(context.table, [*joined.values(), *messages]))

    with undo_on_failure(undo):
        for message in messages:
            key = message.partition, message.bucket, message.total_buckets
            before = joined.get(key)
            joined[key] = message if before is None else _join_messages(context, before, message)
    return list(joined.values())


def _join_messages(context: TableContext, before: CommitMessage, message: CommitMessage) -> CommitMessage:
    older, newer = (list_numbered_files(m.data.new_files) for m in (before, message))
    free = 1 + max((f.max_sequence_number for f in older), default=-1)
    if newer and min(f.min_sequence_number for f in newer) < free:
        (message,) = _renumber_messages(context, [message], {(message.partition, message.bucket): free})
    data = DataIncrement(
        new_files=(*before.data.new_files, *message.data.new_files),
        changelog_files=(*before.data.changelog_files, *message.data.changelog_files),
    )
    return evolve(before, data=data, numbered_after=find_oldest([before.numbered_after, message.numbered_after]))


def _count_late_bytes(messages: Sequence[CommitMessage], first_numbers: Mapping[BucketKey, int]) -> int:
    """Return the size of the files that `_renumber_messages` writes again."""
    late = [m for m in messages if (m.partition, m.bucket) in first_numbers]
    files = (f for m in late for f in (*list_numbered_files(m.data.new_files), *m.data.changelog_files))
    return sum(file.file_size for file in files)


def _renumber_messages(
    context: TableContext, messages: Sequence[CommitMessage], first_numbers: Mapping[BucketKey, int]
) -> list[CommitMessage]:
    """Return the messages with new level-0 files in the buckets of `first_numbers`; their old files are deleted."""
    late = [m for m in messages if (m.partition, m.bucket) in first_numbers]
    made: list[CommitMessage] = []

    def undo() -> None:
        context.files.delete(list_prepared_paths(context.table, made, _list_names(late)))

    with undo_on_failure(undo):
        renumber = partial(_renumber_bucket, context.for_tasks(len(late)), first_numbers)
        made += context.engine.executor.map(renumber, late, partial(_delete_renumbered, context, _list_names(late)))
    replacements = {(m.partition, m.bucket): m for m in made}
    context.files.delete(list_prepared_paths(context.table, late, _list_names(made)))
    context.engine.observer.count("commit.late_files", len(made))
    return [replacements.get((m.partition, m.bucket), m) for m in messages]


def _delete_renumbered(context: TableContext, kept: Collection[str], message: CommitMessage) -> None:
    context.files.delete(list_prepared_paths(context.table, [message], kept))


def _list_names(messages: Sequence[CommitMessage]) -> set[str]:
    """Return the names of the written files and index files of messages."""
    files = {f.file_name for m in messages for f in (*m.data.new_files, *m.data.changelog_files)}
    return files | {e.file_name for m in messages for e in m.data.new_index_files}


def _renumber_bucket(
    context: TableContext, first_numbers: Mapping[BucketKey, int], message: CommitMessage
) -> CommitMessage:
    files, changelog = list_numbered_files(message.data.new_files), message.data.changelog_files
    offset = first_numbers[message.partition, message.bucket] - min(f.min_sequence_number for f in files)
    split = DataSplit(
        0, message.partition, message.bucket, message.total_buckets, message.bucket_path, (*files, *changelog)
    )
    bucket = Bucket.of(context, split)
    others = [file for file in message.data.new_files if file.level != 0]
    made: list[DataFileMeta] = []

    def undo() -> None:
        written = evolve(message, data=DataIncrement(made), compact=CompactIncrement())
        context.files.delete(list_prepared_paths(context.table, [written]))

    with undo_on_failure(undo):
        for file in files:
            made.append(_renumber_file(bucket, file, FileLayout.of(context.table), offset))
        for file in changelog:
            made.append(_renumber_file(bucket, file, FileLayout.of_changelog(context.table), offset))
    data = evolve(message.data, new_files=[*made[: len(files)], *others], changelog_files=made[len(files) :])
    return evolve(message, data=data, compact=CompactIncrement())


def _renumber_file(bucket: Bucket, file: DataFileMeta, layout: FileLayout, offset: int) -> DataFileMeta:
    context = bucket.context
    rolling = RollingFiles(context.engine, layout.without_limits(), bucket.path)
    with undo_on_failure(rolling.abort):
        for batch in read_data_file(bucket, file, (*context.schema.fields, SEQUENCE_NUMBER, VALUE_KIND)):
            rows = pa.Table.from_batches([batch])
            place = rows.column_names.index(SEQUENCE_NUMBER.name)
            numbers = pc.add(rows.column(place), pa.scalar(offset, pa.int64()))
            rolling.write(rows.set_column(place, rows.schema.field(place), numbers))
        (made,) = rolling.close()
    return made


def repeat_commit(context: TableContext, request: CommitRequest) -> tuple[str, ...]:
    """Repeat the steps after a commit that may be missing; CommitNotVisible: committed, not compacted."""
    show_rows(context, request)
    return call_callbacks_again(context, request)


def show_rows(context: TableContext, request: CommitRequest, hidden: HiddenFiles | None = None) -> None:
    """Compact the level-0 files of an earlier commit if reads do not show them yet.

    The process of the commit may have died between its two snapshots. The compaction is published with the batch
    identifier: with the commit identifier, the identifiers of the user might not be in ascending order any more.
    Without `hidden`, the level-0 files are read from the snapshots of the commit. CommitNotVisible: the compaction
    failed too often.
    """
    if not must_show_rows(context.table):
        return
    hidden = _level_0_of(context, request) if hidden is None else hidden
    if not hidden:
        return
    plans = RowVisibilityPlanner(context, request, hidden)
    messages: Sequence[CommitMessage] = plans.plan_next((), None)
    while messages:
        try:
            commit(context, CommitRequest(messages, request.commit_user))
            return
        except (CommitOverwritten, InvalidRequest, Unsupported):
            raise
        except PaimonError as lost:
            messages = plans.plan_next(messages, lost)


def _level_0_of(context: TableContext, request: CommitRequest) -> dict[Address, set[str]]:
    """Return the level-0 files that the snapshots of a commit added, by bucket."""
    found: dict[Address, set[str]] = {}
    for snapshot in _written_snapshots(context, request):
        for entry in _read_delta(context, snapshot):
            if entry.kind is FileKind.ADD and entry.file.level == 0 and entry.bucket >= 0:
                found.setdefault(Address(entry.partition, entry.bucket), set()).add(entry.file.file_name)
    return found


def _read_delta(context: TableContext, snapshot: Snapshot) -> list[ManifestEntry]:
    try:
        metas = read_manifest_list(context, snapshot.delta_manifest_list)
        return [entry for meta in metas for entry in read_manifest(context, meta.file_name)]
    except CorruptTable:
        if find_snapshot(context, snapshot.id) is not None:
            raise
        return []  # the snapshot expired during the read


def _written_snapshots(context: TableContext, request: CommitRequest) -> Iterator[Snapshot]:
    """Yield the snapshots of a commit except compactions; the identifiers of a user are in ascending order."""
    wanted, batch = request.commit_identifier, request.commit_identifier == BATCH_COMMIT_IDENTIFIER
    candidates = iterate_user_snapshots(context, request.commit_user, batch=batch)
    for snapshot in takewhile(lambda s: batch or s.commit_identifier >= wanted, candidates):
        is_its_own = snapshot.commit_identifier == wanted and snapshot.commit_kind is not CommitKind.COMPACT
        if is_its_own and not is_detached(context, snapshot):
            yield snapshot
