"""Check the manifest lists, manifests and index manifests of all states; each is read once.

Invariant: each file exists, has the recorded size, can be decoded, and has the recorded number of entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
from attrs import field, frozen

from paimon.domain.errors import PaimonError
from paimon.domain.maintenance.fault import Fault, FaultKind
from paimon.domain.maintenance.manifest_bounds_check import find_bounds_faults
from paimon.domain.manifest.entries import FileKind, IndexManifestEntry, ManifestFileMeta
from paimon.domain.manifest.entry_columns import EntryColumns, entry_columns
from paimon.operations.expire.references import ReferencedPart
from paimon.operations.fsck.states import Findings, State, to_fault
from paimon.operations.metadata.manifests import read_index_manifest, read_manifest_columns, read_manifest_list
from paimon.operations.metadata.schemas import load_schema
from paimon.operations.table_context import TableContext

_CHECKED_COLUMNS = ("_FILE_NAME", "_FILE_SIZE", "_EXTERNAL_PATH", "_EXTRA_FILES", "_ROW_COUNT", "_LEVEL", "_SCHEMA_ID")
T = TypeVar("T")
Group = tuple[ManifestFileMeta, ...]


@frozen(eq=False)
class Metadata:
    """The metadata that was read; a state is named by its index in `Findings.states`."""

    # by state, the manifests of its whole content; absent if they are not known
    contents: dict[int, Group] = field(factory=dict)
    # by state, the manifests of its delta
    deltas: dict[int, Group] = field(factory=dict)
    # by state, the manifests of its changelog
    changes: dict[int, Group] = field(factory=dict)
    # by manifest name, its entries
    manifests: dict[str, EntryColumns] = field(factory=dict)
    # by state, the entries of its index manifest
    indexes: dict[int, tuple[IndexManifestEntry, ...]] = field(factory=dict)


class MetadataCheck:
    """Read all metadata that the states in `findings` name into `Metadata`, and add faults to `findings`."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._lists: dict[str, Group | None] = {}
        self._indexes: dict[str, tuple[IndexManifestEntry, ...] | None] = {}
        self._users: dict[str, list[int]] = {}
        self._schemas: dict[tuple[str, int], tuple[TableContext, dict[str, None]]] = {}
        self.metadata = Metadata()

    def run(self) -> Metadata:
        """Read and check all metadata."""
        states = self._findings.states
        for index, state in enumerate(states):
            self._read_lists(index, state)
        metas = {m.file_name: (states[p].context, m) for p, group in self._groups() for m in group}
        for done, (context, meta) in enumerate(metas.values()):
            self._check_manifest(context, meta)
            context.engine.observer.progress("checking manifests", done + 1, len(metas))
        for (_, schema_id), (context, users) in self._schemas.items():
            check = partial(load_schema, context.engine, context.paths, schema_id)
            self._findings.attempt(context.paths.schema(schema_id), list(users), check)
        return self.metadata

    def _groups(self) -> Iterator[tuple[int, Group]]:
        for groups in (self.metadata.contents, self.metadata.deltas, self.metadata.changes):
            yield from groups.items()

    def _read_lists(self, index: int, state: State) -> None:
        snapshot, data = state.snapshot, self.metadata
        if state.part is not ReferencedPart.CHANGES:
            base = self._read_list(index, snapshot.base_manifest_list, snapshot.base_manifest_list_size)
            delta = self._read_list(index, snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
            if base is not None and delta is not None:
                data.contents[index], data.deltas[index] = base + delta, delta
            if snapshot.index_manifest is not None:
                entries = self._read_index(index, snapshot.index_manifest)
                if entries is not None:
                    data.indexes[index] = entries
        if snapshot.changelog_manifest_list is not None and state.part is not ReferencedPart.STATE:
            changes = self._read_list(index, snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size)
            if changes is not None:
                data.changes[index] = changes

    def _read_list(self, index: int, name: str, size: int | None) -> Group | None:
        context = self._findings.states[index].context
        group = self._read_once(self._lists, index, name, lambda: read_manifest_list(context, name))
        if group is not None and size is not None:
            self._check_size(context, context.paths.manifest(name), size, [self._findings.states[index].name])
        for meta in group or ():
            self._users.setdefault(meta.file_name, []).append(index)
        return group

    def _read_index(self, index: int, name: str) -> tuple[IndexManifestEntry, ...] | None:
        context = self._findings.states[index].context
        return self._read_once(self._indexes, index, name, lambda: read_index_manifest(context, name))

    def _read_once(self, known: dict[str, T | None], index: int, name: str, read: Callable[[], T]) -> T | None:
        state = self._findings.states[index]
        try:
            if name not in known:
                known[name] = read()
            elif known[name] is None:
                self._add_state(state.context.paths.manifest(name), state.name)
        except PaimonError as error:
            known[name] = None
            self._findings.faults.append(to_fault(error, state.context.paths.manifest(name), [state.name]))
        return known[name]

    def _add_state(self, path: str, name: str) -> None:
        """Add a state to a fault that is known already."""
        for at, fault in enumerate(self._findings.faults):
            if fault.path == path:
                self._findings.faults[at] = Fault(fault.kind, path, fault.reason, (*fault.states, name))

    def _check_manifest(self, context: TableContext, meta: ManifestFileMeta) -> None:
        path = context.paths.manifest(meta.file_name)
        users = [self._findings.states[p].name for p in dict.fromkeys(self._users[meta.file_name])]

        def check() -> None:
            """Read and check the manifest."""
            columns = entry_columns(read_manifest_columns(context, [meta.file_name]))
            for name in _CHECKED_COLUMNS:  # columns are decoded on access, and errors appear here
                columns.files.field(name)
            self.metadata.manifests[meta.file_name] = columns
            self._record_schemas(meta.file_name, columns)
            types = [f.type for f in context.schema.partition_fields]
            for reason in find_bounds_faults(meta, columns, types):
                self._findings.faults.append(Fault(FaultKind.BOUNDS, path, reason, users))
            added = int(np.count_nonzero(columns.kinds == int(FileKind.ADD)))
            recorded, counted = (meta.num_added_files, meta.num_deleted_files), (added, len(columns) - added)
            if recorded != counted:
                reason = (
                    f"has {counted[0]} ADDs and {counted[1]} DELETEs; its list records {recorded[0]} and {recorded[1]}"
                )
                self._findings.faults.append(Fault(FaultKind.COUNT, path, reason, users))

        if self._findings.attempt(path, users, check):
            self._check_size(context, path, meta.file_size, users)

    def _record_schemas(self, name: str, columns: EntryColumns) -> None:
        """Record which schemas the files of a manifest were written with, on which branches."""
        for state in (self._findings.states[index] for index in self._users[name]):
            for schema_id in np.unique(columns.number("_SCHEMA_ID")).tolist():
                key = (state.context.table.branch, schema_id)
                if schema_id != state.snapshot.schema_id:  # that one is checked with its state
                    self._schemas.setdefault(key, (state.context, {}))[1][state.name] = None

    def _check_size(self, context: TableContext, path: str, size: int, users: Sequence[str]) -> None:
        status = context.files.status(path)
        if status is not None and status.size != size:
            reason = f"has {status.size} bytes; the metadata records {size}"
            self._findings.faults.append(Fault(FaultKind.SIZE, path, reason, users))
