"""The registry of merge engines: each has a row-wise reference and a columnar function.

To add an engine, add its line to `MERGE_ENGINES` and its name to the values of the option `merge-engine`. The contract
`paimon.testing.contracts.MergeEngineContract` and the drawn histories of `paimon.testing.strategies` then include it.

Source: `CoreOptions.MergeEngine`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from attrs import frozen

from paimon.domain.errors import Unsupported
from paimon.domain.merge.aggregate.aggregate_functions import check_type
from paimon.domain.merge.aggregation_columnar import aggregation
from paimon.domain.merge.aggregation_reference import aggregation as reference_aggregation
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.arrival_order import Grouping
from paimon.domain.merge.partial_update_columnar import partial_update
from paimon.domain.merge.partial_update_reference import partial_update as reference_partial_update
from paimon.domain.merge.record import Record
from paimon.domain.merge.single_record_engines import (
    keep_first_record,
    keep_first_rows,
    keep_last_record,
    keep_last_rows,
)


@frozen
class MergeEngine:
    """A merge engine: its reference, its columnar function and the properties that reads and compactions rely on."""

    # takes the records of one key in merge order; returns None if no record remains
    reference: Callable[[Sequence[Record], MergeSpec], Record | None]
    # returns one row for each group, ascending by key
    columnar: Callable[[pa.Table, Grouping, MergeSpec], pa.Table]
    # whether the newest record of a key alone determines the result
    newest_wins: bool = False
    # whether the oldest record alone does; compactions look up only if a key exists, reads skip level 0
    oldest_wins: bool = False
    # whether each merged row is a stored row, so that a filter on stored rows can prune
    keeps_rows: bool = False
    # whether value columns have aggregate functions
    aggregates: bool = False


MERGE_ENGINES: Mapping[str, MergeEngine] = {
    "deduplicate": MergeEngine(keep_last_record, keep_last_rows, newest_wins=True, keeps_rows=True),
    "first-row": MergeEngine(keep_first_record, keep_first_rows, oldest_wins=True, keeps_rows=True),
    "aggregation": MergeEngine(reference_aggregation, aggregation, aggregates=True),
    "partial-update": MergeEngine(reference_partial_update, partial_update, aggregates=True),
}
"""The merge engines by the value of the option `merge-engine`: the one place where an engine is registered."""


def is_newest_winning(engine_name: str) -> bool:
    """Return whether the newest record of a key alone makes the result; False for an unknown engine."""
    engine = MERGE_ENGINES.get(engine_name)
    return engine is not None and engine.newest_wins


def is_oldest_winning(engine_name: str) -> bool:
    """Return whether the oldest record of a key alone makes the result; False for an unknown engine."""
    engine = MERGE_ENGINES.get(engine_name)
    return engine is not None and engine.oldest_wins


def is_row_keeping(engine_name: str) -> bool:
    """Return whether each merged row is a stored row; False for an unknown engine."""
    engine = MERGE_ENGINES.get(engine_name)
    return engine is not None and engine.keeps_rows


def get_merge_engine(spec: MergeSpec) -> MergeEngine:
    """Return the engine of a merge, after checking the types of its aggregated columns."""
    found = MERGE_ENGINES.get(spec.engine)
    if found is None:
        raise Unsupported(f"merge engine {spec.engine!r}", hint=f"use one of {', '.join(sorted(MERGE_ENGINES))}")
    if found.aggregates:
        for aggregate in spec.aggregates:
            check_type(aggregate)
    return found
