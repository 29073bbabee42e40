"""ORC files preserve the values of nested rows with nulls at any level. Arrow's own writer loses some."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.adapters.formats.orc import OrcFormat
from paimon.domain.row.values import to_array, to_values
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.ddl import parse_columns
from paimon.ports.formats import ReadRequest, WriteRequest
from paimon.testing.memory_files import MemoryFiles

INNER = st.none() | st.tuples(st.booleans(), st.integers(-9, 9) | st.none())
SHAPES: dict[str, tuple[str, Any]] = {
    "row": ("ROW<o ROW<a BOOLEAN, b INT>>", st.tuples(INNER)),
    "row of row": ("ROW<p ROW<o ROW<a BOOLEAN, b INT>>>", st.tuples(st.tuples(INNER))),
    "array": ("ARRAY<ROW<o ROW<a BOOLEAN, b INT>>>", st.none() | st.lists(st.tuples(INNER), max_size=2)),
    "map": ("MAP<INT, ROW<o ROW<a BOOLEAN, b INT>>>", st.lists(st.tuples(st.just(1), st.tuples(INNER)), max_size=1)),
}


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=40)
@given(st.data())
def test_null_rows_within_rows(shape: str, data: st.DataObject) -> None:
    kind, cells = SHAPES[shape]
    fields = parse_columns(f"c {kind}")
    values = data.draw(st.lists(cells, min_size=1, max_size=12))
    files, table = MemoryFiles(), pa.Table.from_arrays([to_array(values, fields[0].type)], schema=arrow_schema(fields))
    writer = OrcFormat().writer(files.create("/f"), WriteRequest("/f", fields))
    writer.write(table)
    writer.close()
    (batch,) = OrcFormat().read(files.open("/f"), ReadRequest("/f", fields))
    assert to_values(batch.column(0), fields[0].type) == values
