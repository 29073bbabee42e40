"""Read files, compressed files and standard input for `paimon write`.

Invariant: a file becomes a stream of Arrow tables with its own types. Text formats use the types of the table where
possible; JSON lines that Arrow cannot read become plain rows. A format that needs more than one pass is unpacked into
a temporary file first.
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
"""A part of a file: an Arrow table, or plain rows."""

FORMATS = ("csv", "json", "parquet", "orc", "arrow")
FILE_HELP = (
    "CSV, JSON lines, Parquet, ORC or Arrow file, by its extension; also compressed (.gz .bz2 .zst .lz4 .xz .zip); "
    "- is standard input and needs --format"
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
"""Errors that libraries raise for files of another format; a zip file with a password is a RuntimeError."""


@frozen
class _Source:
    """A file to read: its name in messages, its path (None: standard input), and its compression."""

    name: str
    path: Path | None
    compression: str | None

    @property
    def is_plain(self) -> bool:
        return self.path is not None and self.compression is None


def read_file(name: str, format_name: str | None, schema: pa.Schema | None = None) -> Iterator[Piece]:
    """Read a file, or standard input for ``-``, in pieces that are Arrow tables or plain rows.

    `format_name` is one of `FORMATS`; by default the extension decides. `schema` has types for columns of text formats.
    An archive must contain exactly one file.
    """
    if name == STANDARD_INPUT:
        if format_name is None:
            hint = f"pass --format {'|'.join(FORMATS)}"
            raise InvalidRequest("Standard input has no file extension that names its format.", subject=name, hint=hint)
        return _read_source(_Source("standard input", None, None), format_name, schema)
    path = Path(name)
    if not path.is_file():
        raise NotFound("file", name, hint="check the path; it is relative to the current directory")
    compression = _COMPRESSIONS.get(path.suffix.lower())
    ending = Path(path.stem).suffix if compression else path.suffix
    chosen = format_name or _ENDINGS.get(ending.lower())
    if chosen is None:
        hint = f"pass --format {'|'.join(FORMATS)}"
        raise InvalidRequest(f"File {name!r}: the extension {ending!r} names no known format.", subject=name, hint=hint)
    return _read_source(_Source(name, path, compression), chosen, schema)


def read_schema(name: str, format_name: str | None = None) -> pa.Schema:
    """Read the names and types of the columns from the first piece of a file.

    A file without rows to infer types from is refused.
    """
    for piece in read_file(name, format_name):
        return piece.schema if isinstance(piece, pa.Table) else pa.Table.from_pylist(piece).schema
    raise InvalidRequest(
        f"File {name!r} has no rows to infer columns from.", subject=name, hint="pass --columns instead"
    )


def _read_source(source: _Source, format_name: str, schema: pa.Schema | None) -> Iterator[Piece]:
    try:
        if format_name == "csv":
            with _open_stream(source) as stream:
                yield from _read_csv(stream, schema)
            return
        with _unpack_to_path(source) as path:
            yield from _READERS[format_name](path, schema, source.name)
    except _DAMAGE as error:
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        hint = "repair the file, or pass its format with --format"
        raise CorruptTable(source.name, f"cannot be read as {format_name}: {what}", hint=hint) from error


@contextmanager
def _open_stream(source: _Source) -> Iterator[Any]:
    """Open the unpacked bytes as a stream."""
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
        hint = "unpack the archive, and pass the files to write"
        raise InvalidRequest(f"Archive {name!r} contains {len(members)} files, not one.", subject=name, hint=hint)
    return members[0]


@contextmanager
def _unpack_to_path(source: _Source) -> Iterator[Path]:
    """Yield the path of a file with the unpacked bytes, for formats that cannot be read as a stream."""
    if source.is_plain:
        assert source.path is not None
        yield source.path
        return
    with NamedTemporaryFile(prefix="paimon-input-") as copy:
        with _open_stream(source) as stream:
            shutil.copyfileobj(stream, copy, _COPIED_BYTES)
        copy.flush()
        yield Path(copy.name)


def _read_csv(stream: Any, schema: pa.Schema | None) -> Iterator[Piece]:
    types = {} if schema is None else {f.name: f.type for f in schema if not pa.types.is_nested(f.type)}
    convert = csv.ConvertOptions(column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False)
    with csv.open_csv(stream, convert_options=convert) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _read_json(path: Path, schema: pa.Schema | None, name: str) -> Iterator[Piece]:
    # With a schema, Arrow converts texts to dates and decimals. Other conversions happen when plain rows are written.
    options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
    try:
        yield json.read_json(path, parse_options=options)
        return
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    with path.open(encoding="utf-8") as lines:
        rows = (_parse_row(line, number, name) for number, line in enumerate(lines, 1) if line.strip())
        while piece := list(islice(rows, _JSON_ROWS)):
            yield piece


def _parse_row(line: str, number: int, name: str) -> dict[str, Any]:
    row = text_json.loads(line)
    if not isinstance(row, dict):
        hint = "write one JSON object per line"
        raise CorruptTable(name, f"line {number} is not a JSON object", hint=hint)
    return row


def _read_parquet(path: Path, _: pa.Schema | None, name: str) -> Iterator[Piece]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches():
            yield pa.Table.from_batches([batch])
        yield file.schema_arrow.empty_table()


def _read_orc(path: Path, _: pa.Schema | None, name: str) -> Iterator[Piece]:
    file = orc.ORCFile(path)
    for stripe in range(file.nstripes):
        yield pa.Table.from_batches([file.read_stripe(stripe)])
    yield file.schema.empty_table()


def _read_arrow(path: Path, _: pa.Schema | None, name: str) -> Iterator[Piece]:
    with path.open("rb") as start:
        has_footer = start.read(6) == b"ARROW1"
    if not has_footer:  # Feather 1, or a stream
        yield _read_arrow_stream(path)
        return
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
        for index in range(reader.num_record_batches):
            yield pa.Table.from_batches([reader.get_batch(index)])
        yield reader.schema.empty_table()


def _read_arrow_stream(path: Path) -> pa.Table:
    try:
        with path.open("rb") as source, pa.ipc.open_stream(source) as reader:
            return reader.read_all()
    except pa.ArrowInvalid:
        return feather.read_table(path)


_READERS: Mapping[str, Callable[[Path, pa.Schema | None, str], Iterator[Piece]]] = {
    "json": _read_json,
    "parquet": _read_parquet,
    "orc": _read_orc,
    "arrow": _read_arrow,
}
