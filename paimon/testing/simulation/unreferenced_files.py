"""Find out which files the metadata of a table names, which of them are needed, and which files nothing names.

Invariant: this module follows names from the files of snapshots, tags and decoupled changelogs. It shares no code with
orphan file removal and expiry. A file can be named and not needed, if it was replaced before the oldest snapshot. A
file that is needed is always named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from paimon.domain.errors import CorruptTable
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.manifests import (
    read_data_manifests,
    read_index_manifest,
    read_live_columns,
    read_manifest_columns,
    read_manifest_list,
)
from paimon.operations.read.changes.history import find_changelog, list_changelog_ids
from paimon.operations.table_context import TableContext
from paimon.table import Table

_METADATA_FILE = re.compile(
    r"(snapshot/(snapshot-\d+|LATEST|EARLIEST)|schema/schema-\d+|tag/tag-[^/]+|last-commit/commit-[0-9a-f]+)$"
)
_CHANGELOG_FILE = re.compile(r"changelog/(changelog-\d+|LATEST|EARLIEST)$")


def collect_needed_and_named_files(table: Table) -> tuple[set[str], set[str]]:
    """Return the names of the files that snapshots and tags need, and of all files that any metadata names."""
    context = table.context
    states = [*table.snapshots(), *(tag.snapshot for tag in table.tags.values())]
    needed = {name for s in states for name in _state(context, s)}
    named = set(needed)
    for snapshot in table.snapshots():
        named.update(_lists(context, [snapshot.changelog_manifest_list]))
    for number in list_changelog_ids(context):
        found = find_changelog(context, number)
        if found is not None:
            lists = [found.changelog_manifest_list, found.base_manifest_list, found.delta_manifest_list]
            named.update(_lists(context, lists))
    manifests = {m for s in states for m in read_data_manifests(context, s)}
    named.update(_entries(context, [m.file_name for m in manifests]))
    return needed, named


def find_unreferenced(table: Table, paths: Iterable[str], named: set[str]) -> list[str]:
    """Return the files that no metadata names.

    Parameters
    ----------
    table : Table
        The table.
    paths : iterable of str
        The paths of all files of the table.
    named : set of str
        The names of the files that metadata names.

    Returns
    -------
    list of str
        Paths in ascending order. Snapshots, schemas, tags, changelogs and records of commits are never among them.
    """
    return sorted(
        path
        for path in paths
        if path.rpartition("/")[2] not in named and not _METADATA_FILE.search(path) and not _CHANGELOG_FILE.search(path)
    )


def _state(context: TableContext, snapshot: Snapshot) -> Iterator[str]:
    manifests = read_data_manifests(context, snapshot)
    yield from (snapshot.base_manifest_list, snapshot.delta_manifest_list)
    yield from (m.file_name for m in manifests)
    live = read_live_columns(context, manifests)
    yield from live.files.field("_FILE_NAME").to_pylist()
    yield from (name for names in live.files.field("_EXTRA_FILES").to_pylist() for name in names)
    if snapshot.index_manifest is not None:
        yield snapshot.index_manifest
        yield from (e.file_name for e in read_index_manifest(context, snapshot.index_manifest))
    if snapshot.statistics is not None:
        yield snapshot.statistics


def _lists(context: TableContext, names: Iterable[str | None]) -> Iterator[str]:
    for name in (n for n in names if n is not None):
        try:
            manifests = [m.file_name for m in read_manifest_list(context, name)]
            yield from (name, *manifests, *_entries(context, manifests))
        except CorruptTable:
            continue  # the lists of a changelog may be deleted before it


def _entries(context: TableContext, manifests: list[str]) -> Iterator[str]:
    for part in read_manifest_columns(context, manifests):
        yield from part.records.column("_FILE", "_FILE_NAME").to_pylist()
        for names in part.records.column("_FILE", "_EXTRA_FILES").to_pylist():
            yield from names
