"""Arrow arrays from Python and numpy values, built without loading pandas.

`pyarrow.array`, `pyarrow.scalar` and `Array.to_numpy` import pandas where it is installed, before they look at their
argument. The code that runs before the first rows of a scan, and the code that writes rows, uses these functions
instead, so a process that reads and writes Arrow data does not load pandas.

Invariant: the result equals that of `pyarrow.array` for the same values and type. A value that does not fit its type
raises the same error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask = npt.NDArray[np.bool_]
_INTEGER_IDS = {pa.int8().id, pa.int16().id, pa.int32().id, pa.int64().id}
_NUMPY_TYPES: Mapping[Any, pa.DataType] = {
    np.dtype(name): kind
    for name, kind in (("i1", pa.int8()), ("i2", pa.int16()), ("i4", pa.int32()), ("i8", pa.int64()),
                       ("u1", pa.uint8()), ("u4", pa.uint32()), ("u8", pa.uint64()),
                       ("f4", pa.float32()), ("f8", pa.float64()))
}  # fmt: skip
_DTYPES = {kind: dtype for dtype, kind in _NUMPY_TYPES.items()}
_MOST_BYTES = 2**31 - 1


def make_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Build an Arrow array equal to ``pyarrow.array(values, kind)``; records are mappings by field name."""
    built = _build_array(values, kind)
    return pa.array(values, kind) if built is None else built


def make_scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Build an Arrow scalar from a Python value; equal to ``pyarrow.scalar(value, kind)``."""
    return make_array([value], kind)[0]


def from_numpy(values: npt.NDArray[Any], valid: Mask | None = None) -> pa.Array:
    """Build an Arrow array over a numpy array's memory; `valid` marks values that are not null."""
    if values.dtype == np.bool_:
        return _from_buffers(pa.bool_(), len(values), valid, _bits(values))
    kind = _NUMPY_TYPES.get(values.dtype)
    if kind is None:
        return pa.array(values, mask=None if valid is None else ~valid)
    return _from_buffers(kind, len(values), valid, pa.py_buffer(np.ascontiguousarray(values)))


def to_numpy(array: pa.Array) -> npt.NDArray[Any]:
    """Return an Arrow array of numbers or booleans without nulls as a numpy array, without a copy where possible."""
    dtype = _DTYPES.get(array.type)
    values = None if array.null_count else array.buffers()[1]
    if values is not None and pa.types.is_boolean(array.type):
        bits = np.unpackbits(np.frombuffer(values, np.uint8), bitorder="little", count=array.offset + len(array))
        return bits[array.offset :].view(np.bool_)
    if values is None or dtype is None:
        return np.asarray(array.to_numpy(zero_copy_only=False))
    return np.frombuffer(values, dtype, len(array), array.offset * dtype.itemsize)


def _from_buffers(kind: pa.DataType, size: int, valid: Mask | None, *buffers: pa.Buffer) -> pa.Array:
    return pa.Array.from_buffers(kind, size, [None if valid is None else _bits(valid), *buffers])


def _bits(mask: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def _build_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array | None:
    """Build the array; None where `pyarrow.array` must do it."""
    if pa.types.is_struct(kind):
        return _records(values, kind)
    if pa.types.is_list(kind):
        return _lists(values, kind)
    build = _builder(kind)
    if build is None:
        return None
    accepted, convert = build
    types = {type(value) for value in values}
    if not types <= {accepted, type(None)}:
        return None
    return convert(values, kind, _valid(values) if type(None) in types else None)


def _builder(kind: pa.DataType) -> tuple[type, Callable[..., pa.Array | None]] | None:
    if kind.id in _INTEGER_IDS:
        return int, _integers
    if pa.types.is_string(kind):
        return str, _texts
    if pa.types.is_binary(kind):
        return bytes, _texts
    if pa.types.is_boolean(kind):
        return bool, _truths
    return (float, _floats) if pa.types.is_float64(kind) else None


def _valid(values: Sequence[Any]) -> Mask:
    return np.fromiter((value is not None for value in values), np.bool_, len(values))


def _integers(values: Sequence[int | None], kind: pa.DataType, valid: Mask | None) -> pa.Array | None:
    try:
        numbers = np.fromiter((value or 0 for value in values), np.int64, len(values))
    except OverflowError:
        return None
    return from_numpy(numbers, valid).cast(kind)


def _floats(values: Sequence[float | None], kind: pa.DataType, valid: Mask | None) -> pa.Array:
    return from_numpy(np.fromiter((0.0 if v is None else v for v in values), np.float64, len(values)), valid)


def _truths(values: Sequence[bool | None], kind: pa.DataType, valid: Mask | None) -> pa.Array:
    return from_numpy(np.fromiter((bool(value) for value in values), np.bool_, len(values)), valid)


def _texts(values: Sequence[Any], kind: pa.DataType, valid: Mask | None) -> pa.Array | None:
    try:
        pieces = [(v.encode() if isinstance(v, str) else v) if v is not None else b"" for v in values]
    except UnicodeEncodeError:
        return None
    offsets = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)), out=offsets[1:])
    if offsets[-1] > _MOST_BYTES:
        return None
    places, data = pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(b"".join(pieces))
    return _from_buffers(kind, len(pieces), valid, places, data)


def _records(values: Sequence[Any], kind: pa.StructType) -> pa.Array | None:
    if not kind.num_fields or not all(value is None or type(value) is dict for value in values):
        return None
    present = [{} if value is None else value for value in values]
    fields = list(kind)
    columns = [make_array([value.get(f.name) for value in present], f.type) for f in fields]
    valid = _valid(values)
    mask = None if bool(valid.all()) else from_numpy(~valid)
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)


def _lists(values: Sequence[Any], kind: pa.ListType) -> pa.Array | None:
    if not all(value is None or type(value) is list for value in values):
        return None
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter((len(value or ()) for value in values), np.int64, len(values)), out=offsets[1:])
    if offsets[-1] > _MOST_BYTES:
        return None
    valid = _valid(values)
    items = make_array([item for value in values for item in value or ()], kind.value_type)
    mask = None if bool(valid.all()) else from_numpy(~valid)
    return pa.ListArray.from_arrays(from_numpy(offsets.astype(np.int32)), items, type=kind, mask=mask)


FALSE, TRUE = from_numpy(np.array([False, True]))
