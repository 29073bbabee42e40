"""The table that readers and writers work on, by the names of pypaimon.

Source: `pypaimon.table.table`, `pypaimon.table.file_store_table`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from functools import reduce
from operator import and_, or_
from typing import Any, Self

from attrs import evolve

import paimon
from paimon import col
from paimon.compat.catalog_values import Identifier
from paimon.compat.data_types import DataField
from paimon.compat.file_io import FileIO
from paimon.compat.managers import (
    BranchManager,
    ChangelogManager,
    ConsumerManager,
    FileSystemBranchManager,
    SnapshotManager,
    TagManager,
)
from paimon.compat.options import CoreOptions, Options
from paimon.compat.predicate import Predicate, to_paimon_predicate
from paimon.compat.refused import PeerClass, check_known_options, refuse
from paimon.compat.schema import TableSchema, from_paimon_fields, from_paimon_schema
from paimon.compat.schema_manager import SchemaManager
from paimon.domain.predicate.expression import Predicate as PaimonPredicate

_TIME_TRAVEL = frozenset(
    f"scan.{name}" for name in ("snapshot-id", "tag-name", "timestamp", "timestamp-millis", "version", "watermark")
)


class BucketMode(Enum):
    """How rows are assigned to buckets."""

    HASH_FIXED = auto()
    HASH_DYNAMIC = auto()
    CROSS_PARTITION = auto()
    BUCKET_UNAWARE = auto()
    POSTPONE_MODE = auto()


class Table(PeerClass, ABC):
    """The base of all tables."""

    @abstractmethod
    def new_read_builder(self) -> Any:
        """Return the builder of reads."""

    @abstractmethod
    def new_stream_read_builder(self) -> Any:
        """Return the builder of reads that follow new snapshots."""

    @abstractmethod
    def new_batch_write_builder(self) -> Any:
        """Return the builder of writes with one commit."""

    @abstractmethod
    def new_stream_write_builder(self) -> Any:
        """Return the builder of writes with many commits."""

    def new_vector_search_builder(self) -> Any:
        """Refuse to search vectors."""
        refuse("new_vector_search_builder", "read the rows and search them with a library for vectors")

    def new_batch_vector_search_builder(self) -> Any:
        """Refuse to search vectors."""
        refuse("new_batch_vector_search_builder", "read the rows and search them with a library for vectors")

    def new_full_text_search_builder(self) -> Any:
        """Refuse to search texts."""
        refuse("new_full_text_search_builder", "filter with PredicateBuilder.contains or like")

    def new_hybrid_search_builder(self) -> Any:
        """Refuse to search texts and vectors."""
        refuse("new_hybrid_search_builder", "read the rows and search them with a library")


class StoredTable(Table):
    """A table with its schema, options, snapshots and tags: what readers and writers need of a `FileStoreTable`."""

    def __init__(self, inner: paimon.Table, identifier: Identifier) -> None:
        self.inner = inner
        self.identifier = identifier

    @property
    def partition_keys_fields(self) -> list[DataField]:
        """The partition columns with their types."""
        return from_paimon_fields(self.inner.table_schema.partition_fields)

    @classmethod
    def from_path(cls, table_path: str, file_io_options: Mapping[str, Any] | None = None) -> Self:
        """Open the table at a path."""
        try:
            table = paimon.open_table(table_path, storage=file_io_options or None)
        except paimon.NotFound as error:
            raise ValueError(f"No schema found at path: {table_path}") from error
        return cls(table, Identifier("default", "table"))

    @property
    def file_io(self) -> FileIO:
        """The storage of the table."""
        return FileIO(self.inner.engine)

    @property
    def table_path(self) -> str:
        """The directory or URL of the table."""
        return self.inner.location

    @property
    def table_schema(self) -> TableSchema:
        """The schema, with the options of this handle."""
        return from_paimon_schema(self.inner.table_schema, self.inner.options)

    @property
    def options(self) -> CoreOptions:
        """The options of this handle."""
        return CoreOptions(Options(dict(self.inner.options)))

    @property
    def fields(self) -> list[DataField]:
        """The columns."""
        return from_paimon_fields(self.inner.table_schema.fields)

    @property
    def field_names(self) -> list[str]:
        """The names of the columns."""
        return list(self.inner.table_schema.names)

    @property
    def field_dict(self) -> dict[str, DataField]:
        """The columns by name."""
        return {column.name: column for column in self.fields}

    @property
    def primary_keys(self) -> list[str]:
        """The columns of the primary key."""
        return list(self.inner.primary_keys)

    @property
    def partition_keys(self) -> list[str]:
        """The partition columns."""
        return list(self.inner.partition_keys)

    @property
    def trimmed_primary_keys(self) -> list[str]:
        """The columns of the primary key without partition columns."""
        return list(self.inner.table_schema.trimmed_primary_keys)

    @property
    def is_primary_key_table(self) -> bool:
        """Whether the table has a primary key."""
        return bool(self.inner.primary_keys)

    @property
    def total_buckets(self) -> int:
        """The option `bucket`."""
        return int(self.options.bucket())

    def schema(self) -> TableSchema:
        """Return the schema."""
        return self.table_schema

    def comment(self) -> str | None:
        """Return the comment."""
        return self.inner.table_schema.comment

    def current_branch(self) -> str:
        """Return the branch of this handle."""
        return self.inner.options.get("branch") or self.identifier.get_branch_name_or_default()

    def bucket_mode(self) -> BucketMode:
        """Return how rows are assigned to buckets."""
        buckets, keys = self.total_buckets, self.primary_keys
        if buckets == -2:
            return BucketMode.POSTPONE_MODE
        if buckets != -1:
            return BucketMode.HASH_FIXED
        if not keys:
            return BucketMode.BUCKET_UNAWARE
        return BucketMode.HASH_DYNAMIC if set(self.partition_keys) <= set(keys) else BucketMode.CROSS_PARTITION

    def copy(self, options: Mapping[str, Any]) -> Self:
        """Return the same table with dynamic options; None removes an option.

        Options of time travel give it the schema of their snapshot, which it keeps when further options are set.
        """
        copied = self.copy_without_time_travel(options)
        if not _TIME_TRAVEL.isdisjoint(copied.inner.options):
            with suppress(paimon.PaimonError):  # the read raises it
                context = copied.inner.context
                schema = copied.inner.scan().pinned.table.schema
                copied.inner = evolve(copied.inner, context=context.at_schema(schema))
        return copied

    def copy_without_time_travel(self, options: Mapping[str, Any]) -> Self:
        """Return the same table with dynamic options, in the schema of this handle."""
        if options.get("bucket") is not None and int(options["bucket"]) != self.total_buckets:
            raise ValueError("Cannot change bucket number")
        check_known_options(options)
        inner, name = self.inner, self.identifier
        if "branch" in options:
            branch = BranchManager.normalize_branch(options["branch"])
            inner = evolve(inner, context=inner.context.at_branch(branch))
            name = Identifier.create(name.get_database_name(), name.get_table_name(), branch)
            options = {**options, "branch": branch}
        return type(self)(inner.with_options(options, allow_unknown_options=True), name)

    def open_writing(self) -> paimon.Table:
        """Return the table as pypaimon writes it: a commit is one snapshot, and nothing is compacted.

        Tables whose reads skip files that are not compacted are compacted all the same: their rows would not be
        returned. An option `write-only` of the table has priority.
        """
        options = self.options
        needs_compaction = (
            options.deletion_vectors_enabled()
            or options.merge_engine() == "first-row"
            or options.changelog_producer() in ("lookup", "full-compaction")
        )
        if needs_compaction or "write-only" in self.inner.options:
            return self.inner
        return self.inner.with_options({"write-only": "true"})

    @property
    def schema_manager(self) -> SchemaManager:
        """The versions of the schema."""
        return SchemaManager.of(self.inner)

    def snapshot_manager(self) -> SnapshotManager:
        """Return the snapshots."""
        return SnapshotManager.of(self.inner)

    def tag_manager(self) -> TagManager:
        """Return the tags."""
        return TagManager.of(self.inner)

    def branch_manager(self) -> BranchManager:
        """Return the branches."""
        return FileSystemBranchManager.of(self.inner)

    def changelog_manager(self) -> ChangelogManager:
        """Return the decoupled changelogs."""
        return ChangelogManager.of(self.inner)

    def consumer_manager(self) -> ConsumerManager:
        """Return the consumers."""
        return ConsumerManager.of(self.inner)

    def create_tag(
        self,
        tag_name: str,
        snapshot_id: int | None = None,
        ignore_if_exists: bool = False,
        time_retained: str | None = None,
    ) -> None:
        """Create a tag."""
        self.tag_manager().create(tag_name, snapshot_id, ignore_if_exists, time_retained)

    def delete_tag(self, tag_name: str) -> bool:
        """Delete a tag; return whether there was one."""
        return self.tag_manager().delete_tag(tag_name)

    def list_tags(self) -> list[str]:
        """Return the names of the tags."""
        return self.tag_manager().list_tags()

    def rename_tag(self, old_name: str, new_name: str) -> None:
        """Give a tag another name."""
        self.tag_manager().rename_tag(old_name, new_name)

    def replace_tag(self, tag_name: str, snapshot_id: int | None = None, time_retained: str | None = None) -> None:
        """Make a tag name another snapshot."""
        self.tag_manager().replace(tag_name, snapshot_id, time_retained)

    def rename_branch(self, from_branch: str, to_branch: str) -> None:
        """Give a branch another name."""
        self.branch_manager().rename_branch(from_branch, to_branch)

    def rollback_to(self, target: int | str) -> None:
        """Roll back to a snapshot (int) or a tag (str)."""
        if isinstance(target, bool) or not isinstance(target, int | str):
            raise ValueError(f"Unsupported rollback target type: {type(target)}")
        try:
            if isinstance(target, int):
                self.inner.maintain.rollback_to(snapshot=target)
            else:
                self.inner.maintain.rollback_to(tag=target)
        except paimon.NotFound as error:
            kind = "snapshot" if isinstance(target, int) else "tag"
            raise ValueError(f"Rollback {kind} '{target}' doesn't exist.") from error

    def rollback_to_timestamp(self, timestamp_millis: int) -> None:
        """Roll back to the last snapshot at or before a time in epoch milliseconds."""
        found = self.snapshot_manager().earlier_or_equal_time_mills(timestamp_millis)
        if found is None:
            raise ValueError(f"No snapshot found with timestamp earlier than or equal to {timestamp_millis}ms.")
        self.rollback_to(found.id)

    def create_global_index(
        self,
        index_column: str | Sequence[str],
        index_type: str = "btree",
        partition_filter: Predicate | None = None,
        partitions: Partitions | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> int:
        """Index a column of the rows that have no index of it yet; return the number of new index files."""
        selected = select_partitions(partition_filter, partitions)
        if options:
            check_known_options(options)
        table = self.inner.with_options(options, allow_unknown_options=True) if options else self.inner
        return table.maintain.create_global_index(get_index_column(index_column), index_type, selected).files

    def drop_global_index(
        self,
        index_column: str | Sequence[str],
        index_type: str = "btree",
        partition_filter: Predicate | None = None,
        partitions: Partitions | None = None,
        dry_run: bool = False,
    ) -> int:
        """Remove the indexes of a column; return the number of their files, also in a dry run."""
        selected = select_partitions(partition_filter, partitions)
        dropped = self.inner.maintain.drop_global_index(
            get_index_column(index_column), index_type, selected, dry_run=dry_run
        )
        return dropped.files


Partitions = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""One partition or several, each by values of partition columns."""


def get_index_column(given: str | Sequence[str]) -> str:
    """Return the column of an index, which has one column."""
    names = given.split(",") if isinstance(given, str) else given
    columns = [name for name in (str(part).strip() for part in names) if name]
    if len(columns) != 1:
        raise ValueError(f"A global index has one column, and not {columns}.")
    return columns[0]


def select_partitions(partition_filter: Predicate | None, partitions: Partitions | None) -> PaimonPredicate | None:
    """Return the condition that selects partitions; None for all."""
    if partition_filter is not None:
        return to_paimon_predicate(partition_filter)
    specs = [partitions] if isinstance(partitions, Mapping) else [*(partitions or ())]
    found = [reduce(and_, (_equals(name, value) for name, value in spec.items())) for spec in specs if spec]
    return reduce(or_, found) if found else None


def _equals(name: str, value: Any) -> PaimonPredicate:
    return col(name).is_null() if value is None else col(name) == value
