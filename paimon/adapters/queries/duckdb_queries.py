"""QueryEngine with DuckDB.

Invariant: each query has a connection of its own to one database in memory. It opens the files of its sources only,
under names that no other query knows. It cannot install extensions, or see Python variables. A forked child has none of
the threads of a database, which therefore hangs there and crashes when it is closed. So the child keeps the objects of
its parent for ever, without use, and opens a database of its own.
"""

from __future__ import annotations

import datetime
import os
import re
import tempfile
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from attrs import field, frozen
from fsspec import AbstractFileSystem

from paimon.adapters.cancellation import CallOnStop
from paimon.domain.errors import CorruptTable, InvalidRequest, PaimonError, StorageError, did_you_mean
from paimon.domain.predicate.field_paths import DEFAULT, suggest_column
from paimon.domain.query_hints import CASTS, FILES, suggest_function
from paimon.domain.types.type_text import quote_identifier
from paimon.ports.queries import TYPE_NAMES, QuerySource, SharedFile, SourceFiles
from paimon.ports.temp import is_temp_full, to_temp_error

# The files of running queries as a file system of DuckDB.
#
# DuckDB opens files by name only, and its settings cannot allow single files later. So it may open names of this file
# system only, and these names contain a random token for each query.
#
# Invariant: a name is valid while its query runs, and no other query knows it. Nothing can be written or listed.


PROTOCOL = "paimon-query"
ROOT = f"{PROTOCOL}://"
FILE_NAME = re.compile(rf"{PROTOCOL}://[0-9a-f]{{32}}/\d+")
_ANY_TIME = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
"""Files do not change while they can be opened."""


class OpenFile:
    """A file as DuckDB reads it: it sets the position and reads, and each thread has a position of its own."""

    mode = "rb"

    def __init__(self, file: SharedFile, errors: list[PaimonError]) -> None:
        self._file = file
        self._errors = errors
        self._local = threading.local()
        self.size = file.size

    def seek(self, offset: int, whence: int = 0) -> int:
        """Set the position of this thread. Only offsets from the beginning are allowed."""
        if whence:
            raise ValueError("offsets count from the beginning")
        self._local.position = offset
        return offset

    def tell(self) -> int:
        """Return the position of this thread."""
        return int(getattr(self._local, "position", 0))

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes. A PaimonError is also recorded, because DuckDB reports a part of it only."""
        start = self.tell()
        try:
            data = self._file.read_at(self.size - start if size < 0 else size, start)
        except PaimonError as error:
            self._errors.append(error)
            raise
        self._local.position = start + len(data)
        return data

    def close(self) -> None:
        """Do nothing: the file stays open while its query runs."""


class QueryFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """The files of all running queries of one database. All methods are safe to call from several threads."""

    protocol = PROTOCOL
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self._files: dict[str, tuple[SharedFile, list[PaimonError]]] = {}

    def add(self, files: Sequence[SharedFile], errors: list[PaimonError]) -> list[str]:
        """Allow files, and return names that cannot be guessed; errors go to `errors`, as DuckDB reports few."""
        token = uuid.uuid4().hex
        names = [f"{ROOT}{token}/{number}" for number in range(len(files))]
        self._files.update({name: (file, errors) for name, file in zip(names, files, strict=True)})
        return names

    def remove(self, names: Iterable[str]) -> None:
        """Forget files."""
        for name in names:
            self._files.pop(name, None)

    def open(self, path: str, mode: str = "rb", **_: Any) -> OpenFile:
        """Open a file of a running query by its name, for reading only."""
        if mode != "rb":
            raise PermissionError(path)
        return OpenFile(*self._find(path))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return the size of a file."""
        return {"name": path, "size": self._find(path)[0].size, "type": "file"}

    def glob(self, path: str, **_: Any) -> list[str]:
        """Return the name itself: files cannot be listed."""
        return [path] if path in self._files else []

    def exists(self, path: str, **_: Any) -> bool:
        """Return whether a running query has the file."""
        return path in self._files

    isfile = exists

    def modified(self, path: str) -> datetime.datetime:
        """Return a time that never changes."""
        return _ANY_TIME

    def _find(self, name: str) -> tuple[SharedFile, list[PaimonError]]:
        found = self._files.get(name)
        if found is None:
            raise FileNotFoundError(name)
        return found


# Errors of DuckDB as errors of the library: the object at fault, and the nearest name.


_POSITION = re.compile(r"\n+LINE \d+:.*", re.DOTALL)
_SIMILAR = re.compile(r"(?:Candidate (?:bindings|tables):|Did you mean) (.*?)\??$", re.MULTILINE)
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_NO_COLUMN = "Column {!r} does not exist in this part of the query."
_MISSING: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
    (re.compile(r'[Cc]olumn "([^"]*)" (?:was )?not found'), _NO_COLUMN.format),
    (re.compile(r'does not have a column named "([^"]*)"'), _NO_COLUMN.format),
    (
        re.compile(r'Column "([^"]*)" does not exist on (?:left|right) side of join'),
        "Column {!r} of USING is not in both tables.".format,
    ),
    (re.compile(r'Referenced table "([^"]*)" not found'), "Table {!r} is not in this part of the query.".format),
    (re.compile(r"Function with name (\S+) does not exist"), "Function {!r} does not exist.".format),
    (re.compile(r"Type with name (\S+) does not exist"), "Type {!r} does not exist.".format),
)
"""What DuckDB says about a name that it does not know, and the message for it."""


def to_file_error(error: Exception, path: str) -> CorruptTable:
    """Return an error of DuckDB about one of its files as one of this library."""
    reason = FILE_NAME.sub(path, _POSITION.sub("", str(error)).partition(" Error: ")[2] or str(error))
    return CorruptTable(path, f"cannot be read as Parquet: {reason.strip().splitlines()[0]}")


def to_paimon_error(error: Exception) -> PaimonError:
    """Return an error of DuckDB as one of this library."""
    text = _POSITION.sub("", str(error)).strip()
    kind, colon, message = text.partition(" Error: ")
    first = (message if colon else text).splitlines()[0].rstrip("!.") if text else type(error).__name__
    if is_temp_full(error):
        return to_temp_error(tempfile.gettempdir(), "the query cannot spill rows", error)
    if isinstance(error, duckdb.OutOfMemoryException):
        return StorageError("query", first, hint="raise memory-budget, or set a limit on the rows of the query")
    for pattern, describe in _MISSING:
        name = pattern.search(first)
        if name:
            return InvalidRequest(describe(name[1]), subject=name[1], hint=_find_hint(name[1], text))
    near = _SIMILAR.search(text)
    hint = f"did you mean {near[1]}?" if near else None
    if "file system operations are disabled" in first:
        first, hint = first.partition(" - ")[0], FILES
    elif isinstance(error, duckdb.ConversionException):
        hint = CASTS
    return InvalidRequest(f"The query failed: {first}.", subject=kind or None, hint=hint)


def _find_hint(name: str, text: str) -> str | None:
    """Return a hint with the nearest of the names that DuckDB suggests; for a type, the usual types are added."""
    near = _SIMILAR.search(text)
    known = _QUOTED.findall(near[1]) if near else []
    if "Type with name" in text:
        return did_you_mean(name.upper(), [*TYPE_NAMES, *known])
    if "Function with name" in text:
        return suggest_function(name, known)
    return suggest_column(name, known) if known or name.upper() == DEFAULT else None


_BATCH_ROWS = 65_536
_ROW_BYTES = 4_096
"""Rows of this size take a batch of the result to the memory of the query; batches of small memory have fewer rows."""
_LEAST_ROWS = 2_048
_MOST_TYPES = 1_000
_MOST_DESCRIBED = 200
_INTERRUPTED = "Query interrupted"
_SETTINGS = {
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
}


@contextmanager
def _interrupts() -> Iterator[None]:
    """Raise Python's exception for Ctrl-C, which DuckDB reports as an error without a type."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != _INTERRUPTED:
            raise
        raise KeyboardInterrupt from error


@frozen(eq=False)
class DuckDBQueries:
    """Queries in DuckDB."""

    reads_files = True
    time_zone = "UTC"
    # what the queries may use before they spill
    memory_bytes: int
    threads: int
    _files: QueryFileSystem = field(factory=QueryFileSystem, init=False, repr=False)
    _described: dict[object, pa.Schema] = field(factory=dict, init=False, repr=False)
    _fields: dict[str, pa.Field] = field(factory=dict, init=False, repr=False)
    _running: weakref.WeakSet[_Session] = field(factory=weakref.WeakSet, init=False, repr=False)
    # by whether the database is that of queries that need the memory of all threads
    _databases: dict[bool, Any] = field(factory=dict, init=False, repr=False)

    def _open_database(self, is_serial: bool) -> Any:
        memory_bytes = self.memory_bytes * 3 // 2 if is_serial else self.memory_bytes
        settings = {
            **_SETTINGS,
            "memory_limit": f"{memory_bytes}B",
            "threads": str(1 if is_serial else self.threads),
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

    def find_view(self, name: Sequence[str]) -> QuerySource | None:
        """Return None: each query has its own session; see `QueryEngine`."""
        return None

    def run(self, sql: str, sources: Mapping[str, QuerySource]) -> pa.RecordBatchReader:
        """Run one query; see `QueryEngine`."""
        rows = max(_LEAST_ROWS, min(_BATCH_ROWS, self.memory_bytes // _ROW_BYTES))
        session = self._open_session()
        try:
            reader = session.start(sql, sources, rows)
        except StorageError as error:
            if not isinstance(error.__cause__, duckdb.OutOfMemoryException):
                raise
            # Each thread that sorts holds a block of each spilled run. One thread needs less, and may have more.
            session = self._open_session(is_serial=True)
            reader = session.start(sql, sources, rows)
        return pa.RecordBatchReader.from_batches(reader.schema, session.read(reader))

    def _find_arrow_field(self, connection: Any, kind: str) -> pa.Field:
        """Return a column of a type of DuckDB. Each type is converted once, because a query costs milliseconds."""
        found = self._fields.get(kind)
        if found is None:
            found = connection.sql(f"SELECT CAST(NULL AS {kind}) LIMIT 0").to_arrow_reader().schema.field(0)
            if len(self._fields) < _MOST_TYPES:
                self._fields[kind] = found
        return found

    @_interrupts()
    def _open_session(self, is_serial: bool = False) -> _Session:
        if is_serial not in self._databases:
            self._databases[is_serial] = self._open_database(is_serial)
        session = _Session(self._databases[is_serial].cursor(), self._files)
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
        for database in self._databases.values():
            database.close()

    def abandon(self, keep_for_ever: Callable[[object], None]) -> None:
        """Forget the objects of the parent process, but let none of them be closed; called in a forked child."""
        for session in self._running:
            for inherited in (session.connection, *session.readers):
                keep_for_ever(inherited)
        for database in self._databases.values():
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

    @_interrupts()
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

    @_interrupts()
    def explain(self, sql: str, sources: Mapping[str, QuerySource]) -> str:
        """Return DuckDB's plan; see `QueryEngine`."""
        session = self._open_session()
        try:
            rows = session.connection.execute(f"EXPLAIN {session.prepare(sql, sources, reads_keys=False)}").fetchall()
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

    def start(self, sql: str, sources: Mapping[str, QuerySource], batch_rows: int) -> Any:
        """Begin a query, and return its reader; closes the session where that fails."""
        try:
            with CallOnStop(self.connection.interrupt), _interrupts():
                reader = self.connection.sql(self.prepare(sql, sources)).to_arrow_reader(batch_rows)
        except (duckdb.Error, PaimonError) as error:
            self.close()
            raise self.translate(error) from error
        self.readers.append(reader)
        return reader

    def prepare(self, sql: str, sources: Mapping[str, QuerySource], reads_keys: bool = True) -> str:
        """Make the sources known, and return the query as DuckDB runs it.

        A source with files becomes a subquery where it has an alias. DuckDB would open the files of a view twice, and
        if sources were expressions of `WITH`, it would compute those of the user, which read them, once for each use.
        """
        tables: dict[str, str] = {}
        for name, source in sources.items():
            opened = None if source.open_files is None else source.open_files(reads_keys)
            if opened is None or not opened.files:
                self.register(name, source.schema, source.open)
            else:
                tables[quote_identifier(name)] = self._register_files(name, source.schema, opened)
        placed = {f"{name} AS ": f"({table}) AS " for name, table in tables.items()}
        sql = _LITERAL_OR_NAME.sub(lambda found: placed.get(found[0], found[0]), sql) if _BEGIN.match(sql) else sql
        for name, table in tables.items():
            if name in sql:
                self.connection.execute(f"CREATE TEMP VIEW {name} AS {table}")
        return sql

    def register(self, name: str, schema: pa.Schema, open_rows: Callable[[], pa.RecordBatchReader]) -> None:
        """Make rows known under a name. Each call of `open_rows` returns a new reader of the rows."""
        self.connection.register(name, _Stream(schema, open_rows, self.errors))

    def _register_files(self, name: str, schema: pa.Schema, opened: SourceFiles) -> str:
        """Make the files and the remaining rows of a source known, and return a query of both."""
        names = self.all_files.add(opened.files, self.errors)
        self.files.update(zip(names, opened.files, strict=True))
        columns = ", ".join(quote_identifier(column) for column in schema.names)
        whole = [file for number, file in enumerate(names) if number not in opened.lost_rows]
        # Without a condition, DuckDB takes a maximum from statistics, where `can_have_nan` puts NaN.
        condition = f" WHERE file_index < {len(whole)}" if any(map(pa.types.is_floating, schema.types)) else ""
        parts = [f"SELECT {columns} FROM {_read_files(whole)}{condition}"] if whole else []
        if opened.lost_rows:
            rows = _list_lost_rows(list(opened.lost_rows.values()))
            self.register(lost := f"{name} lost", rows.schema, rows.to_reader)
            cut = _read_files([names[number] for number in opened.lost_rows])
            parts.append(
                f"SELECT {columns} FROM {cut} AS f ANTI JOIN {quote_identifier(lost)} AS l"
                " ON f.file_index = l._lost_file AND f.file_row_number = l._lost_row"
            )
        if opened.open_rest is not None:
            rest = f"{name} rest"
            self.register(rest, schema, opened.open_rest)
            parts.append(f"SELECT {columns} FROM {quote_identifier(rest)}")
        return " UNION ALL ".join(parts)

    def read(self, reader: Any) -> Iterator[pa.RecordBatch]:
        """Yield the batches, then close the connection; the error of a failed source replaces DuckDB's."""
        self._check_process()
        try:
            with CallOnStop(self.connection.interrupt), _interrupts():
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


def _read_files(names: Sequence[str]) -> str:
    # Statistics of floating numbers leave out NaN, which is the largest number in DuckDB.
    return f"read_parquet({list(names)}, hive_partitioning = false, can_have_nan = true)"


def _list_lost_rows(rows: Sequence[pa.Array]) -> pa.Table:
    """Return the lost rows of several files as pairs of the position of a file and the number of a row."""
    files = np.repeat(np.arange(len(rows), dtype=np.uint64), [len(numbers) for numbers in rows])
    return pa.table({"_lost_file": files, "_lost_row": pa.chunked_array(rows, pa.int64())})


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


_BEGIN = re.compile(r"(SELECT|WITH)\s", re.IGNORECASE)
_LITERAL_OR_NAME = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"(?: AS (?="))?""")
