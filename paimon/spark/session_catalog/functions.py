"""The functions of an attached catalog: `sys.max_pt`.

Invariant: Spark calls them in this process, while it plans a query, so a scan is pruned by their values.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import StringType

from paimon.catalog import Catalog
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.partition.partition_text import format_plain_text
from paimon.spark.session_catalog.jvm import CONNECTOR, JavaProxy, Jvm
from paimon.sql.plan.count_from_metadata import find_largest
from paimon.table import Table

MAX_PARTITION = "max_pt"


class MaxPartitionProxy(JavaProxy):
    """The largest value of the first partition column of a table, as a text, to which Spark casts other types."""

    class Java:
        """The interfaces."""

        implements = (f"{CONNECTOR}.catalog.functions.UnboundFunction", f"{CONNECTOR}.catalog.functions.ScalarFunction")

    def __init__(self, jvm: Jvm, catalog: Catalog, catalog_name: str) -> None:
        self.jvm = jvm
        self._catalog = catalog
        self._catalog_name = catalog_name

    def name(self) -> str:
        """Return the name."""
        return f"sys.{MAX_PARTITION}"

    def canonicalName(self) -> str:
        """Return the name that no other function has."""
        return f"paimon.{self._catalog_name}.{self.name()}"

    def description(self) -> str:
        """Return what the function does."""
        return f"{self.name()}('database.table'): the largest value of the first partition column that has rows"

    def bind(self, given: Any) -> Any:
        """Return the function for arguments of these types."""
        if given.length() != 1 or given.apply(0).dataType().sql() != "STRING":
            hint = f"write {self.name()}('database.table')"
            raise Unsupported(f"{self.name()} of anything but the name of a table", hint=hint)
        return self

    def inputTypes(self) -> Any:
        """Return the types of the arguments."""
        return self.jvm.make_array("org.apache.spark.sql.types.DataType", [self.resultType()])

    def resultType(self) -> Any:
        """Return the type of the value."""
        return self.jvm.to_java_type(StringType())

    def isResultNullable(self) -> bool:
        """Return that there is always a value."""
        return False

    def isDeterministic(self) -> bool:
        """Return that Spark may call the function while it plans."""
        return True

    def produceResult(self, row: Any) -> Any:
        """Return the value of the table that the only column names, at the newest snapshot."""
        name = None if row.isNullAt(0) else str(row.getUTF8String(0).toString())
        value, kind = find_largest(self._open(name or ""))
        return self.jvm.find_class("org.apache.spark.unsafe.types.UTF8String").fromString(
            format_plain_text(value, kind)
        )

    def _open(self, name: str) -> Table:
        """Open a table whose name may lack the catalog, and also the database where this catalog is the current one."""
        spark, parts = self.jvm.spark, name.split(".")
        if len(parts) == 1 and spark.catalog.currentCatalog() == self._catalog_name:
            parts = [spark.catalog.currentDatabase(), *parts]
        if len(parts) > 2 and parts[0] == self._catalog_name:
            del parts[0]
        table = self._catalog.table(".".join(parts))
        if not isinstance(table, Table):
            raise InvalidRequest(f"{name!r} is a system table.", subject=name, hint="leave out the $ part")
        return table
