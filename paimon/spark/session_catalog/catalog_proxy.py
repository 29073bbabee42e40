"""A warehouse for Spark: databases and tables by name, time travel, and what CREATE, ALTER and DROP do.

Invariant: missing and existing names become Spark's own exceptions, on which IF EXISTS and IF NOT EXISTS depend.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from paimon.catalog import Catalog
from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound
from paimon.spark.session_catalog.created_table import CreatedTableProxy
from paimon.spark.session_catalog.functions import MAX_PARTITION, MaxPartitionProxy
from paimon.spark.session_catalog.jvm import CONNECTOR, Jvm, UnmeasuredProxy, find_proxy, make_name_error
from paimon.spark.session_catalog.procedures import ProcedureProxy
from paimon.spark.session_catalog.schemas import Declaration, copy_declaration, read_changes, read_declaration
from paimon.spark.session_catalog.session_options import find_session_options
from paimon.spark.session_catalog.table_proxy import TableProxy, apply_options
from paimon.table import Table
from paimon.verbs.verb_table import list_procedure_names

_DEFAULT_DATABASE = "default"
_MICROS_OF_MILLI = 1000


class CatalogProxy(UnmeasuredProxy):
    """A catalog of a session."""

    class Java:
        """The interfaces."""

        implements = (
            f"{CONNECTOR}.catalog.StagingTableCatalog",
            f"{CONNECTOR}.catalog.SupportsNamespaces",
            f"{CONNECTOR}.catalog.ProcedureCatalog",
            f"{CONNECTOR}.catalog.FunctionCatalog",
        )

    def __init__(self, jvm: Jvm, name: str, catalog: Catalog) -> None:
        self.jvm = jvm
        self.catalog = catalog
        self._name = name

    def initialize(self, name: str, options: Any) -> None:
        """Do nothing: the catalog is complete."""

    def name(self) -> str:
        """Return the name in the session."""
        return self._name

    def toString(self) -> str:
        """Return what plans show."""
        return f"paimon catalog {self._name}"

    def defaultNamespace(self) -> Any:
        """Return the database that ``USE`` of the catalog chooses."""
        return self.jvm.make_texts([_DEFAULT_DATABASE])

    def capabilities(self) -> Any:
        """Return what CREATE TABLE may declare; `read_declaration` refuses constraints other than PRIMARY KEY."""
        names = ("SUPPORT_COLUMN_DEFAULT_VALUE", "SUPPORT_TABLE_CONSTRAINT")
        return self.jvm.list_enum("catalog.TableCatalogCapability", names)

    def tableStateOptionKeys(self) -> Any:
        """Return no options: those of a query reach the scan."""
        return self.jvm.make_set(())

    def changelogStateOptionKeys(self) -> Any:
        """Return no options."""
        return self.jvm.make_set(())

    # Tables

    def listTables(self, namespace: Any) -> Any:
        """Return the names of the tables of a database."""
        database = self._find_database(namespace)
        identifier = self.jvm.connector("catalog.Identifier")
        names = [identifier.of(namespace, name) for name in self.catalog.tables(database)]
        return self.jvm.make_array(f"{CONNECTOR}.catalog.Identifier", names)

    def listTableSummaries(self, namespace: Any) -> Any:
        """Return the names of the tables with their kind."""
        summary = self.jvm.connector("catalog.TableSummary")
        found = [summary.of(identifier, "MANAGED") for identifier in self.listTables(namespace)]
        return self.jvm.make_array(f"{CONNECTOR}.catalog.TableSummary", found)

    def loadTable(self, identifier: Any, *given: Any) -> Any:
        """Open a table, or a system table; `given` is a version, a time, or what the statement does with it."""
        table = self._open_table(identifier)
        options = self._find_travel(given)
        if isinstance(table.opened, Table):
            database, name = self.jvm.read_json(identifier)
            settings = find_session_options(self.jvm.spark, (self._name, database, name.partition("$")[0]))
            if options or self._is_written(given):  # a change needs the newest snapshot
                settings = {key: value for key, value in settings.items() if not key.startswith("scan.")}
            options = settings | options
        return TableProxy(self.jvm, apply_options(table.opened, options), table.title) if options else table

    def _is_written(self, given: tuple[Any, ...]) -> bool:
        first = given[0] if given else None
        if first is None or isinstance(first, str | int):
            return False
        privileges = first if self.jvm.is_a(first, "java.util.Set") else first.writePrivileges()
        return not privileges.isEmpty()

    def _open_table(self, identifier: Any) -> TableProxy:
        with self._missing("NoSuchTableException", identifier):
            opened = self.catalog.table(self._to_name(identifier))
            return TableProxy(self.jvm, opened, f"{self._name}.{opened.name}")

    def _find_travel(self, given: tuple[Any, ...]) -> dict[str, str]:
        first = given[0] if given else None
        if isinstance(first, str):
            return {"versionAsOf": first}
        if isinstance(first, int):
            return {"scan.timestamp-millis": str(first // _MICROS_OF_MILLI)}
        if first is None or self.jvm.is_a(first, "java.util.Set") or not first.timeTravel().isPresent():
            return {}
        travel = first.timeTravel().get()
        if travel.getClass().getSimpleName() == "AsOfVersion":
            return {"versionAsOf": str(travel.version())}
        return {"scan.timestamp-millis": str(travel.micros() // _MICROS_OF_MILLI)}

    def invalidateTable(self, identifier: Any) -> None:
        """Do nothing: tables are opened anew."""

    def tableExists(self, identifier: Any) -> bool:
        """Return whether there is such a table."""
        parts = self.jvm.read_json(identifier)
        name = ".".join(parts)
        if len(parts) != 2 or "$" not in name:
            return len(parts) == 2 and name in self.catalog
        with suppress(NotFound, InvalidRequest):
            return self.catalog.table(name) is not None
        return False

    def createTable(self, identifier: Any, *given: Any) -> Any:
        """Create a table."""
        return self._create(identifier, self._declare(given))

    def _create(self, identifier: Any, declared: Declaration) -> Any:
        name = self._check_new(identifier)
        with self._taken("TableAlreadyExistsException", identifier):
            self.catalog.create_table(name, declared.fields, **declared.arguments)
        return self._open_table(identifier)

    def createTableLike(self, identifier: Any, info: Any, source: Any) -> Any:
        """Create a table with the columns of another one, and the keys and options of a table of this library."""
        model, declared = find_proxy(source), self._declare((info,))
        if isinstance(model, TableProxy):
            declared = copy_declaration(model.find_target().table_schema, declared)
        return self._create(identifier, declared)

    def useNullableQuerySchema(self) -> bool:
        """Return whether CREATE TABLE AS allows nulls in all columns."""
        return True

    def stageCreate(self, identifier: Any, *given: Any) -> Any:
        """Begin a CREATE TABLE AS: the table appears together with its rows."""
        declared, name = self._declare(given), self._check_new(identifier)
        if name in self.catalog:
            raise make_name_error(self.jvm, "TableAlreadyExistsException", identifier)
        return CreatedTableProxy(self.jvm, self.catalog, name, self._name, declared, replace=False)

    def stageReplace(self, identifier: Any, *given: Any) -> Any:
        """Begin a REPLACE TABLE, with or without rows: the old table stays until the new one is complete."""
        declared, name = self._declare(given), self._check_new(identifier)
        if name not in self.catalog:
            raise make_name_error(self.jvm, "NoSuchTableException", identifier)
        return CreatedTableProxy(self.jvm, self.catalog, name, self._name, declared, replace=True)

    def stageCreateOrReplace(self, identifier: Any, *given: Any) -> Any:
        """Begin a CREATE OR REPLACE TABLE."""
        declared, name = self._declare(given), self._check_new(identifier)
        replace = name in self.catalog
        return CreatedTableProxy(self.jvm, self.catalog, name, self._name, declared, replace=replace)

    def alterTable(self, identifier: Any, changes: Any) -> Any:
        """Change columns, options or the comment, all in one new schema."""
        table = self._open_table(identifier)
        table.find_target().alter(*read_changes(self.jvm, table.spark_schema, changes))
        return self._open_table(identifier)

    def dropTable(self, identifier: Any) -> bool:
        """Drop a table, and return whether there was one."""
        if not self.tableExists(identifier):
            return False
        _check_plain(identifier)
        self.catalog.drop_table(self._to_name(identifier))
        return True

    def purgeTable(self, identifier: Any) -> bool:
        """Drop a table with its files, which each drop does."""
        return bool(self.dropTable(identifier))

    def renameTable(self, identifier: Any, new: Any) -> None:
        """Rename a table."""
        new_name = self._to_new_name(identifier, new)
        database = new_name.rpartition(".")[0]
        if database not in self.catalog.databases():
            raise NotFound("database", database, hint=f"give a new name in catalog {self._name}, without the catalog")
        with self._taken("TableAlreadyExistsException", new), self._missing("NoSuchTableException", identifier):
            self.catalog.rename_table(self._to_name(identifier), new_name)

    def _to_new_name(self, identifier: Any, new: Any) -> str:
        """Return the new name of a table, which may lack the database, or begin with the catalog."""
        parts = [str(name) for name in new.namespace()] or [str(name) for name in identifier.namespace()]
        database = parts[1:] if len(parts) > 1 and parts[0] == self._name else parts
        return ".".join([*database, str(new.name())])

    # Databases

    def listNamespaces(self, namespace: Any = None) -> Any:
        """Return the databases; a database contains no others."""
        if namespace is not None and len(list(namespace)):
            self._find_database(namespace)
            names = []
        else:
            names = self.catalog.databases()
        made = self.jvm.gateway.new_array(self.jvm.find_class("java.lang.String"), len(names), 1)
        for number, name in enumerate(names):
            made[number][0] = name
        return made

    def namespaceExists(self, namespace: Any) -> bool:
        """Return whether there is such a database."""
        names = self.jvm.read_json(namespace)
        return len(names) == 1 and names[0] in self.catalog.databases()

    def loadNamespaceMetadata(self, namespace: Any) -> Any:
        """Return the properties of a database."""
        database = self._find_database(namespace)
        return self.jvm.make_map(self.catalog.database_properties(database))

    def createNamespace(self, namespace: Any, metadata: Any) -> None:
        """Create a database."""
        names = self.jvm.read_json(namespace)
        if len(names) != 1:
            raise InvalidRequest(
                f"{'.'.join(names)!r} is not the name of a database. It has one part, as in lake.shop.",
                subject=".".join(names),
            )
        given = self.jvm.read_json(metadata)
        given.pop("owner", None)
        with self._taken("NamespaceAlreadyExistsException", namespace):
            self.catalog.create_database(names[0], properties=given)

    def alterNamespace(self, namespace: Any, changes: Any) -> None:
        """Set and remove properties of a database."""
        database = self._find_database(namespace)
        given = [(str(c.getClass().getSimpleName()), c) for c in changes]
        values = {str(c.property()): str(c.value()) for kind, c in given if kind == "SetProperty"}
        removed = [str(c.property()) for kind, c in given if kind == "RemoveProperty"]
        self.catalog.alter_database(database, values, remove=removed)

    def dropNamespace(self, namespace: Any, cascade: bool) -> bool:
        """Drop a database, and return whether there was one."""
        if not self.namespaceExists(namespace):
            return False
        database = self._find_database(namespace)
        if not cascade and self.catalog.tables(database):
            raise make_name_error(self.jvm, "NonEmptyNamespaceException", namespace)
        self.catalog.drop_database(database, cascade=cascade)
        return True

    # Procedures

    def loadProcedure(self, identifier: Any) -> Any:
        """Return a procedure of the schema ``sys``."""
        return ProcedureProxy(self.jvm, self.catalog, self._name, str(identifier.name()))

    def listProcedures(self, namespace: Any) -> Any:
        """Return the names of all procedures."""
        del namespace
        identifier = self.jvm.connector("catalog.Identifier")
        names = [identifier.of(self.jvm.make_texts(["sys"]), name) for name in list_procedure_names()]
        return self.jvm.make_array(f"{CONNECTOR}.catalog.Identifier", names)

    # Functions

    def loadFunction(self, identifier: Any) -> Any:
        """Return a function of the schema ``sys``."""
        if not self.functionExists(identifier):
            raise make_name_error(self.jvm, "NoSuchFunctionException", identifier)
        return MaxPartitionProxy(self.jvm, self.catalog, self._name)

    def functionExists(self, identifier: Any) -> bool:
        """Return whether there is such a function."""
        return [part.lower() for part in self.jvm.read_json(identifier)] == ["sys", MAX_PARTITION]

    def listFunctions(self, namespace: Any) -> Any:
        """Return the functions of a database."""
        found = [MAX_PARTITION] if self.jvm.read_json(namespace) == ["sys"] else []
        identifier = self.jvm.connector("catalog.Identifier")
        names = [identifier.of(namespace, name) for name in found]
        return self.jvm.make_array(f"{CONNECTOR}.catalog.Identifier", names)

    def _declare(self, given: tuple[Any, ...]) -> Declaration:
        if len(given) == 1:  # a TableInfo
            info = given[0]
            given = (info.columns(), info.partitions(), info.properties(), info.constraints())
        return read_declaration(self.jvm, *given)

    def _check_new(self, identifier: Any) -> str:
        if not self.namespaceExists(identifier.namespace()):
            raise make_name_error(self.jvm, "NoSuchNamespaceException", identifier.namespace())
        return self._to_name(identifier)

    def _find_database(self, namespace: Any) -> str:
        if not self.namespaceExists(namespace):
            raise make_name_error(self.jvm, "NoSuchNamespaceException", namespace)
        return str(self.jvm.read_json(namespace)[0])

    def _to_name(self, identifier: Any) -> str:
        return ".".join(self.jvm.read_json(identifier))

    @contextmanager
    def _missing(self, kind: str, subject: Any) -> Iterator[None]:
        try:
            yield
        except NotFound as error:
            raise make_name_error(self.jvm, kind, subject) from error

    @contextmanager
    def _taken(self, kind: str, subject: Any) -> Iterator[None]:
        try:
            yield
        except AlreadyExists as error:
            raise make_name_error(self.jvm, kind, subject) from error


def _check_plain(identifier: Any) -> None:
    """Refuse to drop a system table or a branch by its name."""
    name = str(identifier.name())
    if "$" in name:
        hint = f"drop {name.partition('$')[0]!r} itself, or call sys.delete_branch"
        raise InvalidRequest(f"{name!r} is a part of a table, which cannot be dropped alone.", subject=name, hint=hint)
