"""Delete the files of a dropped table that lie outside of its directory.

Invariant: only files that the metadata of the table names, below allowed roots, are deleted. Other tables may have
files below the same roots. Java deletes the roots with all that they contain.
Source: `AbstractCatalog.dropTable`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from attrs import frozen

from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.manifest.entries import FileKind
from paimon.domain.manifest.entry_columns import entry_columns, files_at
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths, is_within
from paimon.domain.schema.external_paths import PATHS
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.expire.files_to_delete import delete_empty_bucket_directories, warn_of_kept_files
from paimon.operations.expire.references import Reference, read_all_references, read_branches
from paimon.operations.metadata.delete_files import delete_files
from paimon.operations.metadata.manifests import read_index_manifest, read_manifest_columns, read_manifest_list
from paimon.operations.metadata.schemas import latest_schema, load_schema, schema_ids
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.ports.files import Directories


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
    for files in found:
        files.delete()


def delete_hidden_table(engine: Engine, directories: Directories, paths: TablePaths) -> None:
    """Delete a table that no catalog lists."""
    with deleting_external_files(engine, [paths.root]):
        directories.delete_directory(paths.root)


def _find_external_files(engine: Engine, paths: TablePaths) -> _ExternalFiles | None:
    """Return the external files of all branches; None without any, and where the metadata cannot be read."""
    try:
        schema = latest_schema(engine, paths)
        if schema is None:
            return None
        table = TableDefinition(paths.root, paths, schema, TableOptions.of(schema.options), engine.allowed_roots)
        context = TableContext(engine, table)
        branches = read_branches(context)
        if not any(_has_external_paths(branch) for branch in branches):
            return None
        named = _list_external_paths(read_all_references(branches))
    except (CorruptTable, NotFound):
        return None
    allowed = tuple(path for path in named if is_within(path, engine.allowed_roots))
    warn_of_kept_files(table, [path for path in named if not is_within(path, engine.allowed_roots)])
    return _ExternalFiles(context, allowed) if allowed else None


def _has_external_paths(branch: TableContext) -> bool:
    """Return whether any schema of a branch declares external paths."""
    ids = schema_ids(branch.engine, branch.paths)
    return any(PATHS in load_schema(branch.engine, branch.paths, i).options for i in ids)


def _list_external_paths(references: Sequence[Reference]) -> dict[str, None]:
    """Return the external paths of all data files and index files that snapshots name; a dict is an ordered set."""
    found: dict[str, None] = {}
    for context, manifests, indexes in _group_by_context(references):
        entries = entry_columns(read_manifest_columns(context, manifests))
        added = entries.filter(entries.kinds == int(FileKind.ADD))
        for file in files_at(added.files):
            if file.external_path is not None:
                found.update(dict.fromkeys(file.paths_in("")))
        for name in indexes:
            found.update({e.external_path: None for e in read_index_manifest(context, name) if e.external_path})
    return found


def _group_by_context(references: Sequence[Reference]) -> Iterator[tuple[TableContext, list[str], list[str]]]:
    """Yield the names of the manifests and index manifests of each branch, once each."""
    branches = {id(reference.context): reference.context for reference in references}
    seen: set[str] = set()
    for key, context in branches.items():
        own = [reference.snapshot for reference in references if id(reference.context) == key]
        lists = dict.fromkeys(
            name
            for s in own
            for name in (s.base_manifest_list, s.delta_manifest_list, s.changelog_manifest_list)
            if name is not None
        )
        names = dict.fromkeys(m.file_name for name in lists for m in read_manifest_list(context, name))
        indexes = dict.fromkeys(s.index_manifest for s in own if s.index_manifest is not None)
        new = [name for name in names if name not in seen]
        seen.update(new)
        if new or indexes:
            yield context, new, list(indexes)
