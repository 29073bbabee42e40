"""Parquet keeps the contract of formats."""

from __future__ import annotations

from paimon.adapters.formats.parquet import ParquetFormat
from paimon.ports.formats import FormatIO
from paimon.testing.contracts import FormatIOContract


class TestParquet(FormatIOContract):
    def make_format(self) -> FormatIO:
        return ParquetFormat()
