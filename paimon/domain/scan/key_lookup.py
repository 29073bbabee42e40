"""Decide whether a scan looks up few rows by their primary key, so that one process reads them at once.

Invariant: a lookup returns at most one row for each of the keys that its predicate names.
"""

from __future__ import annotations

from paimon.domain.predicate.expression import Predicate
from paimon.domain.scan.prune_by_partition import find_bucket_keys
from paimon.domain.scan.scan_plan import Plan
from paimon.domain.schema.table_definition import TableDefinition


def is_key_lookup(table: TableDefinition, predicate: Predicate | None, plan: Plan) -> bool:
    """Return whether a scan selects complete primary keys, and reads no more bytes than one split may have.

    `plan` is the plan of a scan that merges rows. The result is False for tables without a primary key.
    """
    schema = table.schema
    if predicate is None or not schema.primary_keys:
        return False
    keys = find_bucket_keys(predicate, [schema.field_of(name) for name in schema.primary_keys])
    return keys is not None and plan.size_bytes <= table.options.split_target_bytes
