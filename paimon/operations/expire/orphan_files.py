"""Find and delete orphan files: files in the directories of a table that nothing references.

Invariant: files are listed first, then all references on all branches are read. References that appear in the meantime
are read once more before a file is deleted. Files that are young by the storage's clock stay, because a writer may be
about to commit them. Metadata that cannot be read stops the work. A detached snapshot, left by a writer that crashed,
is an orphan file, together with all files that only it references. A directory outside the table is left out if another
table of the warehouse has declared it, too, because no file there shows which table it belongs to; Java deletes the
files of the other table.

Source: `OrphanFilesClean`, `LocalOrphanFilesClean`.
"""

# A file is an orphan if it was written before a moment, by default a day ago, and nothing references it. The order of
# the steps is what makes this safe while other processes write:
#
#     1. now              a probe file shows the time of the storage; the clock of this machine does not count
#     2. list files       manifests, index files, statistics, temporary files of crashed writers, all buckets
#     3. references       all snapshots, tags and changelogs of all branches, without detached snapshots
#     4. referenced?      the names of old files are looked up in the metadata of the references
#     5. references since once more for references that appeared after step 3
#     6. delete           what is left
#
#     writer:  writes data-9.orc                              commits snapshot 12, which references data-9
#     orphans:                     lists data-9, reads 1..11                           reads 12: data-9 is needed
#
# A file that a writer has written and not committed yet looks like an orphan. The age protects it: a commit must follow
# its files within a day. Step 5 protects old files that a reference needs again, such as a new tag or branch.
#
# A detached snapshot was published by a process that had stopped so long that its id was used and expired before. It is
# not a reference; it is an orphan, together with its files. Only known directories are listed, so a file that a user
# put elsewhere into the directory of the table is never deleted.

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from paimon.domain.errors import InvalidRequest, PaimonError, PaimonWarning, Unsupported
from paimon.domain.manifest.entry_columns import Mask
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import MAIN_BRANCH, TablePaths, is_within, join_path, may_overlap
from paimon.domain.schema.external_paths import ENTROPY_LEVELS, find_bucket_directory, is_entropy
from paimon.operations.commit.publish import find_detached_snapshots
from paimon.operations.expire.files_to_delete import delete_empty_bucket_directories
from paimon.operations.expire.referenced_files import find_referenced_files
from paimon.operations.expire.references import Reference, list_unfinished_branches, read_all_references, read_branches
from paimon.operations.metadata.metadata_files import delete_files
from paimon.operations.metadata.schemas import load_schema, on_same_table, schema_ids
from paimon.operations.metadata.snapshots import list_branch_directories
from paimon.operations.metadata.storage_time import OlderThan, find_newest_millis, probe_storage_millis
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.ports.files import FileStatus

DAY_MILLIS = 24 * 60 * 60 * 1000
A_DAY = OlderThan(DAY_MILLIS)
_SCHEMA = pa.schema(
    [("path", pa.string()), ("name", pa.string()), ("size", pa.int64()), ("modified", pa.timestamp("ms", "UTC"))]
)


@frozen
class _Listing:
    """All files that can be orphans, and all detached snapshots; `newest_millis` is None on a storage without times."""

    branches: Sequence[TableContext]
    detached: pa.Table
    files: pa.Table
    newest_millis: int | None


@on_same_table
def find_orphan_files(context: TableContext, older_than: OlderThan = A_DAY) -> pa.Table:
    """Return unreferenced old files (`path`, `size`, `modified`); now is the time of the newest listed file."""
    listing = _list_files_of_table(context)
    now = _require_time(context, listing.newest_millis)
    return _select_orphans(context, listing, older_than.to_moment_millis(now))


@on_same_table
def remove_orphans(context: TableContext, older_than: OlderThan = A_DAY, *, allow_young: bool = False) -> pa.Table:
    """Delete and return the orphan files; without a write, now is the time of the newest listed file."""
    now = probe_storage_millis(context)
    if now is not None:
        _check_age(older_than, now, allow_young)
    listing = _list_files_of_table(context)
    if now is None:
        now = _require_time(context, listing.newest_millis)
        _check_age(older_than, max(now, older_than.moment_millis or 0), allow_young)
    before_millis = min(now, older_than.to_moment_millis(now))
    unfinished = _list_old_unfinished_branches(context, before_millis)
    found = _select_orphans(context, listing, before_millis)
    delete_files(context.engine, found["path"].to_pylist())
    if context.options.snapshot_clean_empty_directories:
        parents = {path.rpartition("/")[0] for path in found["path"].to_pylist()}
        buckets = {path for path in parents if find_bucket_directory(path).rpartition("/")[2].startswith("bucket-")}
        delete_empty_bucket_directories(context, buckets)
    context.files.delete(unfinished)
    return found


def _require_time(context: TableContext, now_millis: int | None) -> int:
    if now_millis is None:
        raise Unsupported(
            f"removal of orphan files on a storage without modification times: {context.table.location}",
            hint="delete unreferenced files with the tools of the storage",
        )
    return now_millis


def _check_age(older_than: OlderThan, now_millis: int, allow_young: bool) -> None:
    before = older_than.to_moment_millis(now_millis)
    if before > now_millis or (before > now_millis - DAY_MILLIS and not allow_young):
        raise InvalidRequest(
            "Orphan files younger than a day may belong to writers that have not committed yet.",
            subject="older_than",
            hint="give an earlier time, or allow_young=True if no process writes",
        )


def _select_orphans(context: TableContext, listing: _Listing, before_millis: int) -> pa.Table:
    """Return the unreferenced files that were last written before a time."""
    detached = _select_old_files(listing.detached, before_millis)
    files = _select_old_files(listing.files, before_millis)
    encoded = files["name"].combine_chunks().dictionary_encode()
    names, places = encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False)
    detached_paths = set(detached["path"].to_pylist())

    def read_references(branches: Sequence[TableContext]) -> list[Reference]:
        """Return the references on these branches except detached snapshots."""
        return [h for h in read_all_references(branches) if h.path not in detached_paths]

    references = read_references(listing.branches)

    def read_again() -> list[Reference]:
        """Read all references again."""
        references[:] = read_references(read_branches(context))
        return references

    needed = find_referenced_files(references, names, read_again) if files.num_rows else np.zeros(0, dtype=bool)
    if not needed.all():
        needed |= _find_referenced_since(context, references, detached_paths, names)
    return pa.concat_tables([files.filter(pa.array(~needed[places])), detached]).drop_columns(["name"])


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


def _list_files_of_table(context: TableContext) -> _Listing:
    """List the known directories; the executor lists those of data files."""
    branches = read_branches(context)
    found = (b.files.status(b.paths.snapshot(s.id)) for b in branches for s in find_detached_snapshots(b))
    detached = [status for status in found if status is not None]
    metadata = list(chain.from_iterable(_list_metadata_files(context, branches)))
    newest = [find_newest_millis((*detached, *(status for status, _ in metadata)))]
    parts = [_to_table([status for status, is_candidate in metadata if is_candidate])]
    tasks = list(_find_data_directories(context, branches))
    for done, part in enumerate(context.engine.executor.map(partial(_list_data_directory, context.engine), tasks), 1):
        parts.append(part)
        last = pc.max(part["modified"]).value
        newest.append(None if last is None else last + 1)
        context.engine.observer.progress("listing directories", done, len(tasks))
    times = [time for time in newest if time is not None]
    return _Listing(branches, _to_table(detached), pa.concat_tables(parts), max(times, default=None))


def _to_table(found: Sequence[FileStatus]) -> pa.Table:
    rows = [(s.path, s.name, s.size, s.modified_millis) for s in found]
    columns = list(zip(*rows, strict=True)) or [()] * len(_SCHEMA)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)


def _select_old_files(files: pa.Table, before_millis: int) -> pa.Table:
    """Return the files that were last written before a time; those without a time are never old."""
    return files.filter(pc.less(files["modified"].cast(pa.int64()), before_millis))


def _list_metadata_files(
    context: TableContext, branches: Sequence[TableContext]
) -> Iterator[list[tuple[FileStatus, bool]]]:
    """Yield the files of one known directory after another, with whether each can be an orphan."""

    def list_directory(directory: str, can_be_orphan: Callable[[str], bool]) -> list[tuple[FileStatus, bool]]:
        return [(s, can_be_orphan(s.name)) for s in _list_files(context.engine, directory)]

    for name in ("manifest", "index", "statistics"):
        yield list_directory(join_path(context.table.location, name), lambda _: True)
    for paths in (branch.paths for branch in branches):
        for directory, prefix in ((paths.snapshots, "snapshot-"), (paths.changelogs, "changelog-")):
            yield list_directory(directory, partial(_is_unknown_name, prefix))
        for directory in (paths.schemas, paths.tags, paths.consumers, paths.last_commits):
            yield list_directory(directory, lambda name: name.startswith("."))  # from crashed writers
    for unfinished in list_unfinished_branches(context):
        yield [(s, True) for s in _list_tree(context.engine, unfinished.path)[0]]


def _is_unknown_name(prefix: str, name: str) -> bool:
    return name not in ("EARLIEST", "LATEST") and not name.startswith(prefix)


def _find_data_directories(context: TableContext, branches: Sequence[TableContext]) -> Iterator[tuple[str, int]]:
    """Yield the buckets of a table without partitions, or its first level of partitions, with the levels below."""
    levels = len(context.schema.partition_keys)
    for root in find_data_roots(context, branches):
        for directory in _list_level(context.engine, root, levels):
            yield directory, levels


def _list_data_directory(engine: Engine, task: tuple[str, int]) -> pa.Table:
    """Return the files of the buckets below a directory."""
    directory, levels = task
    buckets = _list_bucket_directories(engine, directory, levels - 1) if levels else [directory]
    found = (_to_table(_list_bucket(engine, bucket)) for bucket in buckets)
    return pa.concat_tables([_SCHEMA.empty_table(), *found])


def _list_bucket(engine: Engine, directory: str, levels: int = ENTROPY_LEVELS) -> list[FileStatus]:
    """Return the files of a bucket, also those below the directories that `entropy-inject` adds."""
    entries = engine.files.list(directory)
    found = [s for s in entries if not s.is_directory]
    for inner in entries if levels else ():
        if inner.is_directory and is_entropy(inner.name):
            found += _list_bucket(engine, join_path(directory, inner.name), levels - 1)
    return found


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


_Others: TypeAlias = "tuple[str, AbstractSet[str] | None]"
"""The directory of another table, and its external roots; None if its metadata cannot be read."""


def find_data_roots(context: TableContext, branches: Sequence[TableContext]) -> list[str]:
    """Return the roots of data files by the options of the table, and of all schemas on all branches.

    Warns about a root outside the table that is left out: one of another table, or if another table is unreadable.
    """
    stored = chain.from_iterable(_list_options(branch.engine, branch.paths) for branch in branches)
    options = [context.options, *stored]
    own = dict.fromkeys(context.paths.data_root(o.data_file_path_directory or "") for o in options)
    allowed = context.table.roots
    external = dict.fromkeys(r for o in options for r in _list_external_roots(o) if is_within(r, allowed))
    others = list(_list_roots_of_others(context)) if external else []
    return [*own, *(root for root in external if root not in own and not _is_shared(context, root, others))]


def _is_shared(context: TableContext, root: str, others: Sequence[_Others]) -> bool:
    """Return whether a root overlaps another table's or lies in its directory, and warn; unknown roots (None) may."""
    for location, roots in others:
        if roots is None or is_within(root, [location]) or any(may_overlap(root, other) for other in roots):
            why = f"the metadata of {location!r} cannot be read" if roots is None else f"table {location!r} has it, too"
            text = f"Table {context.table.table_name!r}: orphan files below {root!r} stay, because {why}"
            warnings.warn(text, PaimonWarning, stacklevel=8)
            return True
    return False


def _list_options(engine: Engine, paths: TablePaths) -> Iterator[TableOptions]:
    for schema_id in schema_ids(engine, paths):
        yield TableOptions.of(load_schema(engine, paths, schema_id).options)


def _list_external_roots(options: TableOptions) -> list[str]:
    directory = options.data_file_path_directory or ""
    return [join_path(root, directory) for root in options.data_file_external_paths]


def _list_roots_of_others(context: TableContext) -> Iterator[_Others]:
    """Yield the other tables of the warehouse (or of the parent directory) with their external roots."""
    own = context.table.location
    parent = own.rpartition("/")[0]
    databases = [parent]
    if parent.endswith(".db"):
        found = context.files.list(parent.rpartition("/")[0])
        databases = [status.path for status in found if status.is_directory and status.name.endswith(".db")]
    tables = chain.from_iterable(context.files.list(database) for database in databases)
    locations = [table.path for table in tables if table.is_directory and table.path != own]
    return context.engine.executor.map(partial(_read_external_roots, context.engine), locations)


def _read_external_roots(engine: Engine, location: str) -> _Others:
    """Read the schemas of a table on all its branches."""
    try:
        branches = [MAIN_BRANCH, *list_branch_directories(engine, TablePaths(location))]
        options = chain.from_iterable(_list_options(engine, TablePaths(location, branch)) for branch in branches)
        return location, {root for each in options for root in _list_external_roots(each)}
    except PaimonError:
        return location, None
