"""The partial-update engine on columns: what each record does to each column is found first, then columns are reduced.

Law: records of a group stand in the order of the merge; a key that comes as a single record is answered as it is.
Twin: `paimon.domain.merge.reference.partial_update`. Source: `PartialUpdateMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from paimon.domain.columns.stored import validity
from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.columnar.reduce import aggregated
from paimon.domain.merge.aggregate.columnar.steps import Deeds, Steps
from paimon.domain.merge.aggregate.deeds import ADD, ADD_OLDER, CLEAR, RETRACT, SET, SKIP
from paimon.domain.merge.columnar.answer import answered
from paimon.domain.merge.columnar.ordering.arrival import Grouping
from paimon.domain.merge.columnar.ordering.order import Groups, Mask, Rows, kinds_of, retracts
from paimon.domain.merge.columnar.ordering.words import concatenated
from paimon.domain.merge.columnar.sequence_groups import Standing, known_groups, largest_standing, standings
from paimon.domain.merge.spec import MergeSpec

_DELETE = 3


def partial_update(table: pa.Table, groups: Grouping, spec: MergeSpec) -> pa.Table:
    """One row a group: of each value column what its records made of it, of the others the last."""
    members = {name for group in spec.sequence_groups for name in group.members} & {*table.column_names}
    if retracts(table).any() or any(spec.is_aggregated(name) for name in members):
        return _step_by_step(table, groups.ordered(), spec)
    return _newest_wins(table, groups, spec)


def _newest_wins(table: pa.Table, groups: Grouping, spec: MergeSpec) -> pa.Table:
    """Without retracts: a member of a sequence group has the value of the record that is largest there."""
    numbers, count = groups.of_row(), groups.key_count
    if not spec.sequence_groups:
        _check_values(table, groups, spec)
    deeds = np.full(len(numbers), ADD, dtype=np.int8)
    if any(spec.is_aggregated(field.name) for field in spec.value_fields):
        deeds[groups.alone] = SET
    steps = Steps(groups.rows, deeds, numbers, count, plain=True)
    largest = {
        name: rows
        for group in known_groups(table, spec)
        for rows in [steps.picked(largest_standing(table, groups, group))]
        for name in (*group.sequence, *group.members)
    }
    columns = {}
    for aggregate in (a for a in spec.aggregates if a.column.name in table.column_names):
        name = aggregate.column.name
        (column,) = concatenated([table[name]])
        columns[name] = column.take(largest[name]) if name in largest else aggregated(column, aggregate, steps)
    return answered(table, groups, columns, np.zeros(count, dtype=np.int8))


def _step_by_step(table: pa.Table, groups: Groups, spec: MergeSpec) -> pa.Table:
    kinds = kinds_of(table)[groups.order]
    numbers = groups.of_row()
    lone = groups.lone[numbers]
    adds = (kinds == 0) | (kinds == 2)
    deletes = (kinds == _DELETE) & ~lone
    removed, ordered = standings(table, groups, spec, deletes)
    if not spec.sequence_groups:
        removed = deletes & spec.removes_on_delete
        _check_retracts(spec, adds | lone)
        _check_values(table, groups, spec, ~adds)
    deeds = _deeds_by_column(spec, ordered, adds)
    found: dict[int, Steps] = {}
    columns = {}
    for aggregate in (a for a in spec.aggregates if a.column.name in table.column_names):
        name = aggregate.column.name
        alike = id(deeds[name])  # columns that one rule covers share their steps
        if alike not in found:
            own = np.where(removed | lone, SET, deeds[name]).astype(np.int8)
            found[alike] = _steps(groups, own, numbers, adds).without_skips()
        columns[name] = aggregated(concatenated([table[name]])[0], aggregate, found[alike])
    gone = removed[groups.ends - 1] | ~np.logical_or.reduceat(adds, groups.starts)
    return answered(table, groups, columns, np.where(gone, _DELETE, 0).astype(np.int8))


def _check_retracts(spec: MergeSpec, harmless: Mask) -> None:
    """Without sequence groups: refuse retracts that nothing allows."""
    if not spec.removes_on_delete and not harmless.all():
        raise InvalidRequest(
            "merge engine partial-update takes no -D and -U records",
            hint="set ignore-delete, partial-update.remove-record-on-delete or sequence groups",
        )


def _check_values(table: pa.Table, groups: Grouping, spec: MergeSpec, retracting: Mask | None = None) -> None:
    """Without sequence groups: refuse nulls that nothing may overwrite with."""
    for column in spec.value_fields:
        if column.type.nullable or column.name not in table.column_names or not table[column.name].null_count:
            continue
        harmless = groups.placed(validity(concatenated([table[column.name]])[0])) | groups.lone[groups.of_row()]
        if not (harmless if retracting is None else harmless | retracting).all():
            raise InvalidRequest(
                f"column {column.name!r} is NOT NULL, but a record has no value for it", subject=column.name
            )


def _deeds_by_column(spec: MergeSpec, ordered: Mapping[tuple[str, ...], Standing], adds: Mask) -> Mapping[str, Deeds]:
    free = np.where(adds, np.int8(ADD), np.int8(SKIP))
    deeds = {f.name: free for f in spec.value_fields}
    for group in spec.sequence_groups:
        if group.sequence not in ordered:  # nobody asked for a column of this group
            continue
        empty, in_order = ordered[group.sequence]
        plain = np.where(in_order, np.where(adds, SET, CLEAR), SKIP)
        late = np.where(in_order, ADD, ADD_OLDER)
        chosen = np.where(empty, SKIP, np.where(adds, late, RETRACT))
        own = np.where(in_order, SET, SKIP)
        deeds |= {name: chosen if spec.is_aggregated(name) else plain for name in group.members}
        deeds |= dict.fromkeys(group.sequence, own)
    return deeds


def _steps(groups: Groups, deeds: Deeds, numbers: Rows, adds: Mask) -> Steps:
    """The steps of a column, which takes what a retract that comes first holds before that does anything."""
    first_retracts = groups.starts[~adds[groups.starts] & ~groups.lone]
    if len(first_retracts) == 0:
        return Steps(groups.order, deeds, numbers, len(groups.starts))
    rows, of_row = (np.insert(a, first_retracts, a[first_retracts]) for a in (groups.order, numbers))
    return Steps(rows, np.insert(deeds, first_retracts, SET), of_row, len(groups.starts))
