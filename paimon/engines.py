"""Bind the adapters that a location needs: the composition root behind `paimon.connect` and `paimon.open_table`.

Invariant: no other module binds driven adapters, and the public classes never import this one. A pickled engine is the
recipe that builds it, with its location and options but without secrets.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

from attrs import evolve

from paimon.adapters.cache import LruCache
from paimon.adapters.cancellation import stoppable_files, stoppable_store
from paimon.adapters.catalogs.filesystem import FileSystemCatalogStore
from paimon.adapters.commit_groups import ThreadCommitGroups
from paimon.adapters.effects import RandomIds, SystemClock, SystemRandom
from paimon.adapters.executors.local import SerialExecutor, ThreadExecutor
from paimon.adapters.expressions.duckdb_evaluator import DuckdbEvaluator
from paimon.adapters.expressions.polars_evaluator import PolarsEvaluator
from paimon.adapters.files.opening import files_at, select_options
from paimon.adapters.files.store_options import SINGLE_WRITER
from paimon.adapters.formats.on_demand import FormatsOnDemand, RecordsOnDemand
from paimon.adapters.http_reports import HttpReports
from paimon.adapters.logs import LoggingObserver
from paimon.adapters.plugins import (
    CATALOGS,
    QUERY_ENGINES,
    InstalledFormats,
    Offer,
    list_offers,
    open_catalog,
    open_queries,
)
from paimon.adapters.process_effects import (
    SystemProcessEffects,
    abandon_in_children,
    choose_memory_pool,
    load_module,
    release_free_memory,
)
from paimon.adapters.process_effects import freeze_objects as freeze_objects
from paimon.adapters.process_effects import has_process_effects as has_process_effects
from paimon.adapters.process_effects import set_environment as set_environment
from paimon.adapters.queries.on_demand import QueriesOnDemand
from paimon.adapters.row_files import ArrowRowFiles
from paimon.adapters.settings import VARIABLE
from paimon.adapters.settings import WAREHOUSE as WAREHOUSE
from paimon.adapters.settings import Setting as Setting
from paimon.adapters.settings import read_settings as read_settings
from paimon.adapters.snapshots.commits import LockedSnapshotCommit, PutIfAbsentSnapshotCommit
from paimon.adapters.temp.local import LocalTempStore
from paimon.catalog import DEFAULT_OPTION, Catalog
from paimon.domain.errors import InvalidRequest, PaimonError, Unsupported, did_you_mean
from paimon.domain.extras import is_optional, missing_extra
from paimon.domain.identifier import Identifier, split_suffixes
from paimon.domain.options.parse import parse_memory
from paimon.domain.options.setting import option_text
from paimon.domain.schema.external_paths import PATHS
from paimon.domain.secrets import has_password, redact_secrets, remove_password, remove_secrets
from paimon.domain.text_checks import check_mapping, check_path
from paimon.ports.callbacks import CommitCallback
from paimon.ports.catalogs import CatalogStore
from paimon.ports.engine import Engine, MemoryBudget, with_callbacks
from paimon.ports.executor import Executor
from paimon.ports.files import FileIO
from paimon.ports.formats import FormatIO
from paimon.ports.queries import QueryEngine
from paimon.ports.row_files import FileRows

if TYPE_CHECKING:
    import daft
    import datafusion
    import duckdb
    import polars as pl

    from paimon.adapters.queries.datafusion_catalog import AttachedContext
    from paimon.adapters.queries.duckdb_views import AttachedCatalog
    from paimon.datasets.arrow_datasets import TableDataset
    from paimon.system_table import SystemTable
    from paimon.table import Table

_MEMORY = "memory-budget"
_FOOTER_BYTES = 16 * 1024 * 1024
"""The bound of the footers of Parquet files that an engine keeps, some 400 files with 16 columns."""
_THREADS = "threads"
_ROOTS = "allowed-roots"
_METASTORE, _QUERY_ENGINE = "metastore", "query-engine"
_METASTORES, _QUERY_ENGINES = ("filesystem", "jdbc"), ("duckdb",)
_FOREIGN_METASTORES = ("hive", "rest", "dlf", "dlf-paimon")
_COMMON = (_MEMORY, _THREADS, _ROOTS, _METASTORE, _QUERY_ENGINE)
_JDBC_OPTIONS = (
    "uri",
    "catalog-key",
    "jdbc.user",
    "jdbc.password",
    "lock-acquire-timeout",
    "lock-check-max-sleep",
    "sync-all-properties",
)


class Readable(Protocol):
    """A table, a scan, or another result that Polars can read."""

    def lazy(self) -> pl.LazyFrame:
        """Return the rows."""


class Scannable(Protocol):
    """A table, a scan, or another result with a dataset."""

    def to_dataset(self) -> TableDataset:
        """Return the rows."""


def connect(
    warehouse: str | os.PathLike[str] | None = None,
    *,
    profile: str | None = None,
    config: str | os.PathLike[str] | None = None,
    callbacks: Sequence[CommitCallback] | Mapping[str, CommitCallback] = (),
    **options: object,
) -> Catalog:
    """Open the catalog of a warehouse.

    Parameters
    ----------
    warehouse : str or path
        A local directory, or a URL of a file system that fsspec knows (``"memory://lake"``, ``"s3://bucket/lake"``).
        Without one, it and its options come from `profile`, `config` or the environment.
    profile, config : str, str or path, optional
        A profile of a file such as ``"paimon.toml"``, which gives the warehouse and options that the call leaves out.
        The one that is left out is that of ``PAIMON_PROFILE`` or ``PAIMON_CONFIG``; none if only `warehouse` is given.
    callbacks : sequence of callable, or mapping of str to callable
        Called after each commit; see `Table.with_callbacks`.
    **options : object
        Catalog options (``table-default.X``), storage options of the file system (``storage={…}``), ``memory-budget``
        (such as ``"512 mb"``), ``threads``, and ``allowed_roots=[…]``: directories and URLs outside of tables that may
        contain their data files. Underscores in option names may replace dashes. With
        ``metastore="jdbc"`` databases and tables are rows of a database (`uri`, by default SQLite in a local warehouse;
        `catalog-key`, ``jdbc.user``, ``jdbc.password``), whose locks make commits safe on any storage. Installed
        packages offer further metastores, which take further options, and further values of ``query_engine``.

    Returns
    -------
    Catalog
        The catalog. The warehouse need not exist.

    Raises
    ------
    InvalidRequest
        An option is not known, or its value is not valid. There is no warehouse, or the profile is of another one.
    StorageError
        The file cannot be read.
    """
    if warehouse is None or profile is not None or config is not None:
        warehouse, options = _add_settings(warehouse, profile, config, options)
    return open_warehouse(warehouse, options, callbacks)


def _add_settings(
    warehouse: str | os.PathLike[str] | None,
    profile: str | None,
    config: str | os.PathLike[str] | None,
    given: Mapping[str, object],
) -> tuple[str | os.PathLike[str], dict[str, object]]:
    """Return a warehouse and options, completed by its settings, whose credentials only it may get."""
    found = {setting.name: setting for setting in read_settings(None if config is None else os.fspath(config), profile)}
    stored = found.pop(WAREHOUSE, None)
    if warehouse is None:
        if stored is None:
            hint = "pass one, or set PAIMON_WAREHOUSE, or name a profile that has one"
            raise InvalidRequest("No warehouse is given.", subject=WAREHOUSE, hint=hint)
        warehouse = stored.value
    elif stored is not None and stored.origin != VARIABLE and location_of(warehouse) != location_of(stored.value):
        hint = "leave out one of them, or write a profile without a warehouse"
        raise InvalidRequest(f"The settings of {stored.origin} are of another warehouse.", subject=WAREHOUSE, hint=hint)
    options: dict[str, object] = {_option_name(name): setting.value for name, setting in found.items()}
    return warehouse, options | {_option_name(name): value for name, value in given.items()}


def open_warehouse(
    warehouse: str | os.PathLike[str],
    options: Mapping[str, object],
    callbacks: Sequence[CommitCallback] | Mapping[str, CommitCallback] = (),
) -> Catalog:
    """Open the catalog of a warehouse with these options alone: no file and no variable gives others."""
    options = dict(options)
    storage = _check_storage(options.pop("storage", None))
    text = {_option_name(key): _option_value(key, value) for key, value in options.items()}
    _check_options(text)
    catalog = catalog_for(location_of(warehouse), storage, text)
    return evolve(catalog, engine=_with_callbacks(catalog.engine, callbacks))


def open_table(
    path: str | os.PathLike[str],
    options: Mapping[str, object] | None = None,
    *,
    storage: Mapping[str, object] | None = None,
    allowed_roots: Sequence[str] = (),
    callbacks: Sequence[CommitCallback] | Mapping[str, CommitCallback] = (),
) -> Table:
    """Open the table at a path or URL, without a catalog.

    Parameters
    ----------
    path : str or path
        The directory of the table, or ``"…/orders$branch_b"`` for a branch. ``"…/orders$snapshots"`` opens a
        `SystemTable`, which has the reading methods of a table; `open_system_table` returns the same with that type.
    options : mapping, optional
        Dynamic options of this table object (``{"branch": "b", "scan.tag-name": "t"}``). They are not stored.
    storage : mapping, optional
        Storage options of the file system.
    allowed_roots : sequence of str
        Directories outside the table that may contain its files.
    callbacks : sequence of callable, or mapping of str to callable
        Called after each commit; see `Table.with_callbacks`.

    Returns
    -------
    Table
        The table with its newest schema.

    Raises
    ------
    NotFound
        There is no table at this path.
    InvalidRequest
        An option or the path is not valid.
    """
    return cast("Table", _open_at_path(path, options, storage, allowed_roots, callbacks))


def open_system_table(
    path: str | os.PathLike[str],
    options: Mapping[str, object] | None = None,
    *,
    storage: Mapping[str, object] | None = None,
    allowed_roots: Sequence[str] = (),
) -> SystemTable:
    """Open a system table at a path or URL, without a catalog.

    Parameters
    ----------
    path : str or path
        The directory of the table and the name of the system table: ``"…/orders$snapshots"``.
    options : mapping, optional
        Dynamic options of this table object. They are not stored.
    storage : mapping, optional
        Storage options of the file system.
    allowed_roots : sequence of str
        Directories outside the table that may contain its files.

    Returns
    -------
    SystemTable
        A read-only table with metadata.

    Raises
    ------
    InvalidRequest
        The path does not name a system table.
    NotFound
        There is no table at this path.
    """
    from paimon.system_table import SystemTable, refuse_plain_table

    opened = _open_at_path(path, options, storage, allowed_roots, ())
    return opened if isinstance(opened, SystemTable) else refuse_plain_table(os.fspath(path))


def attach_duckdb(connection: duckdb.DuckDBPyConnection, name: str, catalog: Catalog) -> AttachedCatalog:
    """Show the tables of a catalog as views of DuckDB, which pushes its columns and filters down to them.

    All views have the newest snapshots of this moment. They change together when `refresh` of the result is called,
    and after each commit to a table of its attribute `catalog`. A PaimonWarning names a table that cannot be opened.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        The connection; its other cursors see the views, too.
    name : str
        The name of a new database in DuckDB: the table ``shop.orders`` is ``name.shop.orders``.
    catalog : Catalog
        The catalog.

    Returns
    -------
    AttachedCatalog
        Its `refresh` shows newer snapshots, its `catalog` is the same catalog with this refresh after each commit, and
        `detach` removes the views.

    Raises
    ------
    AlreadyExists
        DuckDB has a database of this name.
    InvalidRequest
        Two names of tables differ only in case, so that DuckDB takes them for one.

    Examples
    --------
    >>> import duckdb, paimon
    >>> catalog = paimon.connect("memory://attach-duckdb")
    >>> catalog.create_database("shop")
    >>> orders = catalog.create_table("shop.orders", "id BIGINT NOT NULL, amount INT")
    >>> snapshot_ids = orders.write([{"id": 1, "amount": 5}, {"id": 2, "amount": 9}]).snapshot_ids
    >>> connection = duckdb.connect()
    >>> attached = paimon.attach_duckdb(connection, "lake", catalog)
    >>> connection.sql("SELECT amount FROM lake.shop.orders WHERE id = 2").fetchall()
    [(9,)]
    """
    from paimon.adapters.queries.duckdb_views import AttachedCatalog

    return AttachedCatalog(connection, name, catalog)


def attach_datafusion(context: datafusion.SessionContext, name: str, catalog: Catalog) -> AttachedContext:
    """Show the tables of a catalog as a catalog of DataFusion, which pushes its columns and filters down to them.

    All tables have the newest snapshots of this moment. They change together when `refresh` of the result is called.
    A PaimonWarning names a table that cannot be opened.

    Parameters
    ----------
    context : datafusion.SessionContext
        The session.
    name : str
        The name of a new catalog in DataFusion: the table ``shop.orders`` is ``name.shop.orders``.
    catalog : Catalog
        The catalog.

    Returns
    -------
    AttachedContext
        Its `refresh` shows newer snapshots.

    Raises
    ------
    AlreadyExists
        DataFusion has a catalog of this name.
    MissingExtra
        The extra ``datafusion`` is not installed.
    """
    try:
        from paimon.adapters.queries.datafusion_catalog import AttachedContext
    except ModuleNotFoundError as missing:
        raise missing_extra("A catalog of DataFusion", "datafusion") from missing
    return AttachedContext(context, name, catalog)


def scan_daft(source: Scannable | str | os.PathLike[str]) -> daft.DataFrame:
    """Return the rows of a table as a lazy frame of Daft, which reads the columns that a query needs, split by split.

    Daft evaluates its conditions itself, and reads all splits. Give a scan with ``where=`` to read fewer files.

    Parameters
    ----------
    source : Table, Scan, SystemTable, or str or path
        What to read, or the path of a table as in `open_table`.

    Returns
    -------
    daft.DataFrame
        A frame with the rows of one snapshot.

    Raises
    ------
    InvalidRequest
        The source is none of these.
    NotFound
        There is no table at this path.
    MissingExtra
        The extra ``daft`` is not installed.
    """
    opened = _open_source(source, "to_dataset")
    try:
        from paimon.datasets.daft_frames import scan_dataset
    except ModuleNotFoundError as missing:
        raise missing_extra("A frame of Daft", "daft") from missing
    return scan_dataset(opened.to_dataset())


def scan_polars(source: Readable | str | os.PathLike[str]) -> pl.LazyFrame:
    """Return the rows of a table as a lazy frame of Polars, which reads what a query needs of one snapshot.

    Parameters
    ----------
    source : Table, Scan, SystemTable, or str or path
        What to read, or the path of a table as in `open_table`.

    Returns
    -------
    polars.LazyFrame
        As `Scan.lazy` returns it.

    Raises
    ------
    InvalidRequest
        The source is none of these.
    NotFound
        There is no table at this path.
    MissingExtra
        The extra ``polars`` is not installed.
    """
    frame: pl.LazyFrame = _open_source(source, "lazy").lazy()
    return frame


def _open_source(source: Any, method: str) -> Any:
    """Return a table or scan, or open the table at a path; refuse what lacks the method."""
    opened = open_table(source) if isinstance(source, str | os.PathLike) else source
    if not callable(getattr(type(opened), method, None)):
        hint = "pass a table, a scan, or the path of a table"
        raise InvalidRequest(f"A {type(opened).__name__} is not a table.", subject="source", hint=hint)
    return opened


def read_files(
    source: str | os.PathLike[str] | BinaryIO | Sequence[str | os.PathLike[str] | BinaryIO],
    format: str | None = None,
    *,
    storage: Mapping[str, object] | None = None,
) -> FileRows:
    r"""Return the rows of files, which all methods take that take a data frame.

    Parameters
    ----------
    source : str, path, binary file, or a sequence of these
        Paths, URLs of storages that fsspec knows, and patterns: ``"orders-*.csv.gz"``, ``"s3://bucket/**/*.parquet"``.
        A file that is open for reading bytes is read once.
    format : str, optional
        ``"parquet"``, ``"orc"``, ``"avro"``, ``"csv"``, ``"json"`` (one object a line) or ``"arrow"``; by default the
        extension of each file. The extensions .gz, .bz2, .zst, .lz4, .xz and .zip are those of a compression.
    storage : mapping, optional
        Storage options for URLs, as in `connect`.

    Returns
    -------
    FileRows
        Its attribute `schema` has the columns of the first file. No row is read yet.

    Raises
    ------
    NotFound
        There is no such file, or a pattern matches none.
    InvalidRequest
        The extension of a file names no format.

    Examples
    --------
    >>> import paimon, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "orders.csv"
    >>> _ = path.write_text("id,amount\n1,5\n2,9\n")
    >>> catalog = paimon.connect("memory://read-files")
    >>> catalog.create_database("shop")
    >>> orders = catalog.create_table("shop.orders", paimon.read_files(path))
    >>> orders.write(path).rows
    2
    """
    sources = source if isinstance(source, list | tuple) else [source]
    return _row_files(FormatsOnDemand(MemoryBudget().bytes)).open(sources, format, _check_storage(storage))


def _open_at_path(
    path: str | os.PathLike[str],
    options: Mapping[str, object] | None,
    storage: Mapping[str, object] | None,
    allowed_roots: Sequence[str],
    callbacks: Sequence[CommitCallback] | Mapping[str, CommitCallback],
) -> Table | SystemTable:
    location, _ = split_table_path(path)
    roots = _to_locations(allowed_roots)
    engine = _with_callbacks(engine_for(location, _check_storage(storage), {}, roots), callbacks)
    return open_with_engine(engine, path, options, roots)


def open_with_engine(
    engine: Engine,
    path: str | os.PathLike[str],
    options: Mapping[str, object] | None = None,
    allowed_roots: Sequence[str] = (),
) -> Table | SystemTable:
    """Open a table or a system table with the ports of an existing engine, at its newest schema.

    `options` are dynamic options. `allowed_roots` are directories outside the table that may contain its files.
    """
    load_module("paimon.table")  # with the first table, so that connecting is fast
    from paimon.table import open_at

    text = {key: option_text(value) for key, value in check_mapping(options, "options").items()}
    location, identifier = split_table_path(path)
    return open_at(engine, location, identifier, text, tuple(allowed_roots))


def split_table_path(path: str | os.PathLike[str]) -> tuple[str, Identifier]:
    """Split a table's path into directory and names; no database if the parent does not end in ``.db``."""
    parent, slash, name = location_of(path).rpartition("/")
    table, branch, system = split_suffixes(name)
    database = parent.rpartition("/")[2]
    database = database.removesuffix(".db") if database.endswith(".db") else ""
    return f"{parent}{slash}{table}", Identifier(database, table, branch, system)


def catalog_for(location: str, storage: Mapping[str, object], options: Mapping[str, str]) -> Catalog:
    """Create a warehouse's catalog with an engine of its own; it is pickled as this call, without secrets."""
    recipe = (catalog_for, (location, remove_secrets(storage), remove_secrets(options)))
    engine, store = engine_for(location, storage, options), _catalog_store(location, storage, options)
    return Catalog(engine, store, options, recipe, _connect_for_sql)


def _connect_for_sql(warehouse: str, options: Mapping[str, object]) -> Catalog:
    """Open the warehouse that CREATE CATALOG names."""
    return open_warehouse(warehouse, options)


def engine_for(
    location: str, storage: Mapping[str, object], options: Mapping[str, str], allowed_roots: Sequence[str] = ()
) -> Engine:
    """Create an engine with the adapters for a location, which has the form of `location_of`. `options` are checked.

    The engine has its own cache, and is pickled as this call, without secrets. `allowed_roots` are directories outside
    the location that may contain files. May change Arrow's memory pool; see `docs/reference/environment.md`.
    """
    roots = (*allowed_roots, *filter(None, options.get(_ROOTS, "").split(",")))
    files = _catalog_files(location, storage, options, roots)
    engine = assemble_engine(files, options, {})
    return evolve(
        engine,
        snapshots=engine.snapshots if "://" in location else LockedSnapshotCommit(files),
        tables=None
        if options.get(_METASTORE, "filesystem") == "filesystem"
        else _catalog_store(location, storage, options),
        row_files=_row_files(engine.formats, location, storage),
        recipe=(engine_for, (location, remove_secrets(storage), remove_secrets(options), tuple(allowed_roots))),
        allowed_roots=roots,
    )


def assemble_engine(files: FileIO, options: Mapping[str, str], formats: Mapping[str, FormatIO]) -> Engine:
    """Create an engine on a storage; without a recipe it cannot be pickled. `formats` are further ones."""
    choose_memory_pool()
    files = stoppable_files(files)
    footers, temp = LruCache(_FOOTER_BYTES), LocalTempStore()
    cache = LruCache(release=release_free_memory, others=[footers])  # deleted files leave both
    expressions, queries, groups = PolarsEvaluator(DuckdbEvaluator()), _queries(options), ThreadCommitGroups()
    abandon_in_children(footers, cache, temp, expressions, groups)
    file_formats = FormatsOnDemand(_memory(options).bytes, footers, formats, InstalledFormats())
    return Engine(
        files=files,
        formats=file_formats,
        records=RecordsOnDemand(),
        snapshots=PutIfAbsentSnapshotCommit(files),
        clock=SystemClock(),
        ids=RandomIds(),
        random=SystemRandom(),
        executor=_executor(options),
        temp=temp,
        observer=LoggingObserver(),
        cache=cache,
        memory=_memory(options),
        process=SystemProcessEffects(),
        expressions=expressions,
        queries=queries,
        row_files=_row_files(file_formats),
        reports=HttpReports(),
        commit_groups=groups,
    )


def _row_files(
    formats: Mapping[str, FormatIO], warehouse: str = "", storage: Mapping[str, object] | None = None
) -> ArrowRowFiles:
    """Return what opens files, by default with the storage options that a warehouse has for their place."""

    def open_storage(location: str, given: Mapping[str, object], roots: Sequence[str]) -> FileIO:
        options = given or select_options(location, warehouse, storage or {})
        return stoppable_files(files_at(location, options, MemoryBudget().bytes, roots))

    return ArrowRowFiles(open_storage, location_of, formats)


def _with_callbacks(engine: Engine, callbacks: Sequence[CommitCallback] | Mapping[str, CommitCallback]) -> Engine:
    return with_callbacks(engine, [callbacks] if isinstance(callbacks, Mapping) else callbacks)


def location_of(path: str | os.PathLike[str]) -> str:
    """Convert a path or URL to an absolute local path or a URL without a slash at the end, as the adapters use it."""
    try:
        text = check_path(os.fspath(path), "path")
    except TypeError as error:
        hint = "pass a str or a pathlib.Path"
        raise InvalidRequest(f"Path must be text, not {type(path).__name__}", subject="path", hint=hint) from error
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    if "://" in text:
        return text.rstrip("/")
    try:
        return os.path.abspath(Path(text).expanduser())  # noqa: PTH100  (symbolic links are not resolved)
    except RuntimeError as error:  # the home directory of a user that does not exist
        raise InvalidRequest(f"Path {text!r} cannot be resolved: {error}", subject="path") from error


def _to_locations(given: object) -> tuple[str, ...]:
    if isinstance(given, str | bytes | os.PathLike) or not isinstance(given, Iterable):
        raise InvalidRequest(
            f"Argument 'allowed_roots' must be a list of paths, not {given!r}", subject="allowed_roots"
        )
    roots = tuple(location_of(root) for root in given)
    if any(has_password(root) for root in roots):
        hint = "pass user and password as storage options, which never appear in paths and messages"
        raise InvalidRequest(
            "Argument 'allowed_roots' names a URL with credentials", subject="allowed_roots", hint=hint
        )
    return roots


def _check_storage(storage: object) -> Mapping[str, object]:
    if storage is None:
        return {}
    if not isinstance(storage, Mapping):
        hint = 'for example storage={"endpoint": "…"}'
        raise InvalidRequest(
            f"Argument 'storage' must be a mapping, not a {type(storage).__name__}", subject="storage", hint=hint
        )
    for name, value in storage.items():
        if "://" in name and not isinstance(value, Mapping):
            wrong = f"Argument 'storage' has no mapping under {remove_password(name)!r}"
            raise InvalidRequest(wrong, subject="storage", hint='for example storage={"s3://cold": {"region": "…"}}')
    return storage


def _option_value(key: str, value: object) -> str:
    """Return the text of an option; roots are separated by commas."""
    if _option_name(key) != _ROOTS:
        return option_text(value)
    roots = _to_locations(value.split(",") if isinstance(value, str) else value)
    if any("," in root for root in roots):
        raise InvalidRequest("Argument 'allowed_roots' names a path with a comma", subject=_ROOTS, hint="rename it")
    return ",".join(roots)


def _option_name(key: str) -> str:
    name = key.replace("_", "-")
    return f"jdbc.{name.removeprefix('jdbc-')}" if name.startswith("jdbc-") else name


def _check_offered(key: str, name: str, own: Sequence[str], offer: Offer) -> None:
    """Check that the library or a package has what an option names."""
    if name in own or name in list_offers(offer):
        return
    hint = f"known are: {', '.join((*own, *list_offers(offer)))}; packages offer more in {offer.group!r}"
    if name in _FOREIGN_METASTORES:
        raise Unsupported(f"metastore {name!r}", hint=hint)
    message = f"{offer.noun.capitalize()} {redact_secrets(name, {})!r} is not known"
    raise InvalidRequest(message, subject=key, hint=hint)


def _check_options(options: Mapping[str, str]) -> None:
    metastore = options.get(_METASTORE, _METASTORES[0])
    _check_offered(_METASTORE, metastore, _METASTORES, CATALOGS)
    _check_offered(_QUERY_ENGINE, options.get(_QUERY_ENGINE, _QUERY_ENGINES[0]), _QUERY_ENGINES, QUERY_ENGINES)
    known = (*_COMMON, *(_JDBC_OPTIONS if metastore == "jdbc" else ()))
    for key in options:
        if key == f"{DEFAULT_OPTION}{PATHS}":  # orphan removal of one table would delete the files of the others
            own = f"set {PATHS!r} for each table, with a root of its own"
            raise InvalidRequest(f"Option {key!r} would give all tables the same roots", subject=key, hint=own)
        if key not in known and not key.startswith(DEFAULT_OPTION) and metastore in _METASTORES:
            hint = did_you_mean(key, (*known, "storage", f"{DEFAULT_OPTION}X"))
            if key in _JDBC_OPTIONS:
                hint = 'also pass metastore="jdbc"'
            raise InvalidRequest(f"Catalog option {key!r} is not known", subject=key, hint=hint)


def _catalog_store(location: str, storage: Mapping[str, object], options: Mapping[str, str]) -> CatalogStore:
    return stoppable_store(_plain_catalog_store(location, storage, options))


def _plain_catalog_store(location: str, storage: Mapping[str, object], options: Mapping[str, str]) -> CatalogStore:
    metastore = options.get(_METASTORE, "filesystem")
    if metastore != "jdbc":
        files = stoppable_files(files_at(location, storage, _memory(options).bytes))
        if metastore == "filesystem":
            return FileSystemCatalogStore(files, location)
        own = {key: options[key] for key in options if key not in _COMMON and not key.startswith(DEFAULT_OPTION)}
        return open_catalog(metastore, files, location, own)
    from paimon.adapters.catalogs.jdbc import jdbc_store

    inner = files_at(location, _trust_catalog_lock(location, storage), _memory(options).bytes)
    return jdbc_store(stoppable_files(inner), location, options)


def _catalog_files(
    location: str, storage: Mapping[str, object], options: Mapping[str, str], allowed_roots: Sequence[str]
) -> FileIO:
    if options.get(_METASTORE) != "jdbc":
        return files_at(location, storage, _memory(options).bytes, allowed_roots)
    try:
        from paimon.adapters.catalogs.jdbc import locked_files
    except ModuleNotFoundError as missing:
        if not is_optional(missing.name):
            raise
        raise missing_extra("a JDBC catalog", "sqlalchemy") from missing
    inner = files_at(location, _trust_catalog_lock(location, storage), _memory(options).bytes, allowed_roots)
    return locked_files(inner, location, options)


def _trust_catalog_lock(location: str, storage: Mapping[str, object]) -> Mapping[str, object]:
    """Allow a storage without a conditional create, because the lock of the catalog replaces it."""
    return {**storage, SINGLE_WRITER: True} if "://" in location else storage


def _queries(options: Mapping[str, str]) -> QueryEngine:
    memory, name = _memory(options), options.get(_QUERY_ENGINE, _QUERY_ENGINES[0])
    if name not in _QUERY_ENGINES:
        return open_queries(name, memory.bytes // 2, _threads(options))
    queries = QueriesOnDemand(memory.bytes // 2, _threads(options))
    abandon_in_children(queries)
    return queries


def _memory(options: Mapping[str, str]) -> MemoryBudget:
    size = parse_memory(options[_MEMORY], _MEMORY) if _MEMORY in options else MemoryBudget().bytes
    return MemoryBudget(size, _threads(options))


def _executor(options: Mapping[str, str]) -> Executor:
    threads = _threads(options)
    return ThreadExecutor(threads) if threads > 1 else SerialExecutor()


def _threads(options: Mapping[str, str]) -> int:
    text = options.get(_THREADS)
    if text is not None and not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise InvalidRequest(f"Option 'threads' must be a whole number of at least 1, not {text!r}", subject=_THREADS)
    return (os.cpu_count() or 1) if text is None else int(text)


def translate_spark_error(error: Exception) -> PaimonError:
    """Convert an exception of Spark to the error of the task, or to StorageError."""
    from paimon.adapters.executors.spark import to_paimon_error

    return to_paimon_error(error)


def spark_executor(
    session: Any, encode: Callable[[Any], bytes], decode: Callable[[bytes], Any], table_name: str = ""
) -> Executor:
    """Create an executor of tasks on Spark; `encode` and `decode` convert results at both ends."""
    from paimon.adapters.executors.spark import SparkExecutor

    executor: Executor = SparkExecutor(session, encode, decode, freeze_objects, table_name)
    return executor
