"""Parse MERGE INTO."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from paimon.domain.errors import InvalidRequest
from paimon.sql.parse.lexer import StatementReader, syntax_error
from paimon.sql.parse.parse_query import parse_query
from paimon.sql.parse.parse_rows import read_alias, read_assignments, read_expression
from paimon.sql.parse.parse_tables import read_table_name
from paimon.sql.parse.statements import Merge, MergeWhen, Query, Statement

_UNNAMED_SOURCE = "source"
"""The name of a source that is a query without an alias."""


def _merge(reader: StatementReader) -> Statement:
    name = read_table_name(reader)
    target = read_alias(reader, "USING") or name.parts[-1]
    reader.expect("USING")
    query, source = _read_source(reader)
    reader.expect("ON")
    on = read_expression(reader, ("WHEN",))
    clauses: list[MergeWhen] = []
    while reader.read_if_next("WHEN"):
        clauses.append(_read_clause(reader, target))
    if not clauses:
        raise reader.error(f"expected WHEN, not {reader.describe_next()}")
    return Merge(name, target, query, source, on, tuple(clauses))


def _read_source(reader: StatementReader) -> tuple[Query, str]:
    """Read a table or a query, and its alias; without an alias, return the last part of the table's name."""
    line, start = reader.line_of_next(), reader.current.start
    text = read_expression(reader, ("ON",))
    try:
        query = parse_query(StatementReader(f"SELECT * FROM {text}", first_line=line))
    except InvalidRequest as error:
        reason = "expected a table, or a query in parentheses"
        raise syntax_error(reader.text, start, reason, error.hint, reader.first_line) from error
    alias: str = query.tree.find(exp.From).this.alias
    return query, alias or _UNNAMED_SOURCE


def _read_clause(reader: StatementReader, target: str) -> MergeWhen:
    if reader.read_if_next("MATCHED"):
        rows = "MATCHED"
    else:
        reader.expect("NOT", "MATCHED")
        rows = "NOT MATCHED BY SOURCE" if reader.read_if_next("BY", "SOURCE") else "NOT MATCHED"
        if rows == "NOT MATCHED":
            reader.read_if_next("BY", "TARGET")
    condition = read_expression(reader, ("THEN",)) if reader.read_if_next("AND") else None
    reader.expect("THEN")
    if rows == "NOT MATCHED":
        reader.expect("INSERT")
        return MergeWhen(rows, "INSERT", condition, _read_inserted(reader))
    if reader.read_if_next("DELETE"):
        return MergeWhen(rows, "DELETE", condition)
    reader.expect("UPDATE", "SET")
    if rows == "MATCHED" and reader.read_if_next("*"):
        return MergeWhen(rows, "UPDATE", condition)
    return MergeWhen(rows, "UPDATE", condition, read_assignments(reader, (target,), ("WHEN",)))


def _read_inserted(reader: StatementReader) -> Mapping[str, str] | None:
    """Read ``*`` (None), or columns and their expressions; refuse unequal numbers and repeated columns."""
    if reader.read_if_next("*"):
        return None
    columns = reader.names_in_parentheses()
    reader.expect("VALUES", "(")
    values = [read_expression(reader, (",", ")"))]
    while reader.read_if_next(","):
        values.append(read_expression(reader, (",", ")")))
    if len(values) != len(columns):
        raise reader.error(f"expected {len(columns)} expressions, one for each column, not {len(values)}")
    if len(set(columns)) < len(columns):
        raise reader.error("a column is named twice")
    reader.expect(")")
    return dict(zip(columns, values, strict=True))


MERGE_READERS: Mapping[tuple[str, ...], Callable[[StatementReader], Statement]] = {("MERGE", "INTO"): _merge}
"""Readers by the first words of a statement."""
