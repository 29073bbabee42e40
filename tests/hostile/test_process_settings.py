"""Settings of the user's process, such as the decimal context, change no result."""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

import paimon

LARGE = Decimal("1234567890123456789012345678.1234567891")
SMALL = Decimal("-1234567.89")


@pytest.fixture
def coarse_context() -> Iterator[None]:
    with decimal.localcontext(decimal.Context(prec=3, traps=[decimal.Inexact, decimal.Rounded])):
        yield


def test_a_literal_of_polars_keeps_more_digits_than_the_default_context(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    table = catalog.create_table("db.t", "large DECIMAL(38, 10)")
    table.write([{"large": LARGE}])  # the only value, so that a rounded literal prunes the file
    condition = pl.col("large") == pl.lit(LARGE, pl.Decimal(38, 10))
    assert table.scan(where=condition).to_arrow().num_rows == table.lazy().filter(condition).collect().height == 1


@pytest.mark.usefixtures("coarse_context")
@pytest.mark.parametrize("index", ["bsi", "range-bitmap"])
def test_the_decimal_context_changes_no_filter_and_no_cast(tmp_path: Path, index: str) -> None:
    catalog = paimon.connect(tmp_path)
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
