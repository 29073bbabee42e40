"""Create a JDBC catalog from Java's catalog options.

Invariant: the same options give the same catalog in Java and here. A local warehouse needs none, because it has an
embedded SQLite database. Source: `CatalogOptions`, `JdbcCatalogFactory`.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon.adapters.catalogs.database import Database
from paimon.adapters.catalogs.jdbc import JdbcCatalogStore
from paimon.adapters.catalogs.locking import CatalogLock, LockedFiles
from paimon.domain.errors import InvalidRequest
from paimon.domain.options.parse import parse_bool, parse_duration_millis
from paimon.domain.paths import join_path
from paimon.ports.files import FileIO

_URI = "uri"
_KEY = "catalog-key"
_TIMEOUT = "lock-acquire-timeout"
_LONGEST_WAIT = "lock-check-max-sleep"
_PROPERTIES = "sync-all-properties"
_EMBEDDED = "paimon-catalog.sqlite"


def jdbc_store(files: FileIO, warehouse: str, options: Mapping[str, str]) -> JdbcCatalogStore:
    """Create the store of the databases and tables from checked catalog options, without a connection yet."""
    sync_properties = parse_bool(options.get(_PROPERTIES, "true"), _PROPERTIES)
    return JdbcCatalogStore(files, warehouse, _database(files, warehouse, options), _key(options), sync_properties)


def locked_files(files: FileIO, warehouse: str, options: Mapping[str, str]) -> LockedFiles:
    """Wrap the storage so that files are created under the lock of the catalog. No connection is opened yet."""
    timeout = parse_duration_millis(options.get(_TIMEOUT, "8 min"), _TIMEOUT)
    longest = parse_duration_millis(options.get(_LONGEST_WAIT, "8 s"), _LONGEST_WAIT)
    lock = CatalogLock(_database(files, warehouse, options), timeout, longest)
    return LockedFiles(files, lock, warehouse, _key(options))


def _key(options: Mapping[str, str]) -> str:
    return options.get(_KEY, "jdbc")


def _database(files: FileIO, warehouse: str, options: Mapping[str, str]) -> Database:
    uri = options.get(_URI)
    if uri is None:
        if "://" in warehouse:
            hint = "set it, for example to postgresql://host/database; only local warehouses have an embedded database"
            raise InvalidRequest(f"JDBC catalog of {warehouse!r} needs the option 'uri'", subject=_URI, hint=hint)
        if files.status(warehouse) is None:
            files.replace(join_path(warehouse, _EMBEDDED), b"")
        uri = f"sqlite:///{join_path(warehouse, _EMBEDDED)}"
    return Database(uri, options.get("jdbc.user"), options.get("jdbc.password"))
