"""What sessions of Spark Connect lack: the Spark context of this process, with its parallelism and its accumulators.

Invariant: a function that cannot work without it is refused by name, before it reads or writes anything.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from paimon.domain.errors import Unsupported

_MOST_TASKS = 1 << 16


def is_remote(spark: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect, which has no Java objects in this process."""
    return not hasattr(spark, "_jsparkSession")


def check_classic(spark: SparkSession, feature: str, hint: str) -> None:
    """Refuse a session of Spark Connect.

    Parameters
    ----------
    spark : SparkSession
        The session.
    feature : str
        What needs a classic session.
    hint : str
        What to do.

    Raises
    ------
    Unsupported
        The session is one of Spark Connect.
    """
    if is_remote(spark):
        raise Unsupported(f"{feature} through Spark Connect", hint=hint)


def get_parallelism(spark: SparkSession) -> int:
    """Return Spark's default parallelism. A session of Spark Connect runs a small job to find it."""
    if not is_remote(spark):
        return int(spark.sparkContext.defaultParallelism)
    # A range has as many partitions as the default parallelism of the server.
    numbers = spark.range(_MOST_TASKS).selectExpr("spark_partition_id() AS number")
    return int(numbers.selectExpr("max(number)").collect()[0][0]) + 1
