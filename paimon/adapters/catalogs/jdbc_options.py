"""A JDBC catalog from its options, which are Java's.

Law: the same options make the same catalog in Java and here; an embedded database needs none of them. Source:
`CatalogOptions`, `JdbcCatalogFactory`.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon.adapters.catalogs.database import Database
from paimon.adapters.catalogs.jdbc import JdbcCatalogStore
from paimon.adapters.catalogs.locking import CatalogLock, LockedFiles
from paimon.domain.errors import InvalidRequest
from paimon.domain.options.parse import parse_bool, parse_duration_millis
from paimon.domain.paths import join
from paimon.ports.files import FileIO

_URI = "uri"
_KEY = "catalog-key"
_TIMEOUT = "lock-acquire-timeout"
_LONGEST_WAIT = "lock-check-max-sleep"
_PROPERTIES = "sync-all-properties"
_EMBEDDED = "paimon-catalog.sqlite"


def jdbc_store(files: FileIO, warehouse: str, options: Mapping[str, str]) -> JdbcCatalogStore:
    """The catalog's databases and tables."""
    keeps = parse_bool(options.get(_PROPERTIES, "true"), _PROPERTIES)
    return JdbcCatalogStore(files, warehouse, _database(files, warehouse, options), _key(options), keeps)


def locked_files(files: FileIO, warehouse: str, options: Mapping[str, str]) -> LockedFiles:
    """Files that are created under the catalog's lock."""
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
            hint = "give uri, such as postgresql://host/database; local warehouses alone have an embedded database"
            raise InvalidRequest(f"the JDBC catalog of {warehouse} needs a database", subject=_URI, hint=hint)
        if files.status(warehouse) is None:
            files.replace(join(warehouse, _EMBEDDED), b"")
        uri = f"sqlite:///{join(warehouse, _EMBEDDED)}"
    return Database(uri, options.get("jdbc.user"), options.get("jdbc.password"))
