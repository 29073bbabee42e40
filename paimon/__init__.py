"""The Apache Paimon table format in Python.

Read and write tables that are compatible with Java Paimon: append tables, and primary-key tables with one LSM tree per
bucket. Their files are on a file system or an object store.

>>> import paimon
>>> catalog = paimon.connect("lake")                                                       # doctest: +SKIP
>>> orders = catalog.create_table("shop.orders", "id BIGINT NOT NULL, amount DECIMAL(10, 2)",
...                               primary_keys=["id"], options={"bucket": 4})               # doctest: +SKIP
>>> orders.write([{"id": 1, "amount": "9.99"}])                                            # doctest: +SKIP
>>> orders.scan(where="amount > 5").to_arrow()                                             # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paimon.adapters.process_effects import load_module as load_module
from paimon.adapters.process_effects import prepare_allocator

if TYPE_CHECKING:
    from paimon.adapters.async_calls import iterate_async, run_async
    from paimon.adapters.cancellation import CancelToken, deadline
    from paimon.builders.direct_writes import WriteResult
    from paimon.builders.merge_builder import MergeBuilder, MergeResult
    from paimon.capture.event_formats import DEAD_LETTER_SCHEMA
    from paimon.capture.write_events import CdcResult, cdc
    from paimon.catalog import Catalog
    from paimon.domain.errors import (
        AlreadyExists,
        Cancelled,
        CommitConflict,
        CommitNotVisible,
        CommitOverwritten,
        CommitUncertain,
        CorruptTable,
        DeadlineExceeded,
        InvalidRequest,
        NotFound,
        PaimonError,
        PaimonWarning,
        SnapshotExpired,
        StorageError,
        TableDropped,
        TableReplaced,
        Unsupported,
    )
    from paimon.domain.extras import MissingExtra
    from paimon.domain.predicate.build import col
    from paimon.domain.schema.changes import (
        AddColumn,
        DropColumn,
        DropPrimaryKey,
        MoveColumn,
        Position,
        RemoveOption,
        RenameColumn,
        SchemaChange,
        SetColumnComment,
        SetColumnDefault,
        SetColumnNullability,
        SetColumnType,
        SetComment,
        SetOption,
    )
    from paimon.domain.snapshot.snapshot import Snapshot
    from paimon.engines import (
        attach_datafusion,
        attach_duckdb,
        connect,
        open_system_table,
        open_table,
        read_files,
        scan_daft,
        scan_polars,
    )
    from paimon.ports.callbacks import CommitEvent
    from paimon.scan import Scan
    from paimon.system_table import SystemTable
    from paimon.table import Table

__version__ = "0.1.0"

prepare_allocator()

_HOMES = {
    "DEAD_LETTER_SCHEMA": "paimon.capture.event_formats",
    "AddColumn": "paimon.domain.schema.changes",
    "AlreadyExists": "paimon.domain.errors",
    "CancelToken": "paimon.adapters.cancellation",
    "Cancelled": "paimon.domain.errors",
    "Catalog": "paimon.catalog",
    "CdcResult": "paimon.capture.write_events",
    "CommitConflict": "paimon.domain.errors",
    "CommitEvent": "paimon.ports.callbacks",
    "CommitNotVisible": "paimon.domain.errors",
    "CommitOverwritten": "paimon.domain.errors",
    "CommitUncertain": "paimon.domain.errors",
    "CorruptTable": "paimon.domain.errors",
    "DeadlineExceeded": "paimon.domain.errors",
    "DropColumn": "paimon.domain.schema.changes",
    "DropPrimaryKey": "paimon.domain.schema.changes",
    "InvalidRequest": "paimon.domain.errors",
    "MergeBuilder": "paimon.builders.merge_builder",
    "MergeResult": "paimon.builders.merge_builder",
    "MissingExtra": "paimon.domain.extras",
    "MoveColumn": "paimon.domain.schema.changes",
    "NotFound": "paimon.domain.errors",
    "PaimonError": "paimon.domain.errors",
    "PaimonWarning": "paimon.domain.errors",
    "Position": "paimon.domain.schema.changes",
    "RemoveOption": "paimon.domain.schema.changes",
    "RenameColumn": "paimon.domain.schema.changes",
    "Scan": "paimon.scan",
    "SchemaChange": "paimon.domain.schema.changes",
    "SetColumnComment": "paimon.domain.schema.changes",
    "SetColumnDefault": "paimon.domain.schema.changes",
    "SetColumnNullability": "paimon.domain.schema.changes",
    "SetColumnType": "paimon.domain.schema.changes",
    "SetComment": "paimon.domain.schema.changes",
    "SetOption": "paimon.domain.schema.changes",
    "Snapshot": "paimon.domain.snapshot.snapshot",
    "SnapshotExpired": "paimon.domain.errors",
    "StorageError": "paimon.domain.errors",
    "SystemTable": "paimon.system_table",
    "Table": "paimon.table",
    "TableDropped": "paimon.domain.errors",
    "TableReplaced": "paimon.domain.errors",
    "Unsupported": "paimon.domain.errors",
    "WriteResult": "paimon.builders.direct_writes",
    "attach_datafusion": "paimon.engines",
    "attach_duckdb": "paimon.engines",
    "cdc": "paimon.capture.write_events",
    "col": "paimon.domain.predicate.build",
    "connect": "paimon.engines",
    "deadline": "paimon.adapters.cancellation",
    "iterate_async": "paimon.adapters.async_calls",
    "load_ipython_extension": "paimon.display.ipython_extension",
    "open_system_table": "paimon.engines",
    "open_table": "paimon.engines",
    "read_files": "paimon.engines",
    "run_async": "paimon.adapters.async_calls",
    "scan_daft": "paimon.engines",
    "scan_polars": "paimon.engines",
    "unload_ipython_extension": "paimon.display.ipython_extension",
}
"""The home of each name; IPython looks up those of its extensions, which users do not call."""

__all__ = [
    "DEAD_LETTER_SCHEMA",
    "AddColumn",
    "AlreadyExists",
    "CancelToken",
    "Cancelled",
    "Catalog",
    "CdcResult",
    "CommitConflict",
    "CommitEvent",
    "CommitNotVisible",
    "CommitOverwritten",
    "CommitUncertain",
    "CorruptTable",
    "DeadlineExceeded",
    "DropColumn",
    "DropPrimaryKey",
    "InvalidRequest",
    "MergeBuilder",
    "MergeResult",
    "MissingExtra",
    "MoveColumn",
    "NotFound",
    "PaimonError",
    "PaimonWarning",
    "Position",
    "RemoveOption",
    "RenameColumn",
    "Scan",
    "SchemaChange",
    "SetColumnComment",
    "SetColumnDefault",
    "SetColumnNullability",
    "SetColumnType",
    "SetComment",
    "SetOption",
    "Snapshot",
    "SnapshotExpired",
    "StorageError",
    "SystemTable",
    "Table",
    "TableDropped",
    "TableReplaced",
    "Unsupported",
    "WriteResult",
    "__version__",
    "attach_datafusion",
    "attach_duckdb",
    "cdc",
    "col",
    "connect",
    "deadline",
    "iterate_async",
    "open_system_table",
    "open_table",
    "read_files",
    "run_async",
    "scan_daft",
    "scan_polars",
]


if not TYPE_CHECKING:  # a type checker must see only the names above

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            return getattr(load_module(_HOMES[name]), name)
        from paimon.display.other_names import MODULE_NAMES, suggest_way

        raise AttributeError(f"module 'paimon' has no attribute {name!r}{suggest_way(name, MODULE_NAMES)}", name=name)


def __dir__() -> list[str]:
    return sorted(__all__)
