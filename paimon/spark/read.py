"""The comfortable way to read: columns, predicate and time travel as arguments.

Law: the snapshot and the schema are pinned when the data frame is made, so that all its uses see one state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from paimon.domain.changelog.between import asked
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.engines import open_table
from paimon.operations.read.snapshots import find_snapshot
from paimon.scan import Scan
from paimon.spark.options import PINNED, options_of
from paimon.spark.session import register
from paimon.spark.types import spark_schema
from paimon.system_table import SystemScan, SystemTable
from paimon.table import Table


def read(
    spark: SparkSession,
    table: Table | SystemTable | str,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    snapshot: int | None = None,
    tag: str | None = None,
    timestamp: int | str | datetime | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """A Spark data frame of a table.

    Spark cannot prune columns of a Python data source by itself, so name those that you need in `columns`. The
    snapshot is pinned now, and all uses of the data frame see it.

    Parameters
    ----------
    table : Table, SystemTable or str
        A table or a system table, or the path of one (``"…/orders"``, ``"…/orders$files"``). Its storage and catalog
        options go to the tasks, but for secrets: there credentials come from the environment, or from the function
        that the storage option ``login`` names.
    columns : sequence of str
        Columns wanted; all by default.
    where : str
        A condition in Spark's SQL; Spark pushes down what the source understands.
    snapshot, tag, timestamp
        Time travel, at most one.
    options : mapping
        Dynamic table options.

    Raises
    ------
    InvalidRequest
        A column, an option or a time that cannot be; no job was started.
    NotFound
        No such table, snapshot or tag.
    """
    register(spark)
    opened = open_table(table, options) if isinstance(table, str) else _with_options(table, options or {})
    needed = None if columns is None else list(columns)
    travel = {"snapshot": snapshot, "tag": tag, "timestamp": timestamp}
    scan = opened.scan(needed if where is None else None, **travel)  # type: ignore[arg-type]
    schema = scan.arrow_schema
    _check_columns(opened.name, needed or (), schema.names)
    frame = (
        spark.read.format("paimon")
        .schema(spark_schema(schema))
        .options(**options_of(opened), **_state(opened, scan, travel))
        .load(_path(opened))
    )
    if where is not None:
        frame = frame.where(where)
        return frame if needed is None else frame.select(*needed)
    return frame


def _with_options(table: Table | SystemTable, options: Mapping[str, str]) -> Table | SystemTable:
    if isinstance(table, Table):
        return table.with_options(options)
    if options:
        hint = "open the system table with them"
        raise InvalidRequest("a system table takes no options", subject="options", hint=hint)
    return table


def _path(table: Table | SystemTable) -> str:
    location = table.definition.location
    return f"{location}${table.system_name}" if isinstance(table, SystemTable) else location


def _check_columns(name: str, columns: Sequence[str], known: Sequence[str]) -> None:
    for column in columns:
        if column.partition(".")[0] not in (*known, *(other.partition(".")[0] for other in known)):
            raise InvalidRequest(f"{name} has no column {column!r}", subject=column, hint=did_you_mean(column, known))


def _state(table: Table | SystemTable, scan: Scan | SystemScan, travel: Mapping[str, object]) -> dict[str, str]:
    """The source's options that stand for the state of a scan."""
    given = {name: str(value) for name, value in travel.items() if value is not None}
    if isinstance(table, SystemTable) or not isinstance(scan, Scan):
        return _named(given)
    pinned = scan.pinned
    if asked(table.definition.options) is not None or pinned.made_since_millis is not None:
        return {}  # a range of changes, or of files: the table's options say which
    if pinned.snapshot is not None and find_snapshot(table.engine, table.definition.paths, pinned.snapshot.id) is None:
        return _named(given)  # only a tag keeps it
    at = {"snapshot": None if pinned.snapshot is None else pinned.snapshot.id, "schema": pinned.table.schema.id}
    return {PINNED: json.dumps(at)}


def _named(travel: Mapping[str, str]) -> dict[str, str]:
    return {"timestampAsOf" if name == "timestamp" else name: value for name, value in travel.items()}
