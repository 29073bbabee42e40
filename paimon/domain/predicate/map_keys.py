"""Conditions on `a['key']`, whose path is `a[key]`: which of them the core evaluates.

Invariant: the core evaluates those on texts as keys of a MAP, and on fields of a ROW. All others are scalar SQL, with
the meaning that their evaluator gives them: other keys, lists, and values without an order.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import IsNull, Predicate
from paimon.domain.predicate.field_paths import find_type, read_key, split_key, split_path
from paimon.domain.predicate.text import format_predicate
from paimon.domain.predicate.transform import Leaf
from paimon.domain.types.data_types import NESTED_TYPES, BlobType, DataField, VariantType

INCOMPARABLE = (*NESTED_TYPES, VariantType, BlobType)


def is_of_core(leaf: Leaf, fields: Sequence[DataField]) -> bool:
    """Return whether the core evaluates a condition; InvalidRequest if a key path also names a column."""
    if split_key(leaf.column) is None:
        return True
    _check_one_meaning(leaf.column, fields)
    found = find_type(leaf.column, fields)
    return found is not None and (isinstance(leaf, IsNull) or not isinstance(found, INCOMPARABLE))


def _check_one_meaning(name: str, fields: Sequence[DataField]) -> None:
    """Refuse ``m[k]`` if the table has a column of this name and a column `m` with keys."""
    types = {field.name: field.type for field in fields}
    outer = [first for first, rest in split_path(name) if read_key(rest) is not None and first in types]
    if name in types and any(isinstance(types[column], NESTED_TYPES) for column in outer):
        raise InvalidRequest(
            f"Condition on {name!r} is ambiguous: it names a column, and a key of column {outer[0]!r}",
            subject=name,
            hint="rename the column",
        )


def to_sql_condition(leaf: Leaf, has_zero_order: bool = False) -> Predicate:
    """Return an unbound condition as scalar SQL."""
    from paimon.domain.predicate.scalar_sql import parse_scalar_condition  # loads the SQL parser

    return parse_scalar_condition(format_predicate(leaf), has_zero_order)
