"""Read a table as a Spark data frame, with columns, predicate and time travel as arguments.

Invariant: the snapshot and the schema are pinned when the data frame is created, so all its uses read one state.
"""

# The rows of a frame are loaded in four ways:
#
#     few primary keys     `look_up_keys` reads them in this process; no task starts
#     files without merge  `load_parquet_part`: Spark's own Parquet reader
#     other files          `load_splits`: tasks of this library, planned here; a union joins both
#     what is not pinned   the data source `paimon`, which plans in a process of its own; so does Spark Connect
#
# The data source opens the table again in other processes, so options (`state`) define what it reads. They pin the
# snapshot and the schema as JSON (PINNED), to which `_add_selection` adds the condition, the limit, and the files that
# Spark reads (`without`). Only a pinned scan uses the first three ways. It cannot be pinned if table options
# select a range of changes, or if its snapshot expired and exists only through a tag. Then the options name what the
# caller named.

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, cast

import pyarrow as pa
from attrs import frozen
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.types import StructType

from paimon.adapters.executors.spark import distribute_tasks, is_remote, read_tasks
from paimon.domain.changelog.incremental_range import parse_incremental_options
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.predicate.expression import Predicate
from paimon.domain.scan.engine_files import leave_out_files
from paimon.domain.scan.read_rules import is_key_lookup
from paimon.domain.scan.split_packing import SplitLimits
from paimon.domain.scan.splits import DataSplit
from paimon.domain.scan.stream_tasks import group_small_splits
from paimon.engines import freeze_objects
from paimon.operations.metadata.snapshots import find_snapshot, report_expired
from paimon.operations.read.projection import ReadPlan
from paimon.operations.read.split import read_split
from paimon.operations.table_context import TableContext
from paimon.scan import Scan
from paimon.spark.frame_reads import mark_rows, to_read_mark
from paimon.spark.options import PINNED, check_shared_storage, to_source_options
from paimon.spark.parquet_files import load_parquet_part
from paimon.spark.selection import encode_predicate
from paimon.spark.session import register
from paimon.spark.types import to_batch_schema, to_spark_batch, to_spark_frame, to_spark_schema
from paimon.spark.warehouse import open_in_session
from paimon.system_table import SystemScan, SystemTable
from paimon.table import Table


def read(  # noqa: PLR0913, PLR0917  (a public signature)
    spark: SparkSession,
    table: Table | SystemTable | str,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    snapshot: int | None = None,
    tag: str | None = None,
    timestamp: int | str | datetime | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Create a Spark data frame of a table.

    Spark itself reads the Parquet files on local disks whose rows need no merge. Tasks of this library read all other
    files. Spark cannot prune columns of these, so name the columns that you need in `columns`. The snapshot is pinned
    by this call, and all uses of the data frame read it. If `where` names whole primary keys (``"id = 5"``), this call
    reads their rows, and the data frame runs no task of this library. `count()` of a data frame without `where` runs
    no job if no files must be merged to count the rows.

    Parameters
    ----------
    spark : SparkSession
        The session; the data source is registered with it.
    table : Table, SystemTable or str
        A table or a system table, its path (``"…/orders"``, ``"…/orders$files"``), or its name in the warehouse of the
        session. The tasks get its storage and catalog options without secrets. Their credentials come from the
        environment, or from the function that the storage option ``login`` names.
    columns : sequence of str, optional
        Columns of the data frame; all by default.
    where : str, optional
        A condition in Spark's SQL. Files whose statistics exclude it are not read. Conditions that are added later
        exclude files only where Spark itself reads them.
    snapshot, tag, timestamp : int, str, or (int, str or datetime), optional
        A snapshot id, the name of a tag, or a time (epoch milliseconds, ISO text, datetime) at or before which the
        latest snapshot is read; at most one of them.
    options : mapping of str to str, optional
        Dynamic table options.

    Returns
    -------
    DataFrame
        Timestamps have microseconds. Where Spark reads files, its schema allows nulls in all columns.

    Raises
    ------
    InvalidRequest, NotFound
        A column, an option or a time is invalid; the table, the snapshot or the tag does not exist. No job was started.
    CorruptTable
        A file that Spark or this call would read is missing or damaged.
    SnapshotExpired
        The snapshot expired before Spark got the paths of its files. If it expires later, actions of Spark raise this
        error for a file that Spark reads, and an error of Spark that names it for other files.
    """
    register(spark)
    opened = open_in_session(spark, table, options) if isinstance(table, str) else _with_options(table, options or {})
    needed = None if columns is None else list(columns)
    travel: dict[str, Any] = {"snapshot": snapshot, "tag": tag, "timestamp": timestamp}
    scan = opened.scan(needed if where is None else None, **travel)
    scan = scan.without_retracts() if isinstance(scan, Scan) else scan
    _check_columns(opened.name, needed or (), scan.arrow_schema.names)
    return _load_rows(spark, opened, scan, travel, where, needed)


def _load_rows(
    spark: SparkSession,
    opened: Table | SystemTable,
    scan: Scan | SystemScan,
    travel: Mapping[str, Any],
    where: str | None,
    needed: Sequence[str] | None,
) -> DataFrame:
    """Return the rows of a scan, or those of them that a condition of Spark selects, with the needed columns."""
    state = _to_state_options(opened, scan, travel)
    if where is None:
        frame = _load(spark, opened, scan, state, scan)
        return count_by_plan(frame, scan) if PINNED in state and isinstance(scan, Scan) else frame
    found = None
    if PINNED in state and isinstance(scan, Scan):
        scan, state = _restrict(scan, state, where, needed, travel)
        found = look_up_keys(spark, opened, scan)
    selected = (_load(spark, opened, scan, state, scan) if found is None else found).where(where)
    return selected if needed is None else selected.select(*needed)


class CountedFrame(ClassicDataFrame):
    """A classic data frame of all rows of a scan that is pinned to a snapshot, without a condition or a limit.

    Frames that are made from this one, and cached ones, are counted by Spark.
    """

    def __init__(self, frame: DataFrame, scan: Scan) -> None:
        super().__init__(frame._jdf, frame.sparkSession)
        self._scan = scan

    def count(self) -> int:
        """Return the number of rows: that of the plan, or, if files must be merged to count them, that of a job."""
        known = None if self.is_cached else self._scan.plan().merged_row_count  # a count fills the cache of Spark
        return super().count() if known is None else known


def count_by_plan(frame: DataFrame, scan: Scan) -> DataFrame:
    """Return a frame whose count is that of the plan of its scan; through Spark Connect, the same frame."""
    return CountedFrame(frame, scan) if isinstance(frame, ClassicDataFrame) else frame


def look_up_keys(spark: SparkSession, table: Table | SystemTable, scan: Scan) -> DataFrame | None:
    """Return the rows of a few primary keys, read in this process: processes for tasks take longer to start."""
    predicate = scan.read_plan.predicate
    if predicate is None or not is_key_lookup(scan.pinned.table, predicate, scan.plan()):
        return None
    check_shared_storage(table)
    return to_spark_frame(spark, scan.to_arrow())


def _restrict(
    scan: Scan, state: Mapping[str, str], where: str, needed: Sequence[str] | None, travel: Mapping[str, Any]
) -> tuple[Scan, dict[str, str]]:
    """Restrict a scan to what a condition of Spark needs."""
    from paimon.spark.conditions import find_columns, find_where  # the parser is only loaded for text

    columns = find_columns(where, needed, scan.arrow_schema.names)
    condition = find_where(where, scan.fields)
    sent = None if condition is None else encode_predicate(condition)
    restricted = Scan(scan.context, columns=columns, where=condition if sent else None, pinned=scan.pinned, **travel)
    return restricted, _add_selection(state, where=sent)


def read_scan(
    spark: SparkSession,
    table: Table | SystemTable,
    scan: Scan | SystemScan,
    where: Predicate | None = None,
    limit: int | None = None,
) -> DataFrame:
    """Create a Spark data frame of the columns of a scan, at its snapshot; Spark reads each split with one task.

    `table` has its dynamic options. `where` and `limit` are hints that may leave out rows; the caller applies both
    again.
    """
    state, limited = _to_state_options(table, scan, {}), scan
    if PINNED in state and isinstance(scan, Scan):
        state = _add_selection(state, where=None if where is None else encode_predicate(where), limit=limit)
        limited = Scan(scan.context, columns=scan.arrow_schema.names, where=where, limit=limit, pinned=scan.pinned)
    return _load(spark, table, scan, state, limited)


def load_splits(spark: SparkSession, table: Table, scan: Scan, limited: Scan, is_marked: bool = False) -> DataFrame:
    """Create a frame of a pinned scan without the data source, in a classic session.

    `limited` is the scan with hints that may leave out rows, such as a limit; the caller applies them, too. The plan
    has a read mark if `is_marked`.
    """
    check_shared_storage(table)
    schema = to_spark_schema(scan.arrow_schema)
    part = load_parquet_part(spark, scan, schema)
    if part is not None and part.is_whole:
        return part.frame
    splits = leave_out_files(limited.plan().splits, () if part is None else part.names)
    context = table.context.with_table(scan.pinned.table)
    loaded = read_splits(spark, splits, ReadSplits(context, limited.read_plan, to_batch_schema(schema)), schema)
    loaded = mark_rows(loaded, limited) if is_marked else loaded
    return loaded if part is None else part.frame.union(loaded)


def read_splits(spark: SparkSession, splits: Sequence[DataSplit], read: ReadSplits, schema: StructType) -> DataFrame:
    """Return a frame of the rows of splits, with a task for each of them, or for several small ones."""
    tasks = group_small_splits(splits, SplitLimits.of(read.context.table.options))
    return distribute_tasks(spark, tasks).mapInArrow(read, schema) if tasks else spark.createDataFrame([], schema)


@frozen(eq=False)
class ReadSplits:
    """The task that reads the rows of splits."""

    context: TableContext
    read: ReadPlan
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows as Spark has them."""
        for split in chain.from_iterable(cast(Sequence[DataSplit], task) for _, task in read_tasks(batches)):
            with report_expired(self.context, split.snapshot_id):
                for batch in self.read_split(split):
                    yield to_spark_batch(batch, self.schema)
        freeze_objects()

    def read_split(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split."""
        yield from read_split(self.context, split, self.read)


def is_pinned(table: Table | SystemTable, scan: Scan | SystemScan) -> bool:
    """Return whether a read of the scan has its snapshot, so that conditions and limits can be added to it."""
    return PINNED in _to_state_options(table, scan, {})


def _load(
    spark: SparkSession,
    table: Table | SystemTable,
    scan: Scan | SystemScan,
    state: Mapping[str, str],
    limited: Scan | SystemScan,
) -> DataFrame:
    """Load a scan; `limited` has the hints that `state` has for the data source."""
    check_shared_storage(table)
    options = to_source_options(table)
    if PINNED in state and not is_remote(spark):
        assert isinstance(table, Table)
        assert isinstance(scan, Scan)
        assert isinstance(limited, Scan)
        return load_splits(spark, table, scan, limited, is_marked=True)
    schema = to_spark_schema(scan.arrow_schema)
    part = load_parquet_part(spark, scan, schema) if isinstance(scan, Scan) and PINNED in state else None
    if part is not None and part.is_whole:
        return part.frame
    rest = state if part is None else _add_selection(state, without=part.names)
    mark = to_read_mark(scan) if isinstance(scan, Scan) else {}
    loaded = spark.read.format("paimon").schema(schema).options(**options, **rest, **mark).load(_path(table))
    return loaded if part is None else part.frame.union(loaded)


def _add_selection(state: Mapping[str, str], **selection: object) -> dict[str, str]:
    return {PINNED: json.dumps({**json.loads(state[PINNED]), **selection})}


def _with_options(table: Table | SystemTable, options: Mapping[str, str]) -> Table | SystemTable:
    if isinstance(table, Table):
        return table.with_options(options)
    if options:
        hint = "pass the options to paimon.open_table"
        raise InvalidRequest(f"System table {table.name!r} takes no options here.", subject="options", hint=hint)
    return table


def _path(table: Table | SystemTable) -> str:
    location = table.definition.location
    return f"{location}${table.system_name}" if isinstance(table, SystemTable) else location


def _check_columns(name: str, columns: Sequence[str], known: Sequence[str]) -> None:
    for column in columns:
        if column.partition(".")[0] not in (*known, *(other.partition(".")[0] for other in known)):
            raise InvalidRequest(
                f"Table {name!r} has no column {column!r}.", subject=column, hint=did_you_mean(column, known)
            )


def _to_state_options(
    table: Table | SystemTable, scan: Scan | SystemScan, travel: Mapping[str, object]
) -> dict[str, str]:
    """Return the options of the source that select the state of a scan."""
    given = {name: str(value) for name, value in travel.items() if value is not None}
    if not isinstance(scan, Scan):
        return _to_option_names(given)
    if isinstance(table, SystemTable):
        return _to_option_names(given) or _pin_view(table, scan)
    pinned = scan.pinned
    if parse_incremental_options(table.definition.options) is not None or pinned.made_since_millis is not None:
        return {}  # the table options select a range of changes or of files
    if pinned.snapshot is not None and find_snapshot(table.context, pinned.snapshot.id) is None:
        return _to_option_names(given)  # the snapshot expired, and exists only through a tag
    at = {"snapshot": None if pinned.snapshot is None else pinned.snapshot.id, "schema": pinned.table.schema.id}
    return {PINNED: json.dumps(at)}


def _pin_view(table: SystemTable, scan: Scan) -> dict[str, str]:
    """Return the snapshot of a view such as ``$audit_log``, unless its options select a snapshot or a range."""
    options = table.definition.options
    snapshot = scan.pinned.snapshot
    selects = parse_incremental_options(options) is not None or any(key.startswith("scan.") for key in options.values)
    return {} if snapshot is None or selects else {"snapshot": str(snapshot.id)}


def _to_option_names(travel: Mapping[str, str]) -> dict[str, str]:
    return {"timestampAsOf" if name == "timestamp" else name: value for name, value in travel.items()}
