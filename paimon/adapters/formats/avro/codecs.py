"""Block codecs of Avro files, by the names that Avro gives them, decompressing within a bound.

Law: `decompress` never makes more than `limit` bytes, however small the input is: a few kilobytes of zstandard or
deflate can stand for gigabytes. Source: Avro specification, "Required Codecs" and "Optional Codecs".
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from typing import Protocol

import pyarrow as pa

from paimon.domain.errors import InvalidRequest, Unsupported

AVRO_CODECS = {
    "zstd": "zstandard",
    "zstandard": "zstandard",
    "snappy": "snappy",
    "deflate": "deflate",
    "gzip": "deflate",
    "none": "null",
    "null": "null",
    "bzip2": "bzip2",
    "xz": "xz",
}
"""Codec names of table options, and what Avro calls them."""

_PIECE_BYTES = 1 << 20


class TooLarge(ValueError):
    """A block would decompress to more than it may."""


class _Inflater(Protocol):
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


def avro_codec(compression: str) -> str:
    """Avro's name of a codec named as in table options."""
    name = AVRO_CODECS.get(compression.lower())
    if name is None:
        raise InvalidRequest(
            f"Avro files cannot be compressed with {compression!r}",
            subject=compression,
            hint="use zstd, snappy, deflate, bzip2, xz or null",
        )
    return name


def decompress(codec: str, block: bytes, limit: int) -> bytes:
    """The bytes of one block.

    Raises
    ------
    TooLarge
        The block stands for more than `limit` bytes.
    Unsupported
        The codec is not known.
    ValueError, OSError, zlib.error, lzma.LZMAError
        The block is damaged.
    """
    if codec == "null":
        return _checked(block, limit)
    if codec == "zstandard":
        return _unzstd(block, limit)
    if codec == "snappy":
        return _unsnappy(block, limit)
    if codec == "deflate":
        return _inflate(zlib.decompressobj(-15), block, limit)
    if codec == "bzip2":
        return _inflate(bz2.BZ2Decompressor(), block, limit)
    if codec == "xz":
        return _inflate(lzma.LZMADecompressor(), block, limit)
    raise Unsupported(f"Avro codec {codec!r}")


def compress(codec: str, block: bytes, level: int) -> bytes:
    """One block, compressed; `level` is for zstandard."""
    if codec == "zstandard":
        return bytes(pa.Codec("zstd", compression_level=level).compress(block, asbytes=True))
    if codec == "snappy":
        return bytes(pa.compress(block, codec="snappy", asbytes=True)) + zlib.crc32(block).to_bytes(4, "big")
    if codec == "deflate":
        squeeze = zlib.compressobj(wbits=-15)
        return squeeze.compress(block) + squeeze.flush()
    if codec == "bzip2":
        return bz2.compress(block)
    if codec == "xz":
        return lzma.compress(block)
    return block


def _checked(data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise TooLarge(f"a block holds more than {limit} bytes")
    return data


def _unzstd(block: bytes, limit: int) -> bytes:
    stream = pa.CompressedInputStream(pa.BufferReader(block), "zstd")
    pieces: list[bytes] = []
    size = 0
    while piece := stream.read(min(_PIECE_BYTES, limit + 1)):
        size += len(piece)
        if size > limit:
            raise TooLarge(f"a block decompresses to more than {limit} bytes")
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _unsnappy(block: bytes, limit: int) -> bytes:
    # Avro's snappy block: raw snappy, whose first bytes say the decoded size, then a CRC of the decoded bytes.
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > limit:
        raise TooLarge(f"a block decompresses to {size} bytes, more than {limit}")
    if len(block) < 5:
        raise ValueError("a snappy block is too short")
    data = bytes(pa.decompress(block[:-4], size, codec="snappy", asbytes=True)) if size else b""
    if zlib.crc32(data) != int.from_bytes(block[-4:], "big"):
        raise ValueError("the checksum of a snappy block does not match")
    return data


def _inflate(inflater: _Inflater, block: bytes, limit: int) -> bytes:
    data = inflater.decompress(block, limit + 1)
    _checked(data, limit)
    if not getattr(inflater, "eof", True):
        raise ValueError("a compressed block ends too early")
    return data
