"""Catalogs by the names of pypaimon.

Source: `pypaimon.catalog`.
"""

from __future__ import annotations

import re
import sqlite3
import warnings
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import translate
from typing import Any, Self

from attrs import define

import paimon
from paimon.compat.catalog_values import (
    BranchNotExistException,
    CatalogException,
    Database,
    DatabaseAlreadyExistException,
    GetTagResponse,
    Identifier,
    PagedList,
    Partition,
    TableNotExistException,
    TableSnapshot,
    TagNotExistException,
    catalog_errors,
    cut_page,
    to_identifier,
    to_iso_duration,
    to_partition,
)
from paimon.compat.data_types import to_paimon_field
from paimon.compat.refused import PeerClass, check_known_options, refuse, report_unknown
from paimon.compat.schema import Schema, SchemaChange, TableSchema, from_paimon_schema
from paimon.compat.schema_manager import add_peer_words, change_schema
from paimon.compat.snapshot import from_paimon_snapshot, from_paimon_tag
from paimon.compat.system_tables import SystemTable, open_system_table
from paimon.compat.table import FileStoreTable
from paimon.domain.errors import did_you_mean
from paimon.domain.paths import is_within
from paimon.domain.secrets import has_password
from paimon.engines import open_warehouse

_ALTER_ERRORS = (
    *(CatalogException, paimon.PaimonError, ValueError, TypeError, LookupError),
    *(AttributeError, RuntimeError, OSError),
)
"""What a change of a table may raise: errors of the catalog, and those of wrong arguments."""
_METASTORE = "metastore"
_JDBC = ("uri", "catalog-key", "jdbc.user", "jdbc.password", "lock-acquire-timeout", "lock-check-max-sleep")
_OWN = ("memory-budget", "threads", "sync-all-properties")
_PREFIXES = ("fs.s3.", "fs.oss.", "fs.gs.", "fs.azure.", "s3.", "oss.", "gcs.", "gs.", "azure.")
_STORAGE = {
    "accesskeyid": "access_key_id",
    "access-key": "access_key_id",
    "access.key": "access_key_id",
    "accesskeysecret": "secret_access_key",
    "secret-key": "secret_access_key",
    "secret.key": "secret_access_key",
    "securitytoken": "session_token",
    "session-token": "session_token",
    "session.token": "session_token",
    "endpoint": "endpoint",
    "region": "region",
    "path-style-access": "path.style.access",
    "path.style.access": "path.style.access",
}


def to_connect_arguments(options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the warehouse and the named arguments of `paimon.connect`."""
    metastore = options.get(_METASTORE, "filesystem")
    if metastore == "rest":
        refuse("metastore=rest", "open the warehouse with metastore=filesystem or metastore=jdbc")
    if metastore not in ("filesystem", "jdbc"):
        raise ValueError(f"Unknown catalog identifier: {metastore}. Known are filesystem and jdbc.")
    if options.get("warehouse") is None:
        raise ValueError("Paimon 'warehouse' path must be set")
    arguments: dict[str, Any] = {} if metastore == "filesystem" else {_METASTORE: metastore}
    storage: dict[str, Any] = {}
    for key, value in options.items():
        if key in (_METASTORE, "warehouse"):
            continue
        if key.startswith("table-default.") or key in _OWN or (metastore == "jdbc" and key in _JDBC):
            arguments[key] = value
        elif key.startswith(_PREFIXES):
            storage[_to_storage_name(key)] = value
        else:
            hint = did_you_mean(key, ["warehouse", _METASTORE, *_JDBC, *_OWN, "s3.endpoint", "table-default.X"])
            report_unknown(f"Catalog option {key!r}", hint)
    return str(options["warehouse"]), arguments | ({"storage": storage} if storage else {})


def _to_storage_name(key: str) -> str:
    prefix = next(prefix for prefix in _PREFIXES if key.startswith(prefix))
    name = key.removeprefix(prefix)
    return _STORAGE.get(name.lower(), name)


class PropertyChange:
    """The base of all changes, with functions that make them."""

    @staticmethod
    def set_property(property: str, value: str) -> SetProperty:
        """Return the change that sets a property."""
        return SetProperty(property, value)

    @staticmethod
    def remove_property(property: str) -> RemoveProperty:
        """Return the change that removes a property."""
        return RemoveProperty(property)

    @staticmethod
    def get_set_properties_to_remove_keys(
        changes: Iterable[PropertyChange],
    ) -> tuple[dict[str, str], set[str]]:
        """Return the properties to set, and the names of those to remove."""
        listed = list(changes)
        values = {change.property: change.value for change in listed if isinstance(change, SetProperty)}
        return values, {change.property for change in listed if isinstance(change, RemoveProperty)}


@define
class SetProperty(PropertyChange):
    """Set a property."""

    property: str
    value: str


@define
class RemoveProperty(PropertyChange):
    """Remove a property."""

    property: str


Name = str | Identifier


class Catalog(PeerClass):
    """The databases and tables of a warehouse; made by `CatalogFactory.create`."""

    DB_SUFFIX = ".db"
    DEFAULT_DATABASE = "default"
    SYSTEM_DATABASE_NAME = "sys"
    DB_LOCATION_PROP = "location"
    COMMENT_PROP = "comment"
    OWNER_PROP = "owner"
    _has_properties = False

    def __init__(self, inner: paimon.Catalog, arguments: Mapping[str, Any] | None = None) -> None:
        self.inner = inner
        self._arguments = arguments

    @property
    def warehouse(self) -> str:
        """The root of the warehouse."""
        return self.inner.warehouse

    def list_databases(self) -> list[str]:
        """Return the names of the databases, sorted."""
        try:
            return self.inner.databases()
        except paimon.NotFound:
            return []

    def get_database(self, name: str) -> Database:
        """Return a database."""
        with catalog_errors():
            properties = dict(self.inner.database_properties(name))
        if not self._has_properties:
            properties.pop(self.DB_LOCATION_PROP, None)
        return Database(name, properties, properties.get(self.COMMENT_PROP))

    def create_database(
        self, name: str, ignore_if_exists: bool = False, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a database."""
        if name in self.list_databases():
            if not ignore_if_exists:
                raise DatabaseAlreadyExistException(name)
            return
        if properties and self.DB_LOCATION_PROP in properties:
            raise ValueError("Cannot specify location for a database when using fileSystem catalog.")
        with catalog_errors():
            self.inner.create_database(name, properties=properties, exist_ok=ignore_if_exists)

    def drop_database(self, name: str, ignore_if_not_exists: bool = False, cascade: bool = False) -> None:
        """Delete a database."""
        with catalog_errors():
            self.inner.drop_database(name, cascade=cascade, missing_ok=ignore_if_not_exists)

    def alter_database(self, name: str, changes: Sequence[PropertyChange]) -> None:
        """Change the properties of a database, which only a JDBC catalog stores."""
        values, removed = PropertyChange.get_set_properties_to_remove_keys(changes)
        with catalog_errors():
            self.inner.alter_database(name, values, remove=sorted(removed))

    def list_tables(self, database_name: str) -> list[str]:
        """Return the names of the tables of a database, sorted."""
        self.get_database(database_name)
        with catalog_errors():
            return self.inner.tables(database_name)

    def get_table(self, identifier: Name) -> Any:
        """Open a table, a branch of it, or a system table."""
        name = to_identifier(identifier)
        self._check_branch(name)
        with catalog_errors(name):
            if name.is_system_table():
                return self._open_system_table(name)
            return FileStoreTable(self._open_table(name), name)

    def _open_table(self, name: Identifier) -> paimon.Table:
        """Open a table; its external paths are allowed, as in pypaimon, from then on for all tables of the catalog."""
        table = self.inner.table(name.get_full_name())
        known = self.inner.engine.allowed_roots
        named = [r for r in table.context.options.data_file_external_paths if ":" in r and not has_password(r)]
        roots = [root for root in named if not is_within(root, known)]
        if roots and self._arguments is not None:
            self.inner = open_warehouse(self.inner.warehouse, {**self._arguments, "allowed_roots": [*known, *roots]})
            table = self.inner.table(name.get_full_name())
        return table

    def _open_system_table(self, name: Identifier) -> SystemTable:
        try:
            self._open_table(Identifier.create(name.database, name.get_table_name()))
            inner = self.inner.system_table(name.get_full_name())
        except paimon.InvalidRequest as error:
            raise TableNotExistException(name) from error
        base = Identifier.create(name.database, name.get_table_name(), name.get_branch_name())
        return open_system_table(inner, name, FileStoreTable(paimon.Table(inner.context), base))

    def _check_branch(self, name: Identifier) -> None:
        branch = name.get_branch_name()
        if branch is None or branch == "main":
            return
        with catalog_errors(name):
            table = self.inner.table(f"{name.database}.{name.get_table_name()}")
        if branch not in table.branches:
            raise TableNotExistException(name)

    def create_table(self, identifier: Name, schema: Schema, ignore_if_exists: bool = False) -> None:
        """Create a table."""
        name = to_identifier(identifier)
        kind = schema.options.get("type", "table")
        if kind != "table":
            raise ValueError(f"Table Type: {kind} cannot be created; leave out the option 'type'.")
        check_known_options(schema.options)
        with catalog_errors(name):
            self.inner.create_table(
                name.get_full_name(),
                [to_paimon_field(column) for column in schema.fields],
                primary_keys=schema.primary_keys,
                partition_keys=schema.partition_keys,
                options=add_bucket_key(schema),
                comment=schema.comment,
                exist_ok=ignore_if_exists,
                allow_unknown_options=True,
            )

    def drop_table(self, identifier: Name, ignore_if_not_exists: bool = False) -> None:
        """Delete a table."""
        name = to_identifier(identifier)
        with catalog_errors(name):
            self.inner.drop_table(name.get_full_name(), missing_ok=ignore_if_not_exists)

    def rename_table(self, source_identifier: Name, target_identifier: Name) -> None:
        """Give a table another name."""
        source, target = to_identifier(source_identifier), to_identifier(target_identifier)
        self.get_table(source)
        with catalog_errors(target):
            self.inner.rename_table(source.get_full_name(), target.get_full_name())

    def alter_table(
        self, identifier: Name, changes: Sequence[SchemaChange], ignore_if_not_exists: bool = False
    ) -> None:
        """Change the schema of a table."""
        name = to_identifier(identifier)
        try:
            table = self.get_table(name)
        except TableNotExistException:
            if ignore_if_not_exists:
                return
            raise
        try:
            with catalog_errors():
                change_schema(table.inner, changes)
        except _ALTER_ERRORS as error:
            paths = [".".join(names) for change in changes if len(names := getattr(change, "field_names", [])) > 1]
            where = f" (in {', '.join(paths)})" if paths else ""
            words = add_peer_words(str(error))
            raise RuntimeError(f"Failed to alter table {name.get_full_name()}{where}: {words}") from error

    def get_table_schema(self, identifier: Name) -> TableSchema:
        """Return the newest schema of a table."""
        return from_paimon_schema(self.get_table(identifier).inner.table_schema)

    def get_database_path(self, name: str) -> str:
        """Return the directory of a database."""
        return f"{self.inner.warehouse}/{name}{self.DB_SUFFIX}"

    def get_table_path(self, identifier: Name) -> str:
        """Return the directory of a table."""
        name = to_identifier(identifier)
        return f"{self.get_database_path(name.database)}/{name.get_table_name()}"

    def supports_version_management(self) -> bool:
        """Return False: snapshots are files of the table."""
        return False

    def load_snapshot(self, identifier: Name) -> TableSnapshot | None:
        """Return the latest snapshot of a table; None for a table without one."""
        found = self.get_table(identifier).inner.snapshot()
        if found is None:
            return None
        return TableSnapshot(from_paimon_snapshot(found), record_count=found.total_record_count or 0)

    def rollback_to(self, identifier: Name, instant: Any, from_snapshot: int | None = None) -> None:
        """Roll a table back to a snapshot or a tag."""
        table = self.get_table(identifier)
        latest = table.inner.snapshot()
        if from_snapshot is not None and (latest is None or latest.id != from_snapshot):
            raise ValueError(f"Latest snapshot is not {from_snapshot}.")
        table.rollback_to(instant.value)

    def drop_partitions(self, identifier: Name, partitions: Sequence[Mapping[str, str]]) -> None:
        """Delete the rows of partitions."""
        self.get_table(identifier).inner.drop_partitions(*partitions)

    def create_partitions(
        self, identifier: Name, partitions: Sequence[Mapping[str, str]], ignore_if_exists: bool = True
    ) -> None:
        """Refuse to register empty partitions."""
        refuse("create_partitions", "write rows: a partition exists when it has rows")

    def list_partitions_paged(
        self,
        identifier: Name,
        max_results: int | None = None,
        page_token: str | None = None,
        partition_name_pattern: str | None = None,
    ) -> PagedList[Partition]:
        """Return the partitions of a table in pages."""
        rows = self.get_table(identifier).inner.system_table("partitions").scan().to_arrow().to_pylist()
        named = {row["partition"]: to_partition(row) for row in rows}
        names = sorted(named)
        if partition_name_pattern is not None:
            matches = re.compile(translate(partition_name_pattern.replace("%", "*")))
            names = [name for name in names if matches.match(name.replace("/", ","))]
        page, token = cut_page(names, max_results, page_token)
        return PagedList([named[name] for name in page], token)

    def create_tag(
        self,
        identifier: Name,
        tag_name: str,
        snapshot_id: int | None = None,
        time_retained: str | None = None,
        ignore_if_exists: bool = False,
    ) -> None:
        """Create a tag."""
        table = self.get_table(identifier)
        with catalog_errors():
            try:
                table.inner.tags.create(tag_name, snapshot_id, time_retained=time_retained, exist_ok=ignore_if_exists)
            except paimon.NotFound as error:
                raise ValueError(str(error)) from error

    def delete_tag(self, identifier: Name, tag_name: str) -> None:
        """Delete a tag."""
        if not self.get_table(identifier).delete_tag(tag_name):
            raise TagNotExistException(tag_name)

    def get_tag(self, identifier: Name, tag_name: str) -> GetTagResponse:
        """Return a tag."""
        found = self.get_table(identifier).inner.tags.get(tag_name)
        if found is None:
            raise TagNotExistException(tag_name)
        tag = from_paimon_tag(found)
        created = None if tag.tag_create_time is None else int(tag.tag_create_time.timestamp() * 1000)
        retained = None if tag.tag_time_retained is None else to_iso_duration(tag.tag_time_retained)
        return GetTagResponse(tag_name, tag.trim_to_snapshot(), created, retained)

    def list_tags_paged(
        self,
        identifier: Name,
        max_results: int | None = None,
        page_token: str | None = None,
        tag_name_prefix: str | None = None,
    ) -> PagedList[str]:
        """Return the names of the tags of a table in pages."""
        names = [name for name in self.get_table(identifier).list_tags() if name.startswith(tag_name_prefix or "")]
        return PagedList(*cut_page(names, max_results, page_token))

    def create_branch(self, identifier: Name, branch_name: str, tag_name: str | None = None) -> None:
        """Create a branch, by default without rows."""
        table = self.get_table(identifier)
        with catalog_errors():
            table.inner.branches.create(branch_name, tag_name)

    def drop_branch(self, identifier: Name, branch_name: str) -> None:
        """Delete a branch."""
        self._existing_branch(identifier, branch_name).inner.branches.delete(branch_name)

    def rename_branch(self, identifier: Name, from_branch: str, to_branch: str) -> None:
        """Give a branch another name."""
        table = self._existing_branch(identifier, from_branch)
        with catalog_errors():
            table.inner.branches.rename(from_branch, to_branch)

    def fast_forward(self, identifier: Name, branch_name: str) -> None:
        """Continue a table with the snapshots of a branch."""
        self._existing_branch(identifier, branch_name).inner.branches.fast_forward(branch_name)

    def list_branches(self, identifier: Name) -> list[str]:
        """Return the names of the branches of a table other than main."""
        return list(self.get_table(identifier).inner.branches)

    def _existing_branch(self, identifier: Name, branch_name: str) -> FileStoreTable:
        table: FileStoreTable = self.get_table(identifier)
        if branch_name not in table.inner.branches:
            raise BranchNotExistException(branch_name)
        return table

    def close(self) -> None:
        """Do nothing: a catalog holds no connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class FileSystemCatalog(Catalog):
    """A catalog whose tables are the directories of a warehouse."""


class JdbcCatalog(Catalog):
    """A catalog whose tables are rows of a database; after `close`, its methods raise an error."""

    _has_properties = True

    def __init__(self, inner: paimon.Catalog, arguments: Mapping[str, Any] | None = None) -> None:
        self._opened: paimon.Catalog | None = None
        super().__init__(inner, arguments)
        inner.databases()  # pypaimon makes the tables of the catalog here

    @property
    def inner(self) -> paimon.Catalog:
        """The catalog of this library."""
        if self._opened is None:
            raise sqlite3.ProgrammingError("The catalog is closed. Open another one with CatalogFactory.create.")
        return self._opened

    @inner.setter
    def inner(self, catalog: paimon.Catalog) -> None:
        self._opened = catalog

    def close(self) -> None:
        """End the use of this catalog."""
        self._opened = None


class CatalogFactory:
    """Open catalogs."""

    @staticmethod
    def create(catalog_options: Mapping[str, Any]) -> Catalog:
        """Open a catalog."""
        warehouse, arguments = to_connect_arguments(catalog_options)
        catalog = open_warehouse(warehouse, arguments)
        return (JdbcCatalog if arguments.get("metastore") == "jdbc" else FileSystemCatalog)(catalog, arguments)


def add_bucket_key(schema: Schema) -> dict[str, Any]:
    """Return the options of a table to create; an append table with buckets gets a `bucket-key`, as Java requires."""
    options = dict(schema.options)
    columns = [column.name for column in schema.fields if column.name not in schema.partition_keys]
    has_buckets = str(options.get("bucket", "-1")).isdecimal()
    if schema.primary_keys or not has_buckets or "bucket-key" in options or not columns:
        return options
    warnings.warn(
        f"An append table with option 'bucket' needs a bucket key. 'bucket-key' is set to {columns[0]!r}; "
        "leave out 'bucket' if the rows need no buckets.",
        paimon.PaimonWarning,
        stacklevel=3,
    )
    return {**options, "bucket-key": columns[0]}
