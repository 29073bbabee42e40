"""The golden reads that are not in reach yet, each with its reason. This list may only shrink."""

from __future__ import annotations

from golden_tables import GoldenRead

CASES = {
    "blob": "BLOB files",
    "format_json": "JSON data files",
    "types_variant_parquet": "VARIANT as its JSON text",
    "variant_shredded": "shredded VARIANT",
}
"""Cases of which nothing can be read as Java shows it."""


def unreached(read: GoldenRead) -> str | None:
    """Why this read is not in reach; None where it is."""
    if read.case == "data_evolution" and read.kind == "rows" and read.name != "snapshot-1":
        return "columns of one row in several files"
    return CASES.get(read.case)
