"""Options of catalogs and tables by the names of pypaimon.

Source: `pypaimon.common.options`.
"""

from __future__ import annotations

import builtins
import sys
import warnings
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import Enum
from typing import Any

from attrs import frozen

from paimon.domain.errors import did_you_mean
from paimon.domain.options.known_options import OPTIONS
from paimon.domain.options.option import Kind, Option
from paimon.domain.options.parse import (
    parse_bool,
    parse_double,
    parse_duration_millis,
    parse_int,
    parse_long,
    parse_memory,
)
from paimon.domain.options.setting import option_text
from paimon.domain.options.table_options import TableOptions


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


class GlobalIndexColumnUpdateAction(str, Enum):  # noqa: UP042
    """What an update of indexed values does."""

    THROW_ERROR = "THROW_ERROR"
    DROP_PARTITION_INDEX = "DROP_PARTITION_INDEX"


class GlobalIndexSearchMode(str, Enum):  # noqa: UP042
    """Whether rows that no index covers are read; here they always are."""

    FAST = "fast"
    FULL = "full"
    DETAIL = "detail"


_ENUMS: Mapping[str, type[Enum]] = {
    "changelog-producer": ChangelogProducer,
    "data-file.external-paths.strategy": ExternalPathStrategy,
    "global-index.column-update-action": GlobalIndexColumnUpdateAction,
    "merge-engine": MergeEngine,
    "scalar-index.search-mode": GlobalIndexSearchMode,
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
        return next((constant for constant in names if constant.value.lower() == value.lower()), value)
    parse = _PARSERS.get(kind)
    return value if parse is None else parse(value, key)


def split_names(text: str | None) -> list[str]:
    """Return the names of a list with commas, without those that are blank."""
    return [] if not text else [name.strip() for name in text.split(",") if name.strip()]


def parse_level_values(text: str | None) -> dict[str, str]:
    """Return the values by level of a text such as ``"0:avro,3:parquet"``."""
    return dict(part.split(":", 1) for part in split_names(text) if ":" in part)


_CATALOG_KEYS = {
    "METASTORE": ("metastore", "filesystem"),
    "WAREHOUSE": ("warehouse", None),
    "URI": ("uri", None),
    "TOKEN": ("token", None),
    "TOKEN_PROVIDER": ("token.provider", None),
    "PREFIX": ("prefix", None),
}
_CLASSES = {
    Kind.BOOL: bool,
    Kind.INT: int,
    Kind.LONG: int,
    Kind.DOUBLE: float,
    Kind.MEMORY: int,
    Kind.DURATION: timedelta,
}
_DEFAULTS: Mapping[str, Any] = {
    "file.compression.per.level": {},
    "file.format.per.level": {},
    "postpone.target-size-per-bucket": 1 << 30,
    "scan.manifest.parallelism": 16,
    "target-file-row-num": sys.maxsize,
}
"""Defaults that pypaimon has as values, and this library as rules."""
_OTHER_NAMES = {"file_compression_per_level": "file.compression.per.level"}


@frozen
class Description:
    """What an option does."""

    text: str


@frozen
class ConfigOption:
    """The key of an option and its default."""

    name: str
    default: Any = None
    kind: Kind = Kind.TEXT
    text: str = ""

    def key(self) -> str:
        """Return the key."""
        return self.name

    def default_value(self) -> Any:
        """Return the default; None for none."""
        return self.default

    def has_default_value(self) -> bool:
        """Return whether there is a default."""
        return self.default is not None

    def get_clazz(self) -> type:
        """Return the class of the values."""
        return type(self.default) if self.default is not None else _CLASSES.get(self.kind, str)

    def description(self) -> Description:
        """Return what the option does."""
        return Description(self.text)

    def with_description(self, description: str | Description) -> ConfigOption:
        """Return the option with another description."""
        text = description.text if isinstance(description, Description) else description
        return ConfigOption(self.name, self.default, self.kind, text)


def _config_option(option: Option) -> ConfigOption:
    default = None if option.default is None else parse_value(option.key, option.kind, option.default)
    return ConfigOption(option.key, _DEFAULTS.get(option.key, default), option.kind, option.doc)


_BY_WORDS = {key.replace(".", "_").replace("-", "_"): option for key, option in OPTIONS.items()}


for _name, _key in _OTHER_NAMES.items():
    if _key in OPTIONS:
        _BY_WORDS[_name] = OPTIONS[_key]


def find_option(name: str, owner: str) -> ConfigOption:
    """Return the option of a constant or method."""
    option = _BY_WORDS.get(name.lower())
    if option is None:
        hint = did_you_mean(name.lower(), list(_BY_WORDS)) or "docs/reference/options.md lists the table options"
        raise AttributeError(f"{owner} has no option {name!r}: {hint}", name=name)
    return _config_option(option)


class Options:
    """A map of options, read by `ConfigOption`."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = dict(data)

    @classmethod
    def from_none(cls) -> Options:
        """Return a map without options."""
        return cls({})

    def to_map(self) -> dict[str, Any]:
        """Return the values by key."""
        return self.data

    def get(self, key: ConfigOption, default: Any = None) -> Any:
        """Return the value of an option; its default where none is given."""
        if key.name in self.data:
            return parse_value(key.name, key.kind, self.data[key.name])
        return key.default if default is None else default

    def set(self, key: ConfigOption, value: object) -> None:
        """Set an option."""
        self.data[key.name] = option_text(value)

    def contains(self, key: ConfigOption) -> bool:
        """Return whether an option is given."""
        return key.name in self.data

    def contains_key(self, key: str) -> bool:
        """Return whether the option of this key is given."""
        return key in self.data

    def copy(self) -> Options:
        """Return a copy."""
        return Options(self.data)


class _CatalogConstants(type):
    def __getattr__(cls, name: str) -> ConfigOption:
        if name not in _CATALOG_KEYS:
            hint = did_you_mean(name, list(_CATALOG_KEYS)) or "the how-to page lists the options of catalogs"
            raise AttributeError(f"CatalogOptions has no option {name!r}: {hint}", name=name)
        return ConfigOption(*_CATALOG_KEYS[name])


class CatalogOptions(metaclass=_CatalogConstants):
    """The keys of catalog options: ``CatalogOptions.WAREHOUSE.key()``."""


_STATES: Mapping[str, StartupMode] = {
    "scan.timestamp-millis": StartupMode.FROM_TIMESTAMP,
    "scan.timestamp": StartupMode.FROM_TIMESTAMP,
    "scan.snapshot-id": StartupMode.FROM_SNAPSHOT,
    "scan.tag-name": StartupMode.FROM_SNAPSHOT,
    "scan.watermark": StartupMode.FROM_SNAPSHOT,
    "scan.version": StartupMode.FROM_SNAPSHOT,
    "incremental-between-timestamp": StartupMode.INCREMENTAL,
    "scan.file-creation-time-millis": StartupMode.FROM_FILE_CREATION_TIME,
    "scan.creation-time-millis": StartupMode.FROM_CREATION_TIMESTAMP,
}
"""The start that an option means where `scan.mode` is not set; the first that is set counts."""


class _Constants(type):
    """`CoreOptions.BUCKET` is the key of the option `bucket`."""

    def __getattr__(cls, name: str) -> ConfigOption:
        if name.startswith("_") or not name.isupper():
            raise AttributeError(f"CoreOptions has no attribute {name!r}", name=name)
        return find_option(name, "CoreOptions")


class CoreOptions(metaclass=_Constants):
    """The options of a table: ``table.options.bucket()`` returns the value of the option `bucket`."""

    FILE_FORMAT_AVRO = "avro"
    FILE_FORMAT_ORC = "orc"
    FILE_FORMAT_PARQUET = "parquet"
    FIELDS_PREFIX = "fields"
    IMMUTABLE_OPTIONS = frozenset(key for key, option in OPTIONS.items() if option.immutable)

    def __init__(self, options: Options) -> None:
        self.options = options

    @staticmethod
    def from_dict(options: Mapping[str, Any]) -> CoreOptions:
        """Return the options of a map."""
        return CoreOptions(Options(options))

    @staticmethod
    def copy(options: CoreOptions) -> CoreOptions:
        """Return a copy of options."""
        return CoreOptions(options.options.copy())

    def to_map(self) -> dict[str, Any]:
        """Return the texts by key."""
        return self.options.to_map()

    def data_file_external_paths_weights(self, default: list[int] | None = None) -> list[int] | None:
        """Return the weights of external paths; `default` if they are not set."""
        text = self.options.data.get("data-file.external-paths.weights")
        if text is None:
            return default
        weights = [part.strip() for part in str(text).split(",")]
        invalid = [part for part in weights if not part.isdecimal() or int(part) < 1]
        if invalid:
            raise ValueError(f"Weights of external paths must be positive numbers, not {invalid[0]!r}")
        return [int(part) for part in weights]

    def set(self, key: ConfigOption, value: object) -> None:
        """Set an option."""
        self.options.set(key, value)

    def target_file_size(self, has_primary_key: bool | None = None, default: Any = None) -> Any:
        """Return the size of data files in bytes."""
        option = find_option("target_file_size", "CoreOptions")
        if default is None and has_primary_key is not None:
            default = TableOptions({}).target_file_size_bytes(has_primary_key)
        return self.options.get(option, default)

    def commit_timeout(self) -> int:
        """Return the longest time of a commit in milliseconds; `sys.maxsize` for no limit."""
        return self._millis("commit.timeout", sys.maxsize)

    def commit_min_retry_wait(self) -> int:
        """Return the shortest pause before a commit is tried again, in milliseconds."""
        return self._millis("commit.min-retry-wait")

    def commit_max_retry_wait(self) -> int:
        """Return the longest pause before a commit is tried again, in milliseconds."""
        return self._millis("commit.max-retry-wait")

    def sequence_field(self) -> list[str]:
        """Return the columns that decide which row of a key is newer."""
        return split_names(self._text("sequence.field"))

    def sequence_field_sort_order_is_ascending(self) -> bool:
        """Return whether the larger sequence is newer."""
        return bool(self.sequence_field_sort_order() == SortOrder.ASCENDING)

    def blob_field(self, default: Any = None) -> builtins.set[str]:
        """Return the columns of type BLOB."""
        return builtins.set(split_names(self._text("blob-field") or default))

    def file_format_per_level(self, default: Any = None) -> dict[str, str]:
        """Return the format of the files of some levels."""
        return parse_level_values(self._text("file.format.per.level")) or default or {}

    def file_compression_per_level(self, default: Any = None) -> dict[str, str]:
        """Return the compression of the files of some levels."""
        return parse_level_values(self._text("file.compression.per.level")) or default or {}

    def metadata_stats_enabled(self, default: Any = None) -> bool:
        """Return whether files have the full statistics of their columns."""
        return bool(self.metadata_stats_mode(default) == "full")

    def manifest_target_size(self, default: Any = None) -> int:
        """Return the size of manifest files in bytes."""
        return int(self.options.get(find_option("manifest_target_file_size", "CoreOptions"), default))

    def snapshot_ignore_empty_commit(self) -> bool:
        """Return whether a commit without changes makes no snapshot."""
        return bool(self.options.get(find_option("snapshot_ignore_empty_commit", "CoreOptions"), True))

    def read_parallelism(self, default: int | None = None) -> int | None:
        """Return how many splits a read reads at the same time; None if it is not set."""
        found: int | None = self.options.get(ConfigOption("read.parallelism", None, Kind.INT), default)
        return found

    def startup_mode(self) -> StartupMode:
        """Return what a scan starts from, by `scan.mode` and the options that name a state."""
        mode: StartupMode = self.scan_mode()
        if mode == StartupMode.FULL:
            warnings.warn("scan.mode 'full' is deprecated, use 'latest-full'", DeprecationWarning, stacklevel=2)
            return StartupMode.LATEST_FULL
        if mode != StartupMode.DEFAULT:
            return mode
        return next((start for key, start in _STATES.items() if key in self.options.data), StartupMode.LATEST_FULL)

    def batch_scan_skip_level0(self) -> bool:
        """Return whether a batch read skips files that are not compacted."""
        if self.deletion_vectors_enabled():
            return not self.deletion_vectors_merge_on_read()
        return bool(self.merge_engine() == MergeEngine.FIRST_ROW)

    def field_listagg_delimiter(self, field_name: str) -> str:
        """Return the text between the values of a `listagg` column."""
        return str(self._field(field_name, "list-agg-delimiter", ","))

    def field_collect_distinct(self, field_name: str) -> bool:
        """Return whether a `collect` column has each value once."""
        return bool(self._field(field_name, "distinct", False, Kind.BOOL))

    def field_nested_update_agg_nested_key(self, field_name: str) -> list[str]:
        """Return the key of the rows in a `nested_update` column."""
        return split_names(self._field(field_name, "nested-key"))

    def field_nested_update_agg_nested_sequence_field(self, field_name: str) -> list[str]:
        """Return the sequence of the rows in a `nested_update` column."""
        return split_names(self._field(field_name, "nested-sequence-field"))

    def field_nested_update_agg_nested_key_null_strategy(self, field_name: str) -> NestedKeyNullStrategy:
        """Return what becomes of rows in a `nested_update` column whose key has nulls."""
        return NestedKeyNullStrategy(self._field(field_name, "nested-key-null-strategy", "merge"))

    def field_nested_update_agg_count_limit(self, field_name: str) -> int:
        """Return the largest number of rows in a `nested_update` column."""
        return int(self._field(field_name, "count-limit", (1 << 31) - 1, Kind.INT))

    def field_merge_map_ts_field(self, field_name: str) -> str | None:
        """Return the time column of a `merge_map_with_keytime` column."""
        return self._field(field_name, "ts-field")  # type: ignore[no-any-return]

    def _text(self, key: str) -> str | None:
        value = self.options.data.get(key)
        return None if value is None else str(value)

    def _millis(self, key: str, unset: int | None = None) -> int:
        option = find_option(key.replace(".", "_").replace("-", "_"), "CoreOptions")
        found = self.options.get(option)
        return unset or 0 if found is None else int(found / timedelta(milliseconds=1))

    def _field(self, name: str, suffix: str, default: object = None, kind: Kind = Kind.TEXT) -> Any:
        """Return the value of an option of one column."""
        return self.options.get(ConfigOption(f"fields.{name}.{suffix}", default, kind))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name, name=name, obj=self)
        option = find_option(name, "CoreOptions")
        return lambda default=None: self.options.get(option, default)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CoreOptions) and self.options.data == other.options.data

    __hash__ = None  # type: ignore[assignment]
