"""One deletion vector as bytes: 32-bit and 64-bit vectors.

Law: a vector is taken as stored or refused: its magic, its length and its checksum must agree with each other and
with the index manifest; what is written is what Java writes for the same positions. Source: `BitmapDeletionVector`,
`Bitmap64DeletionVector`, `OptimizedRoaringBitmap64`.
"""

from __future__ import annotations

import zlib

from pyroaring import BitMap

from paimon.domain.deletion.vector import DeletionVector, runs_packed
from paimon.domain.errors import CorruptTable, Unsupported

MAGIC_32 = bytes.fromhex("5e43f2d0")
MAGIC_64 = bytes.fromhex("d1d33964")
INT_BYTES = 4
_LONG_BYTES = 8
_MOST_WORDS = 1 << 16
"""No file has rows at positions beyond 2^48: a larger word is damage, and would only ask for memory."""
MAX_POSITION_32 = (1 << 31) - 1


def stored_bytes(length: int) -> int:
    """An upper bound of the bytes that a vector takes whose index manifest range has this length.

    For 32-bit vectors the range leaves out the length and the checksum, for 64-bit ones it does not.
    """
    return length + 2 * INT_BYTES


def encode_vector(vector: DeletionVector, bitmap64: bool) -> tuple[bytes, int]:
    """The vector from its length field to its checksum, and the length that the index manifest gives for it.

    Raises
    ------
    Unsupported
        A 32-bit vector cannot hold a position.
    """
    words = runs_packed(vector.words)
    if bitmap64:
        body = MAGIC_64 + len(words).to_bytes(_LONG_BYTES, "little")
        body += b"".join(i.to_bytes(INT_BYTES, "little") + word.serialize() for i, word in enumerate(words))
    else:
        last = vector.last
        if last is not None and last > MAX_POSITION_32:
            raise Unsupported(
                f"deleting row {last} of a file in a 32-bit vector",
                hint="set deletion-vectors.bitmap64 to true",
            )
        body = MAGIC_32 + (words[0] if words else BitMap()).serialize()
    data = len(body).to_bytes(INT_BYTES, "big") + body + zlib.crc32(body).to_bytes(INT_BYTES, "big")
    return data, len(data) if bitmap64 else len(body)


def decode_vector(data: bytes, length: int, path: str) -> DeletionVector:
    """The vector that begins with the first byte.

    Parameters
    ----------
    data : bytes
        From the vector's length field on, at least up to its checksum.
    length : int
        The length that the index manifest gives.
    path : str
        The index file, for messages.

    Raises
    ------
    CorruptTable, Unsupported
        Naming `path`.
    """
    size = int.from_bytes(data[:INT_BYTES], "big", signed=True)
    end = INT_BYTES + size
    magic = data[INT_BYTES : 2 * INT_BYTES]
    if size < INT_BYTES or len(data) < end + INT_BYTES:
        raise CorruptTable(path, f"ends inside a deletion vector of {size} bytes")
    if magic not in (MAGIC_32, MAGIC_64):
        raise Unsupported(f"deletion vectors with the magic bytes {magic.hex()} in {path}")
    if length != (size if magic == MAGIC_32 else size + 2 * INT_BYTES):
        raise CorruptTable(path, f"holds a deletion vector of {size} bytes where the index manifest says {length}")
    if zlib.crc32(data[INT_BYTES:end]) != int.from_bytes(data[end : end + INT_BYTES], "big"):
        raise CorruptTable(path, "holds a deletion vector with a wrong checksum")
    body = data[2 * INT_BYTES : end]
    try:
        return DeletionVector((BitMap.deserialize(body),) if magic == MAGIC_32 else _words(body))
    except (ValueError, IndexError, MemoryError, OverflowError) as error:
        raise CorruptTable(path, "holds a deletion vector that is no bitmap") from error


def _words(body: bytes) -> tuple[BitMap, ...]:
    """The bitmaps of a 64-bit vector by their key; keys that are left out are empty."""
    words: list[BitMap] = []
    at = _LONG_BYTES
    for _ in range(int.from_bytes(body[:_LONG_BYTES], "little")):
        key = int.from_bytes(body[at : at + INT_BYTES], "little")
        if not len(words) <= key < _MOST_WORDS:
            raise ValueError(f"key {key} out of order")
        word = BitMap.deserialize(body[at + INT_BYTES :])
        words += [BitMap() for _ in range(key - len(words))]
        words.append(word)
        # The form of a bitmap's containers is kept, so that what it takes is what it would be written as.
        at += INT_BYTES + len(word.serialize())
    if at != len(body):
        raise ValueError(f"{len(body)} bytes, of which {at} are bitmaps")
    return tuple(words)
