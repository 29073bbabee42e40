"""The syntax tree of a query with an index of its nodes, so that planning does not walk the tree for each question.

Invariant: the tree does not change after its index is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import define, field
from sqlglot import exp

DIALECT = "duckdb"


@define(eq=False)
class QueryTree:
    """A syntax tree, and what was computed from it so far."""

    # The query; each of its tables has a unique name
    root: exp.Expression
    _by_type: dict[type, list[tuple[int, exp.Expression]]] | None = field(default=None, init=False, repr=False)
    _by_scope: dict[int, list[exp.Table]] | None = field(default=None, init=False, repr=False)
    _sql: str | None = field(default=None, init=False, repr=False)

    @property
    def sql(self) -> str:
        """The text for the query engine."""
        if self._sql is None:
            self._sql = self.root.sql(dialect=DIALECT)
        return self._sql

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
