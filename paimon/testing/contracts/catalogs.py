"""The contract of CatalogStore as tests, for every catalog of databases and tables.

An adapter that keeps the contract of `paimon.ports.catalogs` passes. Derive a class from `CatalogStoreContract`, whose
`make_store` returns the adapter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, Unsupported
from paimon.ports.catalogs import CatalogStore
from paimon.ports.files import FileIO
from paimon.testing.contracts.files import expect_error

_CALLERS = 4
_PROPERTIES = {"bucket": "2", "primary-key": "id"}


class CatalogStoreContract(ABC):
    """The tests of the port. A subclass implements `make_store`."""

    @abstractmethod
    def make_store(self) -> tuple[CatalogStore, FileIO]:
        """Return a new catalog without databases, and the storage of its warehouse."""

    def test_databases_are_created_and_dropped(self) -> None:
        """Each database is listed once until it is dropped. Repeated calls raise."""
        store, _ = self.make_store()
        assert list(store.databases()) == []
        for database in ("shop", "old stock", "größe"):
            store.create_database(database)
        assert sorted(store.databases()) == ["größe", "old stock", "shop"]
        _expect(AlreadyExists, "database", lambda: store.create_database("shop"))
        assert sorted(store.databases()) == ["größe", "old stock", "shop"]
        store.drop_database("shop")
        assert sorted(store.databases()) == ["größe", "old stock"]
        _expect(NotFound, "database", lambda: store.drop_database("shop"))
        store.create_database("shop")
        assert list(store.tables("shop")) == []

    def test_properties_of_a_database_are_stored_or_refused(self) -> None:
        """A catalog that stores properties returns what was set; another one refuses them and changes nothing."""
        store, _ = self.make_store()
        _expect(NotFound, "database", lambda: store.database_properties("shop"))
        _expect(NotFound, "database", lambda: store.alter_database("shop", {"a": "1"}, ()))
        try:
            store.create_database("shop", {"owner": "ann", "stage": "test"})
        except Unsupported:
            assert list(store.databases()) == []
            store.create_database("shop")
            expect_error(Unsupported, lambda: store.alter_database("shop", {"a": "1"}, ()))
            assert set(store.database_properties("shop")) == {"location"}
            return
        store.alter_database("shop", {"owner": "bob", "tier": "1"}, ["stage", "unknown"])
        found = dict(store.database_properties("shop"))
        assert found.pop("location")
        assert found == {"owner": "bob", "tier": "1"}
        with suppress(InvalidRequest):  # a catalog may have a limit, and then changes nothing
            store.alter_database("shop", {"tier": "2", "long": "x" * 2_000}, ())
        found = dict(store.database_properties("shop"))
        assert (found["tier"], found.get("long")) in [("1", None), ("2", "x" * 2_000)]
        store.drop_database("shop")
        store.create_database("shop")
        assert set(store.database_properties("shop")) == {"location"}

    def test_one_of_concurrent_creates_succeeds(self) -> None:
        """At least one caller creates the database, and all others get AlreadyExists."""
        store, _ = self.make_store()

        def create(_: int) -> bool:
            """Return whether this caller created the database."""
            try:
                store.create_database("shop")
            except AlreadyExists:
                return False
            return True

        with ThreadPoolExecutor(_CALLERS) as pool:
            assert any(list(pool.map(create, range(_CALLERS))))
        assert list(store.databases()) == ["shop"]

    def test_a_table_exists_after_its_registration(self) -> None:
        """Neither a directory without a schema nor a location makes a table."""
        store, files = self.make_store()
        store.create_database("shop")
        location = store.table_location("shop", "orders")
        assert not store.has_table("shop", "orders")
        files.replace(f"{store.table_location('shop', 'no_table')}/file", b"x")
        assert list(store.tables("shop")) == []
        _create_table(store, files, "shop", "orders")
        assert store.has_table("shop", "orders")
        assert list(store.tables("shop")) == ["orders"]
        assert store.table_location("shop", "orders") == location

    def test_locations_are_distinct_and_below_the_warehouse(self) -> None:
        """A location does not depend on the existence of its table or database."""
        store, _ = self.make_store()
        store.create_database("a")
        names = [("a", "t"), ("a", "u"), ("b", "t")]
        locations = [store.table_location(*name) for name in names]
        assert len(set(locations)) == len(names)
        assert all(location.startswith(store.warehouse + "/") for location in locations)
        assert not any(location.endswith("/") for location in locations)

    def test_missing_databases_have_no_tables(self) -> None:
        """A query of a missing database or table is not an error."""
        store, _ = self.make_store()
        assert list(store.tables("nope")) == []
        assert not store.has_table("nope", "t")

    def test_a_second_registration_changes_nothing(self) -> None:
        """The catalog refuses it with AlreadyExists, or ignores it."""
        store, files = self.make_store()
        store.create_database("shop")
        _create_table(store, files, "shop", "orders")
        try:
            store.register_table("shop", "orders", {})
        except AlreadyExists as error:
            assert error.kind == "table"
        assert list(store.tables("shop")) == ["orders"]

    def test_an_update_of_properties_is_idempotent(self) -> None:
        """An unknown table is ignored, and does not become visible."""
        store, files = self.make_store()
        store.create_database("shop")
        _create_table(store, files, "shop", "orders")
        for _ in range(2):
            store.update_table("shop", "orders", {"bucket": "4"})
            store.update_table("shop", "nope", {"bucket": "4"})
        assert list(store.tables("shop")) == ["orders"]

    def test_a_dropped_table_is_gone_with_its_files(self) -> None:
        """Other tables stay, and the name can be used again."""
        store, files = self.make_store()
        store.create_database("shop")
        for table in ("orders", "items"):
            _create_table(store, files, "shop", table)
        location = store.table_location("shop", "orders")
        store.drop_table("shop", "orders")
        assert files.status(location) is None
        assert not store.has_table("shop", "orders")
        assert list(store.tables("shop")) == ["items"]
        _expect(NotFound, "table", lambda: store.drop_table("shop", "orders"))
        _create_table(store, files, "shop", "orders")
        assert sorted(store.tables("shop")) == ["items", "orders"]

    def test_a_dropped_database_is_gone_with_its_tables(self) -> None:
        """A new database of the same name is empty."""
        store, files = self.make_store()
        for database in ("shop", "old"):
            store.create_database(database)
            _create_table(store, files, database, "orders")
        location = store.table_location("shop", "orders")
        store.drop_database("shop")
        assert files.status(location) is None
        assert list(store.databases()) == ["old"]
        assert list(store.tables("old")) == ["orders"]
        store.create_database("shop")
        assert list(store.tables("shop")) == []
        assert not store.has_table("shop", "orders")

    def test_a_renamed_table_has_its_files(self) -> None:
        """The old name is gone, also within one database."""
        store, files = self.make_store()
        for database in ("shop", "old"):
            store.create_database(database)
        _create_table(store, files, "shop", "orders")
        before = store.table_location("shop", "orders")
        store.rename_table("shop", "orders", "old", "orders_2025")
        assert (list(store.tables("shop")), list(store.tables("old"))) == ([], ["orders_2025"])
        store.rename_table("old", "orders_2025", "old", "orders")
        after = store.table_location("old", "orders")
        assert files.read(f"{after}/bucket-0/data-1.parquet") == b"shop.orders"
        assert files.status(before) is None
        assert not store.has_table("shop", "orders")
        _create_table(store, files, "shop", "orders")
        assert files.read(f"{after}/bucket-0/data-1.parquet") == b"shop.orders"

    def test_a_refused_rename_changes_nothing(self) -> None:
        """The target exists, or the source or the new database does not."""
        store, files = self.make_store()
        store.create_database("shop")
        for table in ("a", "b"):
            _create_table(store, files, "shop", table)
        _expect(AlreadyExists, "table", lambda: store.rename_table("shop", "a", "shop", "b"))
        _expect(NotFound, "table", lambda: store.rename_table("shop", "nope", "shop", "c"))
        _expect(NotFound, "database", lambda: store.rename_table("shop", "a", "nope", "c"))
        assert sorted(store.tables("shop")) == ["a", "b"]
        for table in ("a", "b"):
            location = store.table_location("shop", table)
            assert files.read(f"{location}/bucket-0/data-1.parquet") == f"shop.{table}".encode()


def _create_table(store: CatalogStore, files: FileIO, database: str, table: str) -> None:
    """Write the files of a table, the schema file among them, then register it."""
    location = store.table_location(database, table)
    for name in ("bucket-0/data-1.parquet", "snapshot/snapshot-1", "schema/schema-0"):
        files.replace(f"{location}/{name}", f"{database}.{table}".encode())
    store.register_table(database, table, _PROPERTIES)


def _expect(kind: type[AlreadyExists | NotFound], what: str, call: Callable[[], object]) -> None:
    """Check that a call raises this error about an object of this kind."""
    error = expect_error(kind, call)
    assert isinstance(error, AlreadyExists | NotFound)
    assert error.kind == what
