"""Files, compressed files and standard input that `paimon write` reads.

Invariant: a file becomes a stream of Arrow tables with the file's own types; text formats are read with the table's
types where they can be, and JSON lines that Arrow does not take are written as plain rows. What cannot be read in one
pass is unpacked into a temporary file first.
"""

from __future__ import annotations

import json as text_json
import lzma
import shutil
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, TypeAlias

import pyarrow as pa
from attrs import frozen
from pyarrow import csv, feather, json, orc
from pyarrow import parquet as pq

from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound

Piece: TypeAlias = "pa.Table | list[dict[str, Any]]"
"""What is written at a time."""

FORMATS = ("csv", "json", "parquet", "orc", "arrow")
FILE_HELP = (
    "CSV, JSON lines, Parquet, ORC or Arrow, by the ending; also compressed (.gz .bz2 .zst .lz4 .xz .zip); "
    "- is standard input, with --format"
)
STANDARD_INPUT = "-"
_JSON_ROWS = 20_000
_COPIED_BYTES = 1 << 20
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
_COMPRESSIONS = {
    ".gz": "gzip",
    ".bz2": "bz2",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".lz4": "lz4",
    ".xz": "xz",
    ".zip": "zip",
}
_DAMAGE = (
    pa.ArrowException, UnicodeDecodeError, text_json.JSONDecodeError, OSError, EOFError, zlib.error, lzma.LZMAError,
    zipfile.BadZipFile, NotImplementedError, RuntimeError,
)  # fmt: skip
"""What libraries raise on files that are not of their format; zip files with a password are a RuntimeError."""


@frozen
class _Source:
    """A file to read: its name as it was given, its path (None: standard input), and how it is compressed."""

    name: str
    path: Path | None
    compression: str | None

    @property
    def is_plain(self) -> bool:
        return self.path is not None and self.compression is None


def read_file(name: str, format_name: str | None, schema: pa.Schema | None = None) -> Iterator[Piece]:
    """Read a file piece by piece.

    Parameters
    ----------
    name : str
        Its path, or ``-`` for standard input.
    format_name : str, optional
        Its format, instead of its ending.
    schema : pyarrow.Schema, optional
        Gives text formats their types.

    Returns
    -------
    iterator of Piece
        Arrow tables, or plain rows.

    Raises
    ------
    NotFound
        There is no such file.
    InvalidRequest
        The format is not known.
    CorruptTable
        The file is not of its format.
    """
    if name == STANDARD_INPUT:
        if format_name is None:
            hint = f"pass --format {'|'.join(FORMATS)}"
            raise InvalidRequest("standard input has no ending that names its format", subject=name, hint=hint)
        return _read(_Source("standard input", None, None), format_name, schema)
    path = Path(name)
    if not path.is_file():
        raise NotFound("file", name, hint="check the path; it is relative to the current directory")
    compression = _COMPRESSIONS.get(path.suffix.lower())
    ending = Path(path.stem).suffix if compression else path.suffix
    chosen = format_name or _ENDINGS.get(ending.lower())
    if chosen is None:
        hint = f"pass --format {'|'.join(FORMATS)}"
        raise InvalidRequest(f"{name}: the ending {ending!r} names no known format", subject=name, hint=hint)
    return _read(_Source(name, path, compression), chosen, schema)


def schema_of(name: str, format_name: str | None = None) -> pa.Schema:
    """The columns of a file."""
    for piece in read_file(name, format_name):
        return piece.schema if isinstance(piece, pa.Table) else pa.Table.from_pylist(piece).schema
    raise InvalidRequest(f"{name}: holds no rows to take columns from", subject=name, hint="write --columns instead")


def _read(source: _Source, format_name: str, schema: pa.Schema | None) -> Iterator[Piece]:
    try:
        if format_name == "csv":
            with _opened(source) as stream:
                yield from _csv(stream, schema)
            return
        with _unpacked(source) as path:
            yield from _READERS[format_name](path, schema, source.name)
    except _DAMAGE as error:
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        hint = "repair the file, or name its format by --format"
        raise CorruptTable(source.name, f"cannot be read as {format_name}: {what}", hint=hint) from error


@contextmanager
def _opened(source: _Source) -> Iterator[Any]:
    """The unpacked bytes as a stream."""
    if source.path is None:
        yield sys.stdin.buffer
    elif source.compression == "xz":
        with lzma.open(source.path) as stream:
            yield stream
    elif source.compression == "zip":
        with zipfile.ZipFile(source.path) as archive, archive.open(_only_member(archive, source.name)) as member:
            yield member
    else:
        with pa.input_stream(str(source.path), compression=source.compression) as stream:
            yield stream


def _only_member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    members = [member for member in archive.infolist() if not member.is_dir()]
    if len(members) != 1:
        hint = "unpack the archive, and name the files that are to be written"
        raise InvalidRequest(f"{name}: the archive holds {len(members)} files, not one", subject=name, hint=hint)
    return members[0]


@contextmanager
def _unpacked(source: _Source) -> Iterator[Path]:
    """The path of the unpacked bytes, for formats that do not read from front to back once."""
    if source.is_plain:
        assert source.path is not None
        yield source.path
        return
    with NamedTemporaryFile(prefix="paimon-input-") as copy:
        with _opened(source) as stream:
            shutil.copyfileobj(stream, copy, _COPIED_BYTES)
        copy.flush()
        yield Path(copy.name)


def _csv(stream: Any, schema: pa.Schema | None) -> Iterator[Piece]:
    types = {} if schema is None else {f.name: f.type for f in schema if not pa.types.is_nested(f.type)}
    convert = csv.ConvertOptions(column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False)
    with csv.open_csv(stream, convert_options=convert) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _json(path: Path, schema: pa.Schema | None, name: str) -> Iterator[Piece]:
    # Arrow reads texts of dates and decimals where the schema says so; what it does not take, plain rows may.
    options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
    try:
        yield json.read_json(path, parse_options=options)
        return
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    with path.open(encoding="utf-8") as lines:
        rows = (_row(line, number, name) for number, line in enumerate(lines, 1) if line.strip())
        while piece := list(islice(rows, _JSON_ROWS)):
            yield piece


def _row(line: str, number: int, name: str) -> dict[str, Any]:
    row = text_json.loads(line)
    if not isinstance(row, dict):
        hint = "give one JSON object a line"
        raise CorruptTable(name, f"line {number} holds no JSON object", hint=hint)
    return row


def _parquet(path: Path, _: pa.Schema | None, name: str) -> Iterator[Piece]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches():
            yield pa.Table.from_batches([batch])
        yield file.schema_arrow.empty_table()


def _orc(path: Path, _: pa.Schema | None, name: str) -> Iterator[Piece]:
    file = orc.ORCFile(path)
    for stripe in range(file.nstripes):
        yield pa.Table.from_batches([file.read_stripe(stripe)])
    yield file.schema.empty_table()


def _arrow(path: Path, _: pa.Schema | None, name: str) -> Iterator[Piece]:
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


_READERS: Mapping[str, Callable[[Path, pa.Schema | None, str], Iterator[Piece]]] = {
    "json": _json,
    "parquet": _parquet,
    "orc": _orc,
    "arrow": _arrow,
}
