"""The health of a table: figures of buckets equal a count file by file, and each limit has two sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.maintenance.assess_health import DEAD_ENTRIES, MOST_SHAPES, assess, choose_shapes
from paimon.domain.maintenance.bucket_layout import BucketColumns, LayoutRules, measure_buckets
from paimon.domain.maintenance.health import (
    ExpiryFacts,
    FilterFacts,
    Finding,
    FindingKind,
    ManifestFacts,
    TableFacts,
    VectorFacts,
)
from paimon.domain.maintenance.snapshot_expiry import RetentionReason
from paimon.domain.manifest.entry_columns import EntryColumns
from paimon.domain.options.table_options import TableOptions

RULES = LayoutRules(has_levels=False, target_bytes=100, small_bytes=70, min_files=3)
KEYED = evolve(RULES, has_levels=True)
File = tuple[int, int, int, int, int]
"""Partition, bucket, level, size and first sequence number of a file; it has one row for each byte."""


class Files:
    """The columns of file records that measuring needs."""

    def __init__(self, files: list[File]) -> None:
        sizes, sequence = [f[3] for f in files], [f[4] for f in files]
        self._columns = {
            "_FILE_SIZE": sizes, "_ROW_COUNT": sizes, "_LEVEL": [f[2] for f in files],
            "_MIN_SEQUENCE_NUMBER": sequence, "_MAX_SEQUENCE_NUMBER": sequence,
        }  # fmt: skip

    def field(self, name: str) -> pa.Array:
        return pa.array(self._columns[name], pa.int64())


def measure(files: list[File], rules: LayoutRules = RULES) -> BucketColumns:
    numbers = [np.array([f[place] for f in files], dtype=np.int64) for place in (0, 1)]
    zeros = np.zeros(len(files), dtype=np.int64)
    columns: Any = EntryColumns(zeros, numbers[0], (b"a", b"b", b"c"), numbers[1], zeros, Files(files))  # type: ignore[arg-type]
    return measure_buckets(columns, rules)


drawn_files = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-2, 2), st.integers(0, 5), st.integers(1, 130), st.integers(0, 1_000)),
    max_size=25, unique_by=lambda f: f[4],
)  # fmt: skip


@given(drawn_files, st.booleans(), st.booleans())
def test_figures_of_buckets_equal_a_count_file_by_file(files: list[File], keyed: bool, ordered: bool) -> None:
    rules = evolve(RULES, has_levels=keyed, ordered=ordered and not keyed)
    found = measure(files, rules)
    keys = sorted({(f[0], f[1]) for f in files})
    assert list(zip(found.partitions.tolist(), found.buckets.tolist(), strict=True)) == keys
    for place, key in enumerate(keys):
        own = sorted((f for f in files if (f[0], f[1]) == key), key=lambda f: f[4])
        levels = sorted({f[2] for f in own})
        small = [f for f in own if f[3] < 70 and (f[2] > 0 or not keyed)]
        combined = list_stretches(own) if rules.ordered else small
        surplus = max(len(combined) - -(-sum(f[3] for f in combined) // 100), 0) if len(combined) >= 3 else 0
        runs = sum(f[2] == 0 for f in own) + sum(level > 0 for level in levels) if keyed else 1
        surplus = 0 if keyed and runs == 1 else surplus
        columns = (found.files, found.size_bytes, found.small_files, found.surplus_files, found.runs)
        assert [int(c[place]) for c in columns] == [len(own), sum(f[3] for f in own), len(small), surplus, runs]
        assert int(found.level_0_rows[place]) == sum(f[3] for f in own if f[2] == 0)
        shape = [(level.level, level.files, level.size_bytes) for level in found.levels_of(place)]
        assert shape == [(n, sum(f[2] == n for f in own), sum(f[3] for f in own if f[2] == n)) for n in levels]


def list_stretches(files: list[File]) -> list[File]:
    """Return the small files that have at least two small neighbors in a row."""
    found: list[File] = []
    stretch: list[File] = []
    for file in [*files, (0, 0, 0, 130, 0)]:
        if file[3] < 70:
            stretch.append(file)
        else:
            found += stretch if len(stretch) >= 3 else []
            stretch = []
    return found


def describe(files: list[File], rules: LayoutRules = RULES, **facts: Any) -> TableFacts:
    """Return the facts of a healthy table, but for what the arguments change."""
    options = TableOptions(facts.pop("options", {"bucket": "-1"}))
    defaults: dict[str, Any] = {"manifests": ManifestFacts(1, 0, 30, 0, 10), "analyzed_rows": 0}
    names = ("p=a", "p=b", "p=c")
    return TableFacts("s.t", options, rules, measure(files, rules), names, **{**defaults, **facts})


def find(facts: TableFacts) -> dict[FindingKind, Finding]:
    return {finding.kind: finding for finding in assess(facts)}


HEALTHY: list[File] = [(0, 0, 0, 90, n) for n in range(4)]


def test_a_healthy_table_has_no_finding() -> None:
    assert assess(describe(HEALTHY)) == ()
    assert assess(describe([])) == ()


def test_small_files_name_the_worst_bucket_and_what_would_be_gone() -> None:
    files: list[File] = [(0, 0, 0, 10, n) for n in range(4)] + [(1, 0, 0, 10, n) for n in range(10, 20)]
    found = find(describe(files))[FindingKind.SMALL_FILES]
    assert (found.object_name, found.cost) == ("2 buckets, worst p=b/bucket-0", 12)
    assert found.repair is not None and found.repair.to_statement("s.t") == (
        "CALL sys.compact(table => 's.t', compact_strategy => 'minor', options => 'source.split.open-file-cost=0')"
    )
    half: list[File] = [*files[:4], *((0, 0, 0, 90, n) for n in range(4, 8))]
    assert FindingKind.SMALL_FILES not in find(describe(half))


def test_runs_are_a_finding_above_the_trigger_of_compaction() -> None:
    options = {"bucket": "1", "num-sorted-run.compaction-trigger": "3"}
    runs: list[File] = [(0, 0, 0, 10, 1), (0, 0, 0, 10, 2), (0, 0, 4, 90, 3)]
    assert find(describe(runs, KEYED, options=options)) == {}
    found = find(describe([*runs, (0, 0, 0, 10, 4)], KEYED, options=options))[FindingKind.SORTED_RUNS]
    assert (found.object_name, found.cost) == ("p=a/bucket-0", 4)


def test_rows_that_reads_skip_come_first() -> None:
    files: list[File] = [(0, -2, 0, 10, 1), *((0, 0, 0, 10, n) for n in range(2, 9))]
    first, *_ = assess(describe(files, KEYED, hides_level_0=True, options={"bucket": "-2"}))
    assert (first.kind, first.cost) == (FindingKind.UNREAD_ROWS, 80)


def test_a_table_that_compaction_refuses_has_findings_without_repair() -> None:
    files: list[File] = [(0, 0, 0, 10, n) for n in range(9)]
    assert find(describe(files, refusal="no"))[FindingKind.SMALL_FILES].repair is None


@pytest.mark.parametrize(
    ("facts", "kind", "cost"),
    [
        ({"manifests": ManifestFacts(40, 30, 30, 0, 10)}, FindingKind.MANIFESTS, 40),
        ({"manifests": ManifestFacts(2, 1, 30, DEAD_ENTRIES, 10)}, FindingKind.MANIFESTS, 2),
        ({"analyzed_rows": None, "snapshot_rows": 7}, FindingKind.STATISTICS, 7),
        ({"analyzed_rows": 100, "snapshot_rows": 121}, FindingKind.STATISTICS, 21),
        ({"snapshots": ExpiryFacts(3, "1 to 3")}, FindingKind.SNAPSHOTS, 3),
        ({"changelogs": ExpiryFacts(2, "1 to 2")}, FindingKind.CHANGELOGS, 2),
        ({"orphan_files": 2, "orphan_bytes": 50}, FindingKind.ORPHANS, 50),
        ({"vectors": VectorFacts(2, 9, "f")}, FindingKind.DELETION_VECTORS, 9),
        ({"filters": (FilterFacts("v", "bitmap", 4, 360),)}, FindingKind.FILE_INDEX, 360),
    ],
)  # fmt: skip
def test_a_fact_above_its_limit_is_one_finding(facts: dict[str, Any], kind: FindingKind, cost: int) -> None:
    (found,) = assess(describe(HEALTHY, **facts))
    assert (found.kind, found.cost) == (kind, cost)
    assert found.repair is not None and found.repair.is_automatic


@pytest.mark.parametrize(
    "facts",
    [
        {"manifests": ManifestFacts(40, 29, 30, 0, 10)},
        {"manifests": ManifestFacts(2, 1, 30, DEAD_ENTRIES, 10 * DEAD_ENTRIES)},
        {"analyzed_rows": 100, "snapshot_rows": 120},
        {"filters": (FilterFacts("v", "bitmap", 1, 360),)},
        {"filters": (FilterFacts("v", "bitmap", 4, 100),)},
    ],
)  # fmt: skip
def test_a_fact_at_its_limit_is_no_finding(facts: dict[str, Any]) -> None:
    assert assess(describe(HEALTHY, **facts)) == ()


def test_an_index_is_added_to_those_that_the_table_declares() -> None:
    options = {"bucket": "-1", "file-index.bitmap.columns": "a"}
    filters = (FilterFacts("v", "bitmap", 4, 360), FilterFacts("a", "bitmap", 4, 360, is_declared=True))
    added, built = assess(describe(HEALTHY, options=options, filters=filters))
    assert added.repair is not None and added.repair.to_statement("s.t") == (
        "ALTER TABLE `s`.`t` SET TBLPROPERTIES ('file-index.bitmap.columns' = 'a,v'); "
        "CALL sys.rewrite_file_index(table => 's.t')"
    )
    assert built.repair == added.repair  # one call builds both


def test_a_consumer_that_holds_snapshots_is_for_a_person_to_decide() -> None:
    held = (RetentionReason("consumer", "o'c", 3), RetentionReason("option", "snapshot.num-retained.min", 9))
    found = find(describe(HEALTHY, snapshots=ExpiryFacts(2, "1 to 2", held)))
    assert 'consumer "o\'c" at snapshot 3' in found[FindingKind.SNAPSHOTS].detail
    consumer = found[FindingKind.CONSUMERS]
    assert (consumer.cost, consumer.repair is not None and consumer.repair.is_automatic) == (6, False)
    assert consumer.repair is not None and "=> 'o''c'" in consumer.repair.to_statement("s.t")


def test_skew_of_buckets_and_of_partitions_proposes_a_rescale() -> None:
    options = {"bucket": "4"}
    even: list[File] = [(0, bucket, 5, 90, bucket) for bucket in range(4)]
    assert find(describe(even, KEYED, options=options)) == {}
    skewed: list[File] = [(0, 0, 5, 120, n) for n in range(9)]
    found = find(describe([*even, *skewed], KEYED, options=options))[FindingKind.BUCKET_SKEW]
    assert (found.object_name, found.cost) == ("p=a/bucket-0", 9 * 120 + 90 - (9 * 120 + 360) // 4)
    assert found.repair is not None and found.repair.arguments == {"bucket_num": 8} and not found.repair.is_automatic
    large: list[File] = [(1, bucket, 5, 120, 100 * bucket + n) for bucket in range(4) for n in range(9)]
    found = find(describe([*even, *large, (2, 0, 5, 90, 999)], KEYED, options=options))[FindingKind.PARTITION_SKEW]
    assert (found.object_name, found.cost) == ("p=b", 9 * 120)


def test_findings_are_in_the_order_of_repairs() -> None:
    facts = describe(
        [(0, 0, 0, 10, n) for n in range(30)], snapshots=ExpiryFacts(1, "1"), orphan_files=1, orphan_bytes=1,
        manifests=ManifestFacts(40, 40, 30, 0, 10), vectors=VectorFacts(1, 1, "f"), analyzed_rows=None,
        filters=(FilterFacts("v", "bitmap", 30, 300),),
    )  # fmt: skip
    kinds = [finding.kind for finding in assess(facts)]
    assert kinds == [
        FindingKind.SMALL_FILES, FindingKind.DELETION_VECTORS, FindingKind.FILE_INDEX, FindingKind.MANIFESTS,
        FindingKind.STATISTICS, FindingKind.SNAPSHOTS, FindingKind.ORPHANS,
    ]  # fmt: skip


def test_a_picture_has_the_worst_buckets_only() -> None:
    files: list[File] = [(0, bucket, 0, 10, 100 * bucket + n) for bucket in range(20) for n in range(bucket + 1)]
    shapes = choose_shapes(describe(files))
    assert len(shapes) == MOST_SHAPES
    assert shapes[0].name == "p=a/bucket-19"
