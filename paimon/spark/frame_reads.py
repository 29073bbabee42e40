"""What a data frame reads of tables: `paimon.spark.read` marks its reads of newest snapshots, and plans keep the marks.

Frames of `spark.read.format("paimon")` have no mark, and their snapshot is not known. Plans of Spark Connect are not
visible here.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from paimon.domain.commit.message import ReadState
from paimon.domain.errors import PaimonError
from paimon.results import SnapshotRead, SourceReads, find_reads
from paimon.scan import Scan
from paimon.spark.options import PINNED, READ_MARK, TABLE_OPTIONS, TIME_TRAVEL_OPTIONS
from paimon.spark.warehouse import open_in_session


def to_read_mark(scan: Scan) -> dict[str, str]:
    """Return the option that marks a read of the newest snapshot; none if the caller chose the snapshot."""
    marks = [
        [r.location, r.branch, r.state.snapshot_id, r.state.delta_manifest_list]
        for r in find_reads(scan).reads
        if r.state
    ]
    return {READ_MARK: json.dumps(marks[0])} if marks else {}


@find_reads.register
def _find_frame_reads(frame: DataFrame) -> SourceReads:
    java = getattr(frame, "_jdf", None)
    if java is None:
        return SourceReads()
    leaves = java.queryExecution().analyzed().collectLeaves()
    found = (_find_leaf_read(frame.sparkSession, leaves.apply(number)) for number in range(leaves.size()))
    return SourceReads(read for read in found if read is not None)


def _find_leaf_read(spark: SparkSession, leaf: Any) -> SnapshotRead | None:
    match leaf.getClass().getSimpleName():
        case "DataSourceV2Relation":
            options = leaf.options()
            mark = options.get(READ_MARK)
            if mark is None and leaf.table().name() == "paimon" and not _selects_snapshot(options):
                return _describe_path(spark, options.get("path"))
        case "LogicalRelation":
            found = leaf.relation().options().get(READ_MARK)
            mark = str(found.get()) if found.isDefined() else None
        case _:
            mark = None
    return None if mark is None else _parse_mark(mark)


def _selects_snapshot(options: Any) -> bool:
    """Return whether options select a snapshot or a range, also where `paimon.spark.read` passes a chosen one."""
    names = [str(name) for name in options.keySet().toArray()]
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
