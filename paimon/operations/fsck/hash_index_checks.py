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


@frozen(eq=False)
class HashPlacement:
    """The keys that belong in one dynamic bucket.

    Parameters
    ----------
    keys : tuple of DataField
        The columns of the key.
    hashes : int32 array
        The hashes of the keys of the bucket, in ascending order.
    """

    keys: tuple[DataField, ...]
    hashes: Hashes

    def count_misplaced(self, rows: pa.Table) -> int:
        """Return how many rows have a key whose hash is not in the index of the bucket."""
        columns = [rows[f.name].combine_chunks() for f in self.keys]
        found = hash_rows(columns, [f.type for f in self.keys])
        return int(np.count_nonzero(~np.isin(found, self.hashes)))


class HashIndexCheck:
    """Check the hash indexes of one state; the indexes that were read stay until the next partition is asked for.

    Parameters
    ----------
    findings : Findings
        Faults are added to it.
    state : State
        The state.
    """

    def __init__(self, findings: Findings, state: State) -> None:
        self._context = state.context
        self._findings = findings
        self._state = state
        self._entries: Mapping[bytes, Mapping[int, IndexManifestEntry]] = {}
        self._read: dict[tuple[bytes, int], Hashes | None] = {}

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
            for partition, entries in self._entries.items():
                self._check_distinct(partition, entries)

    def find_placement(self, partition: bytes, bucket: int) -> HashPlacement | None:
        """Return which keys belong in a bucket; None if its index cannot be read, or the table has no such index."""
        entry = self._entries.get(partition, {}).get(bucket)
        if self._context.table.bucket_mode is not BucketMode.DYNAMIC:
            return None
        if entry is None:
            return HashPlacement(self._context.schema.key_fields, np.zeros(0, np.int32))
        hashes = self._load(partition, bucket, entry)
        return None if hashes is None else HashPlacement(self._context.schema.key_fields, hashes)

    def _check_distinct(self, partition: bytes, entries: Mapping[int, IndexManifestEntry]) -> None:
        seen = np.zeros(0, np.int32)
        for bucket, entry in sorted(entries.items()):
            hashes = self._load(partition, bucket, entry)
            if hashes is None:
                continue
            distinct = np.unique(hashes)
            if len(distinct) != len(hashes):
                self._report(entry, f"has {len(hashes) - len(distinct)} hashes twice")
            shared = np.intersect1d(seen, distinct, assume_unique=True)
            if len(shared):
                self._report(entry, f"shares {len(shared)} hashes with other buckets of its partition")
            seen = np.union1d(seen, distinct)

    def _load(self, partition: bytes, bucket: int, entry: IndexManifestEntry) -> Hashes | None:
        if (partition, bucket) not in self._read:
            self._read = {key: held for key, held in self._read.items() if key[0] == partition}
            self._read[partition, bucket] = None
            try:
                self._read[partition, bucket] = np.sort(read_hashes(self._context, entry))
            except PaimonError as error:
                path = index_path(self._context.table, entry, "index manifest")
                fault = to_fault(error, path, [self._state.name])
                if fault not in self._findings.faults:
                    self._findings.faults.append(fault)
        return self._read[partition, bucket]

    def _report(self, entry: IndexManifestEntry, reason: str) -> None:
        path = index_path(self._context.table, entry, "index manifest")
        self._findings.faults.append(Fault(FaultKind.CONTENT, path, reason, [self._state.name]))
