"""The arguments of the methods of global indexes, by the forms that pypaimon takes.

Source: `pypaimon.globalindex.create_global_index`, `pypaimon.globalindex.drop_global_index`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any

from paimon import col
from paimon.compat.predicate import Predicate, to_paimon_predicate
from paimon.domain.predicate.expression import Predicate as PaimonPredicate

Partitions = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""One partition or several, each by values of partition columns."""


def get_index_column(given: str | Sequence[str]) -> str:
    """Return the column of an index, which has one column."""
    names = given.split(",") if isinstance(given, str) else given
    columns = [name for name in (str(part).strip() for part in names) if name]
    if len(columns) != 1:
        raise ValueError(f"A global index has one column, and not {columns}.")
    return columns[0]


def select_partitions(partition_filter: Predicate | None, partitions: Partitions | None) -> PaimonPredicate | None:
    """Return the condition that selects partitions; None for all."""
    if partition_filter is not None:
        return to_paimon_predicate(partition_filter)
    specs = [partitions] if isinstance(partitions, Mapping) else [*(partitions or ())]
    found = [reduce(and_, (_equals(name, value) for name, value in spec.items())) for spec in specs if spec]
    return reduce(or_, found) if found else None


def _equals(name: str, value: Any) -> PaimonPredicate:
    return col(name).is_null() if value is None else col(name) == value
