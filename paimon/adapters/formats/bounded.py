"""Decompression within a bound.

Law: no function makes more than `limit` bytes, however small its input is: a few kilobytes of zstandard, deflate or
snappy can stand for gigabytes. Damaged input raises ValueError, OSError, EOFError, zlib.error or lzma.LZMAError.
"""

from __future__ import annotations

import bz2
import contextlib
import lzma
import zlib
from collections.abc import Callable, Iterator

import cramjam
import pyarrow as pa

_PIECE_BYTES = 1 << 20
_PACKED_BYTES = 1 << 16
_XZ_MEMORY = 128 * 1024 * 1024
"""The strongest preset needs 65 MiB; a header may ask for gigabytes."""
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
    return _whole(iter(lambda: stream.read(_PIECE_BYTES), b""), limit, lambda: True)


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

    def pieces() -> Iterator[bytes]:
        view = memoryview(data)
        # Of what one call does not consume, the next one gets a copy: so it is little.
        for start in range(0, len(data), _PACKED_BYTES):
            rest: bytes | memoryview = view[start : start + _PACKED_BYTES]
            while rest and not stream.eof:
                yield stream.decompress(rest, _PIECE_BYTES)
                rest = stream.unconsumed_tail
        while not stream.eof and (piece := stream.decompress(b"", _PIECE_BYTES)):
            yield piece

    return _whole(pieces(), limit, lambda: stream.eof)


def unbzip2(data: bytes, limit: int) -> bytes:
    """One bzip2 stream."""
    return _streamed(bz2.BZ2Decompressor(), data, limit)


def unxz(data: bytes, limit: int) -> bytes:
    """One xz stream."""
    return _streamed(lzma.LZMADecompressor(memlimit=_XZ_MEMORY), data, limit)


def _streamed(stream: bz2.BZ2Decompressor | lzma.LZMADecompressor, data: bytes, limit: int) -> bytes:
    def pieces() -> Iterator[bytes]:
        yield stream.decompress(data, _PIECE_BYTES)
        while not stream.eof and not stream.needs_input:
            yield stream.decompress(b"", _PIECE_BYTES)

    return _whole(pieces(), limit, lambda: stream.eof)


def _whole(pieces: Iterator[bytes], limit: int, is_at_end: Callable[[], bool]) -> bytes:
    """Join pieces, of which no more is made than `limit` bytes and one piece."""
    found: list[bytes] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > limit:
            raise TooLarge(f"a block decompresses to more than {limit} bytes")
        found.append(piece)
    if not is_at_end():
        raise ValueError("a compressed block ends too early")
    return found[0] if len(found) == 1 else b"".join(found)


def unlz4(data: bytes, limit: int) -> bytes:
    """A raw LZ4 block, which does not say its size."""
    room = bytearray(min(len(data) * _LZ4_MOST_RATIO + 64, limit))
    try:
        return bytes(room[: cramjam.lz4.decompress_block_into(data, room)])
    except cramjam.DecompressionError as error:
        raise ValueError(f"a damaged LZ4 block: {error}") from error
