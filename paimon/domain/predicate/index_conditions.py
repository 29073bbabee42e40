"""The parts of a condition that a file index of one column can decide.

Invariant: a part is an equality or a range of one column; `<>`, `NOT IN`, `LIKE` and scalar SQL are not among them.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from paimon.domain.predicate.expression import And, Compare, In, Operator, Or, Predicate
from paimon.domain.predicate.transform import columns_of, split_conjuncts

READ_SHARE = 0.1
"""An index can help where column statistics leave a larger share of the files than this to be read."""


@frozen
class IndexCondition:
    """A part of a condition, which is true for each row that the condition selects."""

    column: str
    # whether it needs an index with an order
    is_range: bool
    part: Predicate


def name_metric(table_name: str, column: str, is_range: bool) -> str:
    """Return the metric of an observer that counts the bytes which scans read in spite of conditions on a column."""
    return f"scan.{'range' if is_range else 'equality'}.{table_name}.{column}"


def find_index_conditions(predicate: Predicate) -> Iterator[IndexCondition]:
    """Yield the parts of a condition that an index can decide."""
    for part in split_conjuncts(predicate):
        leaves = part.children if isinstance(part, Or | And) else (part,)
        columns = columns_of(part)
        operators = {leaf.op for leaf in leaves if isinstance(leaf, Compare)}
        is_plain = all(isinstance(leaf, Compare) or (isinstance(leaf, In) and not leaf.negated) for leaf in leaves)
        if len(columns) == 1 and is_plain and Operator.NE not in operators:
            yield IndexCondition(next(iter(columns)), bool(operators - {Operator.EQ}), part)
