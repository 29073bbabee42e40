"""The directories of a table's buckets.

Law: made from the stored partition and the table's options alone. Source: `FileStorePathFactory`.
"""

from __future__ import annotations

from attrs import field, frozen

from paimon.domain.partition.path import partition_path
from paimon.domain.paths import TablePaths
from paimon.domain.row.binary_row import deserialize
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.data_types import DataField


@frozen
class BucketPaths:
    """What directories depend on; see the options `partition.default-name`, `partition.legacy-name`,
    `data-file.path-directory`."""

    paths: TablePaths
    partition_fields: tuple[DataField, ...] = field()
    default_name: str
    legacy_name: bool
    data_directory: str

    @classmethod
    def of(cls, table: TableDefinition) -> BucketPaths:
        """Those of a table."""
        options = table.options
        return cls(
            table.paths,
            table.schema.partition_fields,
            options.partition_default_name,
            options.partition_legacy_name,
            options.data_file_path_directory or "",
        )

    def directory(self, partition: bytes, bucket: int) -> str:
        """The directory of a bucket of a serialised partition."""
        values = deserialize(partition, [f.type for f in self.partition_fields])
        path = partition_path(values, self.partition_fields, self.default_name, self.legacy_name)
        return self.paths.bucket_directory(path, bucket, self.data_directory)
