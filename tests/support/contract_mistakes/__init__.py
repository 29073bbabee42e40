"""All planted mistakes by name."""

from support.contract_mistakes import calls, catalogs, effects, files, formats, others, records, row_files
from support.contract_mistakes.planting import MISTAKES, Mistake

__all__ = ["MISTAKES", "Mistake", "calls", "catalogs", "effects", "files", "formats", "others", "records", "row_files"]
