"""Settings of the user's process, such as the decimal context, change no result."""

from __future__ import annotations

import decimal
from decimal import Decimal

import polars as pl
import pytest

import paimon

LARGE = Decimal("1234567890123456789012345678.1234567891")
SMALL = Decimal("-1234567.89")


@pytest.fixture
def coarse_context() -> object:
    with decimal.localcontext(decimal.Context(prec=3, traps=[decimal.Inexact, decimal.Rounded])) as context:
        yield context


@pytest.mark.usefixtures("coarse_context")
@pytest.mark.parametrize("index", ["bsi", "range-bitmap"])
def test_the_decimal_context_changes_no_filter(tmp_path: object, index: str) -> None:
    catalog = paimon.connect(str(tmp_path))
    catalog.create_database("db")
    options = {f"file-index.{index}.columns": "small"}
    table = catalog.create_table("db.t", "large DECIMAL(38, 10), small DECIMAL(9, 2), d DOUBLE", options=options)
    table.write([{"large": LARGE, "small": SMALL, "d": 1.25e-40}, {"large": 1, "small": 2, "d": 123456.789}])

    def count(where: object) -> int:
        return table.scan(where=where).to_arrow().num_rows

    assert [count(f"small {op} {SMALL}") for op in ("=", ">", "<=")] == [1, 1, 1]
    assert count(f"large = {LARGE}") == count(pl.col("large") == pl.lit(LARGE, pl.Decimal(38, 10))) == 1
    table.alter_column_type("d", "DECIMAL(20, 3)", allow_lossy=True)
    assert catalog.table("db.t").scan().to_arrow()["d"].to_pylist() == [Decimal("0.000"), Decimal("123456.789")]
    with pytest.raises(paimon.PaimonError, match="cannot become"):
        table.alter_column_type("large", "DECIMAL(20, 2)")
