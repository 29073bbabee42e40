"""Files that the query engine reads itself: queries have the same rows as through Arrow, and no other file is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.drawn_tables import CHANGES, COLUMNS, NOT_SHARED, VALUES, batches, tables

import paimon
from paimon.adapters.queries.duckdb_queries import DuckDBQueries
from paimon.domain.errors import CorruptTable, InvalidRequest
from paimon.operations.read import engine_files
from paimon.ports.queries import SourceFiles
from paimon.sql.parse.parse_script import parse_script
from paimon.sql.plan.plan_query import PlannedQuery, plan_query, query_engine
from paimon.sql.run.run_statements import SqlSession
from paimon.table import Table

UNBOUNDED = ("label", "ratio", "size")  # which of 0.0 and -0.0 is the minimum depends on the order of rows
BOUNDS = ", ".join(f"min({name}) AS {name}, max({name}) AS {name}_" for name in VALUES if name not in UNBOUNDED)
CONDITIONS = [
    "size > 1", "size = 0", "size < 0", "size <> 1.5", "size >= 'NaN'::DOUBLE", "ratio > 1e30",
    "ratio = 'NaN'::FLOAT",
    "ratio BETWEEN -1 AND 1", "NOT size > 1", "isnan(size)", "size IS NULL", "word > 'B'", "word = ''",
    "word LIKE 'a%'",
    "code = 'a'", "label >= 'x'", "raw > 'a'::BLOB", "day < DATE '2000-01-01'",
    "at < TIMESTAMP '1970-01-01 00:00:00'",
    "zoned >= TIMESTAMPTZ '2026-01-01 00:00:00+00'", "money < 0", "amount = 0.001", "total > 1e30", "flag", "NOT flag",
    "tiny = 127", "number::BIGINT + tiny > 0", "id > 3", "part = 'p'", "part = ''", "part <> 'q'",
    "id = 2 AND size IS NOT NULL",
]  # fmt: skip
QUERIES = [
    "SELECT * FROM t WHERE {}",
    "SELECT id, size, word FROM t WHERE {}",
    "SELECT id, number, word, label FROM t WHERE {} OR id < 5",
    "SELECT part, count(*) AS n, min(number) AS low, max(word) AS high, sum(amount) AS s FROM t WHERE {} GROUP BY part",
    f"SELECT {BOUNDS} FROM t WHERE {{}} OR true",
    "SELECT min(id) AS a, max(word) AS b, min(day) AS c, max(total) AS d, min(raw) AS e, count(*) AS n FROM t",
    "SELECT a.id, b.word FROM (SELECT * FROM t WHERE {}) AS a JOIN t AS b ON a.number = b.number",
]


def run_without_files(session: SqlSession, planned: PlannedQuery) -> pa.Table:
    sources = {name: evolve(source, open_files=None) for name, source in planned.sources.items()}
    found: pa.Table = query_engine(session.state).run(planned.sql, sources).read_all()
    return found


def to_multiset(rows: pa.Table) -> list[str]:
    return sorted(repr(row) for row in zip(*(column.to_pylist() for column in rows.columns), strict=True))


def plan(session: SqlSession, query: str) -> PlannedQuery:
    (parsed,) = parse_script(query)
    return plan_query(session.state, parsed.statement, {})  # type: ignore[arg-type]


@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    table=tables(),
    writes=st.lists(st.tuples(batches(), st.sampled_from(CHANGES)), min_size=1, max_size=3),
    query=st.sampled_from(QUERIES),
    conditions=st.lists(st.sampled_from(CONDITIONS), min_size=2, max_size=6),
    has_other_types=st.booleans(),
    most_lost=st.sampled_from([0.2, 1.0]),
)
def test_queries_return_the_same_rows_as_through_arrow(
    tmp_path_factory: pytest.TempPathFactory,
    table: dict[str, Any],
    writes: list[tuple[list[dict[str, Any]], Callable[[Table], object]]],
    query: str,
    conditions: list[str],
    has_other_types: bool,
    most_lost: float,
) -> None:
    catalog = paimon.connect(tmp_path_factory.mktemp("lake"))
    catalog.create_database("default")
    columns = ", ".join(f"{name} {kind}" for name, kind in (COLUMNS | (NOT_SHARED if has_other_types else {})).items())
    made = catalog.create_table("default.t", columns, **table)
    for rows, change in writes:
        names = made.schema.names
        made.write(
            [{name: value for name, value in row.items() if name in names} for row in rows], missing_columns="null"
        )
        change(made)
        made = catalog.table("default.t")
    session = catalog.sql_session()
    for condition in conditions:
        planned = plan(session, query.format(condition).replace("label", made.schema.names[11]))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine_files, "_MOST_LOST", most_lost)
            found = query_engine(session.state).run(planned.sql, planned.sources).read_all()
        expected = run_without_files(session, planned)
        assert found.schema == expected.schema == query_engine(session.state).describe(planned.sql, planned.sources)
        assert to_multiset(found) == to_multiset(expected), planned.sql


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_statistics_without_nan_decide_nothing(tmp_path: Path, kind: str) -> None:
    sizes = [1.0, math.nan, -0.0, 0.0, None]
    rows = [{"id": number, "size": size} for number, size in enumerate(sizes)]
    session = make_session(tmp_path, f"id BIGINT NOT NULL, size {kind}", [rows])
    assert "READ_PARQUET" in explain(session, "SELECT id, size FROM t WHERE size > 5")
    found = {
        "SELECT id FROM t WHERE size > 5": [1],
        "SELECT id FROM t WHERE NOT size <= 1": [1],
        "SELECT id FROM t ORDER BY size DESC NULLS LAST LIMIT 1": [1],
        "SELECT t.id FROM t JOIN (SELECT 'NaN'::DOUBLE AS x) AS s ON size = x": [1],
        "SELECT id FROM t WHERE size = 0 ORDER BY id": [2, 3],
        "SELECT id FROM t WHERE size < 0": [],
        "SELECT CAST(size AS VARCHAR) AS id FROM t WHERE id IN (2, 3) ORDER BY t.id": ["-0.0", "0.0"],
        "SELECT CAST(max(size) AS VARCHAR) AS id FROM t": ["nan"],
    }
    assert {query: session.sql(query).to_arrow()["id"].to_pylist() for query in found} == found


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_a_maximum_is_nan_only_where_a_row_is(tmp_path: Path, kind: str) -> None:
    rows = [[{"id": 1, "size": 1.5}, {"id": 2, "size": None}], [{"id": 3, "size": -0.0}]]
    session = make_session(tmp_path, f"id BIGINT NOT NULL, size {kind}", rows)
    assert "itself reads 2 of 2 files" in explain(session, "SELECT max(size) FROM t")
    found = session.sql("SELECT max(size) AS high, min(size) AS low, max(id) AS last FROM t").to_arrow().to_pylist()
    assert found == [{"high": 1.5, "low": 0.0, "last": 3}]


def make_session(
    folder: Path, columns: str, writes: list[list[dict[str, Any]]], *, compact: bool = False, **declared: Any
) -> SqlSession:
    catalog = paimon.connect(folder)
    catalog.create_database("default")
    table = catalog.create_table("default.t", columns, **declared)
    for rows in writes:
        table.write(rows)
    if compact:
        table.compact(full=True)
    return catalog.sql_session()


def explain(session: SqlSession, query: str) -> str:
    return "\n".join(session.sql(f"EXPLAIN {query}").to_arrow()["plan"].to_pylist())


TWO = [[{"id": 1, "word": "a"}], [{"id": 1, "word": "b"}, {"id": 2, "word": "c"}]]
KEYED: dict[str, Any] = {"primary_keys": ["id"], "options": {"bucket": 1, "write-only": True}}
READ: dict[str, tuple[dict[str, Any], str | None]] = {
    "append": ({}, "2 of 2 files"),
    "compacted": ({"primary_keys": ["id"], "options": {"bucket": 1}, "compact": True}, "1 of 1 file"),
    "overlapping runs": (KEYED, None),
    "other format": ({"options": {"file.format": "orc"}}, None),
    "defaults": ({"options": {"fields.word.default-value": "x"}}, None),
    "lost files are ignored": ({"options": {"scan.ignore-lost-files": "true"}}, None),
}


@pytest.mark.parametrize("case", READ)
def test_files_without_merge_are_read_by_the_engine(tmp_path: Path, case: str) -> None:
    declared, expected = READ[case]
    session = make_session(tmp_path, "id BIGINT NOT NULL, word STRING", TWO, **declared)
    lines = explain(session, "SELECT * FROM t")
    assert (f"the query engine itself reads {expected}" in lines) == (expected is not None)
    assert ("READ_PARQUET" in lines) == (expected is not None)


OPEN_RUNS = [
    [{"id": number, "size": float(number), "word": f"w{number}"} for number in range(20)],
    [{"id": 3, "size": -1.0, "word": "newer"}, {"id": 30, "size": 1.0, "word": "added"}],
]


def open_source(session: SqlSession, query: str) -> SourceFiles:
    """Open the files of the only table of a query."""
    (source,) = plan(session, query).sources.values()
    assert source.open_files is not None
    return source.open_files(True)


@pytest.mark.parametrize(
    ("options", "kept"),
    [({}, "newer"), ({"sequence.field": "size"}, "w3"), ({"changelog-producer": "lookup"}, "newer")],
)
def test_the_newest_rows_of_open_runs_are_read_by_the_engine(
    tmp_path: Path, options: dict[str, Any], kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns, declared = "id BIGINT NOT NULL, size DOUBLE, word STRING", KEYED["options"] | options
    session = make_session(tmp_path, columns, OPEN_RUNS, primary_keys=["id"], options=declared)
    session.sql("DELETE FROM t WHERE id = 5")
    query = "SELECT id, word FROM t"
    assert "newest rows of 3 files itself" in explain(session, query)
    assert open_source(session, f"{query} WHERE id = 5").files == ()  # a merge reads a part of the keys
    opened = open_source(session, query)
    assert opened.open_rest is None and len(opened.files) == 2  # the file of the delete has no row of the table
    assert sum(map(len, opened.lost_rows.values())) == 2
    expected = {row["id"]: row["word"] for rows in OPEN_RUNS for row in rows if row["id"] != 5} | {3: kept}
    for found in (session.sql(query).to_arrow(), run_without_files(session, plan(session, query))):
        assert dict(zip(*found.to_pydict().values(), strict=True)) == expected
    assert session.sql(f"{query} WHERE id = 3").to_arrow().to_pylist() == [{"id": 3, "word": kept}]
    # A planted mistake: a merge that drops no row.
    monkeypatch.setattr(engine_files, "find_lost_rows", lambda *_: [pa.array([], pa.int64())] * 3)
    assert session.sql(query).to_arrow().num_rows == 23


def test_newest_rows_by_nan_are_those_of_the_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_files, "_MOST_LOST", 1.0)
    orders = list(enumerate(product([math.nan, 1.0, 2.0], repeat=3), 100))
    ranges = [(0, 127, 0), (200, 400, None), (0, 127, 1), (99, 300, 2)]  # two are equal: their order in runs counts
    runs = [
        [{"_PLACE": key, "size": 0.0, "id": key, "run": run} for key in (low, high)]
        + [{"_PLACE": key, "size": s[place], "id": key, "run": run} for key, s in orders if place is not None]
        for run, (low, high, place) in enumerate(ranges)
    ]
    columns = "_PLACE INT NOT NULL, size DOUBLE, id INT, run INT"
    options = KEYED["options"] | {"sequence.field": "size"}
    session = make_session(tmp_path, columns, runs, primary_keys=["_PLACE"], options=options)
    query = "SELECT id, run FROM t ORDER BY id"
    assert open_source(session, query).open_rest is None
    expected = run_without_files(session, plan(session, query)).to_pylist()
    assert session.sql(query).to_arrow().to_pylist() == expected


@pytest.mark.parametrize("column", ["file_index", "FILE_ROW_NUMBER"])
def test_columns_of_the_table_are_not_those_by_which_the_engine_skips_rows(tmp_path: Path, column: str) -> None:
    runs = [[row | {column: 7} for row in rows] for rows in OPEN_RUNS]
    columns = f"id BIGINT NOT NULL, size DOUBLE, word STRING, {column} INT"
    session = make_session(tmp_path, columns, runs, **KEYED)
    assert session.sql("SELECT count(*) AS n, max(size) AS s FROM (SELECT id, size FROM t)").to_arrow().to_pylist() == [
        {"n": 21, "s": 19.0}
    ]


def test_merged_rows_are_read_where_many_rows_are_lost(tmp_path: Path) -> None:
    session = make_session(tmp_path, "id BIGINT NOT NULL, word STRING", TWO, **KEYED)
    opened = open_source(session, "SELECT * FROM t")
    assert opened.files == () and opened.open_rest is not None
    assert session.sql("SELECT count(*) AS n FROM t WHERE word <> 'a'").to_arrow()["n"].to_pylist() == [2]


def test_files_with_deletion_vectors_and_of_other_schemas_are_read_by_the_scan(tmp_path: Path) -> None:
    options = {"bucket": 1, "bucket-key": "id", "deletion-vectors.enabled": True}
    session = make_session(tmp_path, "id BIGINT NOT NULL, word STRING", TWO, options=options)
    session.sql("DELETE FROM t WHERE word = 'b'")
    assert "itself reads 1 of 2 files" in explain(session, "SELECT * FROM t")
    session.sql("ALTER TABLE t RENAME COLUMN word TO text")
    session.sql("INSERT INTO t VALUES (3, 'd')")
    assert "itself reads 1 of 3 files" in explain(session, "SELECT * FROM t")
    assert "itself reads 2 of 3 files" in explain(session, "SELECT id FROM t")
    found = session.sql("SELECT * FROM t ORDER BY id").to_arrow().to_pylist()
    assert found == [{"id": 1, "text": "a"}, {"id": 2, "text": "c"}, {"id": 3, "text": "d"}]


@pytest.mark.parametrize(
    "kind", ["TIMESTAMP(3)", "TIMESTAMP(9)", "TIME", "ARRAY<INT>", "ROW<a INT>", "TIMESTAMP_LTZ(9)"]
)
def test_columns_of_other_types_are_read_by_the_scan(tmp_path: Path, kind: str) -> None:
    session = make_session(tmp_path, f"id BIGINT NOT NULL, other {kind}", [[{"id": 1, "other": None}]])
    assert "READ_PARQUET" not in explain(session, "SELECT * FROM t")
    assert "READ_PARQUET" in explain(session, "SELECT id FROM t")


def test_columns_of_partitions_that_statistics_do_not_prove_are_read_by_the_scan(tmp_path: Path) -> None:
    rows = [[{"id": 1, "day": day} for day in (None, "x", "y")]]
    session = make_session(tmp_path, "id BIGINT NOT NULL, day STRING", rows, partition_keys=["day"])
    lines = explain(session, "SELECT * FROM t")
    assert "PYTHON_ARROW_SCAN" in lines and "READ_PARQUET" in lines  # the partition of null has no bounds
    found = session.sql("SELECT day FROM t ORDER BY day NULLS FIRST").to_arrow()["day"].to_pylist()
    assert found == [None, "x", "y"]


def data_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("default.db/t/**/data-*.parquet"))


HOSTILE = [
    "SELECT * FROM read_parquet('{file}')",
    "SELECT * FROM '{file}'",
    "SELECT t.id FROM t, read_parquet('{file}')",
    "SELECT * FROM parquet_metadata('{file}')",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM query('SELECT * FROM read_parquet(''{file}'')')",
    "SELECT * FROM read_parquet('paimon-query://00000000000000000000000000000000/0')",
    "SELECT * FROM read_parquet('paimon-query://*/0')",
    "SELECT * FROM read_parquet('paimon-query://*')",
    "SELECT * FROM glob('paimon-query://**') AS g, t",
]


@pytest.mark.parametrize("query", HOSTILE)
def test_a_query_reads_no_file_by_name(tmp_path: Path, query: str) -> None:
    session = make_session(tmp_path, "id BIGINT NOT NULL, word STRING", TWO)
    running = session.sql("SELECT * FROM t").to_batches()
    next(iter(running))
    try:
        found = session.sql(query.format(file=data_files(tmp_path)[0])).to_arrow()
    except (InvalidRequest, paimon.NotFound):
        return
    assert "glob" in query and found.num_rows == 0


def test_a_query_does_not_see_the_files_of_another_one(tmp_path: Path) -> None:
    session = make_session(tmp_path, "id BIGINT NOT NULL, word STRING", TWO)
    running = session.sql("SELECT * FROM t").to_batches()
    next(iter(running))
    assert session.sql("SELECT sql FROM duckdb_views() WHERE NOT internal").to_arrow().num_rows == 0
    settings_of_engine = session.sql("SELECT value FROM duckdb_settings() WHERE name LIKE 'allowed%'").to_arrow()
    texts = " ".join(settings_of_engine["value"].to_pylist())
    assert "'paimon-query://'" in texts and str(tmp_path) not in texts


def test_names_of_files_end_with_their_query(tmp_path: Path) -> None:
    session = make_session(tmp_path, "id BIGINT NOT NULL, word STRING", TWO)
    planned = plan(session, "SELECT word FROM t")
    engine = DuckDBQueries(256 * 1024 * 1024, 1)
    reader = engine.run(planned.sql, planned.sources)
    name, *_ = engine._files._files
    assert name.startswith("paimon-query://")
    reader.read_all()
    assert not engine._files._files
    engine.run(planned.sql, planned.sources)  # the reader is dropped
    assert not engine._files._files
    with pytest.raises(InvalidRequest):
        engine.run(f"SELECT * FROM read_parquet('{name}')", {}).read_all()


def damage(path: Path, change: Callable[[bytes], bytes]) -> None:
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(change(data))


ROWS = [[{"id": i, "word": "w" * i} for i in range(99)]]
DAMAGED: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "cut": lambda path: damage(path, lambda data: data[: len(data) // 2]),
    "other size": lambda path: damage(path, lambda data: data + b"x"),
    "page": lambda path: damage(path, lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:]),
    "footer": lambda path: damage(path, lambda data: data[:-400] + bytes(392) + data[-8:]),
    "empty": lambda path: damage(path, lambda data: b""),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_files_are_named(tmp_path: Path, case: str) -> None:
    session = make_session(tmp_path, "id BIGINT NOT NULL, word STRING", ROWS)
    assert "READ_PARQUET" in explain(session, "SELECT * FROM t")
    (path,) = data_files(tmp_path)
    DAMAGED[case](path)
    with pytest.raises(CorruptTable) as caught:
        session.sql("SELECT sum(id) AS s, max(word) AS w FROM t").to_arrow()
    assert path.name in caught.value.message


WITH = [
    "WITH a AS (SELECT id FROM t) SELECT id, word FROM a JOIN t USING (id)",
    "WITH RECURSIVE r(n) AS (SELECT min(id) FROM t UNION ALL SELECT n + 1 FROM r WHERE n < 2) "
    "SELECT r.n AS id, word FROM r JOIN t ON r.n = t.id",
    "/* first */ SELECT id, word FROM t",
    "(SELECT id, word FROM t WHERE id = 1) UNION ALL (SELECT id, word FROM t WHERE id = 2)",
    "FROM t SELECT id, word",
]


@pytest.mark.parametrize("query", WITH)
def test_queries_may_begin_in_other_ways(tmp_path: Path, query: str) -> None:
    session = make_session(tmp_path, "id BIGINT NOT NULL, word STRING", [TWO[1]])
    assert "READ_PARQUET" in explain(session, query)
    assert to_multiset(session.sql(query).to_arrow()) == ["(1, 'b')", "(2, 'c')"]


def test_an_expression_that_is_read_several_times_is_computed_once(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("default", exist_ok=True)
    session = catalog.sql_session()
    for name in "abcde":
        table = catalog.create_table(f"default.{name}", f"id BIGINT, {name}v INT")
        table.write([{"id": number, f"{name}v": number} for number in range(1000)])
    query = (
        'WITH r AS (SELECT av, bv, cv, \'"__paimon_0" AS "\' AS w FROM a, b, c, d, e'
        " WHERE a.id = b.id AND b.id = c.id AND c.id = d.id AND d.id = e.id AND dv > 2)"
        " SELECT avg(av) AS s, max(w) AS w FROM r GROUP BY bv UNION ALL SELECT max(bv), 'g' FROM r GROUP BY cv"
        " UNION ALL SELECT count(*), 'n' FROM r ORDER BY s, w LIMIT 2"
    )
    assert session.sql(query).to_arrow().to_pydict() == {"s": [3, 3], "w": ['"__paimon_0" AS "', "g"]}
    assert "CTE Name: r" in str(session.sql(f"EXPLAIN {query}").to_arrow().to_pylist())


def test_columns_of_all_types_are_described_as_they_are_returned(tmp_path: Path) -> None:
    session = make_session(tmp_path, "id BIGINT NOT NULL", [[{"id": 1}]])
    values = "id, NULL AS n, {'a b': [id]} AS r, MAP {'k': id} AS m, INTERVAL 1 DAY AS i, 'a'::ENUM('a', 'it''s') AS e"
    result = session.sql(f"SELECT {values}, 1.5::DECIMAL(5, 2) AS d, TIMESTAMPTZ '2026-01-01' AS t, id AS id FROM t")
    assert result.arrow_schema == result.to_arrow().schema
    assert result.arrow_schema.names == ["id", "n", "r", "m", "i", "e", "d", "t", "id"]


def test_scans_of_a_query_leave_half_of_the_memory_to_the_query_engine(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path, memory_budget="64 mb")
    catalog.create_database("d")
    catalog.create_table("d.t", "id INT").write([{"id": 1}])
    session = catalog.sql_session()
    engine = query_engine(session.state)
    for name in ("d.t", "d.t /*+ OPTIONS('incremental-between'='0,1') */"):
        (source,) = plan(session, f"SELECT id FROM {name} ORDER BY id").sources.values()
        assert source.origin.scan.context.engine.memory.bytes == engine.memory_bytes == 32 << 20
        assert source.origin.table.engine.memory.bytes == 64 << 20
