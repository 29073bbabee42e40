"""Bytes that JSON events contain as text: base64, Latin-1, and numbers in two's complement."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Flags = npt.NDArray[np.bool_]
_BAD = 255
_SIXES = np.full(256, _BAD, np.uint8)
_SIXES[[ord(c) for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"]] = range(64)
_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_DECIMAL_BYTES = 16


def decode_base64(texts: pa.StringArray) -> pa.BinaryArray:
    """Return the bytes of base64 texts; null for null, and for texts that are not base64."""
    good = pc.fill_null(pc.match_substring_regex(texts, _BASE64), False)
    filled = pc.if_else(good, texts, "")
    whole = pc.binary_join(pa.ListArray.from_arrays([0, len(filled)], filled), "")[0].as_buffer()
    data = np.frombuffer(whole, np.uint8)
    sixes = np.where(data == ord("="), 0, _SIXES[data]).astype(np.uint32).reshape(-1, 4)
    joined = (sixes[:, 0] << 18) | (sixes[:, 1] << 12) | (sixes[:, 2] << 6) | sixes[:, 3]
    made = np.stack([joined >> 16, joined >> 8, joined], axis=1).astype(np.uint8).ravel()
    lengths = np.asarray(pc.binary_length(filled)).astype(np.int64)
    padding = np.asarray(pc.count_substring(filled, "=")).astype(np.int64)
    return _build_binary(_drop_padding(made, lengths // 4 * 3, padding), lengths // 4 * 3 - padding, np.asarray(good))


def _drop_padding(
    data: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64], padding: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint8]:
    """Return bytes without the last ones of each value."""
    ends = np.cumsum(lengths)
    kept = np.ones(len(data), bool)
    for count in (1, 2):
        kept[ends[padding >= count] - count] = False
    return data[kept]


def decode_latin1(texts: pa.StringArray) -> pa.BinaryArray:
    """Return the bytes that texts contain as characters up to U+00FF; null for null and for other characters."""
    good = pc.fill_null(pc.match_substring_regex(texts, r"(?s)^[\x{00}-\x{FF}]*$"), False)
    filled = pc.if_else(good, texts, "")
    offsets = np.asarray(pc.binary_length(filled)).astype(np.int64)
    whole = pc.binary_join(pa.ListArray.from_arrays([0, len(filled)], filled), "")[0].as_buffer()
    data = np.frombuffer(whole, np.uint8)
    leads = data >= 0xC2
    after_lead = np.append(False, leads[:-1]) if len(data) else leads
    high = np.append(0, data[:-1]) == 0xC3 if len(data) else leads
    made = np.where(after_lead & high, data + 0x40, data).astype(np.uint8)[~leads]
    ends = np.cumsum(offsets)
    counted = np.append(0, np.cumsum(leads))
    dropped = counted[ends] - counted[ends - offsets]
    return _build_binary(made, offsets - dropped, np.asarray(good))


def _build_binary(data: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64], good: Flags) -> pa.BinaryArray:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    made = pa.BinaryArray.from_buffers(pa.binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return pc.if_else(pa.array(good), made, pa.scalar(None, pa.binary()))


def to_decimals(values: pa.BinaryArray, scale: int) -> pa.Array:
    """Return decimal128 numbers from big-endian two's complement of the digits without the point.

    `scale` is from 0 to 38. Null, empty bytes, and numbers of more than 38 digits become null.
    """
    lengths = np.asarray(pc.fill_null(pc.binary_length(values), 0)).astype(np.int64)
    good = (lengths > 0) & (lengths <= _DECIMAL_BYTES)
    filled = pc.if_else(pa.array(good), values, b"\0")
    lengths = np.where(good, lengths, 1)
    whole = pc.binary_join(pa.ListArray.from_arrays([0, len(filled)], filled), b"")[0].as_buffer()
    data = np.frombuffer(whole, np.uint8)
    starts = np.cumsum(lengths) - lengths
    wide = np.repeat(np.where(data[starts] >= 0x80, 0xFF, 0).astype(np.uint8)[:, None], _DECIMAL_BYTES, axis=1)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(len(data)) - np.repeat(starts, lengths)
    wide[rows, _DECIMAL_BYTES - np.repeat(lengths, lengths) + places] = data
    buffer = pa.py_buffer(np.ascontiguousarray(wide[:, ::-1]))
    made = pa.Array.from_buffers(pa.decimal128(38, scale), len(lengths), [None, buffer])
    limit = pa.scalar(10**38 - 1, pa.decimal256(76, 0))
    digits = pa.Array.from_buffers(pa.decimal128(38, 0), len(lengths), [None, buffer]).cast(pa.decimal256(76, 0))
    fits = pc.and_(pc.less_equal(pc.abs(digits), limit), pa.array(good))
    return pc.if_else(fits, made, pa.scalar(None, made.type))
