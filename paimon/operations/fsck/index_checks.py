"""Check what belongs to the buckets of a state: deletion vectors, hash indexes, and keys that must be unique."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial

import numpy as np
import pyarrow as pa

from paimon.domain.bucket.hash_index import HASH_BYTES
from paimon.domain.bucket.key_hashes import Hashes
from paimon.domain.errors import PaimonError
from paimon.domain.lsm.sorted_run import SortedRun, cut_into_sections
from paimon.domain.maintenance.fault import Fault, FaultKind
from paimon.domain.manifest.entries import DataFileMeta, IndexManifestEntry
from paimon.domain.manifest.entry_columns import EntryColumns
from paimon.domain.merge.merge_engines import is_oldest_winning
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.merge_order import group_rows_by_key, mask_retracts
from paimon.domain.merge.windows import Piece, cut_into_windows
from paimon.domain.scan.assemble import group_by_bucket
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.scan.splits import DataSplit, DeletionFile
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.buckets.hash_index_files import read_hash_entries, read_hashes
from paimon.operations.buckets.key_bootstrap import open_key_store, plan_key_splits, read_key_places
from paimon.operations.data_files.deletion_vectors import read_vector
from paimon.operations.data_files.read_data_file import Bucket
from paimon.operations.fsck.states import Findings, State, to_fault
from paimon.operations.metadata.manifests import find_deletion_files, index_path
from paimon.operations.read.global_indexes import find_index_fault, find_readable_indexes
from paimon.operations.read.split import read_in_key_order, share_sort_memory
from paimon.operations.table_context import TableContext
from paimon.ports.key_stores import KeyStore, Places

_WINDOW_BYTES = 16 * 1024 * 1024


def check_deletion_vectors(findings: Findings, state: State, live: EntryColumns, deep: bool) -> None:
    """Check the deletion vectors of a state with these live files, and add faults to `findings`.

    A deep check also reads the vectors, and the keys of unmarked rows.
    """
    try:
        vectors = find_deletion_files(state.context, state.snapshot)
    except PaimonError as error:
        source = state.context.paths.manifest(state.snapshot.index_manifest or "-")
        findings.faults.append(to_fault(error, source, [state.name]))
        return
    checks_keys = deep and _has_unique_keys(state.context.table)
    if not vectors and not checks_keys:
        return
    if not checks_keys:  # only the buckets with vectors matter
        named = {partition for partition, _ in vectors}
        live = live.filter(np.isin(live.partitions, [i for i, row in enumerate(live.partition_rows) if row in named]))
    buckets = {(b.partition, b.bucket): b.files for b in group_by_bucket(live, None)}
    for address, by_file in vectors.items():
        files = {f.file_name: f for f in buckets.get(address, ())}
        for vector in by_file.values():
            for reason in _find_vector_faults(state.context, vector, files.get(vector.range.data_file), deep):
                findings.faults.append(Fault(FaultKind.CONTENT, vector.path, reason, [state.name]))
    if checks_keys:
        directories = BucketPaths.of(state.context.table)
        for (partition, bucket), found in buckets.items():
            path = directories.directory(partition, bucket)
            split = DataSplit(state.snapshot.id, partition, bucket, 0, path, found)
            vectors_by_file = vectors.get((partition, bucket), {})
            findings.attempt(
                path, [state.name], partial(_check_unique_keys, findings, state, split, found, vectors_by_file)
            )


def check_global_indexes(findings: Findings, state: State) -> None:
    """Read the global indexes of a state that this library uses, and add faults to `findings`."""
    name, context = state.snapshot.index_manifest, state.context
    if name is None or not context.options.data_evolution_enabled:
        return

    def check() -> None:
        """Read each file."""
        for column, files in find_readable_indexes(context, state.snapshot, context.schema.fields):
            for entry in files:
                reason = find_index_fault(context, column, entry)
                path = index_path(context.table, entry, "index manifest")
                if reason is not None and all(fault.path != path for fault in findings.faults):
                    findings.faults.append(Fault(FaultKind.CONTENT, path, reason, [state.name]))

    findings.attempt(context.paths.manifest(name), [state.name], check)


def _has_unique_keys(table: TableDefinition) -> bool:
    """Return whether reads do not merge the levels above 0, so that each key must be unmarked at most once."""
    reads_unmerged = table.options.deletion_vectors_enabled or is_oldest_winning(table.options.merge_engine)
    return bool(table.schema.primary_keys) and reads_unmerged


def _find_vector_faults(
    context: TableContext, vector: DeletionFile, file: DataFileMeta | None, deep: bool
) -> Iterator[str]:
    name, recorded = vector.range.data_file, vector.range.cardinality
    if file is None:
        yield f"marks rows of {name}, which is not live"
        return
    if recorded is not None and recorded > file.row_count:
        yield f"marks {recorded} rows of {name}, which has {file.row_count}"
    if not deep:
        return
    try:
        last = read_vector(context.engine, vector).last
    except PaimonError as error:
        yield error.message
        return
    if last is not None and last >= file.row_count:
        yield f"marks row {last} of {name}, which has {file.row_count}"


def _check_unique_keys(
    findings: Findings,
    state: State,
    split: DataSplit,
    files: Sequence[DataFileMeta],
    vectors_by_file: Mapping[str, DeletionFile],
) -> None:
    if split.bucket < 0:
        return
    bucket = share_sort_memory(Bucket.of(state.context, split), len(files))
    keys = state.context.schema.key_fields
    spec = MergeSpec(keys)
    columns = (*keys, SEQUENCE_NUMBER, VALUE_KIND)

    def read_pieces(run: SortedRun) -> Iterator[Piece]:
        """Yield the unmarked keys of a sorted run."""
        for file in run.files:
            vector_file = vectors_by_file.get(file.file_name)
            vector = None if vector_file is None else read_vector(state.context.engine, vector_file)
            for batch in read_in_key_order(bucket, file, columns, None, vector):
                yield Piece(batch, 0)

    above = [f for f in files if f.level > 0]
    duplicates = 0
    for section in cut_into_sections(above, state.context.table.sorted_key_types):
        if len(section) == 1:
            continue
        for window in cut_into_windows([read_pieces(run) for run in section], keys, _WINDOW_BYTES):
            rows = pa.Table.from_batches([piece.batch for piece in window]).combine_chunks()
            live = rows.filter(pa.array(~mask_retracts(rows)))
            duplicates += live.num_rows - group_rows_by_key(live, spec).key_count
    if duplicates:
        reason = (
            f"has {duplicates} rows above level 0 with a key that occurs twice, and neither row is marked as deleted"
        )
        findings.faults.append(Fault(FaultKind.LAYOUT, split.bucket_path, reason, [state.name]))


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


class KeyCheck:
    """Check the keys of one state, and add faults to `findings`."""

    def __init__(self, findings: Findings, state: State) -> None:
        self._context = state.context
        self._findings = findings
        self._state = state
        self._numbers: dict[tuple[bytes, int], int] = {}

    def run(self) -> None:
        """Report buckets with keys of another bucket; a key index with a time to live allows such keys."""
        options = self._context.options
        if (
            self._context.table.bucket_mode is not BucketMode.CROSS_PARTITION
            or options.cross_partition_index_ttl_millis is not None
        ):
            return
        try:
            with closing(open_key_store(self._context)) as store:
                store.load(self._read_keys(), self._context.engine.clock.now_millis())
                self._compare(store)
        except PaimonError as error:
            fault = to_fault(error, self._state.path, [self._state.name])
            if all(fault.path != known.path for known in self._findings.faults):  # the check of files reports it, too
                self._findings.faults.append(fault)

    def _compare(self, store: KeyStore) -> None:
        """Report the keys for which the store has another place than their row."""
        shared: dict[int, tuple[int, int]] = {}
        for keys, places in self._read_keys():
            found = store.find(keys)
            others = found[found != places]
            if len(others):
                count, other = shared.get(int(places[0]), (0, int(others[0])))
                shared[int(places[0])] = (count + len(others), other)
        paths, buckets = BucketPaths.of(self._context.table), list(self._numbers)
        for place, (count, other) in shared.items():
            reason = (
                f"has {count} rows whose key is live in other buckets, too, such as {paths.directory(*buckets[other])}"
            )
            fault = Fault(FaultKind.PLACE, paths.directory(*buckets[place]), reason, [self._state.name])
            self._findings.faults.append(fault)

    def _read_keys(self) -> Iterator[tuple[pa.RecordBatch, Places]]:
        """Yield the keys of all buckets, and the number of their bucket for each."""
        for partition, bucket, keys in read_key_places(
            self._context, plan_key_splits(self._context, self._state.snapshot)
        ):
            number = self._numbers.setdefault((partition, bucket), len(self._numbers))
            yield keys, np.full(keys.num_rows, number, np.int64)
