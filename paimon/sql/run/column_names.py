"""Name the columns of a table as the table does: ``T.PRICE`` becomes ``price``.

Statements name columns in any case, as in Spark. If columns differ in case only, the exact name is needed. The
expressions of UPDATE and DELETE have one table, so its name says nothing more. A subquery has tables of its own, and
stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from paimon.domain.predicate.field_paths import find_column
from paimon.domain.types.sql_tokens import Token
from paimon.sql.parse.lexer import StatementReader
from paimon.sql.parse.parse_query import begins_subquery


def name_columns(text: str, table: Sequence[str], columns: Sequence[str]) -> str:
    """Return an expression in which columns have their names in the table, without a qualifier.

    `table` has the alias, or the parts of the full name; it is removed. If it is also a column, it means a nested field
    and stays.
    """
    result, copied = "", 0
    for edit in _find_edits(text, StatementReader(text).tokens, [name.lower() for name in table], columns):
        result += text[copied : edit.start] + edit.name
        copied = edit.end
    return result + text[copied:]


@frozen
class _Edit:
    """The part of a text that a name takes the place of."""

    start: int
    end: int
    name: str


def _find_edits(text: str, tokens: Sequence[Token], table: list[str], columns: Sequence[str]) -> Iterator[_Edit]:
    """Yield the edits of the paths outside of subqueries, in their order."""
    lower = {name.lower() for name in columns}
    place = depth = subquery_depth = 0
    while place < len(tokens):
        token = tokens[place]
        if token.kind == "symbol":
            depth += (token.text == "(") - (token.text == ")")
        if subquery_depth and depth < subquery_depth:
            subquery_depth = 0
        if not subquery_depth and begins_subquery(tokens, place):
            subquery_depth = depth
        length = 0 if subquery_depth else _count_path_parts(tokens, place)
        if length:
            path = [tokens[place + 2 * part].text.lower() for part in range(length)]
            skipped = _count_qualifier_parts(path, table, lower)
            column = tokens[place + 2 * skipped]
            if skipped:
                yield _Edit(token.start, column.start, "")
            following = tokens[place + 2 * length - 1] if place + 2 * length - 1 < len(tokens) else None
            if following is None or (following.kind, following.text) != ("symbol", "("):  # else it is a function
                yield from _correct_case(text, column, columns)
        place += max(2 * length - 1, 1)


def _correct_case(text: str, token: Token, columns: Sequence[str]) -> Iterator[_Edit]:
    found = find_column(token.text, columns)
    start = token.start + (token.kind == "quoted")
    end = start + len(token.text)
    if found is not None and found != token.text and text[start:end] == token.text:
        yield _Edit(start, end, found)


def _count_path_parts(tokens: Sequence[Token], place: int) -> int:
    """Return how many names, separated by periods, begin here."""
    parts = 0
    while place < len(tokens) and tokens[place].kind in ("word", "quoted"):
        parts += 1
        if place + 1 >= len(tokens) or (tokens[place + 1].kind, tokens[place + 1].text) != ("symbol", "."):
            break
        place += 2
    return parts


def _count_qualifier_parts(path: Sequence[str], table: list[str], columns: set[str]) -> int:
    """Return how many parts of a path name the table: the longest end of its name that leaves a column."""
    if path[0] in columns:
        return 0
    return max((n for n in range(1, len(path)) if list(path[:n]) == table[-n:]), default=0)
