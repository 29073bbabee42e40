"""The syntax tree of a query with an index of its nodes, so that planning does not walk the tree for each question.

The larger table of a join comes first, because DuckDB estimates one row for a stream of Arrow batches. Then it keeps
the written order, and builds the hash table from the second table.

Invariant: the tree does not change after its index is built. Only inner joins of two tables change their order, whose
result does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from attrs import define, field
from sqlglot import exp

DIALECT = "duckdb"
T = TypeVar("T")
_FACTOR = 2
"""Tables of similar size stay: the estimate is not exact."""


@define(eq=False)
class QueryTree:
    """A syntax tree, and what was computed from it so far."""

    # The query; each of its tables has a unique name
    root: exp.Expression
    _by_type: dict[type, list[tuple[int, exp.Expression]]] | None = field(default=None, init=False, repr=False)
    _by_scope: dict[int, list[exp.Table]] | None = field(default=None, init=False, repr=False)
    _sql: str | None = field(default=None, init=False, repr=False)
    _planned: tuple[object, Any] | None = field(default=None, init=False, repr=False)

    @property
    def sql(self) -> str:
        """The text for the query engine."""
        if self._sql is None:
            self._sql = self.root.sql(dialect=DIALECT)
        return self._sql

    def plan_once(self, tables: object, plan: Callable[[], T]) -> T:
        """Return what `plan` finds in the tree for these columns of its tables; the last result is kept."""
        last = self._planned
        if last is None or last[0] != tables:
            self._planned = last = tables, plan()  # one value, because threads may plan the same statement
        found: T = last[1]
        return found

    def find_all(self, *kinds: Any) -> Iterator[Any]:
        """Yield the nodes of these classes, as `sqlglot.exp.Expression.find_all` does."""
        if self._by_type is None:
            self._by_type = _index_nodes(self.root)
        found = [nodes for kind, nodes in self._by_type.items() if issubclass(kind, kinds)]
        in_order = found[0] if len(found) == 1 else sorted((pair for nodes in found for pair in nodes), key=_position)
        return (node for _, node in in_order)

    def has(self, *kinds: Any) -> bool:
        """Return whether there is a node of one of these classes."""
        return any(True for _ in self.find_all(*kinds))

    def tables_of(self, scope: exp.Select) -> list[exp.Table]:
        """Return the tables of one SELECT, without those of its subqueries."""
        if self._by_scope is None:
            self._by_scope = {}
            for table in self.find_all(exp.Table):
                self._by_scope.setdefault(id(table.find_ancestor(exp.Select)), []).append(table)
        return self._by_scope.get(id(scope), [])


def iterate_aliases(tree: exp.Expression) -> Iterator[exp.Identifier]:
    """Yield the names that a query gives to its columns and tables."""
    for node in tree.find_all(exp.Alias, exp.TableAlias):
        name = node.args.get("alias" if isinstance(node, exp.Alias) else "this")
        if isinstance(name, exp.Identifier):
            yield name


def _position(pair: tuple[int, exp.Expression]) -> int:
    return pair[0]


def _index_nodes(root: exp.Expression) -> dict[type, list[tuple[int, exp.Expression]]]:
    """Return all nodes by their class, each with its position in the order of `find_all`."""
    found: dict[type, list[tuple[int, exp.Expression]]] = {}
    level: list[exp.Expression] = [root]
    position = 0
    while level:
        below: list[exp.Expression] = []
        for node in level:
            found.setdefault(type(node), []).append((position, node))
            position += 1
            for value in node.args.values():
                if isinstance(value, list):
                    below += [item for item in value if isinstance(item, exp.Expression)]
                elif isinstance(value, exp.Expression):
                    below.append(value)
        level = below
    return found


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
