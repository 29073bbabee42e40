"""Replace ``sys.max_pt('table')`` in queries by the largest value of the first partition column.

Invariant: a partition without files does not count, nor does the null partition. The value is that of the newest
snapshot when the query is planned, so that scans can prune by it. Source: `ReplacePaimonFunctions.replaceMaxPt`.
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

from sqlglot import exp

from paimon.domain.columns.java_float_order import compare_values
from paimon.domain.errors import InvalidRequest
from paimon.domain.partition.partition_text import format_plain_text
from paimon.domain.row.binary_row import deserialize
from paimon.domain.types.data_types import CHARACTER_TYPES, INTEGER_TYPES, BooleanType, DataType, DecimalType
from paimon.domain.types.type_text import format_type
from paimon.operations.metadata.manifests import read_data_manifests, read_live_columns
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.sql.parse.query_tree import DIALECT, QueryTree
from paimon.sql.parse.statements import TableName
from paimon.sql.session import Session
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
