"""Where rows of a Parquet file may match an equality, told by the columns of that equality alone.

Law: outside of the range found no row matches. A lookup decodes one column of a file, and most often no other;
statistics cannot tell as much where files overlap. Where rows ascend by that column, nothing is decoded beyond the
values asked for.
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
_STEP_ROWS = 16_384
"""Rows that are looked at before asking whether to go on."""


@frozen
class Probe:
    """What to look for, in which columns, at how many rows at a time; rows after one that is `past` need no look."""

    predicate: Predicate
    fields: tuple[DataField, ...]
    batch_rows: int
    past: Predicate | None = None


def probe_of(request: ReadRequest) -> Probe | None:
    """The equalities among the conjuncts of a read's predicate, where looking first is worth it."""
    if request.predicate is None:
        return None
    held = {f.name: f for f in request.predicate_fields}
    equalities = [(column, part) for part in conjuncts(request.predicate) if (column := _compared(part)) in held]
    fields = tuple(f for name, f in held.items() if any(name == column for column, _ in equalities))
    if not fields or _WORTH * len(fields) > len(request.fields):
        return None
    wanted = both(part for _, part in equalities)
    past = next((_past(part) for column, part in equalities if column == request.ascending), None)
    return Probe(wanted, fields, request.batch_rows if past is None else min(request.batch_rows, _STEP_ROWS), past)


def _compared(part: Predicate) -> str | None:
    match part:
        case Compare(column=column, op=Operator.EQ) | In(column=column, negated=False):
            return column
    return None


def _past(part: Predicate) -> Predicate | None:
    """True where the column is beyond all values that an equality asks for."""
    match part:
        case Compare(column=column, literal=literal):
            return Compare(column, Operator.GT, literal)
        case In(column=column, literals=literals):
            known = [literal for literal in literals if literal is not None]
            return Compare(column, Operator.GT, max(known)) if known else None
    return None


def _last(batch: pa.RecordBatch, predicate: Predicate) -> bool:
    """Whether a predicate is true of the last row."""
    return bool(evaluate(predicate, batch.slice(batch.num_rows - 1))[0].as_py())


def narrowed(piece: GroupRange, probe: Probe, batches: Iterable[pa.RecordBatch]) -> GroupRange | None:
    """The part of a piece from its first matching row to its last; `batches` are its rows, in order."""
    first = last = -1
    start = 0
    for batch in batches:
        matching = evaluate(probe.predicate, batch)
        if matching.true_count:
            hits = np.flatnonzero(matching.to_numpy(zero_copy_only=False))
            first = start + int(hits[0]) if first < 0 else first
            last = start + int(hits[-1])
        start += batch.num_rows
        if probe.past is not None and start < piece.count and _last(batch, probe.past):
            break
    return None if first < 0 else evolve(piece, skip=piece.skip + first, count=last - first + 1)
