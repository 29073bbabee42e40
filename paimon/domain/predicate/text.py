"""Predicates as SQL text.

Law: parsing the text of an unbound predicate gives an equal meaning back; of a bound one the text shows internal
values.
"""

from __future__ import annotations

import datetime
import re
from typing import Any

from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Not, Or, Predicate
from paimon.domain.predicate.transform import unknown_kind

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z", re.ASCII)
_WORDS = frozenset(
    (
        *("all", "and", "any", "as", "between", "by", "case", "cast", "date", "distinct", "else", "end", "escape"),
        *("exists", "false", "from", "group", "having", "in", "interval", "is", "like", "limit", "not", "null", "on"),
        *("or", "order", "select", "some", "table", "then", "time", "timestamp", "true", "union", "unique", "when"),
        *("where", "with"),
    )
)


def describe(predicate: Predicate) -> str:
    """SQL text of a predicate."""
    match predicate:
        case Literal(value=value):
            return "NULL" if value is None else str(value).upper()
        case Compare(column=column, op=op, literal=literal):
            return f"{_name(column)} {op.value} {_value(literal)}"
        case In(column=column, literals=literals, negated=negated):
            return f"{_name(column)} {'NOT ' if negated else ''}IN ({', '.join(map(_value, literals))})"
        case Like(column=column, pattern=pattern, escape=escape, negated=negated):
            tail = "" if escape is None else f" ESCAPE {_value(escape)}"
            return f"{_name(column)} {'NOT ' if negated else ''}LIKE {_value(pattern)}{tail}"
        case IsNull(column=column, negated=negated):
            return f"{_name(column)} IS {'NOT ' if negated else ''}NULL"
        case And(children=children):
            return " AND ".join(map(_nested, children)) or "TRUE"
        case Or(children=children):
            return " OR ".join(map(_nested, children)) or "FALSE"
        case Not(child=child):
            return f"NOT {_nested(child)}"
    raise unknown_kind(predicate)


def _nested(predicate: Predicate) -> str:
    text = describe(predicate)
    return f"({text})" if isinstance(predicate, And | Or | Not) else text


def _name(column: str) -> str:
    if _PLAIN_NAME.match(column) and not any(part.lower() in _WORDS for part in column.split(".")):
        return column
    return "`" + column.replace("`", "``") + "`"


def _value(literal: Any) -> str:
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
            return "'" + literal.replace("'", "''") + "'"
    return str(literal)
