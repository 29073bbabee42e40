"""Compact inline: after a writer wrote its rows to files, it compacts each of its buckets once.

Invariant: the commit message of a bucket contains the written files and the result of their compaction. Source:
`MergeTreeWriter.flushWriteBuffer`, `AppendOnlyWriter.flush`.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial

from attrs import evolve

from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.maintenance.append_window import WindowRules
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.compact.bucket_work import compact_bucket
from paimon.operations.compact.compactable import check_compactable
from paimon.operations.compact.lookup_cache import LookupCache
from paimon.operations.compact.work import BucketWork
from paimon.operations.table_context import TableContext
from paimon.operations.write.buckets import Buckets
from paimon.operations.write.committed import CommittedFiles
from paimon.operations.write.plan_inline import CompactionRequests, InlinePlanner, exclude_results
from paimon.operations.write.route import Address


class InlineCompaction:
    """Run the compactions of one writer: a state machine.

    `committed` is None for writers that overwrite, which compact only their own files.
    """

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
        """Request the compaction of a bucket at the next `run`, also if no option requires it.

        Raise Unsupported if this table cannot be compacted.
        """
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
        """Compact the buckets that are requested or due.

        `commit_identifier` is that of the next commit; None if it is not known.
        """
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
        done = self._context.engine.executor.map(compacting, todo.values())
        try:
            for address, message in zip(todo, done, strict=True):
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
