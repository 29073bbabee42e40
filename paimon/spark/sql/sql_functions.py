"""Write functions of DuckDB's dialect for Spark where sqlglot's translation fails, or has another result.

Invariant: a function has DuckDB's result, or the query is refused. Documented differences are on the reference page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from paimon.domain.errors import Unsupported

TYPE = exp.DataType.Type
_TO_MICROS = exp.Literal.number(1_000_000)
_RENAMED = {"row": "struct", "round_even": "bround"}
_PARTS = {"dow": "dow", "weekday": "dow", "dayofweek": "dow", "isodow": "isodow", "second": "second", "epoch": "epoch"}


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _number(value: int) -> exp.Expression:
    return exp.Literal.number(value)


def _to_local(node: exp.Expression) -> exp.Expression:
    """Return a time without a zone; functions of Spark that make times add one."""
    return exp.cast(node.copy(), TYPE.TIMESTAMPNTZ)


def _day_of_week(day: exp.Expression) -> exp.Expression:
    return exp.Paren(this=exp.Sub(this=_call("dayofweek", day), expression=_number(1)))


def _iso_day_of_week(day: exp.Expression) -> exp.Expression:
    return exp.Paren(this=exp.Add(this=_call("weekday", day), expression=_number(1)))


def _to_seconds(time: exp.Expression) -> exp.Expression:
    micros = _call("unix_micros", exp.cast(time, TYPE.TIMESTAMPTZ))
    return exp.Paren(this=exp.Div(this=micros, expression=_TO_MICROS.copy()))


_PART_FUNCTIONS: Mapping[str, Callable[[exp.Expression], exp.Expression]] = {
    "dow": _day_of_week,
    "isodow": _iso_day_of_week,
    "second": lambda time: _call("second", time),
    "epoch": _to_seconds,
}
"""Parts of times that Spark counts from another day, or gives with a fraction."""


def _adapt_division(node: exp.Div) -> exp.Expression:
    """Divide as DOUBLE; Spark divides decimals as decimals."""
    node.set("this", exp.cast(node.this, TYPE.DOUBLE))
    return node


def _adapt_average(node: exp.Avg) -> exp.Expression:
    values = node.this
    inner = values.expressions[0] if isinstance(values, exp.Distinct) else values
    inner.replace(exp.cast(inner.copy(), TYPE.DOUBLE))
    return node


def _adapt_extract(node: exp.Extract) -> exp.Expression:
    part = _PARTS.get(node.name.lower())
    return node if part is None else _PART_FUNCTIONS[part](node.expression)


def _adapt_call(node: exp.Anonymous) -> exp.Expression:
    name, arguments = node.name.lower(), node.expressions
    if name in ("date_part", "datepart") and len(arguments) == 2 and isinstance(arguments[0], exp.Literal):
        part = _PARTS.get(arguments[0].name.lower())
        return node if part is None else _PART_FUNCTIONS[part](arguments[1])
    if name == "weekday":
        return _day_of_week(*arguments)
    if name == "list_position":
        return exp.Nullif(this=_call("array_position", *arguments), expression=_number(0))
    return _call(_RENAMED[name], *arguments) if name in _RENAMED else node


def _adapt_difference(node: exp.DateDiff) -> exp.Expression:
    """Count the borders between two times, as DuckDB does; Spark counts whole units."""
    unit = node.args.get("unit")
    if unit is None or unit.name.upper() == "DAY":
        return node
    name = exp.Literal.string(unit.name)
    start, end = (_call("date_trunc", name.copy(), time) for time in (node.expression, node.this))
    return _call("timestampdiff", exp.var(unit.name), start, end)


def _adapt_position(node: exp.ArrayPosition) -> exp.Expression:
    return exp.Nullif(this=_call("array_position", node.this, node.expression), expression=_number(0))


def _adapt_logarithm(node: exp.Log) -> exp.Expression:
    return node if node.expression else _call("log10", node.this)


def _adapt_format(node: exp.TimeToStr) -> exp.Expression:
    pattern = node.args.get("format")
    if not isinstance(pattern, exp.Literal) or "%j" in pattern.name:
        raise Unsupported("this format of strftime on Spark", hint="give a text without %j")
    return node


def _adapt_replacement(node: exp.RegexpReplace) -> exp.Expression:
    """Leave out the option ``g``: Spark replaces all matches, and cannot replace the first one only."""
    options = node.args.get("modifiers")
    if not isinstance(options, exp.Literal) or options.name != "g":
        raise Unsupported("regexp_replace of the first match on Spark", hint="write regexp_replace(…, …, …, 'g')")
    return _call("regexp_replace", node.this, node.expression, node.args["replacement"])


def _refuse_format(node: exp.Format) -> exp.Expression:
    raise Unsupported("function format on Spark", hint="write printf or ||")


def _adapt_map(node: exp.ToMap) -> exp.Expression:
    """Write ``MAP {key: value}`` as a call."""
    if not isinstance(node.this, exp.Struct):
        return node
    parts = [part for pair in node.this.expressions for part in (_to_key(pair.this), pair.expression)]
    return _call("map", *parts)


def _to_key(key: exp.Expression) -> exp.Expression:
    return exp.column(key) if isinstance(key, exp.Identifier) else key


_BY_NAME: Mapping[str, Callable[[Any], exp.Expression]] = {
    "Anonymous": _adapt_call,
    "ArrayPosition": _adapt_position,
    "Avg": _adapt_average,
    "DateDiff": _adapt_difference,
    "DateTrunc": _to_local,
    "Div": _adapt_division,
    "DayOfWeek": lambda node: _day_of_week(node.this),
    "DayOfWeekIso": lambda node: _iso_day_of_week(node.this),
    "Dayname": lambda node: _call("date_format", node.this, exp.Literal.string("EEEE")),
    "Extract": _adapt_extract,
    "Format": _refuse_format,
    "Log": _adapt_logarithm,
    "Monthname": lambda node: _call("date_format", node.this, exp.Literal.string("MMMM")),
    "RegexpReplace": _adapt_replacement,
    "StrToTime": _to_local,
    "TimeToStr": _adapt_format,
    "TimeToUnix": lambda node: _to_seconds(node.this),
    "TimestampFromParts": _to_local,
    "TimestampTrunc": _to_local,
    "ToMap": _adapt_map,
    "Week": lambda node: _call("weekofyear", node.this),
}
"""How functions are written for Spark, by the name of their node; earlier versions of sqlglot lack some of them."""
FUNCTIONS: Mapping[type[exp.Expression], Callable[[Any], exp.Expression]] = {
    getattr(exp, name): adapt for name, adapt in _BY_NAME.items() if hasattr(exp, name)
}
"""How functions are written for Spark, by their node."""
