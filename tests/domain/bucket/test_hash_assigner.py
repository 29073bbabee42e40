"""Dynamic buckets: the columnar assignment equals its row-wise reference, and hashes keep their bucket."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.bucket import key_hashes
from paimon.domain.bucket.hash_assigner_columnar import AssignmentRules, DynamicBuckets
from paimon.domain.bucket.hash_assigner_reference import assign_one, compute_assigner
from paimon.domain.bucket.hash_index import decode_hash_index, encode_hash_index
from paimon.domain.bucket.key_hashes import HashFilter, KeyHashes
from paimon.domain.errors import CorruptTable, InvalidRequest

HASHES = st.integers(-(2**31), 2**31 - 1) | st.integers(-20, 20)
BATCHES = st.lists(st.lists(HASHES, max_size=30), min_size=1, max_size=4)


def as_hashes(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(values, np.int32)


def reference(
    batches: list[list[int]], rules: AssignmentRules, partition_hash: int, start: int
) -> list[list[int]] | None:
    known: dict[int, int] = {}
    counts: Counter[int] = Counter()
    assigned: list[list[int]] = []
    for batch in batches:
        overflows: Counter[int] = Counter()
        buckets = []
        for value in batch:
            channel = compute_assigner(partition_hash, value, rules.channels, rules.assigners)
            owner = channel % rules.assigners
            owned = range(owner, 200, rules.assigners)
            overflow = start + overflows[owner]
            is_new = value not in known
            try:
                bucket = assign_one(known, value, rules.target_rows, rules.max_buckets, owned, overflow)
            except ValueError:
                return None
            buckets.append(bucket)
            if is_new:
                overflows[owner] += counts[bucket] >= rules.target_rows
                counts[bucket] += 1
        assigned.append(buckets)
    return assigned


@given(
    BATCHES, st.integers(1, 6), st.sampled_from([-1, 1, 2, 5]), st.integers(1, 4), st.integers(1, 4),
    st.integers(-(2**31), 2**31 - 1), st.integers(0, 1 << 30),
)  # fmt: skip
def test_columns_equal_the_reference(
    batches: list[list[int]], target: int, limit: int, channels: int, assigners: int, partition: int, start: int
) -> None:
    assigners = min(channels, assigners, limit if limit > 0 else assigners)
    rules = AssignmentRules(target, limit, channels, assigners)
    columns = DynamicBuckets(rules, partition)
    expected = reference(batches, rules, partition, start)
    assert expected is not None
    assert [columns.assign(as_hashes(batch), start)[0].tolist() for batch in batches] == expected


@given(BATCHES, st.integers(1, 5))
def test_a_restart_from_index_files_continues(batches: list[list[int]], target: int) -> None:
    rules = AssignmentRules(target)
    one = DynamicBuckets(rules)
    used: set[int] = set()
    for batch in batches:
        again = DynamicBuckets(rules)
        for bucket in sorted(used):
            stored = decode_hash_index(encode_hash_index(one.select(bucket)), "index")
            again.load(stored, np.full(len(stored), bucket, np.int16))
        found = one.assign(as_hashes(batch))[0].tolist()
        assert again.assign(as_hashes(batch))[0].tolist() == found
        used.update(found)


def test_new_hashes_are_reported_with_their_buckets() -> None:
    buckets = DynamicBuckets(AssignmentRules(target_rows=2))
    found, new, new_buckets = buckets.assign(as_hashes([7, -7, 7, 3]))
    assert found.tolist() == [0, 0, 0, 1]
    assert (new.tolist(), new_buckets.tolist()) == ([-7, 3, 7], [0, 1, 0])
    assert buckets.assign(as_hashes([3, 7]))[1].tolist() == []


def test_a_full_partition_is_refused() -> None:
    rules = AssignmentRules(target_rows=1)
    DynamicBuckets(rules).assign(np.arange(32767, dtype=np.int32))
    with pytest.raises(InvalidRequest, match="more than 32767 dynamic buckets"):
        DynamicBuckets(rules).assign(np.arange(32768, dtype=np.int32))


@given(st.data())
def test_blocks_are_split_and_found(data: st.DataObject) -> None:
    hashes = data.draw(st.lists(HASHES, unique=True, min_size=1, max_size=60))
    parts = data.draw(st.integers(1, 5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_hashes, "_BLOCK_HASHES", 4)
        known = KeyHashes()
        for number in range(parts):
            part = np.sort(as_hashes(hashes[number::parts]))
            known.insert(part, np.full(len(part), number, np.int16))
        wanted = np.sort(as_hashes([*hashes, 2**31 - 1, -(2**31)]))
        buckets = {value: number for number in range(parts) for value in hashes[number::parts]}
        assert known.find(wanted).tolist() == [buckets.get(value, -1) for value in wanted.tolist()]
        assert len(known) == len(hashes) and 6 * len(hashes) < known.held_bytes < 6 * len(hashes) + 1024
        assert len(known._blocks) > 1 or len(hashes) <= 12
        for number in range(parts):
            assert sorted(known.select(number).tolist()) == sorted(hashes[number::parts])


def test_the_filter_is_small_next_to_the_hashes() -> None:
    assert HashFilter(10_000_000).held_bytes <= 4 * 10_000_000
    assert HashFilter(100_000_000).held_bytes <= 100_000_000


@given(st.lists(HASHES, max_size=300), st.lists(HASHES, max_size=30), st.integers(0, 300))
def test_an_added_hash_is_a_candidate(added: list[int], others: list[int], count: int) -> None:
    hashes = HashFilter(count)
    hashes.add(as_hashes(added))
    wanted = as_hashes([*others, *added])
    candidates = set(hashes.find_candidates(wanted).tolist())
    assert {i for i, value in enumerate(wanted.tolist()) if value in added} <= candidates


def test_a_filter_excludes_most_other_hashes_until_it_is_too_small() -> None:
    numbers = np.random.default_rng(7).integers(-(2**31), 2**31, 200_000).astype(np.int32)
    for count, most in ((100_000, 0.05), (1, 1.0)):
        hashes = HashFilter(count)
        hashes.add(numbers[:100_000])
        assert len(hashes.find_candidates(numbers[100_000:])) <= most * 100_000
        assert hashes.is_too_small(100_000) is (count == 1)


def test_index_files_are_big_endian() -> None:
    assert encode_hash_index(as_hashes([1, -2])) == b"\x00\x00\x00\x01\xff\xff\xff\xfe"
    with pytest.raises(CorruptTable, match="no multiple of 4"):
        decode_hash_index(b"12345", "/t/index/index-1")
