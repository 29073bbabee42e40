"""Decompression within a bound.

Law: no function makes more than `limit` bytes, however small its input is: a few kilobytes of zstandard, deflate or
snappy can stand for gigabytes. Damaged input raises ValueError, OSError or zlib.error.
"""

from __future__ import annotations

import zlib

import cramjam
import pyarrow as pa

_PIECE_BYTES = 1 << 20
_LZ4_MOST_RATIO = 255


class TooLarge(ValueError):
    """The data would decompress to more than it may."""


def checked(data: bytes, limit: int) -> bytes:
    """The data, unless there is more of it than `limit`."""
    if len(data) > limit:
        raise TooLarge(f"a block decompresses to more than {limit} bytes")
    return data


def unzstd(data: bytes, limit: int) -> bytes:
    """Zstandard frames."""
    stream = pa.CompressedInputStream(pa.BufferReader(data), "zstd")
    pieces: list[bytes] = []
    size = 0
    while piece := stream.read(min(_PIECE_BYTES, limit + 1)):
        size += len(piece)
        if size > limit:
            raise TooLarge(f"a block decompresses to more than {limit} bytes")
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def unsnappy(data: bytes, limit: int) -> bytes:
    """Raw snappy, which begins with the decoded size."""
    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > limit:
        raise TooLarge(f"a block decompresses to {size} bytes, more than {limit}")
    return bytes(pa.decompress(data, size, codec="snappy", asbytes=True)) if size else b""


def inflate(data: bytes, limit: int) -> bytes:
    """Raw deflate."""
    stream = zlib.decompressobj(-15)
    out = checked(stream.decompress(data, limit + 1), limit)
    if not stream.eof:
        raise ValueError("a compressed block ends too early")
    return out


def unlz4(data: bytes, limit: int) -> bytes:
    """A raw LZ4 block, which does not say its size."""
    room = bytearray(min(len(data) * _LZ4_MOST_RATIO + 64, limit))
    try:
        return bytes(room[: cramjam.lz4.decompress_block_into(data, room)])
    except cramjam.DecompressionError as error:
        raise ValueError(f"a damaged LZ4 block: {error}") from error
