"""Checked access to one decoded record of a manifest file.

Law: whatever a stored record holds, the answer is a value in range or CorruptTable naming the file. Source:
`ObjectSerializer`.
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
"""A record by column name, as a `RecordIO` answers it."""


@frozen
class StoredRecord:
    """One record of the file `path`; columns that older writers lack read as null."""

    values: Record
    path: str

    def integer(self, name: str, low: int, high: int = LONG_MAX) -> int:
        """A whole number between `low` and `high`, both included."""
        value = self.values.get(name)
        if type(value) is not int or not low <= value <= high:
            raise CorruptTable(self.path, f"{name} is {value!r}, not a number from {low} to {high}")
        return value

    def optional_integer(self, name: str, low: int, high: int = LONG_MAX) -> int | None:
        """Like `integer`, or null."""
        return None if self.values.get(name) is None else self.integer(name, low, high)

    def text(self, name: str) -> str:
        """Text."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise CorruptTable(self.path, f"{name} is {value!r}, not text")
        return value

    def optional_text(self, name: str) -> str | None:
        """Text, or null."""
        return None if self.values.get(name) is None else self.text(name)

    def binary(self, name: str) -> bytes:
        """Bytes."""
        value = self.values.get(name)
        if not isinstance(value, bytes):
            raise CorruptTable(self.path, f"{name} is not a byte string")
        return value

    def row(self, name: str) -> bytes:
        """A serialised BinaryRow: an arity and at least eight bytes."""
        value = self.binary(name)
        if len(value) < 12:
            raise CorruptTable(self.path, f"{name} holds {len(value)} bytes, too few for a row")
        return value

    def optional_binary(self, name: str) -> bytes | None:
        """Bytes, or null."""
        return None if self.values.get(name) is None else self.binary(name)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; null is the empty list."""
        return self.optional_texts(name) or ()

    def optional_texts(self, name: str) -> tuple[str, ...] | None:
        """A list of texts, or null."""
        value = self.optional_list(name)
        if value is not None and not all(isinstance(v, str) for v in value):
            raise CorruptTable(self.path, f"{name} holds something that is not text")
        return None if value is None else tuple(value)

    def optional_list(self, name: str) -> Sequence[Any] | None:
        """A list, or null."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, list):
            raise CorruptTable(self.path, f"{name} is not a list")
        return value

    def nested(self, name: str) -> StoredRecord:
        """A nested record."""
        value = self.values.get(name)
        if not isinstance(value, Mapping):
            raise CorruptTable(self.path, f"{name} is not a record")
        return StoredRecord(value, self.path)

    def stats(self, name: str) -> SimpleStats:
        """Statistics."""
        stats = self.nested(name)
        counts = stats.optional_list("_NULL_COUNTS") or ()
        if not all(c is None or type(c) is int for c in counts):
            raise CorruptTable(self.path, f"{name} holds null counts that are not numbers")
        found = SimpleStats(stats.row("_MIN_VALUES"), stats.row("_MAX_VALUES"), tuple(counts))
        return EMPTY_STATS if found == EMPTY_STATS else found

    def check_version(self, supported: int, what: str) -> None:
        """Refuse any `_VERSION` but the one that this format marker has ever had."""
        version = self.integer("_VERSION", 0, INT_MAX)
        if version != supported:
            hint = "the table must be created anew" if version < supported else "a newer release wrote it"
            raise Unsupported(f"{what} version {version} in {self.path}", hint=hint)


def stats_to_record(stats: SimpleStats) -> dict[str, Any]:
    """Statistics as a nested record."""
    return {
        "_MIN_VALUES": stats.min_values,
        "_MAX_VALUES": stats.max_values,
        "_NULL_COUNTS": list(stats.null_counts),
    }
