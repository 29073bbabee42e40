"""Postponed buckets: writes, compactions that move the rows to real buckets, and reads before that."""

from __future__ import annotations

import json
import pickle
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.case_lists import mark_nightly
from support.golden_entries import to_comparable_entry
from support.golden_replay import Replay
from support.golden_tables import golden_directory

import paimon
from paimon.domain.errors import CommitConflict, CorruptTable, InvalidRequest
from paimon.domain.manifest.entries import ManifestEntry
from paimon.operations.commit.base import CommitBase
from paimon.operations.write import compact_table

HOME = golden_directory()


def create(catalog: paimon.Catalog, **options: str) -> paimon.Table:
    return catalog.create_table(
        "d.t", "k INT NOT NULL, v STRING", primary_keys=["k"], options={"bucket": "-2", **options}
    )


def rows(table: paimon.Table, **how: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan(**how).to_arrow().to_pylist())


def entries(table: paimon.Table) -> list[ManifestEntry]:
    return CommitBase(table.context, table.snapshot()).read_live_files(lambda _: True)


def test_rows_wait_until_a_compaction_moves_them(catalog: paimon.Catalog) -> None:
    table = create(catalog)
    table.write({"k": [1, 2, 3], "v": ["a", "b", "c"]})
    table.write({"k": [2, 3], "v": ["new", "gone"], "op": ["+U", "-D"]}, kind_column="op")
    assert rows(table) == [] and [e.bucket for e in entries(table)] == [-2, -2]
    done = table.compact()
    assert rows(table) == [(1, "a"), (2, "new")]
    assert done.files_before == 2 and {(e.bucket, e.total_buckets) for e in entries(table)} == {(0, 1)}
    table.write({"k": [4], "v": ["d"]})
    assert rows(table) == [(1, "a"), (2, "new")]
    table.compact(full=True)
    assert rows(table) == [(1, "a"), (2, "new"), (4, "d")] and [e.file.level for e in entries(table)] == [5]
    assert table.compact().snapshot_ids == () and table.maintain.check(deep=True).is_whole


LAYOUT = ("partitionHex", "bucket", "totalBuckets", "rowCount", "level", "minKeyHex", "maxKeyHex", "keyStatsMinHex",
          "keyStatsMaxHex", "keyStatsNullCounts", "fileSource")  # fmt: skip
"""What does not depend on the order of writers: Java gives them none, and we replay them in the order of commits."""


def test_files_after_a_compaction_are_javas(tmp_path: Path) -> None:
    case = HOME / "postpone_compacted"
    table = Replay(case, tmp_path / "t").run().table()
    expected = [json.loads(line) for line in (case / "expected" / "meta.jsonl").read_text("utf8").splitlines()]
    theirs, ours = (
        sorted(json.dumps([found[name] for name in LAYOUT]) for found in files)
        for files in (expected, map(to_comparable_entry, entries(table)))
    )
    assert ours == theirs
    kinds = [json.loads((case / "table" / "snapshot" / f"snapshot-{n}").read_text())["commitKind"] for n in range(1, 5)]
    assert [s.commit_kind.value for s in table.snapshots()] == kinds
    written = [json.loads(line) for n in (1, 2) for line in (case / "input" / f"00{n}.jsonl").read_text().splitlines()]
    newest = {row["k"]: row for row in written}
    assert rows(table) == sorted((k, row.get("v")) for k, row in newest.items() if row.get("_ROW_KIND") != "-D")


@pytest.mark.parametrize(
    ("options", "buckets"),
    [
        ({}, 1),
        ({"postpone.default-bucket-num": "3"}, 3),
        ({"postpone.target-row-num-per-bucket": "100"}, 1),
        ({"postpone.target-row-num-per-bucket": "30"}, 4),
        ({"postpone.target-size-per-bucket": "1 gb"}, 1),
        ({"postpone.target-size-per-bucket": "400 b"}, 3),
        ({"postpone.target-row-num-per-bucket": "30", "postpone.default-bucket-num": "2"}, 2),
    ],
)
def test_options_set_the_first_number_of_buckets(
    catalog: paimon.Catalog, options: dict[str, str], buckets: int
) -> None:
    table = create(catalog, **options)
    table.write({"k": range(100), "v": ["x"] * 100})
    assert 800 < sum(e.file.file_size for e in entries(table)) <= 1200
    table.compact()
    assert {e.total_buckets for e in entries(table)} == {buckets} and len(rows(table)) == 100
    table.write({"k": range(100, 200), "v": ["x"] * 100})
    table.with_options({"postpone.default-bucket-num": 7}).compact()
    assert {e.total_buckets for e in entries(table)} == {buckets} and len(rows(table)) == 200


def test_batch_writes_go_to_fixed_buckets_if_configured(catalog: paimon.Catalog) -> None:
    table = create(catalog, **{"postpone.default-bucket-num": "2"})
    direct = table.with_options({"postpone.batch-write-fixed-bucket": True})
    direct.write({"k": range(50), "v": ["x"] * 50})
    assert len(rows(table)) == 50 and {(e.bucket, e.total_buckets) for e in entries(table)} == {(0, 2), (1, 2)}
    builder = direct.new_stream_write_builder("job")
    with builder.new_write() as writer:
        writer.write({"k": [1], "v": ["streamed"]})
        builder.new_commit().commit(1, writer.prepare_commit(1))
    table.write({"k": [2], "v": ["postponed"]})
    assert sorted(e.bucket for e in entries(table)) == [-2, -2, 0, 1] and rows(table)[1:3] == [(1, "x"), (2, "x")]
    direct.with_options({"postpone.default-bucket-num": 9}).write({"k": [3], "v": ["y"]})
    table.compact()
    assert rows(table)[1:4] == [(1, "streamed"), (2, "postponed"), (3, "y")]


DIRECT = "postpone.batch-write-fixed-bucket"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"postpone.target-row-num-per-bucket": "30"}, {"small": 1, "large": 4}),
        ({"postpone.target-size-per-bucket": "1 kb"}, {"small": 1, "large": 4}),
        ({"postpone.target-row-num-per-bucket": "1", f"{DIRECT}.max-parallelism": "5"}, {"small": 2, "large": 5}),
        ({"postpone.target-row-num-per-bucket": "1", "postpone.default-bucket-num": "7"}, {"small": 7, "large": 7}),
        ({}, {"small": 1, "large": 1}),
    ],
)
def test_the_rows_of_a_direct_write_decide_the_first_number_of_buckets(
    catalog: paimon.Catalog, options: dict[str, str], expected: dict[str, int]
) -> None:
    table = catalog.create_table(
        "d.t", "p STRING NOT NULL, k INT NOT NULL, v STRING", primary_keys=["p", "k"], partition_keys=["p"],
        options={"bucket": "-2", DIRECT: "true", **options},
    )  # fmt: skip
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        for start in (0, 51):
            names = ["small", *["large"] * 50]
            writer.write({"p": names, "k": range(start, start + 51), "v": ["twenty characters ok"] * 51})
        builder.new_commit().commit(writer.prepare_commit())
    assert len(rows(table)) == 102
    found = {name: e.total_buckets for e in entries(table) for name in expected if name.encode() in e.partition}
    assert found == expected
    table.write({"p": ["small"] * 50, "k": range(200, 250), "v": ["x"] * 50})
    assert {e.total_buckets for e in entries(table)} == set(expected.values()), "a partition keeps its number"


def test_writers_of_several_processes_follow_a_plan_of_buckets(catalog: paimon.Catalog) -> None:
    table = catalog.create_table(
        "d.t", "p DATE NOT NULL, k INT NOT NULL", primary_keys=["p", "k"], partition_keys=["p"],
        options={"bucket": "-2", DIRECT: "true"},
    )  # fmt: skip
    day, other = date(2026, 1, 1), date(2026, 1, 2)
    messages = []
    builder = table.new_batch_write_builder().with_bucket_plan({(day,): 3})
    for part in (builder, pickle.loads(pickle.dumps(builder))):
        with part.new_write() as writer:
            writer.write({"p": [day, other], "k": [1, 2]})
            messages += writer.prepare_commit()
    assert {message.total_buckets for message in messages} == {1, 3}
    builder.new_commit().commit(messages)
    with pytest.raises(InvalidRequest, match="A partition has 3 buckets, and the bucket plan says 5"):
        table.new_batch_write_builder().with_bucket_plan({(day,): 5}).new_write().write({"p": [day], "k": [1]})
    replaces = table.new_batch_write_builder().overwrite({"p": day}).with_bucket_plan({("2026-01-01",): 5})
    with replaces.new_write() as writer:
        writer.write({"p": [day], "k": [9]})
        replaces.new_commit().commit(writer.prepare_commit())
    assert rows(table) == [(day, 9), (other, 2)] and {e.total_buckets for e in entries(table)} == {1, 5}
    for plan in ({(day, 1): 2}, {(day,): 0}):
        with pytest.raises(InvalidRequest, match="is not possible"):
            table.new_batch_write_builder().with_bucket_plan(plan)
    with pytest.raises(InvalidRequest, match="takes no bucket plan"):
        table.with_options({DIRECT: False}).new_batch_write_builder().with_bucket_plan({(day,): 2})


def test_an_aborted_direct_write_leaves_nothing(catalog: paimon.Catalog) -> None:
    table = create(catalog, **{"postpone.target-row-num-per-bucket": "1", DIRECT: "true"})
    writer = table.new_batch_write_builder().new_write()
    writer.write({"k": [1, 2], "v": ["a", "b"]})
    writer.abort()
    assert writer.prepare_commit() == []
    writer.close()
    assert table.snapshot() is None


def test_only_the_rows_that_fit_the_memory_decide(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path, **{"memory-budget": "4 mb"})
    catalog.create_database("d")
    table = create(catalog, **{"postpone.target-row-num-per-bucket": "1000", DIRECT: "true"})
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        for start in range(0, 40_000, 4_000):
            writer.write({"k": range(start, start + 4_000), "v": ["x" * 100] * 4_000})
        builder.new_commit().commit(writer.prepare_commit())
    assert 1 < {e.total_buckets for e in entries(table)}.pop() < 40
    assert table.scan().count() == 40_000


ENGINES: list[dict[str, str]] = [
    {"merge-engine": "deduplicate"},
    {"merge-engine": "deduplicate", "sequence.field": "s"},
    {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    {"merge-engine": "aggregation", "fields.s.aggregate-function": "sum"},
    {"merge-engine": "first-row", "ignore-delete": "true"},
    {"deletion-vectors.enabled": "true"},
    {"deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
    {"changelog-producer": "input"},
    {"changelog-producer": "lookup"},
    {"changelog-producer": "full-compaction"},
    {"file.format": "orc", "data-file.thin-mode": "true", "bucket-function.type": "hive"},
]
HISTORY = [
    [("a", 1, 1, "x", "+I"), ("a", 2, 1, "y", "+I"), ("b", 1, 5, "z", "+I"), ("a", 1, 3, None, "+U")],
    [("a", 2, 2, "yy", "+U"), ("b", 1, 4, "old", "+U"), ("c", 9, 1, "n", "+I"), ("c", 9, 2, "n", "-D")],
    [],
    [("a", 1, 4, "last", "+U"), ("b", 1, 6, "z", "-D"), ("b", 2, 1, "w", "+I"), ("a", 3, 1, "v", "+I")],
    [("b", 1, 7, "again", "+I"), ("a", 2, 3, "y", "-D")],
]


def as_columns(history: list[tuple[str, int, int, str | None, str]]) -> dict[str, list[Any]]:
    return {name: [row[i] for row in history] for i, name in enumerate(("p", "k", "s", "v", "op"))}


@pytest.mark.parametrize(
    "options", mark_nightly(ENGINES, always=[*ENGINES[1:6], ENGINES[8]]), ids=lambda options: " ".join(options.values())
)
def test_compacted_rows_are_those_of_fixed_buckets(catalog: paimon.Catalog, options: dict[str, str]) -> None:
    columns = "p STRING NOT NULL, k INT NOT NULL, s INT, v STRING"
    fixed, postponed = (
        catalog.create_table(
            f"d.{name}",
            columns,
            primary_keys=["p", "k"],
            partition_keys=["p"],
            options={**options, "bucket": bucket, "postpone.default-bucket-num": "2"},
        )
        for name, bucket in (("fixed", "2"), ("postponed", "-2"))
    )
    for number, history in enumerate(HISTORY):
        data = as_columns(history)
        for table in (fixed, postponed):
            table.write(data, kind_column="op")
        if number in (1, 3, 4):
            fixed.compact(full=number == 4)
            done = postponed.compact(full=number == 4)
            assert len(done.snapshot_ids) == 1 and rows(postponed) == rows(fixed)
            assert not [e for e in entries(postponed) if e.bucket < 0]
    assert postponed.maintain.check(deep=True).is_whole
    if "changelog-producer" in options:
        changed: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for change in postponed.changes().to_arrow().to_pylist():
            _, kind, *row = change.values()
            if kind in ("+I", "+U"):
                changed[row[0], row[1]] = tuple(row)
            else:
                changed.pop((row[0], row[1]), None)
        assert sorted(changed.values()) == rows(postponed)


def test_only_selected_partitions_are_compacted(catalog: paimon.Catalog) -> None:
    table = catalog.create_table(
        "d.t", "p INT NOT NULL, k INT NOT NULL", primary_keys=["p", "k"], partition_keys=["p"], options={"bucket": -2}
    )
    table.write({"p": [1, 2], "k": [1, 2]})
    table.compact(where="p = 2 - 1")
    assert rows(table) == [(1, 1)] and sorted(e.bucket for e in entries(table)) == [-2, 0]
    with pytest.raises(InvalidRequest, match="'k', which is not a partition column"):
        table.compact(where="k = 1")


@pytest.mark.parametrize("expires", [False, True])
def test_rows_are_replayed_in_the_order_of_commits(catalog: paimon.Catalog, expires: bool) -> None:
    table = create(catalog, **{"manifest.target-file-size": "1 b", "manifest.merge-min-count": "2"})
    builders = [table.new_stream_write_builder(f"job-{n}") for n in range(3)]
    writers = [builder.new_write() for builder in builders]
    for number in range(9):
        writers[number % 3].write({"k": [0, number], "v": [f"{number}", "x"]})
        builders[number % 3].new_commit().commit(number, writers[number % 3].prepare_commit(number))
    if expires:
        table.maintain.expire_snapshots(retain_min=1, retain_max=1)
    table.compact()
    assert rows(table)[0] == (0, "8")


def test_overwrites_replace_postponed_and_compacted_rows(catalog: paimon.Catalog) -> None:
    table = create(catalog)
    table.write({"k": [1, 2], "v": ["a", "b"]})
    table.compact()
    table.write({"k": [3], "v": ["c"]})
    table.overwrite({"k": [4], "v": ["d"]})
    assert [e.bucket for e in entries(table)] == [-2] and rows(table) == []
    table.compact()
    assert rows(table) == [(4, "d")]
    table.with_options({"postpone.batch-write-fixed-bucket": True}).overwrite({"k": [5], "v": ["e"]})
    assert rows(table) == [(5, "e")]


def test_deletes_and_updates_are_postponed_too(catalog: paimon.Catalog) -> None:
    table = create(catalog)
    table.write({"k": [1, 2, 3], "v": ["a", "b", "c"]})
    assert table.delete("k = 1").rows == 0
    table.compact()
    assert table.delete("k = 1").rows == 1 and table.update({"v": "'new'"}, "k = 2").rows == 1
    assert rows(table) == [(1, "a"), (2, "b"), (3, "c")]
    table.compact()
    assert rows(table) == [(2, "new"), (3, "c")]


def test_streams_show_postponed_rows_as_they_were_written(catalog: paimon.Catalog) -> None:
    table = create(catalog)
    table.write({"k": [2, 1, 2], "v": ["a", "b", "c"], "op": ["+I", "+I", "-D"]}, kind_column="op")
    table.compact()
    table.write({"k": [5], "v": ["z"]})
    found = [tuple(row.values()) for batch in table.follow(from_snapshot=1, until=3) for row in batch.to_pylist()]
    assert [row[-3:] for row in found] == [("+I", 2, "a"), ("+I", 1, "b"), ("-D", 2, "c"), ("+I", 5, "z")]
    assert [row[2] for row in map(tuple, map(dict.values, table.changes(where="k = 1").to_arrow().to_pylist()))] == [1]


def test_two_compactions_do_not_move_rows_twice(catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(catalog)
    table.write({"k": [1], "v": ["a"]})
    inner = compact_table.compact_buckets

    def interleave(*given: Any) -> Any:
        monkeypatch.setattr(compact_table, "compact_buckets", inner)
        catalog.table("d.t").write({"k": [2], "v": ["b"]})
        catalog.table("d.t").compact()
        return inner(*given)

    monkeypatch.setattr(compact_table, "compact_buckets", interleave)
    with pytest.raises(CommitConflict, match="no longer in the table"):
        table.compact()
    assert rows(table) == [(1, "a"), (2, "b")] and table.maintain.check().is_whole
    assert table.maintain.remove_orphans(older_than=timedelta(0), allow_young=True).num_rows == 0


def test_concurrent_first_writes_agree_on_the_number_of_buckets(catalog: paimon.Catalog) -> None:
    table = create(catalog, **{"postpone.batch-write-fixed-bucket": "true"})
    builder = table.new_batch_write_builder()
    writer = builder.new_write()
    writer.write({"k": [1], "v": ["a"]})
    messages = writer.prepare_commit()
    table.with_options({"postpone.default-bucket-num": 4}).write({"k": [2], "v": ["b"]})
    with pytest.raises(CommitConflict, match="4 buckets"):
        builder.new_commit().commit(messages)


def test_new_columns_are_read_from_older_postponed_files(catalog: paimon.Catalog) -> None:
    table = create(catalog)
    table.write({"k": [1], "v": ["a"]})
    newer = table.add_column("n", "INT").rename_column("v", "w")
    newer.write({"k": [2], "w": ["b"], "n": [7]})
    with pytest.raises(InvalidRequest, match="newer schema"):
        table.compact()
    newer.compact()
    assert rows(newer) == [(1, "a", None), (2, "b", 7)]


def test_columns_that_avro_cannot_store_use_the_format_of_the_table(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("d.n", "k INT NOT NULL, t TIMESTAMP(9)", primary_keys=["k"], options={"bucket": -2})
    table.write({"k": [1], "t": [None]})
    assert entries(table)[0].file.file_name.endswith(".parquet")
    table.compact()
    assert rows(table) == [(1, None)]


@pytest.mark.parametrize("kind", ["-D", "-U"])
@pytest.mark.parametrize("engine", ["first-row", "partial-update", "aggregation"])
def test_kinds_that_no_compaction_could_merge_are_refused(catalog: paimon.Catalog, engine: str, kind: str) -> None:
    function = {"fields.v.aggregate-function": "max"} if engine == "aggregation" else {}
    table = create(catalog, **{"merge-engine": engine}, **function)
    with pytest.raises(InvalidRequest, match="does not accept -U and -D records"):
        table.write({"k": [1, 2], "v": ["a", "b"], "op": ["+I", kind]}, kind_column="op")
    assert table.snapshot() is None and not list(Path(table.location).glob("bucket-*/*"))
    with pytest.raises(InvalidRequest, match="is NOT NULL"):
        table.write({"k": [None], "v": ["a"]})


@pytest.mark.parametrize("option", ["default-bucket-num", "target-row-num-per-bucket", "target-size-per-bucket"])
def test_numbers_below_one_are_refused(catalog: paimon.Catalog, option: str) -> None:
    with pytest.raises(InvalidRequest, match=f"postpone.{option}.* is 0"):
        create(catalog, **{f"postpone.{option}": "0"})


def test_users_that_no_file_name_can_contain_are_refused(catalog: paimon.Catalog) -> None:
    table = create(catalog)
    with pytest.raises(InvalidRequest, match="'a/b'"):
        table.write({"k": [1], "v": ["a"]}, commit_user="a/b")
    table.write({"k": [1], "v": ["a"]}, commit_user="an-s-odd-w-user")
    table.compact()
    assert rows(table) == [(1, "a")]


def test_a_lost_postponed_file_is_named_and_the_table_stays_readable(catalog: paimon.Catalog) -> None:
    table = create(catalog)
    table.write({"k": [1], "v": ["a"]})
    table.compact()
    table.write({"k": [2], "v": ["b"]})
    (name,) = [e.file.file_name for e in entries(table) if e.bucket == -2]
    path = Path(table.location, "bucket-postpone", name)
    path.unlink()
    with pytest.raises(CorruptTable, match=path.name):
        table.compact()
    assert rows(table) == [(1, "a")]
    faults = table.maintain.check()
    assert not faults.is_whole and path.name in str(faults)


def test_a_table_with_snapshots_stays_postponed(catalog: paimon.Catalog) -> None:
    table = create(catalog).set_options({"bucket": 1}).set_options({"bucket": -2})
    table.write({"k": [1], "v": ["a"]})
    with pytest.raises(InvalidRequest, match="'bucket' cannot change from -2"):
        table.set_options({"bucket": 4})


def test_fixed_buckets_become_postponed(catalog: paimon.Catalog) -> None:
    table = create(catalog, bucket="3")
    table.write({"k": range(20), "v": ["a"] * 20})
    postponed = table.set_options({"bucket": -2})
    postponed.write({"k": range(10), "v": ["b"] * 10})
    postponed.compact()
    assert rows(postponed) == [(k, "b" if k < 10 else "a") for k in range(20)]
    assert {e.total_buckets for e in entries(postponed)} == {3}
    plan = postponed.scan(where="k = 4").plan()
    assert len({split.bucket for split in plan.splits}) == 1
    assert postponed.maintain.check(deep=True).is_whole


def test_keys_without_the_partition_are_unique_within_partitions(catalog: paimon.Catalog) -> None:
    with pytest.warns(paimon.PaimonWarning, match="unique within a partition only"):
        table = catalog.create_table(
            "d.t", "p INT, k INT NOT NULL", primary_keys=["k"], partition_keys=["p"], options={"bucket": -2}
        )
    table.write({"p": [1, 2], "k": [7, 7]})
    table.compact()
    assert rows(table) == [(1, 7), (2, 7)]


def test_one_writer_names_all_files_alike(catalog: paimon.Catalog) -> None:
    table = create(catalog, **{"target-file-size": "64 kb", "write-buffer-size": "1 mb"})
    table.write([{"k": k, "v": f"value {k}"} for k in range(50_000)])
    names = [e.file.file_name for e in entries(table)]
    assert len(names) > 2 and len({name.rpartition("-w-")[0] for name in names}) == 1
    table.compact()
    assert table.scan().count() == 50_000
