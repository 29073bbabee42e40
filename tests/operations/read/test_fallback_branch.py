"""Partitions that the main branch lacks are read from the fallback branch."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest
from support.golden_tables import golden_directory

import paimon
from paimon.domain.errors import InvalidRequest, NotFound

GOLDEN = golden_directory() / "fallback_branch" / "table"


@pytest.fixture
def table(tmp_path: Path) -> paimon.Table:
    """Main holds partition a, branch `old` the partitions a and b, with another bucket count and a dropped column."""
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    ddl = "p STRING NOT NULL, k INT NOT NULL, v STRING"
    options = {"bucket": 2, "scan.fallback-branch": "old"}
    made = catalog.create_table("db.t", ddl, primary_keys=["p", "k"], partition_keys=["p"], options=options)
    shutil.copytree(Path(made.location, "schema"), Path(made.location, "branch", "branch-old", "schema"))
    schema = Path(made.location, "branch", "branch-old", "schema", "schema-0")
    schema.write_text(schema.read_text().replace('"bucket" : "2"', '"bucket" : "1"'))
    old = catalog.table("db.t$branch_old")
    old.write([{"p": p, "k": k, "v": f"old {k}"} for p in "ab" for k in range(3)])
    old.write(
        [{"p": "b", "k": 2, "v": "older b", "op": "+U"}, {"p": "b", "k": 0, "v": None, "op": "-D"}], kind_column="op"
    )
    made.write([{"p": "a", "k": 7, "v": "new"}])
    return made


def rows(table: paimon.Table, **arguments: object) -> list[tuple[str, int, str]]:
    found = table.scan(**arguments).to_arrow().to_pylist()  # type: ignore[arg-type]
    return sorted((r["p"], r["k"], r["v"]) for r in found)


def test_the_golden_table_reads_as_java_reads_it() -> None:
    table = paimon.open_table(GOLDEN)
    assert isinstance(table, paimon.Table)
    plan = table.scan().plan()
    assert {split.branch for split in plan.splits} == {None, "fb"}
    assert table.scan().count() == 7
    assert table.scan(where="p = 'a'").count() == 3
    assert table.scan(where="p = 'b' AND k < 5").count() == 0


def test_each_partition_is_read_from_one_branch(table: paimon.Table) -> None:
    mine, theirs = [("a", 7, "new")], [("b", 1, "old 1"), ("b", 2, "older b")]
    assert rows(table) == mine + theirs
    assert rows(table, where="k < 5") == theirs
    assert rows(table, where="p = 'a' AND k = 0") == []
    assert rows(table, where="p = 'b' AND k = 2", columns=["p", "k", "v"]) == theirs[1:]
    assert "splits of branch old: 2 -> 1" in table.scan().explain()


def test_splits_of_the_branch_are_picklable(table: paimon.Table) -> None:
    builder = table.new_read_builder()
    splits = pickle.loads(pickle.dumps(builder.new_scan().plan().splits()))
    assert builder.new_read().to_arrow(splits).num_rows == 3


def test_without_the_option_only_main_is_read(table: paimon.Table) -> None:
    both = rows(table)
    schema = Path(table.location, "schema", "schema-0")
    schema.write_text(
        schema.read_text().replace("scan.fallback-branch", "scan.plan-sort-partition").replace('"old"', '"true"')
    )
    main_branch = paimon.open_table(table.location)
    assert isinstance(main_branch, paimon.Table)
    assert rows(main_branch) == [("a", 7, "new")]
    assert rows(main_branch.with_options({"scan.fallback-branch": "old"})) == both


def test_an_older_read_takes_the_branch_as_it_was(table: paimon.Table) -> None:
    table.write([{"p": "b", "k": 9, "v": "mine now"}])
    assert rows(table) == [("a", 7, "new"), ("b", 9, "mine now")]
    assert len(rows(table, snapshot=1)) == 3


def test_a_branch_that_is_missing_or_of_another_shape_is_refused(table: paimon.Table) -> None:
    with pytest.raises(NotFound, match="'gone'"):
        table.with_options({"scan.fallback-branch": "gone"}).scan().to_arrow()
    schema = Path(table.location, "branch", "branch-old", "schema", "schema-0")
    schema.write_text(schema.read_text().replace('"v"', '"w"'))
    with pytest.raises(InvalidRequest, match="other columns"):
        table.scan().to_arrow()
