"""Read the global indexes of a snapshot, and find the rows that a predicate can select.

Invariant: no row for which the predicate is true is left out. Of an index file, the footer, the list of blocks and the
blocks of the condition are read.
Source: `GlobalIndexScanner`, `DataEvolutionBatchScan`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import compress

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.index.btree_blocks import KeyBounds, Numbers
from paimon.domain.index.btree_keys import BtreeKeys
from paimon.domain.index.btree_reader import BtreeFile, ReadRange
from paimon.domain.manifest.entries import IndexManifestEntry
from paimon.domain.predicate.evaluate_row import matches
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import columns_of, restrict_to_columns
from paimon.domain.row.binary_row import deserialize
from paimon.domain.scan.prune_by_global_index import BTREE, Wanted, find_indexes, has_one_type, range_of, select_row_ids
from paimon.domain.scan.row_id_ranges import RowIdRanges
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.data_types import DataField
from paimon.operations.data_files.cached_blocks import CachedBlockFiles
from paimon.operations.metadata.manifests import index_path, read_index_manifest
from paimon.operations.metadata.schemas import load_schemas, schema_ids
from paimon.operations.table_context import TableContext

_ENTRY_BYTES = 500
"""The memory of a cached value without its bytes; schemas are cached by themselves, too."""
_DAMAGED = "is a damaged global index"
_HINT = "drop it with drop_global_index, or set global-index.enabled to false"
_NO_ROWS: Numbers = np.empty(0, np.int64)


@frozen(eq=False)
class IndexedRows:
    """The rows that a predicate can select by global indexes."""

    ids: RowIdRanges
    # the indexes, such as "btree(name)"
    names: tuple[str, ...]


def find_indexed_rows(context: TableContext, snapshot: Snapshot, predicate: Predicate) -> IndexedRows | None:
    """Return the rows that a bound predicate can select by the indexes of a snapshot; None if it is all rows."""
    columns = {f.name: f for f in context.schema.fields if f.name in columns_of(predicate)}
    indexes = find_readable_indexes(context, snapshot, columns.values())
    if not indexes:
        return None
    chosen = {column.name: _select_partitions(context, files, predicate) for column, files in indexes}
    ids = select_row_ids(predicate, columns, chosen, partial(_search_files, context))
    return None if ids is None else IndexedRows(ids, tuple(f"{BTREE}({name})" for name in sorted(chosen)))


def find_readable_indexes(
    context: TableContext, snapshot: Snapshot, columns: Iterable[DataField]
) -> list[tuple[DataField, Sequence[IndexManifestEntry]]]:
    """Return the columns with indexes, and the files of each; columns whose type changed are left out."""
    if snapshot.index_manifest is None:
        return []
    by_name = {column.name: column for column in columns}
    indexes = find_indexes(read_index_manifest(context, snapshot.index_manifest), by_name.values())
    schemas = _load_history(context, snapshot) if indexes else ()
    return [(by_name[name], files) for name, files in indexes.items() if has_one_type(schemas, by_name[name])]


def _load_history(context: TableContext, snapshot: Snapshot) -> Sequence[TableSchema]:
    """Return the schemas under which the indexes of a snapshot may have been built; they are cached with it."""
    last = max(context.schema.id, snapshot.schema_id)
    if last == context.schema.id == 0:
        return (context.schema,)
    # branches share index manifests, and have their own schemas
    path, view = context.paths.manifest(snapshot.index_manifest or ""), f"{context.paths.schemas} up to {last}"
    cached = context.engine.cache.get(path, view)
    if isinstance(cached, tuple):
        return cached
    ids = [number for number in schema_ids(context.engine, context.paths) if number <= last]
    found = tuple(load_schemas(context, ids).values())
    context.engine.cache.put(path, found, _ENTRY_BYTES * (1 + len(found)), view)
    return found


def _select_partitions(
    context: TableContext, files: Sequence[IndexManifestEntry], predicate: Predicate
) -> Sequence[IndexManifestEntry]:
    """Return the index files of the partitions that a predicate admits; the rows of the others are not planned."""
    fields = context.schema.partition_fields
    condition = restrict_to_columns(predicate, [f.name for f in fields])
    if condition is None:
        return files
    types = [f.type for f in fields]

    def is_wanted(entry: IndexManifestEntry) -> bool:
        """Return whether a row of the partition of an index file can match."""
        values = deserialize(entry.partition, types)
        row = dict(zip([f.name for f in fields], values, strict=True))
        return matches(condition, row) is True

    return [entry for entry in files if is_wanted(entry)]


def _search_files(
    context: TableContext, column: DataField, entries: Sequence[IndexManifestEntry], wanted: Wanted
) -> Iterator[Numbers | None]:
    """Yield the rows of each index file; those whose first and last key exclude the condition are not opened."""
    keys = BtreeKeys(column.type)
    is_chosen = [_may_have(context, entry, keys, wanted) for entry in entries]
    search = partial(_search, context.for_tasks(sum(is_chosen)), column, wanted)
    results = context.engine.executor.map(search, list(compress(entries, is_chosen)))
    # one by one: the row ids of all files together may be too many for memory
    yield from (next(results) if chosen else _NO_ROWS for chosen in is_chosen)


def _may_have(context: TableContext, entry: IndexManifestEntry, keys: BtreeKeys, wanted: Wanted) -> bool:
    """Return whether the first and last key of an index file admit a row of the condition."""
    try:
        return wanted.is_in(keys, KeyBounds.decode(range_of(entry).index_meta or b""))
    except ValueError as error:
        path = index_path(context.table, entry, "index manifest")
        raise CorruptTable(path, f"{_DAMAGED}: {error}", hint=_HINT) from error


def _search(context: TableContext, column: DataField, wanted: Wanted, entry: IndexManifestEntry) -> Numbers | None:
    """Return the rows of one index file, relative to its range; None if they are too many."""
    path = index_path(context.table, entry, "index manifest")
    files = CachedBlockFiles(context.engine.files, context.engine.cache)
    try:
        with files.open(path) as source:
            return wanted.search(open_index(column, entry, lambda at, size: bytes(source.read_at(size, at))))
    except NotFound as error:
        raise CorruptTable(path, "does not exist, but the index manifest references it", hint=_HINT) from error
    except (ValueError, pa.ArrowException, OSError) as error:
        raise CorruptTable(path, f"{_DAMAGED}: {error}", hint=_HINT) from error


def find_index_fault(context: TableContext, column: DataField, entry: IndexManifestEntry) -> str | None:
    """Read a whole index file, and return how it differs from its manifest entry; None if it does not."""
    index, rows, path = range_of(entry), 0, index_path(context.table, entry, "index manifest")
    last = index.row_range_end - index.row_range_start
    try:
        with context.files.open(path) as source:
            file = open_index(column, entry, lambda at, size: bytes(source.read_at(size, at)))
            for ids in file.read_row_ids():
                rows += 0 if ids is None else len(ids)
                if ids is not None and len(ids) and (ids.min() < 0 or ids.max() > last):
                    return f"has row ids outside 0 to {last}, the range of its index manifest entry"
                if ids is None:
                    return None  # the rows of null are too many to count
    except NotFound:
        return None  # the check of the manifest reports it
    except (ValueError, pa.ArrowException, OSError) as error:
        return f"{_DAMAGED}: {error}"
    return None if rows == entry.row_count else f"names {rows} rows; the index manifest records {entry.row_count}"


def open_index(column: DataField, entry: IndexManifestEntry, read: ReadRange) -> BtreeFile:
    """Return an index file, of which parts are read by `read`."""
    bounds = KeyBounds.decode(range_of(entry).index_meta or b"")
    return BtreeFile(entry.file_size, BtreeKeys(column.type), bounds, read)
