"""QueryEngine with DuckDB.

Invariant: each query has a connection of its own to one database in memory. It opens the files of its sources only,
under names that no other query knows. It cannot install extensions, or see Python variables. A forked child has none of
the threads of a database, which therefore hangs there and crashes when it is closed. So the child keeps the objects of
its parent for ever, without use, and opens a database of its own.
"""

from __future__ import annotations

import os
import re
import tempfile
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import duckdb
import pyarrow as pa
from attrs import field, frozen

from paimon.adapters.queries.duckdb_errors import to_file_error, to_paimon_error
from paimon.adapters.queries.shared_files import FILE_NAME, ROOT, QueryFileSystem
from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.types.type_text import quote_identifier
from paimon.ports.queries import QuerySource, SharedFile, SourceFiles

_BATCH_ROWS = 65_536
_MOST_TYPES = 1_000
_MOST_DESCRIBED = 200
_INTERRUPTED = "Query interrupted"
_SETTINGS = {
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
}


@frozen(eq=False)
class DuckDBQueries:
    """Queries in DuckDB."""

    reads_files = True
    # what the queries may use before they spill
    memory_bytes: int
    threads: int
    _files: QueryFileSystem = field(factory=QueryFileSystem, init=False, repr=False)
    _described: dict[object, pa.Schema] = field(factory=dict, init=False, repr=False)
    _fields: dict[str, pa.Field] = field(factory=dict, init=False, repr=False)
    _running: weakref.WeakSet[_Session] = field(factory=weakref.WeakSet, init=False, repr=False)
    _databases: list[Any] = field(factory=list, init=False, repr=False)

    def _open_database(self) -> Any:
        settings = {
            **_SETTINGS,
            "memory_limit": f"{self.memory_bytes}B",
            "threads": str(self.threads),
            # DuckDB creates the directory when it spills, and removes it.
            "temp_directory": f"{tempfile.gettempdir()}/paimon-query-{uuid.uuid4().hex}",
        }
        database = duckdb.connect(":memory:", config=settings)
        database.register_filesystem(self._files)
        # In this order: the extension with time zones may be a file of the package.
        database.execute("SET GLOBAL TimeZone = 'UTC'")
        database.execute(f"SET GLOBAL allowed_directories = ['{ROOT}']; SET GLOBAL enable_external_access = false")
        return database

    def adopt(self, data: Any) -> QuerySource | None:
        """Return None: all data is read as Arrow batches; see `QueryEngine`."""
        return None

    def run(self, sql: str, sources: Mapping[str, QuerySource]) -> pa.RecordBatchReader:
        """Run one query; see `QueryEngine`."""
        session = self._open_session()
        try:
            with _interrupts():
                reader = _to_reader(session.connection.sql(session.prepare(sql, sources)))
                session.readers.append(reader)
        except (duckdb.Error, PaimonError) as error:
            session.close()
            raise session.translate(error) from error
        return pa.RecordBatchReader.from_batches(reader.schema, session.read(reader))

    def _find_arrow_field(self, connection: Any, kind: str) -> pa.Field:
        """Return a column of a type of DuckDB. Each type is converted once, because a query costs milliseconds."""
        found = self._fields.get(kind)
        if found is None:
            found = _to_reader(connection.sql(f"SELECT CAST(NULL AS {kind}) LIMIT 0")).schema.field(0)
            if len(self._fields) < _MOST_TYPES:
                self._fields[kind] = found
        return found

    def _open_session(self) -> _Session:
        if not self._databases:
            self._databases.append(self._open_database())
        session = _Session(self._databases[0].cursor(), self._files)
        # A reader that is never read closes nothing.
        weakref.finalize(session, self._files.remove, session.files).atexit = False
        self._running.add(session)
        return session

    def interrupt(self) -> None:
        """Stop running queries; see `QueryEngine`."""
        for session in list(self._running):
            with suppress(duckdb.ConnectionException):  # its query ended
                session.connection.interrupt()

    def close(self) -> None:
        """Release the database with all its memory and its files; no query may follow."""
        for database in self._databases:
            database.close()

    def abandon(self, keep_for_ever: Callable[[object], None]) -> None:
        """Forget the objects of the parent process, but let none of them be closed; called in a forked child."""
        for session in self._running:
            for inherited in (session.connection, *session.readers):
                keep_for_ever(inherited)
        for database in self._databases:
            keep_for_ever(database)
        self._databases.clear()
        self._running.clear()

    def describe(self, sql: str, sources: Mapping[str, QuerySource]) -> pa.Schema:
        """Return the columns of a query; see `QueryEngine`."""
        key = (sql, tuple((name, source.schema) for name, source in sources.items()))
        found = self._described.get(key)
        if found is None:
            found = self._describe(sql, sources)
            if len(self._described) >= _MOST_DESCRIBED:
                self._described.clear()
            self._described[key] = found
        return found

    def _describe(self, sql: str, sources: Mapping[str, QuerySource]) -> pa.Schema:
        session = self._open_session()
        try:
            for name, source in sources.items():
                session.register(name, source.schema, source.open)
            relation = session.connection.sql(sql)
            fields = [self._find_arrow_field(session.connection, str(kind)) for kind in relation.types]
            return pa.schema([field.with_name(name) for field, name in zip(fields, relation.columns, strict=True)])
        except (duckdb.Error, PaimonError) as error:
            raise session.translate(error) from error
        finally:
            session.close()

    def explain(self, sql: str, sources: Mapping[str, QuerySource]) -> str:
        """Return DuckDB's plan; see `QueryEngine`."""
        session = self._open_session()
        try:
            rows = session.connection.execute(f"EXPLAIN {session.prepare(sql, sources)}").fetchall()
        except (duckdb.Error, PaimonError) as error:
            raise session.translate(error) from error
        finally:
            session.close()
        return "\n".join(str(row[-1]).rstrip() for row in rows)


@frozen(eq=False)
class _Session:
    """The connection of one query, its files, and the errors of its sources."""

    connection: Any
    all_files: QueryFileSystem
    errors: list[PaimonError] = field(factory=list)
    files: dict[str, SharedFile] = field(factory=dict)
    readers: list[Any] = field(factory=list)
    process: int = field(factory=os.getpid)

    def prepare(self, sql: str, sources: Mapping[str, QuerySource]) -> str:
        """Make the sources known, and return the query as DuckDB runs it.

        Sources with files are common table expressions of the query, because DuckDB opens the files of a view twice.
        """
        tables: dict[str, str] = {}
        for name, source in sources.items():
            opened = None if source.open_files is None else source.open_files()
            if opened is None or not opened.files:
                self.register(name, source.schema, source.open)
            else:
                tables[name] = self._register_files(name, source.schema, opened)
        begin = _BEGIN.match(sql)
        if begin is None:
            for name, table in tables.items():
                self.connection.execute(f"CREATE TEMP VIEW {quote_identifier(name)} AS {table}")
            return sql
        if not tables:
            return sql
        expressions = ", ".join(
            f"{quote_identifier(name)} AS NOT MATERIALIZED ({table})" for name, table in tables.items()
        )
        if begin["select"]:
            return f"WITH {expressions} {sql}"
        return f"WITH {begin['recursive'] or ''}{expressions}, {sql[begin.end() :]}"

    def register(self, name: str, schema: pa.Schema, open_rows: Callable[[], pa.RecordBatchReader]) -> None:
        """Make rows known under a name. Each call of `open_rows` returns a new reader of the rows."""
        self.connection.register(name, _Stream(schema, open_rows, self.errors))

    def _register_files(self, name: str, schema: pa.Schema, opened: SourceFiles) -> str:
        """Make the files and the remaining rows of a source known, and return a query of both."""
        names = self.all_files.add(opened.files, self.errors)
        self.files.update(zip(names, opened.files, strict=True))
        columns = ", ".join(quote_identifier(column) for column in schema.names)
        listed = ", ".join(f"'{file}'" for file in names)
        sql = f"SELECT {columns} FROM read_parquet([{listed}], hive_partitioning = false)"
        if opened.open_rest is None:
            return sql
        rest = f"{name} rest"
        self.register(rest, schema, opened.open_rest)
        return f"{sql} UNION ALL SELECT {columns} FROM {quote_identifier(rest)}"

    def read(self, reader: Any) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the result, and close the connection after the last one.

        If a source failed, its error is raised, not DuckDB's.
        """
        self._check_process()
        try:
            with _interrupts():
                for batch in reader:
                    yield batch
                    self._check_process()
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise self.translate(error) from error
        finally:
            self.close()

    def translate(self, error: Exception) -> PaimonError:
        """Return the error of a source, or DuckDB's error as one of the library."""
        if self.errors:
            return self.errors[0]
        if isinstance(error, PaimonError):
            return error
        name = FILE_NAME.search(str(error))
        file = self.files.get(name[0]) if name else None
        return to_paimon_error(error) if file is None else to_file_error(error, file.path)

    def _check_process(self) -> None:
        if os.getpid() != self.process:
            raise InvalidRequest(
                "The query was begun by the parent process, and a forked child cannot read on.",
                hint="run the query in this process, or start processes with 'spawn'",
            )

    def close(self) -> None:
        """Release the database and the files."""
        if os.getpid() == self.process:
            self.connection.close()
        self.all_files.remove(self.files)


@frozen(eq=False)
class _Stream:
    """Rows that DuckDB may read more than once."""

    schema: pa.Schema
    open: Callable[[], pa.RecordBatchReader]
    errors: list[PaimonError]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self._read())
        return reader.__arrow_c_stream__(requested_schema)

    def _read(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.open()
        except PaimonError as error:
            self.errors.append(error)
            raise


@contextmanager
def _interrupts() -> Iterator[None]:
    """Raise Python's exception for Ctrl-C, which DuckDB reports as an error without a type."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != _INTERRUPTED:
            raise
        raise KeyboardInterrupt from error


def _to_reader(relation: Any) -> Any:
    return relation.to_arrow_reader(_BATCH_ROWS)


_BEGIN = re.compile(r"(?P<select>SELECT\s)|WITH\s+(?P<recursive>RECURSIVE\s+)?", re.IGNORECASE)
