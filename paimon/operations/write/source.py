"""What may be written: everything tabular becomes a stream of Arrow tables.

Law: Arrow data keep their types, plain Python values take those of the table's columns; whether names and types fit
is decided by `paimon.domain.columns.conform`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Any

import pyarrow as pa

from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.row.values import literal, to_array
from paimon.domain.texts import check_text
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import (
    INTEGER_TYPES,
    TIMESTAMP_TYPES,
    DataField,
    DataType,
    DateType,
    TimeType,
    VarCharType,
)

_CUT = (*INTEGER_TYPES, DateType, TimeType, *TIMESTAMP_TYPES)
"""Types for which Arrow would cut values that do not fit, such as 1.5 or a date with a time of day."""


def tables_of(data: Any, fields: tuple[DataField, ...], extra: tuple[str, ...] = ()) -> Iterator[pa.Table]:
    """The data as Arrow tables, one after the other.

    Parameters
    ----------
    data
        An Arrow table, batch or reader, a pandas or polars frame, a dict of columns, a list of row dicts, anything with
        ``__arrow_c_stream__`` or ``__arrow_c_array__``, or an iterable of those.
    fields : tuple of DataField
        The table's columns: plain Python values take their types.
    extra : tuple of str
        Names of further text columns (row kinds).
    """
    if isinstance(data, pa.Table):
        yield data
    elif isinstance(data, pa.RecordBatch):
        yield pa.Table.from_batches([data])
    elif isinstance(data, pa.RecordBatchReader):
        yield from _of_reader(data)
    elif isinstance(data, Mapping):
        yield _of_columns(data, fields, extra)
    elif _is_pandas(data):
        yield _taken(data, lambda frame: pa.Table.from_pandas(frame, preserve_index=False))
    elif hasattr(data, "__arrow_c_stream__"):
        yield from _of_reader(_taken(data, pa.RecordBatchReader.from_stream))
    elif hasattr(data, "__arrow_c_array__"):
        yield pa.Table.from_batches([_taken(data, pa.record_batch)])
    elif isinstance(data, Iterable) and not isinstance(data, str | bytes):
        yield from _of_iterable(data, fields, extra)
    else:
        raise InvalidRequest(
            f"rows cannot be made of {type(data).__name__!r}",
            hint="give an Arrow table, a data frame, a list of dicts, or anything with __arrow_c_stream__",
        )


def can_be_read_again(data: Any) -> bool:
    """Whether `tables_of` gives the same rows when it is asked a second time; not so for readers and iterators."""
    if isinstance(data, pa.RecordBatchReader | Iterator):
        return False
    if isinstance(data, Mapping):
        return not any(isinstance(values, Iterator) for values in data.values())
    if isinstance(data, list | tuple):
        return all(can_be_read_again(item) for item in data)
    return isinstance(data, Sized)


def _taken(data: Any, take: Callable[[Any], Any]) -> Any:
    try:
        return take(data)
    except PaimonError:
        raise
    except (pa.ArrowException, AttributeError, TypeError, ValueError) as error:
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidRequest(
            f"a {type(data).__name__} is no table: {what}", hint="give columns of one type each, with names"
        ) from error


def _of_reader(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    empty = True
    for batch in reader:
        empty = False
        yield pa.Table.from_batches([batch])
    if empty:
        yield reader.schema.empty_table()


def _of_iterable(data: Iterable[Any], fields: tuple[DataField, ...], extra: tuple[str, ...]) -> Iterator[pa.Table]:
    rows: list[Mapping[str, Any]] = []
    for item in data:
        if isinstance(item, Mapping) and not any(isinstance(v, pa.Array | pa.ChunkedArray) for v in item.values()):
            rows.append(item)
        else:
            yield from tables_of(item, fields, extra)
    if rows:
        names = list(dict.fromkeys(name for row in rows for name in row))
        yield _of_columns({name: [row.get(name) for row in rows] for name in names}, fields, extra)


def _of_columns(columns: Mapping[str, Any], fields: tuple[DataField, ...], extra: tuple[str, ...]) -> pa.Table:
    types: dict[str, DataType] = {f.name: f.type for f in fields} | dict.fromkeys(extra, VarCharType())
    for name in columns:
        check_text(name, "column name")
    arrays = {name: _column(name, values, types.get(name)) for name, values in columns.items()}
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) > 1:
        raise InvalidRequest(f"columns have different lengths: {sorted(lengths)}", hint="give each as many values")
    return pa.table(arrays)


def _column(name: str, values: Any, data_type: DataType | None) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidRequest(f"column {name!r} is one {type(values).__name__}, not a list", subject=name)
    values = values if isinstance(values, Sized) else list(values)
    if data_type is None:
        return _inferred(name, values)
    try:
        return _of_arrow(values, data_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return _of_literals(name, values, data_type)
    except UnicodeEncodeError as error:
        raise _not_unicode(name) from error


def _not_unicode(name: str) -> InvalidRequest:
    hint = "remove the unpaired surrogates"
    return InvalidRequest(f"column {name!r} holds text that is not valid Unicode", subject=name, hint=hint)


def _of_arrow(values: Iterable[Any], data_type: DataType) -> pa.Array:
    kind = arrow_type(data_type)
    if not isinstance(data_type, _CUT):
        return pa.array(values, type=kind)
    found = pa.array(values)
    if pa.types.is_null(found.type):
        return found.cast(kind)
    if not _alike(found.type, kind):
        raise pa.ArrowTypeError(f"{found.type} is not {kind}")
    return found


def _alike(given: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted):
        return (given.tz is None) == (wanted.tz is None)
    tests = (pa.types.is_integer, pa.types.is_date, pa.types.is_time)
    return any(test(given) and test(wanted) for test in tests)


def _of_literals(name: str, values: Iterable[Any], data_type: DataType) -> pa.Array:
    """Values that Arrow does not take as they are: texts for dates, whole numbers for decimals and the like."""
    try:
        return to_array([literal(value, data_type) for value in values], data_type)
    except UnicodeEncodeError as error:
        raise _not_unicode(name) from error
    except InvalidRequest as error:
        raise InvalidRequest(f"column {name!r}: {error.message}", subject=name, hint=error.hint) from error


def _inferred(name: str, values: Iterable[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except UnicodeEncodeError as error:
        raise _not_unicode(name) from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        raise InvalidRequest(f"column {name!r} holds values of no one type: {error}", subject=name) from error


def _is_pandas(data: Any) -> bool:
    return type(data).__module__.split(".")[0] == "pandas"
