"""Convert Python values to Arrow columns of a table's types; what does not fit is refused.

Invariant: nothing is rounded, cut or wrapped silently, at any depth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set, Sized
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.row.literals import has_shape, parse_literal
from paimon.domain.row.values import to_array
from paimon.domain.types.arrow import UNIT_NANOS, arrow_type, timestamp_unit
from paimon.domain.types.data_types import (
    INTEGER_TYPES,
    TIMESTAMP_TYPES,
    ArrayType,
    DataType,
    DateType,
    IntType,
    MapType,
    MultisetType,
    RowType,
    TimeType,
    VectorType,
)
from paimon.domain.types.type_text import format_type

_ARROW_ERRORS = (pa.ArrowInvalid, TypeError, pa.ArrowNotImplementedError, OverflowError, ValueError)
"""ValueError is Python's for the digits of a large integer, and TypeError that for a date of numpy."""
_MISSING = {"NAType", "NaTType"}
"""The types of what pandas has in rows for null."""
_CONTAINERS = {list, tuple, dict}
_NONE = type(None)
_LISTS = (ArrayType, VectorType)
_LIST_KINDS = {list, tuple, np.ndarray, _NONE}
_Nested = ArrayType | MapType | MultisetType | RowType | VectorType
_Convert = Callable[[Any, DataType | None], Any]
NESTED_TYPES = (ArrayType, MapType, MultisetType, RowType, VectorType)
_TRUNCATING_TYPES = (*INTEGER_TYPES, DateType, TimeType, *TIMESTAMP_TYPES)
"""Types for which Arrow truncates values that do not fit, such as 1.5 or a date with a time of day."""


def convert_column(
    name: str, values: Any, data_type: DataType | None, nan_is_null: bool = False
) -> pa.Array | pa.ChunkedArray:
    """Convert the values of a column to a type that casts to the given one without loss; None infers it.

    `nan_is_null` reads NaN as null at any depth: pandas has it for nulls in lists.
    """
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise InvalidRequest(f"Column {name!r} is a single {type(values).__name__}, not a list", subject=name)
    if type(values).__module__.split(".")[0] == "pandas" and str(getattr(values, "dtype", "")) == "category":
        return pa.array(values)
    values = values if isinstance(values, Sized) else list(values)
    if data_type is None:
        return _infer_array(name, fill_masks(values))
    values = _hide_nans(values) if nan_is_null else values
    if isinstance(data_type, NESTED_TYPES):
        return _convert_nested(values, data_type, partial(convert_column, name, nan_is_null=nan_is_null), name)
    try:
        return _convert_with_arrow(values, data_type)
    except UnicodeEncodeError as error:
        raise _unicode_error(name) from error
    except _ARROW_ERRORS:
        plain = values.tolist() if isinstance(values, np.ma.MaskedArray) else fill_masks(values)
        if plain is values:
            return _convert_literals(name, values, data_type)
        return convert_column(name, plain, data_type)


def _hide_nans(values: Any) -> Any:
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return np.ma.masked_where(np.isnan(values), values) if values.dtype.kind == "f" else values
    return [None if isinstance(value, float | np.floating) and value != value else value for value in values]


def _convert_nested(values: Iterable[Any], data_type: _Nested, convert: _Convert, name: str) -> pa.Array:
    """Convert nested values level by level, since Arrow cuts numbers and times inside of them."""
    given = list(values)
    kinds, known = set(map(type, given)), _LIST_KINDS if isinstance(data_type, _LISTS) else {dict, _NONE}
    if not kinds <= known or (np.ndarray in kinds and 0 in {getattr(value, "ndim", 1) for value in given}):
        given = [_to_container(value, data_type) for value in given]
        for value in given:
            if value is not None and not has_shape(value, data_type):
                return _convert_literals(name, [value], data_type)  # which refuses it
    if isinstance(data_type, RowType):
        return _convert_structs(given, data_type, convert)
    if isinstance(data_type, _LISTS):
        given = [value if value is None or hasattr(value, "__len__") else list(value) for value in given]
        return pa.ListArray.from_arrays(_to_offsets(given), convert(_chain(given), data_type.element))
    entries = [value if value is None or isinstance(value, dict) else _to_pairs(value) for value in given]
    maps = [value for value in entries if value is not None]
    key_type = data_type.key if isinstance(data_type, MapType) else data_type.element
    item_type = data_type.value if isinstance(data_type, MapType) else IntType()
    keys = [key for value in maps for key in (value if isinstance(value, dict) else [key for key, _ in value])]
    items = [v for value in maps for v in (value.values() if isinstance(value, dict) else [v for _, v in value])]
    made = convert(keys, key_type)
    if made.null_count:
        raise InvalidRequest(f"Column {name!r} contains a null key", subject=name, hint="give each entry a key")
    return pa.MapArray.from_arrays(_to_offsets(entries), made, convert(items, item_type))


def _to_container(value: Any, data_type: _Nested) -> Any:
    """Return masked arrays and pairs as lists, records of numpy as mappings, and what is missing as None."""
    if isinstance(value, np.ma.MaskedArray):
        return value.tolist()
    if isinstance(value, np.void) and value.dtype.names:
        return {name: value[name] for name in value.dtype.names}
    if isinstance(value, Iterator | Set) and isinstance(data_type, MapType | MultisetType):
        return list(value)
    return None if _is_missing(value) else value


def _to_pairs(value: Any) -> list[Any]:
    return list(value.items() if hasattr(value, "items") else value)


def _to_offsets(given: list[Any]) -> pa.Array:
    """Return the offsets of lists or maps; that of a null is null."""
    ends = np.cumsum([0, *(0 if value is None else len(value) for value in given)])
    return pa.array(ends, pa.int32(), mask=np.array([*(value is None for value in given), False]))


def _chain(given: list[Any]) -> Any:
    """Return the elements of all lists; arrays of numpy stay one, without Python's objects."""
    lists = [value for value in given if value is not None]
    kinds = {(type(value), getattr(value, "dtype", None), getattr(value, "ndim", 1)) for value in lists}
    if len(kinds) == 1 and isinstance(lists[0], np.ndarray) and lists[0].ndim == 1:
        return np.concatenate(lists)
    return list(chain.from_iterable(lists))


def _convert_structs(given: list[Any], data_type: RowType, convert: _Convert) -> pa.Array:
    """Convert mappings of field names, or values in the order of the fields; unknown fields remain, to be refused."""
    types: dict[str, DataType | None] = {field.name: field.type for field in data_type.fields}
    known = types.keys() | ()
    rows: list[dict[str, Any]] = [{} if v is None else v if type(v) is dict else _to_mapping(v, types) for v in given]
    types |= dict.fromkeys([key for row in rows if not row.keys() <= known for key in row if key not in known])
    arrays = [convert([row.get(key) for row in rows], kind) for key, kind in types.items()]
    mask = pa.array([value is None for value in given], pa.bool_())
    return pa.StructArray.from_arrays(arrays, [str(key) for key in types], mask=mask)


def _to_mapping(value: Any, names: Iterable[str]) -> dict[str, Any]:
    return dict(value) if hasattr(value, "keys") else dict(zip(names, value, strict=True))


def _is_missing(value: Any) -> bool:
    return type(value).__name__ in _MISSING or (isinstance(value, np.datetime64) and bool(np.isnat(value)))


def fill_masks(values: Any) -> Any:
    """Return values with None for what masks of numpy hide at any depth, which Arrow would store."""
    level: Any = values
    while True:
        kinds = set(map(type, level))
        if any(issubclass(kind, np.ma.MaskedArray) for kind in kinds):
            return [_fill_mask(value) for value in values]
        if kinds.isdisjoint(_CONTAINERS):
            return values
        found = [value for value in level if type(value) in _CONTAINERS]
        level = list(chain.from_iterable(value.values() if isinstance(value, dict) else value for value in found))


def _fill_mask(value: Any) -> Any:
    value = value.tolist() if isinstance(value, np.ma.MaskedArray) else value
    if isinstance(value, dict):
        return {key: _fill_mask(part) for key, part in value.items()}
    return [_fill_mask(part) for part in value] if type(value) in _CONTAINERS else value


def _unicode_error(name: str) -> InvalidRequest:
    hint = "remove the unpaired surrogates"
    return InvalidRequest(f"Column {name!r} contains text that is not valid Unicode", subject=name, hint=hint)


def _convert_with_arrow(values: Iterable[Any], data_type: DataType) -> pa.Array:
    kind = arrow_type(data_type)
    if not isinstance(data_type, _TRUNCATING_TYPES):
        made = pa.array(values, type=kind)
        if _has_infinities(made):
            raise pa.ArrowInvalid("a number may be beyond the largest FLOAT")  # Arrow makes it infinite
        return made
    found = pa.array(values)
    if pa.types.is_null(found.type):
        return found.cast(kind)
    if pa.types.is_timestamp(found.type) and _has_times_of_pandas(values):
        found = pa.array(values, pa.timestamp("ns", found.type.tz))  # Arrow's own choice cuts nanoseconds
    if not _is_same_kind(found.type, kind):
        raise pa.ArrowTypeError(f"{found.type} is not {kind}")
    return found


def _has_times_of_pandas(values: Any) -> bool:
    has_objects = getattr(getattr(values, "dtype", None), "kind", "O") == "O"
    return has_objects and any(hasattr(kind, "nanosecond") for kind in set(map(type, values)))


def _has_infinities(array: pa.Array) -> bool:
    """Return whether there is an infinity at any depth."""
    kind = array.type
    if pa.types.is_floating(kind):
        return bool(pc.any(pc.is_inf(array)).as_py())
    if pa.types.is_struct(kind):
        return any(_has_infinities(part) for part in array.flatten())
    if pa.types.is_map(kind):
        return _has_infinities(array.keys) or _has_infinities(array.items)
    return (pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)) and _has_infinities(array.values)


def _is_same_kind(given: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted):
        return (given.tz is None) == (wanted.tz is None)
    tests = (pa.types.is_integer, pa.types.is_date, pa.types.is_time)
    return any(test(given) and test(wanted) for test in tests)


def _convert_literals(name: str, values: Iterable[Any], data_type: DataType) -> pa.Array:
    """Convert values that Arrow rejects for this type, such as text for dates and integers for decimals."""
    try:
        literals = [None if _is_missing(value) else parse_literal(value, data_type) for value in values]
        made = to_array(literals, data_type)
    except UnicodeEncodeError as error:
        raise _unicode_error(name) from error
    except (InvalidRequest, Unsupported) as error:
        raise InvalidRequest(f"Column {name!r}: {error.message}", subject=name, hint=error.hint) from error
    if isinstance(data_type, TIMESTAMP_TYPES):
        unit = UNIT_NANOS[timestamp_unit(data_type.precision)]
        for nanos in literals:
            if nanos is not None and nanos % unit:
                raise InvalidRequest(
                    f"Column {name!r} contains a time that is finer than {format_type(data_type)}",
                    subject=name,
                    hint="change the data, or the column's type",
                )
    return made


def _infer_array(name: str, values: Iterable[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except UnicodeEncodeError as error:
        raise _unicode_error(name) from error
    except _ARROW_ERRORS as error:
        raise InvalidRequest(
            f"Column {name!r} contains values of different types: {error}",
            subject=name,
            hint="give all values one type, or pass a pyarrow table, whose schema declares the types",
        ) from error
