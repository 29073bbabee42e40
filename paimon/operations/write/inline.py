"""Compact inline: after a writer wrote its rows to files, it compacts each of its buckets once.

Invariant: the commit message of a bucket contains the written files and the result of their compaction. The rules are
those of a separate compaction; they see the files of the newest snapshot and the files of the writer.

Source: `MergeTreeWriter.flushWriteBuffer`, `GlobalFullCompactionSinkWrite`, `BucketedAppendCompactManager`.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial

from attrs import evolve

from paimon.domain.errors import CorruptTable, InvalidRequest, Unsupported
from paimon.domain.maintenance.small_files import Candidates, WindowRules, marked_files
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.scan.assemble import BucketFiles, BucketKey
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.operations.commit.prepared_files import delete_prepared
from paimon.operations.compact.compact_bucket import compact_bucket
from paimon.operations.compact.lookup_cache import LookupCache
from paimon.operations.compact.plan_bucket import BucketWork, check_compactable, plan_bucket_work
from paimon.operations.data_files.deletion_vectors import BucketVectors, get_bucket_vectors, read_bucket_vectors
from paimon.operations.table_context import TableContext
from paimon.operations.write.buckets import Buckets, BucketState
from paimon.operations.write.restore import CommittedFiles
from paimon.operations.write.route import Address

_DELTA_COMMITS = "full-compaction.delta-commits"


class CompactionRequests:
    """Buckets to compact at the next flush, requested or due; `committed` is None for overwriters."""

    def __init__(self, table: TableDefinition, committed: CommittedFiles | None) -> None:
        self._keyed = bool(table.schema.primary_keys)
        self._committed = committed
        self._every = _full_compaction_interval(table)
        self._requested: dict[Address, bool] = {}
        self.changed: set[Address] = set()
        """Buckets that were written since their last full compaction."""

    def add(self, address: Address, full: bool) -> None:
        """Request the compaction of a bucket; a request for a full compaction is not weakened by a later one."""
        self._requested[address] = full or self._requested.get(address, False)

    def take(self, buckets: Buckets, commit_identifier: int | None) -> Mapping[Address, bool]:
        """Return and clear the requests; InvalidRequest if only some commits are full, and its id is unknown."""
        if self._every is not None:
            self.changed = {a for a in self.changed if not self._is_fully_compacted(a)}
            self.changed |= {s.address for s in buckets.states if s.files}
            if contains_full_compactions(commit_identifier, self._every):
                self._requested |= dict.fromkeys(self.changed, True)
        requested, self._requested = self._requested, {}
        return requested

    def _is_fully_compacted(self, address: Address) -> bool:
        """Return whether the full compaction of the bucket is committed (append tables: whether a message has it)."""
        if self._committed is None or self._committed.is_awaiting_commit(address):
            return False
        levels = {f.level for f in self._committed.get_files(address).values()}
        return not self._keyed or (0 not in levels and len(levels) <= 1)


class InlinePlanner:
    """Plan the compaction of single buckets; `committed` is None for writers that overwrite."""

    def __init__(
        self, context: TableContext, buckets: Buckets, committed: CommittedFiles | None, total_buckets: int
    ) -> None:
        self._context = context
        self._buckets = buckets
        self._committed = committed
        self._total = total_buckets
        self._vectors: Mapping[BucketKey, BucketVectors] = {}

    @property
    def uses_vectors(self) -> bool:
        """Whether the table has deletion vectors; then a flush compacts each bucket at most once."""
        return self._context.options.deletion_vectors_enabled

    def load_vectors(self) -> None:
        """Read the deletion vectors of the newest known snapshot for the next plans."""
        snapshot = None if self._committed is None else self._committed.snapshot
        self._vectors = read_bucket_vectors(self._context, snapshot) if self.uses_vectors else {}

    def plan(self, state: BucketState, full: bool) -> BucketWork:
        """Return the work in a bucket; none before a snapshot contains the bucket's last vectors."""
        vectors = get_bucket_vectors(self._vectors, state.address) if self.uses_vectors else None
        nothing = BucketWork(*state.address, self._total, state.directory, vectors=vectors)
        if self.uses_vectors and self._committed is not None and self._committed.is_awaiting_commit(state.address):
            return nothing  # no snapshot contains the prepared vectors yet
        files = self._buckets.live_files(state)
        if not self._context.schema.primary_keys:
            return evolve(nothing, packs=self._pick_window(state, files, full))
        bucket = BucketFiles(*state.address, self._total, files)
        work = plan_bucket_work(self._context, bucket, full, vectors=vectors)
        if full or not work.is_empty or not self._context.options.needs_lookup:
            return work
        return self._plan_lookup(state, bucket, vectors)

    def _plan_lookup(self, state: BucketState, bucket: BucketFiles, vectors: BucketVectors | None) -> BucketWork:
        """Plan the compaction of level 0, which waits at most `lookup-compact.max-interval` flushes for its lookup."""
        work = plan_bucket_work(self._context, bucket, False, state.idle_triggers, vectors)
        state.idle_triggers = (state.idle_triggers + 1) % self._context.options.lookup_compact_interval
        return work

    def _pick_window(
        self, state: BucketState, files: Collection[DataFileMeta], full: bool
    ) -> tuple[tuple[DataFileMeta, ...], ...]:
        candidates = Candidates(f for f in files if f.file_name not in state.excluded_names)
        rules = WindowRules.of(self._context.options)
        marked = marked_files(self._vectors[state.address].current) if state.address in self._vectors else {}
        picked, left = candidates.pick_full(rules, marked) if full else candidates.pick_window(rules)
        seen = {f.file_name for f in files}
        state.excluded_names = frozenset(seen - {f.file_name for f in left.files} - {f.file_name for f in picked})
        return (picked,) if picked else ()


def exclude_results(state: BucketState, files: Collection[DataFileMeta], rules: WindowRules) -> None:
    """Exclude an append compaction's results, in order, from later windows, except a small last one."""
    *done, last = files or (None,)
    names = {f.file_name for f in done if f is not None}
    if last is not None and last.file_size >= rules.small_bytes:
        names.add(last.file_name)
    state.excluded_names |= names


def contains_full_compactions(commit_identifier: int | None, every: int) -> bool:
    """Return whether a commit contains full compactions, as each `every`-th commit and each batch commit does.

    Raise InvalidRequest if the commit identifier is not known, unless each commit contains full compactions.
    """
    if commit_identifier is None and every > 1:
        raise InvalidRequest(
            f"Option {_DELTA_COMMITS!r} is {every} and counts commit identifiers, but prepare_commit got no identifier",
            subject=_DELTA_COMMITS,
            hint="call prepare_commit(identifier) with the identifier of the next commit",
        )
    return commit_identifier is None or commit_identifier % every == 0 or commit_identifier == BATCH_COMMIT_IDENTIFIER


def _full_compaction_interval(table: TableDefinition) -> int | None:
    """Return the number of commits between full compactions; None if no option requires them."""
    options = table.options
    given = options.full_compaction_delta_commits
    if given is None and options.changelog_producer != "full-compaction":
        return None
    return max(1, given or 1)


class InlineCompaction:
    """Runs one writer's compactions: a state machine. Overwriters (`committed` None) compact own files."""

    def __init__(
        self, context: TableContext, buckets: Buckets, committed: CommittedFiles | None, total_buckets: int
    ) -> None:
        self._requests = CompactionRequests(context.table, committed)
        if committed is None:  # an overwrite produces no changelog, but merges as the table does
            context = context.with_table(without_changelog_producer(context.table))
        self._context = context
        self._buckets = buckets
        self._committed = committed
        self._planner = InlinePlanner(context, buckets, committed, total_buckets)
        self._copies = LookupCache(context) if context.options.needs_lookup else None
        self._has_warned = False

    def close(self) -> None:
        """Delete the local copies of lookup files."""
        if self._copies is not None:
            self._copies.close()

    def request(self, address: Address, full: bool) -> None:
        """Request the compaction of a bucket at the next `run`; Unsupported if it cannot be compacted."""
        self._check_compactable()
        self._buckets.get_state(address)
        self._requests.add(address, full)

    @property
    def addresses_to_keep(self) -> Collection[Address]:
        """Addresses of buckets whose state the writer must keep: a full compaction or a lookup of level 0 is due."""
        waiting = set(self._requests.changed)
        if self._context.options.needs_lookup:
            states = self._buckets.states
            waiting |= {s.address for s in states if any(f.level == 0 for f in self._buckets.live_files(s))}
        return waiting

    def run(self, commit_identifier: int | None) -> None:
        """Compact buckets that are requested or due; `commit_identifier` of the next commit may be None."""
        try:
            self._check_compactable()
        except Unsupported as error:
            self._skip(f"is not compacted by this writer: {error}")
            return
        requested = self._requests.take(self._buckets, commit_identifier)
        plan, get_state = self._planner.plan, self._buckets.get_state
        self._planner.load_vectors()
        self._compact({address: plan(get_state(address), full) for address, full in requested.items()})
        # With deletion vectors a bucket is compacted once: the vectors that were just written are in no snapshot yet.
        states = [s for s in self._buckets.states if s.address not in requested or not self._planner.uses_vectors]
        self._compact({s.address: plan(s, False) for s in states})

    def _check_compactable(self) -> None:
        check_compactable(self._context, None if self._committed is None else self._committed.snapshot)

    def _skip(self, why: str) -> None:
        """Count a skipped compaction, and warn once. The rows are written nevertheless."""
        self._context.engine.observer.count("write.compaction_skipped", 1)
        if not self._has_warned:
            self._has_warned = True
            with suppress(RuntimeWarning):  # where warnings are errors
                warnings.warn(f"Table {self._context.table.table_name!r} {why}", RuntimeWarning, stacklevel=3)

    def _compact(self, planned: Mapping[Address, BucketWork]) -> None:
        todo = self._skip_newer_schemas({address: w for address, w in planned.items() if not w.is_empty})
        if self._copies is not None and todo:
            self._copies.begin([(w.partition, w.bucket) for w in todo.values()], self._live_names)
        compacting = partial(compact_bucket, self._context.for_tasks(len(todo)), copies=self._copies)
        discard = partial(delete_prepared, self._context)
        run_all = self._context.engine.executor.map
        try:
            for address, message in zip(todo, run_all(compacting, todo.values(), discard), strict=True):
                state = self._buckets.get_state(address)
                self._buckets.record_compaction(state, message)
                if not self._context.schema.primary_keys:
                    exclude_results(state, message.compact.compact_after, WindowRules.of(self._context.options))
        except CorruptTable:
            self._buckets.advance()
            if self._committed is None or self._are_in_table(todo.values(), self._committed):
                raise
            # Another writer compacted these files and they expired, or a commit was refused and its files were deleted.
            # The next flush reads the newest snapshot.
            self._committed.drop_prepared()
            self._context.engine.observer.count("write.compaction_skipped", 1)

    def _skip_newer_schemas(self, work: Mapping[Address, BucketWork]) -> Mapping[Address, BucketWork]:
        """Skip buckets with files of a newer schema, because this writer does not know all of their columns."""
        schema_id = self._context.schema.id
        if any(w.outdates(schema_id) for w in work.values()):
            self._skip("has a newer schema than this writer. Reopen the table to compact files of that schema.")
        return {address: w for address, w in work.items() if not w.outdates(schema_id)}

    def _live_names(self, key: BucketKey) -> Collection[str]:
        state = self._buckets.find_state(Address(*key))
        return {f.file_name for f in self._buckets.live_files(state)} if state is not None else ()

    def _are_in_table(self, work: Collection[BucketWork], committed: CommittedFiles) -> bool:
        """Return whether all files to rewrite are referenced by the table or were written by this writer."""
        addresses = [Address(w.partition, w.bucket) for w in work]
        names = {name for address in addresses for name in committed.get_committed_names(address)}
        names |= {f.file_name for address in addresses for f in self._buckets.get_state(address).files}
        return all(f.file_name in names for w in work for f in w.rewritten)


def without_changelog_producer(table: TableDefinition) -> TableDefinition:
    """Return the table for compactions of an overwrite, which produce no changelog, but merge as the table does."""
    options = table.options
    values = {"changelog-producer": "none", "force-lookup": str(options.needs_lookup).lower()}
    return evolve(table, options=options.with_values(values))
