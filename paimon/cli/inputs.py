"""The files that `paimon write`, `merge` and `create --like` name; a dash is the standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from attrs import evolve

from paimon.cli.terminal import show_row_count
from paimon.domain.errors import InvalidRequest
from paimon.engines import read_files
from paimon.ports.row_files import ROW_FILE_FORMATS, FileRows, Piece, RowFile

FORMATS = ROW_FILE_FORMATS
FILE_HELP = (
    "CSV, JSON lines, Parquet, ORC, Avro or Arrow file, by its extension; also compressed (.gz .bz2 .zst .lz4 .xz "
    ".zip); a URL, a pattern in quotes; - is standard input and needs --format"
)
STANDARD_INPUT = "-"


def open_inputs(names: Sequence[str], format_name: str | None) -> FileRows:
    """Find files, and the standard input for ``-``; `format_name` is one of `FORMATS`, by default the extension's."""
    if STANDARD_INPUT in names and format_name is None:
        hint = f"pass --format {'|'.join(FORMATS)}"
        raise InvalidRequest("Standard input has no file extension that names its format.", subject="-", hint=hint)
    if names.count(STANDARD_INPUT) > 1:
        raise InvalidRequest("Standard input can be read only once.", subject=STANDARD_INPUT, hint="pass - once")
    return read_files([sys.stdin.buffer if name == STANDARD_INPUT else name for name in names], format_name)


def show_progress(rows: FileRows) -> FileRows:
    """Return the same rows; while a file is read, the terminal shows how many of its rows have passed."""
    return FileRows([evolve(file, read=partial(_read_counted, file)) for file in rows.files], rows.is_repeatable)


def _read_counted(file: RowFile, schema: pa.Schema | None) -> Iterator[Piece]:
    return show_row_count(file.read(schema), f"writing {file.name}:")
