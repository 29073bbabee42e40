"""What a MERGE does: its ON condition and its clauses, as values.

The names of columns are canonical: ``target.x`` is a column of the table, ``source.x`` one of the source.

Invariant: of the clauses of one kind, the first whose condition is true is applied to a row. Expressions see the row
before the change. Source: `MergeIntoPaimonTable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from attrs import field, frozen

from paimon.domain.assignment.expression import Assignment
from paimon.domain.assignment.expression import columns_of as columns_of_expression
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import columns_of

TARGET = "target"
SOURCE = "source"


class MergeAction(Enum):
    """What a clause does with a row."""

    UPDATE = "UPDATE"
    DELETE = "DELETE"
    INSERT = "INSERT"


def _to_assignments(values: Iterable[Assignment]) -> tuple[Assignment, ...]:
    return tuple(values)


@frozen
class MergeClause:
    """One WHEN clause."""

    action: MergeAction
    # the rows to which the clause applies; None for all
    condition: Predicate | None = None
    # the columns to set; empty for a delete
    assignments: tuple[Assignment, ...] = field(default=(), converter=_to_assignments)

    def columns(self) -> Iterator[str]:
        """Yield the canonical names of the columns that the clause reads."""
        if self.condition is not None:
            yield from columns_of(self.condition)
        yield from self.value_columns()

    def value_columns(self) -> Iterator[str]:
        """Yield the canonical names of the columns that the new values need."""
        for assignment in self.assignments:
            yield from columns_of_expression(assignment.expression)


@frozen
class MergeOn:
    """The ON condition: pairs of columns that must be equal, and the remaining condition."""

    # a column of the target and the equal column of the source, as plain names without a side
    pairs: tuple[tuple[str, str], ...]
    # must be true too; over canonical names such as "source.x"; None if nothing remains
    condition: Predicate | None = None

    @property
    def target_columns(self) -> frozenset[str]:
        """The canonical names of the columns of the target that the condition reads."""
        read = frozenset() if self.condition is None else columns_of(self.condition)
        return frozenset(f"{TARGET}.{name}" for name, _ in self.pairs) | {n for n in read if is_of_target(n)}


@frozen
class BoundMerge:
    """A whole MERGE."""

    on: MergeOn
    # UPDATE and DELETE clauses for pairs of matching rows
    matched: tuple[MergeClause, ...] = ()
    # INSERT clauses for rows of the source without a match
    not_matched: tuple[MergeClause, ...] = ()
    # UPDATE and DELETE clauses for rows of the target without a match
    not_matched_by_source: tuple[MergeClause, ...] = ()

    @property
    def changing(self) -> tuple[MergeClause, ...]:
        """The clauses that change rows of the target, in the order of their numbers in plans."""
        return (*self.matched, *self.not_matched_by_source)


def is_of_target(name: str) -> bool:
    """Return whether a canonical name is a column of the target."""
    return name.startswith(f"{TARGET}.")


def to_plain_name(name: str) -> str:
    """Return a canonical name without its side."""
    return name.partition(".")[2]
