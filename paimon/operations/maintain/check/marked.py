"""Deletion vectors of a state, and what they must make true.

Law: a vector belongs to a live file, decodes to what is said of it, and marks rows that the file has. Where reads do
not merge the levels above 0 (deletion vectors, first-row), the rows that are not marked have every key once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa

from paimon.domain.errors import PaimonError
from paimon.domain.lsm.sorted_run import SortedRun, sections
from paimon.domain.maintenance.health.fault import Fault, FaultKind
from paimon.domain.maintenance.health.layout import by_address
from paimon.domain.manifest.entries import DataFileMeta, ManifestEntry
from paimon.domain.merge.columnar.ordering.order import groups_of, retracts
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.merge.windows import Piece, windows
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.scan.splits import DataSplit, DeletionFile
from paimon.domain.types.system import SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.maintain.check.states import Found, State, fault_of
from paimon.operations.read.data_file import Bucket, read_data_file
from paimon.operations.read.deletion.index_manifest import deletion_files
from paimon.operations.read.deletion.vectors import read_vector
from paimon.ports.engine import Engine

_WINDOW_BYTES = 16 * 1024 * 1024


def check_marked(engine: Engine, found: Found, state: State, entries: Sequence[ManifestEntry], deep: bool) -> None:
    """Look at the vectors of a state; looking deep, read them, and the keys that they leave."""
    buckets = by_address(entries)
    try:
        vectors = deletion_files(engine, state.table, state.snapshot)
    except PaimonError as error:
        source = state.table.paths.manifest(state.snapshot.index_manifest or "-")
        found.faults.append(fault_of(error, source, [state.name]))
        return
    for address, by_file in vectors.items():
        files = {f.file_name: f for f in buckets.get(address, ())}
        for vector in by_file.values():
            for reason in _vector_faults(engine, vector, files.get(vector.range.data_file), deep):
                found.faults.append(Fault(FaultKind.CONTENT, vector.path, reason, [state.name]))
    options = state.table.options
    if deep and state.table.schema.primary_keys and (
        options.deletion_vectors_enabled or options.merge_engine == "first-row"
    ):  # fmt: skip
        directories = BucketPaths.of(state.table)
        for (partition, bucket), held in buckets.items():
            path = directories.directory(partition, bucket)
            split = DataSplit(state.snapshot.id, partition, bucket, 0, path, tuple(held))
            marks = vectors.get((partition, bucket), {})
            found.attempt(path, [state.name], partial(_keys_once, engine, found, state, split, held, marks))


def _vector_faults(engine: Engine, vector: DeletionFile, file: DataFileMeta | None, deep: bool) -> Iterator[str]:
    name, said = vector.range.data_file, vector.range.cardinality
    if file is None:
        yield f"marks rows of {name}, which is not live"
        return
    if said is not None and said > file.row_count:
        yield f"marks {said} rows of {name}, which has {file.row_count}"
    if not deep:
        return
    try:
        last = read_vector(engine, vector).last
    except PaimonError as error:
        yield error.message
        return
    if last is not None and last >= file.row_count:
        yield f"marks row {last} of {name}, which has {file.row_count}"


def _keys_once(
    engine: Engine,
    found: Found,
    state: State,
    split: DataSplit,
    files: Sequence[DataFileMeta],
    marks: Mapping[str, DeletionFile],
) -> None:
    if split.bucket < 0:
        return
    bucket = Bucket.of(engine, state.table, split)
    keys = state.table.schema.key_fields
    spec = MergeSpec(keys)
    columns = (*keys, SEQUENCE_NUMBER, VALUE_KIND)

    def pieces(run: SortedRun) -> Iterator[Piece]:
        for file in run.files:
            mark = marks.get(file.file_name)
            vector = None if mark is None else read_vector(engine, mark)
            for batch in read_data_file(bucket, file, columns, None, vector):
                yield Piece(batch, 0)

    above = [f for f in files if f.level > 0]
    doubled = 0
    for section in sections(above, [f.type for f in keys]):
        if len(section) == 1:
            continue
        for window in windows([pieces(run) for run in section], keys, _WINDOW_BYTES):
            rows = pa.Table.from_batches([piece.batch for piece in window]).combine_chunks()
            live = rows.filter(pa.array(~retracts(rows)))
            doubled += live.num_rows - groups_of(live, spec).key_count
    if doubled:
        reason = f"holds {doubled} rows above level 0 whose key is there already, and none of them is marked as deleted"
        found.faults.append(Fault(FaultKind.LAYOUT, split.bucket_path, reason, [state.name]))
