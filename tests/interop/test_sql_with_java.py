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
    "ALTER TABLE t DROP PARTITION (day = 'c')",
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
