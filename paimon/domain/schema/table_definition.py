"""What an operation must know about its table, as one picklable value.

Invariant: a TableDefinition only describes the table; it does no I/O. Operations get it with the engine, as one
`TableContext`.
"""

from __future__ import annotations

from attrs import evolve, frozen

from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths
from paimon.domain.schema.bucket_mode import BucketMode, get_bucket_mode
from paimon.domain.schema.table_schema import TableSchema


@frozen(hash=False)
class TableDefinition:
    """A table at one schema version with its effective options: the stored ones, overridden by dynamic ones.

    Parameters
    ----------
    table_name : str
        The full name, such as ``"shop.orders"``; for tables opened by path, the path or its last part.
    paths : TablePaths
        The paths of the table, seen from its branch.
    schema : TableSchema
        The schema that is read or written.
    options : TableOptions
        The effective options.
    allowed_roots : tuple of str
        Roots outside the table that the caller allows its files to lie under.
    """

    table_name: str
    paths: TablePaths
    schema: TableSchema
    options: TableOptions
    allowed_roots: tuple[str, ...] = ()

    def at_schema(self, schema: TableSchema) -> TableDefinition:
        """Return the same table at another version of its schema; dynamic options still override the stored ones."""
        stored = self.schema.options
        dynamic = {key: text for key, text in self.options.values.items() if stored.get(key) != text}
        return evolve(self, schema=schema, options=TableOptions.of(schema.options).with_values(dynamic))

    @property
    def branch(self) -> str:
        """Branch that is read and written."""
        return self.paths.branch

    @property
    def location(self) -> str:
        """Root directory (or URL) of the table."""
        return self.paths.root

    @property
    def is_bucketed(self) -> bool:
        """Whether rows belong to buckets; false for append tables whose files are all in bucket 0."""
        return bool(self.schema.primary_keys) or self.options.bucket != -1

    @property
    def bucket_mode(self) -> BucketMode:
        """How the bucket of a row is found."""
        return get_bucket_mode(self.schema, self.options)
