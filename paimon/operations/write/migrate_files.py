"""Make an append table of files that other systems wrote: the files are copied as they are, no row is decoded.

Invariant: the files at the source stay until the table is complete. Each copy has a new name, and statistics from its
footer.

Source: `HiveMigrator`, `FileMetaUtils`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import frozen

from paimon.domain.commit.message import CommitMessage, DataIncrement
from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound, Unsupported
from paimon.domain.maintenance.migration import (
    DescribedFile,
    Migration,
    SourceFile,
    parse_partition_directory,
    plan_migration,
    to_nullable,
)
from paimon.domain.manifest.entries import DataFileMeta, FileSource
from paimon.domain.partition.partition_text import parse_partition_spec
from paimon.domain.paths import check_segment, join_path
from paimon.domain.row.binary_row import serialize
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.stats.collect import StatsRules, to_value_stats
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.arrow import fields_from_arrow
from paimon.domain.types.data_types import DataField
from paimon.domain.undo import undo_on_failure
from paimon.operations.metadata.metadata_files import copy_stream, delete_files
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.ports.files import FileStatus
from paimon.ports.formats import FileInspection

FORMATS = ("parquet", "orc", "avro")


@frozen
class MigratedFile:
    """A file of the source; `target` is its copy, None if it has no rows or was not copied yet."""

    source: str
    rows: int
    size_bytes: int
    partition: str
    target: str | None = None


@frozen
class MigratedTable:
    """What a migration did, or would do; without a snapshot if no file has rows, and after a dry run."""

    snapshot_id: int | None = None
    files: tuple[MigratedFile, ...] = ()

    @classmethod
    def of(cls, migration: Migration) -> MigratedTable:
        """Return what a migration would copy."""
        files = (MigratedFile(d.file.path, d.row_count, d.file.size_bytes, d.file.text) for d in migration.files)
        return cls(None, tuple(files))


@frozen
class MigrationSource:
    """A directory of files, and the engine that reads them."""

    engine: Engine
    directory: str

    def plan(self, format_name: str | None, declared: Sequence[DataField]) -> Migration:
        """Describe the files below the directory; names that begin with ``_`` or ``.`` are left out.

        `format_name` None is the ending of the names. Raises `InvalidRequest` if the files differ, and `NotFound` if
        there are none.
        """
        found = list(_list_files(self.engine, self.directory, ()))
        if not found:
            hint = "check the path; names that begin with '_' or '.' are left out"
            raise NotFound("directory with data files", self.directory, hint=hint)
        name = _choose_format(found, format_name)
        described: list[DescribedFile] = []
        for description in self.engine.executor.map(partial(_describe_file, self.engine, name), found):
            described.append(description)
            self.engine.observer.progress("inspect files", len(described), len(found))
        return plan_migration(described, name, declared)

    def copy(self, context: TableContext, migration: Migration) -> tuple[list[CommitMessage], list[MigratedFile]]:
        """Copy the files into the directories of a new table, and return messages to commit, and the files.

        Nothing remains of a copy that fails. Raises `InvalidRequest` if the options make another table than one that
        appends without buckets.
        """
        if context.table.is_bucketed:
            raise InvalidRequest(
                "Files can only become an append table without buckets.",
                subject="bucket",
                hint="leave out the options 'bucket' and 'primary-key'; insert the rows for another table",
            )
        tasks = list(_name_copies(context, migration))
        copied: list[_Copied] = []
        # an executor may run ahead of the task that fails
        with undo_on_failure(lambda: delete_files(context.engine, [task.target for task in tasks])):
            for done in context.engine.executor.map(partial(_copy_file, context, self.engine, migration), tasks):
                copied.append(done)
                context.engine.observer.progress("copy files", len(copied), len(tasks))
        return _to_messages(context, copied), [c.file for c in copied]

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files that were copied."""
        delete_files(self.engine, paths)


@frozen
class _Copy:
    """A file to copy, the values of its partition columns, and the directory and name of its copy."""

    described: DescribedFile
    values: Mapping[str, Any]
    partition: bytes
    directory: str
    name: str

    @property
    def target(self) -> str:
        return join_path(self.directory, self.name)


@frozen
class _Copied:
    """A copy with its metadata."""

    file: MigratedFile
    place: _Copy
    meta: DataFileMeta


def _list_files(engine: Engine, directory: str, partition: tuple[tuple[str, str], ...]) -> Iterator[SourceFile]:
    for status in engine.files.list(directory):
        if status.name.startswith(("_", ".")):
            continue
        if status.is_directory:
            yield from _list_files(engine, status.path, (*partition, _parse_directory(status)))
        else:
            yield SourceFile(status.path, status.size, partition)


def _parse_directory(status: FileStatus) -> tuple[str, str]:
    pair = parse_partition_directory(status.name)
    if pair is None:
        raise InvalidRequest(
            f"Directory {status.path!r} is not named as a partition, such as day=2026-01-01.",
            subject=status.path,
            hint="move it away, or migrate it to another table",
        )
    return pair


def _choose_format(found: Sequence[SourceFile], given: str | None) -> str:
    name = found[0].path.rpartition(".")[2].lower() if given is None else given.lower()
    if name not in FORMATS:
        if given is not None:
            raise Unsupported(f"migration of files of format {given!r}", hint=f"use one of {', '.join(FORMATS)}")
        hint = f"name the format: one of {', '.join(FORMATS)}"
        raise InvalidRequest(
            f"The name of file {found[0].path!r} does not end in a format.", subject="format", hint=hint
        )
    return name


def _describe_file(engine: Engine, format_name: str, file: SourceFile) -> DescribedFile:
    try:
        with engine.files.open(file.path) as source:
            content = _inspection(engine, format_name).inspect(source, file.path)
    except CorruptTable as error:
        raise CorruptTable(error.path, error.reason, hint="repair the file, or move it elsewhere") from None
    try:
        columns = fields_from_arrow(content.schema)
    except InvalidRequest as error:
        raise InvalidRequest(f"File {file.path!r}: {error.message}", subject=error.subject, hint=error.hint) from None
    return DescribedFile(file, to_nullable(columns), content.row_count)


def _inspection(engine: Engine, format_name: str) -> FileInspection:
    found = engine.format(format_name)
    if not isinstance(found, FileInspection):
        raise Unsupported(f"migration of files by this adapter of format {format_name!r}", hint="use another engine")
    return found


def _name_copies(context: TableContext, migration: Migration) -> Iterator[_Copy]:
    prefix, fields = f"{context.options.data_file_prefix}{context.engine.ids.uuid()}", context.schema.partition_fields
    paths = BucketPaths.of(context.table)
    for number, described in enumerate(migration.files):
        values = parse_partition_spec(dict(described.file.partition), fields, context.options.partition_default_name)
        partition = serialize([values[f.name] for f in fields], [f.type for f in fields])
        name = check_segment(f"{prefix}-{number}.{migration.format_name}", "data file name")
        yield _Copy(described, values, partition, paths.directory(partition, 0), name)


def _copy_file(context: TableContext, source: Engine, migration: Migration, task: _Copy) -> _Copied:
    described, file = task.described, task.described.file
    size = copy_stream(source.files, file.path, context.files, task.target)
    copied = MigratedFile(file.path, described.row_count, size, file.text, task.target)
    return _Copied(copied, task, _build_metadata(context, migration, task, size))


def _build_metadata(context: TableContext, migration: Migration, task: _Copy, size: int) -> DataFileMeta:
    """Return the metadata of a copy; a partition column has its value as both bounds."""
    values, row_count = task.values, task.described.row_count
    stored = [f for f in context.schema.fields if f.name in migration.stored_names and f.name not in values]
    with context.files.open(task.target) as source:
        read = _inspection(context.engine, migration.format_name).read_statistics(source, task.target, stored)
    known = dict(zip((f.name for f in stored), read, strict=True))
    for column, value in values.items():
        known[column] = ColumnStats(value, value, row_count if value is None else 0)
    rules = StatsRules.of(context.options, 0, migration.format_name)
    stats, names = to_value_stats(context.schema.fields, [known[f.name] for f in context.schema.fields], rules)
    now = context.engine.clock.now_millis()
    return DataFileMeta(
        file_name=task.name,
        file_size=size,
        row_count=row_count,
        value_stats=stats,
        value_stats_cols=names,
        schema_id=context.schema.id,
        creation_time_millis=now + context.engine.clock.local_offset_millis(now),
        delete_row_count=0,
        file_source=FileSource.APPEND,
    )


def _to_messages(context: TableContext, copied: Sequence[_Copied]) -> list[CommitMessage]:
    groups: dict[bytes, list[_Copied]] = {}
    for one in copied:
        groups.setdefault(one.place.partition, []).append(one)
    return [
        CommitMessage(
            partition, 0, context.options.bucket, group[0].place.directory, DataIncrement([c.meta for c in group])
        )
        for partition, group in groups.items()
    ]
