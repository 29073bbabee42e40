"""Do the maintenance that is due for a table: compaction, then expiry, then orphan files if requested.

Invariant: what is due is what the options of the table define; `write-only` has no effect, because this maintenance
takes the place of the writers'. An error of one action is reported, and the other actions run. A dry run changes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import pyarrow as pa
from attrs import evolve, frozen

from paimon.domain.errors import PaimonError
from paimon.domain.maintenance.partition_expiry import PartitionRetention
from paimon.domain.maintenance.snapshot_expiry import has_decoupled_changelogs
from paimon.operations.expire.expire_changelogs import expire_changelogs, find_expirable_changelogs
from paimon.operations.expire.expire_partitions import expire_partitions, find_expired_partitions
from paimon.operations.expire.expire_snapshots import expire_snapshots, find_expirable_snapshots
from paimon.operations.expire.orphan_files import find_orphan_files, remove_orphans
from paimon.operations.metadata.schemas import on_same_table
from paimon.operations.metadata.storage_time import OlderThan
from paimon.operations.refs.consumers import expire_consumers, find_old_consumers
from paimon.operations.refs.tags import expire_tags, find_expired_tags
from paimon.operations.table_context import TableContext
from paimon.operations.write.compact_table import plan_table_compaction

_Table = TypeVar("_Table")
_SCHEMA = pa.schema(
    [
        ("table", pa.string()),
        ("action", pa.string()),
        ("count", pa.int64()),
        ("unit", pa.string()),
        ("error", pa.string()),
    ]
)


@frozen
class DueRequest:
    """What maintenance a caller wants."""

    # compact each bucket into one sorted run, not only what the options of the table require
    full: bool = False
    # also delete orphan files that are older than a day
    orphans: bool = False
    # count what is due, and change nothing
    dry_run: bool = False


@frozen
class DoneWork:
    """What one action did to a table, or would do."""

    table: str
    # such as "compact"
    action: str
    # how many objects the action changed
    count: int = 0
    # the plural name of these objects
    unit: str = ""
    # why the action failed; None if it did not
    error: str | None = None


@frozen
class _Action:
    name: str
    unit: str
    count: Callable[[], int]
    run: Callable[[], int]


@on_same_table
def run_due_work(context: TableContext, request: DueRequest, compact: Callable[[], int]) -> list[DoneWork]:
    """Do the maintenance that is due, in order, and return what had to do something or failed."""
    compacting = context.with_table(evolve(context.table, options=context.options.with_values({"write-only": "false"})))
    done: list[DoneWork] = []
    for action in _list_actions(compacting, request, compact):
        context.engine.observer.progress(f"maintenance: {action.name}", len(done))
        try:
            count = action.count() if request.dry_run else action.run()
        except PaimonError as error:
            done.append(DoneWork(context.table.table_name, action.name, error=str(error)))
            continue
        if count:
            done.append(DoneWork(context.table.table_name, action.name, count, action.unit))
    return done


def to_report(done: Iterable[DoneWork]) -> pa.Table:
    """Return actions as a table: `table`, `action`, `count`, `unit` and `error`."""
    rows = [(work.table, work.action, work.count, work.unit, work.error) for work in done]
    columns = list(zip(*rows, strict=True)) or [()] * len(_SCHEMA)
    return pa.Table.from_arrays(
        [pa.array(values, of.type) for values, of in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
    )


def report_tables(
    names: Iterable[str], open_table: Callable[[str], _Table], run_due: Callable[[_Table], pa.Table]
) -> pa.Table:
    """Do what is due for tables, one after the other, and join their reports."""
    reports = [to_report([])]
    for name in names:
        try:
            report = run_due(open_table(name))
        except PaimonError as error:
            report = to_report([DoneWork(name, "open", error=str(error))])
        reports.append(report)
    return pa.concat_tables(reports)


def _list_actions(context: TableContext, request: DueRequest, compact: Callable[[], int]) -> Iterator[_Action]:
    options = context.options
    yield _Action("compact", "buckets", lambda: plan_table_compaction(context, request.full).buckets, compact)
    yield _Action("expire_tags", "tags", lambda: len(find_expired_tags(context)), lambda: len(expire_tags(context)))
    retention = PartitionRetention.of(options) if context.schema.partition_keys else None
    if retention is not None:
        yield _Action(
            "expire_partitions",
            "partitions",
            lambda: len(find_expired_partitions(context, retention)),
            lambda: len(expire_partitions(context, context.engine.ids.uuid(), retention)),
        )
    if options.consumer_expiration_millis is not None:
        older_than = OlderThan(options.consumer_expiration_millis)
        yield _Action(
            "expire_consumers",
            "consumers",
            lambda: len(find_old_consumers(context, older_than)),
            lambda: len(expire_consumers(context, older_than)),
        )
    yield _Action(
        "expire_snapshots",
        "snapshots",
        lambda: find_expirable_snapshots(context).snapshots,
        lambda: expire_snapshots(context, everything=True).snapshots,
    )
    if has_decoupled_changelogs(options):
        yield _Action(
            "expire_changelogs",
            "changelogs",
            lambda: find_expirable_changelogs(context).snapshots,
            lambda: expire_changelogs(context).snapshots,
        )
    if request.orphans:
        yield _Action(
            "remove_orphans",
            "files",
            lambda: find_orphan_files(context).num_rows,
            lambda: remove_orphans(context).num_rows,
        )
