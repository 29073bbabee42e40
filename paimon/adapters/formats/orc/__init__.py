"""ORC data files."""

from paimon.adapters.formats.orc.data_files import OrcFormat

__all__ = ["OrcFormat"]
