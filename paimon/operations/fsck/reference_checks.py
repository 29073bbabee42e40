"""Check what states reference: manifest lists, manifests and index manifests, then data files and index files.

Invariant: each file exists, has the recorded size, can be decoded, and has the recorded number of entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from paimon.domain.errors import PaimonError
from paimon.domain.maintenance.fault import Fault, FaultKind
from paimon.domain.maintenance.metadata_checks import find_bounds_faults
from paimon.domain.maintenance.referenced_files_columnar import (
    BucketFileNames,
    Mentions,
    NamedFiles,
    ever_live,
    find_places,
    number_names,
)
from paimon.domain.manifest.checked_columns import to_integers
from paimon.domain.manifest.entries import FileKind, IndexManifestEntry, ManifestFileMeta
from paimon.domain.manifest.entry_columns import entry_columns
from paimon.domain.paths import check_within, join_path
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.operations.expire.references import ReferencedPart
from paimon.operations.fsck.states import Findings, State, to_fault
from paimon.operations.metadata.manifests import (
    index_path,
    read_index_manifest,
    read_manifest_columns,
    read_manifest_list,
)
from paimon.operations.metadata.schemas import load_schema
from paimon.operations.table_context import TableContext

_ABSENT = "is referenced by the table but does not exist"
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
    # by manifest name, the files of its entries, until the files are checked
    manifests: dict[str, NamedFiles] = field(factory=dict)
    # by manifest name, the rows in its added files minus those in its deleted files
    added_rows: dict[str, int] = field(factory=dict)
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
            columns.files.field("_LEVEL")  # columns are decoded on access, and errors appear here
            self._record_schemas(meta.file_name, np.unique(columns.number("_SCHEMA_ID")).tolist())
            self.metadata.manifests[meta.file_name] = files = NamedFiles.of(columns)
            self.metadata.added_rows[meta.file_name] = int(columns.number("_ROW_COUNT") @ files.signs)
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

    def _record_schemas(self, name: str, schema_ids: Sequence[int]) -> None:
        """Record which schemas the files of a manifest were written with, on which branches."""
        for state in (self._findings.states[index] for index in self._users[name]):
            for schema_id in schema_ids:
                key = (state.context.table.branch, schema_id)
                if schema_id != state.snapshot.schema_id:  # that one is checked with its state
                    self._schemas.setdefault(key, (state.context, {}))[1][state.name] = None

    def _check_size(self, context: TableContext, path: str, size: int, users: Sequence[str]) -> None:
        status = context.files.status(path)
        if status is not None and status.size != size:
            self._findings.faults.append(Fault(FaultKind.SIZE, path, _describe_sizes(status.size, size), users))


class ReferenceCheck:
    """Check all files that the states in `findings` name, and add faults to `findings`."""

    def __init__(self, context: TableContext, findings: Findings, metadata: Metadata) -> None:
        self._context = context
        self._findings = findings
        self._metadata = metadata
        self._listed: dict[str, Mapping[str, int]] = {}
        self.files = 0

    def run(self) -> None:
        """Check all files."""
        self._check_data_files()
        self._metadata.manifests.clear()  # the largest part of the metadata is not needed any more
        self._check_index_files()
        for state in self._findings.states:
            name = state.snapshot.statistics
            if name is not None:
                path = state.context.paths.statistics(name)
                self._check_file(path, None, [state.name])

    def _check_data_files(self) -> None:
        manifests = self._metadata.manifests
        names, mentions = number_names(manifests)
        groups: list[Group] = [*self._metadata.contents.values(), *self._metadata.changes.values()]
        live = ever_live([frozenset(m.file_name for m in group) for group in groups], mentions, len(names))
        buckets, count = BucketPaths.of(self._context.table), int(np.count_nonzero(live))
        absent: list[tuple[str, str, str]] = []
        for files in find_places(manifests, mentions, live):
            self.files += len(files.names)
            absent += self._find_absent(buckets, files)
            self._context.engine.observer.progress("checking files", self.files, count)
        self._report(absent, names, mentions)

    def _find_absent(self, buckets: BucketPaths, files: BucketFileNames) -> Iterator[tuple[str, str, str]]:
        """Yield name, path and fault of each file of a bucket that is not there, or has another size."""
        try:
            directory = buckets.directory(files.partition, files.bucket)
        except PaimonError as error:
            for name in files.names:
                self._add_outside(name, to_fault(error, name, ()).reason)
            return
        listed = self._list_sizes(directory) if None in files.external_paths else {}
        for name, size, external in zip(files.names, files.sizes, files.external_paths, strict=True):
            path, actual = "", listed.get(name)
            if external is not None:
                path = external if size >= 0 else join_path(external.rpartition("/")[0], name)
                try:
                    check_within(path, self._context.table.roots, self._context.paths.manifests)
                except PaimonError as error:
                    self._add_outside(name, to_fault(error, name, ()).reason)
                    continue
                actual = self._find_size(path)
            if actual is None or size not in (-1, actual):
                reason = _ABSENT if actual is None else _describe_sizes(actual, size)
                yield name, path or join_path(directory, name), reason

    def _add_outside(self, path: str, reason: str) -> None:
        self._findings.faults.append(Fault(FaultKind.OUTSIDE, path, reason))

    def _report(
        self, absent: Sequence[tuple[str, str, str]], names: pa.StringArray, mentions: Mapping[str, Mentions]
    ) -> None:
        """Report each file with the states that have it; files are few, so each state is searched for them."""
        if not absent:
            return
        places = np.full(len(names), -1)
        places[to_integers(pc.index_in(pa.array([n for n, _, _ in absent]), names))] = np.arange(len(absent))
        found = {name: mentioned.renumber(places) for name, mentioned in mentions.items()}
        affected: list[list[str]] = [[] for _ in absent]
        for groups in (self._metadata.contents, self._metadata.changes):
            for index, group in groups.items():
                has = ever_live([frozenset(m.file_name for m in group)], found, len(absent))
                for at in np.flatnonzero(has).tolist():
                    affected[at].append(self._findings.states[index].name)
        for (_, path, reason), states in zip(absent, affected, strict=True):
            kind = FaultKind.MISSING if reason is _ABSENT else FaultKind.SIZE
            self._findings.faults.append(Fault(kind, path, reason, dict.fromkeys(states)))

    def _check_index_files(self) -> None:
        seen: dict[str, tuple[int | None, list[str]]] = {}
        for index, entries in self._metadata.indexes.items():
            state = self._findings.states[index]
            for entry in entries:
                source = state.context.paths.manifest(state.snapshot.index_manifest or "")
                try:
                    path = index_path(state.context.table, entry, source)
                except PaimonError as error:
                    fault = to_fault(error, source, [state.name])
                    self._findings.faults.append(Fault(FaultKind.OUTSIDE, fault.path, fault.reason, fault.states))
                    continue
                seen.setdefault(path, (entry.file_size, []))[1].append(state.name)
        for path, (size, states) in seen.items():
            self._check_file(path, size, states)

    def _check_file(self, path: str, size: int | None, states: Sequence[str]) -> None:
        self.files += 1
        actual = self._find_size(path)
        if actual is None:
            self._findings.faults.append(Fault(FaultKind.MISSING, path, _ABSENT, states))
        elif size is not None and actual != size:
            self._findings.faults.append(Fault(FaultKind.SIZE, path, _describe_sizes(actual, size), states))

    def _find_size(self, path: str) -> int | None:
        directory, _, name = path.rpartition("/")
        if directory not in self._listed:
            self._listed[directory] = self._list_sizes(directory)
        return self._listed[directory].get(name)

    def _list_sizes(self, directory: str) -> Mapping[str, int]:
        return {s.name: s.size for s in self._context.files.list(directory) if not s.is_directory}


def _describe_sizes(actual: int, recorded: int) -> str:
    return f"has {actual} bytes; the metadata records {recorded}"
