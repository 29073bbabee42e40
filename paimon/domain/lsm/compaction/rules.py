"""The options of a table that control the compaction of its LSM trees.

Invariant: only options decide, with the defaults of Java.

Source: `CoreOptions`, `OffPeakHours`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field, frozen

from paimon.domain.options.table_options import TableOptions

if TYPE_CHECKING:
    from paimon.domain.lsm.record_expiry import RecordExpiry  # loads Arrow, which a pick does not need


@frozen
class OffPeak:
    """Hours of the day in which more may be compacted."""

    # first hour, 0 to 23; -1 for no such hours; can be larger than `end_hour`
    start_hour: int = -1
    # not included
    end_hour: int = -1
    # percent that these hours add to the size ratio
    ratio: int = 0

    def ratio_at(self, hour: int) -> int:
        """Return the percent that a local hour of the day adds to the size ratio."""
        start, end = self.start_hour, self.end_hour
        if -1 in (start, end) or start == end:
            return 0
        inside = start <= hour < end if start < end else hour >= start or hour < end
        return self.ratio if inside else 0


@frozen(hash=False)
class CompactionRules:
    """Rules that decide when sorted runs are compacted, and how."""

    # number of sorted runs that starts a compaction
    trigger: int = 5
    # number of levels, including level 0
    levels: int = 6
    # all runs but the oldest, in percent of the oldest, above which compaction is full
    max_amplification_percent: int = 200
    # percent by which the next run may be larger than the runs picked before it
    size_ratio: int = 1
    off_peak: OffPeak = OffPeak()
    # time between full compactions
    optimization_interval_millis: int | None = None
    # trees smaller than this are compacted completely
    total_size_bytes: int | None = None
    # number of bytes below the top level from which everything is compacted
    incremental_bytes: int | None = None
    # whether level 0 is compacted even if no other rule asks for it
    force_level_0: bool = False
    # `force_level_0` applies only at every n-th such opportunity
    force_interval: int = 1
    # whether files that could be kept are also rewritten
    rewrite_all: bool = False
    # files smaller than this are rewritten
    small_file_bytes: int = 0
    # whether files that leave level 0 merge with older records on levels above the output
    needs_lookup: bool = False
    # the changelog producer
    producer: str = "none"
    # whether merging never changes a newer record (deduplicate without sequence field)
    newest_wins: bool = True
    # for the file formats of levels
    options: TableOptions = field(factory=TableOptions, repr=False)
    expiry: RecordExpiry | None = None
    # names of the files that may hold expired records, by their statistics
    expired: frozenset[str] = frozenset()

    @classmethod
    def of_clustering(cls, options: TableOptions) -> CompactionRules:
        """Return the rules of an append table that is clustered incrementally."""
        return cls(
            trigger=options.compaction_trigger,
            levels=max(2, options.num_levels),
            max_amplification_percent=options.compaction_max_size_amplification_percent,
            size_ratio=options.compaction_size_ratio,
            options=options,
        )

    @classmethod
    def of(cls, options: TableOptions) -> CompactionRules:
        """Return the rules of a primary-key table."""
        from paimon.domain.merge.merge_engines import is_newest_winning  # loads Arrow

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
            needs_lookup=options.needs_lookup,
            producer=options.changelog_producer,
            newest_wins=is_newest_winning(options.merge_engine) and not options.sequence_fields,
            options=options,
        )
