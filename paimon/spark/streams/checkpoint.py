"""The checkpoint of a stream that writes to a table: it identifies the stream, its batches and its table.

Spark stores the id of the query in ``metadata``, and the plan of each batch in ``offsets/<batch>`` before it runs. This
module adds ``paimon/table.json``, which names the table.

Invariant: the commit user of a stream is derived from the id of its query. A restart has the same id, and a new
checkpoint has another one.
"""

# What the directory of a checkpoint has, and what becomes of it in the table:
#
#     metadata              {"id": "4c1..."}, written at the first start      commit user spark-4c1...
#     offsets/7             the plan of batch 7, written before it runs       its hash: a property of the snapshot
#     paimon/table.json     by us: the table, and its first batch             commit identifier 7 - first batch
#     paimon/tables/*.json  the same, for each of several tables of a stream
#
# Spark runs a batch again if it stopped between our commit and its own note in `commits/7`. Then the table has a
# snapshot with this user and identifier: with the same plan the batch is committed, and its new files are deleted; with
# another plan, from a checkpoint that is older than the table, rows could be lost or doubled, so the batch is refused.
#
# The record is written before the first commit. So a first attempt (no record yet) is known, and an empty history means
# something else later: the snapshots that would show the batch may have expired. Such a batch is refused, too, unless
# the oldest snapshot is older than its plan. `StreamSink` does this for streams that write through this library. Inside
# `foreachBatch`, where a program calls `write` with an identifier alone, `CommitName` finds the running query and its
# checkpoint.

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import islice, takewhile

import pyspark
from attrs import evolve, field, frozen
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from paimon.adapters.executors.spark import is_remote
from paimon.builders.direct_writes import WriteResult, commit_messages
from paimon.builders.write_builder import BatchWriteBuilder
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.stream_batches import PLAN_HASH, StreamBatch
from paimon.domain.commit.stream_target import StreamTarget, check_first_batch
from paimon.domain.errors import InvalidRequest, NotFound, Unsupported
from paimon.domain.json_text import load_object
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.engines import engine_for, location_of
from paimon.operations.commit.history import (
    check_batch_can_repeat,
    check_stream_batch,
    describe_stream_target,
    iterate_snapshots,
    iterate_user_snapshots,
)
from paimon.operations.commit.publish import is_detached
from paimon.operations.metadata.manifests import read_delta_list, read_live_entries
from paimon.operations.table_context import missing_user_error
from paimon.ports.files import FileIO
from paimon.spark.options import find_recipe
from paimon.table import Table

CHECKPOINT_OPTION = "checkpointLocation"
_QUERY_PROPERTY, _BATCH_PROPERTY = "sql.streaming.queryId", "streaming.sql.batchId"
_RECENT = 50
"""How many snapshots are searched for a batch that was just committed."""
_RECORD, _RECORDS = "paimon/table.json", "paimon/tables"


def _parse_plan(plan: bytes) -> StreamBatch:
    """Return what the plan of a batch tells about it, without its number.

    Where Spark's format is another one, the times are None, so that the history of the table decides.
    """
    try:
        stored = json.loads(plan.decode().splitlines()[1])
        planned, watermark = stored["batchTimestampMs"], stored.get("batchWatermarkMs")
    except (ValueError, LookupError, TypeError):
        planned = watermark = None
    return StreamBatch(
        0,
        planned if isinstance(planned, int) else None,
        plan_hash=hashlib.sha256(plan).hexdigest(),
        watermark_millis=watermark if isinstance(watermark, int) and watermark > 0 else None,
    )


def _name_user(query_id: str) -> str:
    return f"spark-{query_id}"


@frozen(eq=False)
class Checkpoint:
    """The checkpoint of a stream into one table."""

    location: str
    files: FileIO
    # The file that names the table; a file of its own lets a table join a stream that already runs
    record: str = _RECORD

    @classmethod
    def of(cls, path: str, table: Table, is_one_of_several: bool = False) -> Checkpoint:
        """Return the checkpoint at a path. It uses the storage options of the table if both are in the same storage.

        With `is_one_of_several`, the stream writes to several tables, and each has its own record file.
        """
        location = location_of(path)
        _, storage, _, _ = find_recipe(table.engine)
        is_same_storage = location.partition("://")[0] == table.location.partition("://")[0]
        files = engine_for(location, storage if is_same_storage else {}, {}).files
        if not is_one_of_several:
            return cls(location, files)
        target = f"{table.location}${table.definition.branch}"
        return cls(location, files, f"{_RECORDS}/{hashlib.sha256(target.encode()).hexdigest()[:32]}.json")

    def find_user(self) -> str:
        """Return the commit user of the stream.

        Raises `InvalidRequest` if the directory is not the checkpoint of a query that has started.
        """
        path = f"{self.location}/metadata"
        try:
            return _name_user(load_object(self.files.read(path), path).text("id"))
        except NotFound as error:
            raise InvalidRequest(
                f"Checkpoint {self.location!r} does not contain the id of a query.",
                subject=CHECKPOINT_OPTION,
                hint="give its whole URL, such as hdfs://host/path, if Spark does not resolve the path on this machine",
            ) from error

    def find_batch(self, number: int) -> StreamBatch:
        """Return a batch with the time and the hash of its plan.

        Raises `Unsupported` if the checkpoint lacks the plan, because a replay of the batch could not be detected.
        """
        path = f"{self.location}/offsets/{number}"
        try:
            plan = self.files.read(path)
        except NotFound as error:
            raise Unsupported(
                f"a stream whose checkpoint has no 'offsets/{number}' while batch {number} is written, as with "
                "asynchronous progress tracking and in real-time mode",
                hint="leave out 'asyncProgressTrackingEnabled', and use another trigger",
            ) from error
        return evolve(_parse_plan(plan), number=number)

    def find_first_batch(self, table: Table) -> int | None:
        """Return the number of the table's first batch; None if the checkpoint does not record the table yet.

        Raises `InvalidRequest` if the record names another table, or the table was recreated or has another primary
        key.
        """
        path = f"{self.location}/{self.record}"
        try:
            recorded = StreamTarget.parse(load_object(self.files.read(path), path))
        except NotFound:
            return None
        recorded.check_unchanged(describe_stream_target(table.context))
        return recorded.first_batch

    def bind(self, table: Table, number: int) -> int:
        """Record the table before batch `number`, its first one, is committed; later, check that it is the same table.

        Raises `InvalidRequest` as `find_first_batch`, and if the stream began with another target.
        """
        first = self.find_first_batch(table)
        if first is not None:
            return first
        if self.record == _RECORD:
            check_first_batch(self.location, number)
        target = evolve(describe_stream_target(table.context), first_batch=number)
        self.files.replace(f"{self.location}/{self.record}", target.to_json())
        return number

    def rebind(self, table: Table, number: int) -> bool:
        """Record a table that `foreachBatch` writes, and return whether the checkpoint named it before.

        A table that was created again counts as a new one.
        """
        path = f"{self.location}/{self.record}"
        target = describe_stream_target(table.context)
        try:
            if StreamTarget.parse(load_object(self.files.read(path), path)).created_millis == target.created_millis:
                return True
        except NotFound:
            pass
        self.files.replace(path, evolve(target, first_batch=number).to_json())
        return False


@frozen
class CommitName:
    """What identifies the commits of one call of `write` or `cdc` to one table."""

    # None means a new commit user
    user: str | None
    # Properties of the snapshots
    properties: Mapping[str, str] = field(factory=dict)
    # Watermark of the running stream
    watermark_millis: int | None = None

    @classmethod
    def of(
        cls, spark: SparkSession, table: Table, commit_user: str | None, commit_identifier: int | None
    ) -> CommitName:
        """Return the identity of the commits of a call; inside `foreachBatch` it can be that of the running stream.

        This applies to a call with an identifier and no user: a repeated batch is then detected. It is refused if the
        stream is unknown, the batch may already be committed, or the checkpoint lacks the plan of the batch.
        """
        if commit_user is not None or commit_identifier is None:
            return cls(commit_user)
        if is_remote(spark):
            raise InvalidRequest(
                "Argument 'commit_identifier' needs 'commit_user' through Spark Connect, which names no query.",
                subject="commit_user",
                hint="pass commit_user='…', another one for each stream and for each new checkpoint",
            )
        query_id = spark.sparkContext.getLocalProperty(_QUERY_PROPERTY)
        if query_id is None:
            raise missing_user_error("commit_identifier")
        number = int(spark.sparkContext.getLocalProperty(_BATCH_PROPERTY))
        checkpoint = Checkpoint.of(find_running_checkpoint(spark, query_id), table, is_one_of_several=True)
        batch = checkpoint.find_batch(number)
        batch = evolve(batch, is_first_attempt=not checkpoint.rebind(table, number))
        check_batch_can_repeat(table.context, _name_user(query_id), batch)
        return cls(_name_user(query_id), batch.properties, batch.watermark_millis)


def list_targets(location: str, storage: Mapping[str, object]) -> list[tuple[StreamTarget, bool]]:
    """Return the tables that a checkpoint names; True for one of several tables of a stream."""
    location = location_of(location)
    files = engine_for(location, storage, {}).files
    several = [f.path for f in files.list(f"{location}/{_RECORDS}")]
    found = [(path, path in several) for path in (f"{location}/{_RECORD}", *several)]
    return [(StreamTarget.parse(load_object(files.read(p), p)), flag) for p, flag in found if files.status(p)]


def find_running_checkpoint(spark: SparkSession, query_id: str) -> str:
    """Return the checkpoint of a query that runs in this process; only Spark's internal objects name it."""
    try:
        key = spark.sparkContext._jvm.java.util.UUID.fromString(query_id)
        query = spark._jsparkSession.sharedState().activeStreamingQueries().get(key)
        return str(query.resolvedCheckpointRoot())
    except (Py4JError, AttributeError) as error:
        raise Unsupported(
            f"'commit_identifier' without 'commit_user' in foreachBatch of PySpark {pyspark.__version__}",
            hint="pass commit_user='…', another one for each stream and for each new checkpoint",
        ) from error


@frozen(eq=False)
class StreamSink:
    """A table as the target of one batch of a stream."""

    table: Table
    commit_user: str
    checkpoint: Checkpoint
    # Numbered by Spark, not by the batches of this table
    batch: StreamBatch

    @classmethod
    def open(cls, table: Table, path: str, number: int, is_one_of_several: bool = False) -> StreamSink:
        """Open a table as target of the stream with this checkpoint, whose query has started.

        With `is_one_of_several`, the stream writes to several tables. Raises `Unsupported` as `Checkpoint.find_batch`.
        """
        checkpoint = Checkpoint.of(path, table, is_one_of_several)
        return cls(table, checkpoint.find_user(), checkpoint, checkpoint.find_batch(number))

    def is_committed(self) -> bool:
        """Return whether the table has the batch; the first batch records the table in the checkpoint.

        Raises `InvalidRequest` if the table does not belong to the checkpoint, has the batch with another plan, or its
        snapshots do not reach back to the batch.
        """
        is_first_attempt = self.checkpoint.find_first_batch(self.table) is None
        number = self.batch.number
        own_number = number - self.checkpoint.bind(self.table, number)
        batch = evolve(self.batch, number=own_number, is_first_attempt=is_first_attempt)
        return check_stream_batch(self.table.context, self.commit_user, batch)

    def find_identifier(self) -> int:
        """Return the commit identifier of the batch: its number among the batches of the table."""
        return self.batch.number - (self.checkpoint.find_first_batch(self.table) or 0)

    def describe_commit(self) -> WriteResult:
        """Return the result of the commit of a batch that the table has; an empty one if its snapshots expired."""
        identifier = self.find_identifier()
        own = iterate_user_snapshots(self.table.context, self.commit_user)
        newest = takewhile(lambda s: s.commit_identifier >= identifier, own)
        return self._describe([s for s in newest if s.commit_identifier == identifier])

    def describe_recent_commit(self) -> WriteResult:
        """Return the result of the commit with the plan of the batch; an empty one if it is not among the newest."""
        newest = islice(iterate_snapshots(self.table.context), _RECENT)
        plan = self.batch.plan_hash
        own = [s for s in newest if s.commit_user == self.commit_user and s.properties.get(PLAN_HASH) == plan]
        return self._describe(own)

    def _describe(self, snapshots: Sequence[Snapshot]) -> WriteResult:
        """Return what the snapshots of a commit, newest first, wrote."""
        context, kinds = self.table.context, (CommitKind.APPEND, CommitKind.OVERWRITE)
        made = [s for s in reversed(snapshots) if not is_detached(context, s)]
        written = [m for s in made if s.commit_kind in kinds for m in read_delta_list(context, s)]
        added = read_live_entries(context, written)
        return WriteResult(tuple(s.id for s in made), sum(e.file.row_count for e in added), len(added))

    def commit(self, builder: BatchWriteBuilder, messages: Sequence[CommitMessage]) -> WriteResult:
        """Commit the batch with the watermark of its stream; an empty one creates a snapshot, too, as a record.

        `builder` made the writers of the tasks. Errors are those of `commit_messages`.
        """
        commit, identifier = evolve(builder.new_commit(), ignore_empty=False), self.find_identifier()
        return commit_messages(commit, messages, self.batch.properties, identifier, self.batch.watermark_millis)
