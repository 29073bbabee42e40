"""Check the hash index files of dynamic buckets.

Invariant: an index file lists distinct hashes, as many as recorded; no hash is in two buckets of a partition; and the
index of a bucket lists the hash of every key in its files.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.bucket.hash_index import HASH_BYTES
from paimon.domain.bucket.key_hashes import Hashes
from paimon.domain.errors import PaimonError
from paimon.domain.maintenance.fault import Fault, FaultKind
from paimon.domain.manifest.entries import IndexManifestEntry
from paimon.domain.row.row_hash_columnar import hash_rows
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.types.data_types import DataField
from paimon.operations.buckets.hash_index_files import read_hash_entries, read_hashes
from paimon.operations.fsck.states import Findings, State, to_fault
from paimon.operations.metadata.index_manifest import index_path
from paimon.operations.table_context import TableContext


@frozen(eq=False)
class HashPlacement:
    """The keys that belong in one dynamic bucket."""

    keys: tuple[DataField, ...]
    # the hashes of the keys of the bucket, ascending
    hashes: Hashes

    def count_misplaced(self, rows: pa.Table) -> int:
        """Return how many rows have a key whose hash is not in the index of the bucket."""
        columns = [rows[f.name].combine_chunks() for f in self.keys]
        found = hash_rows(columns, [f.type for f in self.keys])
        return int(np.count_nonzero(~np.isin(found, self.hashes)))


def read_placement(context: TableContext, entry: IndexManifestEntry | None) -> HashPlacement | None:
    """Read the hash index of a dynamic bucket; None if it cannot be read, which `HashIndexCheck` reports."""
    keys = context.schema.key_fields
    if entry is None:
        return HashPlacement(keys, np.zeros(0, np.int32))
    try:
        return HashPlacement(keys, np.sort(read_hashes(context, entry)))
    except PaimonError:
        return None


class HashIndexCheck:
    """Check the hash indexes of one state, and add faults to `findings`."""

    def __init__(self, findings: Findings, state: State) -> None:
        self._context = state.context
        self._findings = findings
        self._state = state
        self._entries: Mapping[bytes, Mapping[int, IndexManifestEntry]] = {}

    def run(self, deep: bool) -> None:
        """Check the sizes of the index files; a deep check also reads them."""
        if self._context.table.bucket_mode is not BucketMode.DYNAMIC:
            return
        try:
            self._entries = read_hash_entries(self._context, self._state.snapshot)
        except PaimonError as error:
            source = self._context.paths.manifest(self._state.snapshot.index_manifest or "-")
            self._findings.faults.append(to_fault(error, source, [self._state.name]))
            return
        for entries in self._entries.values():
            for entry in entries.values():
                if entry.file_size != entry.row_count * HASH_BYTES:
                    self._report(entry, f"has {entry.file_size} bytes for {entry.row_count} hashes of {HASH_BYTES}")
        if deep:
            for entries in self._entries.values():
                self._check_distinct(entries)

    def find_entry(self, partition: bytes, bucket: int) -> IndexManifestEntry | None:
        """Return the hash index of a bucket; None if it has none."""
        return self._entries.get(partition, {}).get(bucket)

    def _check_distinct(self, entries: Mapping[int, IndexManifestEntry]) -> None:
        seen = np.zeros(0, np.int32)
        for _, entry in sorted(entries.items()):
            hashes = self._load(entry)
            if hashes is None:
                continue
            distinct = np.unique(hashes)
            if len(distinct) != len(hashes):
                self._report(entry, f"has {len(hashes) - len(distinct)} hashes twice")
            shared = np.intersect1d(seen, distinct, assume_unique=True)
            if len(shared):
                self._report(entry, f"shares {len(shared)} hashes with other buckets of its partition")
            seen = np.union1d(seen, distinct)

    def _load(self, entry: IndexManifestEntry) -> Hashes | None:
        try:
            return read_hashes(self._context, entry)
        except PaimonError as error:
            path = index_path(self._context.table, entry, "index manifest")
            fault = to_fault(error, path, [self._state.name])
            if fault not in self._findings.faults:
                self._findings.faults.append(fault)
            return None

    def _report(self, entry: IndexManifestEntry, reason: str) -> None:
        path = index_path(self._context.table, entry, "index manifest")
        self._findings.faults.append(Fault(FaultKind.CONTENT, path, reason, [self._state.name]))
