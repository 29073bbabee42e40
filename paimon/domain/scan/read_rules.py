"""Derive from the keys and options of a table how its files are read.

Invariant: Batch reads of tables with deletion vectors and of first-row tables skip level 0 until it is compacted. Only
compaction determines which rows level 0 replaces.
Source: `AbstractBatchTableScan`, `CoreOptions`.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.merge.merge_engines import is_oldest_winning
from paimon.domain.scan.scan_plan import ScanKind
from paimon.domain.scan.split_packing import SplitLimits
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.data_types import DataType


@frozen
class ReadRules:
    """Rules for packing the files of a table into splits.

    Parameters
    ----------
    merges : bool
        True if rows with the same key are merged.
    engine : str
        The merge engine.
    hides_level_0 : bool
        True if level 0 is skipped.
    unmerged_above_0 : bool
        True if files above level 0 are not merged with each other.
    prunes_values : bool
        True if the value statistics of a file describe its rows. False if one row is spread over several files.
    is_ordered : bool
        True if files are read in the order of their sequence numbers. Changes of primary-key tables are read in commit
        order instead, because old rows have old sequence numbers.
    is_data_evolution : bool
        True if the columns of a row can be in several files (data evolution).
    limits : SplitLimits
        The sizes of splits.
    key_types : tuple of DataType
        The types of the trimmed primary key.
    """

    merges: bool
    engine: str
    hides_level_0: bool
    unmerged_above_0: bool
    prunes_values: bool
    is_ordered: bool
    is_data_evolution: bool
    limits: SplitLimits
    key_types: tuple[DataType, ...] = ()

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
            limits=SplitLimits(options.split_target_bytes, options.split_open_file_cost_bytes),
            key_types=tuple(f.type for f in table.schema.key_fields),
        )
