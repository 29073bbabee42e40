"""The merge engines by name: each a reference function and a columnar function.

Law: an engine is registered with both or not at all. Source: `CoreOptions.MergeEngine`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from attrs import frozen

from paimon.domain.errors import Unsupported
from paimon.domain.merge.columnar.deduplicate import deduplicate
from paimon.domain.merge.columnar.order import Groups
from paimon.domain.merge.reference.deduplicate import deduplicate as reference_deduplicate
from paimon.domain.merge.reference.record import Record
from paimon.domain.merge.spec import MergeSpec


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
    columnar: Callable[[pa.Table, Groups, MergeSpec], pa.Table]
    newest_wins: bool = False


ENGINES: Mapping[str, Engine] = {
    "deduplicate": Engine(reference_deduplicate, deduplicate, newest_wins=True),
}


def engine_of(name: str) -> Engine:
    """The engine of this name; Unsupported where it is not known."""
    found = ENGINES.get(name)
    if found is None:
        raise Unsupported(f"merge engine {name!r}", hint=f"known are {', '.join(sorted(ENGINES))}")
    return found
