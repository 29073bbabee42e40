"""Known options of retention, reading, schema changes, and of catalogs.

Invariant: one entry for each option, as Java 1.4.2 (2.x for newer ones) defines it, with what this library does with
it.
Source: `CoreOptions`, `CatalogOptions`.
"""

from __future__ import annotations

from paimon.domain.options.option import Effect, Kind, Option, choice_option

NO_EFFECT, REFUSED = Effect.NO_EFFECT, Effect.REFUSED

RETENTION = (
    Option("snapshot.num-retained.min", Kind.INT, "10", "smallest number of snapshots to keep"),
    Option("snapshot.num-retained.max", Kind.INT, "2147483647", "largest number of snapshots to keep"),
    Option("snapshot.time-retained", Kind.DURATION, "1 h", "age up to which snapshots are kept"),
    Option("snapshot.expire.limit", Kind.INT, "50", "snapshots expired at once"),
    choice_option(
        "snapshot.expire.execution-mode",
        "sync async",
        "sync",
        "whether a commit waits for expiry",
        effect=NO_EFFECT,
        reason="expiry always ends before the commit returns",
    ),
    Option("snapshot.clean-empty-directories", Kind.BOOL, "false", "remove directories left empty"),
    Option(
        "changelog.num-retained.min",
        Kind.INT,
        None,
        "smallest number of changelogs to keep; by default as for snapshots",
    ),
    Option(
        "changelog.num-retained.max",
        Kind.INT,
        None,
        "largest number of changelogs to keep; by default as for snapshots",
    ),
    Option(
        "changelog.time-retained",
        Kind.DURATION,
        None,
        "age up to which changelogs are kept; by default as for snapshots",
    ),
    choice_option(
        "tag.automatic-creation", "none process-time watermark batch", "none", "when tags are created automatically"
    ),
    choice_option("tag.creation-period", "daily hourly two-hours", "daily", "period of automatic tags"),
    Option("tag.creation-period-duration", Kind.DURATION, None, "period of automatic tags, as a duration"),
    Option("tag.creation-delay", Kind.DURATION, "0 ms", "time after the end of a period at which its tag is created"),
    choice_option(
        "tag.period-formatter",
        "with_dashes without_dashes without_dashes_and_spaces",
        "with_dashes",
        "names of automatic tags",
    ),
    Option("tag.num-retained-max", Kind.INT, None, "largest number of automatic tags to keep"),
    Option("tag.default-time-retained", Kind.DURATION, None, "age up to which tags are kept"),
    Option("tag.time-expire-enabled", Kind.BOOL, "true", "let tags expire by age"),
    Option("tag.automatic-completion", Kind.BOOL, "false", "create the tags of missed periods"),
    Option("tag.create-success-file", Kind.BOOL, "false", "write a success file for each created tag"),
    Option("tag.batch.customized-name", Kind.TEXT, None, "name of tags after batch writes"),
    Option("sink.watermark-time-zone", Kind.TEXT, "UTC", "time zone of automatic tags by watermark"),
    Option("sink.process-time-zone", Kind.TEXT, None, "time zone of automatic tags by process time"),
    Option("partition.expiration-time", Kind.DURATION, None, "age at which partitions expire"),
    Option("partition.expiration-check-interval", Kind.DURATION, "1 h", "time between checks"),
    Option("partition.expiration-max-num", Kind.INT, "100", "largest number of partitions that expire at once"),
    Option("partition.expiration-batch-size", Kind.INT, None, "number of expired partitions that one commit drops"),
    Option("partition.expiration-strategy", Kind.TEXT, "values-time", "what the age of a partition is computed from"),
    Option("partition.timestamp-formatter", Kind.TEXT, None, "format of times in partition values"),
    Option("partition.timestamp-pattern", Kind.TEXT, None, "how partition values make a time"),
    Option(
        "partition.mark-done-action",
        Kind.TEXT,
        "success-file",
        "what marks a partition as done: success-file, http-report, custom, separated by commas",
    ),
    Option("partition.mark-done-action.http.url", Kind.TEXT, None, "URL of the reports of done partitions"),
    Option("partition.mark-done-action.http.params", Kind.TEXT, None, "text in the reports of done partitions"),
    Option("partition.mark-done-action.custom.class", Kind.TEXT, None, "callback for done partitions"),
    Option("consumer-id", Kind.TEXT, None, "name under which a stream reader records its progress"),
    choice_option(
        "consumer.mode",
        "exactly-once at-least-once",
        "exactly-once",
        "how progress is kept",
        effect=NO_EFFECT,
        reason="a stream has one reader, and in both modes a new reader repeats what was not finished",
    ),
    Option("consumer.ignore-progress", Kind.BOOL, "false", "start without the recorded progress"),
    Option("consumer.expiration-time", Kind.DURATION, None, "time without progress after which consumers expire"),
    Option("consumer.changelog-only", Kind.BOOL, "false", "consumers protect changelogs only"),
    Option(
        "file-operation.thread-num",
        Kind.INT,
        None,
        "threads for file operations",
        effect=NO_EFFECT,
        reason="the catalog option 'threads' limits the threads",
    ),
)

READING = (
    choice_option(
        "scan.mode",
        "default latest-full full latest compacted-full from-timestamp from-snapshot "
        "from-snapshot-full from-file-creation-time from-creation-timestamp incremental latest-delta",
        "default",
        "what a scan starts from",
    ),
    Option("scan.snapshot-id", Kind.LONG, None, "read this snapshot"),
    Option("scan.tag-name", Kind.TEXT, None, "read this tag"),
    Option("scan.version", Kind.TEXT, None, "read this tag, snapshot or watermark-N"),
    Option("scan.watermark", Kind.LONG, None, "read the first snapshot at this watermark"),
    Option("scan.timestamp", Kind.TEXT, None, "read as of this time"),
    Option("scan.timestamp-millis", Kind.LONG, None, "read as of this time"),
    Option("scan.file-creation-time-millis", Kind.LONG, None, "read the files that were created since this time"),
    Option(
        "scan.creation-time-millis",
        Kind.LONG,
        None,
        "read the first state after this time, or else the files that were created since",
    ),
    Option("scan.bounded.watermark", Kind.LONG, None, "end a stream at this watermark"),
    Option("scan.bucket", Kind.INT, None, "read one bucket"),
    Option(
        "scan.plan-sort-partition",
        Kind.BOOL,
        "false",
        "order splits by partition",
        effect=REFUSED,
        reason="Splits are not sorted by partition. Sort the rows that you read.",
    ),
    Option(
        "scan.fallback-branch",
        Kind.TEXT,
        None,
        "branch from which partitions are read that the main branch does not have",
    ),
    Option(
        "scan.primary-branch", Kind.TEXT, None, "branch whose partitions are read instead of those of the main branch"
    ),
    Option(
        "scan.manifest.parallelism",
        Kind.INT,
        None,
        "manifests read at once",
        effect=NO_EFFECT,
        reason="the catalog option 'threads' limits the threads",
    ),
    Option("scan.ignore-corrupt-files", Kind.BOOL, "false", "leave out files that cannot be read"),
    Option("scan.ignore-lost-files", Kind.BOOL, "false", "leave out files that are missing"),
    Option("incremental-between", Kind.TEXT, None, "read the changes between two snapshots or tags"),
    Option("incremental-between-timestamp", Kind.TEXT, None, "read the changes between two times"),
    Option("incremental-to-auto-tag", Kind.TEXT, None, "read the changes up to an automatic tag"),
    choice_option("incremental-between-scan-mode", "auto delta changelog diff", "auto", "what counts as changes"),
    Option(
        "incremental-between-tag-to-snapshot", Kind.BOOL, "false", "read the changes of each snapshot between two tags"
    ),
    Option("streaming-read-overwrite", Kind.BOOL, "false", "streams see overwrites"),
    Option("streaming-read-append-overwrite", Kind.BOOL, "false", "streams see overwrites of append tables"),
    Option("streaming.read.snapshot.delay", Kind.DURATION, None, "age at which a stream reads a snapshot"),
    Option("continuous.discovery-interval", Kind.DURATION, "10 s", "time between checks for new snapshots"),
    Option("source.split.target-size", Kind.MEMORY, "128 mb", "size of a split"),
    Option(
        "source.split.open-file-cost", Kind.MEMORY, "4 mb", "size that a smaller file counts as when splits are packed"
    ),
    Option(
        "file-reader-async-threshold",
        Kind.MEMORY,
        "10 mb",
        "larger files are read ahead",
        effect=NO_EFFECT,
        reason="the file reader decides what it reads ahead; rows are the same",
    ),
    Option("table-read.sequence-number.enabled", Kind.BOOL, "false", "sequence numbers in audit_log"),
    Option(
        "alter-column-null-to-not-null.disabled", Kind.BOOL, "true", "refuse to change a nullable column to NOT NULL"
    ),
    Option("disable-explicit-type-casting", Kind.BOOL, "false", "refuse type changes that can lose information"),
    Option("add-column-before-partition", Kind.BOOL, "false", "new columns come before partition keys"),
)


def _refused_option(key: str, kind: Kind, default: str | None, doc: str) -> Option:
    """Return an option of catalogs that this library does not follow."""
    hint = "The options that a catalog takes are those that paimon.connect describes. Leave this one out."
    return Option(key, kind, default, doc, catalog=True, effect=REFUSED, reason=hint)


CATALOG = (
    Option("warehouse", Kind.TEXT, None, "root of the catalog", catalog=True),
    Option("metastore", Kind.TEXT, "filesystem", "kind of catalog: filesystem or jdbc", catalog=True),
    Option("uri", Kind.TEXT, None, "URL of the database of a JDBC catalog", catalog=True),
    _refused_option("table.type", Kind.TEXT, "managed", "managed or external"),
    _refused_option("lock.enabled", Kind.BOOL, None, "lock commits and schema changes"),
    _refused_option("lock.type", Kind.TEXT, None, "kind of lock"),
    Option("lock-check-max-sleep", Kind.DURATION, "8 s", "longest wait between two attempts", catalog=True),
    Option("lock-acquire-timeout", Kind.DURATION, "8 min", "longest wait for the lock", catalog=True),
    _refused_option("cache-enabled", Kind.BOOL, "true", "cache metadata"),
    _refused_option("cache.expire-after-access", Kind.DURATION, "10 min", "age of unused cache entries"),
    _refused_option("cache.expire-after-write", Kind.DURATION, "30 min", "age of cache entries"),
    _refused_option("cache.manifest.small-file-memory", Kind.MEMORY, "128 mb", "memory for small manifests"),
    _refused_option("cache.manifest.small-file-threshold", Kind.MEMORY, "1 mb", "size of small manifests"),
    _refused_option("cache.manifest.max-memory", Kind.MEMORY, None, "memory for manifests"),
    _refused_option("cache.snapshot.max-num-per-table", Kind.INT, "20", "cached snapshots"),
    _refused_option("cache.partition.max-num", Kind.LONG, "0", "cached partitions"),
    _refused_option("cache.deletion-vectors.max-num", Kind.INT, "100000", "cached deletion vectors"),
    _refused_option("case-sensitive", Kind.BOOL, None, "whether names differ by case"),
    Option(
        "sync-all-properties", Kind.BOOL, "true", "store all table options in the database of the catalog", catalog=True
    ),
    _refused_option("format-table.enabled", Kind.BOOL, "true", "support format tables"),
    _refused_option("resolving-file-io.enabled", Kind.BOOL, "false", "choose the file system by path"),
)
