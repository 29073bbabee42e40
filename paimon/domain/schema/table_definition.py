"""What an operation must know about its table, as one picklable value.

Invariant: a TableDefinition only describes the table; it does no I/O. Operations get it with the engine, as one
`TableContext`.
"""

from __future__ import annotations

from hashlib import sha256

from attrs import evolve, field, frozen

from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths
from paimon.domain.schema.bucket_mode import BucketMode, get_bucket_mode
from paimon.domain.schema.external_paths import ExternalPaths, find_external_paths
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import DataField, DataType


@frozen
class TableOrigin:
    """The first schema file of a table as it was when the table was opened; a table that is created again has another.

    Its id, a hash of its bytes, and its size and time by which a listing shows that it may have changed.
    """

    schema_id: int
    digest: bytes
    size: int
    modified_millis: int | None = field(default=None, eq=False)

    @classmethod
    def of(cls, schema_id: int, data: bytes, modified_millis: int | None) -> TableOrigin:
        """Return the origin of a table whose first schema file contains these bytes."""
        return cls(schema_id, sha256(data).digest(), len(data), modified_millis)

    def is_same_file(self, data: bytes) -> bool:
        """Return whether these are the bytes of the file."""
        return sha256(data).digest() == self.digest

    def may_have_changed(self, size: int, modified_millis: int | None) -> bool:
        """Return whether the listed file may be another one; a storage without times shows it by the size alone."""
        return size != self.size or modified_millis != self.modified_millis


@frozen(hash=False)
class TableDefinition:
    """A table at one schema version with its effective options: the stored ones, overridden by dynamic ones."""

    # the full name, such as "shop.orders"; for tables opened by path, the path or its last part
    table_name: str
    # seen from the branch of the table
    paths: TablePaths
    schema: TableSchema
    options: TableOptions
    # directories outside the table that the caller allows data files to lie in
    allowed_roots: tuple[str, ...] = ()
    # identifies the table; if None, no operation notices that the table was dropped and created again
    origin: TableOrigin | None = field(default=None, repr=False)

    def at_schema(self, schema: TableSchema) -> TableDefinition:
        """Return the same table at another version of its schema; dynamic options still override the stored ones."""
        stored = self.schema.options
        dynamic = {key: text for key, text in self.options.values.items() if stored.get(key) != text}
        return evolve(self, schema=schema, options=TableOptions.of(schema.options).with_values(dynamic))

    def at_paths(self, paths: TablePaths) -> TableDefinition:
        """Return the same table seen from another branch, whose schema files are others."""
        return evolve(self, paths=paths, origin=None)

    @property
    def branch(self) -> str:
        """Branch that is read and written."""
        return self.paths.branch

    @property
    def location(self) -> str:
        """Root directory (or URL) of the table."""
        return self.paths.root

    @property
    def sorted_key_types(self) -> list[DataType]:
        """The types of the primary key that orders the rows of each file; empty if none does."""
        return [] if self.options.pk_clustering_override else [f.type for f in self.schema.key_fields]

    def get_bound_fields(self, level: int, written: TableSchema | None = None) -> tuple[DataField, ...]:
        """Return the columns of the smallest and the largest key in the metadata of files of a level.

        `written` is the schema that a file was written with; by default the current one.
        """
        schema = written or self.schema
        if self.options.pk_clustering_override and level > 0:
            options = self.options if written is None else TableOptions.of(written.options)
            return tuple(schema.field_of(name) for name in options.clustering_columns)
        return schema.key_fields

    @property
    def roots(self) -> tuple[str, ...]:
        """The directories that may contain files of the table: its own, and those that the caller allows."""
        return (self.location, *self.allowed_roots)

    @property
    def external_paths(self) -> ExternalPaths | None:
        """Where new data files are written; None if in the directory of the table."""
        return find_external_paths(self.options, self.location, self.allowed_roots)

    @property
    def is_bucketed(self) -> bool:
        """Whether rows belong to buckets; false for append tables whose files are all in bucket 0."""
        return bool(self.schema.primary_keys) or self.options.bucket != -1

    @property
    def bucket_mode(self) -> BucketMode:
        """How the bucket of a row is found."""
        return get_bucket_mode(self.schema, self.options)
