"""Prepare the conditions and values of UPDATE, DELETE and MERGE: names of columns, and subqueries that run first.

Invariant: the result of a subquery becomes a value of a predicate, never a part of a text.
"""

# A statement has texts such as the condition of
#
#     DELETE FROM shop.orders o WHERE o.ID IN (SELECT id FROM refunds) AND o.price > (SELECT max(price) FROM offers)
#
# 1. `name_columns` edits the text by tokens, because only the table knows its columns: `o.ID` becomes `id`. Columns are
#    named in any case, as in Spark; if two differ in case only, the exact name is needed. An expression has one table,
#    so a qualifier (`o`, `orders`, `shop.orders`) says nothing more and goes, unless it is itself a column: then it
#    means a nested field. A subquery has tables of its own, and its text stays.
# 2. `read_condition` parses a text with a subquery, and runs each subquery that is an operand of AND, OR, NOT, IN,
#    EXISTS or a comparison. The condition above becomes the predicate `id IN (3, 7) AND price > 99`, which prunes files
#    as any other. A text without a subquery is not parsed here. `read_assignment` does the same for a new value, which
#    is a subquery as a whole.
# 3. Where that does not work, because a subquery names columns of the changed row, is inside an expression, or has too
#    many rows, `SubqueryError` makes the caller take the longer way: a query finds the rows and their new values
#    (`query_changes.py`).
#
# The texts are read again for each attempt to change rows (`_defer` in `run_rows.py`), so that a retry after a conflict
# compares with the results of the newest snapshots.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import pyarrow as pa
from attrs import frozen
from sqlglot import exp

from paimon.domain.assignment.expression import Constant
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import And, Compare, In, Literal, Not, Or, Predicate
from paimon.domain.predicate.field_paths import find_column
from paimon.domain.predicate.scalar_sql import HINT, convert_condition
from paimon.domain.predicate.sql import OPERATORS, PredicateDialect, column_path, parse_sql
from paimon.domain.types.sql_tokens import StatementReader, Token
from paimon.sql.parse.parse_query import begins_subquery, parse_query
from paimon.sql.parse.query_tree import DIALECT
from paimon.sql.plan.plan_query import plan_query, query_engine
from paimon.sql.run.result import StatementRun

_ANY_HINT = "UPDATE and DELETE take any subquery"
_MOST_VALUES = 100_000
"""Values of one subquery at most, because each is compared with each row."""


class SubqueryError(InvalidRequest):
    """A subquery that cannot run first: it names columns of the changed row, or is within an expression."""


def read_condition(run: StatementRun, text: str) -> str | Predicate:
    """Return the condition of an UPDATE or DELETE, with subqueries replaced by their results; else the text.

    Raises `SubqueryError`, so that the caller uses a query, if a subquery names columns of the changed table or is a
    part of an expression.
    """
    if not has_subquery(text):
        return text
    return parse_sql(text, "condition", HINT, partial(_convert, run))


def read_assignment(run: StatementRun, text: str) -> Any:
    """Return the new value of a column: the text, or the result of a subquery as a constant.

    Raises `SubqueryError` as `read_condition` does. Refuses a subquery with more than one row or column.
    """
    if not has_subquery(text):
        return text
    return parse_sql(text, "expression", HINT, partial(_convert_value, run))


def has_subquery(text: str) -> bool:
    """Return whether a text contains a subquery; a subquery that is not complete is refused."""
    tokens = StatementReader(text).tokens
    positions = [position for position in range(len(tokens)) if begins_subquery(tokens, position)]
    for position in positions:
        depths = accumulate({"(": 1, ")": -1}.get(t.text, 0) if t.kind == "symbol" else 0 for t in tokens[position:])
        end = next((number for number, depth in enumerate(depths, position) if not depth), len(tokens) - 1)
        parse_query(StatementReader(text[tokens[position].start + 1 : tokens[end].start]))
    return bool(positions)


def _convert_value(run: StatementRun, node: exp.Expression) -> Constant:
    query = node.unnest()
    if isinstance(query, exp.Query):
        return Constant(_read_single_value(run, query))
    text = node.sql(dialect=PredicateDialect)
    message = f"{text!r} contains a subquery in an expression."
    raise SubqueryError(message, subject=text, hint=f"SET column = (SELECT …) takes it alone; {_ANY_HINT}")


def _convert(run: StatementRun, node: exp.Expression) -> Predicate:
    node = node.unnest() if isinstance(node, exp.Paren) else node
    match node:
        case exp.And() | exp.Or():
            parts = (_convert(run, node.this), _convert(run, node.expression))
            return And(parts) if isinstance(node, exp.And) else Or(parts)
        case exp.Not():
            return Not(_convert(run, node.this))
        case exp.In() if node.args.get("query") is not None:
            query = node.args["query"]
            path, values = _to_path(node.this), tuple(_read_values(run, query.unnest()))
            return In(path, values) if values else Literal(False)  # also for null, as in SQL
        case exp.Exists():
            return Literal(bool(_read_rows(run, exp.select("1").from_(node.this.unnest().subquery("q")).limit(1))))
        case exp.SetOperation():
            text = node.sql(dialect=PredicateDialect)
            raise InvalidRequest(f"{text!r} is a query, not a condition.", subject=text, hint=HINT)
    if not node.find(exp.Query):
        return convert_condition(node)
    operator = OPERATORS.get(type(node))
    if operator is None or not isinstance(node.expression.unnest(), exp.Query):
        text = node.sql(dialect=PredicateDialect)
        hint = f"write column IN (SELECT …), EXISTS (SELECT …), or column = (SELECT …); {_ANY_HINT}"
        raise SubqueryError(f"{text!r} contains a subquery that is not supported here.", subject=text, hint=hint)
    value = _read_single_value(run, node.expression.unnest())
    return Literal(None) if value is None else Compare(_to_path(node.this), operator, value)


def _to_path(node: exp.Expression) -> str:
    """Return the column that is compared with a subquery; raise `SubqueryError` for a longer expression."""
    try:
        return column_path(node)
    except InvalidRequest as error:
        raise SubqueryError(error.message, subject=error.subject, hint=_ANY_HINT) from error


def _read_single_value(run: StatementRun, query: exp.Expression) -> Any:
    values = _read_values(run, query)
    if len(values) > 1:
        text = query.sql(dialect=DIALECT)
        raise InvalidRequest(f"Subquery {text!r} has more than one row.", subject=text, hint="add LIMIT 1 or max(…)")
    return values[0] if values else None


def _read_values(run: StatementRun, query: exp.Expression) -> list[Any]:
    rows = _read_rows(run, query)
    if rows and len(rows[0]) != 1:
        text = query.sql(dialect=DIALECT)
        raise InvalidRequest(f"Subquery {text!r} has more than one column.", subject=text, hint="select one column")
    return [value for row in rows for value in row]


def _read_rows(run: StatementRun, query: exp.Expression) -> list[tuple[Any, ...]]:
    """Run a subquery and return its rows, of which there may be a limited number."""
    text = query.sql(dialect=DIALECT)
    try:
        planned = plan_query(run.session, parse_query(StatementReader(text)), run.frames)
        found = _read_at_most(query_engine(run.session).run(planned.sql, planned.sources), text)
    except SubqueryError:
        raise
    except InvalidRequest as error:
        hint = f"a subquery cannot name columns of the changed row here; {_ANY_HINT}"
        both = f"{error.hint} Note that {hint}" if error.hint else hint
        raise SubqueryError(error.message, subject=text, hint=both) from error
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def _read_at_most(reader: pa.RecordBatchReader, text: str) -> pa.Table:
    """Return the rows of a subquery; raise `SubqueryError` if there are more than `_MOST_VALUES`."""
    batches: list[pa.RecordBatch] = []
    for batch in reader:
        batches.append(batch)
        if sum(b.num_rows for b in batches) > _MOST_VALUES:
            hint = f"use a condition with fewer values; {_ANY_HINT}"
            raise SubqueryError(f"Subquery {text!r} has more than {_MOST_VALUES:,} rows.", subject=text, hint=hint)
    return pa.Table.from_batches(batches, reader.schema)


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
    position = depth = subquery_depth = 0
    while position < len(tokens):
        token = tokens[position]
        if token.kind == "symbol":
            depth += (token.text == "(") - (token.text == ")")
        if subquery_depth and depth < subquery_depth:
            subquery_depth = 0
        if not subquery_depth and begins_subquery(tokens, position):
            subquery_depth = depth
        length = 0 if subquery_depth else _count_path_parts(tokens, position)
        if length:
            path = [tokens[position + 2 * part].text.lower() for part in range(length)]
            skipped = _count_qualifier_parts(path, table, lower)
            column = tokens[position + 2 * skipped]
            if skipped:
                yield _Edit(token.start, column.start, "")
            following = tokens[position + 2 * length - 1] if position + 2 * length - 1 < len(tokens) else None
            if following is None or (following.kind, following.text) != ("symbol", "("):  # else it is a function
                yield from _correct_case(text, column, columns)
        position += max(2 * length - 1, 1)


def _correct_case(text: str, token: Token, columns: Sequence[str]) -> Iterator[_Edit]:
    found = find_column(token.text, columns)
    start = token.start + (token.kind == "quoted")
    end = start + len(token.text)
    if found is not None and found != token.text and text[start:end] == token.text:
        yield _Edit(start, end, found)


def _count_path_parts(tokens: Sequence[Token], position: int) -> int:
    """Return how many names, separated by periods, begin here."""
    parts = 0
    while position < len(tokens) and tokens[position].kind in ("word", "quoted"):
        parts += 1
        if position + 1 >= len(tokens) or (tokens[position + 1].kind, tokens[position + 1].text) != ("symbol", "."):
            break
        position += 2
    return parts


def _count_qualifier_parts(path: Sequence[str], table: list[str], columns: set[str]) -> int:
    """Return how many parts of a path name the table: the longest end of its name that leaves a column."""
    if path[0] in columns:
        return 0
    return max((n for n in range(1, len(path)) if list(path[:n]) == table[-n:]), default=0)
