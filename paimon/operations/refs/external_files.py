"""Delete the files of a dropped table that lie outside of its directory.

Invariant: only files that the metadata of the table names, below allowed roots, are deleted. Other tables may have
files below the same roots. Java deletes the roots with all that they contain.
Source: `AbstractCatalog.dropTable`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from attrs import frozen

from paimon.domain.errors import CorruptTable, NotFound, PaimonError, PaimonWarning, Unsupported
from paimon.domain.manifest.entries import DataFileMeta, FileKind
from paimon.domain.manifest.entry_columns import ManifestRecords, entry_columns, files_at
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths, is_within
from paimon.domain.schema.external_paths import PATHS
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.expire.files_to_delete import delete_empty_bucket_directories, warn_of_kept_files
from paimon.operations.expire.references import Reference, ReferencedPart, read_all_references, read_branches
from paimon.operations.metadata.manifests import read_index_manifest, read_manifest_columns, read_manifest_list
from paimon.operations.metadata.metadata_files import delete_files
from paimon.operations.metadata.schemas import latest_schema, load_schema, schema_ids
from paimon.operations.table_context import TableContext
from paimon.ports.cancellation import shielded
from paimon.ports.engine import Engine
from paimon.ports.files import Directories

_Entry = TypeVar("_Entry")


@frozen
class _ExternalFiles:
    """The external files of a table."""

    context: TableContext
    paths: tuple[str, ...]

    def delete(self) -> None:
        """Delete the files, and the directories of buckets and partitions that are empty then."""
        delete_files(self.context.engine, self.paths)
        delete_empty_bucket_directories(self.context, {path.rpartition("/")[0] for path in self.paths})


@contextmanager
def deleting_external_files(engine: Engine, locations: Sequence[str]) -> Iterator[None]:
    """Delete the external files of tables after the block, which deletes the tables; an error of the block keeps them.

    `locations` are the directories of the tables. If the process dies between, the files stay, and no table names them.
    """
    found = [
        files for location in locations if (files := _find_external_files(engine, TablePaths(location))) is not None
    ]
    yield
    with shielded():  # the tables are gone, so no other call finds these files
        for files in found:
            files.delete()


def delete_hidden_table(engine: Engine, directories: Directories, paths: TablePaths) -> None:
    """Delete a table that no catalog lists."""
    with deleting_external_files(engine, [paths.root]):
        directories.delete_directory(paths.root)


def _find_external_files(engine: Engine, paths: TablePaths) -> _ExternalFiles | None:
    """Return all branches' external files; unreadable metadata is a warning, and does not stop a drop."""
    try:
        schema = latest_schema(engine, paths)
        if schema is None:
            return None
        table = TableDefinition(paths.root, paths, schema, TableOptions.of(schema.options), engine.allowed_roots)
        context = TableContext(engine, table)
        branches = read_branches(context)
        if not any(_has_external_paths(branch) for branch in branches):
            return None
        named, unread = _list_external_paths(read_all_references(branches))
    except (CorruptTable, NotFound, Unsupported) as error:
        if engine.allowed_roots:
            _warn_of_unread(paths, error)
        return None
    for first in unread[:1]:
        _warn_of_unread(paths, first)
    allowed = tuple(path for path in named if is_within(path, engine.allowed_roots))
    warn_of_kept_files(table, [path for path in named if not is_within(path, engine.allowed_roots)])
    return _ExternalFiles(context, allowed) if allowed else None


def _has_external_paths(branch: TableContext) -> bool:
    """Return whether any schema of a branch declares external paths."""
    ids = schema_ids(branch.engine, branch.paths)
    return any(PATHS in load_schema(branch.engine, branch.paths, i).options for i in ids)


def _warn_of_unread(paths: TablePaths, error: PaimonError) -> None:
    reason = f"its metadata cannot be read: {error.message}"
    text = f"Table {paths.root!r}: files outside its directory may stay, because {reason}"
    warnings.warn(text, PaimonWarning, stacklevel=6)


def _list_external_paths(references: Sequence[Reference]) -> tuple[dict[str, None], list[CorruptTable]]:
    """Return the external paths of all files that references name, as an ordered set, and what cannot be read."""
    found: dict[str, None] = {}
    unread: list[CorruptTable] = []
    seen: set[str] = set()
    for context, own in _group_by_context(references):
        lists = dict.fromkeys(name for reference in own for name in _list_names(reference))
        manifests = [m.file_name for name in lists for m in _try_read(read_manifest_list, context, name, unread)]
        new = [name for name in dict.fromkeys(manifests) if name not in seen]
        seen.update(new)
        for file in _read_added_files(context, new, unread):
            if file.external_path is not None:
                found.update(dict.fromkeys(file.paths_in("")))
        for index in dict.fromkeys(r.snapshot.index_manifest for r in own if r.snapshot.index_manifest is not None):
            entries = _try_read(read_index_manifest, context, index, unread)
            found.update({entry.external_path: None for entry in entries if entry.external_path})
    return found, unread


def _group_by_context(references: Sequence[Reference]) -> Iterator[tuple[TableContext, list[Reference]]]:
    branches = {id(reference.context): reference.context for reference in references}
    for key, context in branches.items():
        yield context, [reference for reference in references if id(reference.context) == key]


def _list_names(reference: Reference) -> list[str]:
    """Return the manifest lists that must exist, because the reference needs them."""
    snapshot = reference.snapshot
    changelog = [] if snapshot.changelog_manifest_list is None else [snapshot.changelog_manifest_list]
    if reference.part is ReferencedPart.CHANGES:
        return changelog or [snapshot.delta_manifest_list]
    state = [snapshot.base_manifest_list, snapshot.delta_manifest_list]
    return state if reference.part is ReferencedPart.STATE else state + changelog


def _read_added_files(
    context: TableContext, manifests: Sequence[str], unread: list[CorruptTable]
) -> Sequence[DataFileMeta]:
    try:
        parts: Sequence[ManifestRecords] = read_manifest_columns(context, manifests)
    except CorruptTable:
        parts = [p for name in manifests for p in _try_read(_read_one_manifest, context, name, unread)]
    entries = entry_columns(parts)
    return files_at(entries.filter(entries.kinds == int(FileKind.ADD)).files)


def _read_one_manifest(context: TableContext, name: str) -> Sequence[ManifestRecords]:
    return read_manifest_columns(context, [name])


def _try_read(
    read: Callable[[TableContext, str], Sequence[_Entry]], context: TableContext, name: str, unread: list[CorruptTable]
) -> Sequence[_Entry]:
    """Return the entries of a file; none, and add the error to `unread`, if it is missing or damaged."""
    try:
        return read(context, name)
    except CorruptTable as error:
        unread.append(error)
        return ()
