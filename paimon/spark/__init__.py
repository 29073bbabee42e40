"""Paimon tables in PySpark.

    import paimon.spark
    spark = paimon.spark.session()                                # local, with a Java runtime if none is found
    paimon.spark.register(spark)                                  # or: with a session of yours
    df = paimon.spark.read(spark, "lake/shop.db/orders", columns=["id"], where="amount > 5")
    paimon.spark.write(df, "lake/shop.db/orders")                 # rows go to their bucket, one atomic commit
    paimon.spark.compact("lake/shop.db/orders", full=True)        # one task a bucket, one atomic commit

`spark.read.format("paimon")` and `df.write.format("paimon")` work too. Law: Spark distributes, it never reimplements:
a task reads or writes with the very functions that run embedded.
"""

from importlib.util import find_spec

from paimon.domain.extras import is_optional, missing_extra

try:
    if find_spec("pandas") is None:  # Spark asks for it with the first rows
        raise missing_extra("paimon.spark", "pandas", "spark")
    from paimon.spark.compact import compact
    from paimon.spark.read import read
    from paimon.spark.session import register, session
    from paimon.spark.write import write
except ModuleNotFoundError as missing:  # a MissingExtra is none
    if missing.name is None or not is_optional(missing.name):
        raise
    raise missing_extra("paimon.spark", missing.name, "spark") from missing

__all__ = ["compact", "read", "register", "session", "write"]
