"""Rows whose columns are in several files: data evolution, as Java writes it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from support.golden_tables import golden_directory

import paimon
from paimon.domain.errors import Unsupported
from paimon.domain.types.data_types import BlobType

TABLE = golden_directory() / "data_evolution" / "table"
BLOBS = golden_directory() / "blob" / "table"


@pytest.fixture
def whole() -> pa.Table:
    table = paimon.open_table(TABLE)
    assert isinstance(table, paimon.Table)
    return table.scan().to_arrow()


def test_projections_and_filters_agree_with_the_complete_read(whole: pa.Table) -> None:
    table = paimon.open_table(TABLE)
    assert isinstance(table, paimon.Table)
    assert table.scan().count() == whole.num_rows
    for name in whole.schema.names:
        assert table.scan(columns=[name]).to_arrow()[name].to_pylist() == whole[name].to_pylist()
    for row in whole.to_pylist():
        expected = [r for r in whole.to_pylist() if (r["id"], r["b"]) == (row["id"], row["b"])]
        assert table.scan(where=f"id = {row['id']} AND b = '{row['b']}'").to_arrow().to_pylist() == expected


def test_other_columns_are_read_and_blobs_are_refused_by_name() -> None:
    table = paimon.open_table(BLOBS)
    assert isinstance(table, paimon.Table)
    blobs = [f.name for f in table.table_schema.fields if isinstance(f.type, BlobType)]
    others = [f.name for f in table.table_schema.fields if f.name not in blobs]
    files = table.system_table("files").scan(where="file_format <> 'blob'").to_arrow()
    rows = sum(files["record_count"].to_pylist())
    assert table.scan(columns=others).to_arrow().num_rows == table.scan().count() == rows
    with pytest.raises(Unsupported, match="column 'pic'"):
        table.scan(columns=blobs).to_arrow()
