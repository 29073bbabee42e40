"""Find the deletion vectors of a snapshot by data file.

Invariant: an index manifest is the complete list of live index files, and a data file has at most one deletion vector.
A vector of a file that is not live is ignored, as in Java; `fsck` reports it.

Source: `IndexFileHandler`, `SnapshotReaderImpl.getDeletionFiles`.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon.domain.errors import CorruptTable
from paimon.domain.manifest.entries import DELETION_VECTORS, FileKind, IndexManifestEntry
from paimon.domain.paths import check_stored_segment, check_within, join_path
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.scan.splits import DeletionFile
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.manifests import read_index_manifest
from paimon.operations.table_context import TableContext


def find_deletion_files(context: TableContext, snapshot: Snapshot) -> Mapping[BucketKey, Mapping[str, DeletionFile]]:
    """Return the location of each deletion vector, by partition and bucket, then by name of the data file.

    Data files without a vector are missing.
    """
    if snapshot.index_manifest is None:
        return {}
    source = context.paths.manifest(snapshot.index_manifest)
    found: dict[BucketKey, dict[str, DeletionFile]] = {}
    for entry in read_index_manifest(context, snapshot.index_manifest):
        if entry.kind is FileKind.DELETE:
            continue
        if entry.index_type != DELETION_VECTORS:
            if entry.deletion_vectors:
                raise CorruptTable(source, f"contains deletion vectors in an index of type {entry.index_type!r:.80}")
            continue
        path = index_path(context.table, entry, source)
        files = found.setdefault((entry.partition, entry.bucket), {})
        for vector in entry.deletion_vectors or ():
            if vector.data_file in files:
                raise CorruptTable(source, f"names two deletion vectors for data file {vector.data_file!r}")
            files[vector.data_file] = DeletionFile(path, vector)
    return found


def index_path(table: TableDefinition, entry: IndexManifestEntry, source: str) -> str:
    """Return the path of an index file: the external path, or in the bucket or index directory, as the options say.

    `source` is the file that names the index file, for error messages. Raises `CorruptTable` if the path lies outside
    the table and its allowed roots.
    """
    if entry.external_path is not None:
        return check_within(entry.external_path, (table.location, *table.allowed_roots), source)
    if table.options.index_file_in_data_file_dir:
        directory = BucketPaths.of(table).directory(entry.partition, entry.bucket)
        return join_path(directory, check_stored_segment(entry.file_name, source))
    return table.paths.index(entry.file_name, source)
