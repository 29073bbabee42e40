"""Ranges of hashes divide rows without gaps, and equal keys are in one range."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest

from paimon.domain.assignment.hash_ranges import divide_hashes, hash_keys
from paimon.domain.types.data_types import BigIntType, DoubleType, VarCharType

EDGES = np.array([-(1 << 31), -(1 << 31) + 1, -1, 0, 1, (1 << 31) - 1], np.int32)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 1000])
def test_each_hash_is_in_one_range(count: int) -> None:
    hashes = np.sort(np.concatenate([EDGES, np.random.default_rng(1).integers(-(1 << 31), 1 << 31, 500, np.int64)]))
    hashes = hashes.astype(np.int32)
    ranges = divide_hashes(count)
    assert len(ranges) == count
    selected = [part.select(hashes) for part in ranges]
    assert np.concatenate(selected).tolist() == list(range(len(hashes)))
    assert [list(range(*part.find(hashes).indices(len(hashes)))) for part in ranges] == [s.tolist() for s in selected]


def test_equal_keys_have_equal_hashes() -> None:
    other_nan = struct.unpack("<d", struct.pack("<q", 0x7FF8000000000001))[0]
    floats = pa.array(np.array([float("nan"), other_nan, 0.0, -0.0]))
    hashes = hash_keys([floats], [DoubleType()])
    assert hashes[0] == hashes[1]
    assert hashes[2] != hashes[3]
    texts, numbers = pa.array(["a", "b", None, "a"]), pa.array([1, 1, None, 1], pa.int64())
    hashes = hash_keys([texts, numbers], [VarCharType(), BigIntType()])
    assert hashes[0] == hashes[3] != hashes[1]
