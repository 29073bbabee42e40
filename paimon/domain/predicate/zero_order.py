"""The two orders of the zeros of FLOAT and DOUBLE in conditions.

Java's predicates put -0.0 below 0.0, and so do `where=`, `paimon.col` and the verbs of a table. In SQL statements both
are equal. Conditions on a column are rewritten for SQL statements here; scalar SQL, which DuckDB computes as SQL, is
rewritten for the others by `scalar_sql.order_zeros` when it is bound.

    d = 0.0    d IN (-0.0, 0.0)        d < 0.0    d < -0.0        d > 0.0    d > 0.0
    d <> 0.0   d NOT IN (-0.0, 0.0)    d >= 0.0   d >= -0.0       d <= 0.0   d <= 0.0

The results are ordinary conditions, so evaluation, pruning and lookups by key follow them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from paimon.domain.predicate.expression import Compare, In, Operator, Predicate, SqlCondition
from paimon.domain.predicate.field_paths import type_at
from paimon.domain.predicate.fit_literal import fit_literal
from paimon.domain.predicate.map_keys import is_of_core, to_sql_condition
from paimon.domain.predicate.transform import Leaf, map_leaves
from paimon.domain.types.data_types import DataField, DataType, DoubleType, FloatType

_ZEROS: tuple[Any, ...] = (-0.0, 0.0)
_BOUNDS: Mapping[Operator, float] = {Operator.LT: -0.0, Operator.GE: -0.0, Operator.LE: 0.0, Operator.GT: 0.0}


def is_floating(data_type: DataType) -> bool:
    """Return whether a type has two zeros."""
    return isinstance(data_type, FloatType | DoubleType)


def equate_zeros(predicate: Predicate, fields: Sequence[DataField]) -> Predicate:
    """Equate -0.0 and 0.0 in an unbound SQL predicate; InvalidRequest for an unknown column or no number."""

    def equate_leaf(leaf: Leaf) -> Predicate:
        """Rewrite the comparison of a floating column with a zero."""
        if not is_of_core(leaf, fields):
            return to_sql_condition(leaf, has_zero_order=True)
        data_type = type_at(leaf.column, fields)
        if not is_floating(data_type):
            return leaf
        if isinstance(leaf, In):
            has_zero = any(_is_zero(literal, data_type) for literal in leaf.literals)
            return evolve(leaf, literals=(*leaf.literals, *_ZEROS)) if has_zero else leaf
        if not isinstance(leaf, Compare) or not _is_zero(leaf.literal, data_type):
            return leaf
        if leaf.op in _BOUNDS:
            return evolve(leaf, literal=_BOUNDS[leaf.op])
        return In(leaf.column, _ZEROS, negated=leaf.op is Operator.NE)

    return map_leaves(predicate, equate_leaf, _leave_sql)


def _leave_sql(condition: SqlCondition) -> Predicate:
    return evolve(condition, expression=evolve(condition.expression, has_zero_order=True))


def _is_zero(literal: Any, data_type: DataType) -> bool:
    if literal is None or isinstance(literal, bool):
        return False
    position = fit_literal(literal, data_type)
    return bool(position.exact and position.floor == 0)
