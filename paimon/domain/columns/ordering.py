"""The order of values where Arrow's own is not the format's.

Law: floating values order as in Java: -0.0 before 0.0, NaN the largest and equal to itself, whatever its bits.
Source: `Double.compare`, `Float.compare`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def java_order(values: npt.NDArray[np.floating]) -> npt.NDArray[np.signedinteger]:
    """Integers that compare as Java compares these floats: equal where it finds them equal."""
    width = values.dtype.itemsize * 8
    integer = np.int32 if width == 32 else np.int64
    canonical = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    bits = canonical.view(integer)
    sign = np.right_shift(bits, width - 1)
    keys: npt.NDArray[np.signedinteger] = np.bitwise_xor(bits, np.bitwise_and(sign, np.iinfo(integer).max))
    return keys


def float_order(array: pa.Array) -> pa.Array:
    """The same for an Arrow array of FLOAT or DOUBLE; nulls stay null."""
    integer = pa.int32() if pa.types.is_float32(array.type) else pa.int64()
    buffers = array.buffers()
    dtype = np.float32 if pa.types.is_float32(array.type) else np.float64
    raw: npt.NDArray[np.floating] = np.frombuffer(buffers[1], dtype)
    keys = java_order(raw[array.offset : array.offset + len(array)])
    if array.null_count == 0:
        return pa.array(keys, integer)
    return pa.array(keys, integer, mask=np.asarray(array.is_null()))
