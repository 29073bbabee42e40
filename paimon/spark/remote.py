"""What sessions of Spark Connect lack: the Spark context of this process, with its accumulators.

Invariant: a function that cannot work without it is refused by name, before it reads or writes anything.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from paimon.adapters.executors.spark import is_remote
from paimon.domain.errors import Unsupported


def check_classic(spark: SparkSession, feature: str, hint: str) -> None:
    """Refuse a session of Spark Connect, because `feature` needs a classic one. `hint` says what to do."""
    if is_remote(spark):
        raise Unsupported(f"{feature} through Spark Connect", hint=hint)


def check_counting(spark: SparkSession, name: str) -> None:
    """Refuse Spark Connect: the numbers of changed rows come from accumulators, which it does not have."""
    check_classic(spark, name, f"use a classic Spark session, or Table.{name} in this process")
