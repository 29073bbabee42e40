"""Parquet: data files as Java writes them."""

from paimon.adapters.formats.parquet.format import ParquetFormat

__all__ = ["ParquetFormat"]
