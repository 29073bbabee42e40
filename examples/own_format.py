"""Store data files in a format of your own: Arrow IPC, under the name `arrow`.

python examples/own_format.py
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from paimon.domain.errors import CorruptTable, InvalidRequest
from paimon.domain.stats.collect import collect_column_stats
from paimon.domain.types.arrow import arrow_schema
from paimon.embed import make_catalog, make_engine
from paimon.ports.files import OutputFile
from paimon.ports.formats import ReadRequest, WriteRequest, WrittenFile
from paimon.testing.memory_files import MemoryFiles


class ArrowFormat:
    """A FormatIO of Arrow IPC files. It ignores predicates, which is correct."""

    identifier = "arrow"

    def read(self, source: pa.NativeFile, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        try:
            yield from _read(pa.ipc.open_file(source), request)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise CorruptTable(request.path, f"is not a readable Arrow file: {error}") from error

    def writer(self, sink: OutputFile, request: WriteRequest) -> ArrowWriter:
        return ArrowWriter(sink, request)


class ArrowWriter:
    """A FormatWriter of one Arrow IPC file, which keeps the rows in memory until it is closed."""

    def __init__(self, sink: OutputFile, request: WriteRequest) -> None:
        if request.compression not in ("none", "zstd", "lz4"):
            raise InvalidRequest(f"Arrow files have no compression {request.compression!r}", hint="use zstd")
        self._sink, self._request, self._schema = sink, request, arrow_schema(request.fields)
        self._rows = self._schema.empty_table()

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        for column, field in zip(table.columns, self._schema, strict=True):
            if column.null_count and not field.nullable:
                raise InvalidRequest(f"Column {field.name!r} is NOT NULL, but a row has no value for it")
        self._rows = pa.concat_tables([self._rows, pa.Table.from_arrays(table.columns, schema=self._schema)])

    def estimated_bytes(self) -> int:
        return self._rows.nbytes

    def held_bytes(self) -> int:
        return self._rows.nbytes

    def flush(self) -> None: ...

    def close(self) -> WrittenFile:
        codec = None if self._request.compression == "none" else self._request.compression
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with pa.ipc.new_file(pa.PythonFile(self._sink, "w"), self._schema, options=options) as writer:
            writer.write_table(self._rows)
        size = self._sink.tell()
        self._sink.close()
        stats = [collect_column_stats(self._rows[f.name], f.type) for f in self._request.fields]
        return WrittenFile(size, self._rows.num_rows, stats)

    def abort(self) -> None:
        self._sink.abort()


def _read(file: pa.ipc.RecordBatchFileReader, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    schema, first = arrow_schema(request.fields), 0
    for number in range(file.num_record_batches):
        batch = file.get_batch(number)
        batch.validate(full=True)
        columns = [_to_column(batch, field) for field in schema]
        whole = pa.RecordBatch.from_arrays(columns, schema=schema) if columns else batch.select([])
        for start, end in request.row_ranges or ((0, first + len(batch)),):
            low, high = max(start - first, 0), min(end - first, len(batch))
            for at in range(low, high, request.batch_rows):
                yield whole.slice(at, min(request.batch_rows, high - at))
        first += len(batch)


def _to_column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if field.name not in batch.schema.names:
        return pa.nulls(len(batch), field.type)
    found = batch[field.name]
    return found if found.type == field.type else found.cast(field.type)  # a part of the fields of a ROW


def main() -> None:
    """Create a table of this format, change its rows, and read them."""
    catalog = make_catalog(make_engine(MemoryFiles(), formats={"arrow": ArrowFormat()}), "/lake")
    catalog.create_database("shop")
    options = {"file.format": "arrow", "bucket": "2"}
    orders = catalog.create_table("shop.orders", "id INT, item STRING", primary_keys=["id"], options=options)
    orders.write({"id": [1, 2, 3], "item": ["cup", "pan", "pot"]})
    orders.update(set={"item": "'mug'"}, where="id = 1")
    orders.delete(where="id = 2")
    orders.compact(full=True)
    print(orders.scan().to_arrow().sort_by("id").to_pylist())


if __name__ == "__main__":
    main()
