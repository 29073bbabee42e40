"""Partitions of a table for Spark's statements: SHOW, DROP, TRUNCATE and DESCRIBE PARTITION."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from paimon.domain.commit.overwrite import partitions_of_spec
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.row.binary_row import deserialize
from paimon.domain.row.values import to_array
from paimon.operations.expire.expire_partitions import find_partitions
from paimon.operations.read.system.partitions_and_buckets import format_partition_name
from paimon.spark.session_catalog.jvm import JavaProxy, Jvm
from paimon.spark.session_catalog.predicates import convert_value
from paimon.spark.types import to_spark_frame
from paimon.system_table import SystemTable
from paimon.table import Table


class PartitionsProxy(JavaProxy):
    """What Spark asks of the partitions of a table; a partition is a row of Spark with values of the first columns."""

    jvm: Jvm
    title: str
    opened: Table | SystemTable
    spark_schema: StructType
    _partitions: tuple[str, ...]

    def find_target(self) -> Table:
        """Return the table that a statement changes; refuse a system table."""
        if isinstance(self.opened, Table):
            return self.opened
        wrong = f"{self.title!r} is a system table, which is read-only."
        raise InvalidRequest(wrong, subject=self.title, hint="leave out the $ part")

    def _list_columns(self) -> StructType:
        return StructType([self.spark_schema[name] for name in self._partitions])

    def partitionSchema(self) -> Any:
        """Return the partition columns."""
        return self.jvm.to_java_type(self._list_columns())

    def listPartitionIdentifiers(self, names: Any, given: Any) -> Any:
        """Return the partitions that have the given values in the named columns."""
        table = self.find_target()
        fields = table.table_schema.partition_fields
        spec = self._read_spec(given, [str(name) for name in names])
        if any(key.startswith("scan.") for key in table.definition.options.values):  # those of an older snapshot
            matches = partitions_of_spec(table.definition, spec)
            found = [row for row in {split.partition for split in table.scan().plan().splits} if matches(row)]
        else:
            found = find_partitions(table.context, [spec])
        found.sort(key=partial(format_partition_name, table.definition))
        rows = [deserialize(row, [f.type for f in fields]) for row in found]
        columns = [to_array([row[i] for row in rows], f.type) for i, f in enumerate(fields)]
        frame = to_spark_frame(self.jvm.spark, pa.table(columns, names=self._partitions))
        return frame._jdf.queryExecution().executedPlan().executeCollect()

    def partitionExists(self, given: Any) -> bool:
        """Return whether a partition has rows."""
        return bool(find_partitions(self.find_target().context, [self._read_spec(given)]))

    def loadPartitionMetadata(self, given: Any) -> Any:
        """Return what the system table ``partitions`` knows of a partition."""
        table = self.find_target()
        found = find_partitions(table.context, [self._read_spec(given)])
        names = {format_partition_name(table.definition, row) for row in found}
        rows = [row for row in table.partitions().to_pylist() if row["partition"] in names]
        known = {key: str(value) for row in rows for key, value in row.items() if value is not None}
        known.pop("partition", None)
        return self.jvm.make_map(known)

    def dropPartitions(self, given: Any) -> bool:
        """Drop partitions in one commit, and return whether one had rows."""
        specs = [self._read_spec(row) for row in given]  # none, if TRUNCATE names values that no partition has
        return bool(specs and self.find_target().drop_partitions(*specs))

    def dropPartition(self, given: Any) -> bool:
        """Drop a partition."""
        return bool(self.dropPartitions([given]))

    purgePartitions = truncatePartitions = dropPartitions
    purgePartition = truncatePartition = dropPartition

    def createPartitions(self, given: Any, properties: Any) -> None:
        """Refuse an empty partition: a partition exists once it has rows."""
        del given, properties
        raise Unsupported("ADD PARTITION", hint="write rows to the partition; it exists as long as it has rows")

    def createPartition(self, given: Any, properties: Any) -> None:
        """Refuse an empty partition."""
        self.createPartitions([given], [properties])

    def replacePartitionMetadata(self, given: Any, properties: Any) -> None:
        """Refuse properties of a partition."""
        del given, properties
        raise Unsupported("properties of a partition", hint="set options of the table")

    def renamePartition(self, given: Any, new: Any) -> bool:
        """Refuse to rename a partition."""
        del given, new
        raise Unsupported("RENAME PARTITION", hint="INSERT its rows into the new partition, then DROP PARTITION")

    def _read_spec(self, given: Any, names: list[str] | None = None) -> dict[str, Any]:
        """Return the values of a row of Spark by column; by default it has all partition columns."""
        spec: dict[str, Any] = {}
        for position, name in enumerate(self._partitions if names is None else names):
            kind = self.spark_schema[name].dataType
            raw = None if given.isNullAt(position) else given.get(position, self.jvm.to_java_type(kind))
            spec[name] = convert_value(kind, raw)
        return spec
