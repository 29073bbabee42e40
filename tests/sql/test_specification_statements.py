"""The statements that the documentation of Paimon prints, as printed, with the results that it prints.

Only the path of the warehouse differs. `REFUSED` lists the statements that cannot run as printed, with the reason.
All statements run twice: DuckDB evaluates their queries, or in nightly runs Spark.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.case_lists import mark_nightly
from support.sql_engines import ENGINES, SqlEngine, open_engine

import paimon

SPECIFICATION = """
CREATE CATALOG my_catalog WITH (
    'type' = 'paimon',
    'warehouse' = '/your/path'
);
USE CATALOG my_catalog;

CREATE TABLE my_table (
    k INT PRIMARY KEY NOT ENFORCED,
    f0 INT,
    f1 STRING
);

INSERT INTO my_table VALUES (1, 11, '111');

CREATE TABLE part_t (
    f0 INT,
    f1 STRING,
    dt STRING
) PARTITIONED BY (dt);

INSERT INTO part_t VALUES (1, '11', '20240514');
"""
UNDERSTAND_FILES = """
CREATE CATALOG paimon_files WITH (
'type' = 'paimon',
'warehouse' = '/your/path'
);

USE CATALOG paimon_files;

CREATE TABLE T (
  id BIGINT,
  a INT,
  b STRING,
  dt STRING COMMENT 'timestamp string in format yyyyMMdd',
  PRIMARY KEY(id, dt) NOT ENFORCED
) PARTITIONED BY (dt);

INSERT INTO T VALUES (1, 10001, 'varchar00001', '20230501');

INSERT INTO T VALUES
(2, 10002, 'varchar00002', '20230502'),
(3, 10003, 'varchar00003', '20230503'),
(4, 10004, 'varchar00004', '20230504'),
(5, 10005, 'varchar00005', '20230505'),
(6, 10006, 'varchar00006', '20230506'),
(7, 10007, 'varchar00007', '20230507'),
(8, 10008, 'varchar00008', '20230508'),
(9, 10009, 'varchar00009', '20230509'),
(10, 10010, 'varchar00010', '20230510');
"""
LAYOUT = """
SET 'execution.runtime-mode' = 'streaming';
SET 'table.exec.sink.upsert-materialize'='NONE';
SET 'execution.checkpointing.interval'='60 s';
set parallelism.default=1;
SET 'sql-client.execution.result-mode' = 'tableau';

CREATE CATALOG paimon_layout WITH (
    'type' = 'paimon',
    'warehouse' = '/your/path'
    );
USE CATALOG paimon_layout;
create database if not exists layout;
CREATE TABLE if not exists paimon_layout.layout.layout1(
 `id` Int,
  `name` String,
  `age` Int,
   `dt` String,
   PRIMARY KEY (id,dt) NOT ENFORCED
) PARTITIONED BY (dt) with  (
'bucket' = '1',
'changelog-producer'='input'
);
"""
SEQUENCE_GROUPS = """
CREATE TABLE T (
    k INT,
    a INT,
    b INT,
    g_1 INT,
    c INT,
    d INT,
    g_2 INT,
    PRIMARY KEY (k) NOT ENFORCED
) WITH (
    'merge-engine'='partial-update',
    'fields.g_1.sequence-group'='a,b',
    'fields.g_2.sequence-group'='c,d'
);

INSERT INTO T VALUES (1, 1, 1, 1, 1, 1, 1);

-- g_2 is null, c, d should not be updated
INSERT INTO T VALUES (1, 2, 2, 2, 2, 2, CAST(NULL AS INT));

SELECT * FROM T; -- output 1, 2, 2, 2, 1, 1, 1

-- g_1 is smaller, a, b should not be updated
INSERT INTO T VALUES (1, 3, 3, 1, 3, 3, 3);

SELECT * FROM T; -- output 1, 2, 2, 2, 3, 3, 3
"""
GROUP_AGGREGATION = """
CREATE TABLE T (
          k INT,
          a INT,
          b INT,
          c INT,
          d INT,
          PRIMARY KEY (k) NOT ENFORCED
) WITH (
     'merge-engine'='partial-update',
     'fields.a.sequence-group' = 'b',
     'fields.b.aggregate-function' = 'first_value',
     'fields.c.sequence-group' = 'd',
     'fields.d.aggregate-function' = 'sum'
 );
INSERT INTO T VALUES (1, 1, 1, CAST(NULL AS INT), CAST(NULL AS INT));
INSERT INTO T VALUES (1, CAST(NULL AS INT), CAST(NULL AS INT), 1, 1);
INSERT INTO T VALUES (1, 2, 2, CAST(NULL AS INT), CAST(NULL AS INT));
INSERT INTO T VALUES (1, CAST(NULL AS INT), CAST(NULL AS INT), 2, 2);


SELECT * FROM T; -- output 1, 2, 1, 2, 3
"""
NO_DEFAULT = """
CREATE TABLE T (
                  k INT,
                  a INT,
                  b INT,
                  c INT,
                  PRIMARY KEY (k) NOT ENFORCED
) WITH (
     'merge-engine'='partial-update'
     );
INSERT INTO T VALUES (1, 1, CAST(NULL AS INT), CAST(NULL AS INT));
INSERT INTO T VALUES (1, CAST(NULL AS INT), CAST(NULL AS INT), 1);

SELECT * FROM T; -- output 1, 1, null, 1
"""
DEFAULT = """
CREATE TABLE T (
    k INT,
    a INT,
    b INT,
    c INT,
    PRIMARY KEY (k) NOT ENFORCED
) WITH (
    'merge-engine'='partial-update',
    'fields.b.default-value'='0'
);

INSERT INTO T VALUES (1, 1, CAST(NULL AS INT), CAST(NULL AS INT));
INSERT INTO T VALUES (1, CAST(NULL AS INT), CAST(NULL AS INT), 1);

SELECT * FROM T; -- output 1, 1, 0, 1
"""
AGGREGATION = """
CREATE TABLE MyTable (
    product_id BIGINT,
    price DOUBLE,
    sales BIGINT,
    PRIMARY KEY (product_id) NOT ENFORCED
) WITH (
    'merge-engine' = 'aggregation',
    'fields.price.aggregate-function' = 'max',
    'fields.sales.aggregate-function' = 'sum'
);
INSERT INTO MyTable VALUES (1, 23.0, 15);
INSERT INTO MyTable VALUES (1, 30.2, 20);
SELECT * FROM MyTable; -- output 1, 30.2, 35
"""
SEQUENCE_FIELD = """
CREATE TABLE MyTable (
    pk BIGINT PRIMARY KEY NOT ENFORCED,
    v1 DOUBLE,
    v2 BIGINT,
    dt TIMESTAMP
) WITH (
    'sequence.field' = 'dt'
);
INSERT INTO MyTable VALUES (1, 1.5, 1, '2026-01-02 00:00:00');
INSERT INTO MyTable VALUES (1, 2.5, 2, '2026-01-01 00:00:00');
SELECT pk, v1, v2 FROM MyTable; -- output 1, 1.5, 1
"""
BUCKETS = """
CREATE TABLE MyTable (
    user_id BIGINT,
    item_id BIGINT,
    behavior STRING,
    dt STRING,
    hh STRING,
    PRIMARY KEY (dt, hh, user_id) NOT ENFORCED
) PARTITIONED BY (dt, hh) WITH (
    'bucket' = '10'
);
"""
NESTED = """
    -- orders table
    CREATE TABLE orders (
      order_id BIGINT PRIMARY KEY NOT ENFORCED,
      user_name STRING,
      address STRING
    );

    -- sub orders that have the same order_id
    -- belongs to the same order
    CREATE TABLE sub_orders (
      order_id BIGINT,
      sub_order_id INT,
      product_name STRING,
      price BIGINT,
      PRIMARY KEY (order_id, sub_order_id) NOT ENFORCED
    );

    -- wide table
    CREATE TABLE order_wide (
      order_id BIGINT PRIMARY KEY NOT ENFORCED,
      user_name STRING,
      address STRING,
      sub_orders ARRAY<ROW<sub_order_id BIGINT, product_name STRING, price BIGINT>>
    ) WITH (
      'merge-engine' = 'aggregation',
      'fields.sub_orders.aggregate-function' = 'nested-update',
      'fields.sub_orders.nested-key' = 'sub_order_id'
    );
"""
WIDEN = """
    -- widen
    INSERT INTO order_wide

    SELECT
      order_id,
      user_name,
      address,
      CAST (NULL AS ARRAY<ROW<sub_order_id BIGINT, product_name STRING, price BIGINT>>)
    FROM orders

    UNION ALL

    SELECT
      order_id,
      CAST (NULL AS STRING),
      CAST (NULL AS STRING),
      ARRAY[ROW(sub_order_id, product_name, price)]
    FROM sub_orders;
"""
UNNEST = """
    -- query using UNNEST
    SELECT order_id, user_name, address, sub_order_id, product_name, price
    FROM order_wide, UNNEST(sub_orders) AS so(sub_order_id, product_name, price)
"""
REFUSED = {
    # Flink's generator of test data is no table of Paimon.
    "CREATE TABLE if not exists input_source (`id` Int PRIMARY KEY NOT ENFORCED, `name` String, `age` Int) "
    "with ('connector' = 'datagen', 'fields.id.kind' = 'random', 'rows-per-second' = '1')": "'connector' is unknown",
    # The document gives three values for four columns; Flink refuses it, too.
    "insert into layout1 values(1,'flink',10)": "needs 4 columns, and the query has 3",
    # The document shows the names of the parameters, with placeholders as values.
    "CALL sys.compact(`table` => 'layout.layout1', partitions => 'partition_name', "
    "order_strategy => 'order_strategy', order_by => 'order_by', options => 'paimon_table_dynamic_conf')": (
        "'options' has the part 'paimon_table_dynamic_conf'"
    ),
}


@pytest.fixture(params=ENGINES)
def session(tmp_path: Path, request: pytest.FixtureRequest) -> SqlEngine:
    return open_engine(request.param, tmp_path / "lake", request)


def run(session: SqlEngine, script: str, path: Path | None = None) -> list[list[dict[str, object]]]:
    """The rows of the queries of a script."""
    return [rows.to_pylist() for rows in session.run_queries(script.replace("/your/path", str(path)))]


def test_the_specification(session: SqlEngine, tmp_path: Path) -> None:
    run(session, SPECIFICATION, tmp_path / "warehouse")
    assert session.sql("SELECT * FROM my_table").to_pylist() == [{"k": 1, "f0": 11, "f1": "111"}]
    assert (tmp_path / "warehouse" / "default.db" / "my_table" / "snapshot" / "snapshot-1").exists()
    assert (tmp_path / "warehouse" / "default.db" / "part_t" / "dt=20240514" / "bucket-0").is_dir()


@pytest.mark.slow("runs all statements of a document")
def test_understand_files(session: SqlEngine, tmp_path: Path) -> None:
    run(session, UNDERSTAND_FILES, tmp_path / "warehouse")
    assert session.sql("SELECT * FROM T").num_rows == 10
    run(session, "DELETE FROM T WHERE dt >= '20230503';")
    rows = session.sql("SELECT * FROM T ORDER BY id").to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (1, 10001, "varchar00001", "20230501"),
        (2, 10002, "varchar00002", "20230502"),
    ]
    run(session, "CALL sys.compact('T');")
    run(session, "ALTER TABLE T SET ('full-compaction.delta-commits' = '1');")
    kinds = session.sql("SELECT commit_kind FROM T$snapshots ORDER BY snapshot_id")["commit_kind"]
    assert kinds.to_pylist()[-1] == "COMPACT"
    assert session.sql("SELECT max(schema_id) AS id FROM T$schemas")["id"].to_pylist() == [1]


def test_the_walkthrough(session: SqlEngine, tmp_path: Path) -> None:
    run(session, LAYOUT, tmp_path / "warehouse")
    frame = [{"id": 1, "name": "a", "age": 20}]
    insert = "insert into layout.layout1 select id,name,age,'20241011' from input_source"
    assert session.sql(insert, input_source=frame)["rows"].to_pylist() == [1]
    session.sql("USE layout")
    for statement, message in REFUSED.items():
        with pytest.raises(paimon.PaimonError, match=message):
            session.sql(statement)
    run(session, "ALTER TABLE paimon_layout.layout.layout1 ADD (add_c string);")
    assert session.sql("SELECT * FROM layout1").to_pylist() == [
        {"id": 1, "name": "a", "age": 20, "dt": "20241011", "add_c": None}
    ]


PRIMARY_KEY_TABLES: dict[str, tuple[str, list[tuple[object, ...]]]] = {
    "sequence groups": (SEQUENCE_GROUPS, [(1, 2, 2, 2, 1, 1, 1), (1, 2, 2, 2, 3, 3, 3)]),
    "aggregation in groups": (GROUP_AGGREGATION, [(1, 2, 1, 2, 3)]),
    "no default": (NO_DEFAULT, [(1, 1, None, 1)]),
    "default": (DEFAULT, [(1, 1, 0, 1)]),
    "aggregation": (AGGREGATION, [(1, 30.2, 35)]),
    "sequence": (SEQUENCE_FIELD, [(1, 1.5, 1)]),
    "buckets": (BUCKETS, []),
}


@pytest.mark.parametrize("name", PRIMARY_KEY_TABLES)
@pytest.mark.parametrize("session", ["embedded"], indirect=True)
def test_primary_key_tables(session: SqlEngine, name: str) -> None:
    check_primary_key_table(session, name)


@pytest.mark.spark
@pytest.mark.parametrize("name", mark_nightly(PRIMARY_KEY_TABLES, always=["sequence groups"]))
@pytest.mark.parametrize("session", ["spark"], indirect=True)
def test_primary_key_tables_on_spark(session: SqlEngine, name: str) -> None:
    check_primary_key_table(session, name)


def check_primary_key_table(session: SqlEngine, name: str) -> None:
    script, expected = PRIMARY_KEY_TABLES[name]
    assert [tuple(row.values()) for (row,) in run(session, script)] == expected


def test_nested_tables(session: SqlEngine) -> None:
    run(session, NESTED)
    session.sql("INSERT INTO orders VALUES (1, 'ann', 'street 1'); INSERT INTO sub_orders VALUES (1, 7, 'pen', 3)")
    run(session, WIDEN)
    (rows,) = run(session, UNNEST)
    assert rows == [
        {"order_id": 1, "user_name": "ann", "address": "street 1", "sub_order_id": 7, "product_name": "pen", "price": 3}
    ]
