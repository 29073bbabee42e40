"""The columnar binlog equals its reference, however the changes are divided into batches."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.changelog.binlog_columnar import pack_changes
from paimon.domain.changelog.binlog_reference import pack_changes as reference


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None]), st.integers(0, 1))), st.data())
def test_columns_equal_rows(rows: list[tuple[int, str | None, int]], data: st.DataObject) -> None:
    kinds, texts, numbers = ([row[i] for row in rows] for i in range(3))
    columns = {"t": pa.array(texts, pa.string()), "_VALUE_KIND": pa.array(kinds, pa.int8()), "n": pa.array(numbers)}
    table = pa.record_batch(columns | {"n": columns["n"].cast(pa.int8())})
    cuts = sorted({0, len(rows), *data.draw(st.lists(st.integers(0, len(rows)), max_size=3))})
    batches = [table.slice(a, b - a) for a, b in pairwise(cuts)] or [table]
    for keys in (None, [], ["n"], ["n", "t"]):
        row_keys = [tuple({"n": numbers, "t": texts}[k][i] for k in keys or ()) for i in range(len(rows))]
        same = [None in key for key in row_keys]  # a null is not equal to any other key
        changes = reference(kinds, [(i,) if same[i] else key for i, key in enumerate(row_keys)])
        changes = [[i] for i in range(len(rows))] if keys is None else changes
        packed = [row for batch in pack_changes(iter(batches), keys) for row in batch.to_pylist()]
        assert packed == [
            {"t": [texts[i] for i in c], "_VALUE_KIND": kinds[c[-1]], "n": [numbers[i] for i in c]} for c in changes
        ]
