"""Find the comments of the columns that a query takes unchanged from tables, for CREATE TABLE … AS.

Source: Spark, which passes the metadata of a column on through a projection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from paimon.domain.types.data_types import DataField
from paimon.ports.queries import QuerySource
from paimon.sql.plan.plan_query import ScanOrigin
from paimon.table import Table


def find_column_comments(tree: exp.Expression, sources: Mapping[str, QuerySource]) -> dict[str, str]:
    """Return the comments of the columns of a query, by column name in lower case; columns without one are left out.

    Only a single SELECT has comments. `sources` has what the query reads, by the table names in the tree.
    """
    if not isinstance(tree, exp.Select):
        return {}
    tables = dict(_find_tables(tree, sources))
    comments: dict[str, str] = {}
    for projection in tree.expressions:
        comments |= _find_comments(projection, tables)
    return comments


def _find_tables(tree: exp.Select, sources: Mapping[str, QuerySource]) -> Iterator[tuple[str, Sequence[DataField]]]:
    """Yield the tables of FROM and of its joins, under the names that the query gives them."""
    clauses = (*tree.args.values(), *(tree.args.get("joins") or ()))
    tables = (clause.this for clause in clauses if isinstance(clause, exp.From | exp.Join))
    for table in (table for table in tables if isinstance(table, exp.Table)):
        source = sources.get(table.name)
        origin = None if source is None else source.origin
        if isinstance(origin, ScanOrigin) and isinstance(origin.table, Table):
            yield table.alias_or_name.lower(), origin.table.table_schema.fields


def _find_comments(projection: exp.Expression, tables: Mapping[str, Sequence[DataField]]) -> dict[str, str]:
    column = projection.this if isinstance(projection, exp.Alias) else projection
    if isinstance(column, exp.Star):
        fields = [field for columns in tables.values() for field in columns]
        return {field.name.lower(): field.description for field in fields if field.description is not None}
    if not isinstance(column, exp.Column):
        return {}
    qualifier = column.table.lower()
    chosen = [columns for name, columns in tables.items() if qualifier in ("", name)]
    fields = [field for columns in chosen for field in columns]
    if isinstance(column.this, exp.Star):
        return {field.name.lower(): field.description for field in fields if field.description is not None}
    found = [field.description for field in fields if field.name.lower() == column.name.lower()]
    name = projection.alias_or_name.lower()
    return {name: found[0]} if len(found) == 1 and found[0] is not None else {}
