"""Remove the name of the table before columns: ``t.price`` becomes ``price``.

The expressions of UPDATE and DELETE have one table, so its name says nothing more. A subquery has tables of its own,
and stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.types.sql_tokens import Token
from paimon.sql.parse.lexer import StatementReader
from paimon.sql.parse.parse_query import begins_subquery


def remove_table_name(text: str, table: Sequence[str], columns: Sequence[str]) -> str:
    """Return an expression without the name of its table before columns.

    Parameters
    ----------
    text : str
        The expression.
    table : sequence of str
        The alias of the table, or the parts of its name: the catalog, the database and the table.
    columns : sequence of str
        The columns of the table. A first part that is a column is a nested field, and stays.

    Returns
    -------
    str
        The expression, in which only names are shorter.
    """
    tokens = StatementReader(text).tokens
    result, kept_from = "", 0
    for start, end in _find_qualifiers(tokens, [name.lower() for name in table], {name.lower() for name in columns}):
        result += text[kept_from:start]
        kept_from = end
    return result + text[kept_from:]


def _find_qualifiers(tokens: Sequence[Token], table: list[str], columns: set[str]) -> list[tuple[int, int]]:
    """Return where the qualifiers outside of subqueries begin, and where their columns begin."""
    found: list[tuple[int, int]] = []
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
        if length > 1:
            path = [tokens[place + 2 * part].text.lower() for part in range(length)]
            skipped = _count_qualifier_parts(path, table, columns)
            if skipped:
                found.append((token.start, tokens[place + 2 * skipped].start))
        place += max(2 * length - 1, 1)
    return found


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
