"""Avro: container files, records and data files."""

from paimon.adapters.formats.avro.data_files import AvroFormat

__all__ = ["AvroFormat"]
