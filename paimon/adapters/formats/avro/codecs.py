"""Block codecs of Avro files, by Avro's names, decompressing within a limit.

Invariant: `decompress(codec, compress(codec, data, level), len(data)) == data`, and `decompress` never returns more
bytes than its limit. Source: Avro specification, "Required Codecs" and "Optional Codecs".
"""

from __future__ import annotations

import bz2
import lzma
import zlib

import pyarrow as pa

from paimon.adapters.formats.guards.decompression import check_size, inflate, unbzip2, unsnappy, unxz, unzstd
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
"""Avro's codec names, by the names of table options."""


def avro_codec(compression: str) -> str:
    """Return Avro's name of a codec of table options."""
    name = AVRO_CODECS.get(compression.lower())
    if name is None:
        raise InvalidRequest(
            f"Codec {compression!r} does not exist for Avro files",
            subject=compression,
            hint="use zstd, snappy, deflate, bzip2, xz or null",
        )
    return name


def decompress(codec: str, block: bytes, limit: int) -> bytes:
    """Decompress one block; TooLarge if it has more than `limit` bytes. `codec` is Avro's name."""
    if codec == "null":
        return check_size(block, limit)
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
    raise Unsupported(f"Avro codec {codec!r}", hint="write the file with zstandard, snappy, deflate, bzip2, xz or null")


def compress(codec: str, block: bytes, level: int) -> bytes:
    """Compress one block. `codec` is Avro's name; `level` is for zstandard only."""
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
    """Decompress Avro's snappy block: raw snappy, followed by a CRC of the decompressed bytes."""
    if len(block) < 5:
        raise ValueError("a snappy block is too short")
    data = unsnappy(block[:-4], limit)
    if zlib.crc32(data) != int.from_bytes(block[-4:], "big"):
        raise ValueError("the checksum of a snappy block does not match")
    return data
