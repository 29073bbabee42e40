"""Send rows between Spark tasks with their exact Arrow types and in their order.

Invariant: a task gets the rows of one source in the order in which the source sent them. Spark only sees bytes, so no
type is converted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from paimon.domain.types.arrow_arrays import from_numpy

_NUMBERS = ("task", "source", "position")
ROWS_SCHEMA = StructType(
    [*(StructField(name, IntegerType(), False) for name in _NUMBERS), StructField("rows", BinaryType(), False)]
)
"""The Spark schema of sent rows: to which task, from which source, their position in it, and the rows as Arrow IPC."""
_ARROW_SCHEMA = pa.schema(
    [pa.field(name, pa.int32(), nullable=False) for name in _NUMBERS] + [pa.field("rows", pa.binary(), nullable=False)]
)
_COUNTS = "counts"
_FROM_COUNTS = -(1 << 31)
"""The source of numbers of changed rows; senders of rows have larger numbers."""
RowReader: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.Table]]
"""Returns the rows of the batches that a task gets from Spark."""


def read_plain_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield batches as the rows that they contain."""
    for batch in batches:
        yield pa.Table.from_batches([batch])


class ReceivedRows(NamedTuple):
    """Rows of one source: the number of the task that received them, that of the source, the rows, and their position.

    The position is a number that the sender chose, never one from data.
    """

    task: int
    source: int
    rows: pa.Table
    position: int


def send_rows(rows: pa.Table, tasks: npt.NDArray[np.int32], source: int, position: int) -> Iterator[pa.RecordBatch]:
    """Yield rows in the form that Spark shuffles: one record in `ROWS_SCHEMA` for each receiving task.

    `tasks` has the receiver of each row. `source` is the number of the sender, and `position` that of its call,
    ascending. The schema metadata of `rows` is sent too.
    """
    present = np.unique(tasks).tolist()
    for task in present:
        part = rows if len(present) == 1 else rows.filter(from_numpy(tasks == task))
        yield _make_message(task, source, position, encode_rows(part))


def start_tasks(tasks: int) -> pa.RecordBatch:
    """Return one empty message for each task, from source -1, so that tasks without rows run, too."""
    empty = encode_rows(pa.table({})).to_pybytes()
    rows = [{"task": task, "source": -1, "position": 0, "rows": empty} for task in range(tasks)]
    return pa.RecordBatch.from_pylist(rows, schema=_ARROW_SCHEMA)


def _make_message(task: int, source: int, position: int, rows: pa.Buffer) -> pa.RecordBatch:
    """Return a batch of one row in `ROWS_SCHEMA`, over the memory of the encoded rows."""
    numbers = [from_numpy(np.array([number], np.int32)) for number in (task, source, position)]
    return pa.RecordBatch.from_arrays([*numbers, _wrap_bytes(rows)], schema=_ARROW_SCHEMA)


def _wrap_bytes(data: pa.Buffer) -> pa.Array:
    """Return a binary array of one value, over its memory; `pyarrow.array` would copy it, and load pandas."""
    ends = np.array([0, len(data)], np.int32)
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(ends), data])


def send_counts(counts: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Yield numbers for `receive_counts` of the next stage, in the form that Spark shuffles; nothing for no numbers."""
    if counts:
        yield _make_message(0, _FROM_COUNTS, 0, encode_rows(pa.table({_COUNTS: pa.array(counts, pa.int64())})))


def receive_counts(batches: Iterable[pa.RecordBatch], counts: Counter[int]) -> Iterator[pa.RecordBatch]:
    """Yield the batches without numbers that `send_counts` sent, which are added to `counts` by position."""
    for batch in batches:
        are_counts = pc.equal(batch["source"], _FROM_COUNTS)
        if not are_counts.true_count:
            yield batch
            continue
        for rows in batch["rows"].filter(are_counts):
            counts.update(dict(enumerate(decode_rows(rows.as_buffer())[_COUNTS].to_pylist())))
        others = batch.filter(pc.invert(are_counts))
        if others.num_rows:
            yield others


def shuffle_rows(frame: DataFrame, tasks: int) -> DataFrame:
    """Return a frame of sent rows in which each partition has the rows of one task, ordered by source and position."""
    return frame.repartitionById(tasks, frame["task"]).sortWithinPartitions("source", "position")


def receive_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[ReceivedRows]:
    """Yield the rows that one task received from `shuffle_rows`, in ascending order of source and position."""
    for batch in batches:
        for task, source, position, rows in zip(*batch.columns, strict=True):
            yield ReceivedRows(task.as_py(), source.as_py(), decode_rows(rows.as_buffer()), position.as_py())


def encode_rows(rows: pa.Table) -> pa.Buffer:
    """Return rows as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return sink.getvalue()


def decode_rows(data: pa.Buffer) -> pa.Table:
    """Return the rows of an Arrow IPC stream."""
    with pa.ipc.open_stream(data) as stream:
        return stream.read_all()
