"""What a table's options say about compacting its merge trees.

Law: only the options decide, with Java's defaults. Source: `CoreOptions`, `OffPeakHours`.
"""

from __future__ import annotations

from attrs import field, frozen

from paimon.domain.lsm.expiry.rule import RecordExpiry
from paimon.domain.options.table_options import TableOptions


@frozen
class OffPeak:
    """Hours of the day in which more may be compacted: `start` counts, `end` does not; it may lie before `start`."""

    start_hour: int = -1
    end_hour: int = -1
    ratio: int = 0

    def ratio_at(self, hour: int) -> int:
        """The percent that this hour adds to the size ratio."""
        start, end = self.start_hour, self.end_hour
        if start == -1 or end == -1 or start == end:
            return 0
        inside = start <= hour < end if start < end else hour >= start or hour < end
        return self.ratio if inside else 0


@frozen(hash=False)
class CompactionRules:
    """When sorted runs are compacted.

    Parameters
    ----------
    trigger : int
        Sorted runs that start a compaction.
    max_amplification_percent : int
        Size of all runs but the last, in percent of the last one's, above which everything is compacted.
    size_ratio : int
        Percent by which the next run may be larger than those taken before it.
    optimization_interval_millis : int, optional
        Time between full compactions.
    total_size_bytes : int, optional
        Smaller trees are compacted in full.
    incremental_bytes : int, optional
        Data below the top level, above which everything is compacted.
    force_level_0 : bool
        Take level 0 even where nothing else asks for it.
    force_interval : int
        But only at every so many-th time that nothing else asked for it.
    rewrite_all : bool
        Rewrite also the files that could be kept.
    small_file_bytes : int
        Smaller files are worth rewriting.
    looks_up : bool
        What leaves level 0 is merged with what the levels above the output hold of its keys.
    producer : str
        The changelog producer.
    newest_wins : bool
        Merging never changes a newer record: the engine is deduplicate and no sequence field orders records.
    options : TableOptions
        The table's options, for the formats of levels.
    expiry : RecordExpiry, optional
        Which records are too old to be written again.
    expired : frozenset of str
        The files that hold some of them, by their statistics.
    """

    trigger: int = 5
    levels: int = 6
    max_amplification_percent: int = 200
    size_ratio: int = 1
    off_peak: OffPeak = OffPeak()
    optimization_interval_millis: int | None = None
    total_size_bytes: int | None = None
    incremental_bytes: int | None = None
    force_level_0: bool = False
    force_interval: int = 1
    rewrite_all: bool = False
    small_file_bytes: int = 0
    looks_up: bool = False
    producer: str = "none"
    newest_wins: bool = True
    options: TableOptions = field(factory=TableOptions, repr=False)
    expiry: RecordExpiry | None = None
    expired: frozenset[str] = frozenset()

    @classmethod
    def of(cls, options: TableOptions) -> CompactionRules:
        """The rules of a primary-key table."""
        start, end = options.compaction_offpeak_start_hour, options.compaction_offpeak_end_hour
        return cls(
            trigger=options.compaction_trigger,
            levels=max(2, options.num_levels),
            max_amplification_percent=options.compaction_max_size_amplification_percent,
            size_ratio=options.compaction_size_ratio,
            off_peak=OffPeak(start, end, options.compaction_offpeak_ratio),
            optimization_interval_millis=options.compaction_optimization_interval_millis,
            total_size_bytes=options.compaction_total_size_threshold_bytes,
            incremental_bytes=options.compaction_incremental_size_threshold_bytes,
            force_level_0=options.compaction_force_up_level_0 or options.needs_lookup,
            force_interval=options.lookup_compact_interval if options.needs_lookup else 1,
            rewrite_all=options.compaction_force_rewrite_all_files,
            small_file_bytes=int(options.target_file_size_bytes(True) * options.compaction_small_file_ratio),
            looks_up=options.needs_lookup,
            producer=options.changelog_producer,
            newest_wins=options.merge_engine == "deduplicate" and not options.sequence_fields,
            options=options,
        )
