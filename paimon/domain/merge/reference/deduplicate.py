"""The deduplicate engine, row by row: the last record wins, whatever its kind.

Law: a delete that is last is answered as a delete; who asks decides whether it shows. Source:
`DeduplicateMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.merge.reference.record import Record
from paimon.domain.merge.spec import MergeSpec


def deduplicate(records: Sequence[Record], spec: MergeSpec) -> Record | None:
    """The record that came last."""
    result = None
    for record in records:
        result = record
    return result
