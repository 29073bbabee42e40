"""Parse and bind the parts of a MERGE: the ON condition, conditions and expressions over two rows.

Importing this module loads the SQL parser.

Invariant: ``source.x`` and ``target.x`` (or the aliases that the caller chose) name one side. A name without a side is
resolved if only one side has it; otherwise it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve, frozen
from sqlglot import exp

from paimon.domain.assignment.expression import Expression, map_columns
from paimon.domain.assignment.merge_clauses import SOURCE, TARGET, MergeOn, is_of_target, to_plain_name
from paimon.domain.assignment.time_zones import UTC, is_instant, use_zone_in_condition
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.bind import bind
from paimon.domain.predicate.expression import Literal, Predicate
from paimon.domain.predicate.field_paths import find_column, suggest_column, type_at
from paimon.domain.predicate.scalar_sql import convert_condition, split_conjunction
from paimon.domain.predicate.sql import column_path, parse_sql
from paimon.domain.predicate.transform import join_conjuncts, map_names
from paimon.domain.predicate.zero_order import equate_zeros, is_floating
from paimon.domain.types.data_types import NESTED_TYPES, BlobType, DataField, VariantType

ON_HINT = "write a condition such as target.id = source.id AND source.amount > 0, or the names of the key columns"
_NOT_COMPARABLE = (*NESTED_TYPES, VariantType, BlobType)


@frozen
class MergeNames:
    """The columns of both sides, and the aliases under which text names them."""

    target: tuple[DataField, ...]
    source: tuple[DataField, ...]
    target_alias: str = TARGET
    source_alias: str = SOURCE
    # the text is a SQL statement: names ignore case, and -0.0 equals 0.0
    is_statement: bool = False
    # the time zone of conditions and values
    time_zone: str = UTC

    @property
    def fields(self) -> tuple[DataField, ...]:
        """The columns of both sides under their canonical names."""
        sides = ((TARGET, self.target), (SOURCE, self.source))
        return tuple(evolve(f, name=f"{side}.{f.name}") for side, fields in sides for f in fields)

    def of_side(self, side: str) -> MergeNames:
        """Return the names without the columns of the other side."""
        return evolve(self, source=()) if side == TARGET else evolve(self, target=())

    def resolve(self, name: str) -> str:
        """Return the canonical name of a column or a nested field; refuse a name that no side or both sides have."""
        first, _, rest = name.partition(".")
        for alias, side, fields in (
            (self.target_alias, TARGET, self.target),
            (self.source_alias, SOURCE, self.source),
        ):
            if rest and (first == alias or (self.is_statement and first.lower() == alias.lower())):
                if not fields:
                    raise _wrong_side_error(name, alias)
                path = self.find_path(rest, fields)
                type_at(path, fields)
                return f"{side}.{path}"
        sides = ((TARGET, self.target), (SOURCE, self.source))
        paths = ((side, self.find_path(name, fields), fields) for side, fields in sides)
        found = [f"{side}.{path}" for side, path, fields in paths if _has_column(path, fields)]
        if len(found) == 2:
            hint = f"write {self.target_alias}.{name} or {self.source_alias}.{name}"
            raise InvalidRequest(f"Column {name!r} is in both the target and the source", subject=name, hint=hint)
        if not found:
            known = [f"{self.target_alias}.{f.name}" for f in self.target]
            known += [f"{self.source_alias}.{f.name}" for f in self.source]
            raise InvalidRequest(f"Column {name!r} does not exist", subject=name, hint=suggest_column(name, known))
        return found[0]

    def find_path(self, name: str, fields: Sequence[DataField]) -> str:
        """Return the path of a column or a nested field as the columns write its first part."""
        if not self.is_statement or _has_column(name, fields):
            return name
        first, dot, rest = name.partition(".")
        return f"{find_column(first, [f.name for f in fields]) or first}{dot}{rest}"


def _has_column(name: str, fields: Sequence[DataField]) -> bool:
    try:
        type_at(name, fields)
    except InvalidRequest:
        return False
    return True


def _wrong_side_error(name: str, alias: str) -> InvalidRequest:
    return InvalidRequest(
        f"Column {name!r} cannot be used in this clause, which has no row of {alias!r}",
        subject=name,
        hint="use the columns of the other side",
    )


def bind_condition(condition: Predicate, names: MergeNames) -> Predicate:
    """Return the condition over canonical names, with literals of the types of their columns."""
    named = use_zone_in_condition(map_names(condition, names.resolve), names.fields, names.time_zone)
    return bind(equate_zeros(named, names.fields) if names.is_statement else named, names.fields)


def bind_expression(expression: Expression, names: MergeNames) -> Expression:
    """Return the expression over canonical names."""
    return map_columns(expression, names.resolve)


def parse_on(on: str | Sequence[str] | Predicate, names: MergeNames) -> MergeOn:
    """Parse the ON condition of a merge: SQL text, a predicate, or names of columns that both sides have."""
    if isinstance(on, Predicate):
        return MergeOn((), _drop_true(bind_condition(on, names)))
    keys = [on] if isinstance(on, str) and _has_column(on, names.target) else on
    if not isinstance(keys, str):
        return MergeOn(tuple(_check_pair(name, name, names) for name in keys))
    return parse_sql(keys, "ON condition", ON_HINT, _reader(names))


def _reader(names: MergeNames) -> Callable[[exp.Expression], MergeOn]:
    def read(node: exp.Expression) -> MergeOn:
        """Divide the condition into equal columns and the rest."""
        pairs: list[tuple[str, str]] = []
        rest: list[Predicate] = []
        for part in split_conjunction(node):
            pair = _find_pair(part, names)
            if pair is None:
                rest.append(bind_condition(convert_condition(part), names))
            elif pair not in pairs:
                pairs.append(pair)
        return MergeOn(tuple(pairs), _drop_true(join_conjuncts(rest)))

    return read


def _drop_true(condition: Predicate) -> Predicate | None:
    return None if condition == Literal(True) else condition


def _find_pair(node: exp.Expression, names: MergeNames) -> tuple[str, str] | None:
    """Return the column of the target and that of the source that a syntax node compares for equality."""
    sides = (node.this, node.expression) if isinstance(node, exp.EQ) else ()
    if not sides or not all(isinstance(side, exp.Column | exp.Dot) for side in sides):
        return None
    left, right = (names.resolve(column_path(side)) for side in sides)
    if is_of_target(left) == is_of_target(right):
        return None
    target, source = (left, right) if is_of_target(left) else (right, left)
    plain_target, plain_source = to_plain_name(target), to_plain_name(source)
    is_plain = any(f.name == plain_target for f in names.target) and any(f.name == plain_source for f in names.source)
    kinds = [type_at(name, names.fields) for name in (target, source)]
    if names.is_statement and any(map(is_floating, kinds)):
        return None  # the engine compares zeros as SQL does; equal columns are equal keys
    if names.time_zone != UTC and is_instant(kinds[0]) != is_instant(kinds[1]):
        return None  # they are compared in the time zone
    return _check_pair(plain_target, plain_source, names) if is_plain else None


def _check_pair(target: str, source: str, names: MergeNames) -> tuple[str, str]:
    for name, fields in ((target, names.target), (source, names.source)):
        kind = type_at(name, fields)
        if isinstance(kind, _NOT_COMPARABLE):
            raise InvalidRequest(
                f"Column {name!r} cannot be compared, because of its type",
                subject=name,
                hint="use a column of a plain type in ON",
            )
    return target, source
