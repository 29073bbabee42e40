"""Reading from two branches: `scan.fallback-branch` and `scan.primary-branch`.

Law: a partition is read from one branch alone: from the first where that holds any file of it, else from the second.
The table's own branch is the first one beside a fallback branch, and the second one beside a primary branch. Files of
the other branch are read under its schemas and options. A read of an older snapshot takes the other branch as it was
then. Source: `FallbackReadFileStoreTable`.
"""

from __future__ import annotations

from attrs import evolve

from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths
from paimon.domain.scan.plan import Plan, PruneStep, ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.rules.table_type import check_table_type
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.manifests import data_manifests, live_entries
from paimon.operations.read.plan import plan
from paimon.operations.read.schemas import latest_schema
from paimon.operations.read.snapshots import latest_snapshot, snapshot_before
from paimon.ports.engine import Engine


def plan_with_fallback(engine: Engine, table: TableDefinition, request: ScanRequest) -> Plan:
    """The plan of a read, with the partitions that another branch gives, where the table names one."""
    made = plan(engine, table, request)
    primary = table.options.scan_primary_branch
    branch = primary or table.options.scan_fallback_branch
    if not branch or branch == table.branch:
        return made
    other = branch_table(engine, table, branch)
    snapshot = _snapshot_then(engine, table, other, request.snapshot)
    found = plan(engine, other, evolve(request, snapshot=snapshot)).splits
    if primary:
        theirs = _partitions(engine, other, snapshot)
        own = tuple(split for split in made.splits if split.partition not in theirs)
        more = tuple(evolve(split, branch=branch) for split in found)
    else:
        mine = _partitions(engine, table, request.snapshot)
        own = made.splits
        more = tuple(evolve(split, branch=branch) for split in found if split.partition not in mine)
    steps = [PruneStep(f"splits of branch {branch}", len(found), len(more), sum(s.file_size for s in more))]
    if primary:
        lacking = f"splits that branch {branch} lacks"
        steps.append(PruneStep(lacking, len(made.splits), len(own), sum(s.file_size for s in own)))
    return evolve(made, splits=(*own, *more), steps=(*made.steps, *steps))


def table_of_split(engine: Engine, table: TableDefinition, split: DataSplit) -> TableDefinition:
    """The table that a split is read as."""
    return table if split.branch is None else branch_table(engine, table, split.branch)


def branch_table(engine: Engine, table: TableDefinition, branch: str) -> TableDefinition:
    """The table seen from its fallback or primary branch.

    Raises
    ------
    NotFound
        There is no such branch.
    InvalidRequest
        Its columns are not those of the table.
    """
    paths = TablePaths(table.location, branch)
    schema = latest_schema(engine, paths)
    if schema is None:
        raise NotFound("branch", branch, hint=f"option {_option(table)} of {table.identifier} names it")
    if _shape(schema) != _shape(table.schema):
        raise InvalidRequest(
            f"branch {branch!r} has other columns or keys than the branch that is read with it",
            subject=branch,
            hint=f"reset the option {_option(table)}, or give both the same columns",
        )
    options = TableOptions.of(schema.options)
    check_table_type(options, f"{table.identifier}$branch_{branch}")
    return evolve(table, paths=paths, schema=schema, options=options)


def _option(table: TableDefinition) -> str:
    return "scan.primary-branch" if table.options.scan_primary_branch else "scan.fallback-branch"


def _shape(schema: TableSchema) -> object:
    return [(f.name, f.type) for f in schema.fields], schema.partition_keys, schema.primary_keys


def _snapshot_then(
    engine: Engine, table: TableDefinition, other: TableDefinition, asked: Snapshot | None
) -> Snapshot | None:
    """The other branch's snapshot at the time of the one that is read of the table."""
    newest = latest_snapshot(engine, table.paths)
    if asked is None or newest is None or asked.identity == newest.identity:
        return latest_snapshot(engine, other.paths)
    return snapshot_before(engine, other.paths, asked.time_millis)


def _partitions(engine: Engine, table: TableDefinition, snapshot: Snapshot | None) -> frozenset[bytes]:
    if snapshot is None:
        return frozenset()
    return frozenset(e.partition for e in live_entries(engine, table, data_manifests(engine, table, snapshot)))
