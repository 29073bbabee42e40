"""Orphan files: what lies in the table's directories and nobody holds.

Law: first everything is listed, then everything that is held is looked up, on every branch; what was held by something
made meanwhile is looked up once more before anything goes. Younger files are left alone, because a writer may be about
to commit them. Whatever cannot be read stops the work. A snapshot that lies astray, left by a writer that died, is an
orphan with all that it alone names. Source: `OrphanFilesClean`, `LocalOrphanFilesClean`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from paimon.domain.errors import CorruptTable
from paimon.domain.manifest.columns import Mask
from paimon.domain.paths import check_within, join
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.commit.lineage import stray_snapshots
from paimon.operations.file_deletion import delete_files
from paimon.operations.maintain.retention.held import held_files
from paimon.operations.maintain.retention.holders import Holder, all_branches, all_holders, unfinished_branches
from paimon.operations.maintain.retention.leavings import remove_if_empty
from paimon.ports.engine import Engine
from paimon.ports.files import FileStatus

DAY_MILLIS = 24 * 60 * 60 * 1000
_AT_ONCE = 1_000
_FILES = pa.schema(
    [("path", pa.string()), ("name", pa.string()), ("size", pa.int64()), ("modified", pa.timestamp("ms", "UTC"))]
)


def orphan_files(engine: Engine, table: TableDefinition, older_than_millis: int) -> pa.Table:
    """The files last written before a time (epoch milliseconds) that nobody holds: `path`, `size`, `modified`.

    Raises
    ------
    CorruptTable, StorageError
        Something that may hold files cannot be read.
    """
    branches = all_branches(engine, table)
    strays = _strays(engine, branches, older_than_millis)
    files = _old_files(engine, table, branches, older_than_millis)
    encoded = files["name"].combine_chunks().dictionary_encode()
    names, places = encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False)
    astray = set(strays["path"].to_pylist())

    def holding(tables: Sequence[TableDefinition]) -> list[Holder]:
        return [holder for holder in all_holders(engine, tables) if holder.path not in astray]

    holders = holding(branches)

    def again() -> list[Holder]:
        holders[:] = holding(all_branches(engine, table))
        return holders

    held = held_files(engine, holders, names, again) if files.num_rows else np.zeros(0, dtype=bool)
    if not held.all():
        held |= _held_meanwhile(engine, table, holders, astray, names)
    return pa.concat_tables([files.filter(pa.array(~held[places])), strays]).drop_columns(["name"])


def remove_orphans(engine: Engine, table: TableDefinition, older_than_millis: int) -> pa.Table:
    """Delete the orphan files; answers them, see `orphan_files`."""
    unfinished = _old_unfinished(engine, table, older_than_millis)
    found = orphan_files(engine, table, older_than_millis)
    for start in range(0, found.num_rows, _AT_ONCE):
        delete_files(engine, found["path"].slice(start, _AT_ONCE).to_pylist())
        engine.observer.progress("removing orphan files", min(start + _AT_ONCE, found.num_rows), found.num_rows)
    if table.options.snapshot_clean_empty_directories:
        parents = {path.rpartition("/")[0] for path in found["path"].to_pylist()}
        buckets = {path for path in parents if path.rpartition("/")[2].startswith("bucket-")}
        remove_if_empty(engine, buckets, len(table.schema.partition_keys))
    engine.files.delete(unfinished)
    return found


def _old_unfinished(engine: Engine, table: TableDefinition, older_than_millis: int) -> list[str]:
    """Return the old directories of branches whose making or deletion was cut short, inner ones first.

    Deleting them removes only those that are empty by then, so that who makes the branch again loses nothing.
    """
    found: list[str] = []
    for branch in unfinished_branches(engine, table):
        files, directories = _tree(engine, branch.path)
        times = [s.modified_millis for s in (branch, *files, *directories)]
        if all(time is not None and time < older_than_millis for time in times):
            found += [*(s.path for s in reversed(directories)), branch.path]
    return found


def _tree(engine: Engine, directory: str) -> tuple[list[FileStatus], list[FileStatus]]:
    """Return all files and all directories below, each directory before what it holds."""
    files: list[FileStatus] = []
    directories: list[FileStatus] = []
    for status in engine.files.list(directory):
        if not status.is_directory:
            files.append(status)
            continue
        inner_files, inner = _tree(engine, status.path)
        files += inner_files
        directories += [status, *inner]
    return files, directories


def _held_meanwhile(
    engine: Engine, table: TableDefinition, known: Sequence[Holder], astray: set[str], names: pa.Array
) -> Mask:
    """What is held by snapshots, tags and branches that came while the first look lasted."""
    seen = {(h.path, h.snapshot.delta_manifest_list) for h in known}

    def fresh() -> list[Holder]:
        now = all_holders(engine, all_branches(engine, table))
        return [h for h in now if (h.path, h.snapshot.delta_manifest_list) not in seen and h.path not in astray]

    return held_files(engine, fresh(), names, fresh)


def _strays(engine: Engine, branches: Sequence[TableDefinition], older_than_millis: int) -> pa.Table:
    """The files of snapshots that lie astray and are old enough that nobody is about to look after them."""
    found = [table.paths.snapshot(s.id) for table in branches for s in stray_snapshots(engine, table)]
    return _as_table([s for path in found if (s := engine.files.status(path)) is not None], older_than_millis)


def _as_table(found: Sequence[FileStatus], older_than_millis: int) -> pa.Table:
    """Those of the files that were last written before a time."""
    old = [s for s in found if s.modified_millis is not None and s.modified_millis < older_than_millis]
    rows = [(s.path, s.name, s.size, s.modified_millis) for s in old]
    columns = list(zip(*rows, strict=True)) or [()] * len(_FILES)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _FILES, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_FILES)


def _old_files(
    engine: Engine, table: TableDefinition, branches: Sequence[TableDefinition], older_than_millis: int
) -> pa.Table:
    parts = []
    count = 0
    for found in _listings(engine, table, branches):
        parts.append(_as_table(found, older_than_millis))
        count += len(found)
        engine.observer.progress("listing files", count)
    return pa.concat_tables(parts) if parts else _FILES.empty_table()


def _listings(
    engine: Engine, table: TableDefinition, branches: Sequence[TableDefinition]
) -> Iterator[list[FileStatus]]:
    """The files of the directories whose content is known, one directory at a time; others are left alone."""
    root = table.location
    for name in ("manifest", "index", "statistics"):
        yield _files(engine, join(root, name))
    data = [table.paths.data_root(table.options.data_file_path_directory or ""), *_external_roots(table)]
    for directory in dict.fromkeys(data):
        for bucket in _bucket_directories(engine, directory, len(table.schema.partition_keys)):
            yield _files(engine, bucket)
    for branch in branches:
        for directory, prefix in ((branch.paths.snapshots, "snapshot-"), (branch.paths.changelogs, "changelog-")):
            known = ("EARLIEST", "LATEST")
            files = _files(engine, directory)
            yield [s for s in files if s.name not in known and not s.name.startswith(prefix)]
        for directory in (branch.paths.schemas, branch.paths.tags, branch.paths.consumers):
            yield [s for s in _files(engine, directory) if s.name.startswith(".")]  # what crashed writers left
    for unfinished in unfinished_branches(engine, table):
        yield _tree(engine, unfinished.path)[0]


def _files(engine: Engine, directory: str) -> list[FileStatus]:
    return [s for s in engine.files.list(directory) if not s.is_directory]


def _bucket_directories(engine: Engine, directory: str, levels: int) -> Iterator[str]:
    for status in engine.files.list(directory):
        if not status.is_directory:
            continue
        if levels == 0 and status.name.startswith("bucket-"):
            yield join(directory, status.name)
        elif levels > 0 and "=" in status.name:
            yield from _bucket_directories(engine, join(directory, status.name), levels - 1)


def _external_roots(table: TableDefinition) -> list[str]:
    """The external paths of data files that the caller allows to be touched."""
    found = []
    for root in table.options.data_file_external_paths:
        try:
            found.append(check_within(root, (table.location, *table.allowed_roots), root))
        except CorruptTable:
            continue
    return found
