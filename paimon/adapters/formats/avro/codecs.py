"""Block codecs of Avro files, by the names that Avro gives them, decompressing within a bound.

Law: `decompress(codec, compress(codec, data), len(data)) == data`, and it never makes more than its limit.
Source: Avro specification, "Required Codecs" and "Optional Codecs".
"""

from __future__ import annotations

import bz2
import lzma
import zlib

import pyarrow as pa

from paimon.adapters.formats.bounded import checked, inflate, unbzip2, unsnappy, unxz, unzstd
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
        return checked(block, limit)
    if codec == "zstandard":
        return unzstd(block, limit)
    if codec == "snappy":
        return _unsnappy(block, limit)
    if codec == "deflate":
        return inflate(block, limit)
    if codec == "bzip2":
        return unbzip2(block, limit)
    if codec == "xz":
        return unxz(block, limit)
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


def _unsnappy(block: bytes, limit: int) -> bytes:
    """Avro's snappy block: raw snappy, then a CRC of the decoded bytes."""
    if len(block) < 5:
        raise ValueError("a snappy block is too short")
    data = unsnappy(block[:-4], limit)
    if zlib.crc32(data) != int.from_bytes(block[-4:], "big"):
        raise ValueError("the checksum of a snappy block does not match")
    return data

