"""Contract suites of the ports: derive a test class from them for an adapter of your own, and let pytest collect it."""

from paimon.testing.contracts.files import FileIOContract
from paimon.testing.contracts.formats import FormatIOContract

__all__ = ["FileIOContract", "FormatIOContract"]
