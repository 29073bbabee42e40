"""Files in SQL: `read_parquet('path')` and `COPY … TO`, below the directories that the caller allows, and no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv
from pyarrow import parquet as pq
from support.command_line import run

import paimon

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "word": ["a", "b"]})


@pytest.fixture
def lake(tmp_path: Path) -> paimon.Catalog:
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
        pq.write_table(ROWS, tmp_path / name / "rows.parquet")
    (tmp_path / "in" / "link.parquet").symlink_to(tmp_path / "out" / "rows.parquet")
    (tmp_path / "in" / "linked").symlink_to(tmp_path / "out")
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("default", exist_ok=True)
    catalog.create_table("default.t", "id BIGINT, word STRING")
    return catalog


def rows_of(lake: paimon.Catalog, query: str, folder: Path) -> list[dict[str, object]]:
    return lake.sql(query, allowed_files=[folder]).to_arrow().to_pylist()


def test_files_are_read_in_each_place_of_a_query(lake: paimon.Catalog, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "rows.csv").write_text("word,id\nc,3\n")
    (folder / "rows.jsonl").write_text('{"id": 4}\n{"id": 5, "word": "e"}\n')
    rows_of(lake, f"INSERT INTO t SELECT * FROM read_parquet('{folder}/rows.parquet')", folder)
    rows_of(lake, f"INSERT INTO t BY NAME SELECT * FROM read_csv(['{folder}/*.csv'])", folder)
    rows_of(lake, f"INSERT INTO t SELECT j.id, upper(word) FROM read_json('{folder}/rows.jsonl') AS j", folder)
    assert rows_of(lake, "SELECT string_agg(id || coalesce(word, '-'), ' ' ORDER BY id) AS s FROM t", folder) == [
        {"s": "1a 2b 3c 4- 5E"}
    ]
    rows_of(lake, f"DELETE FROM t WHERE id IN (SELECT id FROM read_csv('{folder}/rows.csv'))", folder)
    merge = f"MERGE INTO t USING read_parquet('{folder}/rows.parquet') AS s ON t.id = s.id WHEN MATCHED THEN DELETE"
    assert rows_of(lake, merge, folder)[0]["deleted"] == 2
    assert rows_of(lake, f"SELECT count(*) AS n FROM read_parquet('file://{folder}/r*.parquet')", folder) == [{"n": 2}]
    plan = rows_of(lake, f"EXPLAIN SELECT id FROM read_parquet('{folder}/rows.parquet')", folder)
    assert [line["plan"] for line in plan[1:3]] == [f"files {folder}/rows.parquet", "  columns: id"]


def test_files_are_allowed_for_one_call_or_for_a_session(lake: paimon.Catalog, tmp_path: Path) -> None:
    query = f"SELECT * FROM read_parquet('{tmp_path}/in/rows.parquet')"
    with pytest.raises(paimon.InvalidRequest, match=r"SQL may open none.*allowed_files=\['dir'\].*--allow-files DIR"):
        lake.sql(query)
    lake.sql(f"CREATE TEMPORARY VIEW v AS {query}", allowed_files=[tmp_path / "in"])
    session = lake.sql_session(allowed_files=[str(tmp_path / "in")])
    assert session.sql(query).to_arrow() == ROWS
    with pytest.raises(paimon.InvalidRequest, match="SQL may open none"):
        lake.sql("SELECT * FROM v")
    with pytest.raises(paimon.InvalidRequest, match="SQL may open none"):
        lake.sql(f"COPY t TO '{tmp_path}/in/t.parquet'")


OUTSIDE = [
    "{out}/rows.parquet",
    "{in}/../out/rows.parquet",
    "{in}/link.parquet",
    "{in}/linked/rows.parquet",
    "{in}/linked/*.parquet",
    "{in}/*.parquet",
    "{in}/*/../../out/rows.parquet",
    "{in}x/rows.parquet",
    "{root}/*/rows.parquet",
    "file://{out}/rows.parquet",
    "{in}/x::file://{out}/rows.parquet",
    "~/rows.parquet",
    "rows.parquet",
    "memory://out/rows.parquet",
    "https://localhost/rows.parquet",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_files_outside_are_refused_before_one_is_opened(
    lake: paimon.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("paimon.adapters.files.local.LocalFiles.open", lambda _, name: opened.append(name))
    path = path.replace("{in}", f"{tmp_path}/in").replace("{out}", f"{tmp_path}/out").replace("{root}", str(tmp_path))
    with pytest.raises(paimon.InvalidRequest, match="is outside the allowed directories"):
        lake.sql(f"SELECT * FROM read_parquet('{path}')", allowed_files=[tmp_path / "in"])
    assert not opened
    monkeypatch.undo()
    if path.endswith("link.parquet") or "*" in path:  # a file replaces a link, and is not written through it
        return
    with pytest.raises(paimon.InvalidRequest, match="is outside the allowed directories"):
        lake.sql(f"COPY (SELECT 1 AS x) TO '{path}'", allowed_files=[tmp_path / "in"])
    assert pq.read_table(tmp_path / "out" / "rows.parquet") == ROWS


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM read_blob('{file}')",
        "SELECT * FROM glob('{file}')",
        "SELECT * FROM parquet_metadata('{file}')",
        "SELECT * FROM query('SELECT * FROM read_parquet(''{file}'')')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM read_parquet(getenv('HOME'))",
        "SELECT * FROM read_csv('{file}', header = true)",
        "ATTACH '{file}' AS x",
        "PRAGMA database_list",
        "LOAD httpfs",
    ],
)
def test_allowed_files_are_not_reached_in_another_way(lake: paimon.Catalog, tmp_path: Path, query: str) -> None:
    with pytest.raises(paimon.PaimonError):
        lake.sql(query.format(file=tmp_path / "in" / "rows.parquet"), allowed_files=[tmp_path / "in"]).to_arrow()


def test_copy_writes_a_table_or_a_query(lake: paimon.Catalog, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    lake.table("default.t").write(ROWS)
    assert rows_of(lake, f"COPY t TO '{folder}/new/t.parquet'", folder) == [{"rows": 2}]
    assert pq.read_table(folder / "new" / "t.parquet") == ROWS
    rows_of(lake, f"COPY (SELECT id FROM t ORDER BY id DESC) TO '{folder}/t.csv'", folder)
    assert csv.read_csv(folder / "t.csv")["id"].to_pylist() == [2, 1]
    rows_of(lake, f"COPY default.t TO '{folder}/t.data' (FORMAT json)", folder)
    assert json.loads((folder / "t.data").read_text().splitlines()[0]) == {"id": 1, "word": "a"}
    before = sorted(folder.rglob("*"))
    for statement, message in [
        (f"COPY (SELECT error('no ' || word) FROM t) TO '{folder}/t.parquet'", "no a"),
        (f"COPY t TO '{folder}/t.data'", "names no format of rows"),
        (f"COPY t TO '{folder}/t.data' (FORMAT xls)", "cannot write the format 'xls'"),
        (f"COPY t FROM '{folder}/t.csv'", "write INSERT INTO t SELECT"),
        (f"COPY none TO '{folder}/t.parquet'", "does not exist"),
    ]:
        with pytest.raises(paimon.PaimonError, match=f"(?i){message}"):
            rows_of(lake, statement, folder)
    assert sorted(folder.rglob("*")) == before


def test_the_command_allows_directories(
    lake: paimon.Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = f"SELECT count(*) AS n FROM read_parquet('{tmp_path}/in/rows.parquet')"
    allow = ("--allow-files", str(tmp_path / "in"))
    assert '"n": 2' in run(capsys, "sql", lake.warehouse, "-e", query, *allow, "--output", "json")
    assert "--allow-files DIR" in run(capsys, "sql", lake.warehouse, "-e", query, code=1)


def test_copy_writes_no_file_of_a_table_or_warehouse(lake: paimon.Catalog, tmp_path: Path) -> None:
    lake.table("default.t").write(ROWS)
    other = paimon.connect(tmp_path / "other")
    other.create_database("d")
    table = other.create_table("d.t", "id INT")
    (tmp_path / "in" / "back").symlink_to(tmp_path / "other" / "d.db" / "t")
    before = sorted(tmp_path.rglob("*"))
    for path in (
        "lake/rows.csv",
        "lake/default.db/t/snapshot/LATEST",
        "other/d.db/t/x/a.csv",
        "in/back/schema/schema-0",
    ):
        with pytest.raises(paimon.InvalidRequest, match="is in the directory of a table or warehouse"):
            rows_of(lake, f"COPY t TO '{tmp_path}/{path}' (FORMAT csv)", tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
    assert table.arrow_schema.names == ["id"]


@pytest.mark.parametrize(
    ("path", "root", "message"),
    [
        ("https://ann:secret@h/x.csv", "https://h", "has credentials"),
        ("https://h/x.csv", "https://ann:secret@h", "has credentials"),
        ("https://h/a/%2e%2e/x.csv", "https://h/a", "is outside the allowed directories"),
        ("x.csv", "", "is empty"),
        ("memory://x.csv", "memory://", "allows a whole scheme"),
        ("x.csv", 5, "is not a text"),
    ],
)
def test_roots_and_urls_are_checked(lake: paimon.Catalog, path: str, root: Any, message: str) -> None:
    for statement in (f"SELECT * FROM read_csv('{path}')", f"COPY t TO '{path}'"):
        with pytest.raises(paimon.InvalidRequest, match=message) as found:
            lake.sql(statement, allowed_files=[root])
        assert "secret" not in str(found.value)


def test_a_path_is_not_a_list_of_roots(lake: paimon.Catalog, tmp_path: Path) -> None:
    with pytest.raises(paimon.InvalidRequest, match="not a list of names"):
        lake.sql("SELECT 1 AS x", allowed_files=tmp_path)  # type: ignore[arg-type]


def test_a_pattern_enters_no_link_to_a_directory_above(lake: paimon.Catalog, tmp_path: Path) -> None:
    folder = tmp_path / "in" / "deep"
    folder.mkdir()
    for name in ("here", "above"):
        (folder / name).symlink_to(folder if name == "here" else tmp_path / "in")
    pq.write_table(ROWS, folder / "rows.parquet")
    assert rows_of(lake, f"SELECT count(*) AS n FROM read_parquet('{folder}/**/rows.parquet')", folder.parent) == [
        {"n": 4}
    ]
