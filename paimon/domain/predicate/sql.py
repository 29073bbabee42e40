"""Predicates from SQL text.

Law: what is accepted means what it means in SQL; whatever else SQL has (functions, subqueries, arithmetic, a column
beside another column) is refused with a hint, and no text ends in a bare error. This module loads the SQL parser:
import it only where there is text to parse.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

import sqlglot
from attrs import evolve
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Not, Operator, Or, Predicate

T = TypeVar("T")
HINT = "a predicate compares columns with values: =, <>, <, <=, >, >=, IN, BETWEEN, LIKE, IS NULL, AND, OR, NOT"
LONGEST_TEXT = 1_000_000

_OPERATORS: Mapping[type[exp.Expression], Operator] = {
    exp.EQ: Operator.EQ,
    exp.NEQ: Operator.NE,
    exp.LT: Operator.LT,
    exp.LTE: Operator.LE,
    exp.GT: Operator.GT,
    exp.GTE: Operator.GE,
}
_FLIPPED: Mapping[Operator, Operator] = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
_KNOWN_PARTS = frozenset(("this", "expression", "expressions", "low", "high", "negate", "table", "db", "catalog"))
"""Parts of nodes that are looked at; what else the parser may find there would be lost silently."""


class PredicateDialect(sqlglot.Dialect):  # type: ignore[misc]
    """Standard SQL with both kinds of identifier quotes, and without backslash escapes."""

    class Tokenizer(sqlglot.Tokenizer):  # type: ignore[misc]
        """Quotes of identifiers, texts and binaries."""

        IDENTIFIERS = ['"', "`"]  # noqa: RUF012
        STRING_ESCAPES = ["'"]  # noqa: RUF012
        HEX_STRINGS = [("x'", "'"), ("X'", "'")]  # noqa: RUF012


def parse_predicate(text: str) -> Predicate:
    """The unbound predicate that the text says.

    Raises
    ------
    InvalidRequest
        Where the text is not SQL, or no predicate over columns and values.
    """
    return understood(text, "predicate", HINT, _predicate)


def understood(text: str, what: str, hint: str, read: Callable[[exp.Expression], T]) -> T:
    """What `read` makes of the tree of a text; InvalidRequest, never a bare error, where there is none.

    Parameters
    ----------
    what, hint : str
        What the text is to be, and what such a thing consists of.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidRequest(f"{text!r} is no {what}", hint=hint)
    if len(text) > LONGEST_TEXT:
        raise InvalidRequest(f"the {what} has {len(text)} characters", hint=f"at most {LONGEST_TEXT} are read")
    try:
        trees = sqlglot.parse(text, dialect=PredicateDialect)
        if len(trees) != 1 or trees[0] is None:
            raise InvalidRequest(f"{text!r} is not one {what}", subject=text, hint=hint)
        return read(trees[0])
    except PaimonError:
        raise
    except (SqlglotError, ValueError, ArithmeticError) as error:
        raise InvalidRequest(f"{text!r} is not SQL that can be read{_place(error)}", subject=text, hint=hint) from error
    except RecursionError as error:
        raise InvalidRequest(f"the {what} is nested too deep", subject=text[:200], hint="use IN for lists") from error


def _place(error: Exception) -> str:
    """Where the text went wrong; the parser's own words name its classes."""
    if not isinstance(error, SqlglotError):
        return f": {error}"
    where = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    return f": line {where['line']}, column {where['col']}" if where.get("line") and where.get("col") else ""


def _refused(node: exp.Expression, why: str = HINT) -> InvalidRequest:
    text = node.sql(dialect=PredicateDialect)
    return InvalidRequest(f"{text!r} cannot be used in a predicate", subject=text, hint=why)


def _predicate(node: exp.Expression) -> Predicate:
    convert = _NODES.get(type(node))
    if convert is None or any(value for name, value in node.args.items() if name not in _KNOWN_PARTS):
        raise _refused(node)
    return _negated(convert(node)) if node.args.get("negate") else convert(node)


def _flat(node: exp.Expression) -> tuple[Predicate, ...]:
    """The operands of a chain of ANDs or ORs; chains are long, so this does not recurse along them."""
    kind, parts, rest = type(node), [], [node]
    while rest:
        current = rest.pop()
        if type(current) is kind:
            rest += [current.expression, current.this]
        else:
            parts.append(_predicate(current))
    return tuple(parts)


def _comparison(node: exp.Expression) -> Predicate:
    op = _OPERATORS[type(node)]
    left, right = _bare(node.this), _bare(node.expression)
    left_column, right_column = _is_column(left), _is_column(right)
    if left_column and right_column:
        raise _refused(node, "a column compares with a value; filter rows by two columns after reading them")
    if left_column:
        return Compare(_path(left), op, literal_value(right))
    if right_column:
        return Compare(_path(right), _FLIPPED[op], literal_value(left))
    return _constant(node, op, literal_value(left), literal_value(right))


def _constant(node: exp.Expression, op: Operator, left: Any, right: Any) -> Predicate:
    """Two values compared, such as the ``1 = 1`` that programs write."""
    if left is None or right is None:
        return Literal(None)
    numbers = all(isinstance(v, int | Decimal) and not isinstance(v, bool) for v in (left, right))
    if not numbers and type(left) is not type(right):
        raise _refused(node, "two values of different types")
    answers = {
        Operator.EQ: left == right,
        Operator.NE: left != right,
        Operator.LT: left < right,
        Operator.LE: left <= right,
        Operator.GT: left > right,
        Operator.GE: left >= right,
    }
    return Literal(answers[op])


def _in(node: exp.Expression) -> Predicate:
    if not node.expressions:
        raise _refused(node, "IN takes a list of values, such as a IN (1, 2)")
    return In(column_path(node.this), tuple(literal_value(e) for e in node.expressions))


def _between(node: exp.Expression) -> Predicate:
    column, low, high = column_path(node.this), literal_value(node.args["low"]), literal_value(node.args["high"])
    return And((Compare(column, Operator.GE, low), Compare(column, Operator.LE, high)))


def _like(node: exp.Expression, escape: str | None = None) -> Predicate:
    pattern = literal_value(node.expression)
    if not isinstance(pattern, str):
        raise _refused(node, "LIKE takes a text, such as a LIKE 'x%'")
    return Like(column_path(node.this), pattern, escape)


def _escape(node: exp.Expression) -> Predicate:
    escape = literal_value(node.expression)
    if not isinstance(node.this, exp.Like) or not isinstance(escape, str):
        raise _refused(node)
    like = _like(node.this, escape)
    return _negated(like) if node.this.args.get("negate") else like


def _is(node: exp.Expression) -> Predicate:
    if not isinstance(node.expression, exp.Null):
        raise _refused(node, "IS takes NULL or NOT NULL")
    return IsNull(column_path(node.this))


def _negated(child: Predicate) -> Predicate:
    if isinstance(child, In | Like | IsNull) and not child.negated:
        return evolve(child, negated=True)
    return Not(child)


def _bare(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_column(node: exp.Expression) -> bool:
    return isinstance(node, exp.Column | exp.Dot | exp.Identifier)


def column_path(node: exp.Expression) -> str:
    bare = _bare(node)
    if not _is_column(bare):
        raise _refused(node, "a column is expected here")
    return _path(bare)


def _path(node: exp.Expression) -> str:
    match node:
        case exp.Identifier():
            return str(node.this)
        case exp.Column():
            return ".".join(_path(part) for part in node.parts)
        case exp.Dot():
            return f"{_path(_bare(node.this))}.{_path(node.expression)}"
    raise _refused(node, "a column is expected here")


def literal_value(node: exp.Expression) -> Any:
    match _bare(node):
        case exp.Literal() as literal:
            return str(literal.this) if literal.is_string else _number(str(literal.this))
        case exp.Neg(this=inner):
            number = literal_value(inner)
            if isinstance(number, int) and not isinstance(number, bool):
                return -number
            if isinstance(number, Decimal):
                return number.copy_negate()  # unary minus would lose the sign of -0.0
        case exp.Boolean(this=flag):
            return bool(flag)
        case exp.Null():
            return None
        case exp.HexString(this=digits):
            return bytes.fromhex(str(digits))
        case exp.Cast(this=exp.Literal(is_string=True, this=text), to=to):
            return _typed(node, str(text), to)
    raise _refused(node, "a value is expected here: a number, 'text', TRUE, NULL, DATE '…', TIMESTAMP '…' or X'…'")


def _number(text: str) -> int | Decimal:
    return int(text) if text.isdecimal() else Decimal(text)


def _typed(node: exp.Expression, text: str, to: exp.Expression) -> Any:
    kinds = exp.DataType.Type
    if to.this in (kinds.DATE,):
        return datetime.date.fromisoformat(text.strip())
    if to.this in (kinds.TIMESTAMP, kinds.TIMESTAMPTZ, kinds.TIMESTAMPLTZ, kinds.DATETIME, kinds.TIME):
        return text  # read by the column, which may hold nanoseconds
    raise _refused(node, "values are written as DATE '…', TIME '…', TIMESTAMP '…' or plainly")


_NODES: Mapping[type[exp.Expression], Callable[[exp.Expression], Predicate]] = {
    **dict.fromkeys(_OPERATORS, _comparison),
    exp.And: lambda node: And(_flat(node)),
    exp.Or: lambda node: Or(_flat(node)),
    exp.Not: lambda node: _negated(_predicate(node.this)),
    exp.Paren: lambda node: _predicate(node.this),
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.Escape: _escape,
    exp.Is: _is,
    exp.Boolean: lambda node: Literal(bool(node.this)),
    exp.Null: lambda node: Literal(None),
    exp.Column: lambda node: Compare(_path(node), Operator.EQ, True),
    exp.Dot: lambda node: Compare(_path(node), Operator.EQ, True),
}
