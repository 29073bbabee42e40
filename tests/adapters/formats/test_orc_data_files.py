"""ORC files fulfil the contract of the port FormatIO."""

from __future__ import annotations

from paimon.adapters.formats.orc import OrcFormat
from paimon.ports.formats import FormatIO
from paimon.testing.contracts import FormatIOContract


class TestOrc(FormatIOContract):
    keeps_signs_of_zeros = False

    def make_format(self) -> FormatIO:
        return OrcFormat()
