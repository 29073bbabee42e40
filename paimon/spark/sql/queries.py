"""QueryEngine with Spark: tables are read by tasks, and a query becomes a lazy data frame.

Invariant: Spark reads the splits of the scans that the planner of statements pinned. Rows come to this process only
where the caller asks for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from attrs import frozen
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from paimon.adapters.executors.spark import is_remote, stoppable_jobs
from paimon.domain.options.parse import parse_memory
from paimon.domain.types.arrow import is_variant
from paimon.operations.row_level.numbered_rows import NumberedRows
from paimon.ports.cancellation import check_stop
from paimon.ports.queries import QuerySource
from paimon.scan import Scan, estimate_scan
from paimon.spark.frame_reads import find_frame_expiry
from paimon.spark.read import read_scan
from paimon.spark.row_level.delete_update import read_numbered_rows
from paimon.spark.sql.analysis import (
    analyze_query,
    has_temporary_view,
    mute_error_log,
    quote_name,
    to_query_error,
    use_settings,
)
from paimon.spark.sql.sql_dialect import is_constant
from paimon.spark.types import (
    has_null_parts,
    make_empty_frame,
    make_map_type,
    map_in_arrow,
    to_batch_schema,
    to_spark_batch,
    to_spark_frame,
    to_spark_schema,
)
from paimon.spark.warehouse import TIME_ZONE
from paimon.sql.plan.plan_query import ScanOrigin

_ROWS = "rows"
_UTC_NAMES = frozenset(("Z", "UT", "UCT", "GMT", "GMT0", "Etc/UTC", "Etc/UCT", "Etc/GMT", "Etc/Universal", "Etc/Zulu",
                        "Universal", "Zulu", "+00:00", "-00:00"))  # fmt: skip
_JOIN = re.compile(r"\bJOIN\b", re.IGNORECASE)


@frozen(eq=False)
class SparkQueries:
    """Queries in a Spark session; see `paimon.ports.queries.QueryEngine`."""

    reads_files = False
    spark: SparkSession

    @property
    def time_zone(self) -> str:
        """The time zone of the session; each name of UTC is ``UTC``."""
        zone = str(self.spark.conf.get(TIME_ZONE))
        return "UTC" if zone in _UTC_NAMES else zone

    def adopt(self, data: Any) -> QuerySource | None:
        """Return a source for a data frame of Spark."""
        if not isinstance(data, DataFrame):
            return None
        schema = to_result_schema(data)
        return QuerySource(schema, partial(read_frame, data, schema), data)

    def find_view(self, name: Sequence[str]) -> QuerySource | None:
        """Return a source for a temporary view of the session, also one of the database ``global_temp``."""
        return self.adopt(self.spark.table(quote_name(name))) if has_temporary_view(self.spark, name) else None

    def run(self, sql: str, sources: Mapping[str, QuerySource]) -> pa.RecordBatchReader:
        """Run one query; its rows come to this process, one partition of Spark after the other."""
        frame = self.to_frame(sql, sources)
        return read_frame(frame, to_result_schema(frame), in_one_piece=not sources and is_constant(sql))

    def describe(self, sql: str, sources: Mapping[str, QuerySource]) -> pa.Schema:
        """Return the columns of a query; Spark analyzes it over frames without rows."""
        return to_result_schema(self._analyze_without_rows(sql, sources))

    def explain(self, sql: str, sources: Mapping[str, QuerySource]) -> str:
        """Return Spark's logical and physical plan; no row is read."""
        scans = {own: source for own, source in sources.items() if isinstance(source.origin, ScanOrigin | DataFrame)}
        others = {own: self._make_empty_frame(source) for own, source in sources.items() if own not in scans}
        frames = self._open_sources(sql, scans)
        frame = analyze_query(self.spark, sql, frames | others)
        if is_remote(self.spark):
            return str(frame._explain_string(extended=True))
        return str(frame._jdf.queryExecution().toString())

    def interrupt(self) -> None:
        """Do nothing: the jobs run in Spark, which can cancel them."""

    def to_frame(self, sql: str, sources: Mapping[str, QuerySource]) -> DataFrame:
        """Return the lazy data frame of a query.

        Metadata tables and Arrow data are read now, and other tables by tasks when an action runs.
        """
        return analyze_query(self.spark, sql, self._open_sources(sql, sources))

    def _open_sources(self, sql: str, sources: Mapping[str, QuerySource]) -> dict[str, DataFrame]:
        frames = {own: self._open_source(source) for own, source in sources.items()}
        if len(frames) < 2 or not _JOIN.search(sql):
            return frames
        return {own: self._hint_size(frame, sources[own]) for own, frame in frames.items()}

    def _analyze_without_rows(self, sql: str, sources: Mapping[str, QuerySource]) -> DataFrame:
        return analyze_query(self.spark, sql, {own: self._make_empty_frame(s) for own, s in sources.items()})

    def _make_empty_frame(self, source: QuerySource) -> DataFrame:
        return make_empty_frame(self.spark, to_spark_schema(source.schema))

    def _open_source(self, source: QuerySource) -> DataFrame:
        origin = source.origin
        if isinstance(origin, DataFrame):
            return origin
        if isinstance(origin, ScanOrigin) and isinstance(origin.scan, Scan):
            with use_settings(self.spark):
                return read_scan(self.spark, origin.table, origin.scan, origin.where, origin.limit)
        if isinstance(origin, NumberedRows):
            return read_numbered_rows(self.spark, origin)
        return to_spark_frame(self.spark, source.open().read_all())

    def _hint_size(self, frame: DataFrame, source: QuerySource) -> DataFrame:
        """Return the frame with a hint to broadcast it, if its scan is small by its estimate.

        A data source in Python cannot report sizes, and Spark takes an unknown size for a very large one.
        """
        scan = source.origin.scan if isinstance(source.origin, ScanOrigin) else None
        if not isinstance(scan, Scan):
            return frame
        text = str(self.spark.conf.get("spark.sql.autoBroadcastJoinThreshold", "10485760"))
        limit = int(text) if text.lstrip("-").isdecimal() else parse_memory(text)
        is_small = limit >= 0 and estimate_scan(scan).bytes <= limit
        return frame.hint("broadcast") if is_small else frame


def to_result_schema(frame: DataFrame) -> pa.Schema:
    """Return the Arrow schema of a data frame; all columns may be null, as in results of the embedded engine."""
    return pa.schema([_to_nullable(field) for field in to_batch_schema(frame.schema)])


def _to_nullable(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind) and not is_variant(kind):
        kind = pa.struct([_to_nullable(inner) for inner in kind])
    elif pa.types.is_map(kind):
        kind = make_map_type(kind.key_type, _to_nullable(kind.item_field))
    elif pa.types.is_list(kind):
        kind = pa.list_(_to_nullable(kind.value_field))
    return pa.field(field.name, kind)


def read_frame(frame: DataFrame, schema: pa.Schema, in_one_piece: bool = False) -> pa.RecordBatchReader:
    """Return a reader of the rows of a data frame, in their order; Spark runs when the reader is consumed.

    The driver receives one partition after the other. `in_one_piece` collects all rows, which is faster for few of
    them.
    """
    can_collect = in_one_piece and not has_null_parts(frame.schema)
    batches = _collect_batches(frame) if can_collect else _stream_batches(frame)
    return pa.RecordBatchReader.from_batches(schema, _convert_batches(frame, batches, schema))


def _convert_batches(
    frame: DataFrame, batches: Iterator[pa.RecordBatch], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    try:
        with mute_error_log():
            for batch in batches:
                check_stop()
                yield to_spark_batch(batch, schema)
    except (PySparkException, Py4JError) as error:
        raise find_frame_expiry(frame, error) or to_query_error(error) from error


def _collect_batches(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    with stoppable_jobs(frame.sparkSession):
        rows = frame.toArrow()
    yield from rows.to_batches()


def _stream_batches(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    for row in map_in_arrow(frame, _encode_batches, f"{_ROWS} BINARY NOT NULL").toLocalIterator():
        with pa.ipc.open_stream(bytes(row[_ROWS])) as stream:
            yield from stream


def _encode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], names=[_ROWS])
