"""Translate queries from DuckDB's dialect to Spark's, with the same meaning.

Invariant: a query reads only the views that it is given. What Spark has no equal form of is refused, by Spark or here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.spark.sql.sql_functions import FUNCTIONS, TYPE

_READ = "duckdb"
_TIMESTAMPS = (TYPE.TIMESTAMP_S, TYPE.TIMESTAMP_MS, TYPE.TIMESTAMP_NS)
_ROUNDED_TIMES = {TYPE.TIMESTAMP_S: ("SECOND", "0.5"), TYPE.TIMESTAMP_MS: ("MILLISECOND", "0.0005")}
_INTEGERS = (TYPE.TINYINT, TYPE.SMALLINT, TYPE.INT, TYPE.BIGINT)
_WHOLE_NUMBERS = (exp.Count, exp.Length, exp.IntDiv, exp.Null, exp.Boolean)
"""Nodes whose values have no fraction."""
_ROUNDED = "paimon_rounded"
_RANGE = "range"


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
        tree: exp.Expression = sqlglot.parse_one(sql, dialect=_READ)
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
