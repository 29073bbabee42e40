"""The contract of CatalogStore on every catalog; PostgreSQL has its own class in `test_jdbc_catalog`."""

from __future__ import annotations

import os
import tempfile
import uuid

from paimon.adapters.catalogs.filesystem import FileSystemCatalogStore
from paimon.adapters.catalogs.jdbc import JdbcCatalogStore, jdbc_store
from paimon.adapters.catalogs.locking import Database
from paimon.adapters.files.fsspec_files import FsspecFiles
from paimon.adapters.files.local import LocalFiles
from paimon.ports.catalogs import CatalogStore
from paimon.ports.files import FileIO
from paimon.testing.contracts import CatalogStoreContract
from paimon.testing.memory_files import MemoryFiles


def new_directory() -> str:
    return os.path.join(tempfile.mkdtemp(), "lake")


class TestLocalDirectories(CatalogStoreContract):
    def make_store(self) -> tuple[CatalogStore, FileIO]:
        files = LocalFiles()
        return FileSystemCatalogStore(files, new_directory()), files


class TestMemoryWithoutDirectories(CatalogStoreContract):
    def make_store(self) -> tuple[CatalogStore, FileIO]:
        files = MemoryFiles()
        return FileSystemCatalogStore(files, "/lake"), files


class TestFsspecDirectories(CatalogStoreContract):
    def make_store(self) -> tuple[CatalogStore, FileIO]:
        warehouse = f"memory://{uuid.uuid4()}/lake"
        files = FsspecFiles(warehouse)
        return FileSystemCatalogStore(files, warehouse), files


class TestEmbeddedDatabase(CatalogStoreContract):
    def make_store(self) -> tuple[CatalogStore, FileIO]:
        files = LocalFiles()
        return jdbc_store(files, new_directory(), {}), files


class TestDatabaseOfAStore(CatalogStoreContract):
    """The rows are in SQLite, the files in a storage without directories. Properties are not copied."""

    def make_store(self) -> tuple[CatalogStore, FileIO]:
        files = MemoryFiles()
        database = Database(f"sqlite:///{tempfile.mkdtemp()}/catalog.sqlite")
        return JdbcCatalogStore(files, "/lake", database, sync_properties=False), files
