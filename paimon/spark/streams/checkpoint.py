"""The checkpoint of a stream that writes to a table: it identifies the stream, its batches and its table.

Spark stores the id of the query in ``metadata``, and the plan of each batch in ``offsets/<batch>`` before it runs. This
module adds ``paimon/table.json``, which names the table.

Invariant: the commit user of a stream is derived from the id of its query. A restart has the same id, and a new
checkpoint has another one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

import pyspark
from attrs import evolve, field, frozen
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from paimon.adapters.executors.spark import is_remote
from paimon.builders import BatchWriteBuilder
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.stream_batches import StreamBatch
from paimon.domain.commit.stream_target import StreamTarget, check_first_batch
from paimon.domain.errors import InvalidRequest, NotFound, Unsupported
from paimon.domain.json_text import load_object
from paimon.engines import engine_for, location_of
from paimon.operations.commit.stream_batches import (
    check_batch_can_repeat,
    check_stream_batch,
    describe_stream_target,
)
from paimon.ports.files import FileIO
from paimon.references import missing_user_error
from paimon.spark.options import find_recipe
from paimon.table import Table
from paimon.table_write import WriteResult, commit_messages

CHECKPOINT_OPTION = "checkpointLocation"
_QUERY_PROPERTY, _BATCH_PROPERTY = "sql.streaming.queryId", "streaming.sql.batchId"
_RECORD = "paimon/table.json"


def _parse_plan_time(plan: bytes) -> int | None:
    """Return when a batch was planned; None, so that the history of the table decides, if Spark's format is another."""
    try:
        planned = json.loads(plan.decode().splitlines()[1])["batchTimestampMs"]
    except (ValueError, LookupError, TypeError):
        return None
    return planned if isinstance(planned, int) else None


def _name_user(query_id: str) -> str:
    return f"spark-{query_id}"


@frozen(eq=False)
class Checkpoint:
    """The checkpoint of a stream into one table.

    Parameters
    ----------
    location : str
        The directory or URL.
    files : FileIO
        Reads and writes it.
    record : str
        The file that records the table. With a file of its own, a table may join a stream that runs already.
    """

    location: str
    files: FileIO
    record: str = _RECORD

    @classmethod
    def of(cls, path: str, table: Table, is_one_of_several: bool = False) -> Checkpoint:
        """Return the checkpoint at a path, which is read with the storage options of a table in the same storage.

        Parameters
        ----------
        path : str
            The path or URL.
        table : Table
            The table of the stream.
        is_one_of_several : bool
            Whether the stream writes to several tables.

        Returns
        -------
        Checkpoint
            The checkpoint.
        """
        location = location_of(path)
        _, storage, _, _ = find_recipe(table.engine)
        is_same_storage = location.partition("://")[0] == table.location.partition("://")[0]
        files = engine_for(location, storage if is_same_storage else {}, {}).files
        if not is_one_of_several:
            return cls(location, files)
        place = f"{table.location}${table.definition.branch}"
        return cls(location, files, f"paimon/tables/{hashlib.sha256(place.encode()).hexdigest()[:32]}.json")

    def find_user(self) -> str:
        """Return the commit user of the stream.

        Raises
        ------
        InvalidRequest
            The directory is not the checkpoint of a query that was started.
        CorruptTable
            The file with the id of the query cannot be read.
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

        Raises
        ------
        Unsupported
            The checkpoint does not have the plan, so that no replay of the batch could be recognized.
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
        return StreamBatch(number, _parse_plan_time(plan), plan_hash=hashlib.sha256(plan).hexdigest())

    def find_first_batch(self, table: Table) -> int | None:
        """Check that a table is the one that the checkpoint records, and return its first batch.

        Returns
        -------
        int or None
            None if the checkpoint does not record the table yet.

        Raises
        ------
        InvalidRequest
            It is another table, was created again, or has another primary key.
        """
        path = f"{self.location}/{self.record}"
        try:
            recorded = StreamTarget.parse(load_object(self.files.read(path), path))
        except NotFound:
            return None
        recorded.check_unchanged(describe_stream_target(table.context))
        return recorded.first_batch

    def bind(self, table: Table, number: int) -> int:
        """Record the table at its first batch; later, check that it is still the same table.

        Parameters
        ----------
        table : Table
            The table.
        number : int
            The batch that is about to be committed.

        Returns
        -------
        int
            The first batch of the table.

        Raises
        ------
        InvalidRequest
            It is another table, was created again, or has another primary key, or the stream began with another target.
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
    """What identifies the commits of one call of `write` or `cdc` to one table.

    Parameters
    ----------
    user : str, optional
        The commit user; None for a new one.
    properties : mapping of str to str
        The properties of the snapshots.
    """

    user: str | None
    properties: Mapping[str, str] = field(factory=dict)

    @classmethod
    def of(
        cls, spark: SparkSession, table: Table, commit_user: str | None, commit_identifier: int | None
    ) -> CommitName:
        """Return what identifies the commits of a call, whose commit user may be that of a running stream.

        Parameters
        ----------
        spark : SparkSession
            The session of the rows.
        table : Table
            The table.
        commit_user, commit_identifier : str, int, optional
            What the caller gave.

        Returns
        -------
        CommitName
            Inside `foreachBatch`, a call with an identifier and no user commits as the stream, so that a repeated batch
            is recognized.

        Raises
        ------
        InvalidRequest
            There is no user for the identifier, or the batch may be in the table already.
        Unsupported
            The checkpoint of the stream cannot be found, or it does not have the plan of the batch.
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
        checkpoint = Checkpoint.of(_find_running_checkpoint(spark, query_id), table, is_one_of_several=True)
        batch = checkpoint.find_batch(number)
        batch = evolve(batch, is_first_attempt=not checkpoint.rebind(table, number))
        check_batch_can_repeat(table.context, _name_user(query_id), batch)
        return cls(_name_user(query_id), batch.properties)


def _find_running_checkpoint(spark: SparkSession, query_id: str) -> str:
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
    """A table as the target of one batch of a stream.

    Parameters
    ----------
    table : Table
        The table.
    commit_user : str
        The commit user of the stream.
    checkpoint : Checkpoint
        The checkpoint of the stream.
    batch : StreamBatch
        The batch as Spark numbers it.
    """

    table: Table
    commit_user: str
    checkpoint: Checkpoint
    batch: StreamBatch

    @classmethod
    def open(cls, table: Table, path: str, number: int, is_one_of_several: bool = False) -> StreamSink:
        """Open a target of the stream with this checkpoint, whose query has started.

        Parameters
        ----------
        table : Table
            The target.
        path : str
            The path or URL of the checkpoint.
        number : int
            The batch.
        is_one_of_several : bool
            Whether the stream writes to several tables.

        Returns
        -------
        StreamSink
            The target.

        Raises
        ------
        InvalidRequest
            The directory is not the checkpoint of a query that was started.
        Unsupported
            The checkpoint does not have the plan of the batch.
        """
        checkpoint = Checkpoint.of(path, table, is_one_of_several)
        return cls(table, checkpoint.find_user(), checkpoint, checkpoint.find_batch(number))

    def is_committed(self) -> bool:
        """Return whether the table has the batch; the first batch records the table in the checkpoint.

        Raises
        ------
        InvalidRequest
            The checkpoint and the table do not belong together, the table has the batch with another plan, or the
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

    def commit(self, builder: BatchWriteBuilder, messages: Sequence[CommitMessage]) -> WriteResult:
        """Commit the batch; an empty one makes a snapshot too, which shows that the batch is committed.

        Parameters
        ----------
        builder : BatchWriteBuilder
            The builder of the tasks' writers.
        messages : sequence of CommitMessage
            What they prepared.

        Returns
        -------
        WriteResult
            What the batch added.

        Raises
        ------
        InvalidRequest, CommitConflict, CommitOverwritten, Unsupported
            The commit was refused; see `commit_messages`.
        """
        commit, identifier = evolve(builder.new_commit(), ignore_empty=False), self.find_identifier()
        return commit_messages(commit, messages, self.batch.properties, identifier)
