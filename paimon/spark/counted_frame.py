"""A data frame of a whole table, whose `count` runs no job where the plan of the scan knows the number of rows.

Invariant: a count equals the number of rows that Spark would read. Frames that are made from this one, and cached ones,
are counted by Spark.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from paimon.scan import Scan


class CountedFrame(ClassicDataFrame):
    """A classic data frame of all rows of a scan. The scan is pinned to a snapshot, without a condition or a limit."""

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
