"""Build the system tables about the references to a table: `branches` and `consumers`.

Invariant: one row per directory of a branch or file of a consumer. A damaged consumer file raises an error with its
path. Source: `BranchesTable`, `ConsumersTable`.
"""

from __future__ import annotations

import pyarrow as pa

from paimon.domain.json_text import DETAIL_FILE, load_object
from paimon.domain.paths import TablePaths
from paimon.operations.metadata.schemas import schema_ids
from paimon.operations.read.system.history import to_local_millis
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine

_BRANCH, _CONSUMER = "branch-", "consumer-"
_BRANCHES = pa.schema([("branch_name", pa.string()), ("create_time", pa.timestamp("ms"))])
_CONSUMERS = pa.schema([("consumer_id", pa.string()), ("next_snapshot_id", pa.int64())])


def branches_table(context: TableContext) -> pa.Table:
    """Return one row per branch other than main."""
    listed = [s for s in context.files.list(context.paths.branches) if s.is_directory and s.name.startswith(_BRANCH)]
    # A branch without a schema is incomplete and cannot be opened.
    found = [
        s
        for s in listed
        if schema_ids(context.engine, TablePaths(context.table.location, s.name.removeprefix(_BRANCH)))
    ]
    rows = [
        {
            "branch_name": status.name.removeprefix(_BRANCH),
            "create_time": None
            if status.modified_millis is None
            else to_local_millis(context.engine, status.modified_millis),
        }
        for status in found
    ]
    return pa.Table.from_pylist(rows, schema=_BRANCHES)


def consumers_table(context: TableContext) -> pa.Table:
    """Return one row per consumer, with the next snapshot that it reads."""
    found = [s for s in context.files.list(context.paths.consumers) if s.name.startswith(_CONSUMER)]
    rows = [
        {
            "consumer_id": status.name.removeprefix(_CONSUMER),
            "next_snapshot_id": _read_next_snapshot(context.engine, status.path),
        }
        for status in found
    ]
    return pa.Table.from_pylist(rows, schema=_CONSUMERS)


def _read_next_snapshot(engine: Engine, path: str) -> int:
    return load_object(engine.files.read(path, DETAIL_FILE.max_bytes), path).integer("nextSnapshot")
