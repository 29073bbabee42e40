"""Predicates as pypaimon builds them, and their conversion to those of this library.

Source: `pypaimon.common.predicate`, `pypaimon.common.predicate_builder`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from attrs import define

import paimon
from paimon.compat.data_types import DataField
from paimon.compat.refused import PeerClass
from paimon.compat.rows import InternalRow
from paimon.domain.predicate.bind import bind
from paimon.domain.predicate.build import Column
from paimon.domain.predicate.evaluate_columnar import evaluate
from paimon.domain.predicate.expression import Literal
from paimon.domain.predicate.expression import Predicate as PaimonPredicate
from paimon.domain.types.arrow import fields_from_arrow

_TRUE_OF_LITERALS: Mapping[str, Callable[[Column, Sequence[Any]], PaimonPredicate]] = {
    "equal": lambda column, values: column == values[0],
    "notEqual": lambda column, values: column != values[0],
    "lessThan": lambda column, values: column < values[0],
    "lessOrEqual": lambda column, values: column <= values[0],
    "greaterThan": lambda column, values: column > values[0],
    "greaterOrEqual": lambda column, values: column >= values[0],
    "isNull": lambda column, values: column.is_null(),
    "isNotNull": lambda column, values: column.is_not_null(),
    "startsWith": lambda column, values: column.startswith(values[0]),
    "endsWith": lambda column, values: column.endswith(values[0]),
    "contains": lambda column, values: column.contains(values[0]),
    "like": lambda column, values: column.like(values[0]),
    "in": lambda column, values: column.isin(values),
    "notIn": lambda column, values: column.not_in(values),
    "between": lambda column, values: column.between(values[0], values[1]),
    "notBetween": lambda column, values: ~column.between(values[0], values[1]),
}

_ARROW_OF_LITERALS: Mapping[str, Callable[[pc.Expression, Sequence[Any]], pc.Expression]] = {
    "equal": lambda column, values: column == values[0],
    "notEqual": lambda column, values: column != values[0],
    "lessThan": lambda column, values: column < values[0],
    "lessOrEqual": lambda column, values: column <= values[0],
    "greaterThan": lambda column, values: column > values[0],
    "greaterOrEqual": lambda column, values: column >= values[0],
    "isNull": lambda column, values: column.is_null(),
    "isNotNull": lambda column, values: column.is_valid(),
    "startsWith": lambda column, values: pc.starts_with(column, values[0]),
    "endsWith": lambda column, values: pc.ends_with(column, values[0]),
    "contains": lambda column, values: pc.match_substring(column, values[0]),
    "like": lambda column, values: pc.match_like(column, values[0]),
    "in": lambda column, values: _is_in(column, values),
    "notIn": lambda column, values: ~_is_in(column, values) & column.is_valid(),
    "between": lambda column, values: (column >= values[0]) & (column <= values[1]),
    "notBetween": lambda column, values: _is_outside(column, values[0], values[1]),
}
_PATTERNS = frozenset({"startsWith", "endsWith", "contains", "like"})


@define
class Predicate(PeerClass):
    """A condition on rows, made by `PredicateBuilder`."""

    method: str
    index: int | None = None
    field: str | None = None
    literals: list[Any] | None = None

    def new_index(self, index: int) -> Predicate:
        """Return the same predicate for another position of the column."""
        return Predicate(self.method, index, self.field, self.literals)

    def test(self, record: InternalRow) -> bool:
        """Return whether the condition is true for a row; it is evaluated as a read evaluates it."""
        leaves = list(self._leaves())
        columns: dict[str, pa.Array] = {}
        for leaf in leaves:
            value = None if leaf.index is None else record.get_field(leaf.index)
            samples = [value] if value is not None else [v for v in leaf.literals or [] if v is not None]
            known = columns.get(leaf.field or "")
            if known is None or (known.null_count and value is None and samples):
                kind = pa.array(samples or [""]).type
                columns[leaf.field or ""] = pa.array([value], kind)
        rows = pa.table(columns)
        bound = bind(to_paimon_predicate(self), fields_from_arrow(rows.schema))
        return bool(evaluate(bound, rows)[0].as_py())

    def to_arrow(self, schema: pa.Schema | None = None) -> pc.Expression:
        """Return the condition as an expression of Arrow, which compares NaN in its own way."""
        literals = self.literals or []
        if self.method in ("and", "or"):
            children = [child.to_arrow(schema) for child in literals]
            if not children:
                return pc.scalar(self.method == "and")
            return reduce((lambda a, b: a & b) if self.method == "and" else (lambda a, b: a | b), children)
        build = _ARROW_OF_LITERALS.get(self.method)
        if build is None or self.field is None:
            raise ValueError(f"Unsupported predicate method: {self.method}")
        values = list(literals)
        if self.method == "in":
            values = [value for value in literals if value is not None]
        elif None in values and self.method != "notBetween":
            return pc.scalar(False)  # a comparison with null is never true
        if schema is not None and self.method not in _PATTERNS:
            values = _fit(values, schema.field(self.field).type)
        return build(pc.field(self.field), values)

    def _leaves(self) -> Iterator[Predicate]:
        if self.method not in ("and", "or"):
            yield self
            return
        for child in self.literals or []:
            yield from child._leaves()

    def with_names(self, names: Mapping[str, str]) -> Predicate:
        """Return the same predicate with columns that have other names there."""
        if self.method in ("and", "or"):
            return self.new_literals([child.with_names(names) for child in self.literals or []])
        field = None if self.field is None else names.get(self.field, self.field)
        return Predicate(self.method, self.index, field, self.literals)

    def new_literals(self, literals: list[Any]) -> Predicate:
        """Return the same predicate with other values."""
        return Predicate(self.method, self.index, self.field, literals)


def _is_in(column: pc.Expression, values: Sequence[Any]) -> pc.Expression:
    return column.isin(values) if values else pc.scalar(False)


def _is_outside(column: pc.Expression, low: Any, high: Any) -> pc.Expression:
    is_below = pc.scalar(False) if low is None else column < low
    return is_below if high is None else is_below | (column > high)


def _fit(values: Sequence[Any], kind: pa.DataType) -> list[Any]:
    try:
        return [None if value is None else pa.scalar(value, kind) for value in values]
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return list(values)


def to_paimon_predicate(predicate: Predicate) -> PaimonPredicate:
    """Return the predicate of this library."""
    literals = predicate.literals or []
    if predicate.method in ("and", "or"):
        children = [to_paimon_predicate(child) for child in literals]
        if not children:
            return Literal(predicate.method == "and")
        if predicate.method == "and":
            return reduce(lambda left, right: left & right, children)
        return reduce(lambda left, right: left | right, children)
    build = _TRUE_OF_LITERALS.get(predicate.method)
    if build is None or predicate.field is None:
        raise ValueError(f"Unsupported predicate method: {predicate.method}")
    return build(paimon.col(predicate.field), literals)


def columns_of_predicate(predicate: Predicate) -> set[str]:
    """Return the columns that a predicate names."""
    if predicate.method in ("and", "or"):
        return set().union(*(columns_of_predicate(child) for child in predicate.literals or []))
    return set() if predicate.field is None else {predicate.field}


class PredicateBuilder:
    """Build predicates on the columns of a table; made by `ReadBuilder.new_predicate_builder`."""

    def __init__(self, row_field: Sequence[DataField]) -> None:
        self.field_names = [field.name for field in row_field]

    def _build(self, method: str, field: str, literals: list[Any] | None = None) -> Predicate:
        if field not in self.field_names:
            raise ValueError(f"The field {field} is not in field list {self.field_names}.")
        return Predicate(method, self.field_names.index(field), field, literals)

    def equal(self, field: str, literal: Any) -> Predicate:
        """Return the condition that a column has a value."""
        return self._build("equal", field, [literal])

    def not_equal(self, field: str, literal: Any) -> Predicate:
        """Return the condition that a column has another value, and is not null."""
        return self._build("notEqual", field, [literal])

    def less_than(self, field: str, literal: Any) -> Predicate:
        """Return the condition that a column is below a value."""
        return self._build("lessThan", field, [literal])

    def less_or_equal(self, field: str, literal: Any) -> Predicate:
        """Return the condition that a column is at most a value."""
        return self._build("lessOrEqual", field, [literal])

    def greater_than(self, field: str, literal: Any) -> Predicate:
        """Return the condition that a column is above a value."""
        return self._build("greaterThan", field, [literal])

    def greater_or_equal(self, field: str, literal: Any) -> Predicate:
        """Return the condition that a column is at least a value."""
        return self._build("greaterOrEqual", field, [literal])

    def is_null(self, field: str) -> Predicate:
        """Return the condition that a column is null."""
        return self._build("isNull", field)

    def is_not_null(self, field: str) -> Predicate:
        """Return the condition that a column is not null."""
        return self._build("isNotNull", field)

    def startswith(self, field: str, pattern_literal: Any) -> Predicate:
        """Return the condition that a text begins with another one."""
        return self._build("startsWith", field, [pattern_literal])

    def endswith(self, field: str, pattern_literal: Any) -> Predicate:
        """Return the condition that a text ends with another one."""
        return self._build("endsWith", field, [pattern_literal])

    def contains(self, field: str, pattern_literal: Any) -> Predicate:
        """Return the condition that a text contains another one."""
        return self._build("contains", field, [pattern_literal])

    def is_in(self, field: str, literals: list[Any]) -> Predicate:
        """Return the condition that a column has one of the values."""
        return self._build("in", field, literals)

    def is_not_in(self, field: str, literals: list[Any]) -> Predicate:
        """Return the condition that a column has none of the values, and is not null."""
        return self._build("notIn", field, literals)

    def between(self, field: str, included_lower_bound: Any, included_upper_bound: Any) -> Predicate:
        """Return the condition that a column is in a range."""
        return self._build("between", field, [included_lower_bound, included_upper_bound])

    def not_between(self, field: str, included_lower_bound: Any, included_upper_bound: Any) -> Predicate:
        """Return the condition that a column is outside a range."""
        return self._build("notBetween", field, [included_lower_bound, included_upper_bound])

    def like(self, field: str, pattern_literal: Any) -> Predicate:
        """Return the condition that a text matches a pattern of SQL's LIKE."""
        return self._build("like", field, [pattern_literal])

    @staticmethod
    def and_predicates(predicates: list[Predicate]) -> Predicate | None:
        """Return the conjunction of predicates; None of none."""
        return _combine("and", predicates)

    @staticmethod
    def or_predicates(predicates: list[Predicate]) -> Predicate | None:
        """Return the disjunction of predicates; None of none."""
        return _combine("or", predicates)


def _combine(method: str, predicates: list[Predicate]) -> Predicate | None:
    if len(predicates) < 2:
        return predicates[0] if predicates else None
    return Predicate(method, literals=predicates)
