"""Put the larger table of a join first, for an engine that does not know the sizes of its sources.

Invariant: only inner joins of two tables change, whose result does not depend on the order. DuckDB estimates one
row for a stream of Arrow batches. Then it keeps the written order, and builds the hash table from the second table.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from paimon.sql.parse.query_tree import DIALECT, QueryTree

_FACTOR = 2
"""Tables of similar size stay: the estimate is not exact."""


def order_joins(tree: QueryTree, count_rows: Callable[[str], int | None]) -> str:
    """Return the text of a query for the engine; `count_rows` estimates the rows of a table, None if it is unknown."""
    if not any(_find_pair(select) for select in tree.find_all(exp.Select)):
        return tree.sql
    root = tree.root.copy()
    changed = False
    for select in root.find_all(exp.Select):
        pair = _find_pair(select)
        if pair is not None and _is_smaller(count_rows(pair[0].this.name), count_rows(pair[1].this.name)):
            first, second = pair[0].this, pair[1].this
            pair[0].set("this", second.copy())
            pair[1].set("this", first.copy())
            changed = True
    return root.sql(dialect=DIALECT) if changed else tree.sql


def _is_smaller(first: int | None, second: int | None) -> bool:
    return first is not None and second is not None and first * _FACTOR < second


def _find_pair(select: exp.Select) -> tuple[exp.From, exp.Join] | None:
    """Return the two parts of an inner join of two tables whose columns are all named."""
    joins = select.args.get("joins") or []
    begin = next((part for part in select.args.values() if isinstance(part, exp.From)), None)
    if begin is None or len(joins) != 1 or any(isinstance(e, exp.Star) for e in select.expressions):
        return None
    join = joins[0]
    is_inner = not join.args.get("side") and (join.args.get("kind") or "INNER").upper() == "INNER"
    is_plain = is_inner and not join.args.get("method") and join.args.get("on") is not None
    tables = all(type(part.this) is exp.Table and not part.this.args.get("joins") for part in (begin, join))
    return (begin, join) if is_plain and tables else None
