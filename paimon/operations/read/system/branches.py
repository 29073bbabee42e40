"""System tables about who else looks at a table: `branches`, `consumers`.

Law: one row a directory or file that names one; a damaged consumer file is an error that names it. Source:
`BranchesTable`, `ConsumersTable`.
"""

from __future__ import annotations

import pyarrow as pa

from paimon.domain.json_text import DETAIL_FILE, load_object
from paimon.domain.paths import TablePaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.read.schemas import schema_ids
from paimon.operations.read.system.history import local_millis
from paimon.ports.engine import Engine

_BRANCH, _CONSUMER = "branch-", "consumer-"
_BRANCHES = pa.schema([("branch_name", pa.string()), ("create_time", pa.timestamp("ms"))])
_CONSUMERS = pa.schema([("consumer_id", pa.string()), ("next_snapshot_id", pa.int64())])


def branches_table(engine: Engine, table: TableDefinition) -> pa.Table:
    """One row a branch other than main."""
    listed = [s for s in engine.files.list(table.paths.branches) if s.is_directory and s.name.startswith(_BRANCH)]
    # One without a schema is incomplete, and cannot be opened.
    found = [s for s in listed if schema_ids(engine, TablePaths(table.location, s.name.removeprefix(_BRANCH)))]
    rows = [
        {
            "branch_name": status.name.removeprefix(_BRANCH),
            "create_time": None if status.modified_millis is None else local_millis(engine, status.modified_millis),
        }
        for status in found
    ]
    return pa.Table.from_pylist(rows, schema=_BRANCHES)


def consumers_table(engine: Engine, table: TableDefinition) -> pa.Table:
    """One row a consumer, with the snapshot that it reads next."""
    found = [s for s in engine.files.list(table.paths.consumers) if s.name.startswith(_CONSUMER)]
    rows = [
        {
            "consumer_id": status.name.removeprefix(_CONSUMER),
            "next_snapshot_id": _next_snapshot(engine, status.path),
        }
        for status in found
    ]
    return pa.Table.from_pylist(rows, schema=_CONSUMERS)


def _next_snapshot(engine: Engine, path: str) -> int:
    return load_object(engine.files.read(path, DETAIL_FILE.max_bytes), path).integer("nextSnapshot")
