"""Read from two branches: `scan.fallback-branch` and `scan.primary-branch`.

Invariant: each partition is read from one branch only: from the first branch if it has a file of the partition, else
from the second. With a fallback branch, the table's own branch is the first; with a primary branch, it is the second.
Files of the other branch are read with its schemas and options. A read of an older snapshot reads the other branch at
the time of that snapshot. Source: `FallbackReadFileStoreTable`.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from attrs import evolve

from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths
from paimon.domain.scan.scan_plan import Plan, PruneStep, ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.rules.table_type import check_table_type
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.manifests import read_data_manifests, read_live_entries
from paimon.operations.metadata.schemas import latest_schema
from paimon.operations.metadata.snapshots import latest_snapshot, snapshot_before
from paimon.operations.read.plan import plan_repeated_scan, plan_scan
from paimon.operations.table_context import TableContext


def plan_with_fallback(context: TableContext, request: ScanRequest) -> Plan:
    """Plan a read, including the partitions of a fallback or primary branch if an option names one.

    Raises `InvalidRequest` if the columns of the two branches differ.
    """
    made = plan_repeated_scan(context, request)
    primary = context.options.scan_primary_branch
    branch = primary or context.options.scan_fallback_branch
    if not branch or branch == context.table.branch:
        return made
    other = _load_branch(context, branch)
    snapshot = _find_snapshot_at_same_time(context, other, request.snapshot)
    found = tuple(evolve(split, branch=branch) for split in plan_scan(other, evolve(request, snapshot=snapshot)).splits)
    if primary:
        own, more = _drop_partitions(made.splits, _read_partitions(other, snapshot)), found
    else:
        own, more = made.splits, _drop_partitions(found, _read_partitions(context, request.snapshot))
    steps = [_build_step(f"splits of branch {branch}", found, more)]
    if primary:
        steps.append(_build_step(f"splits that branch {branch} lacks", made.splits, own))
    return evolve(made, splits=(*own, *more), steps=(*made.steps, *steps))


def _drop_partitions(splits: Sequence[DataSplit], partitions: Container[bytes]) -> tuple[DataSplit, ...]:
    """Return the splits that are in none of the partitions."""
    return tuple(split for split in splits if split.partition not in partitions)


def _build_step(name: str, before: Sequence[DataSplit], after: Sequence[DataSplit]) -> PruneStep:
    return PruneStep(name, len(before), len(after), sum(split.file_size for split in after))


def get_split_context(context: TableContext, split: DataSplit) -> TableContext:
    """Return the context of the table on the branch to which a split belongs."""
    return context if split.branch is None else _load_branch(context, split.branch)


def _load_branch(context: TableContext, branch: str) -> TableContext:
    """Return the context of the table on its fallback or primary branch, whose columns and keys must be the same."""
    paths = TablePaths(context.table.location, branch)
    schema = latest_schema(context.engine, paths)
    if schema is None:
        option = _branch_option(context.table)
        raise NotFound("branch", branch, hint=f"create the branch, or reset option {option!r}")
    if _columns_and_keys(schema) != _columns_and_keys(context.schema):
        raise InvalidRequest(
            f"Branch {branch!r} has other columns or keys than branch {context.table.branch!r}",
            subject=branch,
            hint=f"reset option {_branch_option(context.table)!r}, or change the columns of one branch",
        )
    options = TableOptions.of(schema.options)
    check_table_type(options, f"{context.table.table_name}$branch_{branch}")
    return context.with_table(evolve(context.table.at_paths(paths), schema=schema, options=options))


def _branch_option(table: TableDefinition) -> str:
    return "scan.primary-branch" if table.options.scan_primary_branch else "scan.fallback-branch"


def _columns_and_keys(schema: TableSchema) -> object:
    return [(f.name, f.type) for f in schema.fields], schema.partition_keys, schema.primary_keys


def _find_snapshot_at_same_time(
    context: TableContext, other: TableContext, requested: Snapshot | None
) -> Snapshot | None:
    """Return the snapshot of the other branch at the time of the snapshot that is read of the table."""
    newest = latest_snapshot(context)
    if requested is None or newest is None or requested.identity == newest.identity:
        return latest_snapshot(other)
    return snapshot_before(other, requested.time_millis)


def _read_partitions(context: TableContext, snapshot: Snapshot | None) -> frozenset[bytes]:
    if snapshot is None:
        return frozenset()
    return frozenset(e.partition for e in read_live_entries(context, read_data_manifests(context, snapshot)))
