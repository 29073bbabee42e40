"""What a writer buffers comes out as it went in, and is held once while it is copied."""

from __future__ import annotations

import weakref

import numpy as np
import pyarrow as pa

from paimon.operations.write.buffer import WriteBuffer, taken


def test_rows_leave_in_one_piece_in_the_order_in_which_they_came() -> None:
    buffer = WriteBuffer(100)
    assert buffer.drain() is None
    tables = [pa.table({"a": [n, n + 1], "b": [str(n), None]}) for n in range(0, 6, 2)]
    for number, table in enumerate(tables):
        buffer.add(table, np.full(2, number))
    assert buffer.is_full
    drained = buffer.drain()
    assert drained is not None
    assert drained[0].equals(pa.concat_tables(tables))
    assert all(column.num_chunks == 1 for column in drained[0].columns)
    assert drained[1].tolist() == [0, 0, 1, 1, 2, 2]
    assert not buffer.is_full
    assert buffer.drain() is None


def test_columns_that_are_copied_are_freed_one_by_one() -> None:
    columns = [pa.chunked_array([[n, n + 1, n + 2]]) for n in range(3)]
    held = [weakref.ref(column) for column in columns]
    chosen = taken(columns, np.array([2, 0]))
    assert [column.to_pylist() for column in chosen] == [[2, 0], [3, 1], [4, 2]]
    assert not columns
    assert [ref() for ref in held] == [None, None, None]
