"""All known options by key.

Invariant: each key is listed once; each default and each choice passes the option's own check.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon.domain.options.layout_options import FILE_FORMATS, FILES, LAYOUT, STATISTICS
from paimon.domain.options.option import Effect, Kind, Option
from paimon.domain.options.read_options import CATALOG, READING, RETENTION
from paimon.domain.options.write_options import COMMIT, COMPACTION, MERGE, WRITE

OPTIONS: Mapping[str, Option] = {
    option.key: option
    for group in (LAYOUT, FILES, STATISTICS, COMMIT, MERGE, WRITE, COMPACTION, RETENTION, READING, CATALOG)
    for option in group
}
ALIASES: Mapping[str, str] = {alias: option.key for option in OPTIONS.values() for alias in option.aliases}
"""Older keys and the keys that replaced them."""

TAG_CALLBACK_PARAMETERS = Option(
    "tag.callback.<name>.param", Kind.TEXT, None, "parameter of a callback for tags",
    effect=Effect.REFUSED, reason="No callback is called for tags. Call your function after you create a tag.",
)  # fmt: skip
COMMIT_CALLBACK_PARAMETERS = Option(
    "commit.callback.<name>.param", Kind.TEXT, None, "parameter of a callback for commits",
    effect=Effect.NO_EFFECT, reason="only the callback itself reads its parameter",
)  # fmt: skip
GENERATED_VALUES = Option(
    "fields.<column>.<kind, min, max or length>", Kind.TEXT, None, "values that a generator of test data draws",
    effect=Effect.NO_EFFECT, reason="only Flink's generator of test data reads it",
)  # fmt: skip
FEATURES = {
    prefix: Option(
        f"{prefix}<...>", Kind.TEXT, None, feature,
        effect=Effect.REFUSED, reason=f"This library does not support {feature}. Leave the option out.",
    )
    for prefix, feature in {
        "chain-table.": "chain tables",
        "metadata.iceberg.": "metadata of Iceberg",
        "query-auth.": "the authorization of queries",
        "encryption.": "the encryption of files",
        "vector-": "columns of vectors",
        "vector.": "columns of vectors",
    }.items()
}  # fmt: skip
"""Features of Paimon that this library lacks, by the prefix of their options."""
FAMILIES = (
    TAG_CALLBACK_PARAMETERS, COMMIT_CALLBACK_PARAMETERS, GENERATED_VALUES, *FEATURES.values()
)  # fmt: skip
"""Options whose keys contain a name and which are not implemented."""

FORMAT_PREFIXES = tuple(f"{format_name}." for format_name in FILE_FORMATS)
"""Prefixes of options that are passed to the file writer."""

CALLBACK_PREFIXES = ("commit.callback.", "tag.callback.")
"""Prefixes of the parameters of callbacks."""

TABLE_DEFAULT_PREFIX = "table-default."
"""Prefix of catalog options that are copied into new tables."""

FIELD_OPTIONS: Mapping[str, Kind] = {
    "stats-mode": Kind.STATS_MODE,
    "aggregate-function": Kind.TEXT,
    "ignore-retract": Kind.BOOL,
    "distinct": Kind.BOOL,
    "list-agg-delimiter": Kind.TEXT,
    "sequence-group": Kind.NAMES,
    "nested-key": Kind.NAMES,
    "nested-key-null-strategy": Kind.TEXT,
    "nested-sequence-field": Kind.NAMES,
    "count-limit": Kind.INT,
    "ts-field": Kind.TEXT,
    "default-value": Kind.TEXT,
    "kind": Kind.TEXT,
    "min": Kind.TEXT,
    "max": Kind.TEXT,
    "length": Kind.INT,
}
"""What may follow ``fields.<column>.`` and the form of its value."""

FILE_INDEX_SETTINGS: Mapping[str, Mapping[str, Kind]] = {
    "bloom-filter": {"items": Kind.INT, "fpp": Kind.DOUBLE},
    "bitmap": {"version": Kind.INT, "index-block-size": Kind.MEMORY},
    "bsi": {},
    "range-bitmap": {"chunk-size": Kind.MEMORY},
}
"""What may follow ``file-index.<type>.<column>.`` and the form of its value, by type."""
FUNCTION_ALIASES = {"nested-update": "nested_update", "first_not_null_value": "first_non_null_value"}
"""The names under which tables store aggregate functions, by their other spellings."""


def canonical_key(key: str) -> str:
    """Return the current key of an option; older keys are aliases.

    >>> canonical_key("write.compaction-skip"), canonical_key("bucket")
    ('write-only', 'bucket')
    """
    return ALIASES.get(key, key)


def canonical_function(name: str) -> str:
    """Return the name under which tables store an aggregate function.

    >>> canonical_function("nested-update"), canonical_function("sum")
    ('nested_update', 'sum')
    """
    return FUNCTION_ALIASES.get(name, name)
