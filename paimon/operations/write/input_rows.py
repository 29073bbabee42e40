"""Convert what a caller gives to Arrow, check it, and bring it into the form that writers buffer.

Invariant: either all rows are accepted, or an error is raised and none is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.conform import conform_to_fields
from paimon.domain.columns.plain import to_plain_schema, to_plain_table
from paimon.domain.columns.python_values import NESTED_TYPES, convert_column, fill_masks
from paimon.domain.errors import InvalidRequest, PaimonError, Unsupported, did_you_mean
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.row_checks import check_single_rows
from paimon.domain.row.kinds import RETRACTS, parse_row_kinds
from paimon.domain.schema.missing_columns import ColumnCheck
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.text_checks import check_text
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.data_types import (
    DataField,
    DataType,
    VarCharType,
)
from paimon.domain.types.system_columns import VALUE_KIND
from paimon.ports.engine import Engine
from paimon.ports.row_files import FileRows

_FILE = b"paimon.file"


def to_arrow_tables(data: Any, fields: tuple[DataField, ...], extra: tuple[str, ...] = ()) -> Iterator[pa.Table]:
    """Yield the data, in its order, as Arrow tables whose columns have plain types.

    The data is an Arrow table, batch, reader or dataset, a pandas or polars frame, also a lazy one, a dict of columns,
    a list of row dicts, or what `open_files` returns. It can also be an object with `__arrow_c_stream__` or
    `__arrow_c_array__`, or an iterable of all those. Row dicts of an iterable come last, as one table. `extra` names
    further text columns (row kinds).
    """
    return map(to_plain_table, _convert_data(data, fields, extra))


def _convert_data(data: Any, fields: tuple[DataField, ...], extra: tuple[str, ...]) -> Iterator[pa.Table]:
    if isinstance(data, pa.Table):
        yield data
    elif isinstance(data, FileRows):
        yield from _read_files(data, fields, extra)
    elif isinstance(data, pa.RecordBatch):
        yield pa.Table.from_batches([data])
    elif isinstance(data, pa.RecordBatchReader):
        yield from _read_batches(data)
    elif isinstance(data, Mapping):
        yield _convert_columns(data, fields, extra)
    elif _is_pandas(data):
        yield _convert_source(data, lambda frame: _convert_frame(frame, fields))
    elif (stream := _open_stream(data)) is not None:
        yield from stream
    elif hasattr(data, "__arrow_c_array__"):
        yield pa.Table.from_batches([_convert_source(data, pa.record_batch)])
    elif isinstance(data, Iterable) and not isinstance(data, str | bytes):
        yield from _convert_items(data, fields, extra)
    else:
        raise InvalidRequest(
            f"Data of type {type(data).__name__!r} cannot be converted to rows",
            hint="pass an Arrow table, a data frame, a list of dicts, a pathlib.Path, or paimon.read_files(…)",
        )


def open_files(engine: Engine, data: Any) -> Any:
    """Return the rows of the files that paths name; other data unchanged."""
    paths = data if isinstance(data, list | tuple) else [data]
    if not paths or not all(hasattr(path, "__fspath__") for path in paths):
        return data
    if engine.row_files is None:
        raise Unsupported("files as rows in this engine", hint="set the field row_files of the Engine")
    return engine.row_files.open(paths)


def _read_files(data: FileRows, fields: tuple[DataField, ...], extra: tuple[str, ...]) -> Iterator[pa.Table]:
    """Yield the rows of files; the metadata of each table names its file, see `name_file`."""
    for name, piece in data.read(arrow_schema(fields) if fields else None):
        named = {_FILE: name.encode()}
        with name_file(named):
            tables = list(_convert_data(piece, fields, extra))
        for table in tables:
            yield table.replace_schema_metadata(named)


@contextmanager
def name_file(metadata: Mapping[bytes, bytes] | None) -> Iterator[None]:
    """Add the name of a file to errors about its rows; `metadata` is that of an Arrow schema."""
    name = (metadata or {}).get(_FILE)
    try:
        yield
    except InvalidRequest as error:
        if name is None:
            raise
        message = f"File {name.decode()!r}: {error.message}"
        raise InvalidRequest(message, subject=error.subject, hint=error.hint) from error


def find_schema(data: Any) -> pa.Schema | None:
    """Return the columns of Arrow data, a frame, a dataset or a relation, in plain types; None for other data."""
    kinds = {(kind.__module__.split(".")[0], kind.__name__) for kind in type(data).__mro__}
    if ("polars", "LazyFrame") in kinds:
        schema = _convert_source(data.head(0).collect(), pa.RecordBatchReader.from_stream).schema
    elif isinstance(getattr(data, "schema", None), pa.Schema):
        schema = data.schema
    elif _is_pandas(data):
        schema = _convert_source(data, lambda frame: pa.Schema.from_pandas(frame, preserve_index=False))
    elif hasattr(data, "__arrow_c_stream__"):
        schema = _convert_source(data, lambda source: pa.RecordBatchReader.from_stream(source).schema)
    else:
        return None
    return to_plain_schema(schema)


def read_checked_rows(
    data: Any,
    fields: tuple[DataField, ...],
    kind_column: str | None,
    check: ColumnCheck,
    check_types: Callable[[pa.Schema], None] | None = None,
) -> Iterator[pa.Table]:
    """Read data as tables, refusing rows that lack columns early; `check_types` may raise another error."""
    is_list, has_one_schema = isinstance(data, list | tuple), _has_one_schema(data)
    held: list[pa.Table] = []
    for table in to_arrow_tables(data, fields, (kind_column,) if kind_column else ()):
        check = check.add_rows(table)
        held.append(table)
        if check.is_refused and has_one_schema:
            break
        ready = 0 if check.is_refused and is_list else len(held) - check.is_refused
        yield from held[:ready]
        del held[:ready]
    if check.is_refused and check_types is not None:
        for table in held:
            with name_file(table.schema.metadata):
                check_types(pa.schema([field for field in table.schema if field.name != kind_column]))
    check.check_given()


def _has_one_schema(data: Any) -> bool:
    """Return whether all tables of some data have the same columns."""
    if isinstance(data, FileRows):
        return len(data.files) == 1 and data.files[0].has_one_schema
    is_table = isinstance(data, pa.Table | pa.RecordBatch | pa.RecordBatchReader | Mapping) or _is_pandas(data)
    return is_table or _open_stream(data) is not None or hasattr(data, "__arrow_c_array__")


def can_be_read_again(data: Any) -> bool:
    """Return whether the data can be read twice with the same rows; False for readers and iterators."""
    if isinstance(data, pa.RecordBatchReader | Iterator):
        return False
    if isinstance(data, FileRows):
        return data.is_repeatable
    if isinstance(data, Mapping):
        return not any(isinstance(values, Iterator) for values in data.values())
    if isinstance(data, list | tuple):
        return all(can_be_read_again(item) for item in data)
    return isinstance(data, Sized)


def _convert_source(data: Any, convert: Callable[[Any], Any]) -> Any:
    """Call a conversion, and report its error as an invalid request."""
    if any(kind.__module__.split(".")[0] == "polars" for kind in type(data).__mro__):
        for name, kind in getattr(data, "schema", {}).items():
            if str(kind) == "Object":  # Polars hands out the addresses of the objects as values
                hint = "convert them to values of one type, for example with map_elements"
                raise InvalidRequest(f"Column {name!r} has Python objects", subject=name, hint=hint)
    try:
        return convert(data)
    except PaimonError:
        raise
    except (pa.ArrowException, AttributeError, TypeError, ValueError) as error:
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidRequest(
            f"Data of type {type(data).__name__!r} is not a table: {what}", hint="use named columns of one type each"
        ) from error


def _read_batches(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    empty = True
    for batch in reader:
        empty = False
        yield pa.Table.from_batches([batch])
    if empty:
        yield reader.schema.empty_table()


def _convert_items(data: Iterable[Any], fields: tuple[DataField, ...], extra: tuple[str, ...]) -> Iterator[pa.Table]:
    rows: list[Mapping[str, Any]] = []
    for item in data:
        if isinstance(item, Mapping) and not any(isinstance(v, pa.Array | pa.ChunkedArray) for v in item.values()):
            rows.append(item)
        else:
            yield from _convert_data(item, fields, extra)
    if rows:
        names = list(dict.fromkeys(name for row in rows for name in row))
        yield _convert_columns({name: [row.get(name) for row in rows] for name in names}, fields, extra)


def _convert_columns(columns: Mapping[str, Any], fields: tuple[DataField, ...], extra: tuple[str, ...]) -> pa.Table:
    types: dict[str, DataType] = {f.name: f.type for f in fields} | dict.fromkeys(extra, VarCharType())
    for name in columns:
        check_text(name, "column name")
    arrays = {name: convert_column(name, values, types.get(name)) for name, values in columns.items()}
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) > 1:
        raise InvalidRequest(f"Columns have different lengths: {sorted(lengths)}", hint="use columns of equal length")
    return pa.table(arrays)


def _convert_frame(frame: Any, fields: tuple[DataField, ...]) -> pa.Table:
    types = {field.name: field.type for field in fields if isinstance(field.type, NESTED_TYPES)}
    typed: dict[str, pa.Array] = {}
    for name in types if frame.columns.is_unique else ():
        if name in frame.columns and frame[name].dtype.kind == "O" and frame[name].dtype.name == "object":
            typed[name] = convert_column(name, frame[name].tolist(), types[name], nan_is_null=True)
    rest = frame.copy(deep=False) if typed else frame
    for name in typed:
        rest[name] = None
    table = pa.Table.from_pandas(rest, preserve_index=False)
    for index, field in enumerate(table.schema):
        if field.name in typed:
            table = table.set_column(index, field.name, typed[field.name])
        elif pa.types.is_nested(field.type) and frame.dtypes.iloc[index].kind == "O":
            values = frame.iloc[:, index].tolist()
            if (filled := fill_masks(values)) is not values:
                table = table.set_column(index, field.name, pa.array(filled))
    return table


def _open_stream(data: Any) -> Iterator[pa.Table] | None:
    """Return what reads an Arrow stream, a dataset of pyarrow or a lazy frame of Polars; None for other data."""
    if hasattr(data, "__arrow_c_stream__"):
        return _read_stream(data, pa.RecordBatchReader.from_stream)
    kinds = {(kind.__module__.split(".")[0], kind.__name__) for kind in type(data).__mro__}  # loads neither library
    if ("pyarrow", "Dataset") in kinds:
        return _read_stream(data, lambda dataset: dataset.scanner().to_reader())
    return _read_frames(data) if ("polars", "LazyFrame") in kinds else None


def _read_stream(data: Any, open_reader: Callable[[Any], pa.RecordBatchReader]) -> Iterator[pa.Table]:
    yield from _read_batches(_convert_source(data, open_reader))


def _read_frames(data: Any) -> Iterator[pa.Table]:
    """Yield the rows of a lazy frame of Polars as its query finds them, or at once where Polars cannot do this."""
    frames = data.collect_batches() if hasattr(data, "collect_batches") else [data.collect()]
    is_empty = True
    for frame in frames:
        is_empty = False
        yield from _read_stream(frame, pa.RecordBatchReader.from_stream)
    if is_empty:
        yield from _read_stream(data.head(0).collect(), pa.RecordBatchReader.from_stream)


def _is_pandas(data: Any) -> bool:
    return type(data).__module__.split(".")[0] == "pandas"


def prepare_rows(
    table: TableDefinition,
    data: pa.Table | pa.RecordBatch,
    kinds: str | pa.Int8Array | None = None,
    are_stored: bool = False,
) -> pa.Table:
    """Convert rows to the types of a table, check them, and add their row kinds.

    Columns are found by name, and cast only without loss. `kinds` has the numbers of the kinds, or names a text column
    that is not stored; by default `rowkind.field` or inserts apply. `are_stored` marks rows that are in the table
    already, so that a merge may refuse them. Primary-key tables get a `_VALUE_KIND` column.
    """
    rows = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
    with name_file(rows.schema.metadata):
        return _prepare_rows(table, rows, kinds, are_stored)


def _prepare_rows(
    table: TableDefinition, rows: pa.Table, kinds: str | pa.Int8Array | None, are_stored: bool
) -> pa.Table:
    if isinstance(kinds, str):
        rows, kinds = _split_kind_column(rows, kinds)
    rows = conform_to_fields(rows, table.schema.fields, f"table {table.table_name}")
    options = table.options
    if kinds is None and options.rowkind_field is not None:
        kinds = parse_row_kinds(_get_kind_column(rows, options.rowkind_field), options.rowkind_field)
    if kinds is not None:
        rows, kinds = _drop_ignored_kinds(rows, kinds, options.ignore_delete, options.ignore_update_before)
    if not table.schema.primary_keys:
        _check_no_retracts(table, kinds)
        return rows
    if options.get("primary-key.nullable") != "true":
        _check_keys(table, rows)
    inserts = from_numpy(np.zeros(rows.num_rows, np.int8))
    rows = rows.append_column(VALUE_KIND.name, inserts if kinds is None else kinds)
    if not are_stored:
        check_single_rows(rows, MergeSpec.of(table.schema, options))
    return rows


def _get_kind_column(rows: pa.Table, name: str) -> pa.ChunkedArray:
    if name not in rows.column_names:
        raise InvalidRequest(
            f"Option 'rowkind.field' names {name!r}, which does not exist",
            subject="rowkind.field",
            hint=did_you_mean(name, rows.column_names),
        )
    return rows[name]


def _split_kind_column(table: pa.Table, column: str) -> tuple[pa.Table, pa.Int8Array]:
    if column not in table.column_names:
        raise InvalidRequest(
            f"Column {column!r} with row kinds does not exist in the data",
            subject=column,
            hint=did_you_mean(column, table.column_names),
        )
    return table.drop_columns([column]), parse_row_kinds(table[column], column)


def _drop_ignored_kinds(
    rows: pa.Table, kinds: pa.Int8Array, ignore_delete: bool, ignore_update_before: bool
) -> tuple[pa.Table, pa.Int8Array]:
    dropped = RETRACTS if ignore_delete else RETRACTS[:1] if ignore_update_before else RETRACTS[:0]
    kept = pc.invert(pc.is_in(kinds, dropped))
    return (rows, kinds) if kept.false_count == 0 else (rows.filter(kept), kinds.filter(kept))


def _check_no_retracts(table: TableDefinition, kinds: pa.Int8Array | None) -> None:
    if kinds is not None and pc.any(pc.is_in(kinds, RETRACTS)).as_py():
        raise InvalidRequest(
            f"Table {table.table_name!r} has no primary key, so it does not accept -U and -D rows",
            hint="set ignore-delete to drop them, or create the table with a primary key",
        )


def _check_keys(table: TableDefinition, rows: pa.Table) -> None:
    for name in table.schema.primary_keys:
        if rows[name].null_count:
            raise InvalidRequest(
                f"Primary key column {name!r} of table {table.table_name!r} contains nulls",
                subject=name,
                hint="give each row a key, or drop the rows without one",
            )
