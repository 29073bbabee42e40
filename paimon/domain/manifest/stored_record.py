"""Read the values of one decoded manifest record, with checks.

Invariant: A method returns a value in range or raises `CorruptTable` with the path of the file, whatever the record
contains.
Source: `ObjectSerializer`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.stats.simple_stats import EMPTY_STATS, SimpleStats

LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1

Record = Mapping[str, Any]
"""A record by column name, as a `RecordIO` returns it."""


@frozen
class StoredRecord:
    """One record of the file `path`. A column that older writers do not write is null."""

    values: Record
    path: str

    def integer(self, name: str, low: int, high: int = LONG_MAX) -> int:
        """Return an integer between `low` and `high`, both inclusive; any other value raises `CorruptTable`."""
        value = self.values.get(name)
        if type(value) is not int or not low <= value <= high:
            raise CorruptTable(self.path, f"{name} is {value!r}, not a number from {low} to {high}")
        return value

    def optional_integer(self, name: str, low: int, high: int = LONG_MAX) -> int | None:
        """Return an integer between `low` and `high`, both inclusive; None if it is null or missing."""
        return None if self.values.get(name) is None else self.integer(name, low, high)

    def text(self, name: str) -> str:
        """Return a text."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise CorruptTable(self.path, f"{name} is {value!r}, not text")
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a text, or None."""
        return None if self.values.get(name) is None else self.text(name)

    def binary(self, name: str) -> bytes:
        """Return a byte string."""
        value = self.values.get(name)
        if not isinstance(value, bytes):
            raise CorruptTable(self.path, f"{name} is not a byte string")
        return value

    def row(self, name: str) -> bytes:
        """Return a serialized BinaryRow; one without an arity and at least eight more bytes raises `CorruptTable`."""
        value = self.binary(name)
        if len(value) < 12:
            raise CorruptTable(self.path, f"{name} has {len(value)} bytes, which is too short for a row")
        return value

    def optional_binary(self, name: str) -> bytes | None:
        """Return a byte string, or None."""
        return None if self.values.get(name) is None else self.binary(name)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; empty if it is null."""
        return self.optional_texts(name) or ()

    def optional_texts(self, name: str) -> tuple[str, ...] | None:
        """Return a list of texts, or None."""
        value = self.optional_list(name)
        if value is not None and not all(isinstance(v, str) for v in value):
            raise CorruptTable(self.path, f"{name} contains a value that is not text")
        return None if value is None else tuple(value)

    def optional_list(self, name: str) -> Sequence[Any] | None:
        """Return a list, or None."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, list):
            raise CorruptTable(self.path, f"{name} is not a list")
        return value

    def nested_record(self, name: str) -> StoredRecord:
        """Return a nested record."""
        value = self.values.get(name)
        if not isinstance(value, Mapping):
            raise CorruptTable(self.path, f"{name} is not a record")
        return StoredRecord(value, self.path)

    def stats(self, name: str) -> SimpleStats:
        """Return the statistics in a nested record."""
        stats = self.nested_record(name)
        counts = stats.optional_list("_NULL_COUNTS") or ()
        if not all(c is None or type(c) is int for c in counts):
            raise CorruptTable(self.path, f"{name} contains null counts that are not numbers")
        found = SimpleStats(stats.row("_MIN_VALUES"), stats.row("_MAX_VALUES"), tuple(counts))
        return EMPTY_STATS if found == EMPTY_STATS else found

    def check_version(self, supported: int, what: str) -> None:
        """Refuse all values of `_VERSION` except the supported one."""
        version = self.integer("_VERSION", 0, INT_MAX)
        if version != supported:
            hint = "create the table again" if version < supported else "use a newer release"
            raise Unsupported(f"{what} version {version} in {self.path}", hint=hint)


def stats_to_record(stats: SimpleStats) -> dict[str, Any]:
    """Return the nested record of statistics."""
    return {
        "_MIN_VALUES": stats.min_values,
        "_MAX_VALUES": stats.max_values,
        "_NULL_COUNTS": list(stats.null_counts),
    }
