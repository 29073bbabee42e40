"""A table for Spark: its columns, its partitions and options, and what reads and writes of it begin with.

Invariant: the snapshot is pinned when rows are first read, and all uses of one data frame read it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.sql.types import StructField, StructType

from paimon.domain.errors import InvalidRequest
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.data_types import DataField
from paimon.domain.types.type_text import quote_text
from paimon.scan import Scan
from paimon.spark.frame_reads import to_read_mark
from paimon.spark.options import (
    ACCESS_OPTIONS,
    READ_CHANGELOG,
    READ_MARK,
    STREAM_READ_OPTIONS,
    STREAM_WRITE_OPTIONS,
    WRITE_OPTIONS,
    parse_source_options,
)
from paimon.spark.row_level.delete_update import delete
from paimon.spark.session_catalog.jvm import CONNECTOR, Jvm, UnmeasuredProxy
from paimon.spark.session_catalog.metadata_columns import MetadataColumnProxy, list_metadata_columns
from paimon.spark.session_catalog.partitions import PartitionsProxy
from paimon.spark.session_catalog.predicates import Node, read_predicates, to_exact_conjunction
from paimon.spark.session_catalog.scan_proxy import ScanBuilderProxy, Selected
from paimon.spark.session_catalog.schemas import LENGTHS, list_lengths
from paimon.spark.session_catalog.streams import StreamWrites, can_stream, open_stream
from paimon.spark.session_catalog.write_proxy import UpsertBuilderProxy, WriteBuilderProxy, overwrite_all
from paimon.spark.types import quote_column, to_spark_schema
from paimon.system_table import SystemScan, SystemTable
from paimon.table import Table

_WRITE = ("BATCH_WRITE", "V1_BATCH_WRITE", "STREAMING_WRITE", "TRUNCATE", "OVERWRITE_BY_FILTER", "OVERWRITE_DYNAMIC",
          "AUTOMATIC_SCHEMA_EVOLUTION")  # fmt: skip


class RelationProxy(UnmeasuredProxy):
    """What Spark asks of tables that exist and of those that a statement creates."""

    def __init__(self, jvm: Jvm, title: str, schema: StructType, partitions: tuple[str, ...]) -> None:
        self.jvm = jvm
        self.title = title
        self.spark_schema = schema
        self._partitions = partitions

    def name(self) -> str:
        """Return the name, which plans and errors show."""
        return self.title

    def toString(self) -> str:
        """Return what plans show."""
        return self.title

    def id(self) -> None:
        """Return no id."""

    def version(self) -> None:
        """Return no version: Spark would load the table again at each use of a data frame."""

    def schema(self) -> Any:
        """Return the columns as a schema."""
        return self.jvm.to_java_type(self.spark_schema)

    def columns(self) -> Any:
        """Return the columns with their comments and defaults."""
        return self.jvm.remember(("columns", self.spark_schema.json()), self._make_columns)

    def _make_columns(self) -> Any:
        create = self.jvm.connector("catalog.Column").create
        made = [
            create(f.name, self.jvm.to_java_type(f.dataType), f.nullable, f.metadata.get("comment"),
                   self._find_default(f), json.dumps({k: v for k, v in f.metadata.items() if k == LENGTHS}))
            for f in self.spark_schema
        ]  # fmt: skip
        return self.jvm.make_array(f"{CONNECTOR}.catalog.Column", made)

    def _find_default(self, column: StructField) -> Any:
        """Return what INSERT writes where it leaves out the column; rows that lack it are null, as for Spark."""
        text = column.metadata.get("default")
        if text is None:
            return None
        kind = column.dataType.simpleString()
        null = self.jvm.connector("expressions.LiteralValue")(None, self.jvm.to_java_type(column.dataType))
        sql = f"CAST({quote_text(text)} AS {kind})"
        return self.jvm.connector("catalog.ColumnDefaultValue")(sql, null)

    def partitioning(self) -> Any:
        """Return the partition columns."""
        identity = self.jvm.connector("expressions.Expressions").identity
        names = [identity(quote_column(name)) for name in self._partitions]
        return self.jvm.make_array(f"{CONNECTOR}.expressions.Transform", names)

    def constraints(self) -> Any:
        """Return no constraints; the option ``primary-key`` shows the key."""
        return self.jvm.make_array(f"{CONNECTOR}.catalog.constraints.Constraint")


class TableProxy(PartitionsProxy, RelationProxy):
    """A table or a system table of a catalog."""

    class Java:
        """The interfaces."""

        implements = (
            f"{CONNECTOR}.catalog.SupportsRead",
            f"{CONNECTOR}.catalog.SupportsWrite",
            f"{CONNECTOR}.catalog.SupportsDeleteV2",
            f"{CONNECTOR}.catalog.SupportsMetadataColumns",
            f"{CONNECTOR}.catalog.SupportsAtomicPartitionManagement",
        )

    def __init__(self, jvm: Jvm, opened: Table | SystemTable, title: str) -> None:
        self.opened = opened
        self._state: Scan | SystemScan | None = None
        self._streams = StreamWrites()
        partitions = tuple(opened.partition_keys) if isinstance(opened, Table) else ()
        super().__init__(jvm, title, _describe_columns(opened), partitions)

    def read_state(self) -> Scan | SystemScan:
        """Return the scan of all rows, which pins the snapshot."""
        if self._state is None:
            scan = self.opened.scan()
            self._state = scan.without_retracts() if isinstance(scan, Scan) else scan
        return self._state

    def renew(self) -> None:
        """Read the newest snapshot from now on."""
        self._state = None

    def find_snapshot(self) -> Snapshot | None:
        """Return the snapshot of the scan; None for an empty table and for a system table."""
        state = self.read_state()
        return state.pinned.snapshot if isinstance(state, Scan) else None

    def find_read_mark(self) -> str | None:
        """Return what a plan reads of the newest snapshot; None if the query chose the snapshot."""
        state = self.read_state()
        return to_read_mark(state).get(READ_MARK) if isinstance(state, Scan) else None

    def properties(self) -> Any:
        """Return the options, the comment and the primary key."""
        if not isinstance(self.opened, Table):
            return self.jvm.make_map({"provider": "paimon"})
        schema = self.opened.table_schema
        keys = {"primary-key": ",".join(schema.primary_keys)} if schema.primary_keys else {}
        comment = {"comment": schema.comment} if schema.comment else {}
        return self.jvm.make_map({**schema.options, **keys, **comment, "provider": "paimon"})

    def metadataColumns(self) -> Any:
        """Return what is known of the place of a row; a system table has none of it."""
        found = self._list_metadata()

        def make() -> Any:
            proxies = [MetadataColumnProxy(self.jvm, column) for column in found]
            return self.jvm.make_proxy_array(f"{CONNECTOR}.catalog.MetadataColumn", proxies)

        return self.jvm.remember(("metadata", StructType(found).json()), make)

    def canRenameConflictingMetadataColumns(self) -> bool:
        """Return that a column of the table has precedence over a metadata column of its name."""
        return False

    def _list_metadata(self) -> list[StructField]:
        known = list_metadata_columns(self.spark_schema, self._partitions) if isinstance(self.opened, Table) else []
        return [column for column in known if column.name not in self.spark_schema.names]

    def capabilities(self) -> Any:
        """Return what Spark may do with the table."""
        reads = ("BATCH_READ", "MICRO_BATCH_READ") if can_stream(self.opened) else ("BATCH_READ",)
        names = reads if isinstance(self.opened, SystemTable) else (*reads, *_WRITE)
        return self.jvm.list_enum("catalog.TableCapability", names)

    def newScanBuilder(self, options: Any) -> Any:
        """Begin a scan; `options` are those of the query, which may travel in time."""
        given = self.jvm.read_json(options)
        stream = partial(open_stream, self.jvm.spark, self.opened, self.spark_schema, given)
        builder = ScanBuilderProxy(self.jvm, self.title, self.spark_schema, self._select(given), stream)
        builder.metadata = self._list_metadata()
        return builder

    def _select(self, given: Mapping[str, str]) -> Selected | InvalidRequest:
        """Return what a batch with these options reads, or the error if they are none of a batch."""
        try:
            return self._select_batch(given)
        except InvalidRequest as error:
            return error

    def _select_batch(self, given: Mapping[str, str]) -> Selected:
        table = TableProxy(self.jvm, apply_options(self.opened, given), self.title) if given else self
        if [(f.name, f.dataType) for f in table.spark_schema] != [(f.name, f.dataType) for f in self.spark_schema]:
            hint = "write VERSION AS OF or TIMESTAMP AS OF, or option('versionAsOf', …)"
            wrong = f"The options of this query select a state of {self.title!r} with other columns."
            raise InvalidRequest(wrong, subject=self.title, hint=hint)
        return table.opened, table.read_state()

    def newWriteBuilder(self, info: Any) -> Any:
        """Begin a write."""
        target, options = self.find_target(), self.jvm.read_json(info.options())
        kind = UpsertBuilderProxy if target.primary_keys else WriteBuilderProxy
        commit_stream = partial(self._streams.find_commit, str(info.queryId()), target, options)
        return kind(self.jvm, target, self.title, options, commit_stream)

    def can_delete(self, predicate: Any) -> bool:
        """Return whether a predicate, or each part of a conjunction, has an equal one here."""
        (found,) = read_predicates(self.jvm, predicate)
        return self._can_delete(found)

    def _can_delete(self, predicate: Node) -> bool:
        if predicate.get("name") == "AND":
            return all(map(self._can_delete, predicate["children"]))
        return to_exact_conjunction([predicate], self._fields()) is not None

    def canDeleteWhere(self, predicates: Any) -> bool:
        """Return whether the predicates have equal ones here; else the planner of commands deletes the rows."""
        return to_exact_conjunction(read_predicates(self.jvm, predicates), self._fields()) is not None

    def deleteWhere(self, predicates: Any, options: Any = None) -> None:
        """Delete the rows for which all predicates are true, with Spark's tasks, in one commit."""
        del options
        where = to_exact_conjunction(read_predicates(self.jvm, predicates), self._fields())
        if where is None:
            raise InvalidRequest(
                "A condition of DELETE has no equal here. Rewrite it without functions of Spark.", subject=self.title
            )
        delete(self.find_target(), where, spark=self.jvm.spark)

    def truncateTable(self, options: Any = None) -> bool:
        """Delete all rows."""
        del options
        overwrite_all(self.find_target())
        return True

    def _fields(self) -> Mapping[str, DataField]:
        return {f.name: f for f in self.find_target().table_schema.fields}


def apply_options(opened: Table | SystemTable, given: Mapping[str, str]) -> Table | SystemTable:
    """Return a table with the options of a query, which are those of the data source."""
    parsed = parse_source_options({"path": opened.definition.location, **given})
    parsed.check_use("a query of an attached catalog", _REFUSED)
    if isinstance(opened, Table):
        return opened.with_options(parsed.table_options)
    hint = "leave them out"
    raise InvalidRequest(f"System table {opened.name!r} takes no options here.", subject="options", hint=hint)


_REFUSED = (*ACCESS_OPTIONS, *WRITE_OPTIONS, *STREAM_WRITE_OPTIONS, *STREAM_READ_OPTIONS, READ_CHANGELOG)
"""Options of the data source that the catalog already has, or that batch reads do not have."""


def _describe_columns(opened: Table | SystemTable) -> StructType:
    if not isinstance(opened, Table):
        return to_spark_schema(opened.scan().arrow_schema)
    travels = any(key.startswith("scan.") for key in opened.definition.options.values)
    schema = to_spark_schema(opened.scan().arrow_schema if travels else opened.arrow_schema)
    declared = {f.name: f for f in opened.table_schema.fields}
    for column in schema:
        field = declared.get(column.name)
        texts = {} if field is None else {"comment": field.description, "default": field.default_value}
        texts |= {} if field is None else list_lengths(column.dataType, field.type)
        column.metadata = {key: text for key, text in texts.items() if text is not None}
    return schema
