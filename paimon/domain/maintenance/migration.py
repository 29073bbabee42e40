"""Decide how files of another system become an append table: its columns, and the partition of each file.

Invariant: all files have the same columns with the same types, in any order, and the same partition columns.

Source: `HiveMigrator`, `FileMetaUtils`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import unquote

from attrs import evolve, field, frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.json_text import INT_MAX, LONG_MAX, LONG_MIN
from paimon.domain.partition.partition_text import parse_partition_spec
from paimon.domain.types.data_types import BigIntType, DataField, DataType, IntType, VarCharType
from paimon.domain.types.type_text import format_type

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The name of the directory of the null partition in Hive."""
_DEFAULT_NAME = "partition.default-name"
_WHOLE_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)")


def _pairs(values: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(values)


@frozen
class SourceFile:
    """A file to migrate, with the partition that its directories name: pairs of column and text."""

    path: str
    size_bytes: int
    partition: tuple[tuple[str, str], ...] = field(converter=_pairs, default=())

    @property
    def text(self) -> str:
        """The partition, such as ``day=2026-01-01/hour=1``."""
        return "/".join(f"{column}={text}" for column, text in self.partition)


@frozen
class DescribedFile:
    """A file with its columns, which have no ids yet, and its rows."""

    file: SourceFile
    columns: tuple[DataField, ...]
    row_count: int


@frozen
class Migration:
    """The columns of a new table, and the files that it gets; files without rows are left out."""

    fields: tuple[DataField, ...]
    partition_keys: tuple[str, ...]
    format_name: str
    files: tuple[DescribedFile, ...]

    def add_default_options(self, options: Mapping[str, object]) -> dict[str, object]:
        """Return the options of the new table, which names the null partition as the source does."""
        return {**({_DEFAULT_NAME: HIVE_NULL} if self.partition_keys else {}), **options}

    @property
    def stored_names(self) -> frozenset[str]:
        """The columns that the files contain; partition columns may be missing."""
        return frozenset(f.name for f in self.files[0].columns) if self.files else frozenset()


def parse_partition_directory(name: str) -> tuple[str, str] | None:
    """Return column and value of a directory such as ``day=2026-01-01``; None for another name.

    >>> parse_partition_directory("city=New%20York")
    ('city', 'New York')
    """
    column, equals, text = name.partition("=")
    return (unquote(column), unquote(text)) if equals and column else None


def plan_migration(described: Sequence[DescribedFile], format_name: str, declared: Sequence[DataField]) -> Migration:
    """Return the columns of the table; partition columns that the files lack come last, as in Hive.

    `declared` are the types of partition columns. Others are INT or BIGINT if all values are whole numbers, and STRING
    otherwise. Raises `InvalidRequest` if the files differ, and names two that do.
    """
    first = described[0]
    for other in described[1:]:
        _check_same(first, other)
    keys = tuple(name for name, _ in first.file.partition)
    by_name = {f.name: f for f in declared}
    unknown = sorted(by_name.keys() - set(keys))
    if unknown:
        raise InvalidRequest(
            f"Column {unknown[0]!r} is not a partition column of the files.",
            subject=unknown[0],
            hint=f"the directories name {', '.join(keys) or 'no column'}",
        )
    stored = {f.name: f for f in first.columns}
    for name in sorted(by_name.keys() & stored.keys()):
        own, given = format_type(stored[name].type), format_type(by_name[name].type.with_nullable(True))
        if own != given:
            raise InvalidRequest(
                f"Column {name!r} is {own} in the files, not {given}.", subject=name, hint="leave out its type"
            )
    added = [
        DataField(0, key, by_name[key].type if key in by_name else _infer_type(described, position))
        for position, key in enumerate(keys)
        if key not in stored
    ]
    fields = (*first.columns, *added)
    key_fields = [f for f in fields if f.name in keys]
    for one in described:
        parse_partition_spec(dict(one.file.partition), key_fields, HIVE_NULL)  # refuses values of another type
    return Migration(fields, keys, format_name, tuple(d for d in described if d.row_count))


def _check_same(first: DescribedFile, other: DescribedFile) -> None:
    """Check that two files have the same columns, and the same partition columns in the same order."""
    if [name for name, _ in first.file.partition] != [name for name, _ in other.file.partition]:
        raise InvalidRequest(
            f"Files {first.file.path!r} and {other.file.path!r} have different partition columns.",
            subject=other.file.path,
            hint="migrate them to different tables",
        )
    ours, theirs = ({f.name: format_type(f.type) for f in d.columns} for d in (first, other))
    differing = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    if differing:
        name = differing[0]
        raise InvalidRequest(
            f"Column {name!r} is {ours.get(name, 'missing')} in file {first.file.path!r} and "
            f"{theirs.get(name, 'missing')} in {other.file.path!r}.",
            subject=name,
            hint="migrate files with the same columns; to change the others, insert their rows into the table",
        )


def _infer_type(described: Sequence[DescribedFile], position: int) -> DataType:
    texts = {d.file.partition[position][1] for d in described} - {HIVE_NULL}
    if not texts or not all(_WHOLE_NUMBER.fullmatch(text) for text in texts):
        return VarCharType()
    numbers = [int(text) for text in texts]
    if min(numbers) >= -INT_MAX and max(numbers) <= INT_MAX:
        return IntType()
    return BigIntType() if min(numbers) >= LONG_MIN and max(numbers) <= LONG_MAX else VarCharType()


def to_nullable(fields: Iterable[DataField]) -> tuple[DataField, ...]:
    """Return the columns as nullable: whether a file states NOT NULL differs between writers of the same rows."""
    return tuple(evolve(f, type=f.type.with_nullable(True)) for f in fields)
