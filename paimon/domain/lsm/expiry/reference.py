"""Whether one record is expired, value by value.

Law: a record without a time never expires; a BIGINT tells by its size whether it counts seconds or milliseconds.
Source: `RecordLevelExpire.createFieldGetterAndConvertToSecond`.
"""

from __future__ import annotations

from paimon.domain.types.data_types import TIMESTAMP_TYPES, BigIntType, DataType

FIRST_MILLIS = 1_000_000_000_000
"""From here on a BIGINT counts milliseconds."""


def is_expired(time: int | None, data_type: DataType, before_seconds: int) -> bool:
    """Whether an internal value of the time column lies before a moment; a null does not."""
    return time is not None and _seconds(time, data_type) < before_seconds


def _seconds(time: int, data_type: DataType) -> int:
    if isinstance(data_type, TIMESTAMP_TYPES):
        millis = time // 1_000_000
        return millis // 1000 if millis >= 0 else -(-millis // 1000)
    if isinstance(data_type, BigIntType) and time >= FIRST_MILLIS:
        return time // 1000
    return time
