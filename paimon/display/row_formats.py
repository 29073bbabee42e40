"""Write rows to an open file or pipe: as JSON lines, CSV, Markdown, Arrow or Parquet.

Invariant: rows stream in pieces of bounded size. JSON lines, Arrow and Parquet contain every value exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv
from pyarrow import parquet as pq

from paimon.display.column_texts import to_json_lines, to_plain_texts
from paimon.display.text_table import is_number
from paimon.domain.columns.time_text import has_far_times
from paimon.domain.errors import InvalidRequest

BINARY_FORMATS = ("arrow", "parquet")
"""The formats that a terminal cannot show, and that have one result for each file."""
ROW_FORMATS = ("csv", "markdown", *BINARY_FORMATS)
"""The formats that `--output` has for rows, in addition to those of records."""
_ENDINGS: Mapping[str, str] = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".md": "markdown",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".parquet": "parquet",
}
_PIECE_BYTES = 4 * 1024 * 1024
_MARKUP_BYTES = 32
"""Approximate bytes that the name of a column, or its padding, adds to a value."""


def find_format(name: str) -> str:
    """Return the format that the extension of a file names."""
    _, dot, ending = name.rpartition("/")[2].rpartition(".")
    found = _ENDINGS.get(f"{dot}{ending}".lower())
    if found is None:
        raise InvalidRequest(
            f"The extension of file {name!r} names no format of rows.",
            subject=name,
            hint=f"use one of {', '.join(_ENDINGS)}",
        )
    return found


def write_rows(reader: pa.RecordBatchReader, format_name: str, sink: BinaryIO) -> int:
    """Write all rows in a format, `json` or one of `ROW_FORMATS`, and return their number."""
    rows = 0

    def _count_rows() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in reader:
            rows += batch.num_rows
            yield batch

    _WRITERS[format_name](pa.RecordBatchReader.from_batches(reader.schema, _count_rows()), sink)
    return rows


def split_batches(reader: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches whose text needs little memory."""
    for batch in reader:
        row_bytes = batch.nbytes // max(batch.num_rows, 1) + _MARKUP_BYTES * batch.num_columns
        step = max(1, _PIECE_BYTES // max(row_bytes, 1))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


def write_texts(texts: pa.StringArray, sink: BinaryIO) -> None:
    """Write the texts one after the other, directly from Arrow's memory."""
    if not len(texts):
        return
    _, ends, data = texts.buffers()
    offsets = pa.Array.from_buffers(pa.int32(), len(texts) + 1, [None, ends], offset=texts.offset)
    if data is not None:
        sink.write(memoryview(data)[offsets[0].as_py() : offsets[-1].as_py()])
    sink.flush()


def _write_json(reader: pa.RecordBatchReader, sink: BinaryIO) -> None:
    for piece in split_batches(reader):
        write_texts(to_json_lines(piece), sink)


def _write_csv(reader: pa.RecordBatchReader, sink: BinaryIO) -> None:
    nested = [f.name for f in reader.schema if pa.types.is_nested(f.type) or pa.types.is_binary(f.type)]
    if nested:
        raise InvalidRequest(
            f"Column {nested[0]!r} has a type that CSV cannot represent.",
            subject=nested[0],
            hint="leave it out with --columns, or use --output json",
        )
    with csv.CSVWriter(sink, reader.schema) as writer:
        for batch in reader:
            _check_csv_times(batch)
            writer.write_batch(batch)
            sink.flush()


def _check_csv_times(batch: pa.RecordBatch) -> None:
    for column, array in zip(batch.schema, batch.columns, strict=True):
        is_time = pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)
        if is_time and has_far_times(array):
            raise InvalidRequest(
                f"Column {column.name!r} has a year of more than four digits, which CSV cannot represent.",
                subject=column.name,
                hint="leave it out with --columns, or use --output json",
            )


def _write_markdown(reader: pa.RecordBatchReader, sink: BinaryIO) -> None:
    names = _escape_cells(pa.array(reader.schema.names, pa.string())).to_pylist()
    rules = ["---:" if is_number(field.type) else "---" for field in reader.schema]
    for cells in (names, rules):
        sink.write(f"| {' | '.join(cells)} |\n".encode())
    for piece in split_batches(reader):
        columns = [_escape_cells(column) for column in piece.columns]
        lines = pc.binary_join_element_wise(*columns, " | ")
        write_texts(pc.binary_join_element_wise("| ", lines, " |\n", ""), sink)


def _escape_cells(values: pa.Array) -> pa.StringArray:
    return pc.replace_substring(to_plain_texts(values), "|", "\\|")


def _write_arrow(reader: pa.RecordBatchReader, sink: BinaryIO) -> None:
    with pa.ipc.new_file(sink, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def _write_parquet(reader: pa.RecordBatchReader, sink: BinaryIO) -> None:
    with pq.ParquetWriter(sink, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


_WRITERS: Mapping[str, Callable[[pa.RecordBatchReader, BinaryIO], None]] = {
    "json": _write_json,
    "csv": _write_csv,
    "markdown": _write_markdown,
    "arrow": _write_arrow,
    "parquet": _write_parquet,
}
