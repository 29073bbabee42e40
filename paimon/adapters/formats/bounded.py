"""Decompression within a bound.

Law: no function makes more than `limit` bytes, however small its input is: a few kilobytes of zstandard, deflate or
snappy can stand for gigabytes. Damaged input raises ValueError, OSError or zlib.error.
"""

from __future__ import annotations

import contextlib
import zlib

import cramjam
import pyarrow as pa

_PIECE_BYTES = 1 << 20
_ZSTD_MAGIC = bytes.fromhex("28b52ffd")
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
    size = _told_by_frame(data)
    if 0 < size <= limit:
        with contextlib.suppress(OSError):  # more frames follow, or the size is wrong
            return bytes(pa.decompress(data, size, codec="zstd", asbytes=True))
    return _unzstd_pieces(data, limit)


def _told_by_frame(data: bytes) -> int:
    """The decoded size that the first frame's header tells; 0 where it tells none."""
    descriptor = data[4] if len(data) > 4 else 0
    if data[:4] != _ZSTD_MAGIC:
        return 0
    single = descriptor >> 5 & 1
    width = (single, 2, 4, 8)[descriptor >> 6]
    start = 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3]
    return int.from_bytes(data[start : start + width], "little") + (256 if width == 2 else 0)


def _unzstd_pieces(data: bytes, limit: int) -> bytes:
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
