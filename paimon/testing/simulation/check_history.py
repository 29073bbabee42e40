"""Check a finished history: the final table, the outcomes and observations of its actors, and the files on the storage.

Invariant: an acknowledged commit is in the table once, and a refused commit is not. An uncertain commit is in the table
completely or not at all. Every snapshot and tag can be read. Each reader sees a prefix of one history, with everything
that was acknowledged or observed before. Every file is named by existing metadata, or the cleaner removes it. A
snapshot whose id was used before, and freed by expiry, is detached: its writer or the cleaner deletes it. The storage
records these paths. Names are followed from the files of snapshots, tags and decoupled changelogs, without the code of
orphan file removal and expiry. A file can be named and not needed, if it was replaced before the oldest snapshot.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from attrs import frozen

from paimon.domain.errors import CorruptTable, PaimonError
from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot, snapshot_from_json
from paimon.operations.metadata.manifests import (
    read_data_manifests,
    read_index_manifest,
    read_live_columns,
    read_manifest_columns,
    read_manifest_list,
)
from paimon.operations.read.changes.history import find_changelog, list_changelog_ids
from paimon.operations.table_context import TableContext
from paimon.table import Table
from paimon.testing.simulation.actions import Action, Observation, Outcome
from paimon.testing.simulation.actor_steps import observe_state
from paimon.testing.simulation.invariants import check_outcomes
from paimon.testing.simulation.shared_keys import SharedHistory
from paimon.testing.simulation.simulated_rows import find_progress
from paimon.testing.simulation.simulated_storage import DiskFiles, TimedFiles
from paimon.testing.simulation.simulation_plan import TIME_JUMP_MILLIS, WRITERS, Plan, TableKind

_METADATA_FILE = re.compile(
    r"(snapshot/(snapshot-\d+|LATEST|EARLIEST)|schema/schema-\d+|tag/tag-[^/]+|last-commit/commit-[0-9a-f]+)$"
)
_CHANGELOG_FILE = re.compile(r"changelog/(changelog-\d+|LATEST|EARLIEST)$")


def find_violations(
    plan: Plan,
    open_table: Callable[[], Table],
    actions: Sequence[Action],
    storage: TimedFiles,
    advance_clock: Callable[[int], None],
) -> list[str]:
    """Return all violations of the invariants, after all actors have ended.

    Parameters
    ----------
    plan : Plan
        The plan of the history.
    open_table : callable
        Opens the table without faults.
    actions : sequence of Action
        All actions of the history.
    storage : TimedFiles
        The storage of the table.
    advance_clock : callable
        Lets this number of milliseconds pass.

    Returns
    -------
    list of str
        One sentence per violation; empty for a correct history.
    """
    checker = _HistoryChecker(plan, actions, storage)
    try:
        table = open_table()
        found = [*checker.check_states(table), *checker.check_order(), *checker.check_shared_rows(table)]
        advance_clock(TIME_JUMP_MILLIS)
        return [*found, *checker.check_storage(table)]
    except PaimonError as error:
        return [f"the table cannot be read any more: {type(error).__name__}: {error}"]


@frozen
class _ObservedState:
    """A state that was observed: its snapshot, the last commit of each writer in it, and when it was read."""

    observer: str
    snapshot_id: int
    last_commits: Mapping[int, int]
    start_time: int
    end_time: int
    is_newest: bool


@frozen(eq=False)
class _SeenState:
    """A state before its check: who read it, what was read, when, and whether the newest state was wanted."""

    observer: str
    state: Observation
    start_time: int
    end_time: int
    is_newest: bool


class _HistoryChecker:
    def __init__(self, plan: Plan, actions: Sequence[Action], storage: TimedFiles) -> None:
        self._plan = plan
        self._actions = actions
        self._storage = storage
        self._contents: Mapping[str, bytes] = storage.contents
        self._writers = [n for n, role in enumerate(plan.roles) if role in WRITERS]
        self._states: list[_ObservedState] = []
        self._shared: SharedHistory | None = None
        if plan.table_kind is not TableKind.FIXED:
            published = [(snapshot_from_json(data, path), time) for path, (data, time) in storage.first_puts.items()]
            self._shared = SharedHistory(plan, published, actions)

    def check_states(self, table: Table) -> Iterator[str]:
        """Check that each snapshot, tag and observation is a state between two commits, and that outcomes are true."""
        paths, detached = table.definition.paths, self._storage.reused_paths
        snapshots = [s for s in table.snapshots() if paths.snapshot(s.id) not in detached]
        end = max((a.end_time for a in self._actions), default=0) + 1
        seen: list[_SeenState] = []
        for snapshot in snapshots:
            state = observe_state(table.scan(["id", "version"], snapshot=snapshot.id))
            seen.append(_SeenState(f"snapshot {snapshot.id}", state, end, end, snapshot is snapshots[-1]))
        for name, tag in table.tags.items():
            state = observe_state(table.scan(["id", "version"], tag=name))
            seen.append(_SeenState(f"tag {name}", state, end, end, False))
            if state.snapshot_id != tag.snapshot.id:
                yield f"tag {name} names snapshot {tag.snapshot.id}, and a scan reads {state.snapshot_id}"
        for a in self._actions:
            if a.observation is not None:
                is_newest = a.observation.tag_name is None
                seen.append(_SeenState(a.actor, a.observation, a.start_time, a.end_time, is_newest))
        for one in sorted(seen, key=lambda s: s.state.snapshot_id):
            yield from self._check_state(one)
        if not snapshots:
            self._states.append(_ObservedState("the end", 0, dict.fromkeys(self._writers, 0), end, end, True))
        commits = Counter((s.commit_user, s.commit_identifier, s.commit_kind.value) for s in snapshots)
        tags = {name: tag.snapshot.id for name, tag in table.tags.items()}
        yield from check_outcomes(self._plan, self._actions, commits, tags)
        yield from self._check_durable([s for s in snapshots if s.commit_kind is not CommitKind.COMPACT], paths)

    def _check_durable(self, snapshots: Sequence[Snapshot], paths: TablePaths) -> Iterator[str]:
        at_risk = self._storage.not_durable_paths if isinstance(self._storage, DiskFiles) else ()
        acknowledged = {(a.actor, a.number) for a in self._actions if a.outcome is Outcome.DONE}
        for snapshot in (s for s in snapshots if paths.snapshot(s.id) in at_risk):
            if (snapshot.commit_user, snapshot.commit_identifier) in acknowledged:
                yield f"snapshot {snapshot.id} is acknowledged, and a power loss takes it"

    def check_order(self) -> Iterator[str]:
        """Check that all states are of one history, and contain what was acknowledged or observed before them."""
        by_snapshot = sorted(self._states, key=lambda state: state.snapshot_id)
        for earlier, state in pairwise(by_snapshot):
            lost = [w for w in self._writers if state.last_commits[w] < earlier.last_commits[w]]
            if lost or (state.snapshot_id == earlier.snapshot_id and state.last_commits != earlier.last_commits):
                yield (
                    f"snapshot {state.snapshot_id} ({state.observer}) contradicts snapshot {earlier.snapshot_id} "
                    f"({earlier.observer}): the last commits are {dict(state.last_commits)} and "
                    f"{dict(earlier.last_commits)}"
                )
        newest = [state for state in self._states if state.is_newest]
        for state in newest:
            if self._plan.table_kind is not TableKind.POSTPONED:  # reads show a row only after it was compacted
                yield from self._check_acknowledged_commits(state)
            for before in newest:
                if before.end_time < state.start_time and before.snapshot_id > state.snapshot_id:
                    yield (
                        f"{state.observer} saw snapshot {state.snapshot_id} after {before.observer} had seen "
                        f"{before.snapshot_id}"
                    )

    def check_shared_rows(self, table: Table) -> Iterator[str]:
        """Check tables whose writers share keys: each acknowledged commit was published, and no row is lost at last."""
        if self._shared is None:
            return
        yield from self._shared.check_commits()
        if self._plan.table_kind is TableKind.POSTPONED:
            table.compact()
            versions, expected = observe_state(table.scan(["id", "version"])).versions, self._shared.last_state
            if versions != expected:
                yield f"after the last compaction the rows are {versions}, and the commits lead to {expected}"

    def _check_acknowledged_commits(self, state: _ObservedState) -> Iterator[str]:
        for action in self._actions:
            is_acknowledged = action.role in WRITERS and action.outcome is Outcome.DONE
            if not is_acknowledged or action.end_time >= state.start_time:
                continue
            writer = int(action.actor.rpartition("-")[2])
            if state.last_commits[writer] < action.number:
                yield (
                    f"commit {action.number} of {action.actor} was acknowledged, and {state.observer}, which read "
                    f"later, saw commit {state.last_commits[writer]}"
                )

    def check_storage(self, table: Table) -> Iterator[str]:
        """Check that the cleaner removes all unreferenced files, and that all needed files exist and are intact."""
        before = set(self._contents)
        reported = set(table.maintain.remove_orphans(dry_run=False)["path"].to_pylist())
        removed = before - set(self._contents)
        if removed != reported:
            yield f"the cleaner reports that it removed {sorted(reported)}, and it removed {sorted(removed)}"
        detached = [p for p in self._storage.reused_paths if "/snapshot/snapshot-" in p and p in self._contents]
        if detached:
            yield f"the cleaner leaves the detached snapshots {sorted(detached)}"
        report = table.maintain.check(deep=True)
        yield from (f"check: {fault}" for fault in report.faults if not fault.kind.is_harmless)
        needed, named = collect_needed_and_named_files(table)
        existing = {path.rpartition("/")[2] for path in self._contents}
        if not needed <= existing:
            yield f"after the cleaner these files are missing: {sorted(needed - existing)}"
        left = find_unreferenced(table, self._contents, named)
        if left:
            yield f"after the cleaner these files are not referenced: {left}"

    def _check_state(self, seen: _SeenState) -> Iterator[str]:
        state = seen.state
        last_commits, problem = dict.fromkeys(self._writers, 0), ""
        if state.snapshot_id and self._shared is not None:
            last_commits, problem = self._shared.find_progress(state)
        elif state.snapshot_id:
            last_commits, problem = find_progress(state.versions, self._writers, self._plan.initial_rows)
        elif state.versions:
            problem = "has rows without a snapshot"
        if state.duplicate_rows:
            problem = f"has {state.duplicate_rows} more rows than keys"
        if problem:
            yield f"{seen.observer} (of snapshot {state.snapshot_id}) {problem}"
        else:
            self._states.append(
                _ObservedState(
                    seen.observer, state.snapshot_id, last_commits, seen.start_time, seen.end_time, seen.is_newest
                )
            )


def collect_needed_and_named_files(table: Table) -> tuple[set[str], set[str]]:
    """Return the names of the files that snapshots and tags need, and of all files that any metadata names."""
    context = table.context
    states = [*table.snapshots(), *(tag.snapshot for tag in table.tags.values())]
    needed = {name for s in states for name in _state(context, s)}
    named = set(needed)
    for snapshot in table.snapshots():
        named.update(_lists(context, [snapshot.changelog_manifest_list]))
    for number in list_changelog_ids(context):
        found = find_changelog(context, number)
        if found is not None:
            lists = [found.changelog_manifest_list, found.base_manifest_list, found.delta_manifest_list]
            named.update(_lists(context, lists))
    manifests = {m for s in states for m in read_data_manifests(context, s)}
    named.update(_entries(context, [m.file_name for m in manifests]))
    return needed, named


def find_unreferenced(table: Table, paths: Iterable[str], named: set[str]) -> list[str]:
    """Return the files that no metadata names.

    Parameters
    ----------
    table : Table
        The table.
    paths : iterable of str
        The paths of all files of the table.
    named : set of str
        The names of the files that metadata names.

    Returns
    -------
    list of str
        Paths in ascending order. Snapshots, schemas, tags, changelogs and records of commits are never among them.
    """
    return sorted(
        path
        for path in paths
        if path.rpartition("/")[2] not in named and not _METADATA_FILE.search(path) and not _CHANGELOG_FILE.search(path)
    )


def _state(context: TableContext, snapshot: Snapshot) -> Iterator[str]:
    manifests = read_data_manifests(context, snapshot)
    yield from (snapshot.base_manifest_list, snapshot.delta_manifest_list)
    yield from (m.file_name for m in manifests)
    live = read_live_columns(context, manifests)
    yield from live.files.field("_FILE_NAME").to_pylist()
    yield from (name for names in live.files.field("_EXTRA_FILES").to_pylist() for name in names)
    if snapshot.index_manifest is not None:
        yield snapshot.index_manifest
        yield from (e.file_name for e in read_index_manifest(context, snapshot.index_manifest))
    if snapshot.statistics is not None:
        yield snapshot.statistics


def _lists(context: TableContext, names: Iterable[str | None]) -> Iterator[str]:
    for name in (n for n in names if n is not None):
        try:
            manifests = [m.file_name for m in read_manifest_list(context, name)]
            yield from (name, *manifests, *_entries(context, manifests))
        except CorruptTable:
            continue  # the lists of a changelog may be deleted before it


def _entries(context: TableContext, manifests: list[str]) -> Iterator[str]:
    for part in read_manifest_columns(context, manifests):
        yield from part.records.column("_FILE", "_FILE_NAME").to_pylist()
        for names in part.records.column("_FILE", "_EXTRA_FILES").to_pylist():
            yield from names
