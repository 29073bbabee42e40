"""The file indexes that the options of a table declare: `file-index.<kind>.columns` and their settings.

Invariant: a declared index can be built: its kind is known, its column exists, and the kind supports the type.
Source: `FileIndexOptions`, `DataFileIndexWriter`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import field, frozen

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.options.known_options import FILE_INDEX_SETTINGS
from paimon.domain.options.parse import bad_value_error, parse_double, parse_int, parse_list, parse_memory
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.type_text import format_type

PREFIX = "file-index."
_COLUMNS = ".columns"
_NUMBERS = (*dt.INTEGER_TYPES, dt.DateType, dt.TimeType, *dt.TIMESTAMP_TYPES)
_FLOATS = (dt.FloatType, dt.DoubleType)
_SUPPORTED: Mapping[str, tuple[type[DataType], ...]] = {
    "bloom-filter": (*dt.CHARACTER_TYPES, *dt.BYTES_TYPES, *_NUMBERS, *_FLOATS),
    "bitmap": (*dt.CHARACTER_TYPES, dt.BooleanType, *_NUMBERS, *_FLOATS),
    "bsi": (*_NUMBERS, dt.DecimalType),
    "range-bitmap": (*dt.CHARACTER_TYPES, dt.BooleanType, *_NUMBERS, *_FLOATS, dt.DecimalType),
}
_MOST_DIGITS = 18
"""Digits of a DECIMAL whose unscaled number has 64 bits."""
_MOST_FRACTION_DIGITS = 6
"""Digits of a TIMESTAMP in a range bitmap, which stores microseconds."""
_WITHOUT_CHUNKS = (dt.BooleanType, dt.TinyIntType, dt.SmallIntType)


def _to_dict(settings: Mapping[str, str]) -> Mapping[str, str]:
    return dict(settings)


@frozen(hash=False)
class DeclaredIndex:
    """One index of a column, or of the values of one key of a MAP column."""

    kind: str
    column: str
    # the key of the MAP; None: the column itself
    map_key: str | None = None
    settings: Mapping[str, str] = field(converter=_to_dict, factory=dict)

    @property
    def name(self) -> str:
        """The name in the container of the indexes: `column`, or `column[key]`."""
        return self.column if self.map_key is None else f"{self.column}[{self.map_key}]"

    @property
    def items(self) -> int:
        """The number of values for which a bloom filter is made."""
        return parse_int(self.settings.get("items", "1000000"), self._option("items"))

    @property
    def false_positive_rate(self) -> float:
        """How often a bloom filter of so many values finds a missing one."""
        return parse_double(self.settings.get("fpp", "0.1"), self._option("fpp"))

    @property
    def version(self) -> int:
        """The version of a bitmap index."""
        return parse_int(self.settings.get("version", "2"), self._option("version"))

    @property
    def block_bytes(self) -> int:
        """The largest size of a block of a bitmap index."""
        return parse_memory(self.settings.get("index-block-size", "16 kb"), self._option("index-block-size"))

    def check_settings(self) -> None:
        """Refuse settings with which no file can be written: `InvalidRequest`."""
        if self.kind == "bloom-filter" and self.items < 1:
            raise bad_value_error(self._option("items"), self.settings["items"], "a number of values, at least 1")
        if self.kind == "bloom-filter" and not 0 < self.false_positive_rate < 1:
            raise bad_value_error(self._option("fpp"), self.settings["fpp"], "a rate between 0 and 1, such as 0.05")
        if self.kind == "bitmap" and self.version not in (1, 2):
            text = self.settings["version"]
            raise bad_value_error(self._option("version"), text, "1 or 2")

    def chunk_bytes(self, data_type: DataType) -> int:
        """Return the largest size of a chunk of a range bitmap, without its first key."""
        default = "0 b" if isinstance(data_type, _WITHOUT_CHUNKS) else "16 kb"
        return parse_memory(self.settings.get("chunk-size", default), self._option("chunk-size"))

    def _option(self, setting: str) -> str:
        return f"{PREFIX}{self.kind}.{self.column}.{setting}"


def split_index_column(name: str) -> tuple[str, str | None]:
    """Return the column of a declared name, and the key of the MAP in `column[key]`.

    >>> split_index_column("tags[color]"), split_index_column("id")
    (('tags', 'color'), ('id', None))
    """
    column, bracket, rest = name.partition("[")
    return (column, rest[:-1]) if bracket and rest.endswith("]") else (name, None)


def declare_indexes(fields: Iterable[DataField], options: Mapping[str, str]) -> tuple[DeclaredIndex, ...]:
    """Return the file indexes that options declare; InvalidRequest for unknown kinds, columns or settings."""
    by_name = {f.name: f for f in fields}
    declared: dict[tuple[str, str], DeclaredIndex] = {}
    for key, value in options.items():
        if not (key.startswith(PREFIX) and key.endswith(_COLUMNS)):
            continue
        kind = key.removeprefix(PREFIX).removesuffix(_COLUMNS)
        for name in parse_list(value):
            column, map_key = split_index_column(name)
            _check_column(key, kind, name, by_name)
            index = DeclaredIndex(kind, column, map_key, _settings_of(options, kind, column, name))
            index.check_settings()
            declared[kind, name] = index
    _check_settings(options, declared)
    return tuple(declared.values())


def value_type(index: DeclaredIndex, column: DataField) -> DataType:
    """Return the type of the values that an index of a column contains."""
    return column.type.value if index.map_key is not None and isinstance(column.type, dt.MapType) else column.type


def supports_type(kind: str, data_type: DataType) -> bool:
    """Return whether indexes of a kind can contain values of a type."""
    if isinstance(data_type, dt.DecimalType) and data_type.precision > _MOST_DIGITS:
        return False
    if kind == "range-bitmap" and isinstance(data_type, dt.TIMESTAMP_TYPES):
        return data_type.precision <= _MOST_FRACTION_DIGITS
    return isinstance(data_type, _SUPPORTED[kind])


def _settings_of(options: Mapping[str, str], kind: str, *names: str) -> dict[str, str]:
    """Return the settings of an index; those of `column[key]` are stronger than those of `column`."""
    found = {}
    for name in names:
        for setting in FILE_INDEX_SETTINGS.get(kind, ()):
            key = f"{PREFIX}{kind}.{name}.{setting}"
            if key in options:
                found[setting] = options[key]
    return found


def _check_column(key: str, kind: str, name: str, fields: Mapping[str, DataField]) -> None:
    if kind not in _SUPPORTED:
        raise InvalidRequest(
            f"Option {key!r} declares file indexes of the unknown kind {kind!r}",
            subject=key,
            hint=f"use one of {', '.join(_SUPPORTED)}",
        )
    column, map_key = split_index_column(name)
    if column not in fields:
        raise InvalidRequest(
            f"Option {key!r} names {column!r}, which does not exist", subject=key, hint=did_you_mean(column, fields)
        )
    data_type = fields[column].type
    if map_key is not None:
        if not (isinstance(data_type, dt.MapType) and isinstance(data_type.key, dt.CHARACTER_TYPES)):
            raise InvalidRequest(
                f"Option {key!r} names {name!r}, but column {column!r} is no MAP with texts as keys",
                subject=key,
                hint="name the column without a key",
            )
        data_type = data_type.value
    if not supports_type(kind, data_type):
        raise InvalidRequest(
            f"Option {key!r} names {name!r} of type {format_type(data_type.with_nullable(True))}, "
            f"which the file index {kind!r} does not support",
            subject=key,
            hint=_suggest_kinds(data_type),
        )


def _suggest_kinds(data_type: DataType) -> str:
    possible = [kind for kind in _SUPPORTED if supports_type(kind, data_type)]
    return f"this type has the indexes {', '.join(possible)}" if possible else "leave the column out"


def _check_settings(options: Mapping[str, str], declared: Mapping[tuple[str, str], DeclaredIndex]) -> None:
    """Refuse settings of columns that have no such index."""
    columns = {(index.kind, name) for index in declared.values() for name in (index.name, index.column)}
    for key in _setting_keys(options):
        kind, _, rest = key.removeprefix(PREFIX).partition(".")
        column = rest.rpartition(".")[0]
        if (kind, column) not in columns:
            raise InvalidRequest(
                f"Option {key!r} sets up an index that column {column!r} does not have",
                subject=key,
                hint=f"name the column in {PREFIX + kind + _COLUMNS!r}, or remove the option",
            )


def _setting_keys(options: Mapping[str, str]) -> Iterator[str]:
    known = {(kind, setting) for kind, settings in FILE_INDEX_SETTINGS.items() for setting in settings}
    for key in options:
        kind, _, rest = key.removeprefix(PREFIX).partition(".")
        if key.startswith(PREFIX) and (kind, rest.rpartition(".")[2]) in known and "." in rest:
            yield key
