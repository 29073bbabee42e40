"""Values of options by the names of pypaimon, and the forms in which its option methods return them.

Source: `pypaimon.common.options.core_options`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import Enum
from typing import Any

from paimon.domain.options.option import Kind
from paimon.domain.options.parse import (
    parse_bool,
    parse_double,
    parse_duration_millis,
    parse_int,
    parse_long,
    parse_memory,
)


class ExternalPathStrategy(str, Enum):  # noqa: UP042 - str() shows the name of the constant, as in pypaimon
    """How an external root of data files is chosen."""

    NONE = "none"
    ROUND_ROBIN = "round-robin"
    SPECIFIC_FS = "specific-fs"
    ENTROPY_INJECT = "entropy-inject"
    WEIGHTED = "weight-robin"


class ChangelogProducer(str, Enum):  # noqa: UP042
    """Where the changelog of a table comes from."""

    NONE = "none"
    INPUT = "input"
    FULL_COMPACTION = "full-compaction"
    LOOKUP = "lookup"


class MergeEngine(str, Enum):  # noqa: UP042
    """How rows of one key become one row."""

    DEDUPLICATE = "deduplicate"
    PARTIAL_UPDATE = "partial-update"
    AGGREGATE = "aggregation"
    FIRST_ROW = "first-row"


class SortOrder(str, Enum):  # noqa: UP042
    """The direction of `sequence.field`."""

    ASCENDING = "ascending"
    DESCENDING = "descending"


class StartupMode(str, Enum):  # noqa: UP042
    """What a scan starts from."""

    DEFAULT = "default"
    LATEST_FULL = "latest-full"
    FULL = "full"
    LATEST = "latest"
    COMPACTED_FULL = "compacted-full"
    FROM_TIMESTAMP = "from-timestamp"
    FROM_SNAPSHOT = "from-snapshot"
    FROM_SNAPSHOT_FULL = "from-snapshot-full"
    FROM_CREATION_TIMESTAMP = "from-creation-timestamp"
    FROM_FILE_CREATION_TIME = "from-file-creation-time"
    INCREMENTAL = "incremental"


class NestedKeyNullStrategy(str, Enum):  # noqa: UP042
    """What becomes of nested rows whose key has nulls."""

    MERGE = "merge"
    IGNORE = "ignore"
    ERROR = "error"


_ENUMS: Mapping[str, type[Enum]] = {
    "changelog-producer": ChangelogProducer,
    "data-file.external-paths.strategy": ExternalPathStrategy,
    "merge-engine": MergeEngine,
    "scan.mode": StartupMode,
    "sequence.field.sort-order": SortOrder,
}
_PARSERS: Mapping[Kind, Callable[[str, str], Any]] = {
    Kind.BOOL: parse_bool,
    Kind.INT: parse_int,
    Kind.LONG: parse_long,
    Kind.DOUBLE: parse_double,
    Kind.MEMORY: parse_memory,
    Kind.DURATION: lambda text, key: timedelta(milliseconds=parse_duration_millis(text, key)),
}


def parse_value(key: str, kind: Kind, value: object) -> Any:
    """Return the value of an option as pypaimon has it: a text becomes a number, a duration or a constant."""
    if not isinstance(value, str) or isinstance(value, Enum):
        return value
    names = _ENUMS.get(key)
    if names is not None:
        return next((constant for constant in names if constant.value == value), value)
    parse = _PARSERS.get(kind)
    return value if parse is None else parse(value, key)


def split_names(text: str | None) -> list[str]:
    """Return the names of a list with commas, without those that are blank."""
    return [] if not text else [name.strip() for name in text.split(",") if name.strip()]


def parse_level_values(text: str | None) -> dict[str, str]:
    """Return the values by level of a text such as ``"0:avro,3:parquet"``."""
    return dict(part.split(":", 1) for part in split_names(text) if ":" in part)
