"""The merge engines by name: each a reference function and a columnar function.

Law: an engine is registered with both or not at all. Source: `CoreOptions.MergeEngine`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from attrs import frozen

from paimon.domain.errors import Unsupported
from paimon.domain.merge.aggregate.registry import check_type
from paimon.domain.merge.columnar.aggregation import aggregation
from paimon.domain.merge.columnar.deduplicate import deduplicate
from paimon.domain.merge.columnar.first_row import first_row
from paimon.domain.merge.columnar.ordering.arrival import Grouping
from paimon.domain.merge.columnar.partial_update import partial_update
from paimon.domain.merge.reference.aggregation import aggregation as reference_aggregation
from paimon.domain.merge.reference.deduplicate import deduplicate as reference_deduplicate
from paimon.domain.merge.reference.first_row import first_row as reference_first_row
from paimon.domain.merge.reference.partial_update import partial_update as reference_partial_update
from paimon.domain.merge.reference.record import Record
from paimon.domain.merge.spec import AGGREGATING, MergeSpec


@frozen
class Engine:
    """One merge engine.

    Parameters
    ----------
    reference : callable
        Records of one key in merge order -> its record, or None where nothing is left.
    columnar : callable
        Table, groups -> a table of one row a group, ascending by key.
    newest_wins : bool
        True where the newest record of a key alone makes the result.
    """

    reference: Callable[[Sequence[Record], MergeSpec], Record | None]
    columnar: Callable[[pa.Table, Grouping, MergeSpec], pa.Table]
    newest_wins: bool = False


ENGINES: Mapping[str, Engine] = {
    "deduplicate": Engine(reference_deduplicate, deduplicate, newest_wins=True),
    "first-row": Engine(reference_first_row, first_row),
    "aggregation": Engine(reference_aggregation, aggregation),
    "partial-update": Engine(reference_partial_update, partial_update),
}


def engine_of(spec: MergeSpec) -> Engine:
    """The engine of a merge; Unsupported where it, or a part of it that the options ask for, is not known."""
    found = ENGINES.get(spec.engine)
    if found is None:
        raise Unsupported(f"merge engine {spec.engine!r}", hint=f"known are {', '.join(sorted(ENGINES))}")
    if spec.engine in AGGREGATING:
        for aggregate in spec.aggregates:
            check_type(aggregate)
    return found
