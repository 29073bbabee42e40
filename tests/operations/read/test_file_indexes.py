"""File indexes of tables: written with each file, removed like it, and used by reads without another answer."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tables import create_table

import paimon
from paimon.domain.errors import CorruptTable, InvalidRequest, SnapshotExpired
from paimon.domain.predicate.evaluate_row import matches
from paimon.domain.predicate.expression import Compare, In, IsNull, Operator, Predicate
from paimon.domain.predicate.text import format_predicate
from paimon.operations.read.engine_files import find_engine_files
from paimon.table import Table
from paimon.testing.strategies.predicates import predicates

COLUMNS = "id INT, color STRING, price DOUBLE, amount BIGINT"
INDEXES = {
    "file-index.bitmap.columns": "color", "file-index.range-bitmap.columns": "price",
    "file-index.bsi.columns": "amount", "file-index.bloom-filter.columns": "id,color",
    "file-index.bloom-filter.id.items": "100",
    "file-index.bloom-filter.color.items": "20",
}  # fmt: skip
IN_MANIFEST = INDEXES | {"file-index.in-manifest-threshold": "1 mb"}
IN_FILES = INDEXES | {"file-index.in-manifest-threshold": "1 b"}
WITHOUT_STATISTICS = {"metadata.stats-mode": "none", "write-only": "true"}
OFF = {"file-index.read.enabled": "false"}


def make_rows(first: int, count: int = 30) -> list[dict[str, Any]]:
    colors = ["red", "green", None, f"only {first}"]
    return [
        {"id": i, "color": colors[i % 4], "price": i / 4 if i % 5 else None, "amount": -i if i % 2 else i}
        for i in range(first, first + count)
    ]


def write_thrice(home: Path, options: Mapping[str, str], **layout: Any) -> Table:
    table = create_table(home, COLUMNS, options={**WITHOUT_STATISTICS, **options}, **layout)
    for first in (0, 100, 200):
        table.write(make_rows(first))
    return table


def data_files(table: Table) -> list[str]:
    return [path for split in table.scan().plan().splits for path in split.file_paths]


def index_files(home: Path) -> list[str]:
    return sorted(path.name for path in home.rglob("*.index"))


def list_indexes(table: Table) -> pa.Table:
    return paimon.open_table(f"{table.location}$file_indexes").scan().to_arrow()


def test_small_indexes_are_in_the_manifest_and_large_ones_in_files(tmp_path: Path) -> None:
    embedded = write_thrice(tmp_path / "a", IN_MANIFEST)
    assert index_files(tmp_path / "a") == []
    assert set(list_indexes(embedded)["storage_type"].to_pylist()) == {"EMBEDDED"}
    stored = write_thrice(tmp_path / "b", IN_FILES)
    assert index_files(tmp_path / "b") == sorted(f"{os.path.basename(p)}.index" for p in data_files(stored))
    listed = list_indexes(stored)
    assert set(listed["storage_type"].to_pylist()) == {"FILE"}
    assert listed.num_rows == 3 * 5
    found = {(row["column_name"], row["index_type"]) for row in listed.to_pylist()}
    assert found == {("color", "bitmap"), ("color", "bloom-filter"), ("id", "bloom-filter"), ("price", "range-bitmap"),
                     ("amount", "bsi")}  # fmt: skip


@pytest.mark.parametrize("options", [IN_MANIFEST, IN_FILES], ids=["embedded", "files"])
@pytest.mark.parametrize(
    ("where", "count"),
    [("color = 'only 100'", 7), ("id = 117", 1), ("price >= 25 AND price < 30", 16), ("amount IN (-101, 104)", 2)],
)
def test_reads_skip_files_without_matching_rows(
    tmp_path: Path, options: Mapping[str, str], where: str, count: int
) -> None:
    table = write_thrice(tmp_path, options)
    for path in (data_files(table)[0], data_files(table)[2]):
        os.rename(path, f"{path}.hidden")  # a read that needs the file fails
    assert table.scan(where=where).count() == count
    with pytest.raises(CorruptTable):
        table.with_options(OFF).scan(where=where).count()


@pytest.mark.parametrize("options", [IN_MANIFEST, IN_FILES], ids=["embedded", "files"])
def test_query_engines_get_no_file_that_an_index_excludes(tmp_path: Path, options: dict[str, str]) -> None:
    table = write_thrice(tmp_path, options)
    for where, files in (("id = 105", 1), ("id = 105 OR amount > 3", 3), ("color = 'only 200'", 1), ("id = 99", 0)):
        scan = table.scan(columns=["id", "color"], where=where)
        selected = find_engine_files(scan.context, scan.plan().splits, scan.read_plan)
        assert (len(selected.files), selected.rest) == (files, ())
    catalog = paimon.connect(tmp_path)
    explained = catalog.sql("EXPLAIN SELECT id FROM db.t WHERE id = 105").to_arrow().to_pylist()
    assert any(line["plan"].startswith("  the query engine itself reads 1 of ") for line in explained)
    assert catalog.sql("SELECT id FROM db.t WHERE id = 105").to_arrow().to_pylist() == [{"id": 105}]


def test_indexes_of_an_expired_snapshot_are_reported_to_query_engines(tmp_path: Path) -> None:
    table = write_thrice(tmp_path, IN_FILES)
    scan = table.scan(where="id = 105")
    splits = scan.plan().splits
    table.overwrite(make_rows(0))
    table.maintain.expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(SnapshotExpired):
        find_engine_files(scan.context, splits, scan.read_plan)


def test_the_plan_says_which_index_skips_files_and_rows(tmp_path: Path) -> None:
    plan = write_thrice(tmp_path / "a", IN_MANIFEST).scan(where="price = 50.5").explain()
    assert "file index range-bitmap(price): 3 -> 1" in plan
    assert "file index range-bitmap(price): leaves out 29 rows of 1 file, 0 files as a whole" in plan
    plan = write_thrice(tmp_path / "b", IN_FILES).scan(where="price = 50.5").explain()
    assert "file index range-bitmap(price): leaves out 89 rows of 3 files, 2 files as a whole" in plan


def test_a_missing_index_file_ends_only_reads_that_use_indexes(tmp_path: Path) -> None:
    table = write_thrice(tmp_path, IN_FILES)
    for path in tmp_path.rglob("*.index"):
        path.unlink()
    with pytest.raises(CorruptTable, match=r"file-index\.read\.enabled"):
        table.scan(where="id = 3").to_arrow()
    assert table.with_options(OFF).scan(where="id = 3").count() == 1
    assert table.scan().count() == 90
    assert ".index" in str(table.maintain.check())


def test_a_damaged_index_file_is_refused(tmp_path: Path) -> None:
    table = write_thrice(tmp_path, IN_FILES)
    for path in tmp_path.rglob("*.index"):
        path.write_bytes(path.read_bytes()[:90])
    with pytest.raises(CorruptTable):
        table.scan(where="id = 3").to_arrow()


def test_compaction_builds_indexes_and_expiry_removes_old_ones(tmp_path: Path) -> None:
    table = write_thrice(tmp_path, IN_FILES)
    table = table.with_options({"write-only": "false"})
    table.compact(full=True)
    (path,) = data_files(table)
    assert len(index_files(tmp_path)) == 4
    assert table.scan(where="color = 'only 100'").count() == 7
    table.maintain.expire_snapshots(retain_max=1, retain_min=1)
    assert index_files(tmp_path) == [f"{os.path.basename(path)}.index"]
    assert table.maintain.remove_orphans(dry_run=True, allow_young=True, older_than="2100-01-01").num_rows == 0


def test_files_of_an_aborted_write_go_with_their_indexes(tmp_path: Path) -> None:
    table = create_table(tmp_path, COLUMNS, options={**WITHOUT_STATISTICS, **IN_FILES})
    writer = table.new_batch_write_builder().new_write()
    writer.write_arrow(pa.Table.from_pylist(make_rows(0), table.arrow_schema))
    messages = writer.prepare_commit()
    assert len(index_files(tmp_path)) == 1
    table.new_batch_write_builder().new_commit().abort(messages)
    assert index_files(tmp_path) == []


@pytest.mark.parametrize("options", [IN_MANIFEST, IN_FILES], ids=["embedded", "files"])
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_rows_of_a_primary_key_are_merged_before_they_are_selected(
    tmp_path: Path, options: Mapping[str, str], vectors: str
) -> None:
    layout = {"bucket": "1", "deletion-vectors.enabled": vectors, "write-only": "false", **options}
    table = create_table(tmp_path, COLUMNS.replace("id INT", "id INT NOT NULL"), primary_keys=["id"], options=layout)
    table.write(make_rows(0))
    table.write([{"id": 3, "color": "blue", "price": 1.0, "amount": 7}])
    assert table.scan(where="color = 'only 0'").count() == 6
    assert table.scan(where="color = 'blue'").to_arrow()["id"].to_pylist() == [3]
    table.delete(where="id = 7")
    table.compact(full=True)
    assert table.scan(where="color = 'only 0'").count() == 5
    assert table.scan(where="color = 'only 0' AND id = 3").count() == 0


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_selected_rows_are_read_by_each_format(tmp_path: Path, file_format: str) -> None:
    options = {**WITHOUT_STATISTICS, "file.format": file_format, "file-index.bitmap.columns": "color"}
    table = create_table(tmp_path, COLUMNS, options=options)
    table.write([{"id": i, "color": "rare" if i % 2_500 == 7 else "often"} for i in range(20_000)])
    found = table.scan(where="color = 'rare'").to_arrow()
    assert found["id"].to_pylist() == list(range(7, 20_000, 2_500))
    assert found["color"].to_pylist() == ["rare"] * 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"file-index.bitmap.columns": "colour"}, "'colour', which does not exist"),
        ({"file-index.bsi.columns": "color"}, "does not support"),
        ({"file-index.bitmap.columns": "color[a]"}, "is no MAP"),
        ({"file-index.bloom-filter.color.items": "5"}, "that column 'color' does not have"),
        ({"file-index.tree.columns": "color"}, "unknown"),
        ({"file-index.bitmap.columns": "color", "file-index.bitmap.color.version": "3"}, "invalid value '3'"),
        ({"file-index.bloom-filter.columns": "id", "file-index.bloom-filter.id.fpp": "1"}, r"id\.fpp.*rate between"),
        ({"file-index.bloom-filter.columns": "id", "file-index.bloom-filter.id.items": "0"}, r"id\.items.*at least 1"),
    ],
)
def test_indexes_that_cannot_be_built_are_refused(tmp_path: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        create_table(tmp_path, COLUMNS, options=options)


@pytest.mark.parametrize("content", [b"", b"PAR1" + bytes(500), None], ids=["empty", "foreign", "cut"])
def test_a_damaged_index_file_is_named_and_can_be_rebuilt(tmp_path: Path, content: bytes | None) -> None:
    options = {**IN_FILES, **WITHOUT_STATISTICS, "file-index.bitmap.columns": "color"}
    table = create_table(tmp_path, COLUMNS, options=options)
    table.write(make_rows(0))
    (path,) = tmp_path.rglob("*.index")
    path.write_bytes(path.read_bytes()[:200] if content is None else content)
    table = paimon.open_table(table.location)
    rows = table.scan().count()
    with pytest.raises(CorruptTable, match=f"{path.name}.*[Rr]ebuild it with rewrite_file_index"):
        table.scan(where="color = 'only 0'").to_arrow()
    (fault,) = table.maintain.check(deep=True).faults
    assert fault.path.endswith(path.name) and "rewrite_file_index" in fault.reason
    table.maintain.rewrite_file_index()
    assert table.maintain.check(deep=True).faults == ()
    assert (table.scan().count(), table.scan(where="color = 'only 0'").count() > 0) == (rows, True)


ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-3, 8), st.none() | st.sampled_from(["", "a", "ab", "b", "ä"]),
        st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan"), -7.25]), st.none() | st.integers(-4, 4),
    ), min_size=1, max_size=12,
)  # fmt: skip


@settings(max_examples=12)
@given(st.data())
def test_an_index_never_changes_an_answer(data: st.DataObject) -> None:
    place = data.draw(st.sampled_from([IN_MANIFEST, IN_FILES]))
    keyed, vectors = data.draw(st.booleans()), data.draw(st.booleans())
    options = {**place, "file.format": data.draw(st.sampled_from(["parquet", "orc", "avro"])),
               "deletion-vectors.enabled": str(vectors).lower()}  # fmt: skip
    if keyed:
        options["bucket"] = "1"
    columns, keys = (COLUMNS.replace("id INT", "id INT NOT NULL"), ["id"]) if keyed else (COLUMNS, [])
    table = create_table(f"memory://{uuid.uuid4()}", columns, primary_keys=keys, options=options)
    drawn: list[tuple[Any, ...]] = []
    for step in range(data.draw(st.integers(1, 3))):
        rows = [row for row in data.draw(ROWS) if not keyed or row[0] is not None]
        names = [f.name for f in table.table_schema.fields[:4]]
        if rows:
            table.write([dict(zip(names, row, strict=True)) for row in rows])
            drawn += rows
        if data.draw(st.booleans()) and (keyed or vectors):
            table.delete(where="id = 2")
        if step == 0 and data.draw(st.booleans()):
            table = table.alter("RENAME COLUMN color TO colour")
        if data.draw(st.booleans()):
            table.compact(full=True)
    fields = table.table_schema.fields
    for _ in range(3):
        predicate = data.draw(predicates(fields, rows=drawn))
        found, whole = (
            sorted(map(repr, t.scan(where=predicate).to_arrow().to_pylist())) for t in (table, table.with_options(OFF))
        )
        assert found == whole, format_predicate(predicate)


TAGS = {
    "file-index.bloom-filter.columns": "tags[color],tags[size]", "file-index.bloom-filter.tags.items": "20",
    "file-index.bitmap.columns": "tags[color]", "file-index.range-bitmap.columns": "tags[size]",
}  # fmt: skip
TAG_ROWS = st.lists(
    st.none()
    | st.dictionaries(st.sampled_from(["color", "size", "x"]), st.none() | st.sampled_from(["a", "ab", "b", ""])),
    min_size=1,
    max_size=6,
)


def tag_conditions() -> st.SearchStrategy[Predicate]:
    key = st.sampled_from(["color", "size", "x", "missing"]).map(paimon.col("tags").__getitem__)
    value = st.sampled_from(["a", "ab", "b", "", "c"])
    leaf = st.one_of(
        st.builds(lambda k, op, v: Compare(k.name, op, v), key, st.sampled_from(Operator), value),
        st.builds(lambda k, vs, no: In(k.name, vs, no), key, st.lists(st.none() | value, min_size=1), st.booleans()),
        st.builds(lambda k, no: IsNull(k.name, no), key, st.booleans()),
        st.builds(lambda k, v: k.startswith(v), key, value),
    )
    return st.recursive(leaf, lambda parts: st.builds(lambda a, b: (a & b) | ~a, parts, parts), max_leaves=3)


@settings(max_examples=6)
@given(st.data())
def test_an_index_of_a_map_key_never_changes_an_answer(data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(["1 mb", "1 b"]))
    options = {**TAGS, "file-index.in-manifest-threshold": place, "deletion-vectors.enabled": "true"}
    options["file.format"] = data.draw(st.sampled_from(["parquet", "orc", "avro"]))
    keyed = data.draw(st.booleans())
    keys, layout = (["id"], {"bucket": "1"}) if keyed else ([], {})
    columns = f"id INT{' NOT NULL' if keyed else ''}, tags MAP<STRING, STRING>"
    table = create_table(f"memory://{uuid.uuid4()}", columns, primary_keys=keys, options={**options, **layout})
    rows: list[dict[str, Any]] = []
    for step in range(data.draw(st.integers(1, 3))):
        written = [{"id": 10 * step + i, "tags": tags} for i, tags in enumerate(data.draw(TAG_ROWS))]
        table.write(written)
        rows += written
    table.delete(where="id = 1")
    if data.draw(st.booleans()):
        table = table.alter("RENAME COLUMN tags TO labels").alter("RENAME COLUMN labels TO tags")
    for _ in range(3):
        condition = data.draw(tag_conditions())
        wanted = [row["id"] for row in rows if row["id"] != 1 and matches(condition, row)]
        for text in (condition, format_predicate(condition)):
            found = [sorted(t.scan(where=text).to_arrow()["id"].to_pylist()) for t in (table, table.with_options(OFF))]
            assert found == [wanted, wanted], format_predicate(condition)


@pytest.mark.parametrize("place", ["1 mb", "1 b"])
def test_conditions_on_a_map_key_skip_files_for_each_reader(tmp_path: Path, place: str) -> None:
    options = WITHOUT_STATISTICS | TAGS | {"file-index.in-manifest-threshold": place}
    table = create_table(tmp_path, "id INT, tags MAP<STRING, STRING>, place ROW<m MAP<STRING, INT>>", options=options)
    for first in range(3):
        table.write([{"id": first, "tags": {"color": f"c{first}"}, "place": {"m": {"k": first}}}, {"id": first + 10}])
    for scan in (
        table.scan(where="tags['color'] = 'c1'", columns=["id"]),
        table.scan(where=paimon.col("tags")["color"] == "c1", columns=["id"]),
        table.scan(where="place.m['k'] = 1 AND tags['color'] IN ('c1', 'x')", columns=["id"]),
    ):
        assert scan.to_arrow()["id"].to_pylist() == [1] and scan.count() == 1
        assert scan.to_duckdb().fetchall() == [(1,)]
        assert "bloom-filter(tags[color])" in scan.explain()
    catalog = paimon.connect(tmp_path)
    assert catalog.sql("SELECT id FROM db.t WHERE tags['color'] = 'c1'").to_arrow()["id"].to_pylist() == [1]
    plan = catalog.sql("EXPLAIN SELECT id FROM db.t WHERE tags['color'] = 'c1'").to_arrow()["plan"].to_pylist()
    assert any("bloom-filter(tags[color])" in line for line in plan)
    table.update(set={"id": 7}, where="tags['color'] = 'c1'")
    table.delete(where="tags['color'] IS NULL OR tags['color'] = 'c2'")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 7]
    with pytest.raises(InvalidRequest, match=r"'tags\[color\]' does not exist"):
        table.scan(columns=["tags[color]"]).to_arrow()
