"""Conditions and values of UPDATE and DELETE: subqueries run first, and their results become values.

Invariant: a result becomes a value of a predicate, never a part of a text.
"""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from typing import Any

import pyarrow as pa
from sqlglot import exp

from paimon.domain.assignment.expression import Constant
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import And, Compare, In, Literal, Not, Or, Predicate
from paimon.domain.predicate.scalar_sql import HINT, convert_condition
from paimon.domain.predicate.sql import PredicateDialect, column_path, parse_sql
from paimon.sql.parse.lexer import StatementReader
from paimon.sql.parse.parse_query import begins_subquery, parse_query
from paimon.sql.parse.query_tree import DIALECT
from paimon.sql.plan.plan_query import plan_query, query_engine
from paimon.sql.plan.pushdown_predicates import OPERATORS
from paimon.sql.run.statement_run import StatementRun

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
    places = [place for place in range(len(tokens)) if begins_subquery(tokens, place)]
    for place in places:
        depths = accumulate({"(": 1, ")": -1}.get(t.text, 0) if t.kind == "symbol" else 0 for t in tokens[place:])
        end = next((number for number, depth in enumerate(depths, place) if not depth), len(tokens) - 1)
        parse_query(StatementReader(text[tokens[place].start + 1 : tokens[end].start]))
    return bool(places)


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
