"""Wrong catalogs, and wrong ways to publish a snapshot."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from paimon.adapters.catalogs.filesystem import FileSystemCatalogStore
from paimon.adapters.files.local import LocalFiles
from paimon.adapters.snapshots.commits import PutIfAbsentSnapshotCommit
from paimon.domain.errors import NotFound
from paimon.domain.snapshot.snapshot import snapshot_to_json
from paimon.ports.snapshots import PublishOutcome
from paimon.testing import contracts
from support.contract_mistakes.planting import plant

SNAPSHOTS = contracts.SnapshotCommitContract
Publish = PutIfAbsentSnapshotCommit


@plant(
    SNAPSHOTS,
    "test_an_existing_snapshot_does_not_change",
    "Make a snapshot visible, unless one with the same id exists.",
)
class PublishOver(Publish):
    def publish(self, paths: Any, snapshot: Any, base: Any) -> PublishOutcome:
        found = super().publish(paths, snapshot, base)
        self.files.replace(paths.snapshot(snapshot.id), snapshot_to_json(snapshot))
        return found


@plant(
    SNAPSHOTS,
    "test_one_of_concurrent_writers_wins",
    "of all writers that publish the same snapshot id at most one succeeds",
)
class PublishAfterCheck(Publish):
    def publish(self, paths: Any, snapshot: Any, base: Any) -> PublishOutcome:
        path = paths.snapshot(snapshot.id)
        if self.files.status(path) is not None:
            return PublishOutcome.LOST
        self.files.delete([path])
        return super().publish(paths, snapshot, base) and PublishOutcome.PUBLISHED


@plant(SNAPSHOTS, "test_a_repeated_publish_is_lost", "a second call with the same snapshot returns LOST")
class PublishTwice(Publish):
    def publish(self, paths: Any, snapshot: Any, base: Any) -> PublishOutcome:
        super().publish(paths, snapshot, base)
        return PublishOutcome.PUBLISHED


@plant(SNAPSHOTS, "test_a_published_snapshot_can_be_read", "The snapshot is visible and durable.")
class PublishAfterFirst(Publish):
    def publish(self, paths: Any, snapshot: Any, base: Any) -> PublishOutcome:
        return PublishOutcome.PUBLISHED if base is not None else super().publish(paths, snapshot, base)


@plant(SNAPSHOTS, "test_the_lock_is_released_after_an_error", "The lock saves lost races and guarantees nothing")
class LockThatSwallows(Publish):
    @contextmanager
    def lock(self, paths: Any) -> Iterator[None]:
        with suppress(ZeroDivisionError):
            yield


CATALOGS = contracts.CatalogStoreContract
Store = FileSystemCatalogStore


@plant(CATALOGS, "test_databases_are_created_and_dropped", "The database exists; it is unchanged.")
class CreateAgain(Store):
    def create_database(self, database: str, properties: Any = None) -> None:
        if database not in self.databases():
            super().create_database(database, properties)


@plant(CATALOGS, "test_a_table_exists_after_its_registration", "True as soon as `register_table` has returned")
class AnyDirectoryIsATable(Store):
    def tables(self, database: str) -> Sequence[str]:
        return [found.name for found in LocalFiles().list(self.database_location(database))]


@plant(CATALOGS, "test_a_dropped_table_is_gone", "Drop a table with all its files.")
class DropOfSchemaOnly(Store):
    def drop_table(self, database: str, table: str) -> None:
        LocalFiles().delete_directory(f"{self.table_location(database, table)}/schema")


@plant(CATALOGS, "test_a_dropped_table_is_gone", "There is no such table. A second drop therefore raises.")
class DropOfNothing(Store):
    def drop_table(self, database: str, table: str) -> None:
        if self.has_table(database, table):
            super().drop_table(database, table)


@plant(CATALOGS, "test_a_dropped_table_is_gone", "Drop a table with all its files.")
class DropOfNeighbours(Store):
    def drop_table(self, database: str, table: str) -> None:
        super().drop_table(database, table)
        for other in self.tables(database):
            super().drop_table(database, other)


@plant(CATALOGS, "test_a_refused_rename_changes_nothing", "rename_table")
class RenameOver(Store):
    def rename_table(self, database: str, table: str, new_database: str, new_table: str) -> None:
        if self.has_table(new_database, new_table):
            self.drop_table(new_database, new_table)
        super().rename_table(database, table, new_database, new_table)


@plant(CATALOGS, "test_a_renamed_table_has_its_files", "Give a table another name and move its directory.")
class RenameByCopy(Store):
    def rename_table(self, database: str, table: str, new_database: str, new_table: str) -> None:
        shutil.copytree(self.table_location(database, table), self.table_location(new_database, new_table))


@plant(CATALOGS, "test_locations_are_distinct", "without a slash at the end. The same names give the same path.")
class LocationWithSlash(Store):
    def table_location(self, database: str, table: str) -> str:
        return super().table_location(database, table) + "/"


@plant(CATALOGS, "test_missing_databases_have_no_tables", "The database; an unknown one has no tables.")
class TablesOfKnownDatabases(Store):
    def tables(self, database: str) -> Sequence[str]:
        if database not in self.databases():
            raise NotFound("database", database)
        return super().tables(database)
