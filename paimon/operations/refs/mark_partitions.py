"""Mark partitions as done: a success file in their directories tells other systems that they are complete.

Source: `SuccessFileMarkDoneAction`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.partition.partition_path import format_partition_path
from paimon.domain.paths import join_path
from paimon.domain.row.binary_row import deserialize
from paimon.operations.expire.expire_partitions import find_partitions
from paimon.operations.refs.tags import write_success_file
from paimon.operations.table_context import TableContext

_ACTION = "partition.mark-done-action"
_SUCCESS_FILE = "success-file"


def mark_partitions_done(context: TableContext, specs: Sequence[Mapping[str, object]]) -> list[str]:
    """Write the success file of each partition that matches a spec, and return the paths.

    NotFound: a spec has no match. Unsupported: the table wants another action. Then nothing is written.
    """
    action = context.options.get(_ACTION) or _SUCCESS_FILE
    if action != _SUCCESS_FILE:
        raise Unsupported(f"{_ACTION} = {action!r}", hint=f"set it to {_SUCCESS_FILE!r}")
    if not specs or not all(specs):
        raise InvalidRequest("No partition is given.", subject="partitions", hint="give values of partition columns")
    options, fields = context.options, context.schema.partition_fields
    types = [f.type for f in fields]
    files = []
    for row in find_partitions(context, specs, "SHOW PARTITIONS lists all"):
        names = options.partition_default_name, options.partition_legacy_name
        directory = format_partition_path(deserialize(row, types), fields, *names)
        files.append(join_path(context.paths.root, directory, "_SUCCESS"))
    for file in files:
        write_success_file(context.engine, file)
    return files
