"""The first-row engine, row by row: the first add wins, retracts are refused.

Law: what came later never shows, not even its columns. Source: `FirstRowMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.reference.record import Record
from paimon.domain.merge.spec import MergeSpec


def first_row(records: Sequence[Record], spec: MergeSpec) -> Record | None:
    """The record that came first."""
    if not all(record.is_add for record in records):
        raise InvalidRequest("merge engine first-row takes no -D and -U records", hint="set ignore-delete to skip them")
    return records[0]
