"""The options of a table that control the compaction of its LSM trees.

Invariant: only options decide, with the defaults of Java.

Source: `CoreOptions`, `OffPeakHours`.
"""

from __future__ import annotations

from attrs import field, frozen

from paimon.domain.lsm.record_expiry import RecordExpiry
from paimon.domain.merge.merge_engines import is_newest_winning
from paimon.domain.options.table_options import TableOptions


@frozen
class OffPeak:
    """Hours of the day in which more may be compacted.

    Parameters
    ----------
    start_hour : int
        First hour, 0 to 23; -1 for none. It may be larger than `end_hour`.
    end_hour : int
        First hour that is not included.
    ratio : int
        Percent that these hours add to the size ratio.
    """

    start_hour: int = -1
    end_hour: int = -1
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
    """When sorted runs are compacted, and how.

    Parameters
    ----------
    trigger : int
        Number of sorted runs that starts a compaction.
    levels : int
        Number of levels, level 0 included.
    max_amplification_percent : int
        A full compaction starts when all runs but the oldest are larger than this percentage of the oldest.
    size_ratio : int
        Percent by which the next run may be larger than the runs taken before it.
    off_peak : OffPeak
        Hours in which the size ratio is larger.
    optimization_interval_millis : int, optional
        Time between full compactions.
    total_size_bytes : int, optional
        Smaller trees are compacted completely.
    incremental_bytes : int, optional
        Bytes below the top level from which everything is compacted.
    force_level_0 : bool
        Compact level 0 also where no other rule asks for it.
    force_interval : int
        Apply `force_level_0` only at every n-th such opportunity.
    rewrite_all : bool
        Rewrite also the files that could be kept.
    small_file_bytes : int
        Smaller files are rewritten.
    needs_lookup : bool
        Merge what leaves level 0 with the older records of its keys on the levels above the output.
    producer : str
        The changelog producer.
    newest_wins : bool
        Merging never changes a newer record: the engine is deduplicate and there is no sequence field.
    options : TableOptions
        The options of the table, for the file formats of levels.
    expiry : RecordExpiry, optional
        Which records are expired.
    expired : frozenset of str
        Names of the files that may hold expired records, by their statistics.
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
    needs_lookup: bool = False
    producer: str = "none"
    newest_wins: bool = True
    options: TableOptions = field(factory=TableOptions, repr=False)
    expiry: RecordExpiry | None = None
    expired: frozenset[str] = frozenset()

    @classmethod
    def of(cls, options: TableOptions) -> CompactionRules:
        """Return the rules of a primary-key table."""
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
