"""The program API of the field: plan here, read there, write there, commit here.

Law: splits and commit messages are plain values that may travel; each builder only binds arguments to operations. Names
follow Java's and pypaimon's program API.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from attrs import evolve, field, frozen

from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import InvalidRequest
from paimon.domain.partition.spec import parse_spec
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.text import describe
from paimon.domain.row.binary_row import serialize
from paimon.domain.scan.plan import Plan
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.domain.texts import check_mapping, check_names, check_text
from paimon.notebook import NotebookDisplay, given_arguments
from paimon.operations.commit.abort import abort
from paimon.operations.commit.commit import CommitRequest, CommitResult, SafeSnapshot, committed
from paimon.operations.commit.request import check_long
from paimon.operations.read.split import ReadPlan, output_schema, read_split
from paimon.operations.write.commit_written import commit_written, repeat_commit
from paimon.operations.write.source import tables_of
from paimon.operations.write.writer import TableWriter
from paimon.ports.engine import Engine
from paimon.results import Results
from paimon.scan import Scan, predicate_of
from paimon.upkeep.retention import keep_up


class _BuilderDisplay(NotebookDisplay):
    __slots__ = ()
    _internals = NotebookDisplay._internals | {"table", "inner", "read_plan", "overwrite_spec", "overwrites"}


@frozen(repr=False)
class ReadBuilder(_BuilderDisplay):
    """Collects what to read; immutable: each `with_…` answers a new builder."""

    engine: Engine = field(eq=False)
    table: TableDefinition
    predicate: Predicate | str | None = None
    columns: tuple[str, ...] | None = None
    limit: int | None = None

    def with_filter(self, predicate: Predicate | str) -> ReadBuilder:
        """Rows where this is true; a second filter is joined by AND."""
        if self.predicate is not None:
            predicate = predicate_of(self.predicate) & predicate_of(predicate)
        return evolve(self, predicate=predicate)

    def with_projection(self, columns: Sequence[str]) -> ReadBuilder:
        """These columns, in this order."""
        return evolve(self, columns=check_names(columns, "columns"))

    def with_limit(self, limit: int) -> ReadBuilder:
        """At most so many rows of the splits that are read together."""
        return evolve(self, limit=limit)

    def new_scan(self) -> TableScan:
        """Plans splits."""
        return TableScan(self._scan())

    def new_read(self) -> TableRead:
        """Reads splits."""
        return TableRead(self._scan())

    def explain(self) -> str:
        """What would be read, and what is pruned at each step."""
        return self._scan().explain()

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self._scan()._describe()

    def _scan(self) -> Scan:
        return Scan(self.engine, self.table, columns=self.columns, where=self.predicate, limit=self.limit)


class TableScan(_BuilderDisplay):
    """Answers the plan of a read."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self._scan._describe()

    def plan(self) -> ScanPlan:
        """What there is to read."""
        return ScanPlan(self._scan.plan())


@frozen(repr=False)
class ScanPlan:
    """The plan of a read, as those who distribute it ask for it."""

    planned: Plan

    def __repr__(self) -> str:
        return f"Scan{self.planned!r}"

    def _repr_html_(self) -> str:
        return self.planned._repr_html_()

    def splits(self) -> tuple[DataSplit, ...]:
        """The units of work; they are picklable, and each may be read in another process."""
        return self.planned.splits

    def explain(self) -> str:
        """What was pruned at each step."""
        return self.planned.explain()


class TableRead(_BuilderDisplay):
    """Reads splits of a plan, here or in another process (it pickles with its builder's engine)."""

    def __init__(self, scan: Scan) -> None:
        self.engine = scan._engine
        self.table = scan.pinned.table
        self.read_plan: ReadPlan = scan.read_plan

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        where = None if self.read_plan.predicate is None else describe(self.read_plan.predicate)
        columns = list(self.read_plan.columns)
        return self.table.identifier, given_arguments(columns=columns, where=where, limit=self.read_plan.limit)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the result."""
        return output_schema(self.table, self.read_plan)

    def to_batches(self, splits: Sequence[DataSplit]) -> Iterator[pa.RecordBatch]:
        """Record batches of the splits, one split after the other."""
        left = self.read_plan.limit
        for split in splits:
            if left is not None and left <= 0:
                return
            for batch in read_split(self.engine, self.table, split, self.read_plan):
                yield batch if left is None else batch.slice(0, max(left, 0))
                left = None if left is None else left - batch.num_rows

    def read(self, splits: Sequence[DataSplit]) -> Results:
        """The rows of the splits in any form: `read(splits).to_pandas()`."""
        return _SplitRows(self, splits)

    def to_arrow(self, splits: Sequence[DataSplit]) -> pa.Table:
        """All rows of the splits as one Arrow table."""
        return self.read(splits).to_arrow()

    def to_arrow_batch_reader(self, splits: Sequence[DataSplit]) -> pa.RecordBatchReader:
        """A reader over the splits."""
        return self.read(splits).to_batches()

    def to_pandas(self, splits: Sequence[DataSplit]) -> Any:
        """All rows of the splits as a pandas frame."""
        return self.read(splits).to_pandas()


class _SplitRows(Results):
    def __init__(self, read: TableRead, splits: Sequence[DataSplit]) -> None:
        self._read = read
        self._splits = splits

    @property
    def arrow_schema(self) -> pa.Schema:
        return self._read.arrow_schema

    def _batches(self) -> Iterator[pa.RecordBatch]:
        return self._read.to_batches(self._splits)


class TableWrite(_BuilderDisplay):
    """Writes rows of one job; `prepare_commit` answers the messages that a TableCommit takes.

    Leaving a ``with`` block by an exception removes the files that were written and not handed out.
    """

    def __init__(
        self,
        engine: Engine,
        table: TableDefinition,
        commit_user: str,
        ignore_previous: bool = False,
        streaming: bool = False,
    ) -> None:
        self._table = table
        self._streaming = streaming
        self._writer = TableWriter(engine, table, commit_user, ignore_previous=ignore_previous)

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self._table.identifier, {"streaming": self._streaming}

    def write(self, data: Any, kind_column: str | None = None) -> None:
        """Write anything tabular (see `Table.write`)."""
        if kind_column is not None:
            check_text(kind_column, "kind_column")
        extra = (kind_column,) if kind_column else ()
        for table in tables_of(data, self._table.schema.fields, extra):
            self._writer.write(table, kind_column)

    def write_arrow(self, table: pa.Table | pa.RecordBatch) -> None:
        """Write an Arrow table or batch."""
        self.write(table)

    def write_arrow_batch(self, batch: pa.RecordBatch) -> None:
        """Write one record batch."""
        self.write(batch)

    def write_pandas(self, frame: Any) -> None:
        """Write a pandas frame."""
        self.write(frame)

    def compact(self, partition: Mapping[str, object], bucket: int = 0, full: bool = False) -> None:
        """Compact one bucket at the next `prepare_commit`: what the table's options ask for, or all into one run.

        `partition` names the values of all partition columns (``{}`` where there are none).
        """
        self._writer.compact(_partition_row(self._table, partition), bucket, full)

    def flush(self) -> None:
        """Write buffered rows to data files now; nothing is compacted, and nothing is visible before the commit."""
        self._writer.flush()

    def prepare_commit(self, identifier: int | None = None) -> list[CommitMessage]:
        """Flush everything, and compact; the messages say what was written and what was replaced.

        `identifier` is the one that the messages will be committed under: `full-compaction.delta-commits` counts by it.
        """
        if identifier is None and not self._streaming:
            identifier = BATCH_COMMIT_IDENTIFIER
        return self._writer.prepare_commit(identifier)

    def abort(self) -> None:
        """Remove the files written since the last `prepare_commit`."""
        self._writer.abort()

    def close(self) -> None:
        """Give buffers back; what was not prepared is removed."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()
        self.close()


@frozen(repr=False)
class TableCommit(_BuilderDisplay):
    """Commits messages of writers as snapshots."""

    engine: Engine = field(eq=False)
    table: TableDefinition
    commit_user: str
    overwrite: Mapping[str, object] | None = None
    dynamic_overwrite: bool = False
    ignore_empty: bool = True
    _safe: SafeSnapshot = field(factory=SafeSnapshot, init=False, eq=False, repr=False)

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self.table.identifier, given_arguments(commit_user=self.commit_user, overwrite=self.overwrite)

    def commit(
        self,
        messages: Sequence[CommitMessage],
        properties: Mapping[str, str] | None = None,
        *,
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        watermark: int | None = None,
    ) -> CommitResult:
        """Publish the messages; with an identifier of its own a commit of one user happens once.

        After a CommitConflict nothing was published and the files are still there: `abort` removes them. Where only
        the compaction was lost (see `CommitResult.lost_compaction`), its files are gone already. Where reads skip
        level 0 (deletion vectors, first-row), a lost compaction is planned again until reads show the rows.

        Raises
        ------
        CommitNotVisible
            The rows are committed, but their compaction failed too often.
        """
        request = CommitRequest(
            messages=tuple(messages),
            commit_user=self.commit_user,
            identifier=identifier,
            overwrite=self.overwrite,
            dynamic_overwrite=self.dynamic_overwrite,
            watermark=watermark,
            properties=dict(check_mapping(properties, "properties")),
            ignore_empty=self.ignore_empty,
        )
        done = commit_written(self.engine, self.table, request, self._safe)
        keep_up(self.engine, self.table, done.snapshot_ids, identifier)
        return done

    def filter_committed(self, identifiers: Sequence[int]) -> list[int]:
        """Those identifiers that this user has not committed yet.

        For the others callbacks are called again, and rows that reads do not show yet are compacted.
        """
        for identifier in identifiers:
            check_long(identifier, "commit identifier")
        left = [i for i in identifiers if not committed(self.engine, self.table, self.commit_user, i)]
        for identifier in identifiers:
            if identifier not in left:
                repeat_commit(self.engine, self.table, CommitRequest((), self.commit_user, identifier))
        return left

    def abort(self, messages: Sequence[CommitMessage], identifier: int = BATCH_COMMIT_IDENTIFIER) -> tuple[str, ...]:
        """Remove the files of messages that will never be committed; what a snapshot holds stays. Answers the paths."""
        return abort(self.engine, self.table, messages, self.commit_user, identifier)


@frozen(repr=False)
class BatchWriteBuilder(_BuilderDisplay):
    """One job, one commit."""

    engine: Engine = field(eq=False)
    table: TableDefinition
    commit_user: str
    overwrite_spec: Mapping[str, object] | None = None
    overwrites: bool = False

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        overwrite = (self.overwrite_spec or {}) if self.overwrites else None
        return self.table.identifier, given_arguments(commit_user=self.commit_user, overwrite=overwrite)

    def overwrite(self, static_partition: Mapping[str, object] | None = None) -> BatchWriteBuilder:
        """Replace what is there: these partitions, or (None) the partitions that are written."""
        return evolve(self, overwrite_spec=static_partition, overwrites=True)

    def new_write(self) -> TableWrite:
        """A writer, for this or another process."""
        return TableWrite(self.engine, self.table, self.commit_user, ignore_previous=self.overwrites)

    def new_commit(self) -> TableCommit:
        """The committer."""
        spec = self.overwrite_spec
        dynamic = self.overwrites and spec is None and self._dynamic()
        if self.overwrites and spec is None and not dynamic:
            spec = {}
        return TableCommit(self.engine, self.table, self.commit_user, spec, dynamic)

    def _dynamic(self) -> bool:
        return bool(self.table.schema.partition_keys) and self.table.options.dynamic_partition_overwrite


@frozen(repr=False)
class StreamWriteBuilder(_BuilderDisplay):
    """Many commits of one user, with rising identifiers; empty commits are made, so that progress is seen."""

    engine: Engine = field(eq=False)
    table: TableDefinition
    commit_user: str

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self.table.identifier, {"commit_user": self.commit_user}

    def new_write(self) -> TableWrite:
        """A writer that lives over many commits."""
        return TableWrite(self.engine, self.table, self.commit_user, streaming=True)

    def new_commit(self) -> StreamTableCommit:
        """The committer."""
        return StreamTableCommit(TableCommit(self.engine, self.table, self.commit_user, ignore_empty=False))


@frozen(repr=False)
class StreamTableCommit(_BuilderDisplay):
    """Commits with rising identifiers; what was committed before is skipped."""

    inner: TableCommit

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self.inner._describe()

    def commit(
        self,
        identifier: int,
        messages: Sequence[CommitMessage],
        watermark: int | None = None,
    ) -> CommitResult:
        """Publish the messages under this identifier."""
        if not 0 <= check_long(identifier, "commit identifier") < BATCH_COMMIT_IDENTIFIER:
            raise InvalidRequest(f"commit identifier {identifier} is out of range", subject="identifier")
        inner = self.inner
        if committed(inner.engine, inner.table, inner.commit_user, identifier):
            request = CommitRequest(tuple(messages), inner.commit_user, identifier)
            told = repeat_commit(inner.engine, inner.table, request)
            return CommitResult(already_committed=True, failed_callbacks=told)
        return inner.commit(messages, identifier=identifier, watermark=watermark)

    def filter_committed(self, identifiers: Sequence[int]) -> list[int]:
        """Those identifiers that this user has not committed yet."""
        return self.inner.filter_committed(identifiers)


def _partition_row(table: TableDefinition, partition: Mapping[str, object]) -> bytes:
    fields = table.schema.partition_fields
    values = parse_spec(partition, fields, table.options.partition_default_name)
    missing = [f.name for f in fields if f.name not in values]
    if missing:
        raise InvalidRequest(f"the partition lacks a value of {missing[0]!r}", subject=missing[0])
    return serialize([values[f.name] for f in fields], [f.type for f in fields])
