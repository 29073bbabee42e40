"""How many bytes and records the blocks of an Avro file may have, in proportion to the bytes that are stored.

Invariant: a file that passes takes memory in proportion to its own size, or at most a fixed number of bytes.
"""

from __future__ import annotations

MAX_HEADER_BYTES = 16 * 1024 * 1024
"""Most bytes of one entry of the header."""
MAX_RECORDS = 1 << 20
"""Most records of a block, and of a file that is read record by record: as Python objects each takes a kilobyte."""
_BLOCK_SLACK_BYTES = 4 * 1024 * 1024
"""60 times the size of the blocks that writers make."""
_FILE_SLACK_BYTES = 8 * 1024 * 1024
_MAX_RATIO = 200
_LARGE_BYTES = 64 * 1024 * 1024
_LARGE_RATIO = 16
"""Larger blocks have a smaller ratio: writers make blocks of 64 KB, or of one large record."""
_LEAST_RECORD_BYTES = 24
"""Each metadata record holds a binary row, which takes at least 13 bytes, a file name, and numbers."""


def max_block_bytes(packed_bytes: int) -> int:
    """Return to how many bytes a block of `packed_bytes` stored bytes may decompress."""
    return min(_BLOCK_SLACK_BYTES + _MAX_RATIO * packed_bytes, max(_LARGE_BYTES, _LARGE_RATIO * packed_bytes))


def max_metadata_bytes(file_bytes: int) -> int:
    """Return to how many bytes a metadata file of `file_bytes` bytes may decompress."""
    return _FILE_SLACK_BYTES + _MAX_RATIO * file_bytes


def has_too_many_records(record_count: int, decoded_bytes: int) -> bool:
    """Return whether a block states more records than its decompressed bytes can hold, or than are read at once."""
    return record_count > min(decoded_bytes, MAX_RECORDS)


def has_too_many_metadata_records(record_count: int, decoded_bytes: int) -> bool:
    """Return whether a block of a metadata file states more records than its decompressed bytes can hold."""
    return record_count * _LEAST_RECORD_BYTES > decoded_bytes
