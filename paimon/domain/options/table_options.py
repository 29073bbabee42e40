"""A table's options as one frozen value with typed attributes.

Invariant: only the texts are stored; attributes parse them, with Java's defaults. A wrong text raises InvalidRequest
when its attribute is read (`validate.check_options` checks all).
Source: `CoreOptions`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from attrs import field, frozen

from paimon.domain.options.known_options import canonical_key
from paimon.domain.options.parse import (
    parse_bool,
    parse_double,
    parse_duration_millis,
    parse_int,
    parse_levels,
    parse_long,
    parse_memory,
)
from paimon.domain.options.setting import (
    as_text,
    as_word,
    effective_text,
    names_setting,
    optional_setting,
    required_setting,
)

MEBIBYTE = 1 << 20
ROW_KIND_FLAG = "row-kind-flag"
"""The padding that orders -U and -D before +U and +I. The other paddings make a coarse time finer by the time of
writing, for which the sequence numbers suffice."""


def _texts(values: Mapping[str, str]) -> Mapping[str, str]:
    return dict(values)


@frozen(hash=False)
class TableOptions:
    """Options of a table: texts by key, and typed attributes named after the keys, with units.

    >>> options = TableOptions.of({"bucket": "4", "snapshot.time-retained": "2 h"})
    >>> options.bucket, options.snapshot_time_retained_millis, options.merge_engine
    (4, 7200000, 'deduplicate')
    """

    values: Mapping[str, str] = field(converter=_texts, factory=dict)
    # what `Setting` read before, in this process; the texts never change
    parsed: dict[str, Any] = field(factory=dict, init=False, eq=False, repr=False)

    # Layout
    table_type = required_setting("type", as_word)
    bucket = required_setting("bucket", parse_int)
    bucket_key = names_setting("bucket-key")
    bucket_function = required_setting("bucket-function.type", as_word)
    bucket_append_ordered = required_setting("bucket-append-ordered", parse_bool)
    branch = required_setting("branch", as_text)
    partition_default_name = required_setting("partition.default-name", lambda text, _: text)
    partition_legacy_name = required_setting("partition.legacy-name", parse_bool)
    data_file_path_directory = optional_setting("data-file.path-directory", as_text)
    data_file_external_paths = names_setting("data-file.external-paths")
    data_file_external_paths_strategy = required_setting("data-file.external-paths.strategy", as_word)
    data_file_external_paths_specific_fs = optional_setting("data-file.external-paths.specific-fs", as_text)
    data_file_external_paths_weights = optional_setting("data-file.external-paths.weights", as_text)
    data_file_prefix = required_setting("data-file.prefix", as_text)
    changelog_file_prefix = required_setting("changelog-file.prefix", as_text)
    index_file_in_data_file_dir = required_setting("index-file-in-data-file-dir", parse_bool)

    # Files
    file_format = required_setting("file.format", as_word)
    file_compression = required_setting("file.compression", as_word)
    zstd_level = required_setting("file.compression.zstd-level", parse_int)
    file_block_size_bytes = optional_setting("file.block-size", parse_memory)
    file_suffix_include_compression = required_setting("file.suffix.include.compression", parse_bool)
    target_file_row_num = optional_setting("target-file-row-num", parse_long)
    data_file_thin_mode = required_setting("data-file.thin-mode", parse_bool)
    blob_target_file_size_bytes = optional_setting("blob.target-file-size", parse_memory)
    vector_file_format = optional_setting("vector.file.format", as_word)
    vector_target_file_size_bytes = optional_setting("vector.target-file-size", parse_memory)
    blob_fields = names_setting("blob-field")
    blob_descriptor_fields = names_setting("blob-descriptor-field")

    # Statistics and indexes
    stats_mode = required_setting("metadata.stats-mode", as_word)
    stats_dense_store = required_setting("metadata.stats-dense-store", parse_bool)
    stats_keep_first_columns = required_setting("metadata.stats-keep-first-n-columns", parse_int)
    file_index_in_manifest_threshold_bytes = required_setting("file-index.in-manifest-threshold", parse_memory)
    file_index_read_enabled = required_setting("file-index.read.enabled", parse_bool)
    global_index_enabled = required_setting("global-index.enabled", parse_bool)
    global_index_update_action = required_setting("global-index.column-update-action", as_word)
    btree_block_bytes = required_setting("btree-index.block-size", parse_memory)
    btree_records_per_range = required_setting("btree-index.records-per-range", parse_long)
    deletion_vectors_enabled = required_setting("deletion-vectors.enabled", parse_bool)
    deletion_vectors_bitmap64 = required_setting("deletion-vectors.bitmap64", parse_bool)
    deletion_vectors_modifiable = required_setting("deletion-vectors.modifiable", parse_bool)
    deletion_vectors_merge_on_read = required_setting("deletion-vectors.merge-on-read", parse_bool)
    deletion_vector_index_file_bytes = required_setting("deletion-vector.index-file.target-size", parse_memory)

    # Manifests and commit
    manifest_format = required_setting("manifest.format", as_word)
    manifest_compression = required_setting("manifest.compression", as_word)
    manifest_target_size_bytes = required_setting("manifest.target-file-size", parse_memory)
    manifest_full_compaction_bytes = required_setting("manifest.full-compaction-threshold-size", parse_memory)
    manifest_merge_min_count = required_setting("manifest.merge-min-count", parse_int)
    manifest_delete_file_drop_stats = required_setting("manifest.delete-file-drop-stats", parse_bool)
    commit_timeout_millis = optional_setting("commit.timeout", parse_duration_millis)
    commit_late_rows_max_bytes = required_setting("commit.late-rows.max-size", parse_memory)
    commit_max_retries = required_setting("commit.max-retries", parse_int)
    commit_min_retry_wait_millis = required_setting("commit.min-retry-wait", parse_duration_millis)
    commit_max_retry_wait_millis = required_setting("commit.max-retry-wait", parse_duration_millis)
    commit_discard_duplicate_files = required_setting("commit.discard-duplicate-files", parse_bool)
    commit_strict_mode_last_safe_snapshot = optional_setting("commit.strict-mode.last-safe-snapshot", parse_long)
    ignore_empty_commit = optional_setting("snapshot.ignore-empty-commit", parse_bool)
    dynamic_partition_overwrite = required_setting("dynamic-partition-overwrite", parse_bool)

    # Merge engine
    merge_engine = required_setting("merge-engine", as_word)
    ignore_delete = required_setting("ignore-delete", parse_bool)
    ignore_update_before = required_setting("ignore-update-before", parse_bool)
    sequence_fields = names_setting("sequence.field")
    sequence_auto_padding = names_setting("sequence.auto-padding")
    sequence_snapshot_ordering = required_setting("sequence.snapshot-ordering", parse_bool)
    rowkind_field = optional_setting("rowkind.field", as_text)
    partial_update_remove_record_on_delete = required_setting("partial-update.remove-record-on-delete", parse_bool)
    partial_update_remove_record_on_sequence_group = names_setting("partial-update.remove-record-on-sequence-group")
    aggregation_remove_record_on_delete = required_setting("aggregation.remove-record-on-delete", parse_bool)
    default_aggregate_function = optional_setting("fields.default-aggregate-function", as_text)
    record_expire_millis = optional_setting("record-level.expire-time", parse_duration_millis)
    record_time_field = optional_setting("record-level.time-field", as_text)
    pk_clustering_override = required_setting("pk-clustering-override", parse_bool)

    # Writing and compaction
    dynamic_bucket_target_row_num = required_setting("dynamic-bucket.target-row-num", parse_long)
    dynamic_bucket_initial_buckets = optional_setting("dynamic-bucket.initial-buckets", parse_int)
    dynamic_bucket_max_buckets = required_setting("dynamic-bucket.max-buckets", parse_int)
    dynamic_bucket_assigner_parallelism = optional_setting("dynamic-bucket.assigner-parallelism", parse_int)
    cross_partition_index_ttl_millis = optional_setting("cross-partition-upsert.index-ttl", parse_duration_millis)
    cross_partition_bootstrap_parallelism = required_setting("cross-partition-upsert.bootstrap-parallelism", parse_int)
    write_only = required_setting("write-only", parse_bool)
    missing_columns = required_setting("write.missing-columns", as_word)
    write_buffer_bytes = required_setting("write-buffer-size", parse_memory)
    write_buffer_spillable = required_setting("write-buffer-spillable", parse_bool)
    compaction_trigger = required_setting("num-sorted-run.compaction-trigger", parse_int)
    compaction_max_size_amplification_percent = required_setting("compaction.max-size-amplification-percent", parse_int)
    compaction_size_ratio = required_setting("compaction.size-ratio", parse_int)
    compaction_offpeak_start_hour = required_setting("compaction.offpeak.start.hour", parse_int)
    compaction_offpeak_end_hour = required_setting("compaction.offpeak.end.hour", parse_int)
    compaction_offpeak_ratio = required_setting("compaction.offpeak-ratio", parse_int)
    compaction_optimization_interval_millis = optional_setting(
        "compaction.optimization-interval", parse_duration_millis
    )
    compaction_total_size_threshold_bytes = optional_setting("compaction.total-size-threshold", parse_memory)
    compaction_incremental_size_threshold_bytes = optional_setting(
        "compaction.incremental-size-threshold", parse_memory
    )
    compaction_force_up_level_0 = required_setting("compaction.force-up-level-0", parse_bool)
    compaction_force_rewrite_all_files = required_setting("compaction.force-rewrite-all-files", parse_bool)
    compaction_small_file_ratio = required_setting("compaction.small-file-ratio", parse_double)
    compaction_min_file_num = required_setting("compaction.min.file-num", parse_int)
    compaction_delete_ratio_threshold = required_setting("compaction.delete-ratio-threshold", parse_double)
    full_compaction_delta_commits = optional_setting("full-compaction.delta-commits", parse_int)
    changelog_producer = required_setting("changelog-producer", as_word)
    changelog_row_deduplicate = required_setting("changelog-producer.row-deduplicate", parse_bool)
    changelog_row_deduplicate_ignore_fields = names_setting("changelog-producer.row-deduplicate-ignore-fields")
    force_lookup = required_setting("force-lookup", parse_bool)
    lookup_wait = required_setting("lookup-wait", parse_bool)
    lookup_compact = required_setting("lookup-compact", as_word)
    lookup_cache_retention_millis = required_setting("lookup.cache-file-retention", parse_duration_millis)
    lookup_cache_disk_bytes = optional_setting("lookup.cache-max-disk-size", parse_memory)
    lookup_cache_memory_bytes = required_setting("lookup.cache-max-memory-size", parse_memory)
    postpone_batch_write_fixed_bucket = required_setting("postpone.batch-write-fixed-bucket", parse_bool)
    postpone_max_parallelism = required_setting("postpone.batch-write-fixed-bucket.max-parallelism", parse_int)
    postpone_default_bucket_num = optional_setting("postpone.default-bucket-num", parse_int)
    postpone_target_rows_per_bucket = optional_setting("postpone.target-row-num-per-bucket", parse_long)
    postpone_target_bytes_per_bucket = optional_setting("postpone.target-size-per-bucket", parse_memory)
    clustering_columns = names_setting("clustering.columns")
    clustering_strategy = required_setting("clustering.strategy", as_word)
    clustering_incremental = required_setting("clustering.incremental", parse_bool)
    clustering_incremental_mode = required_setting("clustering.incremental.mode", as_word)
    clustering_idle_millis = optional_setting("clustering.history-partition.idle-to-full-sort", parse_duration_millis)
    clustering_history_limit = required_setting("clustering.history-partition.limit", parse_int)
    sort_range_strategy = required_setting("sort-compaction.range-strategy", as_word)
    sort_sample_magnification = required_setting("sort-compaction.local-sample.magnification", parse_int)
    zorder_text_bytes = required_setting("zorder.var-length-contribution", parse_int)
    row_tracking_enabled = required_setting("row-tracking.enabled", parse_bool)
    row_tracking_partition_group = required_setting("row-tracking.partition-group-on-commit", parse_bool)
    data_evolution_enabled = required_setting("data-evolution.enabled", parse_bool)

    # Retention
    snapshot_num_retained_min = required_setting("snapshot.num-retained.min", parse_int)
    snapshot_num_retained_max = required_setting("snapshot.num-retained.max", parse_int)
    snapshot_time_retained_millis = required_setting("snapshot.time-retained", parse_duration_millis)
    snapshot_expire_limit = required_setting("snapshot.expire.limit", parse_int)
    snapshot_clean_empty_directories = required_setting("snapshot.clean-empty-directories", parse_bool)
    consumer_changelog_only = required_setting("consumer.changelog-only", parse_bool)
    consumer_expiration_millis = optional_setting("consumer.expiration-time", parse_duration_millis)
    tag_automatic_creation = required_setting("tag.automatic-creation", as_word)
    tag_automatic_completion = required_setting("tag.automatic-completion", parse_bool)
    tag_creation_delay_millis = required_setting("tag.creation-delay", parse_duration_millis)
    tag_num_retained_max = optional_setting("tag.num-retained-max", parse_int)
    tag_default_time_retained_millis = optional_setting("tag.default-time-retained", parse_duration_millis)
    tag_time_expire_enabled = required_setting("tag.time-expire-enabled", parse_bool)
    tag_create_success_file = required_setting("tag.create-success-file", parse_bool)
    tag_batch_customized_name = optional_setting("tag.batch.customized-name", as_text)
    partition_expiration_millis = optional_setting("partition.expiration-time", parse_duration_millis)
    partition_expiration_check_interval_millis = required_setting(
        "partition.expiration-check-interval", parse_duration_millis
    )
    partition_expiration_max_num = required_setting("partition.expiration-max-num", parse_int)
    partition_expiration_batch_size = optional_setting("partition.expiration-batch-size", parse_int)
    partition_expiration_strategy = required_setting("partition.expiration-strategy", as_word)
    partition_timestamp_formatter = optional_setting("partition.timestamp-formatter", as_text)
    partition_timestamp_pattern = optional_setting("partition.timestamp-pattern", as_text)

    # Reading
    scan_mode = required_setting("scan.mode", as_word)
    scan_bucket = optional_setting("scan.bucket", parse_int)
    scan_fallback_branch = optional_setting("scan.fallback-branch", as_text)
    scan_primary_branch = optional_setting("scan.primary-branch", as_text)
    scan_ignore_corrupt_files = required_setting("scan.ignore-corrupt-files", parse_bool)
    scan_ignore_lost_files = required_setting("scan.ignore-lost-files", parse_bool)
    split_target_bytes = required_setting("source.split.target-size", parse_memory)
    split_open_file_cost_bytes = required_setting("source.split.open-file-cost", parse_memory)
    incremental_between_scan_mode = required_setting("incremental-between-scan-mode", as_word)
    incremental_between_tag_to_snapshot = required_setting("incremental-between-tag-to-snapshot", parse_bool)
    streaming_read_overwrite = required_setting("streaming-read-overwrite", parse_bool)
    streaming_read_append_overwrite = required_setting("streaming-read-append-overwrite", parse_bool)
    table_read_sequence_number = required_setting("table-read.sequence-number.enabled", parse_bool)
    streaming_read_delay_millis = optional_setting("streaming.read.snapshot.delay", parse_duration_millis)
    continuous_discovery_interval_millis = required_setting("continuous.discovery-interval", parse_duration_millis)
    scan_bounded_watermark = optional_setting("scan.bounded.watermark", parse_long)
    consumer_id = optional_setting("consumer-id", as_text)
    consumer_ignore_progress = required_setting("consumer.ignore-progress", parse_bool)

    @classmethod
    def of(cls, values: Mapping[str, str]) -> TableOptions:
        """Build options from texts by key."""
        return cls(values)

    def __reduce__(self) -> tuple[type[TableOptions], tuple[Mapping[str, str]]]:
        """Pickle and copy the texts alone: each task of a table has its options."""
        return type(self), (self.values,)

    def with_values(self, values: Mapping[str, str]) -> TableOptions:
        """Return these options with others on top; an older key replaces the newer one of the same option."""
        replaced = {canonical_key(key) for key in values}
        kept = {key: text for key, text in self.values.items() if canonical_key(key) not in replaced}
        return TableOptions({**kept, **values})

    def without(self, keys: Collection[str]) -> TableOptions:
        """Return these options without some, which then have their defaults; older keys of them go, too."""
        removed = {canonical_key(key) for key in keys}
        return TableOptions({key: text for key, text in self.values.items() if canonical_key(key) not in removed})

    def get(self, key: str) -> str | None:
        """Return the effective text of an option: given, given under an older key, or the default (perhaps None)."""
        return effective_text(self.values, key)

    def file_format_at(self, level: int) -> str:
        """Return the format of data files on a level."""
        return self._at_level("file.format.per.level", level) or self.file_format

    def compression_at(self, level: int) -> str:
        """Return the codec of data files on a level."""
        return self._at_level("file.compression.per.level", level) or self.file_compression

    @property
    def names_compression(self) -> bool:
        """Whether the user chose a codec, or its level, for any data files."""
        keys = ("", ".per.level", ".zstd-level")
        return any(f"file.compression{key}" in self.values for key in keys)

    @property
    def changelog_file_format(self) -> str | None:
        """Format of changelog files; None: that of data files."""
        return self.values.get("changelog-file.format")

    @property
    def changelog_file_compression(self) -> str | None:
        """Codec of changelog files; None: that of data files."""
        return self.values.get("changelog-file.compression")

    def _at_level(self, key: str, level: int) -> str | None:
        text = self.values.get(key)
        return None if text is None else parse_levels(text, key).get(level)

    def stats_mode_of(self, column: str, level: int = 0) -> str:
        """Return the text of a column's statistics mode on a level, before `metadata.stats-keep-first-n-columns`."""
        return (
            self.values.get(f"fields.{column}.stats-mode")
            or self._at_level("metadata.stats-mode.per.level", level)
            or self.stats_mode
        )

    def target_file_size_bytes(self, primary_key: bool) -> int:
        """Return the size at which a data file is complete; tables with a primary key have smaller files."""
        text = self.values.get("target-file-size")
        return (128 if primary_key else 256) * MEBIBYTE if text is None else parse_memory(text, "target-file-size")

    @property
    def sequence_descending(self) -> bool:
        """Whether smaller values of the sequence fields win."""
        return (self.get("sequence.field.sort-order") or "").strip().lower() == "descending"

    @property
    def needs_lookup(self) -> bool:
        """Whether a merge needs the record above level 0, which compaction must look up."""
        return (
            self.changelog_producer == "lookup"
            or self.deletion_vectors_enabled
            or self.merge_engine == "first-row"
            or self.force_lookup
        )

    @property
    def lookup_compact_interval(self) -> int:
        """Number of compactions after which the last one takes level 0, even if no other rule selects it."""
        if self.lookup_compact != "gentle":
            return 1
        text = self.values.get("lookup-compact.max-interval")
        given = 2 * self.compaction_trigger if text is None else parse_int(text, "lookup-compact.max-interval")
        return max(given, self.compaction_trigger)

    @property
    def num_levels(self) -> int:
        """Number of levels of an LSM tree."""
        text = self.values.get("num-levels")
        return self.compaction_trigger + 1 if text is None else parse_int(text, "num-levels")

    @property
    def changelog_num_retained_min(self) -> int:
        """Smallest number of changelogs that expiry keeps."""
        text = self.values.get("changelog.num-retained.min")
        return self.snapshot_num_retained_min if text is None else parse_int(text, "changelog.num-retained.min")

    @property
    def changelog_num_retained_max(self) -> int:
        """Largest number of changelogs that expiry keeps."""
        text = self.values.get("changelog.num-retained.max")
        return self.snapshot_num_retained_max if text is None else parse_int(text, "changelog.num-retained.max")

    @property
    def changelog_time_retained_millis(self) -> int:
        """Time that changelogs are kept for, in milliseconds."""
        text = self.values.get("changelog.time-retained")
        if text is None:
            return self.snapshot_time_retained_millis
        return parse_duration_millis(text, "changelog.time-retained")
