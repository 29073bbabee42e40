"""What the newest states hold: their entries fit together, and, looking deep, the files hold what is said of them.

Law: row counts add up; levels do not overlap; each file holds its rows, keys in order and within their bounds,
sequence numbers and statistics as said. So, merged, every key is there once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from attrs import evolve

from paimon.domain.errors import PaimonError
from paimon.domain.maintenance.health.fault import Fault, FaultKind
from paimon.domain.maintenance.health.layout import bucket_counts, by_address, file_faults, overlaps
from paimon.domain.manifest.entries import ManifestEntry
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.data_types import DataType
from paimon.operations.maintain.check.file_content import FileContent, Placing
from paimon.operations.maintain.check.marked import check_marked
from paimon.operations.maintain.check.metadata import Metadata
from paimon.operations.maintain.check.states import Found, State, fault_of
from paimon.operations.read.data_file import Bucket
from paimon.operations.read.manifests import live_entries
from paimon.operations.read.schemas import load_schema
from paimon.ports.engine import Engine


class ContentCheck:
    """Looks at the live files of the newest states and tags."""

    def __init__(self, engine: Engine, found: Found, metadata: Metadata, deep: bool) -> None:
        self._engine = engine
        self._found = found
        self._metadata = metadata
        self._deep = deep
        self._read: set[str] = set()
        self.rows = 0

    def run(self) -> None:
        """Look at all of them."""
        for place, state in enumerate(self._found.states):
            if place not in self._metadata.contents:
                continue
            self._delta_count(place, state)
            if not state.is_end:
                continue
            path = state.table.paths.manifest(state.snapshot.base_manifest_list)
            self._found.attempt(path, [state.name], partial(self._state, place, state))

    def _state(self, place: int, state: State) -> None:
        entries = live_entries(self._engine, state.table, self._metadata.contents[place])
        rows, told = sum(e.file.row_count for e in entries), state.snapshot.total_record_count
        if told is not None and told != rows:
            self._count(state, f"says {told} rows in all, its files have {rows}")
        types = _ordering(state.table)
        buckets = BucketPaths.of(state.table)
        for (partition, bucket), files in by_address(entries).items():
            directory = buckets.directory(partition, bucket)
            for file in files:
                for reason in file_faults(file, types if bucket >= 0 else []):
                    self._layout(state, f"{directory}/{file.file_name}", reason)
            if types and bucket >= 0:
                for first, second in overlaps(files, types):
                    reason = f"{first.file_name} and {second.file_name} overlap in level {first.level}"
                    self._layout(state, directory, reason)
        for partition, counts in bucket_counts(entries).items():
            said = ", ".join(map(str, sorted(counts)))
            self._layout(state, buckets.directory(partition, 0).rpartition("/")[0], f"has files of {said} buckets")
        check_marked(self._engine, self._found, state, entries, self._deep)
        if self._deep:
            self._contents(state, entries, directories=buckets)

    def _contents(self, state: State, entries: Sequence[ManifestEntry], directories: BucketPaths) -> None:
        for done, entry in enumerate(entries):
            self._engine.observer.progress("reading files", done, len(entries))
            directory = directories.directory(entry.partition, entry.bucket)
            path = entry.file.external_path or f"{directory}/{entry.file.file_name}"
            if path in self._read:
                continue
            self._read.add(path)
            try:
                for reason in self._file(state, entry, path):
                    self._found.faults.append(Fault(FaultKind.CONTENT, path, reason, [state.name]))
            except PaimonError as error:
                self._found.faults.append(fault_of(error, path, [state.name]))

    def _file(self, state: State, entry: ManifestEntry, path: str) -> Iterator[str]:
        directory = path.rpartition("/")[0]
        split = DataSplit(0, entry.partition, entry.bucket, entry.total_buckets, directory, (entry.file,))
        written = load_schema(self._engine, state.table.paths, entry.file.schema_id)
        keys = written.key_fields if _ordering(state.table) and entry.bucket >= 0 else ()
        bucket = Bucket.of(self._engine, evolve(state.table, schema=written), split)
        placing = Placing.of(evolve(state.table, schema=written), entry)
        content = FileContent(bucket, entry.file, keys, placing)
        yield from content.faults()
        if content.misplaced:
            reason = f"holds {content.misplaced} rows whose key belongs in another bucket"
            self._found.faults.append(Fault(FaultKind.PLACE, path, reason, [state.name]))
        self.rows += content.rows

    def _delta_count(self, place: int, state: State) -> None:
        told = state.snapshot.delta_record_count
        columns = [self._metadata.manifests.get(m.file_name) for m in self._metadata.deltas.get(place, ())]
        if told is None or any(c is None for c in columns):
            return
        rows = sum(int(np.where(c.kinds == 0, 1, -1) @ c.number("_ROW_COUNT")) for c in columns if c is not None)
        if rows != told:
            self._count(state, f"says {told} rows more than before, its delta has {rows}")

    def _count(self, state: State, reason: str) -> None:
        path = state.table.paths.snapshot(state.snapshot.id)
        self._found.faults.append(Fault(FaultKind.COUNT, path, reason, [state.name]))

    def _layout(self, state: State, path: str, reason: str) -> None:
        known = Fault(FaultKind.LAYOUT, path, reason, [state.name])
        same = [i for i, f in enumerate(self._found.faults) if (f.path, f.reason) == (path, reason)]
        if same:
            old = self._found.faults[same[0]]
            self._found.faults[same[0]] = Fault(old.kind, path, reason, (*old.states, state.name))
        else:
            self._found.faults.append(known)


def _ordering(table: TableDefinition) -> list[DataType]:
    """Types of the key that orders the files; empty where no key does."""
    clustered = (table.options.get("pk-clustering-override") or "").strip().lower() == "true"
    return [] if clustered or not table.schema.primary_keys else [f.type for f in table.schema.key_fields]
