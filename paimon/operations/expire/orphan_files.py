"""Find and delete orphan files: files in the directories of a table that nothing references.

Invariant: files are listed first, then all references on all branches are read. References that appear in the meantime
are read once more before a file is deleted. Recent files stay, because a writer may be about to commit them. Metadata
that cannot be read stops the work. A detached snapshot, left by a writer that crashed, is an orphan file, together with
all files that only it references.

Source: `OrphanFilesClean`, `LocalOrphanFilesClean`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa

from paimon.domain.errors import CorruptTable
from paimon.domain.manifest.entry_columns import Mask
from paimon.domain.paths import check_within, join_path
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.commit.lineage import find_detached_snapshots
from paimon.operations.expire.files_to_delete import delete_empty_directories
from paimon.operations.expire.referenced_files import find_referenced_files
from paimon.operations.expire.references import Reference, list_unfinished_branches, read_all_references, read_branches
from paimon.operations.metadata.delete_files import delete_files
from paimon.operations.metadata.table_identity import on_same_table
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.ports.files import FileStatus

DAY_MILLIS = 24 * 60 * 60 * 1000
_SCHEMA = pa.schema(
    [("path", pa.string()), ("name", pa.string()), ("size", pa.int64()), ("modified", pa.timestamp("ms", "UTC"))]
)


@on_same_table
def find_orphan_files(context: TableContext, older_than_millis: int) -> pa.Table:
    """Return the unreferenced files that were last written before a time (epoch milliseconds).

    Returns
    -------
    pa.Table
        One row for each file: `path`, `size` (bytes), `modified`.

    Raises
    ------
    CorruptTable, StorageError
        A reference cannot be read.
    """
    branches = read_branches(context)
    detached = _list_detached_snapshots(branches, older_than_millis)
    files = _list_old_files(context, branches, older_than_millis)
    encoded = files["name"].combine_chunks().dictionary_encode()
    names, places = encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False)
    detached_paths = set(detached["path"].to_pylist())

    def read_references(branches: Sequence[TableContext]) -> list[Reference]:
        """Return the references on these branches except detached snapshots."""
        return [h for h in read_all_references(branches) if h.path not in detached_paths]

    references = read_references(branches)

    def read_again() -> list[Reference]:
        """Read all references again."""
        references[:] = read_references(read_branches(context))
        return references

    needed = find_referenced_files(references, names, read_again) if files.num_rows else np.zeros(0, dtype=bool)
    if not needed.all():
        needed |= _find_referenced_since(context, references, detached_paths, names)
    return pa.concat_tables([files.filter(pa.array(~needed[places])), detached]).drop_columns(["name"])


@on_same_table
def remove_orphans(context: TableContext, older_than_millis: int) -> pa.Table:
    """Delete the orphan files, and return them as `find_orphan_files` does."""
    unfinished = _list_old_unfinished_branches(context, older_than_millis)
    found = find_orphan_files(context, older_than_millis)
    delete_files(context.engine, found["path"].to_pylist())
    if context.options.snapshot_clean_empty_directories:
        parents = {path.rpartition("/")[0] for path in found["path"].to_pylist()}
        buckets = {path for path in parents if path.rpartition("/")[2].startswith("bucket-")}
        delete_empty_directories(context, buckets)
    context.files.delete(unfinished)
    return found


def _list_old_unfinished_branches(context: TableContext, older_than_millis: int) -> list[str]:
    """Return the old directories of branches whose creation or deletion was interrupted, inner ones first.

    Deleting them removes only empty directories, so that a process that creates the branch again loses nothing.
    """
    found: list[str] = []
    for branch in list_unfinished_branches(context):
        files, directories = _list_tree(context.engine, branch.path)
        times = [s.modified_millis for s in (branch, *files, *directories)]
        if all(time is not None and time < older_than_millis for time in times):
            found += [*(s.path for s in reversed(directories)), branch.path]
    return found


def _list_tree(engine: Engine, directory: str) -> tuple[list[FileStatus], list[FileStatus]]:
    """Return all files and all directories below, each directory before its contents."""
    files: list[FileStatus] = []
    directories: list[FileStatus] = []
    for status in engine.files.list(directory):
        if not status.is_directory:
            files.append(status)
            continue
        inner_files, inner = _list_tree(engine, status.path)
        files += inner_files
        directories += [status, *inner]
    return files, directories


def _find_referenced_since(
    context: TableContext, known: Sequence[Reference], detached_paths: set[str], names: pa.Array
) -> Mask:
    """Return a mask of the files that references need which appeared during the first check."""
    seen = {(h.path, h.snapshot.delta_manifest_list) for h in known}

    def read_new_references() -> list[Reference]:
        """Return the references that the first check did not read."""
        now = read_all_references(read_branches(context))
        return [h for h in now if (h.path, h.snapshot.delta_manifest_list) not in seen and h.path not in detached_paths]

    return find_referenced_files(read_new_references(), names, read_new_references)


def _list_detached_snapshots(branches: Sequence[TableContext], older_than_millis: int) -> pa.Table:
    """Return the files of old detached snapshots."""
    found = (b.files.status(b.paths.snapshot(s.id)) for b in branches for s in find_detached_snapshots(b))
    return _select_old_files([status for status in found if status is not None], older_than_millis)


def _select_old_files(found: Sequence[FileStatus], older_than_millis: int) -> pa.Table:
    """Return the files that were last written before a time."""
    old = [s for s in found if s.modified_millis is not None and s.modified_millis < older_than_millis]
    rows = [(s.path, s.name, s.size, s.modified_millis) for s in old]
    columns = list(zip(*rows, strict=True)) or [()] * len(_SCHEMA)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)


def _list_old_files(context: TableContext, branches: Sequence[TableContext], older_than_millis: int) -> pa.Table:
    """Return the old files of the known directories; the executor lists those of data files."""
    metadata = list(chain.from_iterable(_list_metadata_files(context, branches)))
    parts = [_select_old_files(metadata, older_than_millis)]
    tasks = list(_find_data_directories(context))
    list_directory = partial(_list_data_directory, context.engine, older_than_millis)
    for done, part in enumerate(context.engine.executor.map(list_directory, tasks), 1):
        parts.append(part)
        context.engine.observer.progress("listing directories", done, len(tasks))
    return pa.concat_tables(parts)


def _list_metadata_files(context: TableContext, branches: Sequence[TableContext]) -> Iterator[list[FileStatus]]:
    """Yield the files of one known directory after another; other directories are left alone."""
    for name in ("manifest", "index", "statistics"):
        yield _list_files(context.engine, join_path(context.table.location, name))
    for branch in branches:
        for directory, prefix in ((branch.paths.snapshots, "snapshot-"), (branch.paths.changelogs, "changelog-")):
            known = ("EARLIEST", "LATEST")
            files = _list_files(context.engine, directory)
            yield [s for s in files if s.name not in known and not s.name.startswith(prefix)]
        for directory in (branch.paths.schemas, branch.paths.tags, branch.paths.consumers):
            yield [s for s in _list_files(context.engine, directory) if s.name.startswith(".")]  # from crashed writers
    for unfinished in list_unfinished_branches(context):
        yield _list_tree(context.engine, unfinished.path)[0]


def _find_data_directories(context: TableContext) -> Iterator[tuple[str, int]]:
    """Yield the buckets of a table without partitions, or its first level of partitions, with the levels below."""
    roots = [
        context.paths.data_root(context.options.data_file_path_directory or ""),
        *_find_external_roots(context.table),
    ]
    levels = len(context.schema.partition_keys)
    for root in dict.fromkeys(roots):
        for directory in _list_level(context.engine, root, levels):
            yield directory, levels


def _list_data_directory(engine: Engine, older_than_millis: int, task: tuple[str, int]) -> pa.Table:
    """Return the old files of the buckets below a directory."""
    directory, levels = task
    buckets = _list_bucket_directories(engine, directory, levels - 1) if levels else [directory]
    return pa.concat_tables(
        [
            _SCHEMA.empty_table(),
            *(_select_old_files(_list_files(engine, bucket), older_than_millis) for bucket in buckets),
        ]
    )


def _list_files(engine: Engine, directory: str) -> list[FileStatus]:
    return [s for s in engine.files.list(directory) if not s.is_directory]


def _list_bucket_directories(engine: Engine, directory: str, levels: int) -> Iterator[str]:
    for inner in _list_level(engine, directory, levels):
        if levels:
            yield from _list_bucket_directories(engine, inner, levels - 1)
        else:
            yield inner


def _list_level(engine: Engine, directory: str, levels: int) -> list[str]:
    """Return the directories of partitions in a directory, or those of buckets if no level of partitions is below."""
    return [
        join_path(directory, status.name)
        for status in engine.files.list(directory)
        if status.is_directory and ("=" in status.name if levels else status.name.startswith("bucket-"))
    ]


def _find_external_roots(table: TableDefinition) -> list[str]:
    """Return the external paths of data files that lie within the allowed roots."""
    found = []
    for root in table.options.data_file_external_paths:
        try:
            found.append(check_within(root, (table.location, *table.allowed_roots), root))
        except CorruptTable:
            continue
    return found
