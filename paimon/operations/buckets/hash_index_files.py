"""Read and write the hash index files of dynamic buckets.

Invariant: an index file holds as many hashes as the index manifest records.
Source: `HashIndexFile`, `DynamicBucketIndexMaintainer`.
"""

from __future__ import annotations

from paimon.domain.bucket.hash_index import HASH_BYTES, MAX_DYNAMIC_BUCKETS, decode_hash_index, encode_hash_index
from paimon.domain.bucket.key_hashes import Hashes
from paimon.domain.errors import CorruptTable, NotFound, Unsupported
from paimon.domain.manifest.entries import DELETION_VECTORS, HASH_INDEX, FileKind, IndexManifestEntry
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.manifests import index_path, place_index_file, read_index_manifest
from paimon.operations.table_context import TableContext


def read_hash_entries(context: TableContext, snapshot: Snapshot | None) -> dict[bytes, dict[int, IndexManifestEntry]]:
    """Return the hash index files of a snapshot by bucket; another type is Unsupported, as it may assign keys."""
    if snapshot is None or snapshot.index_manifest is None:
        return {}
    found: dict[bytes, dict[int, IndexManifestEntry]] = {}
    for entry in read_index_manifest(context, snapshot.index_manifest):
        if entry.kind is FileKind.DELETE or entry.index_type == DELETION_VECTORS or entry.global_index is not None:
            continue
        if entry.index_type != HASH_INDEX:
            raise Unsupported(
                f"index type {entry.index_type!r:.80} of file {entry.file_name!r:.120}",
                path=context.paths.manifest(snapshot.index_manifest),
                hint="write the table with a release that knows this type; reads do not need it",
            )
        if not 0 <= entry.bucket < MAX_DYNAMIC_BUCKETS:
            raise CorruptTable(
                context.paths.manifest(snapshot.index_manifest),
                f"names dynamic bucket {entry.bucket}, but numbers range from 0 to {MAX_DYNAMIC_BUCKETS - 1}",
            )
        found.setdefault(entry.partition, {})[entry.bucket] = entry
    return found


def read_hashes(context: TableContext, entry: IndexManifestEntry) -> Hashes:
    """Return the hashes of an index file."""
    path = index_path(context.table, entry, "index manifest")
    expected = entry.row_count * HASH_BYTES
    try:
        data = context.files.read(path, max_bytes=max(expected, entry.file_size, 0))
    except NotFound as error:
        raise CorruptTable(path, "is missing, but the index manifest references it") from error
    hashes = decode_hash_index(data, path)
    if len(data) != expected:
        raise CorruptTable(path, f"has {len(hashes)} hashes, but the index manifest records {entry.row_count}")
    return hashes


def write_hashes(context: TableContext, partition: bytes, bucket: int, hashes: Hashes, name: str) -> IndexManifestEntry:
    """Write the hash index file of a bucket; `partition` is the partition as a serialized row."""
    data = encode_hash_index(hashes)
    entry = IndexManifestEntry(FileKind.ADD, partition, bucket, HASH_INDEX, name, len(data), len(hashes))
    entry = place_index_file(context.table, entry)
    with context.files.create(index_path(context.table, entry, "index manifest")) as sink:
        sink.write(data)
    return entry
