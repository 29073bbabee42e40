"""Paimon tables in PySpark.

    import paimon.spark
    spark = paimon.spark.session()                                # local, with a Java runtime if none is found
    paimon.spark.register(spark)                                  # or: with your own session
    df = paimon.spark.read(spark, "lake/shop.db/orders", columns=["id"], where="amount > 5")
    paimon.spark.write(df, "lake/shop.db/orders")                 # rows are routed to their bucket; one atomic commit
    paimon.spark.write_stream(stream, "lake/shop.db/orders", "checkpoints/orders")  # each micro-batch commits once
    paimon.spark.cdc(events, "lake/shop.db/orders", "debezium-json")    # change data capture, batch frames or streams
    paimon.spark.delete("lake/shop.db/orders", "amount < 0")      # one task per split or bucket; one atomic commit
    paimon.spark.merge(df, "lake/shop.db/orders", on="id")        # a builder of clauses, as `Table.merge` returns it
    paimon.spark.compact("lake/shop.db/orders", full=True)        # one task per bucket; one atomic commit
    paimon.spark.rescale("lake/shop.db/orders", buckets=8)        # one task per source bucket, one shuffle, one commit
    paimon.spark.maintain("shop")                                 # what is due for the tables of a database: a report
    paimon.spark.connect(spark, "lake").sql("SELECT …")           # SQL statements; queries become data frames

`spark.read.format("paimon")` and `df.write.format("paimon")` work too.

Invariant: Spark distributes the work and implements no rule again. A task reads or writes with the functions that run
embedded.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from paimon.domain.extras import is_optional, missing_extra

try:
    if find_spec("pandas") is None:  # Spark needs it as soon as it exchanges rows
        raise missing_extra("paimon.spark", "pandas", "spark")
    from paimon.spark.read import read
    from paimon.spark.session import register, session
    from paimon.spark.write import write
except ModuleNotFoundError as missing:  # (a MissingExtra is not a ModuleNotFoundError)
    if missing.name is None or not is_optional(missing.name):
        raise
    raise missing_extra("paimon.spark", missing.name, "spark") from missing

if TYPE_CHECKING:
    from paimon.spark.maintenance.compact import compact
    from paimon.spark.maintenance.expire_and_check import check, expire_snapshots, maintain, remove_orphans
    from paimon.spark.maintenance.rescale import rescale
    from paimon.spark.row_level.delete_update import delete, update
    from paimon.spark.row_level.merge import merge
    from paimon.spark.session_catalog.attach import attach, detach
    from paimon.spark.sql.sql_catalog import SparkCatalog, connect
    from paimon.spark.streams.capture_changes import cdc
    from paimon.spark.streams.observe_streams import observe_streams
    from paimon.spark.streams.write_stream import write_stream

_LOADED_ON_USE = {
    "SparkCatalog": "sql.sql_catalog",
    "attach": "session_catalog.attach",
    "cdc": "streams.capture_changes",
    "check": "maintenance.expire_and_check",
    "compact": "maintenance.compact",
    "connect": "sql.sql_catalog",
    "delete": "row_level.delete_update",
    "detach": "session_catalog.attach",
    "expire_snapshots": "maintenance.expire_and_check",
    "maintain": "maintenance.expire_and_check",
    "merge": "row_level.merge",
    "observe_streams": "streams.observe_streams",
    "remove_orphans": "maintenance.expire_and_check",
    "rescale": "maintenance.rescale",
    "update": "row_level.delete_update",
    "write_stream": "streams.write_stream",
}
"""The modules of names that tasks of reads and writes do not need: each process of Spark loads this package."""

__all__ = [
    "SparkCatalog",
    "attach",
    "cdc",
    "check",
    "compact",
    "connect",
    "delete",
    "detach",
    "expire_snapshots",
    "maintain",
    "merge",
    "observe_streams",
    "read",
    "register",
    "remove_orphans",
    "rescale",
    "session",
    "update",
    "write",
    "write_stream",
]


def __getattr__(name: str) -> Any:
    if name not in _LOADED_ON_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LOADED_ON_USE[name]}"), name)
