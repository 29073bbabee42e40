"""Format predicates as SQL text.

Invariant: Parsing the text of an unbound predicate returns a predicate with the same meaning. The text of a bound
predicate shows internal values.
"""

from __future__ import annotations

import datetime
import re
from typing import Any

from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Not, Or, Predicate, SqlCondition
from paimon.domain.predicate.field_paths import split_key
from paimon.domain.predicate.transform import unknown_predicate_error
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
