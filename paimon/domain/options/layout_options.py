"""Known options of layout, files, statistics and indexes.

Invariant: one entry for each option, as Java 1.4.2 (2.x for newer ones) defines it, with what this library does with
it.
Source: `CoreOptions`, `FileIndexOptions`.
"""

from __future__ import annotations

from paimon.domain.options.option import Effect, Kind, Option, choice_option

NO_EFFECT, REFUSED = Effect.NO_EFFECT, Effect.REFUSED

FILE_FORMATS = ("parquet", "orc", "avro")
"""The formats of data files. `paimon.adapters.formats.on_demand` loads each of them."""

LAYOUT = (
    choice_option(
        "type",
        "table format-table materialized-table object-table lance-table iceberg-table",
        "table",
        "kind of table",
        immutable=True,
    ),
    Option("bucket", Kind.INT, "-1", "number of buckets; -1 dynamic or none, -2 postponed"),
    Option("bucket-key", Kind.NAMES, None, "columns that the bucket is computed from", immutable=True),
    choice_option("bucket-function.type", "default mod hive", "default", "how the bucket is computed", immutable=True),
    Option("bucket-append-ordered", Kind.BOOL, "true", "keep the order of rows inside append buckets"),
    Option("primary-key", Kind.NAMES, None, "primary key; moved into the schema", immutable=True),
    Option("primary-key.nullable", Kind.BOOL, "false", "allow null in primary keys", immutable=True),
    Option(
        "primary-key.allow-floating",
        Kind.BOOL,
        "false",
        "allow FLOAT and DOUBLE in new primary keys (not in Java)",
        immutable=True,
    ),
    Option("partition", Kind.NAMES, None, "partition keys; moved into the schema", immutable=True),
    Option(
        "path",
        Kind.TEXT,
        None,
        "location of the table",
        effect=REFUSED,
        reason="A catalog chooses the location. Open a table at another place with paimon.open_table(path).",
    ),
    Option("branch", Kind.TEXT, "main", "branch that is read and written"),
    Option("partition.default-name", Kind.TEXT, "__DEFAULT_PARTITION__", "path text of null and blank values"),
    Option("partition.legacy-name", Kind.BOOL, "true", "render dates in partition paths as numbers"),
    Option("data-file.path-directory", Kind.TEXT, None, "sub directory for data files", immutable=True),
    Option(
        "data-file.external-paths", Kind.NAMES, None, "roots for data files outside the table; each table needs its own"
    ),
    choice_option(
        "data-file.external-paths.strategy",
        "none specific-fs round-robin entropy-inject weight-robin",
        "none",
        "how an external root is chosen; files are written in the table with 'none'",
    ),
    Option("data-file.external-paths.specific-fs", Kind.TEXT, None, "scheme of the roots that 'specific-fs' uses"),
    Option(
        "data-file.external-paths.weights", Kind.TEXT, None, "weights of the roots for 'weight-robin', such as 10,5"
    ),
    Option("data-file.prefix", Kind.TEXT, "data-", "name prefix of data files"),
    Option("changelog-file.prefix", Kind.TEXT, "changelog-", "name prefix of changelog files"),
    Option(
        "index-file-in-data-file-dir", Kind.BOOL, "false", "keep index files next to the data files", immutable=True
    ),
    Option(
        "global-index.external-path",
        Kind.TEXT,
        None,
        "root of global indexes outside the table",
        reason="files there are read under allowed roots; building an index is refused while the option is set",
    ),
    Option(
        "auto-create",
        Kind.BOOL,
        "false",
        "create the storage on access",
        effect=REFUSED,
        reason="Create the table before you open it.",
    ),
    Option(
        "owner",
        Kind.TEXT,
        None,
        "owner, as engines record it",
        effect=NO_EFFECT,
        reason="engines store this text; reads and writes do not use it",
    ),
    Option(
        "provider",
        Kind.TEXT,
        None,
        "provider, as engines record it",
        effect=NO_EFFECT,
        reason="engines store this text; reads and writes do not use it",
    ),
    Option(
        "comment",
        Kind.TEXT,
        None,
        "comment, as engines record it",
        effect=NO_EFFECT,
        reason="engines store this text; reads and writes do not use it",
    ),
)

FILES = (
    Option("file.format", Kind.TEXT, "parquet", f"format of data files: {', '.join(FILE_FORMATS)}"),
    Option("file.format.per.level", Kind.LEVELS, None, "format by level"),
    Option(
        "file.compression",
        Kind.TEXT,
        "zstd",
        "codec of data files; if not given, Parquet columns of which zstd saves little have none",
    ),
    Option("file.compression.per.level", Kind.LEVELS, None, "codec by level"),
    Option(
        "file.compression.zstd-level",
        Kind.INT,
        "1",
        "level of zstd",
        reason="ORC files have two levels: 1, and every higher one",
    ),
    Option("file.block-size", Kind.MEMORY, None, "size of a stripe or row group"),
    Option("file.suffix.include.compression", Kind.BOOL, "false", "name the codec in file names"),
    Option("changelog-file.format", Kind.TEXT, None, "format of changelog files"),
    Option("changelog-file.compression", Kind.TEXT, None, "codec of changelog files"),
    Option("changelog-file.stats-mode", Kind.STATS_MODE, None, "statistics of changelog files"),
    Option(
        "target-file-size", Kind.MEMORY, None, "size at which a data file is complete; 128 mb with keys, else 256 mb"
    ),
    Option("target-file-row-num", Kind.LONG, None, "rows at which a data file is complete"),
    Option(
        "blob.target-file-size",
        Kind.MEMORY,
        None,
        "size at which a file of a BLOB column is complete; by default that of a data file",
    ),
    Option(
        "vector.target-file-size",
        Kind.MEMORY,
        None,
        "size at which a file of VECTOR columns is complete; by default that of a data file",
    ),
    Option("data-file.thin-mode", Kind.BOOL, "false", "leave the key columns out of data files"),
    Option("parquet.enable.dictionary", Kind.TEXT, None, "dictionary encoding of Parquet"),
    Option(
        "parquet.delta-integers",
        Kind.BOOL,
        "true",
        "store integers, dates and times without a dictionary as differences, DELTA_BINARY_PACKED (not in Java)",
    ),
    Option(
        "orc.timestamp-ltz.legacy.type",
        Kind.BOOL,
        "true",
        "write LTZ through the local zone in ORC",
        effect=NO_EFFECT,
        reason="the instant is stored, as Java does with 'false', and with 'true' if its time zone is UTC",
    ),
    Option(
        "read.batch-size",
        Kind.INT,
        "1024",
        "rows of a batch when reading",
        effect=NO_EFFECT,
        reason="the reader chooses the batch size; rows are the same",
    ),
    Option(
        "write.batch-size",
        Kind.INT,
        "1024",
        "rows of a batch when writing",
        effect=NO_EFFECT,
        reason="'write-buffer-size' and the memory budget limit the batches",
    ),
    Option(
        "write.batch-memory",
        Kind.MEMORY,
        "128 mb",
        "memory of a batch when writing",
        effect=NO_EFFECT,
        reason="'write-buffer-size' and the memory budget limit the batches",
    ),
    Option(
        "variant.shreddingSchema",
        Kind.TEXT,
        None,
        "how VARIANT columns are shredded",
        effect=REFUSED,
        reason="VARIANT columns are written without shredding. Leave the option out, or write with Java's Paimon.",
    ),
    Option(
        "variant.inferShreddingSchema",
        Kind.BOOL,
        "false",
        "infer how VARIANT columns are shredded",
        effect=REFUSED,
        reason="VARIANT columns are written without shredding. Leave the option out, or write with Java's Paimon.",
    ),
    Option("vector.file.format", Kind.TEXT, None, "store VECTOR columns in files of their own, in this format"),
    Option("blob-field", Kind.NAMES, None, "columns of type BYTES that a new table has as BLOB", immutable=True),
    Option("blob-descriptor-field", Kind.NAMES, None, "columns that hold blob descriptors", immutable=True),
    Option(
        "blob-as-descriptor",
        Kind.BOOL,
        "false",
        "read and write blobs as descriptors",
        effect=REFUSED,
        reason="BLOB columns are read as bytes. Leave the option out, or read the table with Java's Paimon.",
    ),
)

STATISTICS = (
    Option("metadata.stats-mode", Kind.STATS_MODE, "truncate(16)", "statistics: none, counts, truncate(n), full"),
    Option("metadata.stats-mode.per.level", Kind.STATS_MODE_LEVELS, None, "statistics by level"),
    Option("metadata.stats-dense-store", Kind.BOOL, "true", "store only the columns that have statistics"),
    Option("metadata.stats-keep-first-n-columns", Kind.INT, "-1", "statistics for the first columns only"),
    Option("file-index.in-manifest-threshold", Kind.MEMORY, "500 b", "largest file indexes stored in manifests"),
    Option("file-index.read.enabled", Kind.BOOL, "true", "use file indexes when reading"),
    Option("deletion-vectors.enabled", Kind.BOOL, "false", "mark deleted rows in deletion vectors"),
    Option("deletion-vectors.modifiable", Kind.BOOL, "false", "allow to change deletion-vectors.enabled"),
    Option("deletion-vectors.bitmap64", Kind.BOOL, "false", "write 64-bit vectors"),
    Option("deletion-vectors.merge-on-read", Kind.BOOL, "false", "read level 0 of tables with deletion vectors"),
    Option(
        "deletion-vector.index-file.target-size",
        Kind.MEMORY,
        "2 mb",
        "size at which a file of deletion vectors is complete",
    ),
    Option("global-index.enabled", Kind.BOOL, "true", "use global indexes when reading"),
    choice_option(
        "global-index.column-update-action",
        "throw_error drop_partition_index",
        "throw_error",
        "what an update of indexed values does",
    ),
    Option("btree-index.block-size", Kind.MEMORY, "64 kb", "size of the blocks of global indexes"),
    Option(
        "btree-index.records-per-range",
        Kind.LONG,
        "1000000",
        "rows of a file of a global index",
        aliases=("sorted-index.records-per-file", "sorted-index.records-per-range"),
    ),
    Option(
        "btree-index.compression",
        Kind.TEXT,
        "none",
        "compression of global indexes",
        effect=REFUSED,
        reason="Global indexes are written without compression. Leave the option out.",
    ),
    choice_option(
        "scalar-index.search-mode",
        "fast full detail",
        "fast",
        "whether rows that no global index covers are read",
        effect=NO_EFFECT,
        reason="rows that no index covers are always read",
    ),
    Option(
        "pk-btree.index.columns",
        Kind.NAMES,
        None,
        "columns of B-tree indexes",
        effect=REFUSED,
        reason="Indexes of keyed tables are not built. Leave the option out, or write with Java's Paimon.",
    ),
    Option(
        "pk-bitmap.index.columns",
        Kind.NAMES,
        None,
        "columns of bitmap indexes",
        effect=REFUSED,
        reason="Indexes of keyed tables are not built. Leave the option out, or write with Java's Paimon.",
    ),
    Option(
        "pk-vector.index.columns",
        Kind.NAMES,
        None,
        "columns of vector indexes",
        effect=REFUSED,
        reason="Indexes of keyed tables are not built. Leave the option out, or write with Java's Paimon.",
    ),
    Option(
        "pk-full-text.index.columns",
        Kind.NAMES,
        None,
        "columns of full-text indexes",
        effect=REFUSED,
        reason="Indexes of keyed tables are not built. Leave the option out, or write with Java's Paimon.",
    ),
)
