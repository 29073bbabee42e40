"""Which records are expired, column by column.

Law: equals `reference.is_expired`; seconds are cut towards zero, as Java divides. Source: `RecordLevelExpire`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.lsm.expiry.rule import RecordExpiry

_MILLIS_FROM = 10**12
_PER_MILLI: Mapping[str, int] = {"us": 1_000, "ns": 1_000_000}

Mask = npt.NDArray[np.bool_]


def unexpired(rows: pa.RecordBatch, expiry: RecordExpiry | None) -> Mask | None:
    """Which rows, the time column among theirs, are kept; None where all are."""
    if expiry is None:
        return None
    gone = expired(rows[expiry.column.name], expiry.before_seconds)
    return ~gone if gone.any() else None


def expired(times: pa.Array, before_seconds: int) -> Mask:
    """Which rows have a time before a moment; `times` is the time column in its canonical Arrow type."""
    numbers = np.asarray(pc.cast(times, pa.int64()).fill_null(0))
    if pa.types.is_timestamp(times.type):
        numbers = _of_timestamp(numbers, times.type.unit)
    elif pa.types.is_int64(times.type):
        numbers = np.where(numbers >= _MILLIS_FROM, numbers // 1000, numbers)
    mask: Mask = (numbers < before_seconds) & np.asarray(times.is_valid())
    return mask


def _of_timestamp(numbers: npt.NDArray[np.int64], unit: str) -> npt.NDArray[np.int64]:
    if unit == "s":
        return numbers
    millis = numbers // _PER_MILLI.get(unit, 1)
    return np.where(millis >= 0, millis // 1000, -(-millis // 1000))
