"""Translate queries from DuckDB's dialect to Spark's, with the same meaning.

Invariant: a query reads only the views that it is given. What Spark has no equal form of is refused, by Spark or here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from paimon.domain.errors import InvalidRequest, Unsupported

TYPE = exp.DataType.Type
_TO_MICROS = exp.Literal.number(1_000_000)
_RENAMED = {"row": "struct", "round_even": "bround"}
_PARTS = {"dow": "dow", "weekday": "dow", "dayofweek": "dow", "isodow": "isodow", "second": "second", "epoch": "epoch"}
_READ = "duckdb"
_TIMESTAMPS = (TYPE.TIMESTAMP_S, TYPE.TIMESTAMP_MS, TYPE.TIMESTAMP_NS)
_ROUNDED_TIMES = {TYPE.TIMESTAMP_S: ("SECOND", "0.5"), TYPE.TIMESTAMP_MS: ("MILLISECOND", "0.0005")}
_INTEGERS = (TYPE.TINYINT, TYPE.SMALLINT, TYPE.INT, TYPE.BIGINT)
_WHOLE_NUMBERS = (exp.Count, exp.Length, exp.IntDiv, exp.Null, exp.Boolean)
"""Nodes whose values have no fraction."""
_ROUNDED, _TEXT = "paimon_rounded", "paimon_text"
_RANGE = "range"


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


def _adapt_element(node: exp.Bracket) -> exp.Expression:
    """Count elements from 1, and from the end if negative: null where there is none, also at 0. A map has keys."""
    index = node.expressions[0] if len(node.expressions) == 1 else None
    if index is None or isinstance(index, exp.Slice) or (isinstance(index, exp.Literal) and index.is_string):
        return node
    number = index.this if isinstance(index, exp.Neg) else index
    is_certain = isinstance(number, exp.Literal) and number.name.strip("0") != ""
    found = _call("try_element_at", node.this, index if is_certain else _replace_zero(node.this, index))
    is_column = isinstance(node.parent, exp.Select)
    return exp.alias_(found, node.meta[_TEXT], quoted=True) if is_column else found


def _replace_zero(container: exp.Expression, index: exp.Expression) -> exp.Expression:
    """Return null for position 0 of an array, where Spark's functions fail. It is a key of a map, of any type."""
    is_array = exp.Like(this=_call("typeof", container.copy()), expression=exp.Literal.string("array%"))
    is_zero = exp.EQ(this=exp.cast(index.copy(), TYPE.TEXT), expression=exp.Literal.string("0"))
    return exp.Case().when(exp.and_(is_array, is_zero), exp.null()).else_(index)


def _correct_elements(tree: exp.Expression) -> exp.Expression:
    """Return the tree with ``MAP {…}[key]`` as an element of a map, not as a map of an element, and keep its texts."""
    for made in list(tree.find_all(exp.ToMap)):
        outer = inner = made.this
        while isinstance(inner, exp.Bracket) and isinstance(inner.this, exp.Bracket):
            inner = inner.this
        if isinstance(inner, exp.Bracket):
            made.replace(outer)
            inner.set("this", exp.ToMap(this=inner.this))
    for element in tree.find_all(exp.Bracket):
        if isinstance(element.parent, exp.Select):
            element.meta[_TEXT] = element.sql(dialect=PaimonDuckDialect, normalize_functions=False)
    return tree


def _to_key(key: exp.Expression) -> exp.Expression:
    return exp.column(key) if isinstance(key, exp.Identifier) else key


_BY_NAME: Mapping[str, Callable[[Any], exp.Expression]] = {
    "Anonymous": _adapt_call,
    "ArrayPosition": _adapt_position,
    "Avg": _adapt_average,
    "Bracket": _adapt_element,
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


class PaimonDuckDialect(DuckDB):
    """DuckDB's dialect, whose parser leaves positions as they are: it would take 1 from each that may be one."""

    INDEX_OFFSET = 0


class PaimonSparkDialect(Spark):
    """Spark's dialect with its type TIME, which older versions of Spark lack."""

    class Generator(Spark.Generator):
        """Writes Spark's names of types."""

        TYPE_MAPPING = {  # noqa: RUF012  (an attribute of the parent class)
            **Spark.Generator.TYPE_MAPPING,
            TYPE.TIME: "TIME",
            **dict.fromkeys(_TIMESTAMPS, "TIMESTAMP_NTZ"),
        }


def translate_query(sql: str, views: Mapping[str, str]) -> str:
    """Translate a query from DuckDB's dialect to Spark's; `views` maps the names of its sources to Spark views.

    Raises `Unsupported` if a part of the query has no form in Spark.
    """
    tree = parse_for_spark(sql)
    common = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for node in list(tree.find_all(exp.Table)):
        _rename_table(node, views, common)
    return str(tree.sql(dialect=PaimonSparkDialect, comments=False, normalize_functions=False))


def parse_for_spark(sql: str) -> exp.Expression:
    """Parse a query of DuckDB's dialect, and write its parts as Spark has them."""
    try:
        tree = _correct_elements(sqlglot.parse_one(sql, dialect=PaimonDuckDialect))
    except SqlglotError as error:
        raise InvalidRequest(f"The query failed: {sql!r} cannot be parsed.", subject="query") from error
    for node in reversed(list(tree.dfs())):  # the parts of a node before the node
        adapt = _ADAPTERS.get(type(node))
        written = node if adapt is None else adapt(node)
        if written is node:
            continue
        if node is tree:
            tree = written
        else:
            node.replace(written)
    return tree


def is_constant(sql: str) -> bool:
    """Return whether a query of DuckDB's dialect reads nothing and makes one row for each that it writes out."""
    makers = (exp.Table, exp.Unnest, exp.Explode, exp.Lateral, exp.Anonymous, exp.CTE, exp.SetOperation)
    return sqlglot.parse_one(sql, dialect=_READ).find(*makers) is None


def _rename_table(node: exp.Table, views: Mapping[str, str], common: set[str]) -> None:
    name = node.name
    if isinstance(node.this, exp.Identifier) and not node.db and name in views:
        if not node.alias:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
        node.set("this", exp.to_identifier(views[name], quoted=True))
    elif not _is_made_here(node, common):
        shown = name or node.sql(dialect=_READ)
        raise InvalidRequest(
            f"{shown!r} does not exist, or is not a table that a query on Spark can read.", subject=shown
        )


def _is_made_here(node: exp.Table, common: set[str]) -> bool:
    """Return whether a node is a common table expression of the query, or a row of numbers."""
    if isinstance(node.this, exp.Anonymous):
        return bool(node.this.name == _RANGE)  # `_adapt_table` makes this call; a user's call has another node
    return isinstance(node.this, exp.Identifier) and not node.db and node.name.lower() in common


def _adapt_cast(node: exp.Cast) -> exp.Expression:
    """Round fractions and times as a cast of DuckDB does; Spark truncates them."""
    if node.to.this in _INTEGERS:
        return _cast_to_integer(node)
    rounding = _ROUNDED_TIMES.get(node.to.this)
    if rounding is None:
        return node
    unit, half = rounding
    time = exp.cast(node.this, TYPE.TIMESTAMPNTZ)
    moved = exp.Add(this=time, expression=exp.Interval(this=exp.Literal.string(half), unit=exp.var("SECOND")))
    truncated = exp.Anonymous(this="date_trunc", expressions=[exp.Literal.string(unit), moved])
    return exp.cast(truncated, TYPE.TIMESTAMPNTZ)


def _cast_to_integer(node: exp.Cast) -> exp.Expression:
    """Round a value of any type before the cast, unless it is an integer for sure.

    Spark casts NaN to a decimal without a value, so the plain cast follows, which fails for NaN. It is left out where
    the value contains such a cast, because a long chain of casts would double at each of them.
    """
    value = node.this
    if isinstance(value.unnest(), _WHOLE_NUMBERS) or value.unnest().meta.get(_ROUNDED):
        return node
    cast = type(node)  # CAST or TRY_CAST
    others = {key: part for key, part in node.args.items() if key not in ("this", "to")}
    widest = exp.DataType.build("DECIMAL(38, 18)", dialect=_READ)
    rounded = exp.Anonymous(this="round", expressions=[cast(this=value.copy(), to=widest, **others)])
    made: exp.Expression = cast(this=rounded, to=node.to.copy(), **others)
    if not isinstance(node, exp.TryCast) and not any(part.meta.get(_ROUNDED) for part in value.walk()):
        made = exp.Coalesce(this=made, expressions=[node.copy()])
    made.meta[_ROUNDED] = True
    return made


def _adapt_values(node: exp.Values) -> exp.Expression:
    """Give the columns of VALUES the names that DuckDB gives them."""
    alias = node.args.get("alias")
    if isinstance(alias, exp.TableAlias) and not alias.columns and node.expressions:
        first = node.expressions[0]
        count = len(first.expressions) if isinstance(first, exp.Tuple) else 1
        alias.set("columns", [exp.to_identifier(f"col{i}") for i in range(count)])
    return node


def _adapt_table(node: exp.Table) -> exp.Expression:
    """Write the tables ``range`` and ``generate_series`` as Spark's ``range``, with the name of DuckDB's column."""
    series = node.this
    if not isinstance(series, exp.GenerateSeries):
        return node
    is_range = bool(series.args.get("is_end_exclusive"))
    start, end, step = (series.args.get(name) for name in ("start", "end", "step"))
    last = end if is_range else exp.Add(this=exp.Paren(this=end), expression=exp.Literal.number(1))
    arguments = [part for part in (start, last, step) if part is not None]
    rows = exp.Table(this=exp.Anonymous(this=_RANGE, expressions=arguments))
    name = exp.to_identifier(_RANGE if is_range else "generate_series")
    query = exp.select(exp.alias_(exp.column("id"), name)).from_(rows)
    alias = node.args.get("alias") or exp.TableAlias(this=name.copy())
    return exp.Subquery(this=query, alias=alias)


def _adapt_type(node: exp.DataType) -> exp.Expression:
    """Leave out the length of arrays, which the write checks."""
    if node.this == TYPE.ARRAY and node.args.get("values"):
        node.set("values", None)
    return node


def _adapt_subquery(node: exp.Subquery) -> exp.Expression:
    """Write the rows of a list of structs, which the parser of queries makes of UNNEST, as Spark's ``inline``."""
    inner = node.this
    rows = inner.expressions[0] if isinstance(inner, exp.Select) and len(inner.expressions) == 1 else None
    if not isinstance(rows, exp.Explode) or not rows.expressions or inner.args.get("from_") is not None:
        return node
    call = exp.Anonymous(this="inline", expressions=[rows.this])
    return exp.Lateral(this=call, alias=node.args["alias"])


def _adapt_like(node: Any) -> exp.Expression:
    """Escape backslashes: they are plain characters for DuckDB, unless the query names an escape character."""
    if isinstance(node.parent, exp.Escape):
        return node
    pattern = node.expression
    if isinstance(pattern, exp.Literal):
        pattern.set("this", pattern.name.replace("\\", "\\\\"))
    else:
        arguments = [pattern.copy(), exp.Literal.string("\\"), exp.Literal.string("\\\\")]
        node.set("expression", exp.Anonymous(this="replace", expressions=arguments))
    return node


def _adapt_select(node: exp.Select) -> exp.Expression:
    """Name all columns of a query that is written as a subquery, because Spark lacks QUALIFY and DISTINCT ON."""
    distinct = node.args.get("distinct")
    if node.args.get("qualify") is None and (distinct is None or distinct.args.get("on") is None):
        return node
    for number, selected in enumerate(list(node.expressions)):
        if isinstance(selected, exp.Star) or (isinstance(selected, exp.Column) and isinstance(selected.this, exp.Star)):
            raise Unsupported("* with QUALIFY or DISTINCT ON on Spark", hint="name the columns")
        if not isinstance(selected, exp.Alias | exp.Column):
            selected.replace(exp.alias_(selected.copy(), f"col{number}"))
    return node


def _adapt_pivot(node: exp.Pivot) -> exp.Expression:
    """Return a PIVOT or UNPIVOT after a table unchanged; refuse DuckDB's statement form, which Spark does not have."""
    if node.this is None:
        return node
    word, hint = ("UNPIVOT", "value FOR name") if node.args.get("unpivot") else ("PIVOT", "sum(value) FOR column")
    raise Unsupported(f"{word} … ON on Spark", hint=f"write FROM table {word} ({hint} IN (…))")


def _adapt_equality(node: exp.EQ) -> exp.Expression:
    """Write ``x = ANY (SELECT …)`` with IN, which Spark has; refuse ANY over a list."""
    if not isinstance(node.expression, exp.Any):
        return node
    query = node.expression.this.unnest()
    if not isinstance(query, exp.Query):
        raise Unsupported("= ANY of a list on Spark", hint="write list_contains(list, value)")
    return exp.In(this=node.this.copy(), query=exp.Subquery(this=query.copy()))


_ADAPTERS: Mapping[type[exp.Expression], Callable[[Any], exp.Expression]] = {
    exp.EQ: _adapt_equality,
    exp.Pivot: _adapt_pivot,
    **FUNCTIONS,
    exp.Cast: _adapt_cast,
    exp.TryCast: _adapt_cast,
    exp.Values: _adapt_values,
    exp.Table: _adapt_table,
    exp.DataType: _adapt_type,
    exp.Subquery: _adapt_subquery,
    exp.Like: _adapt_like,
    exp.ILike: _adapt_like,
    exp.Select: _adapt_select,
}
"""How nodes are written for Spark where sqlglot's own translation fails or changes the meaning."""
