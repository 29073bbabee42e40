"""The comfortable way to read: columns, predicate and time travel as arguments.

Law: the snapshot is pinned when the data frame is made, so that all its uses see one state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from paimon.engines import open_table
from paimon.spark.session import register
from paimon.spark.types import spark_schema
from paimon.table import Table


def read(
    spark: SparkSession,
    table: Table | str,
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
    table : Table or str
        A table, or the path of one.
    columns : sequence of str
        Columns wanted; all by default.
    where : str
        A condition in Spark's SQL; Spark pushes down what the source understands.
    snapshot, tag, timestamp
        Time travel, at most one.
    options : mapping
        Dynamic table options.
    """
    register(spark)
    opened = table if isinstance(table, Table) else open_table(table, options)
    assert isinstance(opened, Table)
    needed = None if columns is None else list(columns)
    scan = opened.scan(columns=None if where else needed, snapshot=snapshot, tag=tag, timestamp=timestamp)
    dynamic = {k: v for k, v in opened.options.items() if opened.table_schema.options.get(k) != v} | dict(options or {})
    if tag is not None:
        dynamic["scan.tag-name"] = tag
    elif scan.pinned.snapshot is not None and not any(k.startswith("scan.") for k in dynamic):
        dynamic["scan.snapshot-id"] = str(scan.pinned.snapshot.id)
    branch = {} if opened.definition.branch == "main" else {"branch": opened.definition.branch}
    frame = (
        spark.read.format("paimon")
        .schema(spark_schema(scan.arrow_schema))
        .options(**dynamic, **branch)
        .load(opened.location)
    )
    if where is not None:
        frame = frame.where(where)
        return frame if needed is None else frame.select(*needed)
    return frame
