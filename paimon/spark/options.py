"""Parse the options of the data source, and write the options that open a table again.

Invariant: Spark shows options in its plans and converts their names to lower case. So no option is a secret, values
with case-sensitive names are JSON, and an unknown name is refused with the nearest known one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from paimon.catalog import Catalog
from paimon.domain.errors import InvalidRequest, Unsupported, did_you_mean
from paimon.domain.options.known_options import (
    ALIASES,
    CALLBACK_PREFIXES,
    FORMAT_PREFIXES,
    OPTIONS,
    TABLE_DEFAULT_PREFIX,
    canonical_key,
)
from paimon.domain.options.parse import parse_memory
from paimon.domain.scan.stream_tasks import BatchLimits
from paimon.domain.secrets import remove_secrets
from paimon.engines import catalog_for, engine_for, location_of, open_with_engine, split_table_path
from paimon.operations.read.time_travel import PinnedTable, load_pinned_table
from paimon.ports.engine import Engine
from paimon.scan import Scan
from paimon.spark.selection import decode_predicate
from paimon.system_table import SystemScan, SystemTable
from paimon.table import Table

PINNED = "pinned"
"""Option of `paimon.spark.read`: the snapshot and the schema that all uses of the data frame read."""

READ_MARK = "read-mark"
"""Option of `paimon.spark.read`: what a read of the newest snapshot reads; plans show it, and readers ignore it."""

PADS_TEXTS = "pads-texts"
"""Option of streams of attached catalogs: texts of `CHAR` are padded, as Spark itself does in batches."""

FILES_MARK = "files-mark"
"""Option of the files that Spark itself reads: their table and snapshot, for the error about a file that expired."""

WAREHOUSE = "warehouse"
_MEMORY = "memory:"
TIME_TRAVEL_OPTIONS = {
    "snapshot": "scan.snapshot-id",
    "tag": "scan.tag-name",
    "versionasof": "scan.version",
    "timestampasof": "scan.timestamp",
}
_START_MODES = ("from-snapshot", "from-snapshot-full", "from-timestamp")
"""Scan modes with which a stream starts in the past, and whose columns are the newest ones."""
_CONSUMER_ID = "consumer-id"
STORAGE, CATALOG = "storage", "catalog"
TABLE_OPTIONS, _ALLOWED_ROOTS = "table-options", "allowed-roots"
KIND_COLUMN, _COMMIT_USER, _COMMIT_IDENTIFIER = "kind-column", "commit-user", "commit-identifier"
_CHECKPOINT, _QUERY_NAME = "checkpointLocation", "queryName"
_OVERWRITE_MODE = "partitionOverwriteMode"
DYNAMIC, STATIC = "dynamic", "static"
ROW_KIND_COLUMN = "row-kind-column"
_MAX_FILES, _MAX_ROWS, _MAX_BYTES = "maxFilesPerTrigger", "maxRowsPerTrigger", "maxBytesPerTrigger"
_MIN_ROWS, _MAX_DELAY = "minRowsPerTrigger", "maxTriggerDelayMs"
READ_CHANGELOG, _AUDIT_LOG = "read.changelog", "$audit_log"
_DEFAULT_DELAY_MILLIS = 15 * 60 * 1000
WRITE_OPTIONS = (KIND_COLUMN, _COMMIT_USER, _COMMIT_IDENTIFIER, _OVERWRITE_MODE)
"""Options that have no effect in reads."""
ACCESS_OPTIONS = (STORAGE, CATALOG, _ALLOWED_ROOTS)
"""Options that say how tables are accessed, which an attached catalog knows."""
STREAM_WRITE_OPTIONS = (_CHECKPOINT, _QUERY_NAME)
"""Options that only `writeStream` has."""
STREAM_READ_OPTIONS = (ROW_KIND_COLUMN, _MAX_FILES, _MAX_ROWS, _MAX_BYTES, _MIN_ROWS, _MAX_DELAY)
"""Options that only `readStream` has."""
_DOCUMENTED_OPTIONS = (
    *("path", "snapshot", "tag", "versionAsOf", "timestampAsOf"),
    *(STORAGE, CATALOG, TABLE_OPTIONS, _ALLOWED_ROOTS, READ_CHANGELOG),
    *(*WRITE_OPTIONS, *STREAM_WRITE_OPTIONS, *STREAM_READ_OPTIONS),
)
BATCH_WRITE_OPTIONS = (_COMMIT_USER, _COMMIT_IDENTIFIER, _OVERWRITE_MODE)
"""Options that only a batch write has; a stream derives those of its commits from its checkpoint."""
_SOURCE_OPTIONS = {name.lower() for name in _DOCUMENTED_OPTIONS} | {PINNED, READ_MARK, PADS_TEXTS}
_PREFIXES = ("fields.", "file-index.", TABLE_DEFAULT_PREFIX, *FORMAT_PREFIXES, *CALLBACK_PREFIXES)
_JAVA_STREAM = "read.stream."
"""What Java's connector writes before the names of the limits of streams."""
_LEAVE_OUT = "leave it out"
_JAVA_OPTIONS = {
    "write.merge-schema": "use paimon.spark.write(frame, table, merge_schema=True), or MERGE WITH SCHEMA EVOLUTION",
    "write.merge-schema.type-widening": "call paimon.spark.write(frame, table, merge_schema='widen')",
    "write.merge-schema.explicit-cast": "call paimon.spark.write(frame, table, merge_schema='cast')",
    "write.use-v2-write": _LEAVE_OUT,
    "write.hive-style-dynamic-partition.enabled": "name the columns in INSERT, in any order",
    "read.changelog": "give it to spark.readStream or spark.read, or query the system table audit_log",
    "read.allow.fullscan": "give conditions on partition columns",
    "requiredsparkconfscheck.enabled": _LEAVE_OUT,
    "legacy-timestamp-mapping.enabled": "cast to TIMESTAMP in the query",
    "source.split.target-size-with-column-pruning": "set source.split.target-size",
    **{f"read.stream.{name.lower()}": f"give {name} to spark.readStream" for name in
       (_MAX_FILES, _MAX_ROWS, _MAX_BYTES, _MIN_ROWS, _MAX_DELAY)},
}  # fmt: skip
"""What to do instead of the options that only Java's connector has, by name in lower case."""
_USAGE_HINT = (
    "create the table with paimon.spark.connect(spark, warehouse).sql('CREATE TABLE …') or "
    "paimon.connect(warehouse).create_table(…), read it with .load(path), write it with "
    "paimon.spark.write(df, path); in SQL: CREATE TEMPORARY VIEW v USING paimon OPTIONS (path '…')"
)


@frozen
class SourceOptions:
    """The options of one read or write. No field contains a secret."""

    # Path of a table or a system table, or its name if `catalog` has a warehouse
    path: str
    table_options: Mapping[str, str] = field(factory=dict)
    # Storage options of `paimon.connect`
    storage: Mapping[str, object] = field(factory=dict)
    # Catalog options of `paimon.connect`, and the path of the warehouse
    catalog: Mapping[str, str] = field(factory=dict)
    # Directories outside the table that may contain its files
    allowed_roots: tuple[str, ...] = ()
    # Ids of the snapshot and the schema to read, and what a planned scan selects (`paimon.spark.selection`)
    pinned: Mapping[str, Any] | None = None
    # Column with row kinds, for writes
    kind_column: str | None = None
    commit_user: str | None = None
    commit_identifier: int | None = None
    # "static" or "dynamic", for batch writes; None for that of the session
    overwrite_mode: str | None = None
    # Checkpoint of the query, for stream writes
    checkpoint: str | None = None
    # Column with row kinds, for stream reads
    row_kind_column: str | None = None
    # Whether texts of `CHAR` are padded, for stream reads
    pads_texts: bool = False
    # Size limits of a batch, for stream reads
    limits: BatchLimits = field(factory=BatchLimits)
    # A stream read waits for so many rows, but not longer than the delay after the batch before
    min_rows: int | None = None
    max_delay_millis: int = _DEFAULT_DELAY_MILLIS
    # Names of all options that were given, in lower case
    given: frozenset[str] = frozenset()

    @property
    def reads_stream(self) -> bool:
        """Whether the options are for a stream read, of which Spark says nothing when it asks for the columns."""
        has_start = self.table_options.get("scan.mode") in _START_MODES
        return has_start or not self.given.isdisjoint({*map(str.lower, STREAM_READ_OPTIONS), _CONSUMER_ID})

    @property
    def travels_in_time(self) -> bool:
        """Whether a batch read chooses a snapshot by one of the options that are for this alone."""
        return not self.given.isdisjoint(TIME_TRAVEL_OPTIONS)

    def check_use(self, use: str, refused: Sequence[str]) -> None:
        """Refuse options that have no effect in this use; `use` names it for the error, such as ``"df.write"``."""
        for name in refused:
            if name.lower() in self.given:
                raise InvalidRequest(f"Option {name!r} has no effect in {use}.", subject=name, hint="leave it out")

    def check_written(self, use: str) -> None:
        """Refuse table options that select what is read; a commit reads manifests, too."""
        read = [name for name in self.given if name.startswith(("scan.", "incremental-"))]
        self.check_use(use, [name for name in read if not name.startswith("scan.manifest.")])

    def open_source(self) -> Table | SystemTable:
        """Open the table or system table at its current state."""
        catalog = dict(self.catalog)
        warehouse = catalog.pop(WAREHOUSE, None)
        if warehouse is not None and _is_table_name(self.path):
            return catalog_for(location_of(warehouse), self.storage, catalog).table(self.path, self.table_options)
        location = split_table_path(self.path)[0] if warehouse is None else warehouse
        engine = engine_for(location, self.storage, catalog, self.allowed_roots)
        return open_with_engine(engine, self.path, self.table_options, self.allowed_roots)

    def open_catalog(self) -> Catalog:
        """Open the warehouse of the options."""
        catalog = dict(self.catalog)
        return catalog_for(location_of(catalog.pop(WAREHOUSE)), self.storage, catalog)

    def open_target(self) -> Table:
        """Open the table for a write; refuse a system table."""
        opened = self.open_source()
        if not isinstance(opened, Table):
            raise InvalidRequest(
                f"Table {opened.name!r} is a system table, which is read-only.",
                subject=opened.name,
                hint="leave out the $ part",
            )
        return opened


@frozen(eq=False)
class Source:
    """A table or system table to read, at a pinned snapshot if there is one."""

    opened: Table | SystemTable
    pinned: Mapping[str, Any] | None = None

    @property
    def left_out(self) -> frozenset[str]:
        """The names of the files that another reader reads."""
        return frozenset((self.pinned or {}).get("without", ()))

    def scan(self, columns: Sequence[str] | None = None) -> Scan | SystemScan:
        """Create a scan with the condition and the limit of the planned data frame; reads no rows."""
        if self.pinned is None or not isinstance(self.opened, Table):
            scan = self.opened.scan(columns)
            return scan.without_retracts() if isinstance(scan, Scan) else scan
        context = self.opened.context
        state: PinnedTable = load_pinned_table(context, self.pinned["snapshot"], self.pinned["schema"])
        sent, limit = self.pinned.get("where"), self.pinned.get("limit")
        where = None if sent is None else decode_predicate(sent)
        return Scan(context, columns=columns, where=where, limit=limit, pinned=state)


def parse_source_options(options: Mapping[str, str], defaults: Mapping[str, str] | None = None) -> SourceOptions:
    """Parse the options of the data source; refuse secrets and options that are unknown.

    `defaults` has the `storage` and `catalog` of the session's warehouse; it applies to tables of this warehouse.
    """
    given = {k.lower().removeprefix(_JAVA_STREAM): v for k, v in options.items()}
    path = given.get("path")
    if "provider" in given or not path:
        is_catalog_table = "provider" in given or not given
        raise InvalidRequest(
            ("Spark's catalog cannot contain Paimon tables." if is_catalog_table else "Option 'path' is missing.")
            + " Spark passes no options, keys or location of its catalog to a Python source.",
            subject="path",
            hint=_USAGE_HINT,
        )
    _check_names(given)
    given = _apply_defaults(given, path, defaults or {})
    if _parse_flag(given, READ_CHANGELOG):
        path = path.rstrip("/").removesuffix(_AUDIT_LOG) + _AUDIT_LOG
    identifier = given.get(_COMMIT_IDENTIFIER)
    return SourceOptions(
        path=path,
        table_options=_table_options(given),
        storage=_parse_public_mapping(given, STORAGE),
        catalog={name: str(value) for name, value in _parse_public_mapping(given, CATALOG).items()},
        allowed_roots=_parse_roots(given.get(_ALLOWED_ROOTS, "")),
        pinned=_parse_json(given[PINNED], PINNED) if PINNED in given else None,
        kind_column=given.get(KIND_COLUMN),
        commit_user=given.get(_COMMIT_USER),
        commit_identifier=None if identifier is None else _parse_whole_number(_COMMIT_IDENTIFIER, identifier),
        overwrite_mode=_parse_overwrite_mode(given),
        row_kind_column=given.get(ROW_KIND_COLUMN),
        pads_texts=_parse_flag(given, PADS_TEXTS),
        limits=BatchLimits(*(_parse_limit(given, name) for name in (_MAX_FILES, _MAX_ROWS, _MAX_BYTES))),
        min_rows=_parse_min_rows(given),
        max_delay_millis=_parse_limit(given, _MAX_DELAY) or _DEFAULT_DELAY_MILLIS,
        checkpoint=given.get(_CHECKPOINT.lower()),
        given=frozenset(given),
    )


def _apply_defaults(given: dict[str, str], path: str, defaults: Mapping[str, str]) -> dict[str, str]:
    """Add the options of the session's warehouse, if the table is in it, and no other catalog is given."""
    if CATALOG in given or CATALOG not in defaults:
        return given
    warehouse = location_of(json.loads(defaults[CATALOG])[WAREHOUSE])
    is_inside = _is_table_name(path) or f"{split_table_path(path)[0]}/".startswith(f"{warehouse}/")
    return {**defaults, **given} if is_inside else given


def _is_table_name(path: str) -> bool:
    """Return whether a path has no directory, so that it is a name where there is a warehouse."""
    return "/" not in path and "." in path


def to_source_options(table: Table | SystemTable) -> dict[str, str]:
    """Return the options with which the data source opens the same table, storage and catalog.

    Raises `Unsupported` if the engine of the table was not created by `paimon.connect` or `paimon.open_table`.
    """
    location, storage, catalog, roots = find_recipe(table.engine)
    definition = table.definition
    stored = definition.schema.options
    dynamic = {k: v for k, v in definition.options.values.items() if stored.get(k) != v}
    if definition.branch != "main":
        dynamic["branch"] = definition.branch
    given: dict[str, Any] = {
        STORAGE: dict(storage),
        CATALOG: {WAREHOUSE: location, **catalog} if catalog or location != definition.location else {},
        TABLE_OPTIONS: dynamic,
        _ALLOWED_ROOTS: list(dict.fromkeys((*roots, *definition.allowed_roots))),
    }
    return {name: format_option(name, value) for name, value in given.items() if value}


def find_recipe(engine: Engine) -> tuple[str, Mapping[str, object], Mapping[str, str], Sequence[str]]:
    """Return what an engine was created from, without secrets: location, storage, catalog options and allowed roots.

    Raises `Unsupported` if the engine was not created by `paimon.connect` or `paimon.open_table`.
    """
    if engine.recipe is None or engine.recipe[0] is not engine_for:
        hint = "open the table with paimon.connect or paimon.open_table"
        raise Unsupported("reading in Spark through an engine of your own", hint=hint)
    location, storage, catalog, roots = engine.recipe[1]
    return location, storage, catalog, roots


def check_shared_storage(table: Table | SystemTable) -> None:
    """Refuse a table at a ``memory:`` location: Spark tasks run in other processes, and would lose its files."""
    check_shared_location(table.definition.location)


def check_shared_location(location: str) -> None:
    """Refuse the location of a table in the memory of one process."""
    if location.startswith(_MEMORY):
        raise Unsupported(f"{location!r} on Spark, whose tasks are other processes", hint="use a directory or a store")


def is_table_option(name: str) -> bool:
    """Return whether a name is that of a table option."""
    return canonical_key(name) in OPTIONS or name.startswith(_PREFIXES)


def explain_java_option(name: str) -> None:
    """Refuse an option that only Java's connector has, and name what does the same."""
    hint = _JAVA_OPTIONS.get(name.lower())
    if hint is not None:
        raise InvalidRequest(f"Option {name!r} of Java's connector has no effect here.", subject=name, hint=hint)


def _check_names(given: Mapping[str, str]) -> None:
    for name in given:
        if name not in _SOURCE_OPTIONS and not is_table_option(name):
            explain_java_option(name)
            known = [*_DOCUMENTED_OPTIONS, *OPTIONS, *ALIASES]
            raise InvalidRequest(
                f"Option {name!r} of the data source paimon is unknown.", subject=name, hint=did_you_mean(name, known)
            )


def _table_options(given: Mapping[str, str]) -> dict[str, str]:
    plain = {k: v for k, v in given.items() if k not in _SOURCE_OPTIONS}
    plain |= {k: str(v) for k, v in _parse_public_mapping(given, TABLE_OPTIONS).items()}
    ways = [name for name in TIME_TRAVEL_OPTIONS if name in given]
    others = [key for key in TIME_TRAVEL_OPTIONS.values() if key in plain]
    if len(ways) + len(others) > 1:
        raise InvalidRequest(
            f"Options {', '.join((*ways, *others))} select different snapshots.", hint="give exactly one of them"
        )
    return plain | {TIME_TRAVEL_OPTIONS[name]: given[name] for name in ways}


def _parse_public_mapping(given: Mapping[str, str], name: str) -> dict[str, Any]:
    """Parse a JSON object, and refuse secrets in it."""
    if name not in given:
        return {}
    found = _parse_json(given[name], name)
    if not isinstance(found, dict):
        raise InvalidRequest(f"Option {name!r} must be a JSON object.", subject=name, hint='write {"name": "value"}')
    public = remove_secrets(found)
    secret = sorted(key for key in found if found[key] != public.get(key))
    if secret:
        hint = "set credentials in the environment of the processes, or name a function in the option login"
        raise InvalidRequest(
            f"Option {secret[0]!r} in {name!r} is a secret, and Spark shows options in its plans.",
            subject=name,
            hint=hint,
        )
    return found


def _parse_json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # the message of the ValueError quotes the text, which may be a secret
        raise InvalidRequest(
            f"Option {name!r} must be JSON.", subject=name, hint="write a JSON object or list, as json.dumps returns it"
        ) from None


def format_option(name: str, value: object) -> str:
    """Return a value as the JSON text of an option."""
    try:
        return json.dumps(value)
    except TypeError as error:
        hint = "use text, numbers, lists and mappings; name a function in the option login for other objects"
        raise InvalidRequest(f"Option {name!r} cannot be sent to Spark: {error}.", subject=name, hint=hint) from None


def _parse_roots(text: str) -> tuple[str, ...]:
    return tuple(_parse_json(text, _ALLOWED_ROOTS)) if text.startswith("[") else tuple(r for r in text.split(",") if r)


def _parse_limit(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    limit = parse_memory(text) if name == _MAX_BYTES else _parse_whole_number(name, text)
    if limit < 1:
        raise InvalidRequest(f"Option {name!r} must be at least 1, not {text!r}.", subject=name)
    return limit


def _parse_min_rows(given: Mapping[str, str]) -> int | None:
    least, most = _parse_limit(given, _MIN_ROWS), _parse_limit(given, _MAX_ROWS)
    if least is None and _MAX_DELAY.lower() in given:
        hint = f"set {_MIN_ROWS!r}, too"
        raise InvalidRequest(f"Option {_MAX_DELAY!r} has no effect alone.", subject=_MAX_DELAY, hint=hint)
    if least is not None and most is not None and least > most:
        raise InvalidRequest(f"Option {_MIN_ROWS!r} is larger than {_MAX_ROWS!r}.", subject=_MIN_ROWS)
    return least


def _parse_overwrite_mode(given: Mapping[str, str]) -> str | None:
    text = given.get(_OVERWRITE_MODE.lower())
    mode = None if text is None else text.lower()
    if mode not in (None, DYNAMIC, STATIC):
        hint = f"use {STATIC} or {DYNAMIC}"
        raise InvalidRequest(f"Option {_OVERWRITE_MODE!r} is {text!r}.", subject=_OVERWRITE_MODE, hint=hint)
    return mode


def _parse_flag(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "false").lower()
    if text not in ("true", "false"):
        raise InvalidRequest(f"Option {name!r} must be true or false, not {text!r}.", subject=name)
    return text == "true"


def _parse_whole_number(name: str, text: str) -> int:
    if not text.lstrip("-").isdecimal():
        raise InvalidRequest(f"Option {name!r} must be a whole number, not {text!r}.", subject=name)
    return int(text)
