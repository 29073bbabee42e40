"""Estimate how many rows and bytes a scan returns, from its files and from the statistics that ANALYZE stored.

Invariant: an estimate decides how a query runs, never what it returns. Without statistics, the rows are an upper bound,
and the bytes are those of the files, which are compressed.
"""

from __future__ import annotations

from collections.abc import Collection

from attrs import frozen

from paimon.domain.predicate.expression import Compare, In, Operator, Predicate
from paimon.domain.predicate.transform import split_conjuncts
from paimon.domain.scan.scan_plan import Plan
from paimon.domain.stats.table_statistics import TableStatistics

_ROW_OVERHEAD_BYTES = 8
"""Bytes of a row besides its values."""


@frozen
class ScanEstimate:
    """The rows of a scan, and their bytes: in memory with statistics of all columns, otherwise in the files."""

    rows: int
    bytes: int


def estimate_plan(
    plan: Plan,
    columns: Collection[str],
    predicate: Predicate | None,
    statistics: TableStatistics | None,
    analyzed_rows: int | None,
) -> ScanEstimate:
    """Return the estimate for a plan; `analyzed_rows` are the stored rows of the snapshot that was analyzed.

    Statistics contribute the share of rows that a merge leaves, the share that equalities select, and the widths of
    columns.
    """
    stored = plan.row_count
    merged = plan.merged_row_count
    rows = float(stored if merged is None else merged)
    if merged is None and statistics is not None and statistics.row_count is not None and analyzed_rows:
        rows *= min(1.0, statistics.row_count / analyzed_rows)
    if predicate is not None and statistics is not None:
        rows *= _selected_share(predicate, statistics)
    width = plan.size_bytes / stored if stored else 0.0
    if statistics is not None:
        lengths = [statistics.columns[c].average_length for c in columns if c in statistics.columns]
        known = [length for length in lengths if length is not None]
        if len(known) == len(columns):
            width = _ROW_OVERHEAD_BYTES + sum(known)
    return ScanEstimate(round(rows), round(rows * width))


def _selected_share(predicate: Predicate, statistics: TableStatistics) -> float:
    """Return the smallest share of rows that one of the equalities selects, if values are evenly distributed."""
    shares = [1.0]
    for part in split_conjuncts(predicate):
        wanted = 1 if isinstance(part, Compare) and part.op is Operator.EQ else 0
        if isinstance(part, In) and not part.negated:
            wanted = len(part.literals)
        if wanted and isinstance(part, Compare | In):
            column = statistics.columns.get(part.column)
            distinct = None if column is None else column.distinct_count
            shares += [wanted / distinct] if distinct else []
    return min(shares)
