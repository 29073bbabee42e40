"""Update the rows whose keys are given and append the others, in tables with `data-evolution.enabled`.

Invariant: a key only matches rows of its own partition. Nulls in keys are equal. Of several given rows with one key the
last one counts, and all rows of the table with this key are updated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.columns.buffers import combine_column
from paimon.domain.columns.conform import conform_to_fields
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.types.arrow_arrays import to_numpy
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import ROW_ID
from paimon.operations.row_level.row_id_updates import RowIdUpdates
from paimon.operations.table_context import TableContext
from paimon.operations.write.input_rows import open_files, to_arrow_tables
from paimon.operations.write.writer import TableWriter

_Numbers = npt.NDArray[np.int64]
_MATCHED_ROWS = 4_000_000
"""How many rows of the table are compared with the source at once."""


def upsert_by_keys(
    context: TableContext,
    commit_user: str,
    data: Any,
    keys: Sequence[str],
    columns: Sequence[str] | None,
    updates: RowIdUpdates,
) -> list[CommitMessage]:
    """Write the files of an upsert: the updates, and the new rows.

    The data has any form that `Table.write` takes. `keys` identify a row together with the partition columns. `columns`
    are set in rows of the table; None sets all columns of the data.
    """
    schema = context.schema
    tables = list(to_arrow_tables(open_files(context.engine, data), schema.fields))
    given = pa.concat_tables(tables, promote_options="default") if tables else pa.table({})
    match_by = _find_keys(context, keys, given.column_names)
    if not given.num_rows:
        return []
    wanted = list(dict.fromkeys(given.column_names if columns is None else columns))
    key_names = [field.name for field in match_by]
    source_keys = conform_to_fields(given.select(key_names), match_by, f"the keys of table {context.table.table_name}")
    ids, matched = _match_keys(updates, match_by, source_keys)
    messages: list[CommitMessage] = []
    set_columns = [name for name in wanted if name not in schema.partition_keys]
    if len(ids) and set_columns:
        changed = given.select(set_columns).take(pa.array(matched))
        messages += updates.update(changed.append_column(ROW_ID.name, pa.array(ids)), read=key_names)
    new = np.setdiff1d(_last_of_each(_number_keys(source_keys)), matched)
    return [*messages, *_append(context, commit_user, given.take(pa.array(new)))]


def _find_keys(context: TableContext, keys: Sequence[str], given: Sequence[str]) -> tuple[DataField, ...]:
    fields = context.schema.fields_by_name
    if not keys:
        raise InvalidRequest("An upsert needs at least one key column", subject="keys", hint="name some columns")
    for name in keys:
        if name not in fields:
            raise InvalidRequest(f"Column {name!r} does not exist", subject=name, hint=did_you_mean(name, fields))
    names = dict.fromkeys([*context.schema.partition_keys, *keys])
    missing = [name for name in names if name not in given]
    if missing:
        raise InvalidRequest(f"Rows to upsert need the column {missing[0]!r}", subject=missing[0], hint="add it")
    return tuple(fields[name] for name in names)


def _match_keys(updates: RowIdUpdates, columns: Sequence[DataField], source: pa.Table) -> tuple[_Numbers, _Numbers]:
    """Return the ids of the rows that have a key of the source, and for each the last row of the source with this key.

    Memory holds the keys of some million rows of the table at once, and the ids that were found.
    """
    ids, matched = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for stored in _read_keys(updates, columns):
        codes = _number_keys(source, stored)
        source_codes, stored_codes = codes[: source.num_rows], codes[source.num_rows :]
        rows = _last_of_each(source_codes)
        positions = np.minimum(np.searchsorted(source_codes[rows], stored_codes), len(rows) - 1)
        matches = source_codes[rows][positions] == stored_codes
        ids.append(to_numpy(combine_column(stored[ROW_ID.name]))[matches])
        matched.append(rows[positions[matches]])
    return np.concatenate(ids), np.concatenate(matched)


def _read_keys(updates: RowIdUpdates, columns: Sequence[DataField]) -> Iterator[pa.Table]:
    """Yield the keys and ids of all rows, in parts of about the same size."""
    batches: list[pa.RecordBatch] = []
    for group in updates.groups:
        for batch in updates.read_live_rows(group, (*columns, ROW_ID)):
            batches.append(batch)
            if sum(b.num_rows for b in batches) >= _MATCHED_ROWS:
                yield pa.Table.from_batches(batches)
                batches = []
    if batches:
        yield pa.Table.from_batches(batches)


def _number_keys(*tables: pa.Table) -> _Numbers:
    """Return a number for each key of all tables, equal for equal keys."""
    codes: _Numbers = np.zeros(sum(table.num_rows for table in tables), np.int64)
    for name in tables[0].column_names:
        column = combine_column(pa.chunked_array([chunk for table in tables for chunk in table[name].chunks]))
        encoded = column.dictionary_encode(null_encoding="encode")
        pairs = codes * len(encoded.dictionary) + to_numpy(encoded.indices)
        codes = np.unique(pairs, return_inverse=True)[1].astype(np.int64).ravel()
    return codes


def _last_of_each(codes: _Numbers) -> _Numbers:
    """Return the last row of each key, in the order of the keys' numbers."""
    backwards = codes[::-1]
    return (len(codes) - 1 - np.unique(backwards, return_index=True)[1]).astype(np.int64)


def _append(context: TableContext, commit_user: str, rows: pa.Table) -> list[CommitMessage]:
    if not rows.num_rows:
        return []
    writer = TableWriter(context, commit_user)
    try:
        writer.write(rows)
        return writer.prepare_commit()
    finally:
        writer.close()
