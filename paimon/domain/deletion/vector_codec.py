"""Encode and decode one deletion vector: 32-bit and 64-bit vectors.

Invariant: A vector is decoded exactly or refused. Its magic number, length and checksum must agree with each other and
with the index manifest. The encoded bytes equal those that Java writes for the same positions.
Source: `BitmapDeletionVector`, `Bitmap64DeletionVector`, `OptimizedRoaringBitmap64`.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from pyroaring import BitMap

from paimon.domain.deletion.vector import DeletionVector, pack_runs
from paimon.domain.errors import CorruptTable, Unsupported

MAGIC_32 = bytes.fromhex("5e43f2d0")
MAGIC_64 = bytes.fromhex("d1d33964")
INT_BYTES = 4
_LONG_BYTES = 8
_MAX_WORDS = 1 << 16
"""No file has rows at positions beyond 2^48. A larger key is damage, and would allocate too much memory."""
MAX_POSITION_32 = (1 << 31) - 1


def stored_bytes(length: int) -> int:
    """Return an upper bound of a vector's stored size from the length in its index manifest."""
    return length + 2 * INT_BYTES


def encode_vector(vector: DeletionVector, bitmap64: bool) -> tuple[bytes, int]:
    """Encode a vector, and its length for the index manifest; Unsupported for a position beyond 32 bits."""
    last = vector.last
    if not bitmap64 and last is not None and last > MAX_POSITION_32:
        raise Unsupported(
            f"row position {last} in a 32-bit deletion vector", hint="set deletion-vectors.bitmap64 to true"
        )
    words = pack_runs(vector.words)
    body = _encode_words(words) if bitmap64 else MAGIC_32 + (words[0] if words else BitMap()).serialize()
    data = len(body).to_bytes(INT_BYTES, "big") + body + zlib.crc32(body).to_bytes(INT_BYTES, "big")
    return data, len(data) if bitmap64 else len(body)


def _encode_words(words: Sequence[BitMap]) -> bytes:
    """Encode the bitmaps of a 64-bit vector, after its magic number and their count."""
    body = MAGIC_64 + len(words).to_bytes(_LONG_BYTES, "little")
    return body + b"".join(i.to_bytes(INT_BYTES, "little") + word.serialize() for i, word in enumerate(words))


def decode_vector(data: bytes, length: int, path: str) -> DeletionVector:
    """Decode the vector at the start of `data`: CorruptTable for damage, Unsupported for its magic."""
    size = int.from_bytes(data[:INT_BYTES], "big", signed=True)
    end = INT_BYTES + size
    magic = data[INT_BYTES : 2 * INT_BYTES]
    if size < INT_BYTES or len(data) < end + INT_BYTES:
        raise CorruptTable(path, f"is truncated inside a deletion vector of {size} bytes")
    if magic not in (MAGIC_32, MAGIC_64):
        raise Unsupported(
            f"deletion vectors with the magic bytes {magic.hex()} in {path}",
            hint="use a newer release, or read the table with the client that wrote it",
        )
    if length != (size if magic == MAGIC_32 else size + 2 * INT_BYTES):
        raise CorruptTable(path, f"contains a deletion vector of {size} bytes, but the index manifest records {length}")
    if zlib.crc32(data[INT_BYTES:end]) != int.from_bytes(data[end : end + INT_BYTES], "big"):
        raise CorruptTable(path, "contains a deletion vector with a wrong checksum")
    body = data[2 * INT_BYTES : end]
    try:
        return DeletionVector((BitMap.deserialize(body),) if magic == MAGIC_32 else _decode_words(body))
    except (ValueError, IndexError, MemoryError, OverflowError) as error:
        raise CorruptTable(path, "contains a deletion vector that is not a valid bitmap") from error


def _decode_words(body: bytes) -> tuple[BitMap, ...]:
    """Decode the bitmaps of a 64-bit vector. Bitmaps for keys that are left out are empty."""
    words: list[BitMap] = []
    at = _LONG_BYTES
    for _ in range(int.from_bytes(body[:_LONG_BYTES], "little")):
        key = int.from_bytes(body[at : at + INT_BYTES], "little")
        if not len(words) <= key < _MAX_WORDS:
            raise ValueError(f"key {key} is out of order")
        word = BitMap.deserialize(body[at + INT_BYTES :])
        words += [BitMap() for _ in range(key - len(words))]
        words.append(word)
        # Containers keep their form, so the serialized length equals the stored length.
        at += INT_BYTES + len(word.serialize())
    if at != len(body):
        raise ValueError(f"{at} of {len(body)} bytes are bitmaps")
    return tuple(words)
