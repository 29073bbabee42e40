"""Derive from the keys and options of a table how its files are read.

Invariant: Batch reads of tables with deletion vectors and of first-row tables skip level 0 until it is compacted. Only
compaction determines which rows level 0 replaces.
Source: `AbstractBatchTableScan`, `CoreOptions`.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.merge.merge_engines import is_oldest_winning
from paimon.domain.predicate.expression import Predicate
from paimon.domain.scan.prune_by_partition import find_bucket_keys
from paimon.domain.scan.scan_plan import Plan, ScanKind
from paimon.domain.scan.split_packing import SplitLimits
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.data_types import DataType


@frozen
class ReadRules:
    """Rules for packing the files of a table into splits."""

    # whether rows with the same key are merged
    merges: bool
    engine: str
    # whether level 0 is skipped
    hides_level_0: bool
    # whether files above level 0 are not merged with each other
    unmerged_above_0: bool
    # whether value statistics can prune a file; False if a row is spread over several files
    prunes_values: bool
    # read files by sequence number; changes of primary-key tables are read in commit order instead
    is_ordered: bool
    # whether the columns of a row can be in several files
    is_data_evolution: bool
    limits: SplitLimits
    # the types of the trimmed primary key, if it orders the files
    key_types: tuple[DataType, ...] = ()
    # whether files above level 0 are ordered by other columns; deletion vectors keep their live keys unique
    is_clustered: bool = False

    @classmethod
    def of(cls, table: TableDefinition, kind: ScanKind) -> ReadRules:
        """Return the rules for a scan of this kind."""
        options, keyed = table.options, bool(table.schema.primary_keys)
        batch = keyed and kind is ScanKind.ALL
        vectors, oldest_wins = options.deletion_vectors_enabled, is_oldest_winning(options.merge_engine)
        hides = batch and (oldest_wins or (vectors and not options.deletion_vectors_merge_on_read))
        return cls(
            merges=batch,
            engine=options.merge_engine,
            hides_level_0=hides,
            unmerged_above_0=batch and (vectors or oldest_wins),
            prunes_values=not options.data_evolution_enabled and (batch or not keyed),
            is_ordered=batch if keyed else options.bucket != -1,
            is_data_evolution=options.data_evolution_enabled,
            limits=SplitLimits.of(options),
            key_types=tuple(table.sorted_key_types),
            is_clustered=options.pk_clustering_override,
        )


def is_key_lookup(table: TableDefinition, predicate: Predicate | None, plan: Plan) -> bool:
    """Return whether a scan selects complete primary keys, and reads no more bytes than one split may have.

    `plan` is the plan of a scan that merges rows. The result is False for tables without a primary key.
    """
    schema = table.schema
    if predicate is None or not schema.primary_keys:
        return False
    keys = find_bucket_keys(predicate, [schema.field_of(name) for name in schema.primary_keys])
    return keys is not None and plan.size_bytes <= table.options.split_target_bytes
