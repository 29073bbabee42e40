"""The test of each implemented option that shows that its value changes what the library does; the only such list.

A name after the test is the drawn or stored case that sets the option.
"""

_TESTS_BY_FILE = {
    "operations/test_global_indexes.py": {
        "btree-index.block-size": "test_the_options_limit_blocks_and_files",
        "btree-index.records-per-range": "test_the_options_limit_blocks_and_files",
        "global-index.column-update-action": "test_updates_of_indexed_values_are_refused_or_drop_the_index",
        "global-index.enabled": "test_damage_and_missing_files_are_reported",
        "global-index.external-path": "test_columns_and_tables_that_cannot_be_indexed",
    },
    "operations/write/test_vector_columns.py": {
        "vector.file.format": "test_vectors_in_files_of_their_own",
        "vector.target-file-size": "test_vector_files_end_by_their_size",
    },
    "operations/write/test_blob_columns.py": {
        "blob-field": "test_columns_of_bytes_become_blobs",
        "blob.target-file-size": "test_blob_files_end_by_their_size_and_with_the_other_columns",
    },
    "adapters/catalogs/test_jdbc_catalog.py": {
        "metastore": "test_databases_and_tables",
        "uri": "test_a_pickled_catalog_has_no_password",
        "warehouse": "test_databases_and_tables",
        "lock-acquire-timeout": "test_processes_append_after_a_crash_with_the_lock",
        "sync-all-properties": "test_options_are_not_copied_to_the_catalog_if_configured",
        "lock-check-max-sleep": "test_an_option_limits_the_pauses_between_attempts_to_lock",
    },
    "adapters/formats/test_parquet_encodings.py": {
        "parquet.delta-integers": "test_options_and_short_files_keep_plain_values_and_one_codec",
        "parquet.enable.dictionary": "test_an_option_decides_for_all_columns",
    },
    "conformance/test_golden_manifest_merges.py": {
        "manifest.target-file-size": "test_merges_as_java_merges",
        "manifest.full-compaction-threshold-size": "test_merges_as_java_merges",
        "manifest.merge-min-count": "test_merges_as_java_merges",
    },
    "conformance/test_golden_maintenance.py": {
        "consumer.changelog-only": "test_consumers_protect_unread_snapshots",
    },
    "conformance/test_golden_writes.py": {
        "bucket-function.type": "test_files_equal_javas bucket_fn_hive",
        "partition.legacy-name": "test_files_equal_javas part_legacy_name_off",
        "data-file.prefix": "test_files_equal_javas pk_paths",
        "data-file.path-directory": "test_files_equal_javas pk_paths",
    },
    "domain/changelog/test_changelog_rules.py": {"tag.period-formatter": "test_names_of_automatic_tags"},
    "domain/lsm/test_compaction_picks.py": {
        "compaction.offpeak.start.hour": "test_rules_are_read_from_options",
        "compaction.offpeak.end.hour": "test_rules_are_read_from_options",
        "compaction.offpeak-ratio": "test_rules_are_read_from_options",
        "compaction.optimization-interval": "test_rules_are_read_from_options",
        "compaction.total-size-threshold": "test_rules_are_read_from_options",
        "compaction.small-file-ratio": "test_rules_are_read_from_options",
        "compaction.size-ratio": "test_rules_are_read_from_options",
        "compaction.force-up-level-0": "test_tables_that_need_lookups_take_level_0",
        "force-lookup": "test_tables_that_need_lookups_take_level_0",
        "lookup-compact.max-interval": "test_tables_that_need_lookups_take_level_0",
    },
    "domain/lsm/test_compaction_units.py": {"bucket-append-ordered": "test_pack_rules_are_read_from_options"},
    "operations/compact/test_sorted_compaction.py": {
        "zorder.var-length-contribution": "test_an_option_limits_the_bytes_of_a_text_in_a_zorder",
    },
    "operations/compact/test_clustered_keys.py": {
        "pk-clustering-override": "test_a_full_compaction_leaves_one_run_in_the_order_of_the_columns",
    },
    "operations/compact/test_clustering.py": {
        "clustering.columns": "test_a_full_compaction_clusters_again_after_the_columns_changed",
        "clustering.incremental": "test_compactions_cluster_the_newest_runs",
        "clustering.incremental.mode": "test_files_are_sorted_one_by_one_with_local_sort",
        "clustering.history-partition.idle-to-full-sort": (
            "test_idle_partitions_are_clustered_with_those_of_a_condition"
        ),
        "clustering.history-partition.limit": "test_idle_partitions_are_clustered_with_those_of_a_condition",
        "clustering.strategy": "test_the_strategy_follows_from_the_number_of_columns",
    },
    "operations/compact/test_sort_tasks.py": {
        "sort-compaction.range-strategy": "test_an_option_balances_ranges_by_bytes_or_by_rows",
        "sort-compaction.local-sample.magnification": "test_an_option_decides_how_many_rows_are_sampled",
    },
    "domain/maintenance/test_expiry_rules.py": {
        "changelog.num-retained.max": "test_changelogs_are_decoupled_if_their_retention_is_longer",
        "tag.creation-period": "test_periods_and_their_names",
        "tag.creation-period-duration": "test_periods_and_their_names",
        "tag.creation-delay": "test_a_tag_is_due_once_its_period_and_the_delay_are_over",
        "partition.expiration-strategy": "test_partitions_expire_in_their_order_and_not_too_many",
    },
    "operations/maintenance/test_rare_procedures.py": {
        "partition.mark-done-action": "test_partitions_are_reported_and_given_to_a_callback",
        "partition.mark-done-action.http.url": "test_partitions_are_reported_and_given_to_a_callback",
        "partition.mark-done-action.http.params": "test_partitions_are_reported_and_given_to_a_callback",
        "partition.mark-done-action.custom.class": "test_partitions_are_reported_and_given_to_a_callback",
    },
    "domain/stats/test_column_statistics.py": {
        "changelog-file.stats-mode": "test_modes_by_column_level_and_position",
        "metadata.stats-mode": "test_modes_by_column_level_and_position",
        "metadata.stats-mode.per.level": "test_modes_by_column_level_and_position",
        "metadata.stats-keep-first-n-columns": "test_modes_by_column_level_and_position",
        "metadata.stats-dense-store": "test_dense_and_sparse_forms",
    },
    "domain/schema/test_schema_changes.py": {
        "deletion-vectors.modifiable": "test_java_and_we_agree set_dvmod",
        "disable-explicit-type-casting": "test_java_and_we_agree explicit_off",
        "add-column-before-partition": "test_java_and_we_agree add_before_part",
    },
    "domain/schema/test_schema_rules.py": {
        "primary-key": "test_a_declaration_is_normalised",
        "partition": "test_a_declaration_is_normalised",
        "primary-key.nullable": "test_an_option_makes_keys_nullable",
    },
    "interop/test_commits_with_java.py": {"manifest.format": "test_java_reads_our_manifests_of_every_format"},
    "interop/test_expiry_with_java.py": {
        "sink.watermark-time-zone": "test_automatic_tags_equal_those_of_java",
        "partition.timestamp-formatter": "test_java_does_not_read_expired_partitions",
    },
    "operations/commit/test_commit_outcomes.py": {
        "commit.callbacks": "test_names_in_the_option_must_be_bound_and_are_never_loaded",
    },
    "operations/commit/test_commit.py": {
        "branch": "test_a_branch_has_its_own_snapshots_and_shares_manifests",
        "snapshot.ignore-empty-commit": "test_an_empty_commit_is_skipped_or_published_as_requested",
        "commit.discard-duplicate-files": "test_duplicates_are_refused_or_dropped",
        "row-tracking.enabled": "test_rows_of_row_tracking_tables_get_ids",
    },
    "operations/write/test_late_rows.py": {
        "commit.late-rows.max-size": "test_rows_above_the_limit_stay_as_java_writes_them",
    },
    "operations/commit/test_retries.py": {
        "commit.timeout": "test_no_retry_begins_after_the_timeout",
        "commit.max-retries": "test_the_option_limits_the_retries",
        "commit.min-retry-wait": "test_waits_double_between_the_limits_with_random_fifths",
        "commit.max-retry-wait": "test_waits_double_between_the_limits_with_random_fifths",
    },
    "operations/read/test_changes.py": {
        "incremental-between": "test_the_difference_of_two_states",
        "incremental-between-scan-mode": "test_the_difference_of_two_states",
        "incremental-between-timestamp": "test_between_times",
        "incremental-to-auto-tag": "test_between_tags_and_to_an_automatic_tag",
        "incremental-between-tag-to-snapshot": "test_between_tags_and_to_an_automatic_tag",
        "streaming-read-overwrite": "test_an_option_includes_overwrites",
        "streaming-read-append-overwrite": "test_append_tables_return_inserts",
    },
    "operations/read/test_fallback_branch.py": {"scan.fallback-branch": "test_without_the_option_only_main_is_read"},
    "operations/buckets/test_cross_partition_tables.py": {
        "cross-partition-upsert.bootstrap-parallelism": "test_bootstrap_parallelism_limits_concurrent_reads",
        "cross-partition-upsert.index-ttl": "test_index_ttl_ignores_keys_of_old_files",
    },
    "operations/buckets/test_dynamic_buckets.py": {
        "dynamic-bucket.target-row-num": "test_keys_fill_one_bucket_after_the_other",
        "dynamic-bucket.max-buckets": "test_max_buckets_limits_a_partition",
        "dynamic-bucket.initial-buckets": "test_assigners_share_the_buckets_of_a_partition",
        "dynamic-bucket.assigner-parallelism": "test_assigners_share_the_buckets_of_a_partition",
    },
    "operations/stream/test_stream_scan.py": {
        "consumer-id": "test_progress_is_recorded_by_the_next_read",
        "consumer.ignore-progress": "test_progress_is_recorded_by_the_next_read",
        "changelog.num-retained.min": "test_long_lived_changelogs_are_followed",
        "scan.bounded.watermark": "test_a_delay_and_a_watermark_limit_the_snapshots",
        "streaming.read.snapshot.delay": "test_a_delay_and_a_watermark_limit_the_snapshots",
        "continuous.discovery-interval": "test_close_ends_a_waiting_scan",
    },
    "operations/read/test_row_counts.py": {
        "deletion-vectors.enabled": "test_a_primary_key_table_with_deletion_vectors",
    },
    "operations/read/test_scan_modes.py": {
        "scan.mode": "test_compacted_full_reads_the_newest_compaction",
        "scan.file-creation-time-millis": "test_files_created_since_a_time",
        "scan.creation-time-millis": "test_the_first_state_since_a_time_or_the_files_created_since",
        "scan.timestamp": "test_the_first_state_since_a_time_or_the_files_created_since",
        "scan.timestamp-millis": "test_the_first_state_since_a_time_or_the_files_created_since",
    },
    "operations/read/test_file_indexes.py": {
        "file-index.in-manifest-threshold": "test_small_indexes_are_in_the_manifest_and_large_ones_in_files",
        "file-index.read.enabled": "test_a_missing_index_file_ends_only_reads_that_use_indexes",
    },
    "operations/read/test_scan_options.py": {
        "scan.bucket": "test_scan_bucket_reads_one_bucket",
        "scan.primary-branch": "test_the_primary_branch_is_read_first",
        "scan.ignore-lost-files": "test_files_are_skipped_only_with_the_option",
        "scan.ignore-corrupt-files": "test_files_are_skipped_only_with_the_option",
        "data-evolution.enabled": "test_columns_in_several_files_are_not_left_out",
        "source.split.target-size": "test_small_splits_are_more_splits",
        "source.split.open-file-cost": "test_a_file_counts_at_least_as_much_as_it_costs_to_open",
    },
    "operations/read/test_system_tables.py": {
        "table-read.sequence-number.enabled": "test_the_audit_log_and_the_binlog_may_show_sequence_numbers",
    },
    "public/test_public_interface.py": {
        "scan.snapshot-id": "test_time_travel",
        "scan.tag-name": "test_time_travel",
        "dynamic-partition-overwrite": "test_overwrite_replaces_what_it_names",
        "file.format": "test_catalog_defaults_go_into_new_tables",
    },
    "public/test_zeros_and_empty_values.py": {
        "scan.version": "test_an_empty_time_travel_option_never_reads_the_latest_state",
        "scan.watermark": "test_snapshot_and_timestamp_zero_do_not_exist",
    },
    "operations/compact/test_changelog_compaction.py": {
        "changelog-producer": "test_each_changelog_leads_to_the_next_state",
        "changelog-producer.row-deduplicate": "test_updates_that_change_nothing_that_counts_are_left_out",
        "changelog-producer.row-deduplicate-ignore-fields": "test_updates_that_change_nothing_that_counts_are_left_out",
        "changelog-file.prefix": "test_what_a_lookup_compaction_commits",
        "changelog-file.format": "test_what_a_lookup_compaction_commits",
        "changelog-file.compression": "test_what_a_lookup_compaction_commits",
        "file.block-size": "test_keys_of_any_type_are_found_in_files_of_many_blocks",
    },
    "operations/compact/test_compact.py": {
        "bucket-key": "test_small_files_of_append_tables_are_put_together",
        "target-file-size": "test_files_are_rolled_at_the_target_size",
        "compaction.max-size-amplification-percent": (
            "test_deletes_are_kept_above_older_rows_and_dropped_on_the_top_level"
        ),
        "num-sorted-run.compaction-trigger": "test_deletes_are_kept_above_older_rows_and_dropped_on_the_top_level",
        "sequence.field.sort-order": "test_rows_before_are_rows_after_and_levels_do_not_overlap",
    },
    "operations/compact/test_record_expiry.py": {
        "record-level.expire-time": "test_files_of_the_top_level_are_rewritten_where_their_oldest_record_expired",
        "record-level.time-field": "test_an_expiry_without_a_time_is_refused",
    },
    "operations/compact/test_lookup_cache.py": {
        "lookup.cache-max-disk-size": "test_lookup_files_stay_within_the_disk_limit",
        "lookup.cache-file-retention": "test_unused_lookup_files_are_removed",
        "lookup.cache-max-memory-size": "test_less_memory_makes_smaller_blocks_of_lookup_files",
    },
    "operations/refs/test_refs.py": {
        "snapshot.clean-empty-directories": "test_empty_directories_of_orphans_are_deleted_if_configured",
    },
    "operations/maintenance/test_maintenance.py": {
        "write-only": "test_only_the_compactor_maintains_a_write_only_table",
        "snapshot.num-retained.min": "test_snapshots_expire_with_the_commits_that_replace_them",
        "snapshot.num-retained.max": "test_the_limit_spreads_expiry_over_commits",
        "snapshot.time-retained": "test_snapshots_expire_with_the_commits_that_replace_them",
        "snapshot.expire.limit": "test_the_limit_spreads_expiry_over_commits",
        "tag.automatic-creation": "test_daily_tags_follow_the_clock",
        "tag.num-retained-max": "test_daily_tags_follow_the_clock",
        "tag.automatic-completion": "test_completion_creates_tags_of_missed_periods",
        "tag.default-time-retained": "test_tags_expire_after_their_retention_time",
        "sink.process-time-zone": "test_daily_tags_follow_the_clock",
        "partition.expiration-time": "test_partitions_expire_once_an_interval",
        "partition.expiration-check-interval": "test_partitions_expire_once_an_interval",
        "consumer.expiration-time": "test_consumers_without_progress_expire",
        "changelog.time-retained": "test_changelogs_expire_by_their_own_age",
        "tag.time-expire-enabled": "test_tags_expire_after_commits_unless_an_option_forbids_it",
        "tag.create-success-file": "test_an_option_marks_tags_by_a_file",
        "tag.batch.customized-name": "test_tags_of_batches",
        "partition.timestamp-pattern": "test_a_pattern_finds_the_time_in_partition_values",
        "partition.expiration-max-num": "test_an_option_limits_the_partitions_that_expire_at_once",
        "partition.expiration-batch-size": "test_partitions_expire_in_commits_of_a_size",
    },
    "operations/write/test_external_paths.py": {
        "data-file.external-paths": "test_all_files_of_rows_are_outside_the_table",
        "data-file.external-paths.strategy": "test_the_roots_take_turns_or_have_weights_or_directories_of_a_hash",
        "data-file.external-paths.specific-fs": "test_specific_fs_uses_the_roots_of_its_scheme",
        "data-file.external-paths.weights": "test_the_roots_take_turns_or_have_weights_or_directories_of_a_hash",
    },
    "operations/compact/test_deletion_vectors.py": {
        "deletion-vectors.merge-on-read": "test_level_0_is_read_if_requested",
    },
    "public/test_alter.py": {"alter-column-null-to-not-null.disabled": "test_nullability_changes_only_if_named"},
    "operations/write/test_inline_compaction.py": {
        "file.format.per.level": "test_compaction_output_has_the_settings_of_its_level",
        "file.compression": "test_compaction_output_has_the_settings_of_its_level",
        "file.compression.per.level": "test_compaction_output_has_the_settings_of_its_level",
        "num-levels": "test_compaction_output_has_the_settings_of_its_level",
        "full-compaction.delta-commits": "test_a_full_compaction_runs_with_every_nth_identifier",
    },
    "operations/write/test_merge_engines.py": {
        "sequence.field": "test_an_add_precedes_a_retract_of_equal_sequence",
        "sequence.auto-padding": "test_an_add_precedes_a_retract_of_equal_sequence",
        "merge-engine": "test_a_group_may_remove_the_row",
        "partial-update.remove-record-on-sequence-group": "test_a_group_may_remove_the_row",
        "fields.default-aggregate-function": "test_partition_columns_are_neither_aggregated_nor_retracted",
    },
    "operations/write/test_row_visibility.py": {
        "lookup-wait": "test_options_that_allow_hidden_rows_are_respected",
        "lookup-compact": "test_options_that_allow_hidden_rows_are_respected",
        "commit.strict-mode.last-safe-snapshot": (
            "test_strict_mode_refuses_no_compaction_that_was_planned_after_the_others"
        ),
    },
    "operations/write/test_refused_tables.py": {
        "primary-key.allow-floating": "test_floating_primary_keys_are_allowed_by_an_option",
        "type": "test_tables_of_other_types_are_neither_opened_nor_written",
        "blob-descriptor-field": "test_descriptors_are_not_read_as_values",
    },
    "operations/row_level/test_row_changes.py": {
        "aggregation.remove-record-on-delete": "test_aggregations_accept_deletes_if_configured",
        "deletion-vector.index-file.target-size": "test_index_files_that_hold_no_changed_vector_stay",
    },
    "operations/write/test_bad_records.py": {
        "partial-update.remove-record-on-delete": "test_retracts_are_refused_where_no_option_accepts_them",
    },
    "operations/write/test_postponed_buckets.py": {
        "postpone.batch-write-fixed-bucket": "test_batch_writes_go_to_fixed_buckets_if_configured",
        "postpone.default-bucket-num": "test_options_set_the_first_number_of_buckets",
        "postpone.target-row-num-per-bucket": "test_options_set_the_first_number_of_buckets",
        "postpone.target-size-per-bucket": "test_options_set_the_first_number_of_buckets",
    },
    "spark/test_spark_postponed.py": {
        "postpone.batch-write-fixed-bucket.max-parallelism": "test_tasks_get_a_bucket_each_up_to_a_limit",
    },
    "operations/write/test_table_writer.py": {
        "bucket": "test_partitions_preserve_their_number_of_buckets",
        "target-file-row-num": "test_files_roll_at_a_number_of_rows",
        "data-file.thin-mode": "test_thin_files_have_no_key_columns",
        "ignore-delete": "test_row_kinds_are_read_from_the_configured_place",
        "ignore-update-before": "test_row_kinds_are_read_from_the_configured_place",
        "rowkind.field": "test_row_kinds_are_read_from_the_configured_place",
    },
    "operations/write/test_write_buffer.py": {
        "write-buffer-size": "test_files_are_the_same_however_small_the_parts_that_were_spilled",
    },
    "operations/write/test_missing_columns.py": {
        "write.missing-columns": "test_the_option_of_the_table_allows_null",
    },
    "operations/write/test_file_options.py": {
        "partition.default-name": "test_an_option_names_the_directory_of_null_partitions",
        "file.compression.zstd-level": "test_a_higher_level_of_zstd_makes_smaller_files",
        "file.suffix.include.compression": "test_an_option_puts_the_codec_into_file_names",
        "index-file-in-data-file-dir": "test_an_option_moves_index_files_to_the_data_files",
        "deletion-vectors.bitmap64": "test_an_option_chooses_the_width_of_deletion_vectors",
        "write-buffer-spillable": "test_a_buffer_that_cannot_spill_writes_more_files",
        "write-buffer-spill.max-disk-size": "test_a_buffer_with_less_disk_writes_more_files",
    },
    "operations/commit/test_commit_options.py": {
        "manifest.compression": "test_an_option_chooses_the_codec_of_manifests",
        "manifest.delete-file-drop-stats": "test_an_option_leaves_the_statistics_of_deleted_files_out",
        "commit.user-prefix": "test_an_option_prefixes_the_users_of_commits",
        "row-tracking.partition-group-on-commit": "test_row_ids_may_be_given_partition_by_partition",
    },
    "operations/compact/test_compaction_options.py": {
        "compaction.incremental-size-threshold": "test_new_data_of_a_size_starts_a_full_compaction",
        "compaction.force-rewrite-all-files": "test_files_that_could_stay_are_rewritten_if_configured",
        "compaction.min.file-num": "test_fewer_small_files_than_configured_are_left",
        "compaction.delete-ratio-threshold": "test_a_large_file_is_rewritten_at_a_share_of_deleted_rows",
    },
}

TESTS_OF_OPTIONS = {key: f"{file}::{test}" for file, tests in _TESTS_BY_FILE.items() for key, test in tests.items()}
