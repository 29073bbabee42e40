"""Collect the state of the table after each commit: its stored records and its rows.

Invariant: stored records are those of the files of a scan plan; rows are those of a scan of the same snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa
from attrs import frozen

from paimon.domain.scan.scan_plan import Plan
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.table import Table


@frozen
class TableState:
    """The state of the table at one snapshot.

    Parameters
    ----------
    label : str
        The number of the commit, or ``"compaction"``.
    records_by_level : mapping of int to int
        Number of stored records by LSM level.
    run_count, file_count : int
        Number of sorted runs and of data files. Each file of level 0 and each higher level of a bucket is one run.
    rows_by_status : mapping of str to int
        Number of rows that a reader sees, by the status of the flight.
    late_count : int
        Events of this commit that are older than a stored event of the same flight.
    """

    label: str
    records_by_level: Mapping[int, int]
    run_count: int
    file_count: int
    rows_by_status: Mapping[str, int]
    late_count: int = 0


def collect_states(table: Table, late_counts: Sequence[int]) -> list[TableState]:
    """Read the state of a table at each of its snapshots.

    Parameters
    ----------
    table : Table
        A table of flights.
    late_counts : sequence of int
        Late events of each commit that is not a compaction, in order.

    Returns
    -------
    list of TableState
        Oldest first.
    """
    late = iter(late_counts)
    states, commits = [], 0
    for snapshot in table.snapshots():
        compacted = snapshot.commit_kind is CommitKind.COMPACT
        commits += not compacted
        label = "compaction" if compacted else str(commits)
        states.append(_collect_state(table, snapshot.id, label, 0 if compacted else next(late, 0)))
    return states


def _collect_state(table: Table, snapshot: int, label: str, late_count: int) -> TableState:
    scan = table.scan(snapshot=snapshot, columns=["status"])
    plan = scan.plan()
    records: Counter[int] = Counter()
    for split in plan.splits:
        for file in split.files:
            records[file.level] += file.row_count
    counted = scan.to_arrow().group_by("status").aggregate([("status", "count")])
    statuses = dict(zip(*(counted[name].to_pylist() for name in ("status", "status_count")), strict=True))
    return TableState(label, dict(sorted(records.items())), count_runs(plan), plan.file_count, statuses, late_count)


def count_runs(plan: Plan) -> int:
    """Count the sorted runs of all buckets of a plan."""
    buckets: dict[tuple[bytes, int], list[int]] = {}
    for split in plan.splits:
        buckets.setdefault((split.partition, split.bucket), []).extend(file.level for file in split.files)
    return sum(levels.count(0) + len(set(levels) - {0}) for levels in buckets.values())


def read_delays(table: Table) -> pa.Table:
    """Read the columns from which delays are computed, at the latest snapshot."""
    return table.scan(columns=["carrier", "month", "flight", "arr_delay"]).to_arrow()
