"""Avro data files keep the contract of formats."""

from __future__ import annotations

from paimon.adapters.formats.avro import AvroFormat
from paimon.ports.formats import FormatIO
from paimon.testing.contracts import FormatIOContract


class TestAvro(FormatIOContract):
    def make_format(self) -> FormatIO:
        return AvroFormat()
