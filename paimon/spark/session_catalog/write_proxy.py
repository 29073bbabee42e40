"""Writes of Spark's statements: Spark computes the rows, and `paimon.spark.write` routes, writes and commits them.

Invariant: Spark gets no writer of its own. It hands over the rows as a data frame, so that a statement has the result
and the errors of `write` for each kind of table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from attrs import frozen
from pyspark.sql import DataFrame

from paimon.domain.errors import InvalidRequest, ReadConflict, Unsupported
from paimon.spark.options import (
    ACCESS_OPTIONS,
    DYNAMIC,
    KIND_COLUMN,
    READ_CHANGELOG,
    STREAM_READ_OPTIONS,
    STREAM_WRITE_OPTIONS,
    TIME_TRAVEL_OPTIONS,
    parse_source_options,
)
from paimon.spark.session_catalog.jvm import (
    CONNECTOR,
    INTERNAL,
    JavaProxy,
    Jvm,
    UnmeasuredProxy,
    refresh_cached_rows,
)
from paimon.spark.session_catalog.predicates import find_equal_value, read_predicates
from paimon.spark.session_catalog.streams import CommitRows, StreamWriteProxy
from paimon.spark.write import overwrite_partitions, write
from paimon.table import Table

Insert = Callable[[DataFrame], object]
"""What a command does with the rows that Spark computes."""
_REFUSED = (
    *(*ACCESS_OPTIONS, KIND_COLUMN, READ_CHANGELOG),
    *(*STREAM_WRITE_OPTIONS, *STREAM_READ_OPTIONS, *TIME_TRAVEL_OPTIONS),
)
"""Options of the data source that the catalog already has, or that no batch write of Spark's statements has."""


@frozen(eq=False)
class RowWrite:
    """How rows are written: `partition` None in an overwrite replaces the partitions of the rows."""

    options: Mapping[str, str]
    mode: str = "append"
    partition: Mapping[str, object] | None = None

    def run(self, frame: DataFrame, table: Table) -> object:
        """Write and commit the rows."""
        parsed = parse_source_options({"path": table.definition.location, **self.options})
        parsed.check_use("a write to an attached catalog", _REFUSED)
        parsed.check_written("a write to an attached catalog")
        partition = self.partition
        if self.mode == "overwrite" and parsed.overwrite_mode is not None and not partition:
            partition = None if parsed.overwrite_mode == DYNAMIC else {}
        table, user, number = table.with_options(parsed.table_options), parsed.commit_user, parsed.commit_identifier
        if self.mode == "overwrite" and partition is None:
            return overwrite_partitions(frame, table, user, number)
        return write(frame, table, self.mode, partition=partition, commit_user=user, commit_identifier=number)


class WriteBuilderProxy(JavaProxy):
    """What one statement of Spark writes."""

    class Java:
        """The interfaces."""

        implements = (f"{CONNECTOR}.write.SupportsOverwriteV2", f"{CONNECTOR}.write.SupportsDynamicOverwrite")

    def __init__(
        self,
        jvm: Jvm,
        table: Table,
        title: str,
        options: Mapping[str, str],
        commit_stream: Callable[[bool], CommitRows],
    ) -> None:
        self.jvm = jvm
        self._table = table
        self._title = title
        self._commit_stream = commit_stream
        self._write = RowWrite(options)

    def truncate(self) -> Any:
        """Replace the whole table."""
        self._write = RowWrite(self._write.options, "overwrite", {})
        return self

    def canOverwrite(self, predicates: Any) -> bool:
        """Return true: `overwrite` refuses what is not possible, with our own error."""
        del predicates
        return True

    def overwrite(self, predicates: Any) -> Any:
        """Replace the partitions that the predicates select."""
        self._write = RowWrite(self._write.options, "overwrite", self._find_partition(predicates))
        return self

    def overwriteDynamicPartitions(self) -> Any:
        """Replace the partitions of the rows."""
        self._write = RowWrite(self._write.options, "overwrite")
        return self

    def build(self) -> Any:
        """Return the write."""
        run, table, is_stream_of_states = self._write.run, self._table, self._write.mode == "overwrite"
        stream = StreamWriteProxy(self.jvm, self._title, self._commit_stream(is_stream_of_states))

        def insert(frame: DataFrame) -> None:
            try:
                run(frame, table)
            except ReadConflict:  # the rows that it read may be cached
                refresh_cached_rows(self.jvm, self._title)
                raise

        return FrameWriteProxy(self.jvm, f"{self._write.mode} {self._title}", insert, stream)

    def _find_partition(self, predicates: Any) -> dict[str, object]:
        """Return the partition values that the predicates select by equality; refuse other predicates."""
        values: dict[str, object] = {}
        is_exact = self.jvm.spark.conf.get("spark.sql.caseSensitive") == "true"
        keys = {name if is_exact else name.lower(): name for name in self._table.partition_keys}
        for predicate in read_predicates(self.jvm, predicates):
            found = find_equal_value(predicate)
            given = "" if found is None else found[0] if is_exact else found[0].lower()
            if found is None or given not in keys:
                hint = "compare partition columns for equality, or run DELETE and then INSERT"
                raise Unsupported(f"overwriting {self._title} where {predicate['text']}", hint=hint)
            name, value = keys[given], found[1]
            if values.setdefault(name, value) != value:
                wrong = f"The condition gives partition column {name!r} of {self._title} two values."
                raise InvalidRequest(wrong, subject=name, hint="give each partition column one value")
        return values


class UpsertBuilderProxy(WriteBuilderProxy):
    """The same for a table with a primary key, which also takes streams in the output mode ``update``."""

    class Java:
        """The interfaces."""

        implements = (*WriteBuilderProxy.Java.implements, f"{INTERNAL}.connector.SupportsStreamingUpdateAsAppend")


class FrameWriteProxy(UnmeasuredProxy):
    """A write of Spark that hands over its rows as a data frame."""

    class Java:
        """The interfaces."""

        implements = (f"{CONNECTOR}.write.V1Write",)

    def __init__(self, jvm: Jvm, description: str, insert: Insert, stream: StreamWriteProxy | None = None) -> None:
        self.jvm = jvm
        self._description = description
        self._insert = insert
        self._stream = stream

    def description(self) -> str:
        """Return what is written where."""
        return f"paimon {self._description}"

    def toString(self) -> str:
        """Return what plans show."""
        return f"paimon {self._description}"

    def toInsertableRelation(self) -> Any:
        """Return what takes the rows."""
        return InsertProxy(self.jvm, self._insert)

    def toStreaming(self) -> Any:
        """Return the write of one batch of a stream."""
        return self._stream


class InsertProxy(JavaProxy):
    """Takes the rows of a statement."""

    class Java:
        """The interfaces."""

        implements = ("org.apache.spark.sql.sources.InsertableRelation",)

    def __init__(self, jvm: Jvm, run: Insert) -> None:
        self.jvm = jvm
        self._run = run

    def insert(self, rows: Any, overwrite: bool) -> None:
        """Write the rows."""
        del overwrite  # the builder of the write knows it
        self._run(DataFrame(rows, self.jvm.spark))


def overwrite_all(table: Table) -> None:
    """Delete all rows of a table in one commit."""
    table.overwrite(pa.schema([(f.name, f.type) for f in table.arrow_schema]).empty_table(), {})
