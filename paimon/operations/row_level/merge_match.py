"""Find what a MERGE does with rows of the target, and compute the new rows.

Invariant: the result equals that of `paimon.domain.assignment.merge_reference`, whatever the batches are. Memory holds
the source, one batch of the target, and the candidate pairs of one block.
"""

# How a row of the target finds its clause. Example: ON target.id = source.id AND source.n > 0
#
#     source  id  n        target batch  id  v        candidates (target, source)   matches
#          0   1  5                   0   2  b        (0, 1)                        n = 0: no
#          1   2  0                   1   1  a        (1, 0) (1, 2)                 yes, yes: ambiguous
#          2   1  7                   2   9  z        none                          none
#
# 1. Candidates: `SourceIndex` lists the rows of the source by key. A batch of the target is looked up as a whole. Pairs
#    come in blocks of limited size, ordered by target row; all pairs of one target row are in the same block. Without
#    equal columns, each row of the source is a candidate for each row of the target.
# 2. Matches: the rest of the ON condition is evaluated on a view. A view is a batch with one row for each pair; its
#    columns have canonical names (`target.v`, `source.n`), and are taken by row number, only those that are needed.
# 3. Two rows of the source match one row of the target if two consecutive pairs have the same target row. This is
#    refused as soon as there is a WHEN MATCHED clause, also if the conditions of the clauses are false.
# 4. Clauses: their conditions are evaluated on views, too; the first that is true counts. Rows of the target without a
#    match (2 above) get the clauses WHEN NOT MATCHED BY SOURCE. `BoundMerge.changing` numbers both kinds.
#
# The result of a batch is a `RowChanges`: four arrays, the first three with one value for each changed row. Its
# `matched` names all rows of the source with a match, also where no clause applied. Callers collect it over all
# batches; at the end, `find_inserts` takes the rows of the source that never matched.
#
# A large source is merged in parts, each with a range of key hashes. A part looks only at rows of the target with a
# hash in its range (`KeyRange`): for the others, "no match" means nothing, because another part may match them.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.assignment.hash_ranges import HashRange, hash_keys
from paimon.domain.assignment.merge_clauses import SOURCE, TARGET, BoundMerge, MergeClause
from paimon.domain.assignment.merge_columnar import (
    NO_CLAUSE,
    Integers,
    Mask,
    SourceIndex,
    choose_clauses,
    find_repeated,
)
from paimon.domain.columns.convert import convert_array
from paimon.domain.columns.time_text import format_times
from paimon.domain.errors import AmbiguousMerge
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.field_paths import resolve_column
from paimon.domain.predicate.transform import columns_of
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.system_columns import ROW_ID
from paimon.operations.read.evaluate import evaluate_condition, evaluate_expression
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine

_MOST_PAIRS = 1 << 18
"""Candidate pairs of one block: only a source with repeated keys, or a condition without equal columns, has more."""


@frozen(eq=False)
class RowChanges:
    """The changed rows of a batch or a file."""

    # Their numbers, ascending
    rows: Integers
    # For each of them the number of its clause in `BoundMerge.changing`
    clauses: Integers
    # For each of them the row of the source that matches it; -1 without a match
    source_rows: Integers
    # The rows of the source that match any row of the target, also an unchanged one
    matched: Integers

    @classmethod
    def of_parts(cls, parts: Sequence[RowChanges]) -> RowChanges:
        """Return the changes of several parts as one, ordered by row."""
        empty = [np.empty(0, np.int64)]
        rows = np.concatenate([*(p.rows for p in parts), *empty])
        order = np.argsort(rows, kind="stable")
        clauses = np.concatenate([*(p.clauses for p in parts), *empty])
        sources = np.concatenate([*(p.source_rows for p in parts), *empty])
        matched = np.unique(np.concatenate([*(p.matched for p in parts), *empty]))
        return cls(rows[order], clauses[order], sources[order], matched)

    def at(self, rows: Integers) -> RowChanges:
        """Return the changes with other row numbers."""
        return RowChanges(rows[self.rows], self.clauses, self.source_rows, self.matched)

    def between(self, start: int, end: int) -> RowChanges:
        """Return the changes of the rows from `start` to before `end`, numbered from 0."""
        first, last = np.searchsorted(self.rows, (start, end))
        part = slice(int(first), int(last))
        return RowChanges(self.rows[part] - start, self.clauses[part], self.source_rows[part], self.matched)


@frozen
class KeyRange:
    """The rows of the target that a part of the source can match."""

    hashes: HashRange
    types: tuple[DataType, ...]

    def select(self, keys: Sequence[pa.Array]) -> Integers:
        """Return the numbers of the rows whose key is in the range."""
        return self.hashes.select(hash_keys(keys, self.types))


@frozen(eq=False)
class MergeMatcher:
    """A MERGE together with its source, or with a part of it."""

    # Evaluates scalar SQL expressions
    engine: Engine
    # The target, for errors
    table_name: str
    merge: BoundMerge
    # Rows of the source, under canonical names
    source: pa.RecordBatch
    # These rows by the columns that must be equal
    index: SourceIndex
    # The position of each of these rows in the whole source; None if they are all rows
    numbers: Integers | None = None
    # The rows of the target that belong to this part of the source; None for all rows
    key_range: KeyRange | None = None
    # Whether the source is one of several shares, whose row numbers mean nothing to the caller
    is_share: bool = False

    def find_changes(self, rows: pa.RecordBatch) -> RowChanges:
        """Find the changed rows among live rows of the target.

        Raise AmbiguousMerge if two rows of the source match one of them. The rows have the columns that the ON
        condition and the conditions of clauses read.
        """
        if self.key_range is None:
            return self._find_changes(rows)
        chosen = self.key_range.select([rows[name] for name, _ in self.merge.on.pairs])
        if len(chosen) == rows.num_rows:
            return self._find_changes(rows)
        return self._find_changes(rows.take(pa.array(chosen))).at(chosen)

    def _find_changes(self, rows: pa.RecordBatch) -> RowChanges:
        merge, parts = self.merge, []
        is_matched = np.zeros(rows.num_rows, np.bool_)
        keys = [rows[name] for name, _ in merge.on.pairs]
        for candidates in self.index.find_pairs(keys, rows.num_rows, _MOST_PAIRS):
            targets, sources = self._keep_matches(rows, *candidates)
            is_matched[targets] = True
            self._check_unambiguous(rows, targets, sources)
            clauses = self._choose(merge.matched, rows, targets, sources)
            changed = clauses != NO_CLAUSE
            parts.append(
                RowChanges(targets[changed], clauses[changed], sources[changed], np.unique(sources)),
            )
        if merge.not_matched_by_source:
            others = np.flatnonzero(~is_matched)
            clauses = self._choose(merge.not_matched_by_source, rows, others, None)
            changed = clauses != NO_CLAUSE
            count = int(np.count_nonzero(changed))
            numbers = clauses[changed] + len(merge.matched)
            parts.append(
                RowChanges(others[changed], numbers, np.full(count, -1, np.int64), np.empty(0, np.int64)),
            )
        return RowChanges.of_parts(parts)

    def _keep_matches(self, rows: pa.RecordBatch, targets: Integers, sources: Integers) -> tuple[Integers, Integers]:
        """Return the candidates for which the whole ON condition is true."""
        condition = self.merge.on.condition
        if condition is None:
            return targets, sources
        keep = self._evaluate(condition, rows, targets, sources)
        return targets[keep], sources[keep]

    def _check_unambiguous(self, rows: pa.RecordBatch, targets: Integers, sources: Integers) -> None:
        position = find_repeated(targets) if self.merge.matched else None
        if position is None:
            return
        shown = [name for name, _ in self.merge.on.pairs] or rows.schema.names[:1]
        row = ", ".join(f"{name} = {_show(rows[name].slice(int(targets[position]), 1))}" for name in shown)
        pair = sources[position : position + 2]
        numbers = " and ".join(str(int(n) + 1) for n in (pair if self.numbers is None else self.numbers[pair]))
        which = "Two rows" if self.is_share else f"Rows {numbers}"
        raise AmbiguousMerge(
            f"{which} of the source match the same row of table {self.table_name!r}: {row}",
            subject="source",
            hint="remove repeated keys from the source, or make the ON condition stricter",
        )

    def _choose(
        self, clauses: Sequence[MergeClause], rows: pa.RecordBatch, targets: Integers, sources: Integers | None
    ) -> Integers:
        """Return the number of the first clause that applies to each row or pair of rows."""
        truths = [
            None if clause.condition is None else self._evaluate(clause.condition, rows, targets, sources)
            for clause in clauses
        ]
        return choose_clauses(truths, len(targets))

    def _evaluate(
        self, condition: Predicate, rows: pa.RecordBatch, targets: Integers, sources: Integers | None
    ) -> Mask:
        view = self.build_view(columns_of(condition), rows, targets, sources)
        found: Mask = evaluate_condition(self.engine, condition, view).to_numpy(zero_copy_only=False)
        return found

    def build_view(
        self, names: Iterable[str], rows: pa.RecordBatch | None, targets: Integers | None, sources: Integers | None
    ) -> pa.RecordBatch:
        """Return pairs' columns by canonical names; None as `targets` or `sources` means no such rows."""
        of_target = {} if rows is None else {f"{TARGET}.{name}": name for name in rows.schema.names}
        available = {**of_target, **dict.fromkeys(self.source.schema.names)}
        roots = list(dict.fromkeys(resolve_column(name, available)[0] for name in names)) or [next(iter(available))]
        columns = []
        for root in roots:
            if rows is not None and root in of_target:
                columns.append(rows[of_target[root]].take(pa.array(targets)))
            else:
                columns.append(self.source[root].take(pa.array(sources)))
        return pa.RecordBatch.from_arrays(columns, roots)

    def compute_rows(
        self, clause: MergeClause, fields: Sequence[DataField], rows: pa.RecordBatch, sources: Integers | None
    ) -> pa.Table:
        """Return the new rows, with all columns of the target, of an UPDATE clause that applies to all of these rows.

        `rows` have at least the columns that are not set; `sources` is the source row of each of them.
        """
        view = self.build_view(clause.value_columns(), rows, np.arange(rows.num_rows), sources)
        values = dict(self._compute_values(clause, view))
        columns = [values[f.name] if f.name in values else rows[f.name] for f in fields]
        return pa.Table.from_arrays(columns, schema=arrow_schema(fields))

    def compute_inserts(self, clause: MergeClause, sources: Integers) -> pa.Table:
        """Return the rows that an INSERT clause makes of rows of the source: only the columns that it sets."""
        view = self.build_view(clause.value_columns(), None, None, sources)
        return pa.table(dict(self._compute_values(clause, view)))

    def _compute_values(self, clause: MergeClause, view: pa.RecordBatch) -> Iterator[tuple[str, pa.Array]]:
        for assignment in clause.assignments:
            column = assignment.column
            values = evaluate_expression(self.engine, assignment.expression, view, column)
            yield column.name, convert_array(values, column.type, column.name)

    def find_inserts(self, matched: Mask) -> Iterator[tuple[MergeClause, Integers]]:
        """Yield INSERT clauses with the source rows to which they apply; `matched` has a value for each row."""
        others, clauses = np.flatnonzero(~matched), self.merge.not_matched
        truths: list[Mask | None] = []
        for clause in clauses:
            if clause.condition is None:
                truths.append(None)
            else:
                view = self.build_view(columns_of(clause.condition), None, None, others)
                truths.append(evaluate_condition(self.engine, clause.condition, view).to_numpy(zero_copy_only=False))
        chosen = choose_clauses(truths, len(others))
        for number, clause in enumerate(clauses):
            yield clause, others[chosen == number]


def list_target_columns(context: TableContext) -> tuple[DataField, ...]:
    """Return the columns of the target that a merge may name: the row ids, too, if they never change."""
    return (*context.schema.fields, ROW_ID) if context.options.data_evolution_enabled else context.schema.fields


def find_target_column(context: TableContext, name: str) -> DataField:
    """Return the column of the target with a name of `list_target_columns`."""
    return ROW_ID if name == ROW_ID.name else context.schema.field_of(name)


def _show(value: pa.Array) -> str:
    """Return the text of the only value of an array, also of a time that Python lacks."""
    try:
        return repr(value[0].as_py())
    except OverflowError:
        return str(format_times(value)[0])


def name_source(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a source under canonical names."""
    return pa.RecordBatch.from_arrays(rows.columns, [f"{SOURCE}.{name}" for name in rows.schema.names])
