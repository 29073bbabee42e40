"""A table's options as one frozen value with typed attributes.

Law: nothing but the texts is stored; attributes parse them, with Java's defaults. A wrong text raises InvalidRequest
when it is looked at (`validate.check_options` looks at all). Source: `CoreOptions`.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from paimon.domain.options.parse import (
    parse_bool,
    parse_double,
    parse_duration_millis,
    parse_int,
    parse_levels,
    parse_long,
    parse_memory,
)
from paimon.domain.options.registry import canonical_key
from paimon.domain.options.setting import as_text, as_word, names, optional, required, text_of

MEBIBYTE = 1 << 20
ROW_KIND_FLAG = "row-kind-flag"
"""The padding that tells -U and -D from +U and +I. The others make a rough time finer by the time of arrival, which the
system's own sequence numbers do anyway."""


def _texts(values: Mapping[str, str]) -> Mapping[str, str]:
    return dict(values)


@frozen(hash=False)
class TableOptions:
    """Option texts by key; attributes are named after the keys, with units."""

    values: Mapping[str, str] = field(converter=_texts, factory=dict)

    # Layout
    table_type = required("type", as_word)
    bucket = required("bucket", parse_int)
    bucket_key = names("bucket-key")
    bucket_function = required("bucket-function.type", as_word)
    bucket_append_ordered = required("bucket-append-ordered", parse_bool)
    branch = required("branch", as_text)
    partition_default_name = required("partition.default-name", lambda text, _: text)
    partition_legacy_name = required("partition.legacy-name", parse_bool)
    data_file_path_directory = optional("data-file.path-directory", as_text)
    data_file_external_paths = names("data-file.external-paths")
    data_file_external_paths_strategy = required("data-file.external-paths.strategy", as_word)
    data_file_prefix = required("data-file.prefix", as_text)
    changelog_file_prefix = required("changelog-file.prefix", as_text)
    index_file_in_data_file_dir = required("index-file-in-data-file-dir", parse_bool)

    # Files
    file_format = required("file.format", as_word)
    file_compression = required("file.compression", as_word)
    zstd_level = required("file.compression.zstd-level", parse_int)
    file_block_size_bytes = optional("file.block-size", parse_memory)
    file_suffix_include_compression = required("file.suffix.include.compression", parse_bool)
    target_file_row_num = optional("target-file-row-num", parse_long)
    data_file_thin_mode = required("data-file.thin-mode", parse_bool)
    blob_fields = names("blob-field")
    blob_descriptor_fields = names("blob-descriptor-field")

    # Statistics and indexes
    stats_mode = required("metadata.stats-mode", as_word)
    stats_dense_store = required("metadata.stats-dense-store", parse_bool)
    stats_keep_first_columns = required("metadata.stats-keep-first-n-columns", parse_int)
    deletion_vectors_enabled = required("deletion-vectors.enabled", parse_bool)
    deletion_vectors_bitmap64 = required("deletion-vectors.bitmap64", parse_bool)
    deletion_vectors_modifiable = required("deletion-vectors.modifiable", parse_bool)
    deletion_vectors_merge_on_read = required("deletion-vectors.merge-on-read", parse_bool)
    deletion_vector_index_file_bytes = required("deletion-vector.index-file.target-size", parse_memory)

    # Manifests and commit
    manifest_format = required("manifest.format", as_word)
    manifest_compression = required("manifest.compression", as_word)
    manifest_target_size_bytes = required("manifest.target-file-size", parse_memory)
    manifest_full_compaction_bytes = required("manifest.full-compaction-threshold-size", parse_memory)
    manifest_merge_min_count = required("manifest.merge-min-count", parse_int)
    manifest_delete_file_drop_stats = required("manifest.delete-file-drop-stats", parse_bool)
    commit_timeout_millis = optional("commit.timeout", parse_duration_millis)
    commit_max_retries = required("commit.max-retries", parse_int)
    commit_min_retry_wait_millis = required("commit.min-retry-wait", parse_duration_millis)
    commit_max_retry_wait_millis = required("commit.max-retry-wait", parse_duration_millis)
    commit_discard_duplicate_files = required("commit.discard-duplicate-files", parse_bool)
    commit_strict_mode_last_safe_snapshot = optional("commit.strict-mode.last-safe-snapshot", parse_long)
    commit_user_prefix = optional("commit.user-prefix", as_text)
    ignore_empty_commit = optional("snapshot.ignore-empty-commit", parse_bool)
    dynamic_partition_overwrite = required("dynamic-partition-overwrite", parse_bool)

    # Merge engine
    merge_engine = required("merge-engine", as_word)
    ignore_delete = required("ignore-delete", parse_bool)
    ignore_update_before = required("ignore-update-before", parse_bool)
    sequence_fields = names("sequence.field")
    sequence_auto_padding = names("sequence.auto-padding")
    sequence_snapshot_ordering = required("sequence.snapshot-ordering", parse_bool)
    rowkind_field = optional("rowkind.field", as_text)
    partial_update_remove_record_on_delete = required("partial-update.remove-record-on-delete", parse_bool)
    partial_update_remove_record_on_sequence_group = names("partial-update.remove-record-on-sequence-group")
    aggregation_remove_record_on_delete = required("aggregation.remove-record-on-delete", parse_bool)
    default_aggregate_function = optional("fields.default-aggregate-function", as_text)
    record_expire_millis = optional("record-level.expire-time", parse_duration_millis)
    record_time_field = optional("record-level.time-field", as_text)
    pk_clustering_override = required("pk-clustering-override", parse_bool)

    # Writing and compaction
    write_only = required("write-only", parse_bool)
    write_buffer_bytes = required("write-buffer-size", parse_memory)
    write_buffer_spillable = required("write-buffer-spillable", parse_bool)
    compaction_trigger = required("num-sorted-run.compaction-trigger", parse_int)
    compaction_max_size_amplification_percent = required("compaction.max-size-amplification-percent", parse_int)
    compaction_size_ratio = required("compaction.size-ratio", parse_int)
    compaction_offpeak_start_hour = required("compaction.offpeak.start.hour", parse_int)
    compaction_offpeak_end_hour = required("compaction.offpeak.end.hour", parse_int)
    compaction_offpeak_ratio = required("compaction.offpeak-ratio", parse_int)
    compaction_optimization_interval_millis = optional("compaction.optimization-interval", parse_duration_millis)
    compaction_total_size_threshold_bytes = optional("compaction.total-size-threshold", parse_memory)
    compaction_incremental_size_threshold_bytes = optional("compaction.incremental-size-threshold", parse_memory)
    compaction_force_up_level_0 = required("compaction.force-up-level-0", parse_bool)
    compaction_force_rewrite_all_files = required("compaction.force-rewrite-all-files", parse_bool)
    compaction_small_file_ratio = required("compaction.small-file-ratio", parse_double)
    compaction_min_file_num = required("compaction.min.file-num", parse_int)
    compaction_delete_ratio_threshold = required("compaction.delete-ratio-threshold", parse_double)
    full_compaction_delta_commits = optional("full-compaction.delta-commits", parse_int)
    changelog_producer = required("changelog-producer", as_word)
    changelog_row_deduplicate = required("changelog-producer.row-deduplicate", parse_bool)
    changelog_row_deduplicate_ignore_fields = names("changelog-producer.row-deduplicate-ignore-fields")
    force_lookup = required("force-lookup", parse_bool)
    lookup_wait = required("lookup-wait", parse_bool)
    lookup_compact = required("lookup-compact", as_word)
    lookup_cache_retention_millis = required("lookup.cache-file-retention", parse_duration_millis)
    lookup_cache_disk_bytes = optional("lookup.cache-max-disk-size", parse_memory)
    lookup_cache_memory_bytes = required("lookup.cache-max-memory-size", parse_memory)
    clustering_columns = names("clustering.columns")
    row_tracking_enabled = required("row-tracking.enabled", parse_bool)
    row_tracking_partition_group = required("row-tracking.partition-group-on-commit", parse_bool)
    data_evolution_enabled = required("data-evolution.enabled", parse_bool)

    # Retention
    snapshot_num_retained_min = required("snapshot.num-retained.min", parse_int)
    snapshot_num_retained_max = required("snapshot.num-retained.max", parse_int)
    snapshot_time_retained_millis = required("snapshot.time-retained", parse_duration_millis)
    snapshot_expire_limit = required("snapshot.expire.limit", parse_int)
    snapshot_clean_empty_directories = required("snapshot.clean-empty-directories", parse_bool)
    consumer_changelog_only = required("consumer.changelog-only", parse_bool)
    consumer_expiration_millis = optional("consumer.expiration-time", parse_duration_millis)
    tag_automatic_creation = required("tag.automatic-creation", as_word)
    tag_automatic_completion = required("tag.automatic-completion", parse_bool)
    tag_creation_delay_millis = required("tag.creation-delay", parse_duration_millis)
    tag_num_retained_max = optional("tag.num-retained-max", parse_int)
    tag_default_time_retained_millis = optional("tag.default-time-retained", parse_duration_millis)
    tag_time_expire_enabled = required("tag.time-expire-enabled", parse_bool)
    tag_create_success_file = required("tag.create-success-file", parse_bool)
    tag_batch_customized_name = optional("tag.batch.customized-name", as_text)
    partition_expiration_millis = optional("partition.expiration-time", parse_duration_millis)
    partition_expiration_check_interval_millis = required(
        "partition.expiration-check-interval", parse_duration_millis
    )
    partition_expiration_max_num = required("partition.expiration-max-num", parse_int)
    partition_expiration_batch_size = optional("partition.expiration-batch-size", parse_int)
    partition_expiration_strategy = required("partition.expiration-strategy", as_word)
    partition_timestamp_formatter = optional("partition.timestamp-formatter", as_text)
    partition_timestamp_pattern = optional("partition.timestamp-pattern", as_text)

    # Reading
    scan_mode = required("scan.mode", as_word)
    scan_snapshot_id = optional("scan.snapshot-id", parse_long)
    scan_tag_name = optional("scan.tag-name", as_text)
    scan_version = optional("scan.version", as_text)
    scan_watermark = optional("scan.watermark", parse_long)
    scan_timestamp = optional("scan.timestamp", as_text)
    scan_timestamp_millis = optional("scan.timestamp-millis", parse_long)
    scan_bucket = optional("scan.bucket", parse_int)
    scan_fallback_branch = optional("scan.fallback-branch", as_text)
    scan_primary_branch = optional("scan.primary-branch", as_text)
    scan_ignore_corrupt_files = required("scan.ignore-corrupt-files", parse_bool)
    scan_ignore_lost_files = required("scan.ignore-lost-files", parse_bool)
    split_target_bytes = required("source.split.target-size", parse_memory)
    split_open_file_cost_bytes = required("source.split.open-file-cost", parse_memory)
    incremental_between = optional("incremental-between", as_text)
    incremental_between_timestamp = optional("incremental-between-timestamp", as_text)
    incremental_between_scan_mode = required("incremental-between-scan-mode", as_word)
    incremental_between_tag_to_snapshot = required("incremental-between-tag-to-snapshot", parse_bool)
    incremental_to_auto_tag = optional("incremental-to-auto-tag", as_text)
    streaming_read_overwrite = required("streaming-read-overwrite", parse_bool)
    streaming_read_append_overwrite = required("streaming-read-append-overwrite", parse_bool)
    table_read_sequence_number = required("table-read.sequence-number.enabled", parse_bool)
    streaming_read_delay_millis = optional("streaming.read.snapshot.delay", parse_duration_millis)
    continuous_discovery_interval_millis = required("continuous.discovery-interval", parse_duration_millis)
    scan_bounded_watermark = optional("scan.bounded.watermark", parse_long)
    consumer_id = optional("consumer-id", as_text)
    consumer_ignore_progress = required("consumer.ignore-progress", parse_bool)

    @classmethod
    def of(cls, values: Mapping[str, str]) -> TableOptions:
        """Options of these texts."""
        return cls(values)

    def with_values(self, values: Mapping[str, str]) -> TableOptions:
        """These options, overridden by `values`; an older key overrides the newer one that it stands for."""
        replaced = {canonical_key(key) for key in values}
        kept = {key: text for key, text in self.values.items() if canonical_key(key) not in replaced}
        return TableOptions({**kept, **values})

    def get(self, key: str) -> str | None:
        """The text in force for `key`: given, given under an older key, or the default; None where there is none."""
        return text_of(self.values, key)

    def file_format_at(self, level: int) -> str:
        """Format of data files on a level."""
        return self._at_level("file.format.per.level", level) or self.file_format

    def compression_at(self, level: int) -> str:
        """Codec of data files on a level."""
        return self._at_level("file.compression.per.level", level) or self.file_compression

    @property
    def changelog_file_format(self) -> str | None:
        """Format of changelog files where it is not that of data files."""
        return self.values.get("changelog-file.format")

    @property
    def changelog_file_compression(self) -> str | None:
        """Codec of changelog files where it is not that of data files."""
        return self.values.get("changelog-file.compression")

    def _at_level(self, key: str, level: int) -> str | None:
        text = self.values.get(key)
        return None if text is None else parse_levels(text, key).get(level)

    def stats_mode_of(self, column: str, level: int = 0) -> str:
        """Text of the statistics mode of a column on a level, leaving aside `metadata.stats-keep-first-n-columns`."""
        return (
            self.values.get(f"fields.{column}.stats-mode")
            or self._at_level("metadata.stats-mode.per.level", level)
            or self.stats_mode
        )

    def target_file_size_bytes(self, primary_key: bool) -> int:
        """Size to roll data files at; tables with a primary key have smaller ones."""
        text = self.values.get("target-file-size")
        return (128 if primary_key else 256) * MEBIBYTE if text is None else parse_memory(text, "target-file-size")

    @property
    def sequence_descending(self) -> bool:
        """Whether smaller values of the sequence fields win."""
        return (self.get("sequence.field.sort-order") or "").strip().lower() == "descending"

    @property
    def needs_lookup(self) -> bool:
        """Whether merges see one record above level 0, which compaction must look up."""
        return (
            self.changelog_producer == "lookup"
            or self.deletion_vectors_enabled
            or self.merge_engine == "first-row"
            or self.force_lookup
        )

    @property
    def lookup_compact_interval(self) -> int:
        """Triggers at which nothing else asks for level 0, of which the last takes it all the same."""
        if self.lookup_compact != "gentle":
            return 1
        text = self.values.get("lookup-compact.max-interval")
        given = 2 * self.compaction_trigger if text is None else parse_int(text, "lookup-compact.max-interval")
        return max(given, self.compaction_trigger)

    @property
    def num_levels(self) -> int:
        """Levels of a merge tree."""
        text = self.values.get("num-levels")
        return self.compaction_trigger + 1 if text is None else parse_int(text, "num-levels")

    @property
    def changelog_num_retained_min(self) -> int:
        """Changelogs kept at least."""
        text = self.values.get("changelog.num-retained.min")
        return self.snapshot_num_retained_min if text is None else parse_int(text, "changelog.num-retained.min")

    @property
    def changelog_num_retained_max(self) -> int:
        """Changelogs kept at most."""
        text = self.values.get("changelog.num-retained.max")
        return self.snapshot_num_retained_max if text is None else parse_int(text, "changelog.num-retained.max")

    @property
    def changelog_time_retained_millis(self) -> int:
        """Age that changelogs are kept for."""
        text = self.values.get("changelog.time-retained")
        if text is None:
            return self.snapshot_time_retained_millis
        return parse_duration_millis(text, "changelog.time-retained")
