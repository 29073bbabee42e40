"""Compaction inline in writing: after its rows became files, a writer compacts each of its buckets once.

Law: which files are compacted is decided by the same pure rules as in a compaction apart, over all files of the bucket
that are known: those of the newest snapshot, and this writer's own. What is replaced travels in the message of the
bucket beside what was written. Source: `MergeTreeWriter.flushWriteBuffer`, `AppendOnlyWriter.flush`,
`GlobalFullCompactionSinkWrite`.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial

from attrs import evolve

from paimon.domain.errors import CorruptTable, InvalidRequest, Unsupported
from paimon.domain.maintenance.append_window import Candidates, WindowRules
from paimon.domain.maintenance.small_files import marked_files
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.scan.assemble import BucketFiles, BucketKey
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from paimon.operations.deletion.index_files import BucketVectors, held_vectors
from paimon.operations.maintain.bucket_work import compact_bucket
from paimon.operations.maintain.compactable import check_compactable
from paimon.operations.maintain.rewriting.local_copies import LocalCopies
from paimon.operations.maintain.work import BucketWork, work_of
from paimon.operations.write.buckets import Buckets, BucketState
from paimon.operations.write.committed import CommittedFiles
from paimon.operations.write.route import Address
from paimon.ports.engine import Engine

_DELTA_COMMITS = "full-compaction.delta-commits"


class InlineCompaction:
    """Compacts the buckets of one writer: a state machine.

    Parameters
    ----------
    committed : CommittedFiles, optional
        What is known of the table; None for writers that overwrite: their own files are all there is.
    """

    def __init__(
        self, engine: Engine, table: TableDefinition, buckets: Buckets, committed: CommittedFiles | None, total: int
    ) -> None:
        self._engine = engine
        # Overwrites tell no changes, yet merge as the table does.
        self._table = table if committed is not None else without_changelog_producer(table)
        self._buckets = buckets
        self._committed = committed
        self._total = total
        self._every = _full_every(table)
        self._asked: dict[Address, bool] = {}
        self._dirty: set[Address] = set()
        self._vectors: Mapping[BucketKey, BucketVectors] = {}
        self._said = False
        self._copies = LocalCopies(engine, table) if self._table.options.needs_lookup else None

    def close(self) -> None:
        """Leaves no local copies."""
        if self._copies is not None:
            self._copies.close()

    def ask(self, address: Address, full: bool) -> None:
        """Compact this bucket at the next `run`, whatever else happens."""
        check_compactable(self._engine, self._table, self._snapshot)
        self._buckets.state_of(address)
        self._asked[address] = full or self._asked.get(address, False)

    @property
    def _snapshot(self) -> Snapshot | None:
        return self._committed.snapshot if self._committed is not None else None

    @property
    def kept(self) -> Collection[Address]:
        """Buckets that may not be forgotten: full compactions wait for them, or level 0 for its lookup."""
        waiting = set(self._dirty)
        if self._table.options.needs_lookup:
            states = self._buckets.states
            waiting |= {s.address for s in states if any(f.level == 0 for f in self._buckets.live_files(s))}
        return waiting

    def run(self, identifier: int | None) -> None:
        """Compact what asks for it; `identifier` is that of the commit to come (None: not known)."""
        if not self._may():
            return
        if self._every is not None:
            self._dirty = {a for a in self._dirty if not self._is_full(a)}
            self._dirty |= {s.address for s in self._buckets.states if s.files}
            if is_full_compacted(identifier, self._every):
                self._asked |= dict.fromkeys(self._dirty, True)
        self._vectors = held_vectors(self._engine, self._table, self._snapshot) if self._looks_at_vectors() else {}
        asked, self._asked = self._asked, {}
        self._compact({address: self._work(self._buckets.state_of(address), full) for address, full in asked.items()})
        states = [s for s in self._buckets.states if s.address not in asked or not self._looks_at_vectors()]
        self._compact({s.address: self._work(s, False) for s in states})

    def _may(self) -> bool:
        """Whether such a table can be compacted by us: its writes stand all the same, and a warning says so once."""
        try:
            check_compactable(self._engine, self._table, self._snapshot)
        except Unsupported as error:
            self._skip(f"is written, but never compacted by this writer: {error}")
            return False
        return True

    def _skip(self, why: str) -> None:
        self._engine.observer.count("write.compaction_skipped", 1)
        if not self._said:
            self._said = True
            with suppress(RuntimeWarning):  # where warnings are errors
                warnings.warn(f"{self._table.identifier} {why}", RuntimeWarning, stacklevel=3)

    def _looks_at_vectors(self) -> bool:
        return self._table.options.deletion_vectors_enabled

    def _is_full(self, address: Address) -> bool:
        """Whether the bucket's full compaction stands in the table (append tables: it was handed out)."""
        if self._committed is None or self._committed.awaits(address):
            return False
        levels = {f.level for f in self._committed.files_of(address).values()}
        return not self._table.schema.primary_keys or (0 not in levels and len(levels) <= 1)

    def _compact(self, work: Mapping[Address, BucketWork]) -> None:
        # A writer that was opened before the schema changed leaves newer files to those who know all of their columns.
        mine = self._table.schema.id
        todo = {address: w for address, w in work.items() if not w.is_empty}
        if any(w.outdates(mine) for w in todo.values()):
            self._skip("has got a newer schema since this writer was opened: it leaves files of that to newer ones")
            todo = {address: w for address, w in todo.items() if not w.outdates(mine)}
        if self._copies is not None and todo:
            self._copies.begin([(w.partition, w.bucket) for w in todo.values()], self._live_names)
        compacting = partial(compact_bucket, self._engine, self._table, copies=self._copies)
        done = self._engine.executor.map(compacting, todo.values())
        try:
            for address, message in zip(todo, done, strict=True):
                state = self._buckets.state_of(address)
                self._buckets.compacted(state, message)
                if not self._table.schema.primary_keys:
                    self._pass_over(state, message.compact.compact_after)
        except CorruptTable:
            self._buckets.advance()
            if self._committed is None or self._stand(todo.values(), self._committed):
                raise
            # Others compacted these files meanwhile, and they expired; or their commit was refused, and they were
            # removed. The next flush looks again.
            self._committed.give_up()
            self._engine.observer.count("write.compaction_skipped", 1)

    def _live_names(self, key: BucketKey) -> Collection[str]:
        state = self._buckets.known(Address(*key))
        return {f.file_name for f in self._buckets.live_files(state)} if state is not None else ()

    def _stand(self, work: Collection[BucketWork], committed: CommittedFiles) -> bool:
        """Whether all files to be rewritten are the table's, or were just written."""
        addresses = [Address(w.partition, w.bucket) for w in work]
        standing = {name for address in addresses for name in committed.standing(address)}
        standing |= {f.file_name for address in addresses for f in self._buckets.state_of(address).files}
        return all(f.file_name in standing for w in work for f in w.rewritten)

    def _work(self, state: BucketState, full: bool) -> BucketWork:
        vectors = self._vectors.get(state.address, BucketVectors(*state.address)) if self._looks_at_vectors() else None
        nothing = BucketWork(*state.address, self._total, state.directory, vectors=vectors)
        if self._looks_at_vectors() and self._committed is not None and self._committed.awaits(state.address):
            return nothing  # the vectors handed out are not in any snapshot yet
        files = self._buckets.live_files(state)
        if not self._table.schema.primary_keys:
            return evolve(nothing, packs=self._window(state, files, full))
        bucket = BucketFiles(*state.address, self._total, files)
        work = work_of(self._engine, self._table, bucket, full, vectors=vectors)
        if full or not work.is_empty or not self._table.options.needs_lookup:
            return work
        return self._forced_up(state, bucket, vectors)

    def _forced_up(self, state: BucketState, bucket: BucketFiles, vectors: BucketVectors | None) -> BucketWork:
        """What level 0 alone asks for, where lookups wait for it so many times that nothing else is to do."""
        work = work_of(self._engine, self._table, bucket, False, state.idle_triggers, vectors)
        interval = self._table.options.lookup_compact_interval
        state.idle_triggers = (state.idle_triggers + 1) % interval
        return work

    def _window(
        self, state: BucketState, files: Collection[DataFileMeta], full: bool
    ) -> tuple[tuple[DataFileMeta, ...], ...]:
        candidates = Candidates(f for f in files if f.file_name not in state.passed)
        rules = WindowRules.of(self._table.options)
        marked = marked_files(self._vectors[state.address].held) if state.address in self._vectors else {}
        picked, left = candidates.picked_full(rules, marked) if full else candidates.picked(rules)
        looked_at = {f.file_name for f in files}
        state.passed = frozenset(looked_at - {f.file_name for f in left.files} - {f.file_name for f in picked})
        return (picked,) if picked else ()

    def _pass_over(self, state: BucketState, made: Collection[DataFileMeta]) -> None:
        """Of what was made, only a last file that is still small may be taken again."""
        small = WindowRules.of(self._table.options).small_bytes
        *done, last = made or (None,)
        names = {f.file_name for f in done if f is not None}
        if last is not None and last.file_size >= small:
            names.add(last.file_name)
        state.passed |= names


def is_full_compacted(identifier: int | None, every: int) -> bool:
    """Whether a commit of this identifier holds full compactions, of which each `every`-th commit has one."""
    if identifier is None and every > 1:
        raise InvalidRequest(
            f"{_DELTA_COMMITS} {every} counts commit identifiers, and prepare_commit was given none",
            subject=_DELTA_COMMITS,
            hint="call prepare_commit(identifier) with the identifier that is committed next",
        )
    return identifier is None or identifier % every == 0 or identifier == BATCH_COMMIT_IDENTIFIER


def _full_every(table: TableDefinition) -> int | None:
    """Commits from one full compaction to the next; None where nothing asks for them."""
    options = table.options
    given = options.full_compaction_delta_commits
    if given is None and options.changelog_producer != "full-compaction":
        return None
    return max(1, given or 1)


def without_changelog_producer(table: TableDefinition) -> TableDefinition:
    """Return the table for compactions of an overwrite, which report no changes, yet merge as the table does."""
    options = table.options
    silent = {"changelog-producer": "none", "force-lookup": str(options.needs_lookup).lower()}
    return evolve(table, options=options.with_values(silent))
