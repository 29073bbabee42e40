"""Prune files by the file indexes that their manifest entries contain.

Invariant: A file is pruned only if its own indexes prove that no row is selected. A column whose type changed proves
nothing.
Source: `AppendOnlyFileStoreScan.testFileIndex`, `KeyValueFileStoreScan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from paimon.domain.columns.buffers import read_validity
from paimon.domain.manifest.entry_columns import EntryColumns, Integers, Mask
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import rename_columns, restrict_to_columns
from paimon.domain.schema.read_mapping import map_fields
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.arrow_arrays import from_numpy


def index_masks(
    entries: EntryColumns, predicate: Predicate, schema: TableSchema, schemas: Mapping[int, TableSchema]
) -> dict[str, Mask]:
    """Return for the embedded indexes that prune files, such as "bitmap(color)", which files they leave."""
    stored = entries.files.field("_EMBEDDED_FILE_INDEX")
    masks: dict[str, Mask] = {}
    rows = np.flatnonzero(read_validity(stored))
    if not len(rows):
        return masks
    from paimon.domain.index.select_rows import FileIndexes  # loaded where manifests contain indexes

    names, counts, ids = (_take(entries, name, rows) for name in ("_FILE_NAME", "_ROW_COUNT", "_SCHEMA_ID"))
    conditions = {i: restrict_to_stored(predicate, schema, schemas[i]) for i in set(ids)}
    types = {i: {f.name: f.type for f in schemas[i].fields} for i in conditions}
    for row, data, name, count, schema_id in zip(
        rows.tolist(), stored.take(from_numpy(rows)), names, counts, ids, strict=True
    ):
        condition = conditions[schema_id]
        if condition is not None:
            indexes = FileIndexes.of(data.as_py(), f"the embedded index of {name}", count, types[schema_id])
            selection = indexes.select(condition)
            if selection.is_empty:
                label = ", ".join(selection.indexes)
                masks.setdefault(label, np.ones(len(entries), dtype=bool))[row] = False
    return masks


def _take(entries: EntryColumns, name: str, rows: Integers) -> list[Any]:
    return list(entries.files.field(name).take(from_numpy(rows)).to_pylist())


def restrict_to_stored(predicate: Predicate, schema: TableSchema, written: TableSchema) -> Predicate | None:
    """Return the part of a predicate that files of another schema can answer, with the names of the columns there."""
    wanted = [f for f in schema.fields if f.name not in schema.partition_keys]
    mappings = map_fields(wanted, written.fields)
    names = {m.wanted.name: m.source.name for m in mappings if m.source is not None and not m.needs_cast}
    restricted = restrict_to_columns(predicate, names)
    return None if restricted is None else rename_columns(restricted, names)
