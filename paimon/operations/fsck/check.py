"""Check a table: its states, what they reference, and the contents of the newest ones.

Invariant: the check changes nothing and does not stop at an error: what cannot be read is reported as a fault.
Concurrent commits and expiry cause no faults.
"""

# A check follows references from the top, and reads each file once although many states share it:
#
#     names a state            lists                     entries                    files
#     snapshot-7   ALL     --> base list, delta list --> manifest-a, manifest-b --> data files, their extra files
#                          `-> changelog list        --> manifest-c             --> changelog files
#                          `-> index manifest                                   --> deletion vectors, hash indexes
#     tag-release  STATE   --> base list, delta list (what a tag keeps of its snapshot)
#     changelog-3  CHANGES --> changelog list        (what a decoupled changelog keeps of its snapshot)
#
# 1. `find_states` makes a `State` of each snapshot, tag and decoupled changelog of each branch. `Findings` collects the
#    states, and the faults of all checks.
# 2. `MetadataCheck` reads the lists and manifests. A table with 1,000 snapshots has about 1,000 small delta manifests,
#    but its base lists name the same few hundred again and again: reads are cached by file name, and a file that cannot
#    be read is one fault with the names of all states that need it. Later checks use what was read.
# 3. `ReferenceCheck` computes which files were live in any state, with the manifests as arrays and state by state only
#    the manifests that changed (`ever_live`), and compares them with listings of the directories: one listing for each
#    bucket instead of one request for each file.
# 4. `ContentCheck` looks into the newest snapshot of each branch and into each tag: row counts add up, and the files of
#    a level do not overlap. With `deep`, it reads the data files as well (`file_checks.py`), each once. If each file
#    has its keys in order and within bounds, and levels do not overlap, a merge returns each key once.
#
# Writers and expiry go on. A file that expiry deletes after `find_states` looks like a missing one, but then
# the file that names its state is gone, too. So a report with a fault whose state has disappeared is not believed, and
# the check runs again, at most `_ATTEMPTS` times.

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from itertools import chain

import numpy as np

from paimon.domain.errors import PaimonError
from paimon.domain.maintenance.fault import Fault, FaultKind, HealthReport
from paimon.domain.maintenance.metadata_checks import (
    find_bucket_counts,
    find_file_faults,
    find_overlaps,
    mark_buckets_at_fault,
)
from paimon.domain.manifest.entries import ManifestEntry
from paimon.domain.manifest.entry_columns import EntryColumns
from paimon.domain.paths import is_within
from paimon.domain.scan.assemble import group_by_bucket
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.types.type_text import format_type
from paimon.operations.fsck.file_checks import FileTask, check_file
from paimon.operations.fsck.index_checks import HashIndexCheck, KeyCheck, check_deletion_vectors, check_global_indexes
from paimon.operations.fsck.reference_checks import Metadata, MetadataCheck, ReferenceCheck
from paimon.operations.fsck.states import Findings, State, check_stream_readers, find_states
from paimon.operations.metadata.manifests import read_live_columns, to_entries
from paimon.operations.metadata.schemas import latest_schema, load_schema, on_same_table
from paimon.operations.metadata.type_proof import TypeProof
from paimon.operations.table_context import TableContext

_ATTEMPTS = 3


@on_same_table
def check_table(context: TableContext, deep: bool = False) -> HealthReport:
    """Check that a table is complete and consistent; `deep` also reads files of recent snapshots and tags."""
    for remaining in reversed(range(_ATTEMPTS)):
        findings = find_states(context)
        report = _check_states(context, findings, deep)
        if report.is_whole or not (remaining and _has_state_expired(findings)):
            break
    return report


def _check_states(context: TableContext, findings: Findings, deep: bool) -> HealthReport:
    for branch, where in findings.branches:
        check_stream_readers(branch, where, findings)
    metadata = MetadataCheck(findings).run()
    references = ReferenceCheck(context, findings, metadata)
    findings.attempt(context.table.location, [], references.run)
    contents = ContentCheck(findings, metadata, deep)
    findings.attempt(context.table.location, [], contents.run)
    return HealthReport(
        findings.faults, len(findings.states), len(metadata.added_rows), references.files, contents.rows
    )


def _has_state_expired(findings: Findings) -> bool:
    """Return whether a state with a fault has disappeared during the check."""
    affected = {name for fault in findings.faults for name in fault.states}
    return any(state.context.files.status(state.path) is None for state in findings.states if state.name in affected)


class ContentCheck:
    """Check the live files of recent snapshots and of tags; `deep` also reads the data files."""

    def __init__(self, findings: Findings, metadata: Metadata, deep: bool) -> None:
        self._findings = findings
        self._metadata = metadata
        self._deep = deep
        self._read: set[str] = set()
        self.rows = 0

    def run(self) -> None:
        """Check all states."""
        for index, state in enumerate(self._findings.states):
            if index not in self._metadata.contents:
                continue
            self._check_delta_count(index, state)
            if not state.is_end:
                continue
            path = state.context.paths.manifest(state.snapshot.base_manifest_list)
            self._findings.attempt(path, [state.name], partial(self._check_state, index, state))

    def _check_state(self, index: int, state: State) -> None:
        live = read_live_columns(state.context, self._metadata.contents[index])
        for part in live.split():  # a plan of this state makes whole records of its files
            part.files.check()
        rows, recorded = int(live.number("_ROW_COUNT").sum()), state.snapshot.total_record_count
        if recorded is not None and recorded != rows:
            self._add_count_fault(state, f"records {recorded} rows in total; its files have {rows}")
        buckets = BucketPaths.of(state.context.table)
        self._check_layout(state, live, buckets)
        with contextlib.suppress(PaimonError):  # another check reports schemas that cannot be read
            self._check_types(state, live, buckets)
        check_deletion_vectors(self._findings, state, live, self._deep)
        hash_index = HashIndexCheck(self._findings, state)
        hash_index.run(self._deep)
        if self._deep:
            self._check_files(state, to_entries(live), buckets, hash_index)
            check_global_indexes(self._findings, state)
            KeyCheck(self._findings, state).run()

    def _check_layout(self, state: State, live: EntryColumns, directories: BucketPaths) -> None:
        key_types = state.context.table.sorted_key_types
        for found in group_by_bucket(live.filter(mark_buckets_at_fault(live, key_types)), None):
            directory = directories.directory(found.partition, found.bucket)
            types = key_types if found.bucket >= 0 else []
            for file, reason in find_file_faults(found.files, types):
                self._add_layout_fault(state, file.path_in(directory), reason)
            for first, second in find_overlaps(found.files, types) if types else ():
                reason = f"{first.file_name} and {second.file_name} overlap in level {first.level}"
                self._add_layout_fault(state, directory, reason)
        for partition, counts in find_bucket_counts(live).items():
            numbers = ", ".join(map(str, counts))
            self._add_layout_fault(
                state,
                directories.directory(partition, 0).rpartition("/")[0],
                f"has files that record different numbers of buckets: {numbers}",
            )

    def _check_types(self, state: State, live: EntryColumns, directories: BucketPaths) -> None:
        """Report files with values that the types of the columns do not hold any more."""
        context, snapshot = state.context, state.snapshot
        is_newest = state.path == context.paths.snapshot(snapshot.id)
        newest = latest_schema(context.engine, context.paths) if is_newest else None
        proof = TypeProof(context, newest or load_schema(context.engine, context.paths, snapshot.schema_id))
        ids = live.number("_SCHEMA_ID")
        changed = live.filter(np.isin(ids, [i for i in np.unique(ids).tolist() if proof.find_changes(i)]))
        for entry in chain.from_iterable(map(to_entries, changed.split())):
            for cast in proof.find_unsafe_casts([entry.file]):
                if cast.bound is not None:
                    path = entry.file.path_in(directories.directory(entry.partition, entry.bucket))
                    column, kind = cast.change.name, format_type(cast.change.wanted.with_nullable(True))
                    reason = f"has the value {cast.bound} in column {column!r}, which {kind} does not hold"
                    self._findings.faults.append(Fault(FaultKind.TYPE, path, reason, [state.name]))

    def _check_files(
        self, state: State, entries: Sequence[ManifestEntry], directories: BucketPaths, hash_index: HashIndexCheck
    ) -> None:
        tasks: list[FileTask] = []
        for entry in entries:
            path = entry.file.path_in(directories.directory(entry.partition, entry.bucket))
            if path not in self._read and is_within(path, state.context.table.roots):  # another check reports the rest
                self._read.add(path)
                tasks.append(FileTask(entry, path, state.name, hash_index.find_entry(entry.partition, entry.bucket)))
        engine, check = state.context.engine, partial(check_file, state.context.for_tasks(len(tasks)))
        for done, report in enumerate(engine.executor.map(check, tasks), 1):
            self._findings.faults.extend(report.faults)
            self.rows += report.rows
            engine.observer.progress("reading files", done, len(tasks))

    def _check_delta_count(self, index: int, state: State) -> None:
        recorded = state.snapshot.delta_record_count
        delta = [m.file_name for m in self._metadata.deltas.get(index, ())]
        if recorded is None or any(name not in self._metadata.added_rows for name in delta):
            return
        rows = sum(self._metadata.added_rows[name] for name in delta)
        if rows != recorded:
            self._add_count_fault(state, f"records {recorded} more rows than before; its delta has {rows}")

    def _add_count_fault(self, state: State, reason: str) -> None:
        path = state.context.paths.snapshot(state.snapshot.id)
        self._findings.faults.append(Fault(FaultKind.COUNT, path, reason, [state.name]))

    def _add_layout_fault(self, state: State, path: str, reason: str) -> None:
        known = Fault(FaultKind.LAYOUT, path, reason, [state.name])
        same = [i for i, f in enumerate(self._findings.faults) if (f.path, f.reason) == (path, reason)]
        if same:
            old = self._findings.faults[same[0]]
            self._findings.faults[same[0]] = Fault(old.kind, path, reason, (*old.states, state.name))
        else:
            self._findings.faults.append(known)
