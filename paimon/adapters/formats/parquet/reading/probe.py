"""Where rows of a Parquet file may match an equality, told by the columns of that equality alone.

Law: outside of the range found no row matches. A lookup decodes one column of a file, and most often no other;
statistics cannot tell as much where files overlap.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from paimon.adapters.formats.parquet.reading.row_groups import GroupRange
from paimon.domain.predicate.columnar import evaluate
from paimon.domain.predicate.expression import Compare, In, Operator, Predicate
from paimon.domain.predicate.transform import both, conjuncts
from paimon.domain.types.data_types import DataField
from paimon.ports.formats import ReadRequest

_WORTH = 4
"""A column is looked at for the sake of at least so many."""


@frozen
class Probe:
    """What to look for, and in which columns."""

    predicate: Predicate
    fields: tuple[DataField, ...]


def probe_of(request: ReadRequest) -> Probe | None:
    """The equalities among the conjuncts of a read's predicate, where looking first is worth it."""
    if request.predicate is None:
        return None
    held = {f.name: f for f in request.predicate_fields}
    equalities = [(column, part) for part in conjuncts(request.predicate) if (column := _compared(part)) in held]
    fields = tuple(f for name, f in held.items() if any(name == column for column, _ in equalities))
    if not fields or _WORTH * len(fields) > len(request.fields):
        return None
    return Probe(both(part for _, part in equalities), fields)


def _compared(part: Predicate) -> str | None:
    match part:
        case Compare(column=column, op=Operator.EQ) | In(column=column, negated=False):
            return column
    return None


def narrowed(piece: GroupRange, predicate: Predicate, batches: Iterable[pa.RecordBatch]) -> GroupRange | None:
    """The part of a piece from its first matching row to its last; `batches` are its rows, in order."""
    first = last = -1
    start = 0
    for batch in batches:
        hits = np.flatnonzero(evaluate(predicate, batch).to_numpy(zero_copy_only=False))
        if len(hits):
            first = start + int(hits[0]) if first < 0 else first
            last = start + int(hits[-1])
        start += batch.num_rows
    return None if first < 0 else evolve(piece, skip=piece.skip + first, count=last - first + 1)
