"""The composition root: which adapters serve a location.

Law: the only module that binds driven adapters; the facades get their Engine from here and never import it. An
engine travels to other processes as the recipe that builds it (its location and options), never as live objects.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attrs import evolve

from paimon.adapters.arrow_memory import prefer_lean_memory
from paimon.adapters.cache import LruCache
from paimon.adapters.catalogs.filesystem import FileSystemCatalogStore
from paimon.adapters.effects import RandomIds, SystemClock, SystemRandom
from paimon.adapters.executors.serial import SerialExecutor
from paimon.adapters.executors.threads import ThreadExecutor
from paimon.adapters.files.opening import SINGLE_WRITER, files_at, travelling
from paimon.adapters.formats.on_demand import FormatsOnDemand, RecordsOnDemand
from paimon.adapters.observers import SilentObserver
from paimon.adapters.snapshots.queued import QueuedSnapshotCommit
from paimon.adapters.snapshots.renaming import FileSnapshotCommit
from paimon.adapters.temp.local import LocalTempStore
from paimon.catalog import DEFAULT_OPTION, Catalog
from paimon.domain.errors import InvalidRequest, PaimonError, did_you_mean
from paimon.domain.extras import is_optional, missing_extra
from paimon.domain.identifier import Identifier, split_suffixes
from paimon.domain.options.parse import parse_memory
from paimon.domain.options.setting import option_text
from paimon.domain.texts import check_mapping, check_path
from paimon.operations.commit.after.callbacks import with_callbacks
from paimon.ports.callbacks import CommitCallback
from paimon.ports.catalogs import CatalogStore
from paimon.ports.engine import Engine, MemoryBudget
from paimon.ports.executor import Executor
from paimon.ports.files import FileIO

if TYPE_CHECKING:
    from paimon.system_table import SystemTable
    from paimon.table import Table

_MEMORY = "memory-budget"
_THREADS = "threads"
_METASTORE = "metastore"
_METASTORES = ("filesystem", "jdbc")
_OF_JDBC = ("uri", "catalog-key", "jdbc.user", "jdbc.password", "lock-acquire-timeout", "lock-check-max-sleep",
            "sync-all-properties")  # fmt: skip


def connect(
    warehouse: str | os.PathLike[str],
    *,
    callbacks: Sequence[CommitCallback] | Mapping[str, CommitCallback] = (),
    **options: object,
) -> Catalog:
    """The catalog of a warehouse at a path or URL.

    Parameters
    ----------
    warehouse : str or path
        A local directory, or a URL of a file system that fsspec knows (``"memory://lake"``, ``"s3://bucket/lake"``).
    callbacks
        Called after each commit to its tables; see `Table.with_callbacks`.
    **options
        Catalog options (``table-default.X``), storage options of the file system (``storage={…}``), ``memory-budget``
        (such as ``"512 mb"``) and ``threads``. Underscores in option names may stand for dashes. With
        ``metastore="jdbc"`` databases and tables are rows of a database (`uri`, by default SQLite in a local warehouse;
        `catalog-key`, ``jdbc.user``, ``jdbc.password``), whose locks make commits safe on any storage.

    Returns
    -------
    Catalog

    Raises
    ------
    InvalidRequest
        An option that is not known, or a value that cannot be.
    """
    storage = _storage_options(options.pop("storage", None))
    text = {_option_name(key): option_text(value) for key, value in options.items()}
    _check_options(text)
    catalog = catalog_for(location_of(warehouse), storage, text)
    return evolve(catalog, engine=_calling(catalog.engine, callbacks))


def open_table(
    path: str | os.PathLike[str],
    options: Mapping[str, object] | None = None,
    *,
    storage: Mapping[str, object] | None = None,
    allowed_roots: Sequence[str] = (),
    callbacks: Sequence[CommitCallback] | Mapping[str, CommitCallback] = (),
) -> Table:
    """The table at a path or URL, without a catalog.

    Parameters
    ----------
    path : str or path
        The table's directory, or ``"…/orders$branch_b"`` for a branch. ``"…/orders$snapshots"`` opens a `SystemTable`,
        which has the reading methods of a table; `open_system_table` is the same with that type.
    options : mapping
        Dynamic options for this handle (``{"branch": "b", "scan.tag-name": "t"}``).
    storage : mapping
        Storage options of the file system.
    allowed_roots : sequence of str
        Roots outside the table that its files may lie under.
    callbacks
        Called after each commit; see `Table.with_callbacks`.

    Returns
    -------
    Table
        The table at its newest schema.

    Raises
    ------
    NotFound
        There is no table at that path.
    """
    return cast("Table", _open_at_path(path, options, storage, allowed_roots, callbacks))


def open_system_table(
    path: str | os.PathLike[str],
    options: Mapping[str, object] | None = None,
    *,
    storage: Mapping[str, object] | None = None,
    allowed_roots: Sequence[str] = (),
) -> SystemTable:
    """The system table at a path or URL, without a catalog.

    Parameters
    ----------
    path : str or path
        The table's directory and the name of the system table: ``"…/orders$snapshots"``.
    options, storage, allowed_roots
        See `open_table`.

    Returns
    -------
    SystemTable
        A read-only table about the table.

    Raises
    ------
    InvalidRequest
        The path names no system table.
    NotFound
        There is no table at that path.
    """
    from paimon.system_table import SystemTable, refuse_plain_table

    opened = _open_at_path(path, options, storage, allowed_roots, ())
    return opened if isinstance(opened, SystemTable) else refuse_plain_table(os.fspath(path))


def _open_at_path(
    path: str | os.PathLike[str],
    options: Mapping[str, object] | None,
    storage: Mapping[str, object] | None,
    allowed_roots: Sequence[str],
    callbacks: Sequence[CommitCallback] | Mapping[str, CommitCallback],
) -> Table | SystemTable:
    location, _ = place_of(path)
    roots = _roots(allowed_roots)
    engine = _calling(engine_for(location, _storage_options(storage), {}, roots), callbacks)
    return open_with(engine, path, options, roots)


def open_with(
    engine: Engine,
    path: str | os.PathLike[str],
    options: Mapping[str, object] | None = None,
    allowed_roots: Sequence[str] = (),
) -> Table | SystemTable:
    """Like `open_table`, with the ports of an engine that exists already."""
    from paimon.table import open_at  # loaded when a table is first opened, so that connecting stays fast

    text = {key: option_text(value) for key, value in check_mapping(options, "options").items()}
    location, identifier = place_of(path)
    return open_at(engine, location, identifier, text, tuple(allowed_roots))


def place_of(path: str | os.PathLike[str]) -> tuple[str, Identifier]:
    """The directory of a table, and its name; system table and branch are parts of the name alone."""
    parent, slash, name = location_of(path).rpartition("/")
    table, branch, system = split_suffixes(name)
    database = parent.rpartition("/")[2]
    database = database.removesuffix(".db") if database.endswith(".db") else ""
    return f"{parent}{slash}{table}", Identifier(database, table, branch, system)


def catalog_for(location: str, storage: Mapping[str, object], options: Mapping[str, str]) -> Catalog:
    """The catalog of a warehouse by its checked options; it pickles as this call, without secrets."""
    recipe = (catalog_for, (location, travelling(storage), travelling(options)))
    return Catalog(engine_for(location, storage, options), _store(location, storage, options), options, recipe)


def engine_for(
    location: str, storage: Mapping[str, object], options: Mapping[str, str], allowed_roots: Sequence[str] = ()
) -> Engine:
    """An engine with the adapters that a location needs; it pickles as this call."""
    prefer_lean_memory()
    files = _files(location, storage, options, allowed_roots)
    return Engine(
        files=files,
        formats=FormatsOnDemand(_memory(options).bytes),
        records=RecordsOnDemand(),
        snapshots=FileSnapshotCommit(files) if "://" in location else QueuedSnapshotCommit(files),
        clock=SystemClock(),
        ids=RandomIds(),
        random=SystemRandom(),
        executor=_executor(options),
        temp=LocalTempStore(),
        observer=SilentObserver(),
        cache=LruCache(),
        memory=_memory(options),
        tables=_store(location, storage, options) if options.get(_METASTORE) == "jdbc" else None,
        recipe=(engine_for, (location, travelling(storage), travelling(options), tuple(allowed_roots))),
    )


def _calling(engine: Engine, callbacks: Sequence[CommitCallback] | Mapping[str, CommitCallback]) -> Engine:
    return with_callbacks(engine, [callbacks] if isinstance(callbacks, Mapping) else callbacks)


def location_of(path: str | os.PathLike[str]) -> str:
    """A path or URL in the form that the adapters take: local paths absolute, no slash at the end.

    InvalidRequest for what is no path: not a text, not valid Unicode, with a NUL.
    """
    try:
        text = check_path(os.fspath(path), "path")
    except TypeError as error:
        hint = "give a str or a pathlib.Path"
        raise InvalidRequest(f"a {type(path).__name__} is no path", subject="path", hint=hint) from error
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    if "://" in text:
        return text.rstrip("/")
    try:
        return os.path.abspath(Path(text).expanduser())  # noqa: PTH100  (links stay as they are named)
    except RuntimeError as error:  # the home directory of a user that does not exist
        raise InvalidRequest(f"path {text!r} cannot be resolved: {error}", subject="path") from error


def _roots(given: object) -> tuple[str, ...]:
    if isinstance(given, str | bytes | os.PathLike) or not isinstance(given, Iterable):
        raise InvalidRequest(f"allowed_roots {given!r} is no list of paths", subject="allowed_roots")
    return tuple(location_of(root) for root in given)


def _storage_options(storage: object) -> Mapping[str, object]:
    if storage is None:
        return {}
    if not isinstance(storage, Mapping):
        hint = 'write storage={"endpoint": "…"}'
        raise InvalidRequest(f"storage is a {type(storage).__name__}, not a mapping", subject="storage", hint=hint)
    return storage


def _option_name(key: str) -> str:
    name = key.replace("_", "-")
    return f"jdbc.{name.removeprefix('jdbc-')}" if name.startswith("jdbc-") else name


def _check_options(options: Mapping[str, str]) -> None:
    metastore = options.get(_METASTORE, _METASTORES[0])
    if metastore not in _METASTORES:
        raise InvalidRequest(f"there is no metastore {metastore!r}", subject=_METASTORE,
                             hint=f"known are: {', '.join(_METASTORES)}")  # fmt: skip
    known = (_MEMORY, _THREADS, _METASTORE, *(_OF_JDBC if metastore == "jdbc" else ()))
    for key in options:
        if key not in known and not key.startswith(DEFAULT_OPTION):
            hint = did_you_mean(key, (*known, "storage", f"{DEFAULT_OPTION}X"))
            if key in _OF_JDBC:
                hint = 'pass metastore="jdbc" too'
            raise InvalidRequest(f"there is no catalog option {key!r}", subject=key, hint=hint)


def _store(location: str, storage: Mapping[str, object], options: Mapping[str, str]) -> CatalogStore:
    if options.get(_METASTORE) != "jdbc":
        return FileSystemCatalogStore(files_at(location, storage, _memory(options).bytes), location)
    from paimon.adapters.catalogs.jdbc_options import jdbc_store

    return jdbc_store(files_at(location, _locked(location, storage), _memory(options).bytes), location, options)


def _files(
    location: str, storage: Mapping[str, object], options: Mapping[str, str], allowed_roots: Sequence[str]
) -> FileIO:
    if options.get(_METASTORE) != "jdbc":
        return files_at(location, storage, _memory(options).bytes, allowed_roots)
    try:
        from paimon.adapters.catalogs.jdbc_options import locked_files
    except ModuleNotFoundError as missing:
        if not is_optional(missing.name):
            raise
        raise missing_extra("a JDBC catalog", "sqlalchemy") from missing
    inner = files_at(location, _locked(location, storage), _memory(options).bytes)
    return locked_files(inner, location, options)


def _locked(location: str, storage: Mapping[str, object]) -> Mapping[str, object]:
    """Under the catalog's lock, a storage that has no conditional create need not prove one."""
    return {**storage, SINGLE_WRITER: True} if "://" in location else storage


def _memory(options: Mapping[str, str]) -> MemoryBudget:
    return MemoryBudget(parse_memory(options[_MEMORY], _MEMORY)) if _MEMORY in options else MemoryBudget()


def _executor(options: Mapping[str, str]) -> Executor:
    text = options.get(_THREADS)
    if text is not None and not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise InvalidRequest(f"threads is {text!r}", subject=_THREADS, hint="give a whole number, at least 1")
    threads = (os.cpu_count() or 1) if text is None else int(text)
    return ThreadExecutor(threads) if threads > 1 else SerialExecutor()


def spark_failure(error: Exception) -> PaimonError:
    """What an exception of Spark means: the error of a task where the caller is at fault, else StorageError."""
    from paimon.adapters.executors.spark import failure_of

    return failure_of(error)


def spark_executor(session: Any, encode: Callable[[Any], bytes], decode: Callable[[bytes], Any]) -> Executor:
    """An executor whose tasks run on a Spark session; answers travel as the bytes that `encode` makes of them."""
    from paimon.adapters.executors.spark import SparkExecutor

    executor: Executor = SparkExecutor(session, encode, decode)
    return executor
