"""What an operation must know of the table that it works on, as one picklable value.

Law: operations take `(engine, table, …)`; a TableDefinition has no behaviour beyond naming its own parts.
"""

from __future__ import annotations

from attrs import evolve, frozen

from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths
from paimon.domain.schema.table_schema import TableSchema


@frozen(hash=False)
class TableDefinition:
    """A table at one schema version with its effective options (stored ones, overridden by dynamic ones).

    `allowed_roots` are the roots outside the table that the caller allows its files to lie under.
    """

    identifier: str
    paths: TablePaths
    schema: TableSchema
    options: TableOptions
    allowed_roots: tuple[str, ...] = ()

    def at_schema(self, schema: TableSchema) -> TableDefinition:
        """The same table at another version of its schema; dynamic options stay on top of the stored ones."""
        stored = self.schema.options
        dynamic = {key: text for key, text in self.options.values.items() if stored.get(key) != text}
        return evolve(self, schema=schema, options=TableOptions.of(schema.options).with_values(dynamic))

    @property
    def branch(self) -> str:
        """The branch that is read and written."""
        return self.paths.branch

    @property
    def location(self) -> str:
        """The root directory (or URL) of the table."""
        return self.paths.root

    @property
    def is_bucketed(self) -> bool:
        """Whether rows belong to buckets: not so in append tables whose files lie together in bucket 0."""
        return bool(self.schema.primary_keys) or self.options.bucket != -1
