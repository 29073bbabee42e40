"""Casts to texts and bytes, and their lengths.

Invariant: values are written as Java writes them (``1.0E10``, ``2024-01-01 00:00:00.000``, ``[1, 2]``, ``{a -> 1}``).
Texts are cut to the characters of CHAR(n) and VARCHAR(n), and CHAR is filled with blanks; those of bytes and
nested values are not. BINARY is cut or filled with zeros.
Source: `BinaryStringUtils.toCharacterString`, the `…ToStringCastRule`s.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.java_text import format_java_float
from paimon.domain.columns.time_text import format_java_times
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import MAX_LENGTH, DataType


def fit_text_length(array: pa.Array, target: DataType) -> pa.Array:
    """Cut texts, and fill CHAR with blanks, to the length of the type."""
    if not isinstance(target, dt.CHARACTER_TYPES) or target.length == MAX_LENGTH:
        return array
    cut = pc.utf8_slice_codeunits(array, 0, target.length)
    return pc.utf8_rpad(cut, target.length, " ") if isinstance(target, dt.CharType) else cut


def fit_bytes_length(array: pa.Array, target: DataType) -> pa.Array:
    """Cut bytes, and fill BINARY with zeros, to the length of the type."""
    if not isinstance(target, dt.BYTES_TYPES) or target.length == MAX_LENGTH:
        return array
    cut = pc.binary_slice(array, 0, target.length)
    if not isinstance(target, dt.BinaryType):
        return cut
    lengths = pc.binary_length(cut)
    if pc.all(pc.equal(lengths, target.length)).as_py() is not False:
        return cut
    padding = pa.array([bytes(n) for n in range(target.length + 1)], pa.binary())
    zeros = padding.take(pc.subtract(pa.scalar(target.length, pa.int32()), lengths))
    return pc.binary_join_element_wise(cut, zeros, b"")


def format_values(array: pa.Array, source: DataType) -> pa.Array:
    """Return the text of each value of a type that contains no other types."""
    match source:
        case dt.FloatType() | dt.DoubleType():
            return _floating(array)
        case dt.DecimalType():
            return _decimal(array)
        case dt.DateType():
            return format_java_times(array)
        case dt.TimeType(precision=precision):
            return _time(array.cast(pa.string()), precision)
        case dt.TimestampType(precision=precision) | dt.LocalZonedTimestampType(precision=precision):
            naive = array.cast(pa.int64()).cast(pa.timestamp(array.type.unit))
            surplus = -precision % 3 if precision else 0
            text = format_java_times(naive)
            return pc.utf8_slice_codeunits(text, 0, -surplus) if surplus else text
        case _ if isinstance(source, dt.BYTES_TYPES):
            return _from_utf8(array)
    return array.cast(pa.string())


def _floating(array: pa.Array) -> pa.Array:
    """Format floats: Arrow prints the same digits; only texts with an exponent are made one number at a time."""
    size = pc.abs(array)
    plain = pc.or_(pc.equal(size, 0.0), pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)))
    text = array.cast(pa.string())
    text = pc.if_else(pc.match_substring(text, "."), text, pc.binary_join_element_wise(text, "0", "."))
    odd = array.filter(pc.invert(plain)).to_numpy(zero_copy_only=False)
    if len(odd) == 0:
        return text
    made = pa.array([format_java_float(v) for v in odd], pa.string())
    return pc.replace_with_mask(text, pc.invert(pc.fill_null(plain, True)), made)


def _decimal(array: pa.Array) -> pa.Array:
    """Format digits with a point; Arrow would write small numbers with an exponent."""
    scale = array.type.scale
    whole = pa.Array.from_buffers(pa.decimal128(38, 0), len(array), array.buffers(), offset=array.offset)
    digits = whole.cast(pa.string())
    if scale == 0:
        return digits
    negative = pc.starts_with(digits, "-")
    digits = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
    text = pc.binary_join_element_wise(
        pc.utf8_slice_codeunits(digits, 0, -scale), pc.utf8_slice_codeunits(digits, -scale), "."
    )
    return pc.if_else(negative, pc.binary_join_element_wise("-", text, ""), text)


def _time(text: pa.Array, precision: int) -> pa.Array:
    """Format times as Java does: as many digits as the precision, without trailing zeros, but at least one."""
    if precision == 0:
        return pc.utf8_slice_codeunits(text, 0, 8)
    cut = pc.utf8_slice_codeunits(text, 0, 9 + min(precision, 3))
    return pc.replace_substring_regex(cut, r"(\.\d\d*?)0*$", r"\1")


def _from_utf8(array: pa.Array) -> pa.Array:
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([None if v is None else v.decode("utf-8", "replace") for v in array.to_pylist()], pa.string())


def join_elements(
    counts: np.ndarray[tuple[int], np.dtype[np.int64]], parts: pa.Array, valid: pa.Array, brackets: str = "[]"
) -> pa.Array:
    """Join the texts of list elements as ``[a, b]``, or those of map entries as ``{a, b}``.

    `counts` has the number of elements of each list, 0 for a null list. `parts` has the texts of all elements, one list
    after another; a null is written as ``null``.
    """
    offsets = np.concatenate(([0], np.cumsum(counts)))
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pc.fill_null(parts, "null"))
    return _enclose(pc.binary_join(lists, ", "), valid, brackets)


def join_entries(keys: pa.Array, values: pa.Array) -> pa.Array:
    """Join the texts of keys and values as ``key -> value``."""
    return pc.binary_join_element_wise(pc.fill_null(keys, "null"), pc.fill_null(values, "null"), " -> ")


def join_fields(fields: Sequence[pa.Array], valid: pa.Array) -> pa.Array:
    """Join the texts of the fields of rows as ``{a, b}``; a null row remains null."""
    texts = [pc.fill_null(field, "null") for field in fields]
    inner = pc.binary_join_element_wise(*texts, ", ") if texts else pa.repeat("", len(valid))
    return _enclose(inner, valid, "{}")


def _enclose(inner: pa.Array, valid: pa.Array, brackets: str) -> pa.Array:
    whole = pc.binary_join_element_wise(brackets[0], inner, brackets[1], "")
    return pc.if_else(valid, whole, pa.scalar(None, pa.string()))
