"""Format predicates as SQL text, and parse comparisons (``id = 7 AND day >= '2026-01-01'``) without the SQL parser.

The import of the parser takes 0.1 seconds.

Invariant: Parsing the text of an unbound predicate returns a predicate with the same meaning. The text of a bound
predicate shows internal values. The parsed predicate is the one that `scalar_sql.parse_condition` returns. All other
texts are left to it.
"""

from __future__ import annotations

import datetime
import re
from typing import Any

from paimon.domain.predicate.expression import (
    And,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Operator,
    Or,
    Predicate,
    SqlCondition,
)
from paimon.domain.predicate.field_paths import split_key
from paimon.domain.predicate.transform import join_conjuncts, unknown_predicate_error
from paimon.domain.types.type_text import quote_text

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z", re.ASCII)
_RESERVED_WORDS = frozenset(
    (
        *("all", "and", "any", "as", "between", "by", "case", "cast", "date", "distinct", "else", "end", "escape"),
        *("exists", "false", "from", "group", "having", "in", "interval", "is", "like", "limit", "not", "null", "on"),
        *("or", "order", "select", "some", "table", "then", "time", "timestamp", "true", "union", "unique", "when"),
        *("where", "with"),
    )
)


def format_predicate(predicate: Predicate) -> str:
    """Return the SQL text of a predicate."""
    match predicate:
        case Literal(value=value):
            return "NULL" if value is None else str(value).upper()
        case Compare(column=column, op=op, literal=literal):
            return f"{_format_name(column)} {op.value} {_format_value(literal)}"
        case In(column=column, literals=literals, negated=negated):
            return f"{_format_name(column)} {'NOT ' if negated else ''}IN ({', '.join(map(_format_value, literals))})"
        case Like(column=column, pattern=pattern, escape=escape, negated=negated):
            tail = "" if escape is None else f" ESCAPE {_format_value(escape)}"
            return f"{_format_name(column)} {'NOT ' if negated else ''}LIKE {_format_value(pattern)}{tail}"
        case IsNull(column=column, negated=negated):
            return f"{_format_name(column)} IS {'NOT ' if negated else ''}NULL"
        case SqlCondition(expression=expression, negated=negated):
            return f"{'NOT ' if negated else ''}({expression.text})"
        case And(children=children):
            return " AND ".join(map(_parenthesize, children)) or "TRUE"
        case Or(children=children):
            return " OR ".join(map(_parenthesize, children)) or "FALSE"
        case Not(child=child):
            return f"NOT {_parenthesize(child)}"
    raise unknown_predicate_error(predicate)


def _parenthesize(predicate: Predicate) -> str:
    text = format_predicate(predicate)
    return f"({text})" if isinstance(predicate, And | Or | Not) else text


def _format_name(column: str) -> str:
    keyed = split_key(column)
    if keyed is not None:
        return f"{_format_name(keyed[0])}[{quote_text(keyed[1])}]"
    if _PLAIN_NAME.match(column) and not any(part.lower() in _RESERVED_WORDS for part in column.split(".")):
        return column
    return "`" + column.replace("`", "``") + "`"


def _format_value(literal: Any) -> str:
    match literal:
        case None:
            return "NULL"
        case bool():
            return str(literal).upper()
        case bytes():
            return f"X'{literal.hex().upper()}'"
        case datetime.datetime():
            return f"TIMESTAMP '{literal.isoformat(' ')}'"
        case datetime.date():
            return f"DATE '{literal.isoformat()}'"
        case float() if literal != literal or literal in (float("inf"), float("-inf")):
            return {"nan": "'NaN'", "inf": "'Infinity'", "-inf": "'-Infinity'"}[str(literal)]
        case str():
            return quote_text(literal)
    return str(literal)


_COMPARISON = re.compile(
    r"([a-z_][a-z0-9_]*)\s*(=|<>|!=|<=|>=|<|>)\s*(?:(-?[0-9]{1,18})|'([^']*)')", re.ASCII | re.IGNORECASE
)
_AND = re.compile(r"\s+and\s+", re.ASCII | re.IGNORECASE)
_LONGEST = 10_000
_OPERATORS = {
    "=": Operator.EQ,
    "<>": Operator.NE,
    "!=": Operator.NE,
    "<": Operator.LT,
    "<=": Operator.LE,
    ">": Operator.GT,
    ">=": Operator.GE,
}
_NOT_COLUMNS = frozenset({
    "alter", "and", "any", "array", "as", "between", "call", "case", "connect_by_root", "create", "cross",
    "current_catalog", "current_date", "current_time", "current_timestamp", "current_user", "distinct", "drop",
    "else", "except", "execute", "explain", "false", "fetch", "for", "force", "from", "glob", "grant", "having",
    "if", "ilike", "inner", "insert", "install", "intersect", "into", "join", "lateral", "like", "list", "localtime",
    "localtimestamp", "map", "not", "notnull", "null", "nullable", "object", "on", "only", "optimize", "or", "outer",
    "partitioned_by", "positional", "prepare", "qualify", "range", "regexp", "rename", "reset", "returning",
    "revoke", "rlike", "rollback", "row", "select", "session_user", "struct", "summarize", "tablesample", "then",
    "true", "uncache", "union", "using", "vacuum", "when", "where", "with", "xor",
})  # fmt: skip
"""Words that the SQL parser does not read as a column where a comparison begins."""


def parse_comparisons(text: object) -> Predicate | None:
    """Return the condition of a text that is one comparison of a column with a value, or several with AND; or None."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        return None
    text = text.strip(" \t\n")
    parts, at = [], 0
    while (found := _COMPARISON.match(text, at)) is not None and found[1].lower() not in _NOT_COLUMNS:
        parts.append(Compare(found[1], _OPERATORS[found[2]], int(found[3]) if found[4] is None else found[4]))
        if found.end() == len(text):
            return join_conjuncts(parts)
        following = _AND.match(text, found.end())
        if following is None:
            break
        at = following.end()
    return None
