"""The composition root: which adapters serve a location.

Law: the only module that imports driven adapters; the facades get their Engine from here and never import it. An
engine travels to other processes as the recipe that builds it (its location and options), never as live objects.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from paimon.adapters.cache import LruCache
from paimon.adapters.catalogs.filesystem import FileSystemCatalogStore
from paimon.adapters.effects import RandomIds, SystemClock, SystemRandom
from paimon.adapters.executors.serial import SerialExecutor
from paimon.adapters.executors.threads import ThreadExecutor
from paimon.adapters.files.opening import files_at, travelling
from paimon.adapters.formats.avro import AvroFormat
from paimon.adapters.formats.orc import OrcFormat
from paimon.adapters.formats.parquet import ParquetFormat
from paimon.adapters.formats.records import AvroRecordIO
from paimon.adapters.observers import SilentObserver
from paimon.adapters.snapshots.renaming import FileSnapshotCommit
from paimon.adapters.temp.local import LocalTempStore
from paimon.catalog import DEFAULT_OPTION, Catalog, option_text
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.identifier import Identifier, split_suffixes
from paimon.domain.options.parse import parse_memory
from paimon.ports.engine import Engine, MemoryBudget
from paimon.ports.executor import Executor
from paimon.system_table import SystemTable
from paimon.table import Table, open_at

_MEMORY = "memory-budget"
_THREADS = "threads"


def connect(warehouse: str | os.PathLike[str], **options: object) -> Catalog:
    """The file system catalog at a path or URL.

    Parameters
    ----------
    warehouse : str or path
        A local directory, or a URL of a file system that fsspec knows (``"memory://lake"``, ``"s3://bucket/lake"``).
    **options
        Catalog options (``table-default.X``), storage options of the file system (``storage={…}``), ``memory-budget``
        (such as ``"512 mb"``) and ``threads``. Underscores in option names may stand for dashes.

    Returns
    -------
    Catalog

    Raises
    ------
    InvalidRequest
        An option that is not known, or a value that cannot be.
    """
    storage = options.pop("storage", None) or {}
    if not isinstance(storage, Mapping):
        raise InvalidRequest("storage must be a mapping of storage options", subject="storage")
    text = {key.replace("_", "-"): option_text(value) for key, value in options.items()}
    for key in text:
        if key not in (_MEMORY, _THREADS) and not key.startswith(DEFAULT_OPTION):
            known = (_MEMORY, _THREADS, "storage", f"{DEFAULT_OPTION}X")
            raise InvalidRequest(f"there is no catalog option {key!r}", subject=key, hint=did_you_mean(key, known))
    location = location_of(warehouse)
    engine = engine_for(location, storage, text)
    return Catalog(engine, FileSystemCatalogStore(engine.files, location), text)


def open_table(
    path: str | os.PathLike[str],
    options: Mapping[str, object] | None = None,
    *,
    storage: Mapping[str, object] | None = None,
    allowed_roots: Sequence[str] = (),
) -> Table | SystemTable:
    """The table at a path or URL, without a catalog.

    Parameters
    ----------
    path : str or path
        The table's directory; ``"…/orders$snapshots"`` and ``"…/orders$branch_b"`` work too.
    options : mapping
        Dynamic options for this handle (``{"branch": "b", "scan.tag-name": "t"}``).
    storage : mapping
        Storage options of the file system.
    allowed_roots : sequence of str
        Roots outside the table that its files may lie under.

    Raises
    ------
    NotFound
        There is no table at that path.
    """
    text = {key: option_text(value) for key, value in (options or {}).items()}
    parent, slash, name = location_of(path).rpartition("/")
    table, branch, system = split_suffixes(name)
    location = f"{parent}{slash}{table}"
    database = parent.rpartition("/")[2]
    identifier = Identifier(database.removesuffix(".db") if database.endswith(".db") else "", table, branch, system)
    roots = tuple(location_of(root) for root in allowed_roots)
    return open_at(engine_for(location, storage or {}, {}), location, identifier, text, roots)


def engine_for(location: str, storage: Mapping[str, object], options: Mapping[str, str]) -> Engine:
    """An engine with the adapters that a location needs; it pickles as this call."""
    files = files_at(location, storage)
    memory = MemoryBudget(parse_memory(options[_MEMORY], _MEMORY)) if _MEMORY in options else MemoryBudget()
    return Engine(
        files=files,
        formats={f.identifier: f for f in (ParquetFormat(), OrcFormat(), AvroFormat())},
        records=AvroRecordIO(),
        snapshots=FileSnapshotCommit(files),
        clock=SystemClock(),
        ids=RandomIds(),
        random=SystemRandom(),
        executor=_executor(options),
        temp=LocalTempStore(),
        observer=SilentObserver(),
        cache=LruCache(),
        memory=memory,
        recipe=(engine_for, (location, travelling(storage), dict(options))),
    )


def location_of(path: str | os.PathLike[str]) -> str:
    """A path or URL in the form that the adapters take: local paths absolute, no slash at the end."""
    text = os.fspath(path)
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    if "://" in text:
        return text.rstrip("/")
    return os.path.abspath(Path(text).expanduser())  # noqa: PTH100  (links stay as they are named)


def _executor(options: Mapping[str, str]) -> Executor:
    text = options.get(_THREADS, "")
    if text and not (text.isascii() and text.isdecimal() and int(text)):
        raise InvalidRequest(f"threads is {text!r}", subject=_THREADS, hint="give a whole number, at least 1")
    threads = int(text) if text else os.cpu_count() or 1
    return ThreadExecutor(threads) if threads > 1 else SerialExecutor()
