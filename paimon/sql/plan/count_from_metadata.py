"""Compute from metadata what a query asks: ``sys.max_pt('table')``, aggregates of partition columns, and COUNT(*).

Invariant: the plan of a scan knows the rows of each split, so no file has to be merged; otherwise the rows are read. A
partition without files does not count, nor does the null partition. The largest value is that of the newest snapshot
when the query is planned, so that scans can prune by it. Source: `ReplacePaimonFunctions.replaceMaxPt`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen
from sqlglot import exp

from paimon.domain.columns.java_float_order import compare_values
from paimon.domain.errors import InvalidRequest
from paimon.domain.partition.partition_text import format_plain_text
from paimon.domain.row.binary_row import deserialize
from paimon.domain.row.values import to_array
from paimon.domain.types.data_types import CHARACTER_TYPES, INTEGER_TYPES, BooleanType, DataType, DecimalType
from paimon.domain.types.type_text import format_type
from paimon.operations.metadata.manifests import read_data_manifests, read_live_columns
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.ports.queries import QuerySource
from paimon.sql.parse.query_tree import DIALECT, QueryTree
from paimon.sql.parse.statements import TableName
from paimon.sql.session import Session
from paimon.table import Table

if TYPE_CHECKING:
    from paimon.table import Table

_FUNCTION = "max_pt"


def replace_max_partitions(session: Session, tree: QueryTree) -> QueryTree:
    """Return the tree with the value of each call; the same tree if there is none."""
    if not any(_find_call(node) for node in tree.find_all(exp.Dot)):
        return tree
    root = tree.root.copy()
    for node in list(root.find_all(exp.Dot)):
        call = _find_call(node)
        if call is not None:
            node.replace(_to_literal(*find_largest(_open_named(session, call))))
    return QueryTree(root)


def _find_call(node: exp.Dot) -> exp.Anonymous | None:
    """Return the call if the node is ``[catalog.]sys.max_pt(…)``."""
    call, owner = node.expression, node.this
    schema = owner.expression if isinstance(owner, exp.Dot) else owner
    is_call = isinstance(call, exp.Anonymous) and call.name.lower() == _FUNCTION
    return call if is_call and schema.name.lower() == "sys" else None


def _open_named(session: Session, call: exp.Anonymous) -> Table:
    arguments = call.expressions
    if len(arguments) != 1 or not (isinstance(arguments[0], exp.Literal) and arguments[0].is_string):
        message = f"Function sys.{_FUNCTION} takes the name of a table in single quotes."
        raise InvalidRequest(message, subject=_FUNCTION, hint=f"write sys.{_FUNCTION}('database.table')")
    return session.open_table(TableName(tuple(arguments[0].name.split("."))))


def find_largest(table: Table) -> tuple[Any, DataType]:
    """Return the largest value of the first partition column, and its type; refuse a table that has none."""
    if not table.partition_keys:
        raise InvalidRequest(f"Table {table.name!r} has no partitions.", subject=table.name, hint="use max(column)")
    context, snapshot = table.context, latest_snapshot(table.context)
    fields = context.schema.partition_fields
    types = [f.type for f in fields]
    rows: list[bytes] = []
    if snapshot is not None:
        live = read_live_columns(context, read_data_manifests(context, snapshot))
        rows = [live.partition_rows[i] for i in sorted(set(live.partitions.tolist()))]
    values = [value for row in rows if (value := deserialize(row, types)[0]) is not None]
    if not values:
        message = f"Table {table.name!r} has no partition with rows."
        raise InvalidRequest(message, subject=table.name, hint="write rows first")
    return max(values, key=cmp_to_key(compare_values)), types[0]


def _to_literal(value: Any, data_type: DataType) -> exp.Expression:
    text = format_plain_text(value, data_type)
    if isinstance(data_type, CHARACTER_TYPES):
        return exp.Literal.string(text)
    if isinstance(data_type, INTEGER_TYPES):
        return exp.Literal.number(text)
    if isinstance(data_type, BooleanType):
        return exp.Boolean(this=bool(value))
    kind = format_type(data_type.with_nullable(True)).replace("TIMESTAMP_LTZ", "TIMESTAMPTZ")
    name = kind if isinstance(data_type, DecimalType) else kind.partition("(")[0]
    return exp.cast(exp.Literal.string(text), exp.DataType.build(name, dialect=DIALECT))


_ROWS = "__paimon_rows"
_AGGREGATES = (exp.Count, exp.Min, exp.Max)


@frozen(eq=False)
class CountedQuery:
    """A query over one row for each split, instead of the rows of the table."""

    sql: str
    # The partition values and row counts of the splits
    sources: Mapping[str, QuerySource]
    # What was read, for EXPLAIN
    note: str


def plan_count(tree: QueryTree, tables: Mapping[str, Table]) -> CountedQuery | None:
    """Plan a query that needs only partition values and numbers of rows; None for any other query."""
    nodes = list(tree.find_all(exp.Table))
    root = tree.root
    if len(nodes) != 1 or nodes[0].name not in tables or not isinstance(root, exp.Select):
        return None
    table = tables[nodes[0].name]
    if not _needs_partitions_only(root, table.partition_keys, table.schema.names):
        return None
    scan = table.scan()
    plan = scan.plan()
    counts = [split.merged_row_count for split in plan.splits]
    if any(rows is None for rows in counts):
        return None
    fields = table.table_schema.partition_fields
    types = [f.type for f in fields]
    values = [deserialize(split.partition, types) if fields else () for split in plan.splits]
    arrays = [to_array([value[i] for value in values], f.type) for i, f in enumerate(fields)]
    rows = pa.table([*arrays, pa.array(counts, pa.int64())], names=[*(f.name for f in fields), _ROWS])
    rows = rows.filter(pc.greater(rows[_ROWS], 0))
    sql = _count_rows(root.copy()).sql(dialect=DIALECT)
    note = f"metadata of {table.name}: {len(plan.splits)} splits, no data file is read"
    return CountedQuery(sql, {nodes[0].name: QuerySource(rows.schema, rows.to_reader, rows)}, note)


def _needs_partitions_only(tree: exp.Select, partition_keys: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether only partition columns and COUNT(*) occur, and the rows are aggregated.

    An alias of the query may be named, too, unless another column of the table has its name.
    """
    keys = {key.lower() for key in partition_keys}
    if tree.find(exp.Subquery, exp.Window, exp.SetOperation, exp.Join, exp.Lateral, exp.TableSample, exp.Unnest):
        return False
    aggregates = list(tree.find_all(exp.AggFunc))
    stars = [star for star in tree.find_all(exp.Star) if not isinstance(star.parent, exp.Count)]
    is_known = all(isinstance(a, _AGGREGATES) and (_is_count_of_rows(a) or _is_repeatable(a)) for a in aggregates)
    reduces = bool(aggregates) or tree.args.get("group") is not None or tree.args.get("distinct") is not None
    columns = {column.name.lower() for column in tree.find_all(exp.Column)}
    aliases = {alias.alias.lower() for alias in tree.expressions if isinstance(alias, exp.Alias)}
    others = {name.lower() for name in names} - keys
    return is_known and reduces and not stars and columns - aliases <= keys and not columns & others


def _is_count_of_rows(node: exp.Expression) -> bool:
    return isinstance(node, exp.Count) and isinstance(node.this, exp.Star | exp.Literal)


def _is_repeatable(node: exp.Expression) -> bool:
    """Return whether an aggregate over one row for each split equals that over all rows: repetitions do not matter."""
    return isinstance(node, exp.Min | exp.Max) or (isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct))


def _count_rows(tree: exp.Select) -> exp.Expression:
    """Replace COUNT(*) by the sum of the numbers of rows."""
    for selected in list(tree.expressions):
        if not isinstance(selected, exp.Alias) and selected.find(exp.Count) and _is_count_of_rows(selected):
            # the name that the engine gives the column
            selected.replace(exp.alias_(selected.copy(), "count_star()", quoted=True))
    for node in list(tree.find_all(exp.Count)):
        if _is_count_of_rows(node):
            total = exp.Sum(this=exp.column(_ROWS, quoted=True))
            total = exp.Coalesce(this=total, expressions=[exp.Literal.number(0)])
            node.replace(exp.cast(total, "BIGINT", dialect=DIALECT))
    return tree
