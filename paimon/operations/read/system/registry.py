"""All system tables by name.

Law: a name stands here only when its table works.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.read.system.branches import branches_table, consumers_table
from paimon.operations.read.system.columns import aggregation_fields_table, statistics_table
from paimon.operations.read.system.files import file_key_ranges_table, files_table
from paimon.operations.read.system.groups import buckets_table, partitions_table
from paimon.operations.read.system.history import options_table, schemas_table, snapshots_table, tags_table
from paimon.operations.read.system.manifests import manifests_table, table_indexes_table
from paimon.ports.engine import Engine

SystemTableSource = Callable[[Engine, TableDefinition], pa.Table]

SYSTEM_TABLES: Mapping[str, SystemTableSource] = {
    "aggregation_fields": aggregation_fields_table,
    "branches": branches_table,
    "buckets": buckets_table,
    "consumers": consumers_table,
    "file_key_ranges": file_key_ranges_table,
    "files": files_table,
    "manifests": manifests_table,
    "options": options_table,
    "partitions": partitions_table,
    "schemas": schemas_table,
    "snapshots": snapshots_table,
    "statistics": statistics_table,
    "table_indexes": table_indexes_table,
    "tags": tags_table,
}
