"""Refuse rows of a primary-key table that merges would refuse or ignore.

Invariant: what passes is merged, and an update that passes is what a reader sees after it. Source:
`PartialUpdateMergeFunction`, `UserDefinedSeqComparator`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from paimon.domain.assignment.expression import Assignment
from paimon.domain.columns.buffers import Mask
from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.aggregate_functions import can_refuse_values
from paimon.domain.merge.merge_columnar import merge
from paimon.domain.merge.merge_engines import MERGE_ENGINES
from paimon.domain.merge.merge_spec import MergeSpec, SequenceGroup, parse_sequence_groups
from paimon.domain.row.kinds import RETRACTS
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.arrow_arrays import from_numpy, to_numpy
from paimon.domain.types.data_types import BigIntType, DataField
from paimon.domain.types.system_columns import KEY_PREFIX, VALUE_KIND


def check_versions(
    table: TableDefinition, before: pa.RecordBatch, after: pa.Table, assignments: Sequence[Assignment]
) -> None:
    """Refuse new versions that the engine would ignore: a smaller sequence, or a null in partial-update."""
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


_PAIR = DataField(0, KEY_PREFIX, BigIntType(nullable=False))
"""The number of a row and its insert, as a key column: no column of a table has such a name."""


def check_single_rows(rows: pa.Table, spec: MergeSpec) -> None:
    """Refuse rows with a `_VALUE_KIND` column that no merge can take: a retract, damaged bytes, a missing value.

    A single row of a key is stored as it is, so a flush does not find them; they would block reads and compactions of
    their bucket. Each doubtful row is merged with an insert of the same row.
    """
    engine = MERGE_ENGINES.get(spec.engine)
    if engine is None or engine.newest_wins:
        return
    doubtful = rows.filter(from_numpy(_mask_refusable(rows, spec)))
    if doubtful.num_rows:
        kinds = from_numpy(np.zeros(doubtful.num_rows, np.int8))
        inserts = doubtful.set_column(doubtful.column_names.index(VALUE_KIND.name), VALUE_KIND.name, kinds)
        pairs = from_numpy(np.tile(np.arange(doubtful.num_rows), 2))
        both = pa.concat_tables([inserts, doubtful]).append_column(_PAIR.name, pairs)
        merge(both, evolve(spec.for_write_buffer(_PAIR), retracts_first=False))


def _mask_refusable(rows: pa.Table, spec: MergeSpec) -> Mask:
    """Mark retracts, and rows with values of a kind that can be refused."""
    mask = to_numpy(pc.is_in(rows[VALUE_KIND.name].combine_chunks(), RETRACTS))
    if MERGE_ENGINES[spec.engine].aggregates:
        for aggregate in spec.aggregates:
            column = rows[aggregate.column.name]
            if can_refuse_values(aggregate):
                mask = mask | to_numpy(column.is_valid().combine_chunks())
            elif not aggregate.column.type.nullable and column.null_count:
                mask = mask | to_numpy(column.is_null().combine_chunks())
    return mask
