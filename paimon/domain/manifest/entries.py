"""The records of manifests, manifest lists and index manifests as values.

Invariant: A file is identified by (partition, bucket, level, name, extra files, embedded index, external path). Moving
a file to another level is therefore a DELETE and an ADD of the same name.
Source: `ManifestEntry`, `DataFileMeta`, `ManifestFileMeta`, `IndexManifestEntry`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from attrs import evolve, field, frozen

from paimon.domain.stats.simple_stats import EMPTY_ROW, EMPTY_STATS, SimpleStats


class FileKind(IntEnum):
    """Whether an entry adds or deletes a file."""

    ADD = 0
    DELETE = 1


DELETION_VECTORS = "DELETION_VECTORS"
"""The index type of files with deletion vectors. A commit that changes such a file is an OVERWRITE."""
INDEX_SUFFIX = ".index"
"""How the name of a file with the file indexes of a data file ends."""
HASH_INDEX = "HASH"
"""The index type of the files that list the key hashes of a dynamic bucket."""


class FileSource(IntEnum):
    """The operation that wrote a data file."""

    APPEND = 0
    COMPACT = 1


def _to_tuple(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


@frozen
class DataFileMeta:
    """One data file or changelog file.

    `min_key` and `max_key` are serialized BinaryRows of the trimmed primary key. `creation_time_millis` is the local
    wall clock of the writer, encoded as if it were UTC. `delete_row_count` None means unknown: the file can contain
    retracts.
    """

    file_name: str
    file_size: int
    row_count: int
    min_key: bytes = EMPTY_ROW
    max_key: bytes = EMPTY_ROW
    key_stats: SimpleStats = EMPTY_STATS
    value_stats: SimpleStats = EMPTY_STATS
    min_sequence_number: int = 0
    max_sequence_number: int = 0
    schema_id: int = 0
    level: int = 0
    extra_files: tuple[str, ...] = field(converter=_to_tuple, default=())
    creation_time_millis: int | None = None
    delete_row_count: int | None = None
    embedded_index: bytes | None = None
    file_source: FileSource | None = None
    value_stats_cols: tuple[str, ...] | None = None
    external_path: str | None = None
    first_row_id: int | None = None
    write_cols: tuple[str, ...] | None = None

    @property
    def is_blob_file(self) -> bool:
        """Whether the file has the values of a BLOB column alone."""
        return self.file_name.endswith(".blob")

    @property
    def is_main_file(self) -> bool:
        """Whether the file is no BLOB or vector file; those have columns of the same rows as a main file."""
        return not self.is_blob_file and ".vector." not in self.file_name

    @property
    def stored_names(self) -> tuple[str, ...]:
        """The names of all files that belong to it: its own, and those of its extra files."""
        return (self.file_name, *self.extra_files)

    @property
    def index_name(self) -> str | None:
        """The name of its `.index` file; None if it has none."""
        return next((name for name in self.extra_files if name.endswith(INDEX_SUFFIX)), None)

    @property
    def has_indexes(self) -> bool:
        """Whether it has file indexes."""
        return self.embedded_index is not None or self.index_name is not None

    def path_in(self, directory: str) -> str:
        """Return the path of the file, whose bucket has this directory; an external path is not checked here."""
        return self.external_path or f"{directory}/{self.file_name}"

    def paths_in(self, directory: str) -> list[str]:
        """Return the paths of the file and of its extra files, which are next to it."""
        path = self.path_in(directory)
        return [path, *(f"{path.rpartition('/')[0]}/{name}" for name in self.extra_files)]


def count_statistics_bytes(files: Iterable[DataFileMeta]) -> int:
    """Return about how many bytes the keys, statistics and indexes of files have in memory."""
    total = 0
    for file in files:
        total += len(file.min_key) + len(file.max_key) + len(file.embedded_index or b"")
        for stats in (file.key_stats, file.value_stats):
            total += len(stats.min_values) + len(stats.max_values) + 8 * len(stats.null_counts)
    return total


def to_files(values: Iterable[DataFileMeta]) -> tuple[DataFileMeta, ...]:
    """Convert files to the tuple that a value keeps."""
    return tuple(values)


@frozen
class ManifestEntry:
    """One record of a manifest; `partition` is a serialized BinaryRow of the partition columns."""

    kind: FileKind
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFileMeta

    @property
    def identity(self) -> tuple[object, ...]:
        """The values that must be equal for a DELETE to cancel an ADD."""
        f = self.file
        return (
            self.partition,
            self.bucket,
            f.level,
            f.file_name,
            f.extra_files,
            f.embedded_index,
            f.external_path,
        )

    def to_delete_entry(self) -> ManifestEntry:
        """Return the entry that deletes this file."""
        return evolve(self, kind=FileKind.DELETE)


@frozen
class ManifestFileMeta:
    """One record of a manifest list.

    The bounds include all entries, also deleted files. They are None in files of older writers.
    """

    file_name: str
    file_size: int
    num_added_files: int
    num_deleted_files: int
    partition_stats: SimpleStats = EMPTY_STATS
    schema_id: int = 0
    min_bucket: int | None = None
    max_bucket: int | None = None
    min_level: int | None = None
    max_level: int | None = None
    min_row_id: int | None = None
    max_row_id: int | None = None


@frozen
class DeletionVectorRange:
    """The range of the deletion vector of one data file in an index file; offset and length are in bytes."""

    data_file: str
    offset: int
    length: int
    cardinality: int | None = None


@frozen
class GlobalIndex:
    """The global index part of an index manifest entry; the row range is inclusive."""

    row_range_start: int
    row_range_end: int
    index_field_id: int
    extra_field_ids: tuple[int, ...] | None = None
    index_meta: bytes | None = None
    source_meta: bytes | None = None


@frozen
class IndexManifestEntry:
    """One index file: a hash index, deletion vectors, or a global index."""

    kind: FileKind
    partition: bytes
    bucket: int
    index_type: str
    file_name: str
    file_size: int
    row_count: int
    deletion_vectors: tuple[DeletionVectorRange, ...] | None = None
    external_path: str | None = None
    global_index: GlobalIndex | None = None
