"""All planted mistakes by name."""

from support.contract_mistakes import catalogs, effects, files, formats, others, records
from support.contract_mistakes.planting import MISTAKES, Mistake

__all__ = ["MISTAKES", "Mistake", "catalogs", "effects", "files", "formats", "others", "records"]
