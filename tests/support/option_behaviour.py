"""The test of each implemented option that shows that its value changes what the library does; the only such list.

A name after the test is the drawn or stored case that sets the option. `UNTESTED` options are read by code, but no test
of that kind is listed for them. That set may only shrink.
"""

_TESTS_BY_FILE = {
    "adapters/test_jdbc_catalog.py": {
        "metastore": "test_databases_and_tables",
        "uri": "test_a_catalog_travels_without_its_password",
        "warehouse": "test_databases_and_tables",
        "lock-acquire-timeout": "test_processes_append_to_a_careless_storage_after_one_died_with_the_lock",
        "sync-all-properties": "test_options_stay_out_of_the_catalog_where_it_is_told_so",
    },
    "adapters/test_parquet_encodings.py": {"parquet.enable.dictionary": "test_an_option_decides_for_all_columns"},
    "conformance/test_golden_manifest_merges.py": {
        "manifest.target-file-size": "test_merges_as_java_merges",
        "manifest.full-compaction-threshold-size": "test_merges_as_java_merges",
        "manifest.merge-min-count": "test_merges_as_java_merges",
    },
    "conformance/test_golden_retention.py": {
        "consumer.changelog-only": "test_consumers_hold_what_they_have_yet_to_read",
    },
    "conformance/test_golden_writes.py": {
        "bucket-function.type": "test_files_equal_javas bucket_fn_hive",
        "partition.legacy-name": "test_files_equal_javas part_legacy_name_off",
        "data-file.prefix": "test_files_equal_javas pk_paths",
        "data-file.path-directory": "test_files_equal_javas pk_paths",
    },
    "domain/changelog/test_changelog_rules.py": {"tag.period-formatter": "test_names_of_automatic_tags"},
    "domain/compaction/test_compaction_picks.py": {
        "compaction.offpeak.start.hour": "test_rules_come_from_options",
        "compaction.offpeak.end.hour": "test_rules_come_from_options",
        "compaction.offpeak-ratio": "test_rules_come_from_options",
        "compaction.optimization-interval": "test_rules_come_from_options",
        "compaction.total-size-threshold": "test_rules_come_from_options",
        "compaction.small-file-ratio": "test_rules_come_from_options",
        "compaction.size-ratio": "test_rules_come_from_options",
        "compaction.force-up-level-0": "test_tables_that_need_lookups_take_level_0",
        "force-lookup": "test_tables_that_need_lookups_take_level_0",
        "lookup-compact.max-interval": "test_tables_that_need_lookups_take_level_0",
    },
    "domain/compaction/test_compaction_units.py": {"bucket-append-ordered": "test_pack_rules_come_from_options"},
    "domain/metadata/test_retention_rules.py": {
        "changelog.num-retained.max": "test_changelogs_are_kept_where_any_of_their_settings_asks_for_more",
        "tag.creation-period": "test_periods_and_their_names",
        "tag.creation-period-duration": "test_periods_and_their_names",
        "tag.creation-delay": "test_a_tag_is_due_once_its_period_and_the_delay_are_over",
        "partition.expiration-strategy": "test_partitions_expire_in_their_order_and_not_too_many",
    },
    "domain/scan/test_column_statistics.py": {
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
        "primary-key.nullable": "test_nullable_keys_are_made_nullable",
    },
    "interop/test_commits_with_java.py": {"manifest.format": "test_java_reads_our_manifests_of_every_format"},
    "interop/test_retention_with_java.py": {
        "sink.watermark-time-zone": "test_automatic_tags_are_javas",
        "partition.timestamp-formatter": "test_partitions_that_expired_are_gone_for_java",
    },
    "operations/commit/test_after_commits.py": {
        "commit.callbacks": "test_names_in_the_option_must_be_bound_and_are_never_loaded",
    },
    "operations/commit/test_commit.py": {
        "branch": "test_a_branch_has_its_own_snapshots_and_shares_manifests",
        "snapshot.ignore-empty-commit": "test_an_empty_commit_is_skipped_or_made_as_asked",
        "commit.discard-duplicate-files": "test_duplicates_are_refused_or_dropped",
        "row-tracking.enabled": "test_rows_of_row_tracking_tables_get_ids",
    },
    "operations/commit/test_retries.py": {
        "commit.timeout": "test_no_retry_begins_after_the_timeout",
        "commit.max-retries": "test_so_many_retries_as_the_option_says",
        "commit.min-retry-wait": "test_waits_double_from_the_shortest_to_the_longest_with_a_fifth_of_chance",
        "commit.max-retry-wait": "test_waits_double_from_the_shortest_to_the_longest_with_a_fifth_of_chance",
    },
    "operations/read/test_changes.py": {
        "incremental-between": "test_the_difference_of_two_states",
        "incremental-between-scan-mode": "test_the_difference_of_two_states",
        "incremental-between-timestamp": "test_between_times",
        "incremental-to-auto-tag": "test_between_tags_and_to_an_automatic_tag",
        "incremental-between-tag-to-snapshot": "test_between_tags_and_to_an_automatic_tag",
        "streaming-read-overwrite": "test_overwrites_are_seen_where_an_option_says_so",
        "streaming-read-append-overwrite": "test_append_tables_tell_inserts",
    },
    "operations/read/test_fallback_branch.py": {"scan.fallback-branch": "test_without_the_option_main_stands_alone"},
    "operations/read/test_following.py": {
        "consumer-id": "test_progress_is_recorded_once_more_is_asked_for",
        "consumer.ignore-progress": "test_progress_is_recorded_once_more_is_asked_for",
        "changelog.num-retained.min": "test_long_lived_changelogs_are_followed",
        "scan.bounded.watermark": "test_a_delay_and_a_watermark_hold_it_back",
        "streaming.read.snapshot.delay": "test_a_delay_and_a_watermark_hold_it_back",
        "continuous.discovery-interval": "test_who_waits_is_woken_by_closing",
    },
    "operations/read/test_row_counts.py": {
        "deletion-vectors.enabled": "test_a_primary_key_table_with_deletion_vectors",
    },
    "operations/read/test_scan_modes.py": {
        "scan.mode": "test_compacted_full_reads_the_newest_compaction",
        "scan.file-creation-time-millis": "test_files_made_since_a_time",
        "scan.creation-time-millis": "test_the_first_state_since_a_time_else_the_files_made_since",
        "scan.timestamp": "test_the_first_state_since_a_time_else_the_files_made_since",
        "scan.timestamp-millis": "test_the_first_state_since_a_time_else_the_files_made_since",
    },
    "operations/read/test_scan_options.py": {
        "scan.bucket": "test_scan_bucket_reads_one_bucket",
        "scan.primary-branch": "test_the_primary_branch_comes_first",
        "scan.ignore-lost-files": "test_files_are_left_out_only_where_the_option_says_so",
        "scan.ignore-corrupt-files": "test_files_are_left_out_only_where_the_option_says_so",
        "data-evolution.enabled": "test_columns_in_several_files_are_not_left_out",
    },
    "operations/read/test_system_tables.py": {
        "table-read.sequence-number.enabled": "test_the_audit_log_and_the_binlog_may_show_sequence_numbers",
    },
    "operations/test_facade.py": {
        "scan.snapshot-id": "test_time_travel",
        "scan.tag-name": "test_time_travel",
        "dynamic-partition-overwrite": "test_overwrite_replaces_what_it_names",
        "file.format": "test_catalog_defaults_go_into_new_tables",
    },
    "operations/test_zeros_and_empties.py": {
        "scan.version": "test_an_empty_time_travel_option_never_reads_the_latest_state",
        "scan.watermark": "test_zero_is_a_place_in_history_that_does_not_exist",
    },
    "operations/upkeep/test_changelog_compaction.py": {
        "changelog-producer": "test_what_is_told_leads_from_state_to_state",
        "changelog-producer.row-deduplicate": "test_updates_that_change_nothing_that_counts_are_left_out",
        "changelog-producer.row-deduplicate-ignore-fields": "test_updates_that_change_nothing_that_counts_are_left_out",
        "changelog-file.prefix": "test_what_a_lookup_compaction_commits",
        "changelog-file.format": "test_what_a_lookup_compaction_commits",
        "changelog-file.compression": "test_what_a_lookup_compaction_commits",
        "file.block-size": "test_keys_of_any_type_are_found_in_files_of_many_blocks",
    },
    "operations/upkeep/test_compact.py": {
        "bucket-key": "test_small_files_of_append_tables_are_put_together",
        "target-file-size": "test_files_are_rolled_at_the_target_size",
        "pk-clustering-override": "test_what_compaction_would_do_wrongly_is_refused_by_name",
        "compaction.max-size-amplification-percent": (
            "test_deletes_stay_while_an_older_row_lies_below_and_go_at_the_top"
        ),
        "num-sorted-run.compaction-trigger": "test_deletes_stay_while_an_older_row_lies_below_and_go_at_the_top",
        "sequence.field.sort-order": "test_rows_before_are_rows_after_and_levels_do_not_overlap",
    },
    "operations/upkeep/test_expiring_records.py": {
        "record-level.expire-time": "test_files_of_the_top_level_are_rewritten_where_their_oldest_record_expired",
        "record-level.time-field": "test_an_expiry_without_a_time_is_refused",
    },
    "operations/upkeep/test_local_copies.py": {
        "lookup.cache-max-disk-size": "test_copies_take_no_more_disk_than_they_may",
        "lookup.cache-file-retention": "test_copies_that_nobody_asks_for_go",
    },
    "operations/upkeep/test_refs.py": {
        "snapshot.clean-empty-directories": "test_empty_directories_of_orphans_go_where_asked",
    },
    "operations/upkeep/test_upkeep.py": {
        "write-only": "test_a_write_only_table_leaves_it_to_the_compactor",
        "snapshot.num-retained.min": "test_snapshots_expire_with_the_commits_that_replace_them",
        "snapshot.num-retained.max": "test_the_limit_spreads_expiry_over_commits",
        "snapshot.time-retained": "test_snapshots_expire_with_the_commits_that_replace_them",
        "snapshot.expire.limit": "test_the_limit_spreads_expiry_over_commits",
        "tag.automatic-creation": "test_daily_tags_follow_the_clock",
        "tag.num-retained-max": "test_daily_tags_follow_the_clock",
        "tag.automatic-completion": "test_completion_makes_up_for_missed_periods",
        "tag.default-time-retained": "test_tags_live_as_long_as_they_are_told",
        "sink.process-time-zone": "test_daily_tags_follow_the_clock",
        "partition.expiration-time": "test_partitions_expire_once_an_interval",
        "partition.expiration-check-interval": "test_partitions_expire_once_an_interval",
        "consumer.expiration-time": "test_consumers_are_forgotten_when_they_stand_still",
    },
    "operations/upkeep/test_vectors_in_trees.py": {
        "deletion-vectors.merge-on-read": "test_level_0_is_shown_where_it_is_asked_for",
    },
    "operations/write/test_alter.py": {"alter-column-null-to-not-null.disabled": "test_nullability_follows_the_words"},
    "operations/write/test_inline_compaction.py": {
        "file.format.per.level": "test_what_compaction_writes_is_as_its_level_says",
        "file.compression": "test_what_compaction_writes_is_as_its_level_says",
        "file.compression.per.level": "test_what_compaction_writes_is_as_its_level_says",
        "num-levels": "test_what_compaction_writes_is_as_its_level_says",
        "full-compaction.delta-commits": "test_full_compactions_come_with_every_nth_identifier",
    },
    "operations/write/test_merge_engines.py": {
        "sequence.field": "test_of_equal_sequences_an_add_outlives_a_retract",
        "sequence.auto-padding": "test_of_equal_sequences_an_add_outlives_a_retract",
        "merge-engine": "test_a_group_may_remove_the_row",
        "partial-update.remove-record-on-sequence-group": "test_a_group_may_remove_the_row",
        "fields.default-aggregate-function": "test_partition_columns_are_neither_aggregated_nor_taken_back",
    },
    "operations/write/test_readable_rows.py": {
        "lookup-wait": "test_options_that_let_rows_wait_for_their_compaction_still_do",
        "lookup-compact": "test_options_that_let_rows_wait_for_their_compaction_still_do",
        "commit.strict-mode.last-safe-snapshot": (
            "test_strict_mode_refuses_no_compaction_that_was_planned_after_the_others"
        ),
    },
    "operations/write/test_refused_tables.py": {
        "primary-key.allow-floating": "test_floating_primary_keys_are_made_where_the_option_says_so",
        "type": "test_tables_of_other_types_are_neither_opened_nor_written",
        "blob-descriptor-field": "test_descriptors_are_not_read_as_values",
    },
    "operations/write/test_row_changes.py": {
        "aggregation.remove-record-on-delete": "test_aggregates_take_deletes_where_they_are_told_to",
        "deletion-vector.index-file.target-size": "test_index_files_that_hold_no_changed_vector_stay",
    },
    "operations/write/test_bad_records.py": {
        "partial-update.remove-record-on-delete": "test_retracts_are_refused_where_nothing_takes_them",
    },
    "operations/write/test_table_writer.py": {
        "bucket": "test_what_cannot_be_written_yet_is_said_at_once",
        "target-file-row-num": "test_files_roll_at_a_number_of_rows",
        "data-file.thin-mode": "test_thin_files_have_no_key_columns",
        "ignore-delete": "test_kinds_come_from_where_they_are_told",
        "ignore-update-before": "test_kinds_come_from_where_they_are_told",
        "rowkind.field": "test_kinds_come_from_where_they_are_told",
    },
    "operations/write/test_write_buffer.py": {
        "write-buffer-size": "test_files_are_the_same_however_small_the_parts_that_were_spilled",
    },
}

TESTS_OF_OPTIONS = {key: f"{file}::{test}" for file, tests in _TESTS_BY_FILE.items() for key, test in tests.items()}

UNTESTED = frozenset((
    "partition.default-name",
    "data-file.external-paths",
    "index-file-in-data-file-dir",
    "file.compression.zstd-level",
    "file.suffix.include.compression",
    "deletion-vectors.bitmap64",
    "manifest.compression",
    "manifest.delete-file-drop-stats",
    "commit.user-prefix",
    "write-buffer-spillable",
    "write-buffer-spill.max-disk-size",
    "compaction.incremental-size-threshold",
    "compaction.force-rewrite-all-files",
    "compaction.min.file-num",
    "compaction.delete-ratio-threshold",
    "lookup.cache-max-memory-size",
    "row-tracking.partition-group-on-commit",
    "changelog.time-retained",
    "tag.time-expire-enabled",
    "tag.create-success-file",
    "tag.batch.customized-name",
    "partition.expiration-max-num",
    "partition.expiration-batch-size",
    "partition.timestamp-pattern",
    "source.split.target-size",
    "source.split.open-file-cost",
    "lock-check-max-sleep",
))
