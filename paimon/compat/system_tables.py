"""System tables as pypaimon gives them: their columns, types and texts, which differ from Java's.

Invariant: a partition is ``day=mon``, keys are JSON arrays, statistics are JSON objects, and times are UTC. Source:
`pypaimon.table.system`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, ClassVar, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

import paimon
from paimon.compat.catalog_values import Identifier
from paimon.compat.data_types import DataField, PyarrowFieldParser, RowType
from paimon.compat.file_io import FileIO
from paimon.compat.predicate import Predicate, PredicateBuilder, to_paimon_predicate
from paimon.compat.refused import refuse
from paimon.compat.rows import GenericRow
from paimon.compat.scan import Plan, Split
from paimon.compat.stored_table import StoredTable, Table
from paimon.domain.manifest.entries import FileSource
from paimon.domain.partition.row_texts import RowTexts
from paimon.domain.row.binary_row import deserialize, read_arity
from paimon.domain.row.values import to_array
from paimon.domain.types import data_types as dt
from paimon.system_table import SystemScan, read_with_texts

_TIME = pa.timestamp("ms")
_NULL_PARTITION = "__NULL__"
_VECTORS = "DELETION_VECTORS"
_WITHOUT_TEXT = (dt.FloatType, dt.DoubleType, dt.LocalZonedTimestampType, *dt.BYTES_TYPES)
"""Types whose texts depend on the Java version or the time zone: pypaimon shows no bounds of such partitions."""


class PeerTexts(RowTexts):
    """Keys and statistics as JSON; partitions as the digits of their bytes, which `show_partitions` replaces."""

    def format_partition(self, row: bytes, fields: Sequence[dt.DataField]) -> str:
        """Format a serialized partition as hexadecimal digits."""
        return row.hex()

    def format_key(self, row: bytes, fields: Sequence[dt.DataField]) -> str | None:
        """Format a serialized key as a JSON array; None for a table without a primary key."""
        return dump_json([to_json_value(v) for v in read_values(row, fields)]) if fields and read_arity(row) else None

    def format_stats(self, values: Mapping[str, tuple[Any, dt.DataType]]) -> str:
        """Format values by column name as a JSON object."""
        shown = {name: to_array([value], kind)[0].as_py() for name, (value, kind) in values.items()}
        return dump_json({name: to_json_value(value) for name, value in shown.items()})

    def format_counts(self, counts: Mapping[str, int | None]) -> str:
        """Format counts by column name as a JSON object."""
        return dump_json(dict(counts))


def read_values(row: bytes, fields: Sequence[dt.DataField]) -> list[Any]:
    """Return the Python values of a serialized row."""
    types = [column.type for column in fields]
    stored = deserialize(row, types) if fields else ()
    return [to_array([value], kind)[0].as_py() for value, kind in zip(stored, types, strict=True)]


def to_json_value(value: Any) -> Any:
    """Return a value that JSON has: texts of binary values, dates and times, and of other objects."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    return value if value is None or isinstance(value, bool | int | float | str | list | dict) else str(value)


def dump_json(value: Any) -> str:
    """Return compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)


def show_partitions(rows: pa.Table, fields: Sequence[dt.DataField], null: str = "None") -> pa.Table:
    """Replace the digits of partitions by texts such as ``day=mon``; None for tables without partitions."""
    encoded = rows["partition"].combine_chunks().dictionary_encode()
    texts = [format_partition(bytes.fromhex(digits), fields, null) for digits in encoded.dictionary.to_pylist()]
    shown = pa.array(texts, pa.string()).take(encoded.indices)
    return rows.set_column(rows.schema.get_field_index("partition"), "partition", shown)


def format_partition(row: bytes, fields: Sequence[dt.DataField], null: str) -> str | None:
    """Format a serialized partition as ``k=v/k2=v2``."""
    values = zip(fields, read_values(row, fields), strict=True)
    return "/".join(f"{f.name}={null if v is None else v}" for f, v in values) if fields else None


class SystemTable(Table):
    """A read-only table with metadata; made by `Catalog.get_table`."""

    required: ClassVar[str] = ""
    """The columns that are never null."""
    keys: ClassVar[str] = ""
    """The columns of the primary key."""

    def __init__(self, inner: paimon.SystemTable, identifier: Identifier, base_table: StoredTable) -> None:
        self.inner = inner
        self.identifier = identifier
        self.base_table = base_table

    @property
    def file_io(self) -> FileIO:
        """The storage of the table."""
        return self.base_table.file_io

    @property
    def table_path(self) -> str:
        """The directory or URL of the table."""
        return self.base_table.table_path

    @property
    def fields(self) -> list[DataField]:
        """The columns."""
        required = set(self.required.split())
        schema = [column.with_nullable(column.name not in required) for column in self.scan().arrow_schema]
        return PyarrowFieldParser.to_paimon_schema(pa.schema(schema))

    @property
    def field_names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.fields]

    def system_table_name(self) -> str:
        """Return the name after the ``$``."""
        return self.inner.system_name

    def row_type(self) -> RowType:
        """Return the columns as one type."""
        return RowType(False, self.fields)

    def primary_keys(self) -> list[str]:
        """Return the columns of the primary key."""
        return self.keys.split()

    def scan(
        self, columns: list[str] | None = None, where: Any = None, limit: int | None = None
    ) -> SystemScan | paimon.Scan:
        """Return the read of this library."""
        if type(self) is SystemTable:
            return self.inner.scan(columns, where, limit)
        return SystemScan(self.inner, columns, where, limit, lambda _: self.read_rows())

    def read_rows(self) -> pa.Table:
        """Return all rows."""
        return self.inner.scan().to_arrow()

    def new_read_builder(self) -> SystemReadBuilder:
        """Return the builder of reads."""
        return SystemReadBuilder(self)

    def new_stream_read_builder(self) -> Any:
        """Refuse to follow a system table."""
        refuse("streams of system tables", "read the system table again")

    def new_batch_write_builder(self) -> Any:
        """Refuse to write."""
        refuse_write()

    def new_stream_write_builder(self) -> Any:
        """Refuse to write."""
        refuse_write()

    def _partition_fields(self) -> Sequence[dt.DataField]:
        return self.inner.context.schema.partition_fields


def refuse_write() -> NoReturn:
    """Raise the error for writes of system tables."""
    refuse("writes of system tables", "write to the table itself")


class BranchesTable(SystemTable):
    """The branches."""

    required = "branch_name create_time"
    keys = "branch_name"


class BucketsTable(SystemTable):
    """The buckets of each partition, sorted."""

    required = "bucket record_count file_size_in_bytes file_count"
    keys = "partition bucket"

    def read_rows(self) -> pa.Table:
        """Return all rows."""
        rows = show_partitions(read_with_texts(self.inner, PeerTexts()), self._partition_fields(), _NULL_PARTITION)
        return rows.sort_by([("partition", "ascending"), ("bucket", "ascending")])


class ConsumersTable(SystemTable):
    """The consumers."""

    required = "consumer_id next_snapshot_id"
    keys = "consumer_id"


class FileKeyRangesTable(SystemTable):
    """The smallest and largest key of each data file."""

    required = "bucket file_path file_format schema_id level record_count file_size_in_bytes"
    keys = "file_path"

    def read_rows(self) -> pa.Table:
        """Return all rows."""
        return show_partitions(read_with_texts(self.inner, PeerTexts()), self._partition_fields())


class FilesTable(FileKeyRangesTable):
    """The data files with their statistics."""

    required = f"{FileKeyRangesTable.required} null_value_counts min_value_stats max_value_stats"

    def read_rows(self) -> pa.Table:
        """Return all rows; the source of a file is a number."""
        rows = super().read_rows()
        numbers = pc.index_in(rows["file_source"], pa.array([source.name for source in FileSource]))
        place = rows.schema.get_field_index("file_source")
        return rows.set_column(place, "file_source", numbers.cast(pa.string()))


class ManifestsTable(SystemTable):
    """The manifests of the latest snapshot."""

    required = "file_name file_size num_added_files num_deleted_files schema_id"
    keys = "file_name"

    def read_rows(self) -> pa.Table:
        """Return all rows."""
        rows = super().read_rows()
        if not any(isinstance(column.type, _WITHOUT_TEXT) for column in self._partition_fields()):
            return rows
        for name in ("min_partition_stats", "max_partition_stats"):
            rows = rows.set_column(rows.schema.get_field_index(name), name, pa.nulls(len(rows), pa.string()))
        return rows


class OptionsTable(SystemTable):
    """The stored options."""

    required = "key value"
    keys = "key"


class PartitionsTable(SystemTable):
    """The partitions; a warehouse does not store who made them, nor whether they are done."""

    required = "record_count file_size_in_bytes file_count total_buckets done"
    keys = "partition"

    def read_rows(self) -> pa.Table:
        """Return all rows."""
        buckets = read_with_texts(paimon.SystemTable(self.inner.context, "buckets"), PeerTexts())
        sums = [(name, "sum") for name in ("record_count", "file_size_in_bytes", "file_count")]
        found = buckets.group_by("partition", use_threads=False).aggregate(
            [*sums, ("last_update_time", "max"), ("bucket", "count")]
        )
        counts = self._count_deleted()
        deleted = [counts.get(digits, 0) for digits in found["partition"].to_pylist()]
        nulls = {name: pa.nulls(len(found), pa.string()) for name in ("created_by", "updated_by", "options")}
        rows = pa.table(
            {
                "partition": found["partition"],
                **{name: found[f"{name}_sum"] for name, _ in sums},
                "last_update_time": found["last_update_time_max"],
                "created_at": pa.nulls(len(found), _TIME),
                **nulls,
                "total_buckets": found["bucket_count"].cast(pa.int32()),
                "done": pa.repeat(False, len(found)),
                "deleted_record_count": pa.array(deleted, pa.int64()),
            }
        )
        return show_partitions(rows, self._partition_fields())

    def _count_deleted(self) -> dict[str, int | None]:
        """Return the rows that deletion vectors mark, by partition; None where a vector has no count."""
        if not self.base_table.options.deletion_vectors_enabled():
            return {}
        indexes = read_with_texts(paimon.SystemTable(self.inner.context, "table_indexes"), PeerTexts())
        counts: dict[str, int | None] = {}
        for row in indexes.filter(pc.field("index_type") == _VECTORS).to_pylist():
            known, numbers = counts.get(row["partition"], 0), [v["_CARDINALITY"] for v in row["dv_ranges"] or ()]
            counts[row["partition"]] = None if known is None or None in numbers else known + sum(numbers)
        return counts


class SchemasTable(SystemTable):
    """The versions of the schema; lists and maps are JSON."""

    required = "schema_id fields partition_keys primary_keys options update_time"
    keys = "schema_id"
    _columns = pa.schema(
        [
            ("schema_id", pa.int64()),
            *[(name, pa.string()) for name in ("fields", "partition_keys", "primary_keys", "options", "comment")],
            ("update_time", _TIME),
        ]
    )

    def read_rows(self) -> pa.Table:
        """Return all rows."""
        rows = [
            {
                "schema_id": schema.id,
                "fields": dump_json([column.to_dict() for column in schema.fields]),
                "partition_keys": dump_json(schema.partition_keys),
                "primary_keys": dump_json(schema.primary_keys),
                "options": dump_json(schema.options),
                "comment": schema.comment,
                "update_time": schema.time_millis,
            }
            for schema in self.base_table.schema_manager.list_all()
        ]
        return pa.Table.from_pylist(rows, schema=self._columns)


class SnapshotsTable(SystemTable):
    """The snapshots."""

    required = (
        "snapshot_id schema_id commit_user commit_identifier commit_kind commit_time base_manifest_list "
        "delta_manifest_list"
    )
    keys = "snapshot_id"
    _members: ClassVar[Mapping[str, str]] = {"snapshot_id": "id", "commit_time": "time_millis"}

    def read_rows(self) -> pa.Table:
        """Return all rows."""
        schema = self.inner.arrow_schema.append(pa.field("writer_version", pa.string()))
        snapshots = self.base_table.snapshot_manager().list_snapshots()
        rows = [{name: getattr(s, self._members.get(name, name)) for name in schema.names} for s in snapshots]
        return pa.Table.from_pylist(rows, schema=schema)


class TableIndexesTable(FileKeyRangesTable):
    """The index files."""

    required = "bucket index_type file_name file_size row_count"
    keys = "file_name"


class TagsTable(SystemTable):
    """The tags."""

    required = "tag_name snapshot_id schema_id commit_time"
    keys = "tag_name"


_CLASSES: Mapping[str, type[SystemTable]] = {
    "branches": BranchesTable,
    "buckets": BucketsTable,
    "consumers": ConsumersTable,
    "file_key_ranges": FileKeyRangesTable,
    "files": FilesTable,
    "manifests": ManifestsTable,
    "options": OptionsTable,
    "partitions": PartitionsTable,
    "schemas": SchemasTable,
    "snapshots": SnapshotsTable,
    "table_indexes": TableIndexesTable,
    "tags": TagsTable,
}


def open_system_table(inner: paimon.SystemTable, identifier: Identifier, base_table: StoredTable) -> SystemTable:
    """Return the system table of pypaimon for one of this library."""
    return _CLASSES.get(inner.system_name, SystemTable)(inner, identifier, base_table)


class SystemSplit(Split):
    """The whole system table: it is read at once, and has no data files of its own."""

    @property
    def files(self) -> list[Any]:
        """No files."""
        return []

    @property
    def partition(self) -> GenericRow:
        """The row without values."""
        return GenericRow([], [])

    @property
    def bucket(self) -> int:
        """The bucket 0."""
        return 0

    @property
    def row_count(self) -> int:
        """No rows of data files."""
        return 0


class SystemReadBuilder:
    """Collect what to read of a system table."""

    def __init__(self, table: SystemTable) -> None:
        self.table = table
        self._predicate: Predicate | None = None
        self._columns: list[str] | None = None
        self._limit: int | None = None

    def with_filter(self, predicate: Predicate | None) -> SystemReadBuilder:
        """Read the rows where a predicate is true."""
        self._predicate = predicate
        return self

    def with_projection(self, projection: list[str] | None) -> SystemReadBuilder:
        """Read these columns."""
        self._columns = projection
        return self

    def with_limit(self, limit: int | None) -> SystemReadBuilder:
        """Read at most so many rows."""
        self._limit = limit
        return self

    def new_predicate_builder(self) -> PredicateBuilder:
        """Return the builder of predicates on the columns."""
        return PredicateBuilder(self.table.fields)

    def new_scan(self) -> SystemReadBuilder:
        """Return the object that plans."""
        return self

    def new_read(self) -> SystemReadBuilder:
        """Return the object that reads."""
        return self

    def plan(self) -> Plan:
        """Return the plan: one split."""
        return Plan([SystemSplit()])

    def read_type(self) -> list[DataField]:
        """Return the columns that are read."""
        fields = self.table.fields
        return fields if self._columns is None else [f for name in self._columns for f in fields if f.name == name]

    def to_arrow(self, splits: Sequence[object], parallelism: int | None = None) -> pa.Table:
        """Return the rows as an Arrow table."""
        where = None if self._predicate is None else to_paimon_predicate(self._predicate)
        table = self.table.scan(self._columns, where, self._limit).to_arrow()
        return table if splits else table.slice(0, 0)

    def to_pandas(self, splits: Sequence[object], parallelism: int | None = None) -> Any:
        """Return the rows as a pandas DataFrame."""
        return self.to_arrow(splits).to_pandas()

    def to_arrow_batch_reader(self, splits: Sequence[object]) -> pa.RecordBatchReader:
        """Return a reader of the rows."""
        return self.to_arrow(splits).to_reader()

    def to_record_batch_iterator(self, splits: Sequence[object]) -> Iterator[pa.RecordBatch]:
        """Return the rows as batches."""
        return iter(self.to_arrow(splits).to_batches())

    def to_iterator(self, splits: Sequence[object]) -> Iterator[dict[str, Any]]:
        """Return the rows as dicts."""
        return iter(self.to_arrow(splits).to_pylist())

    def to_duckdb(self, splits: Sequence[object], table_name: str, connection: Any = None) -> Any:
        """Return a DuckDB connection in which the rows have a name."""
        import duckdb

        chosen = connection or duckdb.connect(database=":memory:")
        chosen.register(table_name, self.to_arrow(splits))
        return chosen
