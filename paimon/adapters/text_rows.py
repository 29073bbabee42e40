"""The rows of CSV files and JSON lines, for `paimon.adapters.row_files`.

Invariant: types that nobody declares are inferred without loss: whole numbers beyond 64 bits are no DOUBLE. With
fractions, they are a DECIMAL if it has all digits; otherwise the column is one of floating numbers.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Set
from decimal import Decimal
from itertools import islice
from json import dumps, loads
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.errors import CorruptTable
from paimon.ports.row_files import Piece

_JSON_BYTES = 8 << 20
_JSON_ROWS = 20_000
_PEEKED_BYTES = 1 << 20
_CSV_NULLS = {"strings_can_be_null": True, "quoted_strings_can_be_null": False}
_MOST_DIGITS = 38
_DECIMAL_BOUND = 10**_MOST_DIGITS
_LONG_DIGITS = 19
_NUMBER = r"^[+-]?(?P<whole>\d*)(?:\.(?P<fraction>\d*))?$"
_LONG_INTEGER = re.compile(rb"[\s:\[,]-?\d{19,}\s*[,}\]]")


def read_csv(stream: Any, schema: pa.Schema | None, _: str) -> Iterator[Piece]:
    """Read the rows of a CSV file with a header."""
    from pyarrow import csv

    stream = _Peeked(stream)
    declared = {f.name: f.type for f in schema or () if not pa.types.is_nested(f.type)}
    types = _find_long_integers(stream.head, declared)
    convert = csv.ConvertOptions(column_types=types, **_CSV_NULLS)
    with csv.open_csv(stream, convert_options=convert) as reader:
        yield reader.schema.empty_table()
        for batch in reader:
            yield pa.Table.from_batches([batch])


class _Peeked:
    """A stream whose first bytes are known; a file for pyarrow."""

    closed = False

    def __init__(self, stream: Any) -> None:
        """Read the first lines."""
        data = b""
        while len(data) < _PEEKED_BYTES and (part := stream.read(_PEEKED_BYTES)):
            data += part
        self.head = data if len(data) < _PEEKED_BYTES else data[: data.rfind(b"\n") + 1]
        self._known, self._rest = io.BytesIO(data), stream

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        found = self._known.read(size)
        return found if found or size == 0 else bytes(self._rest.read(size))


def _find_long_integers(head: bytes, declared: dict[str, pa.DataType]) -> dict[str, pa.DataType]:
    """Return the declared types, and lossless ones for whole numbers beyond 64 bits, which Arrow infers as DOUBLE."""
    from pyarrow import csv

    convert = csv.ConvertOptions(column_types=declared, **_CSV_NULLS)
    try:
        inferred = csv.read_csv(io.BytesIO(head), convert_options=convert).schema
        names = [f.name for f in inferred if pa.types.is_float64(f.type) and f.name not in declared]
        if len(names) > len(set(names)) or not names:
            return declared
        convert.column_types = declared | dict.fromkeys(names, pa.string())
        texts = csv.read_csv(io.BytesIO(head), convert_options=convert)
    except pa.ArrowInvalid:
        return declared  # the read of the file reports it
    found = {name: _find_exact_type(texts[name]) for name in names}
    return declared | {name: kind for name, kind in found.items() if kind is not None}


def _find_exact_type(texts: pa.ChunkedArray) -> pa.DataType | None:
    """Return the type without loss of numbers as text; None for floating numbers."""
    numbers = pc.extract_regex(pc.utf8_trim_whitespace(texts), _NUMBER)
    if numbers.null_count > texts.null_count:
        return None
    digits, scale = (pc.max(pc.utf8_length(pc.struct_field(numbers, part))).as_py() for part in ("whole", "fraction"))
    if digits < _LONG_DIGITS:
        return None
    if digits + scale <= _MOST_DIGITS:
        return pa.decimal128(_MOST_DIGITS, scale)
    return None if scale else pa.string()


def read_json_lines(stream: Any, schema: pa.Schema | None, name: str) -> Iterator[Piece]:
    """Read JSON objects, one a line; lines that Arrow cannot read become plain rows."""
    number = 1
    for lines in _read_lines(stream):
        yield from _parse_lines(lines, schema, name, number)
        number += lines.count(b"\n")


def _read_lines(stream: Any) -> Iterator[bytes]:
    """Yield whole lines of some megabytes; a line break inside a text of JSON is always escaped."""
    parts: list[bytes] = []
    while data := stream.read(_JSON_BYTES):
        end = data.rfind(b"\n") + 1
        if end:
            yield b"".join([*parts, data[:end]])
            parts = []
        parts.append(data[end:])
    if rest := b"".join(parts):
        yield rest


def _parse_lines(lines: bytes, schema: pa.Schema | None, name: str, number: int) -> Iterator[Piece]:
    # With a schema, Arrow converts texts to dates and decimals. Other conversions happen when plain rows are written.
    from pyarrow import json

    def parse(explicit: pa.Schema | None) -> pa.Table:
        options = json.ParseOptions(explicit_schema=explicit, unexpected_field_behavior="infer")
        size = json.ReadOptions(block_size=max(len(lines), 1 << 20))
        return json.read_json(io.BytesIO(lines), read_options=size, parse_options=options)

    if not lines.strip():
        return
    try:
        table = parse(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        texts = {f.name for f in schema or () if pa.types.is_string(f.type)}
        rows = (
            _parse_row(line, number + index, name, texts)
            for index, line in enumerate(lines.decode("utf-8").split("\n"))
            if line.strip()
        )
        while piece := list(islice(rows, _JSON_ROWS)):
            yield piece
        return
    if schema is not None and any(column.null_count == len(column) for column in table.columns):
        # The columns of the schema that no row has are null, too.
        table = table.select([column for column in table.column_names if column in set(parse(None).column_names)])
    yield _keep_digits(table, lines, schema) if _LONG_INTEGER.search(lines) else table


def _keep_digits(table: pa.Table, lines: bytes, declared: pa.Schema | None) -> pa.Table:
    """Return a table without DOUBLE for whole numbers beyond 64 bits, unless no DECIMAL has the digits of a column."""
    known = set() if declared is None else set(declared.names)
    found = [f.name for f in table.schema if "double" in str(f.type) and f.name not in known]
    if not found:
        return table
    try:
        rows = [_load(line) for line in lines.split(b"\n") if line.strip()]
    except RecursionError:
        return table  # a type of this depth is refused later
    for name in found:
        try:
            values = _to_exact_array([row.get(name) for row in rows])
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            continue  # floating numbers
        if "decimal" in str(values.type) or pa.types.is_string(values.type):
            table = table.set_column(table.column_names.index(name), name, values)
    return table


class _Fraction(float):
    """A number with a point or an exponent, and its text."""

    def __new__(cls, text: str) -> _Fraction:
        self = super().__new__(cls, text)
        self.text = text
        return self

    text: str


def _to_exact_array(values: list[Any]) -> pa.Array:
    if not all(value is None or isinstance(value, int | Decimal | _Fraction) for value in values):
        exact = pa.array(values)
        if "decimal256" in str(exact.type):
            raise pa.ArrowInvalid("no type has these digits")
        return exact
    if any(isinstance(value, _Fraction) for value in values):
        if not any(isinstance(v, int | Decimal) and abs(v) >= 10 ** (_LONG_DIGITS - 1) for v in values):
            raise pa.ArrowInvalid("no long numbers")
        decimals = pa.array([Decimal(v.text) if isinstance(v, _Fraction) else v for v in values])
        return decimals.cast(pa.decimal128(_MOST_DIGITS, decimals.type.scale))
    if all(value is None or abs(value) < _DECIMAL_BOUND for value in values):
        return pa.array(values, pa.decimal128(_MOST_DIGITS, 0))
    return pa.array([None if value is None else str(int(value)) for value in values], pa.string())


def _parse_integer(digits: str) -> int | Decimal:
    """Return a whole number; a Decimal beyond 64 bits, for which Arrow infers a type without loss."""
    if len(digits) < 19 or -(1 << 63) <= (number := Decimal(digits)) < 1 << 63:
        return int(digits)
    return number


def _load(line: bytes | str, parse_float: type[float] = _Fraction) -> Any:
    return loads(line, parse_int=_parse_integer, parse_float=parse_float)


def _parse_row(line: str, number: int, name: str, texts: Set[str]) -> dict[str, Any]:
    """Return the row of a line; numbers in columns of texts become their text."""
    row = _load(line, _Fraction if texts else float)
    if not isinstance(row, dict):
        raise CorruptTable(name, f"line {number} is not a JSON object", hint="write one JSON object per line")
    for column in texts & row.keys():
        value = row[column]
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            text = str(value) if isinstance(value, Decimal) else dumps(value)  # which writes NaN and Infinity as read
            row[column] = value.text if isinstance(value, _Fraction) else text
    return row
