"""The partial-update engine without sequence groups on columns: each column keeps its newest value that is not null.

Law: of a key only the adds after its last delete count, and that delete's NOT NULL columns.
Twin: `paimon.domain.merge.reference.partial_update`. Source: `PartialUpdateMergeFunction`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.columnar.order import Groups, Mask, Rows, retracts
from paimon.domain.merge.columnar.words import concatenated
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.types.system import VALUE_KIND

_DELETE = 3


def partial_update(table: pa.Table, groups: Groups, spec: MergeSpec) -> pa.Table:
    """One row a group: of each value column the last that is not null, of the others the last."""
    if len(groups.order) == 0:
        return table.slice(0, 0)
    retract = retracts(table)[groups.order]
    if not spec.options.partial_update_remove_record_on_delete:
        _refuse_retracts(retract & ~groups.lone[groups.of_row()])
    deletes = _deletes(table)[groups.order]
    alive = _after_last(deletes, groups)
    adds = alive & ~retract
    filling = adds | (alive & deletes) | _first(groups)  # what gives a NOT NULL column its value
    last = pa.array(groups.order[groups.ends - 1])
    values = {f.name: f.type.nullable for f in spec.value_fields}
    columns = []
    for name in table.column_names:
        (column,) = concatenated([table[name]])
        if name in values:
            columns.append(column.take(_last_valid(column, groups, adds if values[name] else filling, values[name])))
        elif name == VALUE_KIND.name:
            kinds = np.where(np.logical_or.reduceat(adds, groups.starts), 0, _DELETE)
            own = np.asarray(column.take(last))
            columns.append(pa.array(np.where(groups.lone, own, kinds).astype(np.int8)))
        else:
            columns.append(column.take(last))
    return pa.Table.from_arrays(columns, schema=table.schema)


def _refuse_retracts(found: Mask) -> None:
    if found.any():
        raise InvalidRequest(
            "merge engine partial-update takes no -D and -U records",
            hint="set ignore-delete, or partial-update.remove-record-on-delete",
        )


def _deletes(table: pa.Table) -> Mask:
    if VALUE_KIND.name not in table.column_names:
        return np.zeros(table.num_rows, dtype=np.bool_)
    mask: Mask = np.asarray(concatenated([table[VALUE_KIND.name]])[0]) == _DELETE
    return mask


def _after_last(deletes: Mask, groups: Groups) -> Mask:
    """Places from the last -D of their group on; all places where there is none."""
    places = np.arange(len(deletes))
    last = np.maximum.reduceat(np.where(deletes, places, -1), groups.starts)
    mask: Mask = places >= last[groups.of_row()]
    return mask


def _first(groups: Groups) -> Mask:
    mask = np.zeros(len(groups.order), dtype=np.bool_)
    mask[groups.starts] = True
    return mask


def _last_valid(column: pa.Array, groups: Groups, counts: Mask, nullable: bool) -> pa.Array:
    """Row numbers of each group's last value that counts and is not null, null where there is none."""
    valid = np.asarray(column.is_valid())[groups.order] if column.null_count else np.ones(len(counts), dtype=np.bool_)
    if not nullable and not (valid | ~counts).all():
        raise InvalidRequest("a NOT NULL column of a partial-update table has no value in one of the records")
    places: Rows = np.where(counts & valid, np.arange(len(counts)), -1)
    last = np.maximum.reduceat(places, groups.starts)
    last = np.where(groups.lone, groups.starts, last)
    return pa.array(groups.order[np.maximum(last, 0)], mask=last < 0)
