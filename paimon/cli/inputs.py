"""Files that `paimon write` reads.

Law: a file becomes a stream of Arrow tables with the file's own types; text formats are read with the table's types
where they can be, and JSON lines that Arrow does not take are written as plain rows.
"""

from __future__ import annotations

import json as text_json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import csv, feather, json, orc
from pyarrow import parquet as pq

from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound

Piece: TypeAlias = "pa.Table | list[dict[str, Any]]"
"""What is written at a time."""

_JSON_ROWS = 20_000
_ENDINGS = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".orc": "orc",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def read_file(name: str, format_name: str | None, schema: pa.Schema | None = None) -> Iterator[Piece]:
    """The file piece by piece; `schema` gives text formats their types.

    Raises
    ------
    NotFound
        No such file.
    InvalidRequest
        A format that is not known.
    CorruptTable
        The file is not of its format.
    """
    path = Path(name)
    if not path.is_file():
        raise NotFound("file", name, hint="name a file that is there, from where you stand")
    chosen = format_name or _ENDINGS.get(path.suffix.lower())
    if chosen is None:
        raise InvalidRequest(
            f"{name}: the ending {path.suffix!r} names no known format",
            subject=name,
            hint="pass --format csv|json|parquet|orc|arrow",
        )
    return _named(name, chosen, _READERS[chosen](path, schema))


def schema_of(name: str) -> pa.Schema:
    """The columns of a file."""
    for piece in read_file(name, None):
        return piece.schema if isinstance(piece, pa.Table) else pa.Table.from_pylist(piece).schema
    raise InvalidRequest(f"{name}: holds no rows to take columns from", subject=name, hint="write --columns instead")


def _named(name: str, format_name: str, pieces: Iterator[Piece]) -> Iterator[Piece]:
    try:
        yield from pieces
    except (pa.ArrowException, UnicodeDecodeError, text_json.JSONDecodeError, OSError) as error:
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        hint = "mend the file, or name its format by --format"
        raise CorruptTable(name, f"cannot be read as {format_name}: {what}", hint=hint) from error


def _csv(path: Path, schema: pa.Schema | None) -> Iterator[Piece]:
    types = {} if schema is None else {f.name: f.type for f in schema if not pa.types.is_nested(f.type)}
    convert = csv.ConvertOptions(column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False)
    with csv.open_csv(path, convert_options=convert) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _json(path: Path, schema: pa.Schema | None) -> Iterator[Piece]:
    # Arrow reads texts of dates and decimals where the schema says so; what it does not take, plain rows may.
    options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
    try:
        yield json.read_json(path, parse_options=options)
        return
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    with path.open(encoding="utf-8") as lines:
        rows = (_row(line, number, path) for number, line in enumerate(lines, 1) if line.strip())
        while piece := list(islice(rows, _JSON_ROWS)):
            yield piece


def _row(line: str, number: int, path: Path) -> dict[str, Any]:
    row = text_json.loads(line)
    if not isinstance(row, dict):
        hint = "give one JSON object a line"
        raise CorruptTable(str(path), f"line {number} holds no JSON object", hint=hint)
    return row


def _parquet(path: Path, _: pa.Schema | None) -> Iterator[Piece]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches():
            yield pa.Table.from_batches([batch])
        yield file.schema_arrow.empty_table()


def _orc(path: Path, _: pa.Schema | None) -> Iterator[Piece]:
    file = orc.ORCFile(path)
    for stripe in range(file.nstripes):
        yield pa.Table.from_batches([file.read_stripe(stripe)])
    yield file.schema.empty_table()


def _arrow(path: Path, _: pa.Schema | None) -> Iterator[Piece]:
    with path.open("rb") as start:
        has_footer = start.read(6) == b"ARROW1"
    if not has_footer:  # Feather 1, or a stream
        yield _stream(path)
        return
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
        for index in range(reader.num_record_batches):
            yield pa.Table.from_batches([reader.get_batch(index)])
        yield reader.schema.empty_table()


def _stream(path: Path) -> pa.Table:
    try:
        with path.open("rb") as source, pa.ipc.open_stream(source) as reader:
            return reader.read_all()
    except pa.ArrowInvalid:
        return feather.read_table(path)


_READERS: Mapping[str, Callable[[Path, pa.Schema | None], Iterator[Piece]]] = {
    "csv": _csv,
    "json": _json,
    "parquet": _parquet,
    "orc": _orc,
    "arrow": _arrow,
}
