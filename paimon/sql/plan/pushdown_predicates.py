"""Find the conditions of a query that scans of its tables can evaluate before, and the columns that it reads of each.

Invariant: the query evaluates all its conditions again, so a pushed condition must be true wherever that of the query
is true. Conditions are pushed only if both evaluate them equally, as the type of the column decides. No column is
missing: a name that occurs anywhere in the query selects the column of this name in all tables. The check of subqueries
refuses only columns that certainly do not exist; the engine checks all columns again. DuckDB reports that the table of
a subquery is unknown if a column does not exist and the subquery also names a column of the outer query.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from attrs import evolve, frozen
from sqlglot import exp

from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Not, Operator, Or, Predicate
from paimon.domain.predicate.field_paths import find_type, name_key, split_key, suggest_column
from paimon.domain.predicate.sql import FLIPPED, OPERATORS, parse_number, split_bracket
from paimon.domain.types.data_types import (
    INTEGER_TYPES,
    BooleanType,
    CharType,
    DataField,
    DataType,
    DateType,
    DecimalType,
    MapType,
    TimestampType,
    VarCharType,
)
from paimon.sql.parse.query_tree import QueryTree

_NAMES = ("Columns", "Pivot", "PositionalColumn")
_READS_ALL = tuple(getattr(exp, name) for name in _NAMES if hasattr(exp, name))
"""Nodes that may read columns without naming them; older parsers refuse `#1`, for which they have no node."""
_OTHER_NAMES = (exp.Subquery, exp.CTE, exp.UDTF, exp.Pivot, exp.Lambda)
"""Nodes that give a name to something else than a table."""


def find_columns(tree: QueryTree, columns: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return the columns that each table must give, in the order of the table; at least one, even to count rows."""
    used = {node.name.lower() for node in tree.find_all(exp.Identifier, exp.Var)}
    everything = tree.has(*_READS_ALL) or any(
        str(join.args.get("method") or "").upper() == "NATURAL" for join in tree.find_all(exp.Join)
    )
    starred = _find_starred_tables(tree)
    rows_as_values = {column.name.lower() for column in tree.find_all(exp.Column)}
    found: dict[str, tuple[str, ...]] = {}
    for node in tree.find_all(exp.Table):
        names = columns.get(node.name)
        if names is None:
            continue
        if everything or None in starred or node.name in starred or node.alias.lower() in rows_as_values:
            found[node.name] = tuple(names)
        else:
            needed = tuple(name for name in names if name.lower() in used)
            found[node.name] = needed or tuple(names[:1])
    return found


def _find_starred_tables(tree: QueryTree) -> set[str | None]:
    """Return the tables whose columns a star lists; None means all of them."""
    found: set[str | None] = set()
    for star in tree.find_all(exp.Star):
        parent = star.parent
        if isinstance(parent, exp.Count):
            continue
        scope = star.find_ancestor(exp.Select)
        if scope is None or not isinstance(parent, exp.Select | exp.Column):
            return {None}
        if parent is scope and _is_existence_test(scope):
            continue
        alias = parent.table.lower() if isinstance(parent, exp.Column) else None
        # A qualified star may name a table of an outer query, so its alias is looked up in the whole tree.
        inside = tree.find_all(exp.Table) if alias else tree.tables_of(scope)
        found |= {table.name for table in inside if alias in (None, table.alias.lower())}
    return found


def _is_existence_test(scope: exp.Select) -> bool:
    """Return whether a SELECT is that of EXISTS, whose columns do not matter."""
    others = ("distinct", "group", "having", "qualify", "order")
    return isinstance(scope.parent, exp.Exists) and not any(scope.args.get(name) for name in others)


def check_subquery_columns(tree: QueryTree, columns: Mapping[str, Sequence[str]]) -> None:
    """Check the columns that subqueries qualify with a table, against `columns` by table name in the tree."""
    if len(list(tree.find_all(exp.Select))) < 2:
        return
    known = _list_columns(tree, columns)
    for column in tree.find_all(exp.Column):
        if not isinstance(column.this, exp.Identifier) or len(column.parts) != 2:
            continue
        names = known.get(column.table.lower())
        if names is not None and column.name.lower() not in {name.lower() for name in names}:
            hint = suggest_column(column.name, names)
            message = f"Column {column.name!r} does not exist in this part of the query."
            raise InvalidRequest(message, subject=column.name, hint=hint)


def _list_columns(tree: QueryTree, columns: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return by alias the columns of all tables with this alias, without aliases that may mean something else."""
    found: dict[str, list[str]] = {}
    others = {name.lower() for names in columns.values() for name in names}  # the column may be a ROW
    others |= {node.alias.lower() for node in tree.find_all(*_OTHER_NAMES) if node.alias}
    for table in tree.find_all(exp.Table):
        alias = table.alias.lower()
        if table.name not in columns or table.args.get("pivots"):
            others.add(alias)
        else:
            found.setdefault(alias, []).extend(columns[table.name])
    return {alias: names for alias, names in found.items() if alias not in others}


# A query of a join and its conditions, and what each scan gets:
#
#     SELECT ... FROM orders o LEFT JOIN refunds r ON r.id = o.id AND r.day = '2026-01-02'
#     WHERE o.price > 10 + 5 AND r.reason IS NULL AND o.price > r.amount
#
#     orders   price > 15           from WHERE: rows without it are in no result
#     refunds  day = 2026-01-02     from its ON: other rows match nothing
#     neither  r.reason IS NULL     a row of orders without a refund has a null here, which no row of refunds shows
#     neither  o.price > r.amount   columns of two tables
#
# So the conditions are split at AND, and each part goes to the only table whose columns it reads (`_find_owner`), if
# rows of this table may be removed before the joins (`_iterate_conditions`): for WHERE those of all tables that are not
# the optional side of a LEFT JOIN, for ON of a LEFT JOIN those of the optional side only. With any other join, nothing
# is pushed down in that SELECT.
#
# A part becomes a predicate if the scan compares exactly as the engine does for this type and operator; otherwise it is
# left out, which costs time but never a row. Constant expressions are computed by the engine itself. The query keeps
# all its conditions, so a predicate may be true for more rows than the condition, never for fewer.


Evaluate = Callable[[Sequence[str]], Sequence[Any]]
"""Computes constant expressions, given as SQL."""

_CONSTANT = (
    *(exp.Literal, exp.Neg, exp.Paren, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Interval, exp.Var, exp.Boolean),
    *(exp.Add, exp.Sub, exp.Mul, exp.Date, exp.Null),
)
"""Nodes of expressions that are computed before; none of them depends on the time."""
_NOT_OF_ONE_ROW = (exp.Query, exp.AggFunc, exp.Window, exp.Lambda)
_KNOWN_PARTS = frozenset(("this", "expression", "expressions", "low", "high", "negate", "table"))
"""The converted attributes of nodes. A node with any other attribute is left to the engine."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?\Z")
_LONG = range(-(2**63), 2**63)


@frozen(eq=False)
class PushableTable:
    """A table whose scan takes a condition."""

    name: str
    # Columns by name in lower case
    fields: Mapping[str, DataField]


def find_needs(
    tree: QueryTree,
    columns: Mapping[str, Sequence[str]],
    fields: Mapping[str, Sequence[DataField]],
    evaluate: Evaluate,
) -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, Predicate], int | None]:
    """Return the columns and the predicate by table, and the limit; check the columns of subqueries.

    `columns` are all columns by table, `fields` those of tables whose scan takes a condition.
    """
    check_subquery_columns(tree, columns)
    tables = {own: PushableTable(own, {f.name.lower(): f for f in found}) for own, found in fields.items()}
    return find_columns(tree, columns), find_predicates(tree, tables, evaluate), find_limit(tree)


def find_predicates(tree: QueryTree, tables: Mapping[str, PushableTable], evaluate: Evaluate) -> dict[str, Predicate]:
    """Return the predicates to push down, by the name of the table in the tree; tables without one are left out."""
    found: dict[str, list[Predicate]] = {}
    for scope in tree.find_all(exp.Select):
        here = {table.alias.lower(): tables.get(table.name) for table in tree.tables_of(scope)}
        if not any(here.values()):
            continue
        for node, allowed in _iterate_conditions(tree, scope):
            owner = _find_owner(node, here, tables)
            if owner is None or owner.name not in allowed:
                continue
            predicate = _Converter(owner.fields, evaluate).convert(node)
            if predicate is not None:
                found.setdefault(owner.name, []).append(predicate)
    return {name: parts[0] if len(parts) == 1 else And(tuple(parts)) for name, parts in found.items()}


def find_condition(node: exp.Expression, fields: Mapping[str, DataField], evaluate: Evaluate) -> Predicate | None:
    """Return a predicate on one table that is true wherever an expression is true; None if there is none.

    It has the conjuncts that a scan evaluates exactly as a query does. Columns in `node` have no table qualifier, and
    `fields` has the columns by name in lower case.
    """
    table = PushableTable("", fields)
    owned = [part for part in _split(node) if _find_owner(part, {"": table}, {"": table}) is not None]
    parts = [made for part in owned if (made := _Converter(fields, evaluate).convert(part)) is not None]
    return And(tuple(parts)) if len(parts) > 1 else next(iter(parts), None)


def _iterate_conditions(tree: QueryTree, scope: exp.Select) -> Iterator[tuple[exp.Expression, frozenset[str]]]:
    """Yield the conjuncts of WHERE and ON, each with the tables whose rows it may remove before the joins."""
    joins = scope.args.get("joins") or []
    if any(not _is_plain(join) for join in joins):
        return
    direct = {id(table): table for table in tree.tables_of(scope) if isinstance(table.parent, exp.From | exp.Join)}
    optional = {id(join.this) for join in joins if str(join.side or "").upper() == "LEFT"}
    required = frozenset(table.name for key, table in direct.items() if key not in optional)
    where = scope.args.get("where")
    for node in _split(where.this) if where is not None else ():
        yield node, required
    for join in joins:
        own = frozenset((join.this.name,)) if isinstance(join.this, exp.Table) else frozenset()
        on = join.args.get("on")
        for node in _split(on) if on is not None else ():
            yield node, own if id(join.this) in optional else required


def _is_plain(join: exp.Join) -> bool:
    """Return whether a join is an inner or a left join, whose columns are not renamed."""
    return (
        str(join.side or "").upper() in ("", "LEFT")
        and str(join.kind or "").upper() in ("", "INNER", "OUTER", "CROSS")
        and not join.args.get("method")
        and not join.args.get("using")
    )


def _split(node: exp.Expression) -> Iterator[exp.Expression]:
    pending = [node]
    while pending:
        current = pending.pop().unnest()
        if isinstance(current, exp.And):
            pending += [current.expression, current.this]
        else:
            yield current


def _find_owner(
    node: exp.Expression, here: Mapping[str, PushableTable | None], tables: Mapping[str, PushableTable]
) -> PushableTable | None:
    """Return the only table whose columns a condition reads."""
    owners: set[str] = set()
    for column in node.walk():
        if isinstance(column, _NOT_OF_ONE_ROW):
            return None
        if not isinstance(column, exp.Column):
            continue
        if column.args.get("db") is not None or not isinstance(column.this, exp.Identifier):
            return None
        if column.table:
            found = here.get(column.table.lower())
        else:
            having = [t for t in here.values() if t is not None and column.name.lower() in t.fields]
            found = having[0] if len(having) == 1 else None
        if found is None or column.name.lower() not in found.fields:
            return None
        owners.add(found.name)
    return tables[owners.pop()] if len(owners) == 1 else None


@frozen(eq=False)
class _Converter:
    """Converts a condition on one table."""

    fields: Mapping[str, DataField]
    evaluate: Evaluate

    def convert(self, node: exp.Expression) -> Predicate | None:
        """Return the predicate; None where the engine may evaluate the condition differently."""
        node = node.unnest()
        if any(value for name, value in node.args.items() if name not in _KNOWN_PARTS):
            return None
        made = self._convert_positive(node)
        return Not(made) if made is not None and node.args.get("negate") else made

    def _convert_positive(self, node: exp.Expression) -> Predicate | None:
        match node:
            case exp.And() | exp.Or():
                parts = (self.convert(node.this), self.convert(node.expression))
                if parts[0] is None or parts[1] is None:
                    return None
                return (And if isinstance(node, exp.And) else Or)((parts[0], parts[1]))
            case exp.Not():
                inner = self.convert(node.this)
                return None if inner is None else Not(inner)
            case exp.Between():
                bounds = ((Operator.GE, node.args["low"]), (Operator.LE, node.args["high"]))
                made = [self._compare(node.this, operator, bound) for operator, bound in bounds]
                return None if made[0] is None or made[1] is None else And((made[0], made[1]))
            case exp.In() if node.expressions:
                return self._convert_in(node)
            case exp.Like():
                return self._convert_like(node)
            case exp.Is(expression=exp.Null()):
                name = self._column(node.this)
                return None if name is None else IsNull(name.name)
        return self._convert_comparison(node)

    def _convert_comparison(self, node: exp.Expression) -> Predicate | None:
        operator = OPERATORS.get(type(node))
        if operator is None:
            return None
        if self._column(node.this) is not None:
            return self._compare(node.this, operator, node.expression)
        return self._compare(node.expression, FLIPPED[operator], node.this)

    def _compare(self, column: exp.Expression, operator: Operator, value: exp.Expression) -> Predicate | None:
        field = self._column(column)
        literal = None if field is None else self._literal(value, field.type)
        return None if field is None or literal is None else Compare(field.name, operator, literal)

    def _convert_in(self, node: exp.In) -> Predicate | None:
        field = self._column(node.this)
        if field is None:
            return None
        literals = [self._literal(value, field.type) for value in node.expressions]
        return None if any(value is None for value in literals) else In(field.name, tuple(literals))

    def _convert_like(self, node: exp.Like) -> Predicate | None:
        field, pattern = self._column(node.this), node.expression
        if field is None or not isinstance(field.type, CharType | VarCharType) or not isinstance(pattern, exp.Literal):
            return None
        return Like(field.name, pattern.name) if pattern.is_string and "\\" not in pattern.name else None

    def _column(self, node: exp.Expression) -> DataField | None:
        node = node.unnest()
        keyed = split_bracket(node)
        if keyed is not None:
            return self._key(*keyed)
        field = self.fields.get(node.name.lower()) if isinstance(node, exp.Column) else None
        return None if field is None or "." in field.name or split_key(field.name) is not None else field

    def _key(self, column: exp.Expression, key: str) -> DataField | None:
        """Return the value of a key of a map, under its path; None if a column has this name."""
        field = self._column(column)
        if field is None or not isinstance(field.type, MapType):
            return None
        name = name_key(field.name, key)
        if name.lower() in self.fields:  # paths mean this column
            return None
        kind = find_type(name, [field])
        return None if kind is None else evolve(field, name=name, type=kind)

    def _literal(self, node: exp.Expression, kind: DataType) -> Any:
        """Return a value that the column's type holds exactly; None where there is none."""
        node = node.unnest()
        if not all(isinstance(part, _CONSTANT) and not _is_instant(part) for part in node.walk()):
            return None
        if isinstance(node, exp.Literal):
            value: Any = node.name if node.is_string else _to_number(node.name)
        elif _is_date(node) and isinstance(kind, DateType):
            value = node.this.name
        else:
            (value,) = self.evaluate([node.sql(dialect="duckdb")])
        return fit_literal(value, kind)


def _is_instant(node: exp.Expression) -> bool:
    """Return whether a node is the type of instants, whose dates and texts depend on the time zone of the engine."""
    return isinstance(node, exp.DataType) and node.this in (
        exp.DataType.Type.TIMESTAMPTZ,
        exp.DataType.Type.TIMESTAMPLTZ,
    )


def _is_date(node: exp.Expression) -> bool:
    """Return whether a node is ``DATE '2026-01-01'``, which needs no engine."""
    return isinstance(node, exp.Cast) and node.to.this == exp.DataType.Type.DATE and bool(_DATE.match(node.this.name))


def _to_number(text: str) -> int | Decimal | float | None:
    try:
        return parse_number(text)
    except ArithmeticError:
        return None


def fit_literal(value: Any, kind: DataType) -> Any:
    """Return a value as the scan compares it with a column of a type; None where the engine may compare differently."""
    match kind:
        case BooleanType():
            return value if isinstance(value, bool) else None
        case _ if isinstance(kind, INTEGER_TYPES):
            is_integer = isinstance(value, int) and not isinstance(value, bool) and value in _LONG
            return value if is_integer else None
        case CharType() | VarCharType():
            return value if isinstance(value, str) else None
        case DecimalType():
            return _fit_decimal(value, kind)
        case DateType():
            return _fit_date(value)
        case TimestampType():
            text = value.isoformat(" ") if isinstance(value, datetime.datetime) and value.tzinfo is None else value
            return text if isinstance(text, str) and _TIMESTAMP.match(text) else None
    return None


def _fit_decimal(value: Any, kind: DecimalType) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    number = Decimal(value)
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or -exponent > kind.scale or len(digits) + exponent > kind.precision - kind.scale:
        return None
    return number


def _fit_date(value: Any) -> datetime.date | None:
    if isinstance(value, datetime.datetime):
        midnight = value.tzinfo is None and value.time() == datetime.time()
        return value.date() if midnight else None
    if isinstance(value, datetime.date):
        return value
    if isinstance(value, str) and _DATE.match(value):
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            return None
    return None


def find_limit(tree: QueryTree) -> int | None:
    """Return how many rows the scan of the only table of a query must give; None where more may be needed."""
    root = tree.root
    if not isinstance(root, exp.Select) or root.args.get("limit") is None:
        return None
    if len(list(tree.find_all(exp.Table))) != 1 or not tree.tables_of(root):
        return None
    others = ("joins", "where", "group", "having", "qualify", "windows", "distinct", "order", "laterals", "sample")
    if any(root.args.get(name) for name in others) or tree.has(
        exp.AggFunc, exp.Window, exp.Anonymous, exp.Unnest, exp.Explode, exp.Subquery, exp.UDTF
    ):
        return None
    amounts = [root.args.get(name) for name in ("limit", "offset")]
    if not isinstance(amounts[0], exp.Limit):
        return None
    values = [amount.expression for amount in amounts if amount is not None]
    if not all(isinstance(value, exp.Literal) and value.is_int for value in values):
        return None
    return sum(int(value.name) for value in values)
