"""Decompression has a limit that does not depend on the size that a zstandard frame declares."""

from __future__ import annotations

import contextlib

import cramjam
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.adapters.formats.guards.decompression import TooLarge, unzstd

LIMIT = 1 << 20


def compress_without_size(data: bytes) -> bytes:
    """Compress to a frame without its decompressed size, as streams write it."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


FRAMES = [lambda data: bytes(cramjam.zstd.compress(data)), compress_without_size]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 70_000), st.binary(max_size=20), st.sampled_from(FRAMES)), max_size=3))
def test_frames_of_any_kind_are_joined(parts):
    pieces = [(bytes(size) + noise, frame) for size, noise, frame in parts]
    assert unzstd(b"".join(frame(data) for data, frame in pieces), LIMIT) == b"".join(data for data, _ in pieces)


@pytest.mark.parametrize("frame", FRAMES)
def test_more_than_the_limit_is_refused(frame):
    with pytest.raises(TooLarge):
        unzstd(frame(bytes(LIMIT + 1)), LIMIT)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(FRAMES), st.integers(0, 60), st.integers(1, 255))
def test_a_mutated_frame_never_grows_beyond_the_limit(frame, place, change):
    data = bytearray(frame(bytes(300) + b"some text" * 30))
    data[place % len(data)] ^= change
    with contextlib.suppress(ValueError, OSError):
        assert len(unzstd(bytes(data), LIMIT)) <= LIMIT
