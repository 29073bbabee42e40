"""What lies on the storage, and what names it.

Law: found by following names from the files of snapshots, tags and long-lived changelogs, apart from how cleaners and
expiry do it. A file may be named and not needed (it was replaced before the oldest state that stands), never needed
and not named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from paimon.domain.errors import CorruptTable
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.changes.history import changelog_ids, find_changelog
from paimon.operations.read.manifests import (
    data_manifests,
    live_columns,
    read_index_manifest,
    read_manifest_columns,
    read_manifest_list,
)
from paimon.ports.engine import Engine
from paimon.table import Table

_STANDING = re.compile(r"(snapshot/(snapshot-\d+|LATEST|EARLIEST)|schema/schema-\d+|tag/tag-[^/]+)$")
_CHANGELOG = re.compile(r"changelog/(changelog-\d+|LATEST|EARLIEST)$")


def needed_and_named(table: Table) -> tuple[set[str], set[str]]:
    """The names of files that the states need, and of all that are named by anything that stands."""
    engine, definition = table.engine, table.definition
    states = [*table.snapshots(), *(tag.snapshot for tag in table.tags.values())]
    needed = {name for s in states for name in _state(engine, definition, s)}
    named = set(needed)
    for snapshot in table.snapshots():
        named.update(_lists(engine, definition, [snapshot.changelog_manifest_list]))
    for number in changelog_ids(engine, definition.paths):
        found = find_changelog(engine, definition.paths, number)
        if found is not None:
            lists = [found.changelog_manifest_list, found.base_manifest_list, found.delta_manifest_list]
            named.update(_lists(engine, definition, lists))
    manifests = {m for s in states for m in data_manifests(engine, definition, s)}
    named.update(_entries(engine, definition, [m.file_name for m in manifests]))
    return needed, named


def unnamed(table: Table, paths: Iterable[str], named: set[str]) -> list[str]:
    """Those files of a table that nothing names."""
    return sorted(
        path
        for path in paths
        if path.rpartition("/")[2] not in named
        and not _STANDING.search(path)
        and not _CHANGELOG.search(path)
    )


def _state(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> Iterator[str]:
    manifests = data_manifests(engine, table, snapshot)
    yield from (snapshot.base_manifest_list, snapshot.delta_manifest_list)
    yield from (m.file_name for m in manifests)
    live = live_columns(engine, table, manifests)
    yield from live.files.field("_FILE_NAME").to_pylist()
    yield from (name for names in live.files.field("_EXTRA_FILES").to_pylist() for name in names)
    if snapshot.index_manifest is not None:
        yield snapshot.index_manifest
        yield from (e.file_name for e in read_index_manifest(engine, table, snapshot.index_manifest))
    if snapshot.statistics is not None:
        yield snapshot.statistics


def _lists(engine: Engine, table: TableDefinition, names: Iterable[str | None]) -> Iterator[str]:
    for name in (n for n in names if n is not None):
        try:
            manifests = [m.file_name for m in read_manifest_list(engine, table, name)]
            yield from (name, *manifests, *_entries(engine, table, manifests))
        except CorruptTable:
            continue  # lists of a changelog may go before it


def _entries(engine: Engine, table: TableDefinition, manifests: list[str]) -> Iterator[str]:
    for part in read_manifest_columns(engine, table, manifests):
        yield from part.records.column("_FILE", "_FILE_NAME").to_pylist()
        for names in part.records.column("_FILE", "_EXTRA_FILES").to_pylist():
            yield from names
