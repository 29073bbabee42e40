"""Manifest lists, manifests and index manifests of all states, each read once.

Law: each is there, has the size that is said of it, can be decoded, and holds as many entries as is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
from attrs import field, frozen

from paimon.domain.errors import PaimonError
from paimon.domain.maintenance.health.bounds import bounds_faults
from paimon.domain.maintenance.health.fault import Fault, FaultKind
from paimon.domain.manifest.columns import EntryColumns, entry_columns
from paimon.domain.manifest.entries import FileKind, IndexManifestEntry, ManifestFileMeta
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.maintain.check.states import Found, State, fault_of
from paimon.operations.maintain.retention.holders import Held
from paimon.operations.read.manifests import read_index_manifest, read_manifest_columns, read_manifest_list
from paimon.operations.read.schemas import load_schema
from paimon.ports.engine import Engine

_LOOKED_AT = ("_FILE_NAME", "_FILE_SIZE", "_EXTERNAL_PATH", "_EXTRA_FILES", "_ROW_COUNT", "_LEVEL", "_SCHEMA_ID")
T = TypeVar("T")
Group = tuple[ManifestFileMeta, ...]


@frozen(eq=False)
class Metadata:
    """What was read: manifests by name, and what each state consists of.

    Parameters
    ----------
    contents : dict
        By the place of a state, the manifests of its whole content; missing where that cannot be told.
    changes : dict
        By the place of a state, the manifests of its changelog.
    manifests : dict
        By name: the entries of a manifest.
    indexes : dict
        By the place of a state, the entries of its index manifest.
    """

    contents: dict[int, Group] = field(factory=dict)
    deltas: dict[int, Group] = field(factory=dict)
    changes: dict[int, Group] = field(factory=dict)
    manifests: dict[str, EntryColumns] = field(factory=dict)
    indexes: dict[int, tuple[IndexManifestEntry, ...]] = field(factory=dict)


class MetadataCheck:
    """Reads everything that the states name; a state machine that fills `Metadata`."""

    def __init__(self, engine: Engine, found: Found) -> None:
        self._engine = engine
        self._found = found
        self._lists: dict[str, Group | None] = {}
        self._indexes: dict[str, tuple[IndexManifestEntry, ...] | None] = {}
        self._users: dict[str, list[int]] = {}
        self._schemas: dict[tuple[str, int], tuple[TableDefinition, dict[str, None]]] = {}
        self.metadata = Metadata()

    def run(self) -> Metadata:
        """Look at all of it."""
        states = self._found.states
        for place, state in enumerate(states):
            self._lists_of(place, state)
        metas = {m.file_name: (states[p].table, m) for p, group in self._groups() for m in group}
        for done, (table, meta) in enumerate(metas.values()):
            self._manifest(table, meta)
            self._engine.observer.progress("checking manifests", done + 1, len(metas))
        for (_, schema_id), (table, users) in self._schemas.items():
            paths = table.paths
            look = partial(load_schema, self._engine, paths, schema_id)
            self._found.attempt(paths.schema(schema_id), list(users), look)
        return self.metadata

    def _groups(self) -> Iterator[tuple[int, Group]]:
        for groups in (self.metadata.contents, self.metadata.deltas, self.metadata.changes):
            yield from groups.items()

    def _lists_of(self, place: int, state: State) -> None:
        snapshot, data = state.snapshot, self.metadata
        if state.held is not Held.CHANGES:
            base = self._list(place, snapshot.base_manifest_list, snapshot.base_manifest_list_size)
            delta = self._list(place, snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
            if base is not None and delta is not None:
                data.contents[place], data.deltas[place] = base + delta, delta
            if snapshot.index_manifest is not None:
                entries = self._index(place, snapshot.index_manifest)
                if entries is not None:
                    data.indexes[place] = entries
        if snapshot.changelog_manifest_list is not None and state.held is not Held.STATE:
            changes = self._list(place, snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size)
            if changes is not None:
                data.changes[place] = changes

    def _list(self, place: int, name: str, size: int | None) -> Group | None:
        table = self._found.states[place].table
        group = self._once(self._lists, place, name, lambda: read_manifest_list(self._engine, table, name))
        if group is not None and size is not None:
            self._sized(table.paths.manifest(name), size, [self._found.states[place].name])
        for meta in group or ():
            self._users.setdefault(meta.file_name, []).append(place)
        return group

    def _index(self, place: int, name: str) -> tuple[IndexManifestEntry, ...] | None:
        table = self._found.states[place].table
        return self._once(self._indexes, place, name, lambda: read_index_manifest(self._engine, table, name))

    def _once(self, kept: dict[str, T | None], place: int, name: str, read: Callable[[], T]) -> T | None:
        state = self._found.states[place]
        try:
            if name not in kept:
                kept[name] = read()
            elif kept[name] is None:
                self._touch(state.table.paths.manifest(name), state.name)
        except PaimonError as error:
            kept[name] = None
            self._found.faults.append(fault_of(error, state.table.paths.manifest(name), [state.name]))
        return kept[name]

    def _touch(self, path: str, name: str) -> None:
        """A fault that is known already touches one state more."""
        for at, fault in enumerate(self._found.faults):
            if fault.path == path:
                self._found.faults[at] = Fault(fault.kind, path, fault.reason, (*fault.states, name))

    def _manifest(self, table: TableDefinition, meta: ManifestFileMeta) -> None:
        path = table.paths.manifest(meta.file_name)
        users = [self._found.states[p].name for p in dict.fromkeys(self._users[meta.file_name])]

        def look() -> None:
            columns = entry_columns(read_manifest_columns(self._engine, table, [meta.file_name]))
            for name in _LOOKED_AT:  # columns are decoded when asked for: what is wrong with them is said here
                columns.files.field(name)
            self.metadata.manifests[meta.file_name] = columns
            self._note_schemas(meta.file_name, columns)
            types = [f.type for f in table.schema.partition_fields]
            for reason in bounds_faults(meta, columns, types):
                self._found.faults.append(Fault(FaultKind.BOUNDS, path, reason, users))
            added = int(np.count_nonzero(columns.kinds == int(FileKind.ADD)))
            told, held = (meta.num_added_files, meta.num_deleted_files), (added, len(columns) - added)
            if told != held:
                reason = f"holds {held[0]} ADDs and {held[1]} DELETEs, its list says {told[0]} and {told[1]}"
                self._found.faults.append(Fault(FaultKind.COUNT, path, reason, users))

        if self._found.attempt(path, users, look):
            self._sized(path, meta.file_size, users)

    def _note_schemas(self, name: str, columns: EntryColumns) -> None:
        """Which schemas the files of a manifest were written with, on which branches."""
        for state in (self._found.states[place] for place in self._users[name]):
            for schema_id in np.unique(columns.number("_SCHEMA_ID")).tolist():
                key = (state.table.branch, schema_id)
                if schema_id != state.snapshot.schema_id:  # that one was looked for with its state
                    self._schemas.setdefault(key, (state.table, {}))[1][state.name] = None

    def _sized(self, path: str, size: int, users: Sequence[str]) -> None:
        status = self._engine.files.status(path)
        if status is not None and status.size != size:
            reason = f"has {status.size} bytes, and {size} are said of it"
            self._found.faults.append(Fault(FaultKind.SIZE, path, reason, users))
