"""Check the new versions of rows of a primary-key table: what the merge engine would ignore is refused.

Invariant: an update that passes is what a reader sees after it. Source: `PartialUpdateMergeFunction`,
`UserDefinedSeqComparator`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.assignment.expression import Assignment
from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.sequence_groups import SequenceGroup, parse_sequence_groups
from paimon.domain.schema.table_definition import TableDefinition


def check_versions(
    table: TableDefinition, before: pa.RecordBatch, after: pa.Table, assignments: Sequence[Assignment]
) -> None:
    """Refuse new versions of rows that the merge engine would ignore, wholly or in part.

    That is a version with a smaller sequence field than before, or with a null that partial-update ignores.
    """
    changed = {a.column.name for a in assignments}
    for group in _list_groups(table):
        if changed & {*group.sequence}:
            _check_order(group.sequence, table.options.sequence_descending and not group.members, before, after)
        if changed & {*group.members, *group.sequence} and group.members:
            _check_known(group, after)
    if table.options.merge_engine == "partial-update":
        _check_nulls(table, before, after, changed)


def list_version_columns(table: TableDefinition) -> set[str]:
    """Return the columns of the old rows that `check_versions` needs."""
    return {name for group in _list_groups(table) for name in group.sequence}


def _list_groups(table: TableDefinition) -> Iterator[SequenceGroup]:
    """Yield the sequence fields of the table as a group without members, and its sequence groups."""
    if table.options.sequence_fields:
        yield SequenceGroup(tuple(table.options.sequence_fields), ())
    if table.options.merge_engine == "partial-update":
        yield from parse_sequence_groups(table.options)


def _check_order(names: Sequence[str], descending: bool, before: pa.RecordBatch, after: pa.Table) -> None:
    """Refuse rows that come before their old versions; a null comes before each value, in both directions."""
    is_open: pa.Array = pa.repeat(True, before.num_rows)  # rows whose fields were equal so far
    for name in names:
        old, new = before[name], after[name].combine_chunks()
        later, earlier = (pc.less, pc.greater) if descending else (pc.greater, pc.less)
        is_earlier = pc.or_(pc.fill_null(earlier(new, old), False), pc.and_(new.is_null(), old.is_valid()))
        is_later = pc.or_(pc.fill_null(later(new, old), False), pc.and_(old.is_null(), new.is_valid()))
        if pc.and_(is_open, is_earlier).true_count:
            size = "larger" if descending else "smaller"
            raise InvalidRequest(
                f"Column {name!r} orders the versions of a row, and cannot be set to null or a {size} value",
                subject=name,
                hint=f"the merge engine keeps the old row; set a value that is not {size}",
            )
        is_open = pc.and_not(is_open, is_later)


def _check_known(group: SequenceGroup, after: pa.Table) -> None:
    """Refuse changes of a group whose sequence fields are all null, because partial-update ignores them."""
    unknown: pa.Array = pa.repeat(True, after.num_rows)
    for name in group.sequence:
        unknown = pc.and_(unknown, after[name].combine_chunks().is_null())
    if unknown.true_count:
        name = group.sequence[0]
        raise InvalidRequest(
            f"Column {group.members[0]!r} cannot be set while {name!r} is null, which orders its versions",
            subject=name,
            hint=f"set {name!r}, too",
        )


def _check_nulls(table: TableDefinition, before: pa.RecordBatch, after: pa.Table, changed: set[str]) -> None:
    """Refuse a null that partial-update would ignore."""
    grouped = {name for group in parse_sequence_groups(table.options) for name in (*group.members, *group.sequence)}
    for name in sorted(changed - grouped):
        emptied = pc.and_(after[name].combine_chunks().is_null(), before[name].is_valid())
        if emptied.true_count:
            raise InvalidRequest(
                f"Column {name!r} cannot be set to null, because partial-update keeps the old value",
                subject=name,
                hint="add the column to a sequence group",
            )
