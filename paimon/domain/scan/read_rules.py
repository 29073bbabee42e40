"""What a table's keys and options say about reading its files.

Law: level 0 of tables with deletion vectors and of first-row tables is invisible to batch reads until it is
compacted, because only compaction finds out what it replaces. Source: `AbstractBatchTableScan`, `CoreOptions`.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.scan.plan import ScanKind
from paimon.domain.scan.split_packing import SplitLimits
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.data_types import DataType


@frozen
class ReadRules:
    """How the files of a table are put into splits.

    Parameters
    ----------
    merges : bool
        Rows of one key are merged.
    engine : str
        The merge engine.
    hides_level_0 : bool
        Level 0 is left out.
    unmerged_above_0 : bool
        Files above level 0 need no merge with each other.
    prunes_values : bool
        A file's own value statistics say what its rows hold (not so where one row is spread over files).
    in_sequence : bool
        Files are read in the order of their sequence numbers; changes of keyed tables as they were committed, since
        old rows have old numbers.
    side_by_side : bool
        The columns of a row may lie in several files.
    limits : SplitLimits
        Sizes of splits.
    key_types : tuple of DataType
        Types of the trimmed primary key.
    """

    merges: bool
    engine: str
    hides_level_0: bool
    unmerged_above_0: bool
    prunes_values: bool
    in_sequence: bool
    side_by_side: bool
    limits: SplitLimits
    key_types: tuple[DataType, ...] = ()

    @classmethod
    def of(cls, table: TableDefinition, kind: ScanKind) -> ReadRules:
        """The rules for a scan of a table."""
        options, keyed = table.options, bool(table.schema.primary_keys)
        batch = keyed and kind is ScanKind.ALL
        vectors, first_row = options.deletion_vectors_enabled, options.merge_engine == "first-row"
        hides = batch and (first_row or (vectors and not options.deletion_vectors_merge_on_read))
        return cls(
            merges=batch,
            engine=options.merge_engine,
            hides_level_0=hides,
            unmerged_above_0=batch and (vectors or first_row),
            prunes_values=not options.data_evolution_enabled and (batch or not keyed),
            in_sequence=batch if keyed else options.bucket != -1,
            side_by_side=options.data_evolution_enabled,
            limits=SplitLimits(options.split_target_bytes, options.split_open_file_cost_bytes),
            key_types=tuple(f.type for f in table.schema.key_fields),
        )
