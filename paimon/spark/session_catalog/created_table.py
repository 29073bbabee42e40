"""A table that a statement creates or replaces together with its rows.

Invariant: no reader sees the table without its rows, and a replaced table stays if the statement fails.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from paimon.catalog import Catalog
from paimon.spark.session_catalog.jvm import CONNECTOR, JavaProxy, Jvm
from paimon.spark.session_catalog.schemas import PRIMARY_KEY, Declaration, add_options
from paimon.spark.session_catalog.table_proxy import RelationProxy
from paimon.spark.session_catalog.write_proxy import FrameWriteProxy
from paimon.spark.write import write


class CreatedTableProxy(RelationProxy):
    """A table that does not exist yet."""

    class Java:
        """The interfaces."""

        implements = (f"{CONNECTOR}.catalog.StagedTable", f"{CONNECTOR}.catalog.SupportsWrite")

    def __init__(
        self, jvm: Jvm, catalog: Catalog, name: str, catalog_name: str, declared: Declaration, *, replace: bool
    ) -> None:
        super().__init__(jvm, f"{catalog_name}.{name}", declared.schema, declared.partition_keys)
        self._catalog = catalog
        self._table_name = name
        self._declared = declared
        self._replace = replace
        self._is_filled = False

    def properties(self) -> Any:
        """Return the options and the primary key."""
        keys = {PRIMARY_KEY: ",".join(self._declared.primary_keys)} if self._declared.primary_keys else {}
        return self.jvm.make_map({**self._declared.options, **keys, "provider": "paimon"})

    def capabilities(self) -> Any:
        """Return that Spark may append the rows."""
        return self.jvm.list_enum("catalog.TableCapability", ("BATCH_WRITE", "V1_BATCH_WRITE", "TRUNCATE"))

    def newWriteBuilder(self, info: Any) -> Any:
        """Begin the write of the rows; the options that `saveAsTable` passes to it are those of the table."""
        self._declared = add_options(self._declared, self.jvm.read_json(info.options()))
        return CreationBuilderProxy(self.jvm, FrameWriteProxy(self.jvm, f"create {self.title}", self._fill))

    def _fill(self, frame: DataFrame) -> None:
        declared = self._declared
        self._catalog.create_filled_table(
            self._table_name,
            declared.fields,
            lambda table: write(frame, table),
            **declared.arguments,
            replace=self._replace,
        )
        self._is_filled = True

    def commitStagedChanges(self) -> None:
        """Create the table, unless its rows did."""
        if not self._is_filled:
            declared = self._declared
            self._catalog.create_table(self._table_name, declared.fields, **declared.arguments, replace=self._replace)

    def abortStagedChanges(self) -> None:
        """Do nothing: nothing was created."""


class CreationBuilderProxy(JavaProxy):
    """Builds the write of a created table."""

    class Java:
        """The interfaces."""

        implements = (f"{CONNECTOR}.write.SupportsTruncate",)

    def __init__(self, jvm: Jvm, write: FrameWriteProxy) -> None:
        self.jvm = jvm
        self._write = write

    def truncate(self) -> Any:
        """Do nothing: the table has no rows."""
        return self

    def build(self) -> Any:
        """Return the write."""
        return self._write
