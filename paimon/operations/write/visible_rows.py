"""Which rows of a commit reads would not show, and the compactions that show them.

Reads of tables with deletion vectors and of first-row tables skip level 0, so a row counts as written only once a
compaction took its file. Invariant: every plan is made on the newest snapshot; a compaction that still fits is kept,
only the buckets of the others are compacted again.

Progress: a compaction that is planned here takes all of level 0. It loses only to another compaction of the bucket, and
one of those that was planned after the rows were published shows them too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from attrs import evolve

from paimon.domain.commit.conflicts.files import check_conflicts
from paimon.domain.commit.conflicts.overtaken import check_overtaken
from paimon.domain.commit.conflicts.vectors import check_vectors
from paimon.domain.commit.entries import compacted
from paimon.domain.commit.message import CommitMessage, CompactIncrement, DataIncrement
from paimon.domain.errors import CommitConflict, CommitNotVisible, CommitUncertain, PaimonError, Unsupported
from paimon.domain.manifest.entries import DataFileMeta, FileKind, ManifestEntry
from paimon.domain.scan.assemble import BucketFiles, BucketKey
from paimon.domain.scan.plan import ScanKind
from paimon.domain.scan.read_rules import ReadRules
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.commit.abort import abort, prepared_paths
from paimon.operations.commit.attempt import retry_policy
from paimon.operations.commit.request import CommitRequest
from paimon.operations.deletion.index_files import BucketVectors, held_vectors
from paimon.operations.maintain.bucket_work import compact_bucket
from paimon.operations.maintain.compactable import check_compactable
from paimon.operations.maintain.work import BucketWork, work_of
from paimon.operations.read.schemas import latest_schema
from paimon.operations.read.snapshots import latest_snapshot
from paimon.operations.undo import undone_on_failure
from paimon.operations.write.inline import without_changelog_producer
from paimon.operations.write.restore import Restored, Restoring
from paimon.operations.write.route import Address
from paimon.ports.engine import Engine

HiddenFiles = Mapping[Address, Collection[str]]
"""By bucket, the names of the level-0 files whose rows must become visible."""
_Vectors = Mapping[BucketKey, BucketVectors]
_Task = tuple[TableDefinition, BucketWork]


def must_show_rows(table: TableDefinition) -> bool:
    """Return whether a commit must leave nothing on level 0: reads skip it, and no option allows rows to wait there."""
    options = table.options
    waits = options.write_only or not options.lookup_wait or options.lookup_compact_interval > 1
    return ReadRules.of(table, ScanKind.ALL).hides_level_0 and not waits


def written_level_0(messages: Iterable[CommitMessage]) -> HiddenFiles:
    """Return the level-0 files that the messages write."""
    return _by_bucket((Address(m.partition, m.bucket), m.data.new_files) for m in messages)


class VisibleRows:
    """Plans compactions until reads show the rows of one commit: a state machine.

    Parameters
    ----------
    request : CommitRequest
        The commit; its compactions are tried first.
    hidden : mapping
        The files whose rows must become visible.
    published : Snapshot, optional
        The snapshot that the rows were published in, if this process did so.

    Attributes
    ----------
    planned_on : int, optional
        The id of the newest snapshot when the last plan was made; None before the first.
    """

    def __init__(
        self,
        engine: Engine,
        table: TableDefinition,
        request: CommitRequest,
        hidden: HiddenFiles,
        published: Snapshot | None = None,
    ) -> None:
        self._engine = engine
        self._table = table
        self._request = request
        self._hidden = hidden
        self._published = published
        self._policy = retry_policy(table)
        self._started = engine.clock.now_millis()
        self._tries = 0
        self._in_doubt = False
        self._made: list[CommitMessage] = []
        self.planned_on: int | None = None

    @property
    def is_last_try(self) -> bool:
        """Whether no other plan follows: then nothing but another compaction of the same files may hold it up."""
        return 0 < self._tries >= self._policy.max_retries

    def plan_next(self, messages: Sequence[CommitMessage], lost: PaimonError | None) -> Sequence[CommitMessage]:
        """Return the messages whose compactions are to be published next; see `CompactionPlans`."""
        if lost is None and self._covers(messages, self._hidden):
            return messages
        left = [m for m in messages if m.compact != CompactIncrement()]
        while True:
            is_exhausted = lost is not None and not self._may_try_again(lost)
            try:
                left, tasks = self._look(left)
                if not left and not tasks:
                    return ()
                if not is_exhausted:
                    return (*left, *self._compact(tasks))
            except Unsupported:  # the writer warned of it, and its rows wait for another client's compaction
                self._discard(left)
                return ()
            except PaimonError as error:  # a file expired while it was read, or the storage failed
                lost = error
            if is_exhausted and lost is not None:
                raise self._not_visible(lost) from lost

    def _look(self, messages: list[CommitMessage]) -> tuple[list[CommitMessage], list[_Task]]:
        """Return, on the newest snapshot, the compactions that still fit, and what is to be compacted beside them."""
        snapshot = latest_snapshot(self._engine, self._table.paths)
        if snapshot is None:
            return [], []
        self.planned_on = snapshot.id
        addresses = list(dict.fromkeys([*self._hidden, *(Address(m.partition, m.bucket) for m in messages)]))
        restored = Restoring(self._engine, self._table, snapshot, keeps_files=True).state_of(addresses)
        held = held_vectors(self._engine, self._table, snapshot)
        hidden = self._still_hidden(restored)
        kept: dict[Address, CommitMessage] = {}
        for message in messages:
            address = Address(message.partition, message.bucket)
            if self._covers([message], {address: hidden.get(address, ())}) and self._fits(message, restored, held):
                kept[address] = message
        todo = [address for address in hidden if address not in kept]
        if todo:
            check_compactable(self._engine, self._table, snapshot)
        tasks = [self._task(address, restored, held) for address in todo]
        self._discard([m for m in messages if not any(m is found for found in kept.values())])
        return list(kept.values()), tasks

    def _still_hidden(self, restored: Restored) -> HiddenFiles:
        found = {a: set(names) & _names_on_level_0(restored.files.get(a, ())) for a, names in self._hidden.items()}
        return {address: names for address, names in found.items() if names}

    def _covers(self, messages: Iterable[CommitMessage], hidden: HiddenFiles) -> bool:
        """Return whether the compactions of the messages take all of these files."""
        taken = _by_bucket((Address(m.partition, m.bucket), m.compact.compact_before) for m in messages)
        return all(set(names) <= taken.get(address, set()) for address, names in hidden.items())

    def _fits(self, message: CommitMessage, restored: Restored, held: _Vectors) -> bool:
        """Return whether a compaction can still be published, by the rules of the commit."""
        key = Address(message.partition, message.bucket)
        total = restored.total_buckets.get(message.partition, message.total_buckets)
        base = [ManifestEntry(FileKind.ADD, *key, total, f) for f in restored.files.get(key, ())]
        change = compacted([message])
        try:
            check_conflicts(base, change, [f.type for f in self._table.schema.key_fields])
            check_vectors(base, held[key].held if key in held else (), change, bucketed=True)
            check_overtaken(base, change)
        except CommitConflict:
            return False
        return True

    def _task(self, address: Address, restored: Restored, held: _Vectors) -> _Task:
        """Return the work in one bucket, and the table with the columns of all its files."""
        files, table = restored.files[address], self._table
        if any(f.schema_id > table.schema.id for f in files):
            table = evolve(table, schema=latest_schema(self._engine, table.paths) or table.schema)
        if self._request.replaces and _names_on_level_0(files) <= set(self._hidden[address]):
            table = without_changelog_producer(table)
        bucket = BucketFiles(*address, restored.total_buckets[address.partition], files)
        vectors = held.get(address, BucketVectors(*address))
        return table, work_of(self._engine, table, bucket, False, vectors=vectors)

    def _compact(self, tasks: Sequence[_Task]) -> list[CommitMessage]:
        made: list[CommitMessage] = []
        with undone_on_failure(lambda: self._engine.files.delete(prepared_paths(self._table, made))):
            for message in self._engine.executor.map(partial(_compact_one, self._engine), tasks):
                made.append(message)
        self._made += made
        self._engine.observer.count("commit.compaction_planned_again", len(made))
        return made

    def _may_try_again(self, lost: PaimonError) -> bool:
        """Wait as the commit's retry policy says, the first time not at all; False where it allows no other try."""
        clock = self._engine.clock
        self._in_doubt = self._in_doubt or isinstance(lost, CommitUncertain)
        if self._policy.gives_up(self._tries, clock.now_millis() - self._started):
            return False
        if self._tries:
            clock.sleep_millis(self._policy.wait_millis(self._tries - 1, self._engine.random.uniform()))
        self._tries += 1
        return True

    def _not_visible(self, lost: PaimonError) -> CommitNotVisible:
        ids = () if self._published is None else (self._published.id,)
        return CommitNotVisible(self._request.commit_user, self._request.identifier, ids, lost)

    def _discard(self, messages: Sequence[CommitMessage]) -> None:
        """Remove the files of compactions that will not be published; after a doubt they may be the table's.

        Never raises: whoever asks has dropped the messages.
        """
        if self._in_doubt:
            return
        mine = [m for m in messages if any(m is made for made in self._made)]
        theirs = [m for m in messages if not any(m is made for made in self._made)]
        if theirs and self._published is not None:
            discard_compactions(self._engine, self._table, theirs, self._request.commit_user, self._published.id)
        try:
            self._engine.files.delete(prepared_paths(self._table, mine))
        except PaimonError:
            self._engine.observer.count("commit.orphans", 1)


def discard_compactions(
    engine: Engine, table: TableDefinition, messages: Iterable[CommitMessage], commit_user: str, written: int
) -> None:
    """Remove what was compacted of messages whose rows the user published just now, as the snapshot `written`.

    The table is asked first. Where that fails the files stay: the commit stands, so this is no failure of it.
    """
    alone = [evolve(m, data=DataIncrement()) for m in messages]

    def is_of_the_rows(snapshot: Snapshot) -> bool:
        return snapshot.id == written and snapshot.commit_user == commit_user

    try:
        abort(engine, table, alone, commit_user, is_before=is_of_the_rows)
    except PaimonError:
        engine.observer.count("commit.orphans", 1)


def _compact_one(engine: Engine, task: _Task) -> CommitMessage:
    return compact_bucket(engine, *task)


def _by_bucket(files: Iterable[tuple[Address, Iterable[DataFileMeta]]]) -> dict[Address, set[str]]:
    """Return the names of the level-0 files of each bucket that has some."""
    found: dict[Address, set[str]] = {}
    for address, some in files:
        if names := _names_on_level_0(some):
            found.setdefault(address, set()).update(names)
    return found


def _names_on_level_0(files: Iterable[DataFileMeta]) -> frozenset[str]:
    return frozenset(f.file_name for f in files if f.level == 0)
