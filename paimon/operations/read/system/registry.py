"""All system tables by name.

Law: a name stands here only when its table works.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.read.system.history import options_table, schemas_table, snapshots_table, tags_table
from paimon.ports.engine import Engine

SystemTableSource = Callable[[Engine, TableDefinition], pa.Table]

SYSTEM_TABLES: Mapping[str, SystemTableSource] = {
    "options": options_table,
    "schemas": schemas_table,
    "snapshots": snapshots_table,
    "tags": tags_table,
}
