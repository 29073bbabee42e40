"""Decide what a writer compacts inline: which buckets get a full compaction, and which files of a bucket are rewritten.

The rules are those of a separate compaction. They see the files of the newest snapshot and the files of the writer.
Source: `GlobalFullCompactionSinkWrite`, `BucketedAppendCompactManager`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import evolve

from paimon.domain.errors import InvalidRequest
from paimon.domain.maintenance.append_window import Candidates, WindowRules
from paimon.domain.maintenance.small_files import marked_files
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.scan.assemble import BucketFiles, BucketKey
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.operations.compact.work import BucketWork, plan_bucket_work
from paimon.operations.data_files.deletion_vector_files import BucketVectors, read_bucket_vectors
from paimon.operations.table_context import TableContext
from paimon.operations.write.buckets import Buckets, BucketState
from paimon.operations.write.committed import CommittedFiles
from paimon.operations.write.route import Address

_DELTA_COMMITS = "full-compaction.delta-commits"


class CompactionRequests:
    """The buckets that a writer must compact at its next flush: a caller requested it, or a full compaction is due.

    `committed` is None for writers that overwrite.
    """

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
        """Return and clear the requests; True means a full compaction.

        Raise InvalidRequest if the identifier of the next commit is not known, and only some commits do full
        compactions.
        """
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
        """Return the work in one bucket.

        The work is empty if there is nothing to do, or if no snapshot contains the last vectors of the bucket yet.
        """
        vectors = self._vectors.get(state.address, BucketVectors(*state.address)) if self.uses_vectors else None
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
    """Exclude the results of an append compaction from later windows, except a last file that is still small.

    `files` are in the order in which the compaction wrote them.
    """
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
