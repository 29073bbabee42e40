"""Parse the statements that change rows: INSERT, UPDATE, DELETE and MERGE."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.predicate.field_paths import DEFAULT
from paimon.domain.types.sql_tokens import StatementReader, syntax_error
from paimon.sql.parse.parse_query import QUERY_WORDS, parse_query
from paimon.sql.parse.parse_tables import read_partition, read_table_name
from paimon.sql.parse.statements import (
    CopyTo,
    Delete,
    Insert,
    Merge,
    MergeWhen,
    PartitionValues,
    Query,
    Statement,
    Update,
)

_UNNAMED_SOURCE = "source"
"""The name of a source that is a query without an alias."""


def _insert(overwrite: bool) -> Callable[[StatementReader], Statement]:
    def read(reader: StatementReader) -> Statement:
        """Read what follows INSERT INTO or INSERT OVERWRITE; refuse a statement without a query."""
        reader.read_if_next("TABLE")
        name = read_table_name(reader)
        columns: tuple[str, ...] = ()
        partition: PartitionValues | None = None
        if reader.read_if_next("PARTITION"):
            partition, _ = read_partition(reader)
        by_name = reader.read_if_next("BY", "NAME")
        if not by_name and reader.current.text == "(" and not _begins_query(reader):
            columns = reader.names_in_parentheses()
        if reader.current.text.upper() not in QUERY_WORDS:
            raise reader.error(f"expected VALUES or a query, not {reader.describe_next()}")
        query = _write_null_for_default(parse_query(reader))
        return Insert(name, query, columns, overwrite, partition, by_name)

    return read


def _write_null_for_default(query: Query) -> Query:
    """Write NULL for DEFAULT in the rows of VALUES, because a column with a default stores it in place of null."""
    text = query.text.upper()
    values = query.tree.find(exp.Values) if text.startswith("VALUES") and DEFAULT in text else None
    if values is not None:
        for row in values.expressions:
            for value in row.expressions if isinstance(row, exp.Tuple) else ():
                if isinstance(value, exp.Var) and value.name.upper() == DEFAULT:
                    value.replace(exp.Null())
    return query


def _begins_query(reader: StatementReader) -> bool:
    """Return whether the parenthesis that comes next holds a query rather than names of columns."""
    position = reader.position
    while reader.tokens[position].text == "(":
        position += 1
    token = reader.tokens[position]
    return token.kind == "word" and token.text.upper() in QUERY_WORDS


def _update(reader: StatementReader) -> Statement:
    name = read_table_name(reader)
    alias = read_alias(reader, "SET")
    reader.expect("SET")
    assignments = read_assignments(reader, (alias,) if alias else name.parts, ("WHERE", "FROM"))
    if reader.read_if_next("FROM"):
        raise Unsupported("UPDATE … FROM", hint="write MERGE INTO … USING …, or a subquery")
    return Update(name, assignments, _read_where(reader), alias)


def read_assignments(reader: StatementReader, table: tuple[str, ...], ends: tuple[str, ...]) -> dict[str, str]:
    """Read ``column = expression, …`` after SET, up to one of the words `ends`; refuse repeated columns.

    A column may be qualified with the name `table`.
    """
    assignments: dict[str, str] = {}
    while True:
        path = reader.object_name()
        column = path[-1] if len(path) == 1 or path[:-1] == table[-len(path) + 1 :] else ".".join(path)
        reader.expect("=")
        if column in assignments:
            raise reader.error(f"column {column!r} is set twice")
        assignments[column] = read_expression(reader, (",", *ends))
        if not reader.read_if_next(","):
            return assignments


def is_default(text: str) -> bool:
    """Return whether the text of a value is the keyword DEFAULT."""
    first, *others = StatementReader(text).tokens
    return first.kind == "word" and first.text.upper() == DEFAULT and len(others) == 1


def _delete(reader: StatementReader) -> Statement:
    name = read_table_name(reader)
    alias = read_alias(reader, "WHERE")
    return Delete(name, _read_where(reader), alias)


def read_alias(reader: StatementReader, next_word: str) -> str | None:
    """Read the alias after the name of a table; None if `next_word` follows directly."""
    if reader.read_if_next("AS"):
        return reader.name()
    token = reader.current
    is_alias = token.kind == "quoted" or (token.kind == "word" and token.text.upper() != next_word)
    return reader.name() if is_alias else None


def _read_where(reader: StatementReader) -> str | None:
    return read_expression(reader, ()) if reader.read_if_next("WHERE") else None


def read_expression(reader: StatementReader, ends: tuple[str, ...]) -> str:
    """Read an expression as text, up to one of the words or symbols `ends` outside of parentheses and CASE.

    If `ends` is empty, the expression ends with the statement.
    """
    start, depth, cases, end, before = reader.current.start, 0, 0, reader.current.start, ""
    while reader.current.kind != "end":
        token = reader.current
        text = token.text.upper() if token.kind in ("word", "symbol") else ""
        if not depth and not cases and text in ends and (before, text) != ("DISTINCT", "FROM"):
            break
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        cases = max(cases + (text == "CASE") - (text == "END"), 0)
        reader.advance()
        end, before = reader.current.start, text
    found = reader.text[start:end].strip()
    if not found:
        raise reader.error(f"expected an expression, not {reader.describe_next()}")
    return found


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


def _copy(reader: StatementReader) -> Statement:
    is_query, line = _begins_query(reader), reader.line_of_next()
    text = read_expression(reader, ("TO", "FROM"))
    if reader.read_if_next("FROM"):
        raise Unsupported("COPY … FROM", hint=f"write INSERT INTO {text} SELECT * FROM read_parquet('path')")
    reader.expect("TO")
    path, form = reader.literal(), None
    reader.read_if_next("WITH")
    if reader.read_if_next("("):
        reader.expect("FORMAT")
        form = (reader.literal() if reader.current.kind == "literal" else reader.name()).lower()
        reader.expect(")")
    reader.expect_end()
    body = text[1:-1] if is_query else f"SELECT * FROM {text}"
    return CopyTo(parse_query(StatementReader(body, first_line=line)), path, form)


ROW_READERS: Mapping[tuple[str, ...], Callable[[StatementReader], Statement]] = {
    ("INSERT", "INTO"): _insert(False),
    ("INSERT", "OVERWRITE"): _insert(True),
    ("UPDATE",): _update,
    ("DELETE", "FROM"): _delete,
    ("MERGE", "INTO"): _merge,
    ("COPY",): _copy,
}
"""Readers by the first words of a statement."""
