"""Known options of layout, files, statistics and indexes.

Law: one line an option, as Java 1.4.2 (2.x for newer ones) defines it. Source: `CoreOptions`, `FileIndexOptions`.
"""

from __future__ import annotations

from paimon.domain.options.option import Kind, Option, choice

LAYOUT = (
    choice("type", "table format-table materialized-table object-table lance-table iceberg-table", "table",
           "kind of table", True),
    Option("bucket", Kind.INT, "-1", "number of buckets; -1 dynamic or none, -2 postponed"),
    Option("bucket-key", Kind.NAMES, None, "columns that the bucket is computed from", True),
    choice("bucket-function.type", "default mod hive", "default", "how the bucket is computed", True),
    Option("bucket-append-ordered", Kind.BOOL, "true", "keep the order of rows inside append buckets"),
    Option("primary-key", Kind.NAMES, None, "primary key; moved into the schema", True),
    Option("primary-key.nullable", Kind.BOOL, "false", "allow null in primary keys", True),
    Option("primary-key.allow-floating", Kind.BOOL, "false", "allow FLOAT and DOUBLE in new primary keys (not in Java)",
           True),
    Option("partition", Kind.NAMES, None, "partition keys; moved into the schema", True),
    Option("path", Kind.TEXT, None, "location of the table"),
    Option("branch", Kind.TEXT, "main", "branch that is read and written"),
    Option("partition.default-name", Kind.TEXT, "__DEFAULT_PARTITION__", "path text of null and blank values"),
    Option("partition.legacy-name", Kind.BOOL, "true", "render dates in partition paths as numbers"),
    Option("data-file.path-directory", Kind.TEXT, None, "sub directory for data files", True),
    Option("data-file.external-paths", Kind.NAMES, None, "roots outside the table for data files"),
    choice("data-file.external-paths.strategy", "none specific-fs round-robin entropy-inject weight-robin", "none",
           "how an external root is chosen"),
    Option("data-file.external-paths.specific-fs", Kind.TEXT, None, "file system of the chosen root"),
    Option("data-file.external-paths.weights", Kind.TEXT, None, "weights of the roots"),
    Option("data-file.prefix", Kind.TEXT, "data-", "name prefix of data files"),
    Option("changelog-file.prefix", Kind.TEXT, "changelog-", "name prefix of changelog files"),
    Option("index-file-in-data-file-dir", Kind.BOOL, "false", "keep index files beside the data", True),
    Option("global-index.external-path", Kind.TEXT, None, "root of global indexes outside the table"),
    Option("auto-create", Kind.BOOL, "false", "create the storage on access"),
    Option("owner", Kind.TEXT, None, "owner, as engines note it"),
    Option("provider", Kind.TEXT, None, "provider, as engines note it"),
    Option("comment", Kind.TEXT, None, "comment, as engines note it"),
)

FILES = (
    Option("file.format", Kind.TEXT, "parquet", "format of data files: parquet, orc, avro"),
    Option("file.format.per.level", Kind.LEVELS, None, "format by level"),
    Option("file.compression", Kind.TEXT, "zstd", "codec of data files"),
    Option("file.compression.per.level", Kind.LEVELS, None, "codec by level"),
    Option("file.compression.zstd-level", Kind.INT, "1", "level of zstd"),
    Option("file.block-size", Kind.MEMORY, None, "size of a stripe or row group"),
    Option("file.suffix.include.compression", Kind.BOOL, "false", "name the codec in file names"),
    Option("changelog-file.format", Kind.TEXT, None, "format of changelog files"),
    Option("changelog-file.compression", Kind.TEXT, None, "codec of changelog files"),
    Option("changelog-file.stats-mode", Kind.STATS_MODE, None, "statistics of changelog files"),
    Option("target-file-size", Kind.MEMORY, None, "size to roll data files at; 128 mb with keys, else 256 mb"),
    Option("target-file-row-num", Kind.LONG, None, "rows to roll data files at"),
    Option("blob.target-file-size", Kind.MEMORY, None, "size to roll blob files at"),
    Option("vector.target-file-size", Kind.MEMORY, None, "size to roll vector files at"),
    Option("data-file.thin-mode", Kind.BOOL, "false", "leave the key columns out of data files"),
    Option("parquet.enable.dictionary", Kind.TEXT, None, "dictionary encoding of Parquet"),
    Option("orc.timestamp-ltz.legacy.type", Kind.BOOL, "true", "write LTZ through the local zone in ORC"),
    Option("read.batch-size", Kind.INT, "1024", "rows of a batch when reading"),
    Option("write.batch-size", Kind.INT, "1024", "rows of a batch when writing"),
    Option("write.batch-memory", Kind.MEMORY, "128 mb", "memory of a batch when writing"),
    Option("variant.shreddingSchema", Kind.TEXT, None, "how VARIANT columns are shredded"),
    Option("variant.inferShreddingSchema", Kind.BOOL, "false", "infer how VARIANT columns are shredded"),
    Option("vector.file.format", Kind.TEXT, None, "format of vector files"),
    Option("blob-field", Kind.NAMES, None, "columns kept as blobs", True),
    Option("blob-descriptor-field", Kind.NAMES, None, "columns that hold blob descriptors", True),
    Option("blob-as-descriptor", Kind.BOOL, "false", "read and write blobs as descriptors"),
)

STATISTICS = (
    Option("metadata.stats-mode", Kind.STATS_MODE, "truncate(16)", "statistics: none, counts, truncate(n), full"),
    Option("metadata.stats-mode.per.level", Kind.STATS_MODE_LEVELS, None, "statistics by level"),
    Option("metadata.stats-dense-store", Kind.BOOL, "true", "store only the columns that have statistics"),
    Option("metadata.stats-keep-first-n-columns", Kind.INT, "-1", "statistics for the first columns only"),
    Option("file-index.in-manifest-threshold", Kind.MEMORY, "500 b", "largest index kept inside manifests"),
    Option("file-index.read.enabled", Kind.BOOL, "true", "use file indexes when reading"),
    Option("deletion-vectors.enabled", Kind.BOOL, "false", "mark deleted rows in vectors"),
    Option("deletion-vectors.modifiable", Kind.BOOL, "false", "allow to switch deletion vectors"),
    Option("deletion-vectors.bitmap64", Kind.BOOL, "false", "write 64-bit vectors"),
    Option("deletion-vectors.merge-on-read", Kind.BOOL, "false", "show level 0 of tables with vectors"),
    Option("deletion-vector.index-file.target-size", Kind.MEMORY, "2 mb", "size to roll vector files at"),
    Option("global-index.enabled", Kind.BOOL, "true", "use global indexes"),
    Option("pk-btree.index.columns", Kind.NAMES, None, "columns of B-tree indexes"),
    Option("pk-bitmap.index.columns", Kind.NAMES, None, "columns of bitmap indexes"),
    Option("pk-vector.index.columns", Kind.NAMES, None, "columns of vector indexes"),
    Option("pk-full-text.index.columns", Kind.NAMES, None, "columns of full-text indexes"),
)
