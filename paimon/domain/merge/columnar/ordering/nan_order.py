"""The order of keys that have a NaN in their user sequence: it equals everything, so that no sort finds it.

Law: a record goes behind all with a smaller sequence number, but in front of those whose user sequence is larger;
records of sorted runs go as a loser tree over the runs answers them. Such keys are few, so they are ordered one by
one. Twin: `paimon.domain.merge.reference.merge`. Source: `UserDefinedSeqComparator`, `LoserTree`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.lsm.keys import comparable_values
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.types.system import KEY_PREFIX, SEQUENCE_NUMBER, VALUE_KIND

Rows = npt.NDArray[np.int64]
RUN = f"{KEY_PREFIX}#run"
"""The column that tells where in the tree of runs a record stands: its run's place plus the number of runs, so that
half of it is where it meets its neighbour. No column of a table has such a name."""


def with_nans(order: Rows, starts: Rows, nans: npt.NDArray[np.bool_], table: pa.Table, spec: MergeSpec) -> Rows:
    """The order, with the groups that hold one of `nans` ordered anew."""
    ordered = order.copy()
    ends = np.append(starts, len(order))[1:]
    for group in np.flatnonzero(np.logical_or.reduceat(nans[order], starts)).tolist():
        own = slice(int(starts[group]), int(ends[group]))
        rows = np.sort(order[own])
        few = _few(table.take(pa.array(rows)), spec)
        ordered[own] = rows[_inserted(few, spec) if few.nodes is None else _played(few, few.nodes, spec)]
    return ordered


class _Few(NamedTuple):
    """What orders the records of one key, by their place among them."""

    sequences: list[tuple[Any, ...]]
    ages: list[tuple[int, int]]
    nodes: list[int] | None

    def is_before(self, a: int, b: int, spec: MergeSpec) -> bool:
        """Whether the first of two records goes before the other where only they are compared."""
        if is_larger(self.sequences[a], self.sequences[b], spec.sequence_descending):
            return False
        later = is_larger(self.sequences[b], self.sequences[a], spec.sequence_descending)
        return later or (self.ages[a], a) < (self.ages[b], b)


def _few(table: pa.Table, spec: MergeSpec) -> _Few:
    names, rows = table.column_names, table.num_rows
    numbers = table[SEQUENCE_NUMBER.name].to_pylist() if SEQUENCE_NUMBER.name in names else [0] * rows
    kinds = table[VALUE_KIND.name].to_pylist() if VALUE_KIND.name in names else [0] * rows
    nodes = table[RUN].to_pylist() if RUN in names else []
    return _Few(
        list(zip(*(_values(table, name, spec) for name in spec.sequence_fields), strict=True)),
        [_age(number, kind in (0, 2), spec) for number, kind in zip(numbers, kinds, strict=True)],
        nodes if nodes and len(set(nodes)) == rows else None,
    )


def _values(table: pa.Table, name: str, spec: MergeSpec) -> list[Any]:
    values = table[name].to_pylist()
    return values if name not in spec.ordered_floats else [part or None for part in comparable_values(values)]


def _inserted(few: _Few, spec: MergeSpec) -> list[int]:
    """As a sort does that puts one record after another into place."""
    ordered: list[int] = []
    for row in sorted(range(len(few.ages)), key=lambda r: few.ages[r]):
        place = len(ordered)
        while place and is_larger(few.sequences[ordered[place - 1]], few.sequences[row], spec.sequence_descending):
            place -= 1
        ordered.insert(place, row)
    return ordered


def _played(few: _Few, nodes: Sequence[int], spec: MergeSpec) -> list[int]:
    """As a loser tree of sorted runs answers them: who goes next is the winner of a tournament of the first records."""
    left = dict(zip(nodes, range(len(nodes)), strict=True))
    ordered: list[int] = []
    while left:
        slots = dict(left)
        while len(slots) > 1:
            node = max(slots)
            row = slots.pop(node)
            other = slots.get(node // 2)
            slots[node // 2] = row if other is None or few.is_before(row, other, spec) else other
        (first,) = slots.values()
        ordered.append(first)
        del left[nodes[first]]
    return ordered


def _age(number: int, is_add: bool, spec: MergeSpec) -> tuple[int, int]:
    return (is_add, number) if spec.retracts_first else (number, is_add)


def is_larger(a: Sequence[Any], b: Sequence[Any], descending: bool) -> bool:
    """Whether a user sequence is larger than another one, as Java's operators compare: null is the smallest."""
    for left, right in zip(a, b, strict=True):
        if left is None or right is None:
            if left is not right:
                return left is not None
        elif left < right or left > right:
            return bool(left < right if descending else left > right)
    return False
