"""The program API for writing: write in many processes, commit in one.

Commit messages are plain values that can travel between processes. Each builder binds arguments and delegates to an
operation.

Source: the names follow the program APIs of Java and of pypaimon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from paimon.builders.table_write import TableWrite
from paimon.display.notebook import BuilderDisplay, given_arguments
from paimon.domain.bucket.postponed import MAX_BUCKETS
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.plan_change import SafeSnapshot
from paimon.domain.commit.request import CommitRequest, CommitResult, check_long
from paimon.domain.errors import InvalidRequest
from paimon.domain.partition.partition_text import parse_partition_spec
from paimon.domain.row.binary_row import serialize
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.domain.text_checks import check_mapping
from paimon.operations.commit.commit import name_request
from paimon.operations.commit.history import is_committed
from paimon.operations.commit.prepared_files import abort
from paimon.operations.maintenance.after_commit import run_after_commit
from paimon.operations.metadata.schemas import check_same_table
from paimon.operations.table_context import TableContext
from paimon.operations.write.commit_rows import commit_rows, repeat_commit

if TYPE_CHECKING:
    from paimon.builders.row_updates import TableUpdate


@frozen(repr=False)
class TableCommit(BuilderDisplay):
    """Commit the messages of writers as snapshots; made by `BatchWriteBuilder.new_commit`.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    commit_user : str
        The name of the job that commits; with the commit identifier it identifies a commit.
    overwrite : mapping of str to object, optional
        The partition values to replace; ``{}`` the whole table, None to replace nothing.
    dynamic_overwrite : bool
        Replace the partitions that the messages name.
    ignore_empty : bool
        Make no snapshot where there is nothing to commit.
    owns_messages : bool
        No caller keeps the messages, so their files may be written again; see `commit.late-rows.max-size`.
    shares_snapshot : bool
        No caller knows the user, so the snapshot may contain concurrent commits of this process, too.
    flushes_files : bool
        The writers left it to the commit to flush their files.
    """

    context: TableContext
    commit_user: str
    overwrite: Mapping[str, object] | None = None
    dynamic_overwrite: bool = False
    ignore_empty: bool = True
    owns_messages: bool = field(default=False, repr=False, kw_only=True)
    shares_snapshot: bool = field(default=False, repr=False, kw_only=True)
    flushes_files: bool = field(default=False, repr=False, kw_only=True)
    _safe: SafeSnapshot = field(factory=SafeSnapshot, init=False, eq=False, repr=False)

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self.context.table.table_name, given_arguments(commit_user=self.commit_user, overwrite=self.overwrite)

    def commit(
        self,
        messages: Sequence[CommitMessage],
        properties: Mapping[str, str] | None = None,
        *,
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        watermark: int | None = None,
    ) -> CommitResult:
        """Publish the messages as one snapshot; with its own `identifier` a commit of one user is made once.

        After a CommitConflict nothing is published and the files still exist: `abort` deletes them. If only the
        compaction is lost (see `CommitResult.lost_compaction`), its files are deleted already. Where reads skip level 0
        (deletion vectors, first-row), a lost compaction is planned again until reads return the rows.

        Parameters
        ----------
        messages : sequence of CommitMessage
            What the writers prepared, in this or in other processes.
        properties : mapping of str to str, optional
            Text to store in the snapshot.
        identifier : int
            The commit identifier; by default that of batch commits.
        watermark : int, optional
            Event time in epoch milliseconds; the watermark of a table never decreases.

        Returns
        -------
        CommitResult
            The snapshots of the commit, and what they added.

        Raises
        ------
        CommitConflict
            Another commit replaced the same files.
        CommitUncertain, CommitOverwritten
            The commit status is unknown, or another commit replaced the snapshot; see `Table.resolve`.
        CommitNotVisible
            The rows are committed, but their compaction failed too often.
        """
        request = CommitRequest(
            messages=tuple(messages),
            commit_user=self.commit_user,
            commit_identifier=identifier,
            overwrite=self.overwrite,
            dynamic_overwrite=self.dynamic_overwrite,
            watermark=watermark,
            properties=dict(check_mapping(properties, "properties")),
            ignore_empty=self.ignore_empty,
            renumbers=self.owns_messages,
            shares_snapshot=self.shares_snapshot,
            flushes_files=self.flushes_files,
        )
        done = commit_rows(self.context, request, self._safe)
        run_after_commit(self.context, done.snapshot_ids, identifier)
        return done

    def filter_committed(self, identifiers: Sequence[int]) -> list[int]:
        """Return the commit identifiers that this user has not committed yet.

        For each of the others, callbacks are called again, and rows that reads do not return yet are compacted.
        """
        for identifier in identifiers:
            check_long(identifier, "commit identifier")
        check_same_table(self.context)
        left = [i for i in identifiers if not is_committed(self.context, self.commit_user, i)]
        for identifier in identifiers:
            if identifier not in left:
                repeat_commit(self.context, CommitRequest((), self.commit_user, identifier))
        return left

    def abort(self, messages: Sequence[CommitMessage], identifier: int = BATCH_COMMIT_IDENTIFIER) -> tuple[str, ...]:
        """Delete the files of messages that are never committed, and return their paths; files of a snapshot stay."""
        return abort(self.context, messages, self.commit_user, identifier)


@frozen(repr=False)
class BatchWriteBuilder(BuilderDisplay):
    """Make the writers and the commit of one job; made by `Table.new_batch_write_builder`.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    commit_user : str
        The name of the job that commits.
    overwrite_spec : mapping of str to object, optional
        The partition values to replace; None for the partitions that are written.
    overwrites : bool
        The commit replaces rows.
    planned_buckets : mapping of bytes to int
        The numbers of buckets of serialized partitions; see `with_bucket_plan`.
    """

    context: TableContext
    commit_user: str
    overwrite_spec: Mapping[str, object] | None = None
    overwrites: bool = False
    planned_buckets: Mapping[bytes, int] = field(factory=dict, kw_only=True)

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        overwrite = (self.overwrite_spec or {}) if self.overwrites else None
        return self.context.table.table_name, given_arguments(commit_user=self.commit_user, overwrite=overwrite)

    def overwrite(self, static_partition: Mapping[str, object] | None = None) -> BatchWriteBuilder:
        """Return a builder whose commit replaces partitions: those given, or (None) those that are written."""
        return evolve(self, overwrite_spec=static_partition, overwrites=True)

    def with_bucket_plan(self, plan: Mapping[tuple[Any, ...], int]) -> BatchWriteBuilder:
        """Return a builder whose writers use these numbers of buckets, so that writers of several processes agree.

        Parameters
        ----------
        plan : mapping of tuple to int
            The number of buckets by the values of the partition columns, in their order. A partition that is missing
            keeps its number, or gets one by the options `postpone.*`.

        Returns
        -------
        BatchWriteBuilder
            The new builder.

        Raises
        ------
        InvalidRequest
            The table has no postponed buckets or its writes are postponed, or a partition or number is not possible.
        """
        table = self.context.table
        if table.bucket_mode is not BucketMode.POSTPONED or not table.options.postpone_batch_write_fixed_bucket:
            raise InvalidRequest(
                f"Table {table.table_name!r} takes no bucket plan.",
                subject="plan",
                hint="set 'bucket' to -2 and 'postpone.batch-write-fixed-bucket' to true",
            )
        fields = table.schema.partition_fields
        planned: dict[bytes, int] = {}
        for values, buckets in plan.items():
            if len(values) != len(fields) or not isinstance(buckets, int) or not 0 < buckets <= MAX_BUCKETS:
                raise InvalidRequest(
                    f"The plan of {buckets!r} buckets for partition {values!r} is not possible.",
                    subject="plan",
                    hint=f"give {len(fields)} values, and a number from 1 to {MAX_BUCKETS}",
                )
            spec = {column.name: value for column, value in zip(fields, values, strict=True)}
            parsed = parse_partition_spec(spec, fields, table.options.partition_default_name)
            planned[serialize(tuple(parsed.values()), [column.type for column in fields])] = buckets
        return evolve(self, planned_buckets=planned)

    def new_write(self) -> TableWrite:
        """Return a writer, for this or another process."""
        return TableWrite(
            self.context,
            self.commit_user,
            ignore_previous=self.overwrites,
            replaced=self.replaced_partitions,
            planned_buckets=self.planned_buckets,
        )

    def new_update(self) -> TableUpdate:
        """Return the object that updates rows by their ids, in a table with `data-evolution.enabled`."""
        from paimon.builders.row_updates import TableUpdate  # loaded when rows are changed

        return TableUpdate(self.context, self.commit_user)

    def new_commit(self) -> TableCommit:
        """Return the object that commits the messages of all writers."""
        spec = self.replaced_partitions
        return TableCommit(self.context, self.commit_user, spec, self.overwrites and spec is None)

    @property
    def replaced_partitions(self) -> Mapping[str, object] | None:
        """The partition values that the commit replaces; None for the partitions written, and without an overwrite."""
        if not self.overwrites or self.overwrite_spec is not None:
            return self.overwrite_spec
        is_dynamic = bool(self.context.schema.partition_keys) and self.context.options.dynamic_partition_overwrite
        return None if is_dynamic else {}


@frozen(repr=False)
class StreamWriteBuilder(BuilderDisplay):
    """Make the writers and the commits of a stream; made by `Table.new_stream_write_builder`.

    One user makes many commits with ascending identifiers. Empty commits make a snapshot too, which shows progress.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    commit_user : str
        The name of the job that commits; the same after a restart.
    """

    context: TableContext
    commit_user: str

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self.context.table.table_name, {"commit_user": self.commit_user}

    def new_write(self) -> TableWrite:
        """Return a writer for many commits."""
        return TableWrite(self.context, self.commit_user, streaming=True)

    def new_update(self) -> TableUpdate:
        """Return the object that updates rows by their ids; see `BatchWriteBuilder.new_update`."""
        from paimon.builders.row_updates import TableUpdate  # loaded when rows are changed

        return TableUpdate(self.context, self.commit_user)

    def new_commit(self) -> StreamTableCommit:
        """Return the object that commits with ascending identifiers."""
        return StreamTableCommit(TableCommit(self.context, self.commit_user, ignore_empty=False))


@frozen(repr=False)
class StreamTableCommit(BuilderDisplay):
    """Commit with ascending commit identifiers; what is committed already is skipped.

    Parameters
    ----------
    inner : TableCommit
        The commit of one set of messages.
    """

    inner: TableCommit

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self.inner._describe()

    def commit(
        self,
        identifier: int,
        messages: Sequence[CommitMessage],
        watermark: int | None = None,
    ) -> CommitResult:
        """Publish the messages under a commit identifier, unless it is committed already.

        Parameters
        ----------
        identifier : int
            The commit identifier, from 0; greater than that of the commit before.
        messages : sequence of CommitMessage
            What the writers prepared.
        watermark : int, optional
            Event time in epoch milliseconds.

        Returns
        -------
        CommitResult
            The snapshots of the commit; `already_committed` is true if an earlier call committed them.

        Raises
        ------
        InvalidRequest
            The identifier is negative, or not a 64-bit number.
        CommitConflict, CommitUncertain, CommitOverwritten, CommitNotVisible
            As in `TableCommit.commit`.
        """
        if not 0 <= check_long(identifier, "commit identifier") < BATCH_COMMIT_IDENTIFIER:
            raise InvalidRequest(
                f"Commit identifier {identifier} is out of range.",
                subject="identifier",
                hint=f"give 0 to {BATCH_COMMIT_IDENTIFIER - 1}",
            )
        inner = self.inner
        request = CommitRequest(tuple(messages), inner.commit_user, identifier)
        with name_request(request):
            is_repeated = is_committed(inner.context, inner.commit_user, identifier)
        if is_repeated:
            failed_callbacks = repeat_commit(inner.context, request)
            return CommitResult(already_committed=True, failed_callbacks=failed_callbacks)
        return inner.commit(messages, identifier=identifier, watermark=watermark)

    def filter_committed(self, identifiers: Sequence[int]) -> list[int]:
        """Return the commit identifiers that this user has not committed yet; see `TableCommit.filter_committed`."""
        return self.inner.filter_committed(identifiers)
