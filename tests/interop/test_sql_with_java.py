"""Live Java reads a table after each kind of SQL statement as we read it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.java_paimon import JavaPaimon, canonical

import paimon

pytestmark = pytest.mark.interop

KEYED = """CREATE TABLE t (id BIGINT, day STRING, amount INT, note STRING, PRIMARY KEY (id, day) NOT ENFORCED)
    PARTITIONED BY (day) WITH ('bucket' = '1')"""
APPEND = "CREATE TABLE t (id BIGINT, day STRING, amount INT, note STRING) PARTITIONED BY (day)"
STATEMENTS = [
    "INSERT INTO t VALUES (1, 'a', 1, 'one'), (2, 'a', 2, NULL), (3, 'b', 3, 'three')",
    "INSERT INTO t (note, id, day) SELECT 'again', 2, 'a'",
    "UPDATE t SET amount = amount * 2, note = 'more' WHERE id IN (SELECT max(id) FROM t)",
    "DELETE FROM t WHERE id = 1",
    "INSERT OVERWRITE t PARTITION (day = 'b') SELECT 9, 99, 'nine'",
    "ALTER TABLE t ADD (extra INT)",
    "INSERT INTO t SELECT 5, 'c', 5, 'five', 55",
    """MERGE INTO t USING (VALUES (2, 'a', 7), (5, 'c', NULL), (6, 'd', 8)) AS s(id, day, amount)
        ON t.id = s.id AND t.day = s.day
        WHEN MATCHED AND s.amount IS NULL THEN DELETE
        WHEN MATCHED THEN UPDATE SET amount = s.amount
        WHEN NOT MATCHED THEN INSERT (id, day, amount) VALUES (s.id, s.day, s.amount)
        WHEN NOT MATCHED BY SOURCE AND t.id = 9 THEN UPDATE SET note = upper(t.note)""",
    "CALL sys.compact('t')",
    "ALTER TABLE t DROP IF EXISTS PARTITION (day = 'c')",
    "CALL sys.create_tag('t', 'end')",
    "TRUNCATE TABLE t",
    "CALL sys.rollback('t', 'end')",
]


@pytest.mark.parametrize("create", [KEYED, APPEND], ids=["primary key", "append"])
def test_java_reads_the_table_after_each_statement(java: JavaPaimon, tmp_path: Path, create: str) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.sql(create)
    directory = tmp_path / "default.db" / "t"
    for statement in STATEMENTS:
        catalog.sql(statement)
        ours = catalog.table("default.t").scan().to_arrow().to_pylist()
        assert java.read(directory) == canonical(ours), statement
    assert len(ours) > 1


DECLARATIONS = [
    """CREATE TABLE t (id BIGINT, day STRING, amount INT, s ROW<a INT, b STRING>, note STRING,
        PRIMARY KEY (id, day) NOT ENFORCED) PARTITIONED BY (day) WITH ('bucket' = '1')""",
    "INSERT INTO t VALUES (1, 'x', 10, {'a': 1, 'b': 'in'}, 'one'), (2, 'x', 20, NULL, NULL), (3, 'y', NULL, NULL, '')",
    "CREATE TABLE u PARTITIONED BY (day) AS SELECT day, upper(note) AS note, s FROM t",
    "CREATE TABLE v WITH ('primary-key' = 'id', 'bucket' = '2') AS SELECT id, amount FROM t",
    "CREATE TABLE w LIKE t",
    "INSERT INTO w SELECT * FROM t WHERE day = 'x'",
    "ALTER TABLE t ADD COLUMN extra INT FIRST",
    "ALTER TABLE t ADD (s.c BIGINT, more STRING COMMENT 'new')",
    "INSERT INTO t BY NAME SELECT 4 AS id, 'y' AS day, 5 AS extra",
    "ALTER TABLE t RENAME COLUMN note TO text",
    "ALTER TABLE t RENAME COLUMN s.a TO first",
    "ALTER TABLE t ALTER COLUMN amount TYPE BIGINT",
    "ALTER TABLE t MODIFY text STRING COMMENT 'a note' AFTER id",
    "ALTER TABLE t ALTER COLUMN more LAST",
    "ALTER TABLE t ALTER COLUMN extra SET DEFAULT 7",
    "INSERT INTO t (id, day) VALUES (5, 'z')",
    "ALTER TABLE t ALTER COLUMN extra DROP DEFAULT",
    "ALTER TABLE t RENAME COLUMN id TO number",
    "ALTER TABLE t DROP COLUMN s.b",
    "ALTER TABLE t DROP (more, extra)",
    "ALTER TABLE t SET ('changelog-producer' = 'input', 'snapshot.num-retained.max' = '100')",
    "INSERT INTO t (number, day, amount) VALUES (6, 'z', 60)",
    "ALTER TABLE t RESET ('changelog-producer')",
    "COMMENT ON TABLE t IS 'changed'",
    "INSERT OVERWRITE t (number, day, text) VALUES (9, 'x', 'dynamic'), (9, 'new', NULL)",
    "ALTER TABLE t RENAME TO r",
    "UPDATE r SET amount = number WHERE amount IS NULL",
    "DROP TABLE v",
    "TRUNCATE TABLE w PARTITION (day = 'x')",
]
CALLS = [
    "CREATE TABLE t (id BIGINT, day STRING, PRIMARY KEY (id, day) NOT ENFORCED) PARTITIONED BY (day) WITH ("
    "'bucket' = '1', 'write-only' = 'true')",
    "INSERT INTO t VALUES (1, '2001-01-01'), (2, '2099-01-01')",
    "INSERT INTO t VALUES (3, '2099-01-01'), (4, '2099-01-02'), (5, '2099-01-02')",
    "DELETE FROM t WHERE id = 5",
    "CALL sys.create_tag('t', 'first', 1)",
    "CALL sys.create_branch('t', 'b', 'first')",
    "INSERT INTO `t$branch_b` VALUES (6, 'in the branch')",
    "DELETE FROM `t$branch_b` WHERE id = 1",
    "CALL sys.compact('t', compact_strategy => 'minor')",
    "CALL sys.compact('t', where => \"day = '2099-01-01'\")",
    "CALL sys.rescale('t', 2, 'day=2099-01-02')",
    "CALL sys.rescale('t', 2)",
    "INSERT INTO t VALUES (7, '2099-01-02')",
    "CALL sys.create_tag('t', 'second')",
    "CALL sys.replace_tag('t', 'first', 2)",
    "CALL sys.rename_tag('t', 'first', 'one')",
    "CALL sys.expire_snapshots('t', retain_max => 2, retain_min => 1)",
    "CALL sys.remove_orphan_files('t', '1 d')",
    "CALL sys.expire_partitions('t', '1 d', timestamp_formatter => 'yyyy-MM-dd')",
    "CALL sys.drop_partition('t', 'day=2099-01-02')",
    "CALL sys.rollback('t', 'second')",
    "INSERT INTO t VALUES (8, '2099-01-02')",
    "CALL sys.rename_branch('t', 'b', 'c')",
    "CALL sys.create_branch('t', 'empty')",
    "CALL sys.delete_branch('t', 'empty')",
    "CALL sys.create_branch('t', 'later', 'second')",
    "INSERT INTO `t$branch_later` VALUES (9, '2099-01-02')",
    "CALL sys.fast_forward('t', 'later')",
    "INSERT INTO t VALUES (10, '2099-01-02')",
    "CALL sys.delete_tag('t', 'second')",
    "ALTER TABLE t DROP PARTITION (day = '2001-01-01')",
    "CALL sys.compact('t')",
]


@pytest.mark.parametrize("statements", [DECLARATIONS, CALLS], ids=["declarations", "procedures"])
def test_java_reads_all_tables_and_branches_after_each_statement(
    java: JavaPaimon, tmp_path: Path, statements: list[str]
) -> None:
    catalog, compared = paimon.connect(tmp_path), 0
    for statement in statements:
        catalog.sql(statement)
        for name in catalog.tables("default"):
            table = catalog.table(f"default.{name}")
            branches = {"": table, **{b: catalog.table(f"default.{name}$branch_{b}") for b in table.branches}}
            for branch, state in branches.items():
                rows = java.read(tmp_path / "default.db" / name, options={"branch": branch} if branch else {})
                assert rows == canonical(state.scan().to_arrow().to_pylist()), (statement, name, branch)
                compared += len(rows)
    assert compared > 100
