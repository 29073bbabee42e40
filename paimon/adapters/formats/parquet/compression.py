"""Names of compression codecs: Paimon's, as pyarrow's Parquet writer calls them.

Law: a name that the writer does not know is refused, never replaced by another.
"""

from __future__ import annotations

from paimon.domain.errors import Unsupported

_CODECS = {
    "zstd": "zstd", "snappy": "snappy", "gzip": "gzip", "gz": "gzip", "lz4": "lz4", "lz4_raw": "lz4",
    "brotli": "brotli", "none": "none", "uncompressed": "none", "null": "none", "": "none",
}  # fmt: skip


def codec(name: str) -> str:
    """The writer's name of a codec; Unsupported where it has none."""
    found = _CODECS.get(name.strip().lower())
    if found is None:
        raise Unsupported(f"compression {name!r} in Parquet", hint=f"use one of {', '.join(filter(None, _CODECS))}")
    return found
