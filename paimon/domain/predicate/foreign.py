"""Conditions of pyarrow and Polars: they keep their meaning there, and prune by what they imply.

The core evaluates those of pyarrow, and the port of expressions those of Polars.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa

from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import ForeignCondition, ForeignExpression, Predicate, ScalarSql, SqlCondition
from paimon.domain.predicate.expression_tree import Node, decode_expression, decode_polars, list_columns
from paimon.domain.predicate.text import format_predicate
from paimon.domain.predicate.transform import map_leaves, restrict_to_columns
from paimon.domain.text_checks import show_value

PYARROW, POLARS = "pyarrow", "polars"
_OF_SEVERAL = (b'"Selector":', b'"Nth":', b'"IndexColumn":', b'"Wildcard"')
"""Nodes of Polars that select columns by position, type or pattern."""
_MOST_LEVELS = 20
"""How deep ``|`` and ``&`` may alternate, beyond which chains stay as they are."""
_POSITIONS = "name the columns: pyarrow.compute.field('name')"


def condition_of_foreign(value: Any) -> Predicate | None:
    """Return the condition of an expression of pyarrow or Polars, neither of which is loaded; None for other values."""
    module, name = type(value).__module__, type(value).__name__
    if (module, name) == ("pyarrow._compute", "Expression"):
        return condition_of_pyarrow(value)
    if module.partition(".")[0] == POLARS and name == "Expr":
        return condition_of_polars(value)
    return None


def condition_of_pyarrow(expression: Any) -> Predicate:
    """Return the condition of a pyarrow expression over named columns; InvalidRequest for other forms."""
    text = show_value(str(expression))
    try:
        (stored,) = expression.__reduce__()[1]
        data = stored.to_pybytes()
    except pa.ArrowNotImplementedError as error:
        raise InvalidRequest(f"Expression {text} names columns by position.", subject=text, hint=_POSITIONS) from error
    tree = decode_expression(data)
    if tree is None:
        hint = "write the condition as SQL text, or with paimon.col"
        raise InvalidRequest(f"Expression {text} cannot be read from this release of pyarrow.", subject=text, hint=hint)
    names = tuple(dict.fromkeys(list_columns(tree)))
    return ForeignCondition(ForeignExpression(str(expression), "", names, True, PYARROW, data, names))


def condition_of_polars(expression: Any) -> Predicate:
    """Return the condition of a Polars expression over named columns; InvalidRequest for patterns or none."""
    text, names = str(expression), tuple(dict.fromkeys(expression.meta.root_names()))
    expression = _balance(expression)
    tree = _store_polars(expression, "json").encode()
    if not names or expression.meta.has_multiple_outputs() or any(mark in tree for mark in _OF_SEVERAL):
        hint = "write one condition over columns by name: polars.col('name')"
        raise InvalidRequest(f"Expression {show_value(text)} does not name its columns.", subject=text, hint=hint)
    stored = _store_polars(expression, "binary")
    return ForeignCondition(ForeignExpression(text, "", names, True, POLARS, stored, names, tree))


def _balance(expression: Any, depth: int = 0) -> Any:
    """Return a Polars condition whose chains are flat trees: Polars is slow for depth, and JSON limits it."""
    for join in (or_, and_):
        parts = _list_parts(expression, join)
        if len(parts) == 1:
            continue
        if depth < _MOST_LEVELS:
            parts = [_balance(part, depth + 1) for part in parts]
        while len(parts) > 1:
            pairs = [parts[start : start + 2] for start in range(0, len(parts), 2)]
            parts = [reduce(join, pair) for pair in pairs]
        return parts[0]
    return expression


def _list_parts(expression: Any, join: Callable[[Any, Any], Any]) -> list[Any]:
    """Return the parts that an operator joins, in order; the expression alone if another one is at its top."""
    parts: list[Any] = []
    left = [expression]
    while left:
        part = left.pop()
        inputs = part.meta.pop()  # the last one first
        if len(inputs) == 2 and part.meta.eq(join(inputs[1], inputs[0])):
            left += inputs
        else:
            parts.append(part)
    return parts


def _store_polars(expression: Any, form: str) -> Any:
    """Return an expression as Polars stores it; `InvalidRequest` for a Python function that cannot be stored."""
    failures = sys.modules[POLARS].exceptions.PolarsError  # who has an expression has imported Polars
    try:
        return expression.meta.serialize(format=form)
    except failures as error:
        text = show_value(str(expression))
        hint = "use functions of Polars, or install cloudpickle for functions of Python"
        raise InvalidRequest(f"Expression {text} cannot be stored: {error}", subject=text, hint=hint) from error


def decode_tree(expression: ScalarSql) -> Node | None:
    """Return the tree of a condition of another library; None if it is not understood."""
    assert isinstance(expression, ForeignExpression)
    return decode_polars(expression.tree) if expression.library == POLARS else decode_expression(expression.stored)


def format_pruning(predicate: Predicate, names: Collection[str]) -> str | None:
    """Return what prunes of a bound predicate with conditions of other libraries; None for one without them."""
    found: list[SqlCondition] = []

    def note(part: SqlCondition) -> Predicate:
        """Note a condition."""
        found.append(part)
        return part

    map_leaves(predicate, lambda leaf: leaf, note)
    if not any(isinstance(part, ForeignCondition) for part in found):
        return None
    weaker = restrict_to_columns(predicate, names)
    return "nothing" if weaker is None else format_predicate(weaker)


def evaluate_pyarrow(expression: ForeignExpression, rows: pa.RecordBatch) -> pa.Array:
    """Return an expression's value for each row; InvalidRequest if types do not fit or it needs more rows."""
    from pyarrow import acero  # only these conditions need it
    from pyarrow.compute import Expression

    names = list(expression.names) or rows.schema.names
    table = pa.Table.from_batches([rows.rename_columns(names)])
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    try:
        found = Expression._deserialize(pa.py_buffer(expression.stored))
        project = acero.Declaration("project", acero.ProjectNodeOptions([found], ["truth"]), inputs=[source])
        return project.to_table(use_threads=False).column(0).combine_chunks()
    except (pa.ArrowException, NotImplementedError) as error:
        what = str(error).splitlines()[0]
        raise InvalidRequest(
            f"Expression {show_value(expression.text)} cannot be computed: {what}",
            subject=expression.text,
            hint="compare each column with a value of its type; cast one of both otherwise",
        ) from error
