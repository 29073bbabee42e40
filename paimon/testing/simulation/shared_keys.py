"""The rows of actors that write the same keys, and the states that the commits of a history lead to.

Invariant: the rows of a commit follow from the actor and the number of the commit, so the states after each snapshot
are known without reading the table. The last write of a key wins. A streaming writer of a dynamic bucket, whose
messages the program keeps, may lose against rows that were committed concurrently before its own, because it numbered
its rows before. The winner never changes afterwards, except that a compaction may drop a delete, and so show the row of
such a writer that the delete hid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random

import pyarrow as pa
from attrs import frozen

from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.testing.simulation.actions import Action, Observation, Outcome
from paimon.testing.simulation.simulation_plan import WRITERS, Plan, Role, TableKind

PARTITION_COLUMN = "p INT NOT NULL"
"""The first column of cross-partition tables."""
_KEYS = range(8)
_PARTITIONS = 3
_DELETE_RATE = 0.2
_MAX_ROWS = 4
_ROLES_WITH_ROWS = (*WRITERS, Role.OVERWRITER)


def build_shared_rows(actor: int, number: int, role: Role, kind: TableKind) -> pa.Table:
    """Return the rows of the commit of this number (from 1) of an actor, with row kinds in `kind`.

    Parameters
    ----------
    actor : int
        The position of the actor in the plan.
    number : int
        The number of the commit.
    role : Role
        The role of the actor; overwrites have no deletes.
    kind : TableKind
        In a cross-partition table, each row names any partition.

    Returns
    -------
    pyarrow.Table
        A key may be repeated.
    """
    chance = Random(f"{actor} {number}")
    ids = chance.choices(_KEYS, k=chance.randint(1, _MAX_ROWS))
    deletes = [chance.random() < _DELETE_RATE and role is not Role.OVERWRITER for _ in ids]
    columns = {
        "id": pa.array(ids, pa.int32()),
        "version": pa.array([100 * number + actor] * len(ids), pa.int32()),
        "writer": pa.array([actor] * len(ids), pa.int32()),
        "kind": pa.array(["-D" if is_delete else "+I" for is_delete in deletes]),
    }
    if kind is TableKind.CROSS_PARTITION:
        columns["p"] = pa.array([chance.randrange(_PARTITIONS) for _ in ids], pa.int32())
    return pa.table(columns)


@frozen(eq=False)
class SharedCommit:
    """One published commit that is not a compaction.

    Parameters
    ----------
    snapshot_id : int
        The snapshot of the commit.
    actor, number : int
        The position of the actor in the plan, and the number of its commit.
    versions : mapping of int to int or None
        By key the version that the commit writes; None for a key that it deletes.
    start_time, publish_time : int
        Logical times: a commit that was published before the start was visible to the writer.
    is_overwrite : bool
        Whether the commit replaces the whole table; then `versions` has all keys.
    keeps_numbers : bool
        Whether its rows have the numbers that they got when they were written, whatever was committed since.
    """

    snapshot_id: int
    actor: int
    number: int
    versions: Mapping[int, int | None]
    start_time: int
    publish_time: int
    is_overwrite: bool
    keeps_numbers: bool

    def is_after(self, other: SharedCommit) -> bool:
        """Return whether the rows of this commit certainly replace those of another one."""
        was_visible = other.publish_time < self.start_time or self.actor == other.actor or other.is_overwrite
        return self.snapshot_id > other.snapshot_id and (was_visible or not self.keeps_numbers)


class SharedHistory:
    """The states after each snapshot of a history, compared with what was observed. A state machine.

    Parameters
    ----------
    plan : Plan
        The plan of the history.
    snapshots : sequence of (Snapshot, int)
        All snapshots that were published, also those that expired, with the logical times of their publication.
    actions : sequence of Action
        All actions of the history.
    """

    def __init__(self, plan: Plan, snapshots: Sequence[tuple[Snapshot, int]], actions: Sequence[Action]) -> None:
        self._plan = plan
        self._actions = actions
        self._snapshots = sorted((s for s, _ in snapshots), key=lambda s: s.id)
        self._writers = [n for n, role in enumerate(plan.roles) if role in WRITERS]
        times = {snapshot.id: time for snapshot, time in snapshots}
        self._commits = [
            self._to_commit(s, times[s.id]) for s in self._snapshots if s.commit_kind is not CommitKind.COMPACT
        ]
        self._seen_snapshot = 0
        self._seen: Mapping[int, int] = {}

    @property
    def last_state(self) -> dict[int, int]:
        """The versions by key after all commits, if the last write of each key wins."""
        return self._compute_state(max((s.id for s in self._snapshots), default=0))

    def find_progress(self, observation: Observation) -> tuple[dict[int, int], str]:
        """Find the last commit of each writer in a state; states come in the order of their snapshots.

        Parameters
        ----------
        observation : Observation
            The state. Reads of postponed tables show the state before a later compaction, but never go back.

        Returns
        -------
        tuple
            The number of the last commit by writer, and a description of what is wrong with the state ("" if it is
            correct).
        """
        snapshot_id, versions = observation.snapshot_id, observation.versions
        if snapshot_id not in {s.id for s in self._snapshots}:
            return {}, "was not published"
        if self._plan.table_kind is TableKind.POSTPONED:
            candidates = range(self._seen_snapshot, snapshot_id + 1)
            shown = next((n for n in candidates if self._compute_state(n) == versions), None)
            if shown is None:
                return {}, f"contains {versions}, which is the state after none of the snapshots {candidates}"
            snapshot_id = shown
        problem = self._find_problem(snapshot_id, versions)
        self._seen_snapshot, self._seen = snapshot_id, versions
        last_commits = dict.fromkeys(self._writers, 0)
        for commit in self._list_commits(0, snapshot_id):
            if commit.actor in last_commits:
                last_commits[commit.actor] = max(last_commits[commit.actor], commit.number)
        return last_commits, problem

    def check_commits(self) -> Iterator[str]:
        """Check that each acknowledged commit was published, once by a writer whose snapshots do not expire.

        Yields
        ------
        str
            One sentence per violation.
        """
        counts = Counter((c.actor, c.number) for c in self._commits)
        for action in (a for a in self._actions if a.outcome is Outcome.DONE):
            count = counts[_actor_number(action.actor), action.number]
            is_repeated = count > 1 and action.role in WRITERS and not self._plan.expires_snapshots
            if action.role in _ROLES_WITH_ROWS and (is_repeated or not count):
                yield f"commit {action.number} of {action.actor} was acknowledged, and published {count} times"

    def _find_problem(self, snapshot_id: int, versions: Mapping[int, int]) -> str:
        """Return what is wrong with the state of a snapshot."""
        if self._plan.table_kind is not TableKind.DYNAMIC:
            expected = self._compute_state(snapshot_id)
            return "" if versions == expected else f"contains {versions}, and its commits lead to {expected}"
        new_commits = self._list_commits(self._seen_snapshot, snapshot_id)
        for key in {*_KEYS, *versions}:
            version, allowed = versions.get(key), self._find_allowed_versions(snapshot_id, key)
            if version not in allowed:
                return f"contains version {version} of key {key}, and its commits lead to {allowed}"
            is_new = any(key in c.versions and c.versions[key] == version for c in new_commits)
            if version != self._seen.get(key) and not is_new and not self._can_reappear(key, version, snapshot_id):
                return f"contains version {version} of key {key}, and no commit changed {self._seen.get(key)}"
        return ""

    def _can_reappear(self, key: int, version: int | None, snapshot_id: int) -> bool:
        """Return whether a compaction can have dropped the delete that hid a row with the numbers of its writer."""
        has_compacted = any(
            s.commit_kind is CommitKind.COMPACT for s in self._snapshots if self._seen_snapshot < s.id <= snapshot_id
        )
        writers = [c for c in self._list_commits(0, snapshot_id) if c.versions.get(key) == version]
        return has_compacted and key not in self._seen and any(c.keeps_numbers for c in writers)

    def _find_allowed_versions(self, snapshot_id: int, key: int) -> set[int | None]:
        """Return the versions of a key by the commits that no other commit certainly replaces."""
        commits = [c for c in self._list_commits(0, snapshot_id) if key in c.versions]
        return {c.versions[key] for c in commits if not any(d.is_after(c) for d in commits)} or {None}

    def _compute_state(self, snapshot_id: int) -> dict[int, int]:
        state: dict[int, int | None] = {}
        for commit in self._list_commits(0, snapshot_id):
            state |= commit.versions
        return {key: version for key, version in state.items() if version is not None}

    def _list_commits(self, after: int, last: int) -> list[SharedCommit]:
        return [c for c in self._commits if after < c.snapshot_id <= last]

    def _to_commit(self, snapshot: Snapshot, publish_time: int) -> SharedCommit:
        actor_name, _, number_text = snapshot.commit_user.partition(".")
        actor = _actor_number(actor_name)
        role, number = self._plan.roles[actor], int(number_text or snapshot.commit_identifier)
        rows = build_shared_rows(actor, number, role, self._plan.table_kind).to_pylist()
        written: dict[int, int | None] = {row["id"]: None if row["kind"] == "-D" else row["version"] for row in rows}
        is_overwrite = snapshot.commit_kind is CommitKind.OVERWRITE
        # A streaming writer numbers its rows from those that it saw when it started.
        numbers = (number,) if role is not Role.STREAMER else range(number + 1)
        starts = [a.start_time for a in self._actions if a.actor == actor_name and a.number in numbers]
        versions = dict.fromkeys(_KEYS) | written if is_overwrite else written
        start_time, keeps_numbers = min(starts, default=0), role is Role.STREAMER
        return SharedCommit(snapshot.id, actor, number, versions, start_time, publish_time, is_overwrite, keeps_numbers)


def _actor_number(actor_name: str) -> int:
    return int(actor_name.rpartition("-")[2])
