"""Which times Arrow can represent: timestamps are 64-bit numbers of units, and nanoseconds end in 1677 and 2262.

Invariant: no conversion to a timestamp wraps, and none makes a time null. A time without representation is refused.
"""

from __future__ import annotations

from paimon.domain.errors import Unsupported
from paimon.domain.types.data_types import LocalZonedTimestampType, TimestampType
from paimon.domain.types.type_text import format_type

__all__ = ["far_time_error"]


def far_time_error(data_type: TimestampType | LocalZonedTimestampType, column: str | None = None) -> Unsupported:
    """Return the error for times that the Arrow type of a data type cannot represent."""
    kind = format_type(data_type.with_nullable(True))
    where = f"column {column!r} of type {kind}" if column else kind
    if data_type.precision <= 6:
        return Unsupported(f"times in {where} that 64 bits cannot represent", hint="leave the column out of the read")
    return Unsupported(
        f"times before 1678 or after 2261 (64-bit nanoseconds) in {where}",
        hint="leave the column out of the read, or change its type to TIMESTAMP(6)",
    )
