"""Check the deletion vectors of a state, and the uniqueness of keys that depends on them.

Invariant: a vector belongs to a live file, can be decoded, has the recorded number of rows, and marks existing rows.
Where reads do not merge the levels above 0 (deletion vectors, first-row), each key is unmarked at most once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa

from paimon.domain.errors import PaimonError
from paimon.domain.lsm.sorted_run import SortedRun, cut_into_sections
from paimon.domain.maintenance.fault import Fault, FaultKind
from paimon.domain.maintenance.layout_check import group_by_bucket
from paimon.domain.manifest.entries import DataFileMeta, ManifestEntry
from paimon.domain.merge.merge_engines import is_oldest_winning
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.merge_order import group_rows_by_key, mask_retracts
from paimon.domain.merge.windows import Piece, cut_into_windows
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.scan.splits import DataSplit, DeletionFile
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.data_files.deletion_vectors import read_vector
from paimon.operations.data_files.read_data_file import Bucket, read_data_file
from paimon.operations.fsck.states import Findings, State, to_fault
from paimon.operations.metadata.index_manifest import find_deletion_files
from paimon.operations.table_context import TableContext

_WINDOW_BYTES = 16 * 1024 * 1024


def check_deletion_vectors(findings: Findings, state: State, entries: Sequence[ManifestEntry], deep: bool) -> None:
    """Check the deletion vectors of a state, whose live files are `entries`, and add faults to `findings`.

    A deep check also reads the vectors, and the keys of unmarked rows.
    """
    buckets = group_by_bucket(entries)
    try:
        vectors = find_deletion_files(state.context, state.snapshot)
    except PaimonError as error:
        source = state.context.paths.manifest(state.snapshot.index_manifest or "-")
        findings.faults.append(to_fault(error, source, [state.name]))
        return
    for address, by_file in vectors.items():
        files = {f.file_name: f for f in buckets.get(address, ())}
        for vector in by_file.values():
            for reason in _find_vector_faults(state.context, vector, files.get(vector.range.data_file), deep):
                findings.faults.append(Fault(FaultKind.CONTENT, vector.path, reason, [state.name]))
    if deep and _has_unique_keys(state.context.table):
        directories = BucketPaths.of(state.context.table)
        for (partition, bucket), live in buckets.items():
            path = directories.directory(partition, bucket)
            split = DataSplit(state.snapshot.id, partition, bucket, 0, path, tuple(live))
            vectors_by_file = vectors.get((partition, bucket), {})
            findings.attempt(
                path, [state.name], partial(_check_unique_keys, findings, state, split, live, vectors_by_file)
            )


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
    bucket = Bucket.of(state.context, split)
    keys = state.context.schema.key_fields
    spec = MergeSpec(keys)
    columns = (*keys, SEQUENCE_NUMBER, VALUE_KIND)

    def read_pieces(run: SortedRun) -> Iterator[Piece]:
        """Yield the unmarked keys of a sorted run."""
        for file in run.files:
            vector_file = vectors_by_file.get(file.file_name)
            vector = None if vector_file is None else read_vector(state.context.engine, vector_file)
            for batch in read_data_file(bucket, file, columns, None, vector):
                yield Piece(batch, 0)

    above = [f for f in files if f.level > 0]
    duplicates = 0
    for section in cut_into_sections(above, [f.type for f in keys]):
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
