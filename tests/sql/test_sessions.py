"""`Catalog.sql`: sessions, results, frames and bad input."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.case_lists import mark_products

import paimon
from paimon.domain.errors import InvalidRequest
from paimon.domain.types.sql_tokens import blank_comments, split_statements, tokenize
from paimon.domain.types.type_text import format_field
from paimon.sql.parse.parse_script import list_statement_words, parse_script
from paimon.sql.plan.plan_query import PlannedQuery, plan_query
from paimon.sql.run import query_changes
from paimon.verbs.verb_table import CATALOG_PROCEDURES, PROCEDURES


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    catalog = paimon.connect(tmp_path)
    catalog.sql("CREATE TABLE t (id BIGINT, word STRING); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    return catalog


def test_a_result_has_the_forms_of_a_scan(catalog: paimon.Catalog) -> None:
    result = catalog.sql("SELECT id, word FROM t ORDER BY id")
    rows = [{"id": 1, "word": "a"}, {"id": 2, "word": "b"}]
    assert result.schema.names == ["id", "word"]
    assert result.to_arrow().to_pylist() == rows
    assert result.to_pandas().to_dict("records") == rows
    assert result.to_polars().to_dicts() == rows
    assert pa.table(result).to_pylist() == rows
    assert result.count() == 2
    assert result.head(1).to_pylist() == rows[:1]
    assert [batch.num_rows for batch in result] == [2]


def test_a_result_is_shown_as_text_and_as_a_card(catalog: paimon.Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    result = catalog.sql("SELECT id, word FROM t ORDER BY id")
    result.show(1)
    assert capsys.readouterr().out.splitlines() == ["id  word", "--  ----", " 1  a", "…"]
    assert repr(result) == "SqlResult('SELECT id, word FROM t ORDER BY id')"
    assert "<table" in result._repr_html_()
    assert "cannot be read" in catalog.sql("SELECT CAST(word AS INT) AS n FROM t")._repr_html_()


def test_a_query_reads_the_snapshot_of_its_planning(catalog: paimon.Catalog) -> None:
    result = catalog.sql("SELECT count(word) AS n FROM t")
    catalog.sql("INSERT INTO t VALUES (3, 'c')")
    assert result.to_arrow()["n"].to_pylist() == [2]
    assert result.to_arrow()["n"].to_pylist() == [2]
    assert catalog.sql("SELECT count(word) AS n FROM t").to_arrow()["n"].to_pylist() == [3]


def test_frames_of_every_kind_are_tables(catalog: paimon.Catalog) -> None:
    table = pa.table({"id": [2], "more": ["x"]})
    frames: list[Any] = [table, table.to_pandas(), pl.from_arrow(table), table.to_pylist(), table.to_reader()]
    for frame in frames:
        rows = catalog.sql("SELECT t.word, f.more FROM t JOIN f ON t.id = f.id", f=frame).to_arrow()
        assert rows.to_pylist() == [{"word": "b", "more": "x"}]
    assert catalog.sql("SELECT more FROM t", t=table).to_arrow()["more"].to_pylist() == ["x"]
    with pytest.raises(paimon.InvalidRequest, match="with time travel"):
        catalog.sql("SELECT * FROM f VERSION AS OF 1", f=table)


def test_text_of_data_never_becomes_sql(catalog: paimon.Catalog) -> None:
    evil = "'); DROP TABLE t; --"
    frame = pa.table({"id": [1], "word": [evil]})
    catalog.sql("INSERT INTO t SELECT * FROM f", f=frame)
    catalog.sql("UPDATE t SET word = (SELECT max(word || 'x') FROM f) WHERE word IN (SELECT word FROM f)", f=frame)
    assert catalog.sql("SELECT word FROM t WHERE word LIKE '%DROP%'").to_arrow()["word"].to_pylist() == [evil + "x"]
    catalog.create_table("default.odd", pa.schema([('a"b', pa.int64()), ("c`d", pa.string()), ("e f", pa.int64())]))
    catalog.sql("INSERT INTO odd VALUES (1, 'x', 2)")
    rows = catalog.sql('SELECT "a""b", `c``d`, "e f" FROM odd WHERE "e f" = 2 AND `a"b` < 5').to_arrow()
    assert rows.to_pylist() == [{'a"b': 1, "c`d": "x", "e f": 2}]


def test_sessions_are_independent(catalog: paimon.Catalog) -> None:
    first, second = catalog.sql_session(), catalog.sql_session()
    first.sql("CREATE VIEW v AS SELECT 1 AS a; CREATE DATABASE other; USE other")
    with pytest.raises(paimon.NotFound):
        second.sql("SELECT * FROM v")
    assert second.sql("SHOW TABLES").to_arrow()["table"].to_pylist() == ["t"]
    again = pickle.loads(pickle.dumps(catalog))
    assert again.sql("SELECT count(*) AS n FROM t").to_arrow()["n"].to_pylist() == [2]


def test_a_statement_that_fails_keeps_those_before(catalog: paimon.Catalog) -> None:
    with pytest.raises(paimon.InvalidRequest) as caught:
        catalog.sql("INSERT INTO t VALUES (3, 'c');\nINSERT INTO t VALUES ('x', 'd');\nDROP TABLE t")
    assert caught.value.__notes__ == ["The statement begins in line 2 of the script."]
    assert catalog.sql("SELECT count(*) AS n FROM t").to_arrow()["n"].to_pylist() == [3]
    with pytest.raises(paimon.InvalidRequest, match="no statement"):
        catalog.sql(" -- nothing\n;")


def test_procedures_run_on_a_table(catalog: paimon.Catalog) -> None:
    table = catalog.table("default.t")
    assert table.call("sys.create_tag", "one", time_retained="1 d").to_pylist() == [{"tag": "one", "snapshot": 1}]
    assert "one" in table.tags
    assert table.call("expire_snapshots", retain_max=1)["expired"].to_pylist() == [0]
    assert table.call("sys.help").num_rows == len(PROCEDURES | CATALOG_PROCEDURES) + 1
    assert table.call("help", "compact").num_rows > 3
    with pytest.raises(paimon.NotFound, match="Did you mean 'create_tag'"):
        table.call("sys.create_tags", "two")
    with pytest.raises(paimon.InvalidRequest, match="of type integer"):
        table.call("sys.rescale", "many")


def test_columns_that_differ_in_case_only_are_refused(catalog: paimon.Catalog) -> None:
    catalog.create_table("default.twins", "a INT, A INT")
    with pytest.raises(paimon.Unsupported, match="'a' and 'A'"):
        catalog.sql("SELECT * FROM twins")
    catalog.sql("INSERT INTO twins VALUES (1, 2)")
    assert catalog.table("default.twins").scan().to_arrow().to_pylist() == [{"a": 1, "A": 2}]


def test_a_created_table_is_shown_as_a_statement_that_creates_it_again(catalog: paimon.Catalog) -> None:
    catalog.sql("""CREATE TABLE a (`odd ``name` STRING COMMENT 'it''s', n DECIMAL(5, 1) DEFAULT '1.5',
        r ROW<x INT, y ARRAY<TIMESTAMP_LTZ(3)>>, k BIGINT, d DATE, PRIMARY KEY (k, d) NOT ENFORCED)
        COMMENT 'a ''table''' PARTITIONED BY (d) WITH ('bucket' = '2')""")
    (statement,) = catalog.sql("SHOW CREATE TABLE a").to_arrow()["statement"].to_pylist()
    catalog.sql(statement.replace("`a`", "`b`", 1))
    first, second = (catalog.table(f"default.{name}").table_schema for name in "ab")
    assert [format_field(f) for f in first.fields] == [format_field(f) for f in second.fields]
    assert (first.primary_keys, first.partition_keys, first.options, first.comment) == (
        second.primary_keys, second.partition_keys, second.options, second.comment,
    )  # fmt: skip


def test_every_type_is_inserted(catalog: paimon.Catalog) -> None:
    catalog.sql("""CREATE TABLE y (a TINYINT, b SMALLINT, c FLOAT, d DECIMAL(10, 2), e BOOLEAN, f CHAR(3), g BYTES,
        h DATE, i TIME(3), j TIMESTAMP(0), k TIMESTAMP(3), l TIMESTAMP(6), m TIMESTAMP(9), n TIMESTAMP_LTZ(3),
        o ARRAY<INT>, p MAP<STRING, INT>, q MULTISET<STRING>, r ROW<x INT, y STRING>)""")
    catalog.sql("""INSERT INTO y VALUES (1, 2, 1.5, '3.456', true, 'abc', 'xy', '2026-01-01', '10:11:12.123',
        '2026-01-01 10:11:12', '2026-01-01 10:11:12.123', '2026-01-01 10:11:12.123456', '2026-01-01 10:11:12.123456789',
        '2026-01-01 10:11:12+02:00', [1, NULL], MAP {'a': 1}, MAP {'z': 2}, {'x': 1, 'y': 'q'})""")
    row = catalog.table("default.y").scan().to_arrow().cast(
        pa.schema([f.with_type(pa.string()) if pa.types.is_temporal(f.type) else f
                   for f in catalog.table("default.y").arrow_schema])
    ).to_pylist()[0]  # fmt: skip
    assert [str(row[name]) for name in "dghijklmn"] == [
        "3.46", "b'xy'", "2026-01-01", "10:11:12.123", "2026-01-01 10:11:12", "2026-01-01 10:11:12.123",
        "2026-01-01 10:11:12.123456", "2026-01-01 10:11:12.123456789", "2026-01-01 08:11:12.000Z",
    ]  # fmt: skip
    assert (row["o"], row["p"], row["q"], row["r"]) == ([1, None], [("a", 1)], [("z", 2)], {"x": 1, "y": "q"})
    for wrong in ("(a) VALUES (300)", "(f) VALUES ('long')", "(d) VALUES (123456789012)", "(h) VALUES ('x')"):
        with pytest.raises(paimon.InvalidRequest):
            catalog.sql(f"INSERT INTO y {wrong}")


WORDS = st.sampled_from(
    [word for text in list_statement_words() for word in text.split()]
    + ["t", "(", ")", ",", ";", "'", "'a'", "`x`", '"', "1", "-1", "=", "=>", ".", "$", "/*+", "*/", "--", "\n", "AS",
       "OF", "FROM", "INTO", "VALUES", "PARTITION", "OPTIONS", "INT", "PRIMARY", "KEY", "NULL", "WHERE", "é", "\x00"]
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(text=st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=14).map(" ".join)))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        parse_script(text)
    except paimon.PaimonError as error:
        assert str(error)


@settings(max_examples=50)
@given(text=st.text(alphabet="a'`\"-*/;\n 1", max_size=40))
def test_comments_become_blanks_of_the_same_length(text: str) -> None:
    blank = blank_comments(text)
    assert len(blank) == len(text)
    assert blank.count("\n") == text.count("\n")
    try:
        tokens = tokenize(text)
    except paimon.InvalidRequest:
        return
    assert all(text[t.start : t.end] == blank[t.start : t.end] for t in tokens)
    assert sum(t.text == ";" and t.kind == "symbol" for t in tokens) + 1 >= len(split_statements(text))


DEEP = {
    "parentheses": "SELECT " + "(" * 3000 + "1" + ")" * 3000,
    "signs": "SELECT " + "- " * 5000 + "1",
    "unions": "SELECT 1" + " UNION ALL SELECT 1" * 500,
    "conditions": "SELECT * FROM t WHERE id = 0" + " OR id = 1" * 1000,
    "types": "CREATE TABLE x (a " + "ARRAY<" * 500 + "INT" + ">" * 500 + ")",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_deep_nesting_runs_or_is_refused(catalog: paimon.Catalog, text: str) -> None:
    try:
        catalog.sql(text).to_arrow()
    except paimon.PaimonError as error:
        assert str(error)


def test_a_statement_that_is_too_long_is_refused(catalog: paimon.Catalog) -> None:
    with pytest.raises(paimon.InvalidRequest, match="The limit is"):
        catalog.sql("SELECT '" + "x" * 10_000_001 + "'")


CORRELATED = [
    "DELETE FROM orders AS o WHERE EXISTS (SELECT 1 FROM rates r WHERE r.id = o.rate AND r.limit_ < o.amount)",
    "DELETE FROM orders WHERE NOT EXISTS (SELECT 1 FROM rates r WHERE r.id = orders.rate)",
    "DELETE FROM orders WHERE amount > (SELECT avg(p.amount) FROM orders p WHERE p.day = orders.day)",
    "DELETE FROM orders WHERE amount + 1 IN (SELECT limit_ FROM rates)",
    "UPDATE orders SET amount = (SELECT max(r.limit_) FROM rates r WHERE r.id = orders.rate), word = word || '!' "
    "WHERE rate IS NOT NULL",
    "UPDATE orders AS o SET amount = amount + (SELECT count(*) FROM orders p WHERE p.day = o.day AND p.id < o.id)",
    "UPDATE orders SET word = (SELECT max(day) FROM orders) || word WHERE id % 3 = 0",
]


CHANGED_TABLES = {
    "keyed": ", PRIMARY KEY (`day`, id) NOT ENFORCED) PARTITIONED BY (`day`) WITH ('bucket' = '2')",
    "rewritten": ") PARTITIONED BY (`day`)",
    "marked": ") WITH ('deletion-vectors.enabled' = 'true', 'target-file-size' = '1 kb')",
    "buckets": ") WITH ('bucket' = '2', 'bucket-key' = 'id', 'file.format' = 'avro')",
}


@pytest.mark.parametrize(("statement", "table"), mark_products(CORRELATED, CHANGED_TABLES, always=CORRELATED[::2]))
def test_subqueries_that_name_the_changed_row_equal_those_of_duckdb(tmp_path: Path, statement: str, table: str) -> None:
    chance = random.Random(7)
    days = [f"2026-01-0{n}" for n in range(1, 4)]
    orders = pa.Table.from_pylist(
        [
            {"day": chance.choice(days), "id": n, "rate": chance.choice([1, 2, 3, 4, None]),
             "amount": chance.choice([None, *range(20)]), "word": chance.choice(["a", None])}
            for n in range(60)
        ]
    )  # fmt: skip
    rates = pa.table({"id": [1, 2, 3], "limit_": [5, 10, None]})
    catalog = paimon.connect(tmp_path)
    catalog.sql(
        f"CREATE TABLE orders (`day` STRING, id BIGINT, rate BIGINT, amount BIGINT, word STRING{CHANGED_TABLES[table]};"
        "CREATE TABLE rates (id BIGINT, limit_ BIGINT); INSERT INTO rates SELECT * FROM new_rates;"
        "INSERT INTO orders SELECT * FROM new_orders WHERE id < 20;"
        "INSERT INTO orders SELECT * FROM new_orders WHERE id >= 20",
        new_rates=rates, new_orders=orders,
    )  # fmt: skip
    with duckdb.connect() as peer:
        peer.sql("CREATE TABLE orders AS SELECT * FROM orders")
        peer.sql("CREATE TABLE rates AS SELECT * FROM rates")
        ((changed,),) = peer.execute(statement).fetchall()
        expected = peer.sql("SELECT * FROM orders ORDER BY day, id").fetchall()
    assert changed
    assert catalog.sql(statement).to_arrow()["rows"].to_pylist() == [changed]
    found = catalog.sql("SELECT * FROM orders ORDER BY `day`, id").to_arrow().to_pylist()
    assert [tuple(row.values()) for row in found] == expected


@pytest.mark.parametrize("key", [", PRIMARY KEY (id) NOT ENFORCED", ""])
def test_a_subquery_may_have_many_rows(catalog: paimon.Catalog, key: str) -> None:
    catalog.sql(f"CREATE TABLE k (id BIGINT{key}); INSERT INTO k VALUES (1), (150000)")
    numbers = pa.table({"n": range(2, 200_000)})
    done = catalog.sql("DELETE FROM k WHERE id IN (SELECT n FROM numbers)", numbers=numbers)
    assert done.to_arrow()["rows"].to_pylist() == [1]
    assert catalog.sql("SELECT id FROM k").to_arrow()["id"].to_pylist() == [1]


def test_a_clause_of_a_merge_takes_a_limited_number_of_values(catalog: paimon.Catalog) -> None:
    numbers = pa.table({"id": range(2, 200_000)})
    with pytest.raises(InvalidRequest, match="more than 100,000 rows"):
        catalog.sql(
            "MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id "
            "WHEN MATCHED AND t.id IN (SELECT id FROM numbers) THEN DELETE",
            numbers=numbers,
        )


def test_a_change_of_another_user_runs_the_query_again(
    catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.sql("CREATE TABLE a (k BIGINT, n BIGINT); INSERT INTO a VALUES (1, 0), (2, 0)")
    plans: list[PlannedQuery] = []

    def plan_and_write(*arguments: Any) -> PlannedQuery:
        plans.append(plan_query(*arguments))
        if len(plans) == 1:
            catalog.table("default.a").write([{"k": 2, "n": 7}])
        return plans[-1]

    monkeypatch.setattr(query_changes, "plan_query", plan_and_write)
    done = catalog.sql("UPDATE a SET n = (SELECT sum(u.n) + 1 FROM a AS u WHERE u.k = a.k)")
    assert done.to_arrow().to_pylist() == [{"rows": 3, "snapshot": 3}]
    assert len(plans) == 2
    assert catalog.sql("SELECT k, n FROM a ORDER BY k").to_arrow()["n"].to_pylist() == [1, 8, 8]


def test_pivot_and_unpivot_are_statements(catalog: paimon.Catalog) -> None:
    rows = catalog.sql("PIVOT t ON word USING sum(id)").to_arrow().to_pylist()
    assert rows == [{"a": 1, "b": 2}]
    assert catalog.sql("UNPIVOT t ON id INTO NAME n VALUE v").count() == 2


def test_frames_and_parameters_may_have_the_name_of_the_argument(catalog: paimon.Catalog) -> None:
    assert catalog.sql("SELECT * FROM text", text=pa.table({"a": [1]})).to_arrow().to_pylist() == [{"a": 1}]
    assert catalog.table("default.t").call("help", procedure="compact").num_rows > 3


def test_partitions_are_shown_in_the_order_of_their_type(tmp_path: Path) -> None:
    session = paimon.connect(tmp_path / "lake").sql_session()
    session.sql("CREATE TABLE t (id INT, hour INT, `day` STRING) PARTITIONED BY (hour, `day`)")
    session.sql("INSERT INTO t VALUES (1, 10, 'b'), (2, 9, 'a'), (3, 10, 'a'), (4, -1, 'a'), (5, NULL, 'a')")
    shown = session.sql("SHOW PARTITIONS t").to_arrow()["partition"].to_pylist()
    assert shown[:4] == ["hour=-1/day=a", "hour=9/day=a", "hour=10/day=a", "hour=10/day=b"] and len(shown) == 5
    assert session.sql("SELECT `partition` FROM t$partitions").to_arrow()["partition"].to_pylist() == shown
    buckets = session.sql("SELECT `partition` FROM t$buckets").to_arrow()["partition"].to_pylist()
    assert buckets[:4] == ["{-1, a}", "{9, a}", "{10, a}", "{10, b}"]
