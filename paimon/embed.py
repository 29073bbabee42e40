"""Build an engine and a catalog on ports of your own.

The ports that you do not supply are those of the library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from paimon.adapters.cancellation import stoppable_store
from paimon.adapters.catalogs.filesystem import FileSystemCatalogStore
from paimon.adapters.files.output import BufferedOutput
from paimon.adapters.guarded import guard_catalog_store, guard_files, guard_format
from paimon.catalog import Catalog
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.extras import is_optional, missing_extra
from paimon.engines import assemble_engine
from paimon.ports.catalogs import CatalogStore
from paimon.ports.engine import Engine
from paimon.ports.files import FileIO
from paimon.ports.formats import FormatIO
from paimon.ports.observer import Observer

__all__ = ["BufferedOutput", "make_catalog", "make_engine", "make_opentelemetry_observer"]

_FORMAT_NAME = re.compile(r"[a-z][a-z0-9_-]*")


def make_engine(files: FileIO, formats: Mapping[str, FormatIO] | None = None, **ports: Any) -> Engine:
    """Create an engine on a storage of your own.

    Parameters
    ----------
    files : FileIO
        The storage of all tables. Snapshots are published by its `put_if_absent`, unless you supply `snapshots`.
    formats : mapping of str to FormatIO, optional
        File formats of your own by name, next to those of the library. A table has one by ``file.format``.
    **ports : object
        Other ports by their attribute of `Engine`, such as `executor`, `snapshots` or `observer`.

    Returns
    -------
    Engine
        The engine. It can be pickled if you supply `recipe`. Errors of `files` and `formats` that are not a
        PaimonError are raised as StorageError or CorruptTable with the name of the adapter.

    Raises
    ------
    InvalidRequest
        A port has an unknown name, or a format another name than its `identifier`.
    """
    known = {field.name for field in attrs.fields(Engine)} - {"files", "formats"}
    for name in ports:
        if name not in known:
            raise InvalidRequest(f"Port {name!r} does not exist", subject=name, hint=did_you_mean(name, known))
    for name, format_io in (formats or {}).items():
        if name != format_io.identifier or not _FORMAT_NAME.fullmatch(name):
            hint = "use the identifier in lower case as the name"
            raise InvalidRequest(
                f"Format {format_io.identifier!r} cannot have the name {name!r}", subject=name, hint=hint
            )
    guarded = {name: guard_format(format_io) for name, format_io in (formats or {}).items()}
    return attrs.evolve(assemble_engine(guard_files(files), {}, guarded), **ports)


def make_catalog(
    engine: Engine, warehouse: str, store: CatalogStore | None = None, options: Mapping[str, str] | None = None
) -> Catalog:
    """Create a catalog whose tables use an engine.

    Parameters
    ----------
    engine : Engine
        The ports of all tables.
    warehouse : str
        A path that the storage of the engine knows, without a slash at the end. It need not exist.
    store : CatalogStore, optional
        Where databases and tables are recorded. None: directories below the warehouse.
    options : mapping, optional
        Catalog options: ``table-default.X`` is copied into new tables as ``X``.

    Returns
    -------
    Catalog
        The catalog. It cannot be pickled.
    """
    if store is not None:
        return Catalog(engine, stoppable_store(guard_catalog_store(store)), options or {})
    own = FileSystemCatalogStore(engine.files, warehouse.rstrip("/"))
    return Catalog(engine, stoppable_store(own), options or {})


def make_opentelemetry_observer(tracer_provider: Any = None, meter_provider: Any = None) -> Observer:
    """Create an observer that reports spans and metrics to OpenTelemetry, and logs events.

    Parameters
    ----------
    tracer_provider, meter_provider : opentelemetry.trace.TracerProvider, opentelemetry.metrics.MeterProvider, optional
        Where they go; by default to the global providers of the process.

    Returns
    -------
    Observer
        The observer, for the field `observer` of an engine. `docs/reference/observer.md` lists the names.

    Raises
    ------
    MissingExtra
        The extra ``opentelemetry`` is not installed.
    """
    try:
        from paimon.adapters.opentelemetry_observer import OpenTelemetryObserver
    except ModuleNotFoundError as missing:
        if not is_optional(missing.name):
            raise
        raise missing_extra("An observer of OpenTelemetry", "opentelemetry") from missing
    return OpenTelemetryObserver(tracer_provider, meter_provider)
