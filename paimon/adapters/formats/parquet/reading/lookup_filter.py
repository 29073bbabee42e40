"""Find the rows of a Parquet file that may match an equality, from the columns of that equality only.

A lookup decodes one column of a file, and often no other. Statistics exclude less if files overlap. If rows are in
ascending order of that column, nothing is decoded after the values.

Invariant: no row outside of the range that is found matches.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from paimon.adapters.formats.guards.parquet_batches import GroupRange
from paimon.domain.predicate.evaluate_columnar import evaluate
from paimon.domain.predicate.expression import Compare, In, Operator, Predicate
from paimon.domain.predicate.transform import join_conjuncts, split_conjuncts
from paimon.domain.types.data_types import DataField
from paimon.ports.formats import ReadRequest

_WORTH = 4
"""At least so many columns are read for each column that is looked at first."""
_STEP_ROWS = 16_384
"""Rows that are looked at before the next check whether a later row can match."""


@frozen
class LookupFilter:
    """The equalities to look for before the other columns are read."""

    predicate: Predicate
    # columns of the equalities
    fields: tuple[DataField, ...]
    # rows that are looked at together
    batch_rows: int
    # if it is true for a row, no later row matches
    past: Predicate | None = None


def find_lookup_filter(request: ReadRequest) -> LookupFilter | None:
    """Return the equalities among the conjuncts of a read's predicate; None if they do not justify a first pass."""
    if request.predicate is None:
        return None
    held = {f.name: f for f in request.predicate_fields}
    equalities = [
        (column, part) for part in split_conjuncts(request.predicate) if (column := _equality_column(part)) in held
    ]
    fields = tuple(f for name, f in held.items() if any(name == column for column, _ in equalities))
    if not fields or _WORTH * len(fields) > len(request.fields):
        return None
    wanted = join_conjuncts(part for _, part in equalities)
    past = next((_is_larger_than(part) for column, part in equalities if column == request.ascending), None)
    return LookupFilter(
        wanted, fields, request.batch_rows if past is None else min(request.batch_rows, _STEP_ROWS), past
    )


def _equality_column(part: Predicate) -> str | None:
    match part:
        case Compare(column=column, op=Operator.EQ) | In(column=column, negated=False):
            return column
    return None


def _is_larger_than(part: Predicate) -> Predicate | None:
    """Return a predicate that is true if the column is larger than all values of an equality."""
    match part:
        case Compare(column=column, literal=literal):
            return Compare(column, Operator.GT, literal)
        case In(column=column, literals=literals):
            known = [literal for literal in literals if literal is not None]
            return Compare(column, Operator.GT, max(known)) if known else None
    return None


def _is_true_of_last_row(batch: pa.RecordBatch, predicate: Predicate) -> bool:
    """Return whether a predicate is true of the last row."""
    return bool(evaluate(predicate, batch.slice(batch.num_rows - 1))[0].as_py())


def narrow_piece(piece: GroupRange, lookup: LookupFilter, batches: Iterable[pa.RecordBatch]) -> GroupRange | None:
    """Return the part of a piece from its first matching row to its last; None if no row matches.

    `batches` are the rows of the piece, in order, with the columns of the equalities.
    """
    first = last = -1
    start = 0
    for batch in batches:
        matching = evaluate(lookup.predicate, batch)
        if matching.true_count:
            hits = np.flatnonzero(matching.to_numpy(zero_copy_only=False))
            first = start + int(hits[0]) if first < 0 else first
            last = start + int(hits[-1])
        start += batch.num_rows
        if lookup.past is not None and start < piece.count and _is_true_of_last_row(batch, lookup.past):
            break
    return None if first < 0 else evolve(piece, skip=piece.skip + first, count=last - first + 1)
