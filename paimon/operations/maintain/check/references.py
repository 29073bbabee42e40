"""Data files, changelog files, index files and statistics: each that a state has is there, with its size.

Law: directories are listed once each, so that a look costs as many requests as there are buckets; a file that is
missing is said with every state that it touches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from paimon.domain.errors import PaimonError
from paimon.domain.maintenance.health.fault import Fault, FaultKind
from paimon.domain.maintenance.reach.columnar import Mentions, ever_live, mentions
from paimon.domain.manifest.columns import EntryColumns, Mask
from paimon.domain.manifest.entries import FileKind
from paimon.domain.paths import check_within, join
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.maintain.check.metadata import Group, Metadata
from paimon.operations.maintain.check.states import Found, fault_of
from paimon.operations.read.deletion.index_manifest import index_path
from paimon.ports.engine import Engine

_ABSENT = "is named by the table but does not exist"
_PLACE = ("_FILE_NAME", "_FILE_SIZE", "_EXTERNAL_PATH", "_EXTRA_FILES")


class ReferenceCheck:
    """Looks for all files that the states name."""

    def __init__(self, engine: Engine, table: TableDefinition, found: Found, metadata: Metadata) -> None:
        self._engine = engine
        self._table = table
        self._found = found
        self._metadata = metadata
        self._listed: dict[str, Mapping[str, int]] = {}
        self.files = 0

    def run(self) -> None:
        """Look at all of them."""
        self._data_files()
        self._index_files()
        for state in self._found.states:
            name = state.snapshot.statistics
            if name is not None:
                path = state.table.paths.statistics(name)
                self._look(path, None, [state.name])

    def _data_files(self) -> None:
        manifests = self._metadata.manifests
        names = pa.array(sorted({n for c in manifests.values() for n in _names(c)}), pa.string())
        said = {name: mentions(columns, [len(columns)], names)[0] for name, columns in manifests.items()}
        live = self._live(said, len(names))
        needed = names.filter(pa.array(live))
        places = _places(manifests.values(), needed)
        buckets = BucketPaths.of(self._table)
        absent: list[tuple[str, str, str]] = []
        for done, (name, (partition, bucket, size, external)) in enumerate(places.items()):
            self.files += 1
            try:
                path = self._path(buckets, partition, bucket, name, external)
            except PaimonError as error:
                self._found.faults.append(Fault(FaultKind.OUTSIDE, name, fault_of(error, name, ()).reason))
                continue
            held = self._size_of(path)
            if held is None:
                absent.append((name, path, _ABSENT))
            elif size is not None and held != size:
                absent.append((name, path, f"has {held} bytes, and {size} are said of it"))
            if done % 1000 == 0:
                self._engine.observer.progress("checking files", done + 1, len(places))
        self._blame(absent)

    def _live(self, said: Mapping[str, Mentions], count: int) -> Mask:
        return ever_live(self._states(), said, count)

    def _states(self) -> list[frozenset[str]]:
        groups: list[Group] = [*self._metadata.contents.values(), *self._metadata.changes.values()]
        return [frozenset(m.file_name for m in group) for group in groups]

    def _blame(self, absent: Sequence[tuple[str, str, str]]) -> None:
        """Say for each file which states have it: they are few, so each state is asked for them alone."""
        if not absent:
            return
        names = pa.array([name for name, _, _ in absent], pa.string())
        said = {n: mentions(c, [len(c)], names)[0] for n, c in self._metadata.manifests.items()}
        touched: list[list[str]] = [[] for _ in absent]
        for groups in (self._metadata.contents, self._metadata.changes):
            for place, group in groups.items():
                has = ever_live([frozenset(m.file_name for m in group)], said, len(names))
                for at in np.flatnonzero(has).tolist():
                    touched[at].append(self._found.states[place].name)
        for (_, path, reason), states in zip(absent, touched, strict=True):
            kind = FaultKind.MISSING if reason is _ABSENT else FaultKind.SIZE
            self._found.faults.append(Fault(kind, path, reason, dict.fromkeys(states)))

    def _index_files(self) -> None:
        seen: dict[str, tuple[int | None, list[str]]] = {}
        for place, entries in self._metadata.indexes.items():
            state = self._found.states[place]
            for entry in entries:
                source = state.table.paths.manifest(state.snapshot.index_manifest or "")
                try:
                    path = index_path(state.table, entry, source)
                except PaimonError as error:
                    fault = fault_of(error, source, [state.name])
                    self._found.faults.append(Fault(FaultKind.OUTSIDE, fault.path, fault.reason, fault.states))
                    continue
                seen.setdefault(path, (entry.file_size, []))[1].append(state.name)
        for path, (size, states) in seen.items():
            self._look(path, size, states)

    def _look(self, path: str, size: int | None, states: Sequence[str]) -> None:
        self.files += 1
        held = self._size_of(path)
        if held is None:
            self._found.faults.append(Fault(FaultKind.MISSING, path, _ABSENT, states))
        elif size is not None and held != size:
            reason = f"has {held} bytes, and {size} are said of it"
            self._found.faults.append(Fault(FaultKind.SIZE, path, reason, states))

    def _path(self, buckets: BucketPaths, partition: bytes, bucket: int, name: str, external: str | None) -> str:
        if external is None:
            return join(buckets.directory(partition, bucket), name)
        return check_within(external, (self._table.location, *self._table.allowed_roots), self._table.paths.manifests)

    def _size_of(self, path: str) -> int | None:
        directory, _, name = path.rpartition("/")
        if directory not in self._listed:
            files = [s for s in self._engine.files.list(directory) if not s.is_directory]
            self._listed[directory] = {s.name: s.size for s in files}
        return self._listed[directory].get(name)


def _names(columns: EntryColumns) -> Iterable[str]:
    files = columns.files
    return [*files.field("_FILE_NAME").to_pylist(), *files.field("_EXTRA_FILES").flatten().to_pylist()]


def _places(
    manifests: Iterable[EntryColumns], needed: pa.StringArray
) -> dict[str, tuple[bytes, int, int | None, str | None]]:
    """Where each needed file lies: partition, bucket, size (unknown for extra files) and external path."""
    wanted = set(needed.to_pylist())
    found: dict[str, tuple[bytes, int, int | None, str | None]] = {}
    for columns in manifests:
        partitions = [columns.partition_rows[p] for p in columns.partitions.tolist()]
        parts = [columns.files.field(n).to_pylist() for n in _PLACE]
        rows = zip(columns.kinds.tolist(), partitions, columns.buckets.tolist(), *parts, strict=True)
        for kind, partition, bucket, name, size, external, extra in rows:
            if kind != int(FileKind.ADD):
                continue
            if name in wanted:
                found[name] = (partition, bucket, size, external)
            beside = None if external is None else external.rpartition("/")[0]
            for other in extra or ():
                if other in wanted:
                    found[other] = (partition, bucket, None, beside and join(beside, other))
    return found
