"""Find the rows of a commit that reads do not show, and plan the compactions that make them visible.

Reads of first-row tables and of tables with deletion vectors skip level 0. A row is visible only after a compaction
moved it to a higher level. Invariant: each plan uses the newest snapshot. A compaction that still fits is kept; only
the buckets of the others are compacted again.
"""

# A commit whose rows are on level 0 runs in a circle until none of them is hidden:
#
#     published   plan_next(messages, None)   the compaction of the writer takes all written files: try it first
#     lost        plan_next(messages, error)  wait as a commit does; read the newest snapshot and, bucket by bucket,
#                                               - no written file on level 0 any more: another compaction did it
#                                               - our compaction still fits: keep it
#                                               - else: delete its files, and compact the bucket again
#     published   done                        or CommitNotVisible, when the retries are used up
#
# Each plan uses the newest snapshot, so an expired file, or one that another compaction replaced, leads to another plan
# and not to an error. After an uncertain commit no file is deleted any more.
#
# The circle ends. A compaction that is planned here takes all files of level 0, so it can only lose to another
# compaction of the bucket. If that one was planned after the rows were published, it makes them visible, too. The last
# try is not checked against new rows (`is_last_try`), so that writers cannot delay it for ever.

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from attrs import evolve

from paimon.domain.commit.conflicts.compactions import check_dropped_deletes, check_level_order
from paimon.domain.commit.conflicts.files import check_conflicts, check_vectors
from paimon.domain.commit.entries import compact_change
from paimon.domain.commit.message import CommitMessage, CompactIncrement, DataIncrement
from paimon.domain.commit.request import CommitRequest
from paimon.domain.commit.retry import RetryPolicy
from paimon.domain.errors import CommitConflict, CommitNotVisible, CommitUncertain, PaimonError, Unsupported
from paimon.domain.manifest.entries import DataFileMeta, FileKind, ManifestEntry
from paimon.domain.scan.assemble import BucketFiles, BucketKey
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.undo import undo_on_failure
from paimon.operations.commit.prepared_files import abort, delete_prepared, list_prepared_paths
from paimon.operations.compact.compact_bucket import compact_bucket
from paimon.operations.compact.plan_bucket import BucketWork, check_compactable, plan_bucket_work
from paimon.operations.data_files.deletion_vectors import BucketVectors, get_bucket_vectors, read_bucket_vectors
from paimon.operations.metadata.schemas import latest_schema
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.table_context import TableContext
from paimon.operations.write.inline import without_changelog_producer
from paimon.operations.write.restore import BucketStateReader, BucketStates
from paimon.operations.write.route import Address
from paimon.ports.cancellation import shielded

HiddenFiles = Mapping[Address, Collection[str]]
"""By bucket, the names of the level-0 files whose rows must become visible."""
_Vectors = Mapping[BucketKey, BucketVectors]
_Task = tuple[TableContext, BucketWork]


def collect_written_level_0(messages: Iterable[CommitMessage]) -> HiddenFiles:
    """Return the level-0 files that the messages add; postponed files wait for their own compaction."""
    return _group_level_0((Address(m.partition, m.bucket), m.data.new_files) for m in messages if m.bucket >= 0)


class RowVisibilityPlanner:
    """Plan compactions until reads show the rows of one commit: a state machine.

    The compactions of the request are tried first. `hidden` has the files whose rows must become visible; `published`
    is the snapshot of the rows, if this process published it. `planned_on` is the id of the newest snapshot at the last
    plan.
    """

    def __init__(
        self,
        context: TableContext,
        request: CommitRequest,
        hidden: HiddenFiles,
        published: Snapshot | None = None,
    ) -> None:
        self._context = context
        self._request = request
        self._hidden = hidden
        self._published = published
        self._policy = RetryPolicy.of(context.options)
        self._started = context.engine.clock.now_millis()
        self._attempts = 0
        self._is_uncertain = False
        self._compacted: list[CommitMessage] = []
        self.planned_on: int | None = None

    @property
    def is_last_try(self) -> bool:
        """Whether no other plan follows, so that only another compaction of the same files may prevent this one."""
        return 0 < self._attempts >= self._policy.max_retries

    def plan_next(self, messages: Sequence[CommitMessage], lost: PaimonError | None) -> Sequence[CommitMessage]:
        """Return the messages whose compactions are published next; see `CompactionPlans`.

        There are none if no row is hidden any more, or if the table cannot be compacted. `lost` is the reason why the
        last plan was not published; None for the first plan. Raise CommitNotVisible if the retry policy allows no other
        attempt.
        """
        if lost is None and self._covers(messages, self._hidden):
            return messages
        left = [m for m in messages if m.compact != CompactIncrement()]
        while True:
            is_exhausted = lost is not None and not self._wait_for_retry(lost)
            try:
                left, tasks = self._plan_on_newest(left)
                if not left and not tasks:
                    return ()
                if not is_exhausted:
                    return (*left, *self._compact(tasks))
            except Unsupported:  # the writer has warned; the rows wait for the compaction of another client
                self._discard(left)
                return ()
            except PaimonError as error:  # a file expired during the read, or the storage failed
                lost = error
            if is_exhausted and lost is not None:
                raise self._not_visible_error(lost) from lost

    def _plan_on_newest(self, messages: list[CommitMessage]) -> tuple[list[CommitMessage], list[_Task]]:
        """Return the compactions that still fit the newest snapshot, and the work in all other buckets."""
        snapshot = latest_snapshot(self._context)
        if snapshot is None:
            return [], []
        self.planned_on = snapshot.id
        addresses = list(dict.fromkeys([*self._hidden, *(Address(m.partition, m.bucket) for m in messages)]))
        restored = BucketStateReader(self._context, snapshot, keeps_files=True).read_states(addresses)
        held = read_bucket_vectors(self._context, snapshot)
        hidden = self._find_hidden(restored)
        kept: dict[Address, CommitMessage] = {}
        for message in messages:
            address = Address(message.partition, message.bucket)
            if self._covers([message], {address: hidden.get(address, ())}) and self._fits(message, restored, held):
                kept[address] = message
        todo = [address for address in hidden if address not in kept]
        if todo:
            check_compactable(self._context, snapshot)
        tasks = [self._plan_task(address, restored, held) for address in todo]
        self._discard([m for m in messages if not any(m is found for found in kept.values())])
        return list(kept.values()), tasks

    def _find_hidden(self, restored: BucketStates) -> HiddenFiles:
        found = {a: set(names) & _names_on_level_0(restored.files.get(a, ())) for a, names in self._hidden.items()}
        return {address: names for address, names in found.items() if names}

    def _covers(self, messages: Iterable[CommitMessage], hidden: HiddenFiles) -> bool:
        """Return whether the compactions of the messages take all of these files."""
        taken = _group_level_0((Address(m.partition, m.bucket), m.compact.compact_before) for m in messages)
        return all(set(names) <= taken.get(address, set()) for address, names in hidden.items())

    def _fits(self, message: CommitMessage, restored: BucketStates, held: _Vectors) -> bool:
        """Return whether a compaction can still be published, according to the conflict checks of the commit."""
        key = Address(message.partition, message.bucket)
        total = restored.total_buckets.get(message.partition, message.total_buckets)
        base = [ManifestEntry(FileKind.ADD, *key, total, f) for f in restored.files.get(key, ())]
        change = compact_change([message])
        try:
            key_types = self._context.table.sorted_key_types
            check_conflicts(base, change, key_types, self._context.options.pk_clustering_override)
            check_vectors(base, held[key].current if key in held else (), change, bucketed=True)
            check_dropped_deletes(base, change, key_types)
            check_level_order(base, change, key_types)
        except CommitConflict:
            return False
        return True

    def _plan_task(self, address: Address, restored: BucketStates, held: _Vectors) -> _Task:
        """Return the work in one bucket, and the table with the columns of all its files."""
        files, context = restored.files[address], self._context
        table = context.table
        if any(f.schema_id > table.schema.id for f in files):
            table = evolve(table, schema=latest_schema(self._context.engine, table.paths) or table.schema)
        if self._request.replaces and _names_on_level_0(files) <= set(self._hidden[address]):
            table = without_changelog_producer(table)
        bucket = BucketFiles(*address, restored.total_buckets[address.partition], files)
        vectors = get_bucket_vectors(held, address)
        context = context.with_table(table)
        return context, plan_bucket_work(context, bucket, False, vectors=vectors)

    def _compact(self, tasks: Sequence[_Task]) -> list[CommitMessage]:
        made: list[CommitMessage] = []
        with undo_on_failure(lambda: self._context.files.delete(list_prepared_paths(self._context.table, made))):
            shared = [(context.for_tasks(len(tasks)), work) for context, work in tasks]
            discard = partial(delete_prepared, self._context)
            for message in self._context.engine.executor.map(_compact_one, shared, discard):
                made.append(message)
        self._compacted += made
        self._context.engine.observer.count("commit.compaction_planned_again", len(made))
        return made

    def _wait_for_retry(self, lost: PaimonError) -> bool:
        """Wait according to the retry policy of the commit, except before the first retry; False if none is allowed."""
        clock = self._context.engine.clock
        self._is_uncertain = self._is_uncertain or isinstance(lost, CommitUncertain)
        if self._policy.gives_up(self._attempts, clock.now_millis() - self._started):
            return False
        if self._attempts:
            clock.sleep_millis(self._policy.wait_millis(self._attempts - 1, self._context.engine.random.uniform()))
        self._attempts += 1
        return True

    def _not_visible_error(self, lost: PaimonError) -> CommitNotVisible:
        ids = () if self._published is None else (self._published.id,)
        return CommitNotVisible(self._request.commit_user, self._request.commit_identifier, ids, lost)

    def _discard(self, messages: Sequence[CommitMessage]) -> None:
        """Delete files of compactions that will not be published, unless in doubt; never raises."""
        if self._is_uncertain:
            return
        own = [m for m in messages if any(m is made for made in self._compacted)]
        others = [m for m in messages if not any(m is made for made in self._compacted)]
        if others and self._published is not None:
            discard_compactions(self._context, others, self._request.commit_user, self._published.id)
        try:
            self._context.files.delete(list_prepared_paths(self._context.table, own))
        except PaimonError:
            self._context.engine.observer.count("commit.orphans", 1)


@shielded()
def discard_compactions(
    context: TableContext, messages: Iterable[CommitMessage], commit_user: str, written: int
) -> None:
    """Delete the compaction results of messages whose rows were just published as snapshot `written`; keep the rows.

    The table is read first. If that fails, the files stay, and no error is raised, because the rows are committed.
    """
    compactions = [evolve(m, data=DataIncrement()) for m in messages]

    def is_published_snapshot(snapshot: Snapshot) -> bool:
        """Return whether this is the snapshot with the rows, whose user may be that of a group."""
        return snapshot.id == written

    try:
        abort(context, compactions, commit_user, is_before=is_published_snapshot)
    except PaimonError:
        context.engine.observer.count("commit.orphans", 1)


def _compact_one(task: _Task) -> CommitMessage:
    return compact_bucket(*task)


def _group_level_0(files: Iterable[tuple[Address, Iterable[DataFileMeta]]]) -> dict[Address, set[str]]:
    """Return the names of the level-0 files of each bucket that has some."""
    found: dict[Address, set[str]] = {}
    for address, bucket_files in files:
        if names := _names_on_level_0(bucket_files):
            found.setdefault(address, set()).update(names)
    return found


def _names_on_level_0(files: Iterable[DataFileMeta]) -> frozenset[str]:
    return frozenset(f.file_name for f in files if f.level == 0)
