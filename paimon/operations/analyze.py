"""Compute the statistics of a table, and store them with a snapshot of kind ANALYZE.

Invariant: no row and no data file changes. Statistics are of one snapshot and one schema: if the schema changes before
they are published, the commit is refused. The tasks of the executor read the splits, one pass for all columns.

Source: `PaimonAnalyzeTableColumnCommand`, `FileStoreCommitImpl.commitStatistics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from attrs import frozen

from paimon.domain.commit.entries import StatisticsFile
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import CommitUncertain, InvalidRequest, PaimonError, Unsupported
from paimon.domain.json_text import dump_json
from paimon.domain.predicate.field_paths import type_at
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.stats.column_summary import ColumnSummary, can_be_summarized
from paimon.domain.stats.table_statistics import TableStatistics, share_bytes
from paimon.domain.types.data_types import DataField
from paimon.domain.types.type_text import format_type
from paimon.operations.commit.commit import commit_statistics
from paimon.operations.evolve import load_at_newest_schema
from paimon.operations.metadata.metadata_files import delete_files
from paimon.operations.metadata.schemas import on_same_table
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.read.plan import plan_scan
from paimon.operations.read.split import ReadPlan, read_split
from paimon.operations.table_context import TableContext

_MEMORY_PARTS = 4
"""The distinct values of all columns take at most half of the memory, because twice the limit of a column is held."""


@frozen
class Analyzed:
    """What ANALYZE stored."""

    snapshot_id: int
    statistics: TableStatistics
    # the columns whose number of distinct values is an estimate, because the values exceeded the memory budget
    estimated_columns: tuple[str, ...] = ()


@on_same_table
def analyze(context: TableContext, columns: Sequence[str] | None, commit_user: str) -> Analyzed:
    """Compute the statistics of the newest snapshot, and publish them as a snapshot of kind ANALYZE.

    `columns` are summarized; None means each column whose type allows it, and none of them counts rows alone. Raises
    `InvalidRequest` if the table has no snapshot, and `CommitConflict` if its schema changes during the call.
    """
    newest = load_at_newest_schema(context)
    fields = _select_columns(newest, columns)
    snapshot = latest_snapshot(newest)
    if snapshot is None:
        raise InvalidRequest(
            f"Table {newest.table.table_name!r} has no snapshot, so there is nothing to analyze.",
            subject=newest.table.table_name,
            hint="write rows first",
        )
    statistics, estimated = _compute(newest, snapshot, fields)
    stored = StatisticsFile(f"stat-{newest.engine.ids.uuid()}-0", newest.schema.id)
    path = newest.paths.statistics(stored.name)
    with newest.files.create(path) as sink:
        sink.write(dump_json(statistics.to_json()))
    try:
        published = commit_statistics(newest, CommitRequest((), commit_user), stored)
    except CommitUncertain:
        raise
    except PaimonError:
        delete_files(newest.engine, [path])
        raise
    return Analyzed(published.id, statistics, estimated)


def _select_columns(context: TableContext, columns: Sequence[str] | None) -> tuple[DataField, ...]:
    """Return the columns to summarize, in the order of the table."""
    if columns is None:
        return tuple(f for f in context.schema.fields if can_be_summarized(f.type))
    for name in columns:
        data_type = type_at(name, context.schema.fields)
        if ("." in name and name not in context.schema.fields_by_name) or not can_be_summarized(data_type):
            raise Unsupported(
                f"statistics of column {name!r} with type {format_type(data_type)}",
                hint="name columns of numbers, texts, bytes, booleans, dates and times",
            )
    return tuple(f for f in context.schema.fields if f.name in set(columns))


def _compute(
    context: TableContext, snapshot: Snapshot, fields: Sequence[DataField]
) -> tuple[TableStatistics, tuple[str, ...]]:
    """Summarize all splits of a snapshot; also return the columns whose distinct values were estimated."""
    plan = plan_scan(context, ScanRequest(snapshot))
    task = partial(_summarize_split, context.for_tasks(len(plan.splits)), fields)
    total, summaries = 0, _start_summaries(context, fields)
    for done, (rows, found) in enumerate(context.engine.executor.map(task, plan.splits), 1):
        context.engine.observer.progress("analyze splits", done, len(plan.splits))
        total += rows
        for summary, part in zip(summaries, found, strict=True):
            summary.merge(part)
    statistics = TableStatistics(
        snapshot.id,
        context.schema.id,
        total,
        share_bytes(plan.size_bytes, plan.row_count, total),
        {f.name: s.to_statistics(f) for f, s in zip(fields, summaries, strict=True)},
    )
    return statistics, tuple(f.name for f, s in zip(fields, summaries, strict=True) if not s.is_exact)


def _start_summaries(context: TableContext, fields: Sequence[DataField]) -> list[ColumnSummary]:
    exact_bytes = context.engine.memory.bytes // (_MEMORY_PARTS * max(1, len(fields)))
    return [ColumnSummary(f.type, exact_bytes) for f in fields]


def _summarize_split(
    context: TableContext, fields: Sequence[DataField], split: DataSplit
) -> tuple[int, list[ColumnSummary]]:
    """Return the rows of a split, and the summary of each column."""
    rows, summaries = 0, _start_summaries(context, fields)
    for batch in read_split(context, split, ReadPlan(tuple(f.name for f in fields))):
        rows += batch.num_rows
        for summary, column in zip(summaries, batch.columns, strict=True):
            summary.add(column)
    return rows, summaries
