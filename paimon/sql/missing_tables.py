"""What helps where a statement names a table or a database that does not exist.

Invariant: databases and names of tables are listed only after a statement failed, and of 20 databases at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from paimon.domain.errors import InvalidRequest, NotFound, PaimonError, did_you_mean
from paimon.domain.query_hints import FILES
from paimon.sql.parse.statements import ObjectName

_FILE_ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".arrow", ".feather", ".orc", ".avro", ".gz")
_MOST_DATABASES = 20


class Databases(Protocol):
    """A catalog, which lists its databases and tables."""

    def databases(self) -> list[str]:
        """Return the names of all databases."""

    def tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database."""


def suggest_table(parts: ObjectName, catalog: Databases, error: NotFound, on_spark: bool) -> str | None:
    """Return the hint of an error about a name of a table: other databases, files, views, or that of the error."""
    if error.kind == "database" or len(parts) == 1:
        refuse_file(parts)
    if len(parts) > 1:
        return error.hint
    found = _find_elsewhere(parts[0], catalog)
    if found:
        database = found[0].partition(".")[0]
        return f"did you mean {' or '.join(map(repr, found))}? After USE {database}, the short name is enough"
    if error.kind == "table":
        return error.hint
    names = ", ".join(_list_databases(catalog)) or "none"
    where = f"write database.table, or USE a database first; databases: {names}"
    if not parts[0].isidentifier():
        return where
    if on_spark:
        return f"{where}. A table of Spark is passed by name: sql(text, {parts[0]}=spark.table({parts[0]!r}))"
    return f"{where}. A data frame is passed by name: sql(text, {parts[0]}={parts[0]})"


def suggest_full_name(name: object, catalog: Databases) -> str | None:
    """Return the hint for a name that is not ``database.table``: tables of this name, or how a path is opened."""
    if not isinstance(name, str) or not name:
        return None
    if "/" in name:
        return "write it as 'database.table'; paimon.open_table(path) opens a table by its path"
    found = [] if "." in name else _find_elsewhere(name, catalog)
    if found:
        return f"did you mean {' or '.join(map(repr, found))}?"
    return f"write it as 'database.table'; databases: {', '.join(_list_databases(catalog)) or 'none'}"


def refuse_file(parts: ObjectName) -> None:
    """Refuse the name of a file where a statement needs a table."""
    name = ".".join(parts)
    if name.lower().endswith(_FILE_ENDINGS):
        raise InvalidRequest(f"{name!r} is a file, and not a table.", subject=name, hint=FILES)


def _find_elsewhere(table: str, catalog: Databases) -> list[str]:
    """Return the full names of the tables of this name in all databases, or else that of the nearest name."""
    table, dollar, suffix = table.partition("$")
    full = [f"{database}.{name}" for database in _list_databases(catalog) for name in catalog.tables(database)]
    found = [name for name in full if name.partition(".")[2].lower() == table.lower()]
    if not found:
        near = did_you_mean(table, {name.partition(".")[2] for name in full}) or ""
        found = [name for name in full if near == f"did you mean {name.partition('.')[2]!r}?"]
    return [f"{name}{dollar}{suffix}" for name in found[:3]]


def _list_databases(catalog: Databases) -> Sequence[str]:
    """Return the first databases of a catalog; none if they cannot be listed."""
    try:
        return catalog.databases()[:_MOST_DATABASES]
    except PaimonError:
        return ()


def suggest_database(error: NotFound, catalog: Databases) -> NotFound:
    """Return the error for the current database, which does not exist, with the databases that do."""
    names = _list_databases(catalog)
    hint = f"USE {names[0]} makes it current; databases: {', '.join(names)}" if names else error.hint
    return NotFound(error.kind, error.name, hint=hint)
