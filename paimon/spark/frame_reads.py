"""What a data frame reads of tables: `paimon.spark.read` marks its reads of newest snapshots, and plans keep the marks.

The files that Spark itself reads are marked with their snapshot, so that an error can tell that it expired.
Frames of `spark.read.format("paimon")` have no mark, and their snapshot is not known. A plan of Spark Connect has the
same options, but not what the views that it names read.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from typing import Any
from urllib.parse import unquote

from pyspark.errors.exceptions import captured
from pyspark.sql import DataFrame, SparkSession

from paimon.adapters.executors.spark import find_slow_start, find_stop, is_remote
from paimon.domain.commit.message import ReadState
from paimon.domain.errors import PaimonError
from paimon.domain.paths import MAIN_BRANCH
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.engines import has_process_effects, translate_spark_error
from paimon.operations.metadata.snapshots import find_expiry
from paimon.operations.table_context import TableContext
from paimon.results import SnapshotRead, SourceReads, find_reads
from paimon.scan import Scan, estimate_scan
from paimon.spark.options import FILES_MARK, PINNED, READ_MARK, TABLE_OPTIONS, TIME_TRAVEL_OPTIONS
from paimon.spark.session_catalog.jvm import Jvm, find_proxy
from paimon.spark.warehouse import open_in_session

MARKED_ROWS = "FrameRelation"
"""The class in Java of the relations of `mark_rows`."""
_VIEWS: dict[str, list[Any]] = {}
"""By view of `remember_view`: the data sources that it reads."""
_MISSING_FILE = re.compile(
    r"(?:FILE_NOT_EXIST\].* file|\[PATH_NOT_FOUND\] Path does not exist:) (?:file:)?/*(/.+?)\.?"
    r"(?= File does not exist| SQLSTATE|$)",
    re.MULTILINE,
)
"""Spark's error about a file that its own reader does not find."""
_MOST_READS, _MOST_FILES = 100, 100_000
_READS: deque[tuple[frozenset[str], TableContext, Snapshot]] = deque(maxlen=_MOST_READS)
"""The paths of files that Spark reads, with their table and snapshot, for the last scans."""


def to_read_mark(scan: Scan) -> dict[str, str]:
    """Return the option that marks a read of the newest snapshot; none if the caller chose the snapshot."""
    marks = [
        [r.location, r.branch, r.state.snapshot_id, r.state.delta_manifest_list]
        for r in find_reads(scan).reads
        if r.state
    ]
    return {READ_MARK: json.dumps(marks[0])} if marks else {}


def mark_rows(frame: DataFrame, scan: Scan) -> DataFrame:
    """Return a frame whose plan has the read mark and the size of a scan, in a classic session."""
    spark, snapshot, table = frame.sparkSession, scan.pinned.snapshot, scan.context.table
    title = f"paimon {table.table_name} ({'no snapshot' if snapshot is None else f'snapshot {snapshot.id}'})"
    bytes_read = max(1, int(estimate_scan(scan).bytes))
    mark = to_read_mark(scan).get(READ_MARK)
    relation = Jvm(spark).create(MARKED_ROWS, frame._jdf, frame._jdf.schema(), title, bytes_read, mark)
    return DataFrame(spark._jsparkSession.baseRelationToDataFrame(relation), spark)


def to_files_mark(scan: Scan) -> dict[str, str]:
    """Return the option that marks the files of a scan with their snapshot."""
    table, snapshot = scan.context.table, scan.pinned.snapshot
    if snapshot is None:
        return {}
    path = table.location if table.branch == MAIN_BRANCH else f"{table.location}$branch_{table.branch}"
    return {FILES_MARK: json.dumps([path, snapshot.id, snapshot.delta_manifest_list])}


def remember_files(scan: Scan, paths: Iterable[str]) -> None:
    """Remember which files of a scan Spark reads, for the errors of `translate_actions`."""
    if scan.pinned.snapshot is not None:
        _READS.append((frozenset(paths), scan.context, scan.pinned.snapshot))
        while len(_READS) > 1 and sum(len(known) for known, *_ in tuple(_READS)) > _MOST_FILES:
            with suppress(IndexError):  # another thread removed it
                _READS.popleft()


def translate_actions() -> None:
    """Let each action of Spark in this process raise an error of this library, if it misses a file of `remember_files`.

    The same applies to internal errors of Spark after it stopped, and to Python processes that do not start. PySpark
    has no place for such a conversion. Errors of streams stay as they are: callers restart streams by their type.
    """
    convert = captured.convert_exception
    if getattr(convert, "paimon_reads", None) is _READS or not has_process_effects():
        return

    @wraps(convert)
    def convert_all(error: Any) -> Any:
        found = convert(error)
        if isinstance(found, captured.StreamingQueryException):
            return found
        text = str(found)
        return _find_lost_file(text) or find_slow_start(text) or find_stop(text) or found

    convert_all.paimon_reads = _READS  # type: ignore[attr-defined]
    captured.convert_exception = convert_all


def _find_lost_file(text: str) -> PaimonError | None:
    """Return the error for a missing file if no remembered scan of a snapshot that still exists reads it."""
    missing, newest = _find_missing_paths(text), None
    reads = reversed(tuple(_READS)) if missing else ()
    for context, snapshot, path in ((c, s, path) for paths, c, s in reads for path in missing & paths):
        try:
            expired = find_expiry(context, snapshot.id, path, snapshot.delta_manifest_list)
        except PaimonError:  # of the storage: the error of Spark says more
            return None
        if expired is None:
            return None
        newest = newest or expired
    return newest


def _find_missing_paths(text: str) -> frozenset[str]:
    """Return the path that an error of Spark names, also without the escapes of URLs, which some errors have."""
    missing = _MISSING_FILE.search(text)
    return frozenset() if missing is None else frozenset((missing[1], unquote(missing[1])))


def to_frame_error(frame: Any, error: Exception) -> PaimonError:
    """Convert an exception of an action of a frame; a file that Spark misses may be one of an expired snapshot."""
    return find_frame_expiry(frame, error) or translate_spark_error(error)


def find_frame_expiry(frame: Any, error: Exception) -> PaimonError | None:
    """Return the error for a missing file that Spark itself reads; None if its snapshot did not expire."""
    missing = _find_missing_paths(str(error))
    if not missing or getattr(frame, "_jdf", None) is None:
        return None
    for leaf in _list_leaves(frame):
        mark = _get_relation_option(leaf, FILES_MARK)
        location, snapshot_id, delta = ("", 0, None) if mark is None else json.loads(mark)
        path = next((path for path in missing if path.startswith(f"{location.partition('$')[0]}/")), None)
        if location and path is not None:
            table = open_in_session(frame.sparkSession, location, None)
            return find_expiry(table.context, snapshot_id, path, delta)
    return None


@find_reads.register
def _find_frame_reads(frame: DataFrame) -> SourceReads:
    spark = frame.sparkSession
    if is_remote(spark):
        found = [_find_remote_read(spark, source) for source in _list_remote_sources(_to_plan(frame))]
    else:
        found = [_find_leaf_read(spark, leaf) for leaf in _list_leaves(frame)]
    return SourceReads(read for read in found if read is not None)


def remember_view(name: str, frame: Any) -> None:
    """Remember what a frame of Spark Connect reads, for frames that read a view of this name."""
    _VIEWS[name] = list(_list_remote_sources(_to_plan(frame)))


def forget_view(name: str) -> None:
    """Forget a view of `remember_view`."""
    _VIEWS.pop(name, None)


def _to_plan(frame: Any) -> Any:
    return frame._plan.to_proto(frame.sparkSession._client)


def _list_remote_sources(message: Any) -> Iterator[Any]:
    """Yield the data sources anywhere in a plan of Spark Connect, also in its subqueries."""
    if message.DESCRIPTOR.name == "DataSource":
        yield message
        return
    if message.DESCRIPTOR.name == "NamedTable":
        yield from _VIEWS.get(message.unparsed_identifier, ())
    for field, value in message.ListFields():
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        values = value.values() if is_map else value if isinstance(value, Sequence) else (value,)
        for part in () if field.message_type is None else values:
            if hasattr(part, "ListFields"):
                yield from _list_remote_sources(part)


def _find_remote_read(spark: SparkSession, source: Any) -> SnapshotRead | None:
    options = dict(source.options)
    mark = options.get(READ_MARK)
    path = options.get("path") or next(iter(source.paths), None)
    if mark is None and source.format == "paimon" and path is not None and not _selects_snapshot(options):
        return _describe_path(spark, path)
    return None if mark is None else _parse_mark(mark)


def _list_leaves(frame: Any) -> Iterator[Any]:
    """Yield what a plan reads, with what the subqueries in its expressions read."""
    analyzed = frame._jdf.queryExecution().analyzed()
    subqueries = analyzed.subqueriesAll()
    for plan in (analyzed, *(subqueries.apply(number) for number in range(subqueries.size()))):
        leaves = plan.collectLeaves()
        yield from (leaves.apply(number) for number in range(leaves.size()))


def _find_leaf_read(spark: SparkSession, leaf: Any) -> SnapshotRead | None:
    match leaf.getClass().getSimpleName():
        case "DataSourceV2Relation" if (table := find_proxy(leaf.table())) is not None:
            return _find_catalog_read(table, leaf.options())
        case "DataSourceV2ScanRelation" if find_proxy(leaf.relation().table()) is not None:
            return _find_scan_read(leaf.scan())
        case "DataSourceV2Relation":
            options = leaf.options()
            mark = options.get(READ_MARK)
            if mark is None and leaf.table().name() == "paimon" and not _selects_snapshot(options):
                return _describe_path(spark, options.get("path"))
        case "LogicalRelation":
            mark = _get_relation_option(leaf, READ_MARK)
        case _:
            mark = None
    return None if mark is None else _parse_mark(mark)


def _find_catalog_read(table: Any, options: Any) -> SnapshotRead | None:
    """Return what a relation of an attached catalog reads; None if the query chose the snapshot."""
    mark = None if _selects_snapshot(options) else table.find_read_mark()
    return _parse_mark(mark) if mark else None


def _find_scan_read(scan: Any) -> SnapshotRead | None:
    """Return what a planned scan of an attached catalog reads; its table may read a newer snapshot by now."""
    wrapped = scan.v1Scan() if scan.getClass().getSimpleName() == "V1ScanWrapper" else scan
    proxy: Any = find_proxy(wrapped)
    mark = None if proxy is None else proxy.find_read_mark()
    return _parse_mark(mark) if mark else None


def _get_relation_option(leaf: Any, name: str) -> str | None:
    """Return an option of files that Spark itself reads, or the mark of `mark_rows`; None for other leaves."""
    if leaf.getClass().getSimpleName() != "LogicalRelation":
        return None
    relation = leaf.relation()
    if relation.getClass().getSimpleName() == MARKED_ROWS:
        return relation.readMark() if name == READ_MARK else None
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    found = relation.options().get(name)
    return str(found.get()) if found.isDefined() else None


def _selects_snapshot(options: Any) -> bool:
    """Return whether options select a snapshot or a range, also where `paimon.spark.read` passes a chosen one."""
    names = list(options) if isinstance(options, Mapping) else [str(name) for name in options.keySet().toArray()]
    dynamic = options.get(TABLE_OPTIONS) or ""
    chosen = {PINNED, *TIME_TRAVEL_OPTIONS}.intersection(names)
    return bool(chosen) or any(part in text for part in ("scan.", "incremental") for text in (*names, dynamic))


def _describe_path(spark: SparkSession, path: str) -> SnapshotRead | None:
    """Return a read whose snapshot is not known: Spark plans such a frame once, at its first action."""
    try:
        definition = open_in_session(spark, path, None).definition
    except PaimonError:
        return None  # options of the frame name the storage of the table
    return SnapshotRead(definition.location, definition.branch, None)


def _parse_mark(mark: str) -> SnapshotRead:
    location, branch, snapshot_id, delta = json.loads(mark)
    return SnapshotRead(location, branch, ReadState(snapshot_id, delta))
