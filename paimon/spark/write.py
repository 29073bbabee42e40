"""The comfortable way to write: rows are routed to their bucket on the executors, one writer a bucket, one atomic
commit.

Law: the bucket of a row is computed by the same function that the embedded writer uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, StructField, StructType

from paimon.domain.errors import InvalidRequest
from paimon.engines import open_table
from paimon.operations.write.route import task_ids
from paimon.spark.options import ROUTE_COLUMN, ROUTED
from paimon.spark.session import register
from paimon.table import Table

_MODES = ("append", "overwrite")


def write(
    frame: DataFrame,
    table: Table | str,
    mode: str = "append",
    *,
    kind_column: str | None = None,
    tasks: int | None = None,
    commit_user: str | None = None,
    commit_identifier: int | None = None,
    options: Mapping[str, str] | None = None,
) -> None:
    """Write a data frame in one commit.

    Parameters
    ----------
    frame : DataFrame
        Rows with the table's columns.
    table : Table or str
        A table, or the path of one.
    mode : str
        ``"append"`` (upsert, where there is a primary key) or ``"overwrite"`` (the partitions that are written).
    kind_column : str
        A column that holds row kinds and is not stored.
    tasks : int
        Into how many tasks rows are routed; Spark's default parallelism by default.
    commit_user, commit_identifier
        With both given the commit happens once, however often it is tried.
    options : mapping
        Dynamic table options.
    """
    if mode not in _MODES:
        raise InvalidRequest(f"mode {mode!r} is unknown", subject="mode", hint=f"known are {', '.join(_MODES)}")
    register(frame.sparkSession)
    opened = table if isinstance(table, Table) else open_table(table, options)
    assert isinstance(opened, Table)
    routed = _routed(frame, opened, tasks or frame.sparkSession.sparkContext.defaultParallelism)
    given = {
        ROUTED: "true",
        "kind-column": kind_column,
        "commit-user": commit_user,
        "commit-identifier": None if commit_identifier is None else str(commit_identifier),
        "branch": None if opened.definition.branch == "main" else opened.definition.branch,
    }
    writer = routed.write.format("paimon").mode(mode).options(**dict(options or {}))
    writer.options(**{k: v for k, v in given.items() if v is not None}).save(opened.location)


def _routed(frame: DataFrame, table: Table, tasks: int) -> DataFrame:
    if table.definition.options.bucket < 1:
        return frame
    definition = table.definition
    schema = StructType([*frame.schema.fields, StructField(ROUTE_COLUMN, IntegerType(), False)])

    def with_route(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            routes = task_ids(definition, pa.Table.from_batches([batch]), tasks)
            yield batch.append_column(ROUTE_COLUMN, routes)

    return frame.mapInArrow(with_route, schema).repartitionById(tasks, ROUTE_COLUMN)
