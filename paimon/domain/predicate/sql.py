"""Parse predicates from SQL text.

Importing this module loads the SQL parser. Import it only where there is text to parse.

Invariant: Accepted text has the meaning that it has in SQL. Everything else in SQL (functions, subqueries, arithmetic,
comparisons of two columns) is refused with a hint. Any text leads to a predicate or to `InvalidRequest`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from math import isfinite
from typing import Any, TypeVar

from attrs import evolve
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokens import Token, TokenType

from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Not, Operator, Or, Predicate
from paimon.domain.predicate.field_paths import name_key
from paimon.domain.row.literals import parse_literal
from paimon.domain.text_checks import show_value
from paimon.domain.types.data_types import DateType

T = TypeVar("T")


class InvalidLiteral(InvalidRequest):
    """Raised for a literal with a type whose text is no value of it, such as DATE 'x': the whole text is invalid."""


HINT = "a predicate compares columns with values: =, <>, <, <=, >, >=, IN, BETWEEN, LIKE, IS NULL, AND, OR, NOT"
LONGEST_TEXT = 1_000_000
_MOST_TOKENS = 200_000

_MOST_DIGITS = 4_000
"""Python reads integers of up to 4,300 digits; longer ones are compared as decimals."""
_LONE_COMMA = re.compile(r"[,(\[{]\s*,")
_OPENING = (TokenType.COMMA, TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)

OPERATORS: Mapping[type[exp.Expression], Operator] = {
    exp.EQ: Operator.EQ,
    exp.NEQ: Operator.NE,
    exp.LT: Operator.LT,
    exp.LTE: Operator.LE,
    exp.GT: Operator.GT,
    exp.GTE: Operator.GE,
}
"""The operators of comparisons, by the class of the syntax node."""
FLIPPED: Mapping[Operator, Operator] = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
"""The operator after both sides of a comparison changed places."""
_KNOWN_PARTS = frozenset(("this", "expression", "expressions", "low", "high", "negate", "table", "db", "catalog"))
"""The converted attributes of syntax nodes. A node with any other attribute is refused, so that nothing is ignored."""


class PredicateDialect(DuckDB):  # type: ignore[misc]
    """DuckDB's SQL, as in queries, with both kinds of identifier quotes and binary literals."""

    class Tokenizer(DuckDB.Tokenizer):  # type: ignore[misc]
        """Quotes of identifiers, texts and binary literals."""

        IDENTIFIERS = ['"', "`"]  # noqa: RUF012
        STRING_ESCAPES = ["'"]  # noqa: RUF012
        HEX_STRINGS = [("x'", "'"), ("X'", "'")]  # noqa: RUF012
        KEYWORDS = {**DuckDB.Tokenizer.KEYWORDS, "BYTES": TokenType.VARBINARY}  # noqa: RUF012


def parse_predicate(text: str) -> Predicate:
    """Return the unbound predicate of a SQL text."""
    return parse_sql(text, "predicate", HINT, convert_predicate)


def parse_sql(text: str, what: str, hint: str, read: Callable[[exp.Expression], T]) -> T:
    """Parse a SQL text and convert its syntax tree with `read`.

    `what` and `hint` are for error messages: what the text must be, and what it consists of. Raises `InvalidRequest` if
    the text is empty, too long, nested too deep, not one statement or not valid, and whatever `read` raises.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidRequest(f"{show_value(text)} is not a valid {what}", hint=hint)
    if len(text) > LONGEST_TEXT:
        raise InvalidRequest(
            f"{what.capitalize()} text has {len(text)} characters", hint=f"the limit is {LONGEST_TEXT}"
        )
    try:
        dialect = PredicateDialect()
        tokens = dialect.tokenize(text)
        if len(tokens) > _MOST_TOKENS:
            message = f"{what.capitalize()} text has {len(tokens):,} words and symbols"
            raise InvalidRequest(message, hint=f"the limit is {_MOST_TOKENS:,}; use IN for lists")
        _check_commas(text, tokens)
        try:
            trees = dialect.parser().parse_into(exp.Condition, tokens, text)
        except ParseError:  # as a statement, such as a query, it is refused by its name
            trees = dialect.parser().parse(tokens, text)
        if len(trees) != 1 or trees[0] is None:
            raise InvalidRequest(f"{text!r} is not a single {what}", subject=text, hint=hint)
        return read(trees[0])
    except PaimonError:
        raise
    except (SqlglotError, ValueError, ArithmeticError) as error:
        raise InvalidRequest(f"{text!r} is not valid SQL{_format_position(error)}", subject=text, hint=hint) from error
    except RecursionError as error:
        raise InvalidRequest(
            f"{what.capitalize()} text is nested too deep", subject=text[:200], hint="use IN for lists"
        ) from error


def _check_commas(text: str, tokens: Sequence[Token]) -> None:
    """Raise `ParseError` for a comma without an expression before it, which the parser would leave out."""
    if _LONE_COMMA.search(text):
        for before, token in pairwise(tokens):
            if token.token_type == TokenType.COMMA and before.token_type in _OPENING:
                raise ParseError("comma", [{"line": token.line, "col": token.col}])


def _format_position(error: Exception) -> str:
    """Return the position of a syntax error. The message of the parser is left out, because it names parser classes."""
    if not isinstance(error, SqlglotError):
        return f": {error}"
    where = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    return f": line {where['line']}, column {where['col']}" if where.get("line") and where.get("col") else ""


def _not_a_predicate_error(node: exp.Expression, why: str = HINT) -> InvalidRequest:
    text = node.sql(dialect=PredicateDialect)
    return InvalidRequest(f"{text!r} cannot be used in a predicate", subject=text, hint=why)


def convert_predicate(node: exp.Expression) -> Predicate:
    """Return the unbound predicate of a syntax tree that contains only comparisons of columns with values."""
    convert = _NODES.get(type(node))
    if convert is None or any(value for name, value in node.args.items() if name not in _KNOWN_PARTS):
        raise _not_a_predicate_error(node)
    return _negate_predicate(convert(node)) if node.args.get("negate") else convert(node)


def _flatten_chain(node: exp.Expression) -> tuple[Predicate, ...]:
    """Return the operands of a chain of AND or OR. Chains can be long, so this does not recurse along them."""
    kind, parts, rest = type(node), [], [node]
    while rest:
        current = rest.pop()
        if type(current) is kind:
            rest += [current.expression, current.this]
        else:
            parts.append(convert_predicate(current))
    return tuple(parts)


def _convert_comparison(node: exp.Expression) -> Predicate:
    op = OPERATORS[type(node)]
    left, right = _strip_parentheses(node.this), _strip_parentheses(node.expression)
    left_column, right_column = _is_place(left), _is_place(right)
    if left_column and right_column:
        raise _not_a_predicate_error(
            node, "compare a column with a value; filter rows by two columns after reading them"
        )
    if left_column:
        return Compare(_place_path(left), op, literal_value(right))
    if right_column:
        return Compare(_place_path(right), FLIPPED[op], literal_value(left))
    return _compare_constants(node, op, literal_value(left), literal_value(right))


def _compare_constants(node: exp.Expression, op: Operator, left: Any, right: Any) -> Predicate:
    """Evaluate a comparison of two values, such as the ``1 = 1`` in generated SQL."""
    if left is None or right is None:
        return Literal(None)
    numbers = all(isinstance(v, int | Decimal | float) and not isinstance(v, bool) for v in (left, right))
    if not numbers and type(left) is not type(right):
        raise _not_a_predicate_error(node, "compare values of the same type")
    truths = {
        Operator.EQ: left == right,
        Operator.NE: left != right,
        Operator.LT: left < right,
        Operator.LE: left <= right,
        Operator.GT: left > right,
        Operator.GE: left >= right,
    }
    return Literal(truths[op])


def _convert_in(node: exp.Expression) -> Predicate:
    if not node.expressions:
        raise _not_a_predicate_error(node, "IN needs a list of values, for example a IN (1, 2)")
    return In(_place_path(node.this), tuple(literal_value(e) for e in node.expressions))


def _convert_between(node: exp.Expression) -> Predicate:
    column, low, high = _place_path(node.this), literal_value(node.args["low"]), literal_value(node.args["high"])
    return And((Compare(column, Operator.GE, low), Compare(column, Operator.LE, high)))


def _convert_like(node: exp.Expression, escape: str | None = None) -> Predicate:
    pattern = literal_value(node.expression)
    if not isinstance(pattern, str):
        raise _not_a_predicate_error(node, "LIKE needs a text, for example a LIKE 'x%'")
    return Like(_place_path(node.this), pattern, escape)


def _convert_escape(node: exp.Expression) -> Predicate:
    escape = literal_value(node.expression)
    if not isinstance(node.this, exp.Like) or not isinstance(escape, str):
        raise _not_a_predicate_error(node)
    like = _convert_like(node.this, escape)
    return _negate_predicate(like) if node.this.args.get("negate") else like


def _convert_is(node: exp.Expression) -> Predicate:
    if not isinstance(node.expression, exp.Null):
        raise _not_a_predicate_error(node, "write IS NULL or IS NOT NULL")
    return IsNull(_place_path(node.this))


def _negate_predicate(child: Predicate) -> Predicate:
    if isinstance(child, In | Like | IsNull) and not child.negated:
        return evolve(child, negated=True)
    return Not(child)


def _strip_parentheses(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_column(node: exp.Expression) -> bool:
    return isinstance(node, exp.Column | exp.Dot | exp.Identifier)


def _is_place(node: exp.Expression) -> bool:
    return _is_column(node) or split_bracket(node) is not None


def split_bracket(node: exp.Expression) -> tuple[exp.Expression, str] | None:
    """Return the column and the text of ``column['key']``; None for any other node."""
    if not isinstance(node, exp.Bracket) or len(node.expressions) != 1 or not _is_column(node.this):
        return None
    key = node.expressions[0]
    has_more = any(value for name, value in node.args.items() if name not in ("this", "expressions"))
    return None if has_more or not isinstance(key, exp.Literal) or not key.is_string else (node.this, str(key.this))


def _place_path(node: exp.Expression) -> str:
    """Return the path of a column, of a nested field, or of a key of a map in either: ``column[key]``."""
    found = split_bracket(_strip_parentheses(node))
    return column_path(node) if found is None else name_key(column_path(found[0]), found[1])


def column_path(node: exp.Expression) -> str:
    """Return the name of the column, or the path of the nested field, that a syntax node names."""
    inner_node = _strip_parentheses(node)
    if not _is_column(inner_node):
        raise _not_a_predicate_error(node, "use a column name here")
    return _to_path(inner_node)


def _to_path(node: exp.Expression) -> str:
    match node:
        case exp.Identifier():
            return str(node.this)
        case exp.Column():
            return ".".join(_to_path(part) for part in node.parts)
        case exp.Dot():
            return f"{_to_path(_strip_parentheses(node.this))}.{_to_path(node.expression)}"
    raise _not_a_predicate_error(node, "use a column name here")


def literal_value(node: exp.Expression) -> Any:
    """Return the Python value of a literal; times and timestamps stay text, for nanosecond columns."""
    match _strip_parentheses(node):
        case exp.Literal() as literal:
            return str(literal.this) if literal.is_string else parse_number(str(literal.this))
        case exp.Neg(this=inner):
            number = literal_value(inner)
            if isinstance(number, int | float) and not isinstance(number, bool):
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
            return _convert_typed_literal(node, str(text), to)
    raise _not_a_predicate_error(
        node, "use a literal value: a number, 'text', TRUE, NULL, DATE '…', TIMESTAMP '…' or X'…'"
    )


def parse_number(text: str) -> int | Decimal | float:
    """Return the value of a number in SQL: a whole number, a DECIMAL, or with an exponent a DOUBLE such as ``1e3``.

    The text has no sign. A number whose exponent is too large for a DOUBLE stays exact, so that it can be compared.

    >>> parse_number("12"), parse_number("1.50"), parse_number("1e3")
    (12, Decimal('1.50'), 1000.0)
    """
    if text.isdecimal() and len(text) <= _MOST_DIGITS:
        return int(text)
    exact = Decimal(text)
    if "e" not in text.lower():
        return exact
    double = float(exact)
    return double if isfinite(double) else exact


def _convert_typed_literal(node: exp.Expression, text: str, to: exp.Expression) -> Any:
    kinds = exp.DataType.Type
    if to.this in (kinds.DATE,):
        return _read_date(text)
    if to.this in (kinds.TIMESTAMPNTZ, kinds.TIMESTAMPTZ, kinds.TIMESTAMPLTZ, kinds.TIMESTAMP_NS, kinds.TIME):
        return text  # converted by `bind`: the column can have nanoseconds
    raise _not_a_predicate_error(node, "write the value as DATE '…', TIME '…', TIMESTAMP '…', or without a type")


def _read_date(text: str) -> datetime.date | str:
    """Return a day, or its text if Python's dates end before it."""
    try:
        return datetime.date.fromisoformat(text.strip())
    except ValueError:
        pass
    try:
        parse_literal(text, DateType())
        if "-" not in text.strip()[1:]:
            raise ValueError(text)  # a number of days
        return text
    except (InvalidRequest, ValueError) as error:
        hint = "give a day of the calendar, such as DATE '2026-01-31'"
        raise InvalidLiteral(f"{text!r} is not a valid DATE", subject=text, hint=hint) from error


_NODES: Mapping[type[exp.Expression], Callable[[exp.Expression], Predicate]] = {
    **dict.fromkeys(OPERATORS, _convert_comparison),
    exp.And: lambda node: And(_flatten_chain(node)),
    exp.Or: lambda node: Or(_flatten_chain(node)),
    exp.Not: lambda node: _negate_predicate(convert_predicate(node.this)),
    exp.Paren: lambda node: convert_predicate(node.this),
    exp.In: _convert_in,
    exp.Between: _convert_between,
    exp.Like: _convert_like,
    exp.Escape: _convert_escape,
    exp.Is: _convert_is,
    exp.Boolean: lambda node: Literal(bool(node.this)),
    exp.Null: lambda node: Literal(None),
    exp.Column: lambda node: Compare(_to_path(node), Operator.EQ, True),
    exp.Dot: lambda node: Compare(_to_path(node), Operator.EQ, True),
}
