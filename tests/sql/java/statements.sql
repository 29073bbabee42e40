-- Statements that Java's connector for Spark ran, in the order of a case. Each case starts in an empty database `d`.
-- A case begins with a line `-- case: name`. A statement ends at a line's end with a semicolon.

-- case: insert rows of a primary key
CREATE TABLE t (id INT, name STRING, day STRING) PARTITIONED BY (day) TBLPROPERTIES ('primary-key' = 'id,day', 'bucket' = '1');
INSERT INTO t VALUES (1, 'one', 'a'), (2, NULL, 'a'), (1, 'one of b', 'b');
INSERT INTO t VALUES (1, 'first', 'a'), (1, 'second', 'a');
INSERT INTO t VALUES (NULL, 'no key', 'a');
INSERT INTO t VALUES (3, 'no partition', NULL);
INSERT INTO t VALUES (4, 'too few');
INSERT INTO t VALUES (4, 'too', 'many', 'values');
INSERT INTO t (day, id) VALUES ('a', 5);
INSERT INTO t (id, name) VALUES (6, 'no day');
INSERT INTO t BY NAME SELECT 'c' AS day, 7 AS id, 'seven' AS name;
INSERT INTO t BY NAME SELECT 'c' AS day, 8 AS id, 'eight' AS title;
INSERT INTO t SELECT id + 10, upper(name), day FROM t WHERE day = 'a';
INSERT INTO t PARTITION (day = 'd') SELECT 9, 'nine';
INSERT INTO t PARTITION (day = 'd') VALUES (9, 'nine', 'd');
INSERT INTO t PARTITION (color = 'd') SELECT 9, 'nine';
INSERT INTO missing VALUES (1);
SELECT count(*) AS n, max(id) AS greatest FROM t;

-- case: insert casts values
CREATE TABLE t (a TINYINT, b INT, c STRING, d DECIMAL(5, 2), e DATE, f BOOLEAN, g DOUBLE);
INSERT INTO t VALUES (1, 2, 'x', 3.14, DATE '2026-01-01', true, 1.5);
INSERT INTO t (a) VALUES (1000);
INSERT INTO t (b) VALUES ('12');
INSERT INTO t (b) VALUES (99999999999);
INSERT INTO t (c) VALUES (12);
INSERT INTO t (d) VALUES (1.239);
INSERT INTO t (d) VALUES (12345.1);
INSERT INTO t (e) VALUES ('2026-01-02');
INSERT INTO t (e) VALUES (5);
INSERT INTO t (f) VALUES (1);
INSERT INTO t (b) VALUES (2.7);
INSERT INTO t (g) VALUES (3);
INSERT INTO t (b) VALUES (DATE '2026-01-01');
INSERT INTO t (c) VALUES (DATE '2026-01-01');
INSERT INTO t (c) VALUES (true);

-- case: insert texts of limited length
CREATE TABLE t (id INT, a CHAR(3), b VARCHAR(3));
INSERT INTO t VALUES (2, 'abc', 'abc');
INSERT INTO t VALUES (3, 'abcd', 'ab');
INSERT INTO t VALUES (4, 'ab', 'abcd');

-- case: insert texts with blanks
CREATE TABLE t (id INT, a CHAR(3), b VARCHAR(3));
INSERT INTO t VALUES (1, 'ab', 'ab');
INSERT INTO t VALUES (5, 'abc  ', 'ab   ');
SELECT id FROM t WHERE b = 'ab';

-- case: insert bytes
CREATE TABLE t (id INT, b BINARY);
INSERT INTO t VALUES (1, X'00FF'), (2, x''), (3, NULL);
SELECT id FROM t WHERE b = X'00ff';

-- case: insert into an append table
CREATE TABLE t (id INT, name STRING, day INT) PARTITIONED BY (day);
INSERT INTO t VALUES (1, 'a', 1), (1, 'a', 1), (NULL, NULL, 2);
INSERT INTO t VALUES (2, 'null partition', NULL);
INSERT INTO t PARTITION (day = 3) SELECT 3, 'three';
INSERT INTO t PARTITION (day) SELECT 4, 'four', 4;
INSERT INTO t SELECT * FROM t WHERE day IS NULL;
SHOW PARTITIONS t;
SELECT id FROM t WHERE day IS NULL;
INSERT INTO t VALUES (5, 'cast partition', '5');

-- case: overwrite a table without partitions
CREATE TABLE t (id INT, name STRING);
INSERT INTO t VALUES (1, 'a'), (2, 'b');
INSERT OVERWRITE t SELECT id + 1, name FROM t;
INSERT OVERWRITE TABLE t VALUES (9, 'z');
INSERT OVERWRITE t SELECT * FROM t WHERE false;

-- case: overwrite a primary key table without partitions
CREATE TABLE t (id INT, name STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2');
INSERT INTO t VALUES (1, 'a'), (2, 'b');
INSERT OVERWRITE t SELECT 3, 'c' UNION ALL SELECT 3, 'd';
INSERT OVERWRITE t (name, id) VALUES ('e', 4);

-- case: overwrite partitions
CREATE TABLE t (id INT, name STRING, day STRING) PARTITIONED BY (day);
INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y'), (4, 'd', 'z');
INSERT OVERWRITE t PARTITION (day = 'x') SELECT 10, 'ten';
INSERT OVERWRITE t PARTITION (day = 'new') SELECT 11, 'eleven';
INSERT OVERWRITE t PARTITION (day = 'y') SELECT id, name FROM t WHERE day = 'z';
INSERT OVERWRITE t PARTITION (day = 'y') SELECT id, name FROM t WHERE false;
INSERT OVERWRITE t PARTITION (day = 'x') (name, id) VALUES ('named', 12);

-- case: overwrite partitions of the rows
CREATE TABLE t (id INT, name STRING, day STRING) PARTITIONED BY (day);
INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y'), (4, 'd', 'z');
SET spark.sql.sources.partitionOverwriteMode=dynamic;
INSERT OVERWRITE t VALUES (20, 'twenty', 'x'), (21, 'more', 'new');
INSERT OVERWRITE t PARTITION (day) SELECT 30, 'thirty', 'y';
INSERT OVERWRITE t SELECT id, name, day FROM t WHERE false;
INSERT OVERWRITE t PARTITION (day = 'z') SELECT 40, 'forty';
SET spark.sql.sources.partitionOverwriteMode=static;

-- case: overwrite all partitions
CREATE TABLE t (id INT, name STRING, day STRING) PARTITIONED BY (day);
INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y');
INSERT OVERWRITE t VALUES (20, 'twenty', 'x'), (21, 'more', 'new');

-- case: overwrite with two partition columns
CREATE TABLE t (id INT, a STRING, b INT) PARTITIONED BY (a, b) TBLPROPERTIES ('primary-key' = 'id,a,b', 'bucket' = '1');
INSERT INTO t VALUES (1, 'x', 1), (2, 'x', 2), (3, 'y', 1);
INSERT OVERWRITE t PARTITION (a = 'x', b = 2) SELECT 22;
INSERT OVERWRITE t PARTITION (a = 'x', b) SELECT 33, 3;
INSERT OVERWRITE t PARTITION (b = 1) SELECT 44, 'y';
SHOW PARTITIONS t;
SHOW PARTITIONS t PARTITION (a = 'x');

-- case: update a primary key table
CREATE TABLE t (id INT, name STRING, amount INT, day STRING) PARTITIONED BY (day) TBLPROPERTIES ('primary-key' = 'id,day', 'bucket' = '1');
INSERT INTO t VALUES (1, 'a', 10, 'x'), (2, NULL, 20, 'x'), (3, 'c', NULL, 'y');
UPDATE t SET amount = amount + 1 WHERE id = 1;
UPDATE t SET name = name || '!', amount = id WHERE name = 'c' OR name IS NULL;
UPDATE t SET id = 5 WHERE id = 1;
UPDATE t SET day = 'z' WHERE id = 1;
UPDATE t SET amount = (SELECT max(id) FROM t) WHERE day = 'x';
UPDATE t SET amount = 7 WHERE id IN (SELECT id FROM t WHERE amount > 2);
UPDATE t SET amount = NULL;
UPDATE t SET missing = 1;
UPDATE t SET amount = 1, amount = 2;
UPDATE t AS s SET s.amount = s.id * 2 WHERE s.id < 3;

-- case: update with other types
CREATE TABLE t (id INT, amount INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1');
INSERT INTO t VALUES (1, 10);
UPDATE t SET amount = 0 WHERE NULL;
UPDATE t SET amount = 'text';
UPDATE t SET amount = 3.7;
UPDATE t SET amount = '12';

-- case: update an append table
CREATE TABLE t (id INT, name STRING, day STRING) PARTITIONED BY (day);
INSERT INTO t VALUES (1, 'a', 'x'), (1, 'a', 'x'), (2, 'b', 'y'), (NULL, 'n', 'y');
UPDATE t SET name = 'changed' WHERE id = 1;
UPDATE t SET id = id + 1;
UPDATE t SET id = 9 WHERE id > (SELECT min(id) FROM t);
UPDATE t SET name = id WHERE name = 'b';
UPDATE t SET name = day WHERE day = 'y';

-- case: update that moves rows to other partitions
CREATE TABLE t (id INT, name STRING, day STRING) PARTITIONED BY (day);
INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y');
UPDATE t SET day = 'z' WHERE id = 2;

-- case: update an append table with deletion vectors
CREATE TABLE t (id INT, name STRING) TBLPROPERTIES ('deletion-vectors.enabled' = 'true');
INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, 'b'), (NULL, 'n');
UPDATE t SET name = 'changed' WHERE id = 1;
DELETE FROM t WHERE id IS NULL;
DELETE FROM t WHERE name = 'changed';

-- case: update columns of other types
CREATE TABLE t (id INT, s STRUCT<a: INT, b: STRING>, l ARRAY<INT>) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1');
INSERT INTO t VALUES (1, (1, 'x'), array(1, 2)), (2, NULL, NULL);
UPDATE t SET l = array(3) WHERE id = 2;
UPDATE t SET l = NULL WHERE s.a = 1;
INSERT INTO t SELECT id + 1, s, array(id) FROM t WHERE id = 2;
SELECT id, s.b AS b FROM t WHERE s.a = 1;

-- case: update a part of a column
CREATE TABLE t (id INT, s STRUCT<a: INT, b: STRING>) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1');
INSERT INTO t VALUES (1, (1, 'x'));
UPDATE t SET s.a = 5 WHERE id = 1;

-- case: maps
CREATE TABLE t (id INT, m MAP<STRING, INT>) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1');
INSERT INTO t VALUES (1, map_from_entries(array(('k', 1), ('z', 26)))), (2, NULL);
SELECT id, m['z'] AS z FROM t;

-- case: delete from a primary key table
CREATE TABLE t (id INT, name STRING, day STRING) PARTITIONED BY (day) TBLPROPERTIES ('primary-key' = 'id,day', 'bucket' = '1');
INSERT INTO t VALUES (1, 'a', 'x'), (2, NULL, 'x'), (3, 'c', 'y'), (4, 'd', 'z'), (5, 'e', 'z');
DELETE FROM t WHERE id = 1;
DELETE FROM t WHERE name <> 'c';
DELETE FROM t WHERE name = NULL;
DELETE FROM t WHERE day = 'x';
DELETE FROM t WHERE id IN (SELECT id FROM t WHERE name = 'c');
INSERT INTO t VALUES (3, 'again', 'y'), (6, 'f', 'w');
DELETE FROM t WHERE missing = 1;
DELETE FROM t WHERE day = 'w' AND id = 7;
DELETE FROM t WHERE EXISTS (SELECT 1 FROM t AS s WHERE s.id > t.id);
DELETE FROM t;

-- case: delete from an append table
CREATE TABLE t (id INT, name STRING, day STRING) PARTITIONED BY (day);
INSERT INTO t VALUES (1, 'a', 'x'), (1, 'a', 'x'), (2, 'b', 'y'), (NULL, 'n', 'y'), (3, 'c', NULL);
DELETE FROM t WHERE id = 1;
DELETE FROM t WHERE NOT (id = 2);
DELETE FROM t WHERE day IS NULL;
DELETE FROM t WHERE id NOT IN (SELECT 2);
DELETE FROM t WHERE true;

-- case: changes that merge engines refuse
CREATE TABLE p (id INT, a INT, b INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1', 'merge-engine' = 'partial-update');
INSERT INTO p VALUES (1, 1, NULL), (2, 2, 2);
INSERT INTO p VALUES (1, NULL, 5);
UPDATE p SET a = NULL WHERE id = 2;
DELETE FROM p WHERE id = 1;
CREATE TABLE g (id INT, a INT, b INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1', 'merge-engine' = 'aggregation', 'fields.a.aggregate-function' = 'sum');
INSERT INTO g VALUES (1, 1, 1), (1, 2, 2), (2, 5, NULL);
UPDATE g SET a = 1 WHERE id = 1;
DELETE FROM g WHERE id = 1;
CREATE TABLE f (id INT, a INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1', 'merge-engine' = 'first-row');
INSERT INTO f VALUES (1, 1), (1, 2), (2, 5);
INSERT INTO f VALUES (1, 3);
UPDATE f SET a = 1 WHERE id = 1;
DELETE FROM f WHERE id = 1;
MERGE INTO f USING (SELECT 1 AS id) AS s ON f.id = s.id WHEN MATCHED THEN DELETE;

-- case: tables with a sequence field
CREATE TABLE t (id INT, version INT, name STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1', 'sequence.field' = 'version');
INSERT INTO t VALUES (1, 5, 'five'), (2, 1, 'one');
INSERT INTO t VALUES (1, 4, 'four'), (2, NULL, 'null');
UPDATE t SET name = 'changed' WHERE id = 1;
UPDATE t SET version = 3, name = 'older' WHERE id = 1;
DELETE FROM t WHERE id = 2;

-- case: merge with all clauses
CREATE TABLE t (id INT, name STRING, amount INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1');
CREATE TABLE s (id INT, name STRING, amount INT);
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, NULL, NULL);
INSERT INTO s VALUES (1, 'A', 10), (2, 'B', NULL), (4, 'D', 40), (5, 'E', 50), (6, NULL, 60);
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.amount IS NULL THEN DELETE WHEN MATCHED AND s.id = 4 THEN UPDATE SET name = 'four' WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED AND s.name IS NULL THEN INSERT (id, name, amount) VALUES (s.id, 'none', -1) WHEN NOT MATCHED THEN INSERT *;
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.amount > 1000 THEN DELETE;
MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED AND s.id > 1000 THEN INSERT *;
MERGE INTO t USING (SELECT * FROM s WHERE amount IS NOT NULL) AS s ON t.id = s.id WHEN MATCHED AND t.amount <> s.amount THEN UPDATE SET amount = s.amount + t.amount, name = upper(s.name) WHEN MATCHED THEN UPDATE SET name = concat(s.name, '?');
MERGE INTO t USING (SELECT 1 AS id, 'x' AS name UNION ALL SELECT 1, 'y') AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name;
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET missing = 1;
MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (name) VALUES (s.name);
MERGE INTO t USING missing ON t.id = missing.id WHEN MATCHED THEN DELETE;
MERGE INTO t USING s ON t.id = s.missing WHEN MATCHED THEN DELETE;
MERGE INTO t AS target USING s AS source ON target.id = source.id AND source.id > 4 WHEN MATCHED THEN DELETE;
MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE;
MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
MERGE INTO t USING t AS other ON t.id = other.id + 1 WHEN MATCHED THEN UPDATE SET name = other.name;

-- case: merge clauses that the connector refuses
CREATE TABLE t (id INT, name STRING, amount INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1');
INSERT INTO t VALUES (1, 'a', 1), (3, 'c', 3);
MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN UPDATE SET name = 'three';
MERGE INTO t USING (SELECT 7 AS id, 'x' AS name) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name);
MERGE INTO t USING (SELECT 9 AS id, 'x' AS name, 9 AS amount) AS s ON false WHEN NOT MATCHED THEN INSERT *;
MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.name = 'with the name of the table';

-- case: merge that changes a key
CREATE TABLE t (id INT, name STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1');
INSERT INTO t VALUES (1, 'a');
MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 100;

-- case: merge with conditions by source
CREATE TABLE t (id INT, name STRING, amount INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1');
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, NULL, NULL);
MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND amount = 3 THEN UPDATE SET name = 'three', amount = amount * 2 WHEN NOT MATCHED BY SOURCE AND amount IS NULL THEN DELETE;
MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET amount = NULL WHEN NOT MATCHED BY SOURCE THEN UPDATE SET amount = 0;

-- case: merge into an append table
CREATE TABLE t (id INT, name STRING, day STRING) PARTITIONED BY (day);
INSERT INTO t VALUES (1, 'a', 'x'), (1, 'a', 'x'), (2, 'b', 'y'), (NULL, 'n', 'y');
MERGE INTO t USING (SELECT 1 AS id, 'A' AS name) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name;
MERGE INTO t USING (SELECT 2 AS id, 'x' AS name, 'z' AS day UNION ALL SELECT NULL, 'null source', 'z') AS s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *;
MERGE INTO t USING (SELECT 1 AS id UNION ALL SELECT 1) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = 'twice';
MERGE INTO t USING (SELECT CAST(NULL AS INT) AS id) AS s ON t.id <=> s.id WHEN MATCHED THEN UPDATE SET id = 0;
MERGE INTO t USING (SELECT 8 AS id, 'eight' AS name, CAST(NULL AS STRING) AS day) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;

-- case: merge that moves rows to other partitions
CREATE TABLE t (id INT, day STRING) PARTITIONED BY (day);
INSERT INTO t VALUES (1, 'x'), (2, 'y');
MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET day = 'w';

-- case: alter columns
CREATE TABLE t (id INT NOT NULL, a INT, b STRING, c DOUBLE, day STRING) PARTITIONED BY (day) TBLPROPERTIES ('primary-key' = 'id,day', 'bucket' = '1');
INSERT INTO t VALUES (1, 1, 'x', 1.5, 'p');
ALTER TABLE t ADD COLUMN d BIGINT;
ALTER TABLE t ADD COLUMNS (e INT COMMENT 'note', f STRING);
ALTER TABLE t ADD COLUMN g INT FIRST;
ALTER TABLE t ADD COLUMN h INT AFTER a;
ALTER TABLE t ADD COLUMN a STRING;
ALTER TABLE t ADD COLUMN i INT NOT NULL;
ALTER TABLE t RENAME COLUMN b TO bb;
ALTER TABLE t RENAME COLUMN day TO month;
ALTER TABLE t RENAME COLUMN missing TO other;
ALTER TABLE t RENAME COLUMN a TO bb;
ALTER TABLE t DROP COLUMN h;
ALTER TABLE t DROP COLUMNS (d, e);
ALTER TABLE t DROP COLUMN id;
ALTER TABLE t DROP COLUMN day;
ALTER TABLE t DROP COLUMN missing;
ALTER TABLE t ALTER COLUMN a TYPE BIGINT;
ALTER TABLE t ALTER COLUMN c TYPE DATE;
ALTER TABLE t ALTER COLUMN day TYPE INT;
ALTER TABLE t ALTER COLUMN a COMMENT 'the amount';
ALTER TABLE t ALTER COLUMN a FIRST;
ALTER TABLE t ALTER COLUMN a AFTER c;
ALTER TABLE t ALTER COLUMN a AFTER a;
ALTER TABLE t ALTER COLUMN a AFTER missing;
ALTER TABLE t ALTER COLUMN id DROP NOT NULL;
ALTER TABLE t ALTER COLUMN c SET NOT NULL;
INSERT INTO t (id, a, bb, c, day) VALUES (2, 2, 'y', 2.5, 'p');
ALTER TABLE missing ADD COLUMN x INT;

-- case: rename a key column
CREATE TABLE t (id INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1');
ALTER TABLE t RENAME COLUMN id TO key;

-- case: alter types of columns
CREATE TABLE t (a TINYINT, b INT, c BIGINT, d FLOAT, e DECIMAL(5, 2), g DATE, h TIMESTAMP_NTZ, i BOOLEAN);
INSERT INTO t VALUES (1, 2, 3, 1.5, 4.25, DATE '2026-01-01', TIMESTAMP_NTZ '2026-01-01 10:00:00', true);
ALTER TABLE t ALTER COLUMN a TYPE INT;
ALTER TABLE t ALTER COLUMN b TYPE DOUBLE;
ALTER TABLE t ALTER COLUMN c TYPE STRING;
ALTER TABLE t ALTER COLUMN d TYPE DOUBLE;
ALTER TABLE t ALTER COLUMN e TYPE DECIMAL(10, 4);
ALTER TABLE t ALTER COLUMN g TYPE STRING;
ALTER TABLE t ALTER COLUMN i TYPE STRING;
ALTER TABLE t ALTER COLUMN i TYPE ARRAY<INT>;

-- case: alter types to smaller ones
CREATE TABLE t (a BIGINT, b DECIMAL(10, 4), c STRING, d TIMESTAMP_NTZ);
INSERT INTO t VALUES (1, 4.25, '12', TIMESTAMP_NTZ '2026-01-01 10:00:00');
ALTER TABLE t ALTER COLUMN a TYPE INT;
ALTER TABLE t ALTER COLUMN b TYPE DECIMAL(5, 1);
ALTER TABLE t ALTER COLUMN c TYPE INT;
ALTER TABLE t ALTER COLUMN d TYPE DATE;

-- case: alter nested columns
CREATE TABLE t (id INT, s STRUCT<a: INT, b: STRING>, l ARRAY<STRUCT<x: INT>>);
ALTER TABLE t ADD COLUMN s.c INT;
ALTER TABLE t ADD COLUMN s.d INT FIRST;
ALTER TABLE t RENAME COLUMN s.a TO aa;
ALTER TABLE t DROP COLUMN s.b;
ALTER TABLE t ALTER COLUMN s.missing TYPE BIGINT;
ALTER TABLE t ADD COLUMN l.element.y INT;
ALTER TABLE t DROP COLUMN s.missing;

-- case: options
CREATE TABLE t (id INT, a INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1', 'file.format' = 'parquet');
INSERT INTO t VALUES (1, 1);
ALTER TABLE t SET TBLPROPERTIES ('snapshot.num-retained.max' = '20', 'write-buffer-size' = '64 mb');
ALTER TABLE t UNSET TBLPROPERTIES ('write-buffer-size');
ALTER TABLE t UNSET TBLPROPERTIES ('missing');
ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('missing');
ALTER TABLE t SET TBLPROPERTIES ('merge-engine' = 'partial-update');
ALTER TABLE t SET TBLPROPERTIES ('primary-key' = 'a');
ALTER TABLE t SET TBLPROPERTIES ('bucket' = '2');
ALTER TABLE t SET TBLPROPERTIES ('bucket' = '-1');
ALTER TABLE t SET TBLPROPERTIES ('file.format' = 'orc');
ALTER TABLE t SET TBLPROPERTIES ('bucket-key' = 'a');
ALTER TABLE t SET TBLPROPERTIES ('sequence.field' = 'missing');
ALTER TABLE t SET TBLPROPERTIES ('changelog-producer' = 'input');
ALTER TABLE t SET TBLPROPERTIES ('snapshot.num-retained.max' = 'many');
ALTER TABLE t SET TBLPROPERTIES ('comment' = 'A table');
COMMENT ON TABLE t IS 'Another comment';

-- case: create tables
CREATE TABLE t (id INT COMMENT 'the key', name STRING NOT NULL) COMMENT 'a table' TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1');
CREATE TABLE t (id INT);
CREATE TABLE IF NOT EXISTS t (other INT);
INSERT INTO t VALUES (1, 'a');
CREATE TABLE y (id INT, id STRING);
CREATE TABLE y (id INT) TBLPROPERTIES ('primary-key' = 'missing');
CREATE TABLE y (id INT, day STRING) PARTITIONED BY (missing);
CREATE TABLE y (id INT, day STRING) PARTITIONED BY (day) TBLPROPERTIES ('primary-key' = 'day', 'bucket' = '1');
CREATE TABLE y (id INT) TBLPROPERTIES ('bucket' = '2');
CREATE TABLE y (id INT) TBLPROPERTIES ('merge-engine' = 'wrong', 'primary-key' = 'id');
CREATE TABLE y (id INT) TBLPROPERTIES ('comment' = 'from the options');
CREATE TABLE z (day STRING, id INT) PARTITIONED BY (day) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '-1');
INSERT INTO z VALUES ('a', 1), ('b', 2);
INSERT INTO z VALUES ('c', 1);
ALTER TABLE t RENAME TO t2;
ALTER TABLE t2 RENAME TO y;
DROP TABLE t2;
DROP TABLE t2;
DROP TABLE IF EXISTS t2;
CREATE TABLE r (id INT);
INSERT INTO r VALUES (1);
DROP TABLE r;
CREATE TABLE r (id INT);

-- case: create tables from queries
CREATE TABLE t (id INT, name STRING NOT NULL) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1');
INSERT INTO t VALUES (1, 'a');
CREATE TABLE u AS SELECT id, name, 1.5 AS price, 'x' AS day FROM t;
CREATE TABLE v TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1') AS SELECT id, name FROM t;
CREATE TABLE w PARTITIONED BY (name) AS SELECT * FROM t;
CREATE TABLE w AS SELECT 1 AS x;
CREATE TABLE IF NOT EXISTS w AS SELECT 1 AS x;
CREATE TABLE n AS SELECT missing FROM t;

-- case: create a table from a query on columns with comments
CREATE TABLE t (id INT COMMENT 'the key');
CREATE TABLE u AS SELECT id FROM t;

-- case: create a table like another
CREATE TABLE t (id INT);
CREATE TABLE x LIKE t;

-- case: keys without a partition column
CREATE TABLE y (id INT, day STRING) PARTITIONED BY (day) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1');

-- case: types
CREATE TABLE t (a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h DECIMAL(20, 5), i CHAR(4), j VARCHAR(5), k STRING, m DATE, n TIMESTAMP_LTZ, o TIMESTAMP_NTZ, p ARRAY<STRING>, r STRUCT<x: INT, y: ARRAY<INT>>);
INSERT INTO t VALUES (true, 1, 2, 3, 4, 1.25, 2.5, 123456789012345.12345, 'char', 'varch', 'text', DATE '2026-02-28', TIMESTAMP '2026-02-28 23:59:59.123456', CAST('2026-02-28 23:59:59.123456' AS TIMESTAMP_NTZ), array('a', NULL), (1, array(1, 2)));
INSERT INTO t (d) VALUES (NULL);
SELECT count(*) AS n FROM t WHERE n > TIMESTAMP '2026-01-01 00:00:00' AND m < DATE '2027-01-01' AND h > 1;

-- case: functions of Spark
CREATE TABLE t (id INT, m MAP<STRING, INT>);
INSERT INTO t VALUES (1, map('k', 1));
SELECT named_struct('a', 7) AS s;

-- case: nested types
CREATE TABLE t (id INT, s STRUCT<a: INT COMMENT 'part', b: STRUCT<c: STRING>>, l ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<y: BIGINT>>);

-- case: timestamps without the name of a kind
CREATE TABLE t (a TIMESTAMP);

-- case: defaults
CREATE TABLE t (id INT, a INT, b STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1', 'fields.a.default-value' = '5', 'fields.b.default-value' = 'text');
INSERT INTO t (id) VALUES (1);
INSERT INTO t VALUES (2, NULL, NULL);
SELECT id FROM t WHERE a = 5;
CREATE TABLE u (id INT, a INT) TBLPROPERTIES ('fields.a.default-value' = 'text');
CREATE TABLE v (id INT, a INT DEFAULT 5);

-- case: truncate and drop partitions
CREATE TABLE t (id INT, day STRING, hour INT) PARTITIONED BY (day, hour) TBLPROPERTIES ('primary-key' = 'id,day,hour', 'bucket' = '1');
INSERT INTO t VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 1), (4, 'c', 1), (5, 'c', 2);
ALTER TABLE t DROP PARTITION (day = 'a', hour = 2);
ALTER TABLE t DROP PARTITION (day = 'z', hour = 1);
ALTER TABLE t DROP IF EXISTS PARTITION (day = 'z', hour = 1);
ALTER TABLE t DROP PARTITION (id = 1);
TRUNCATE TABLE t PARTITION (day = 'a', hour = 1);
TRUNCATE TABLE t PARTITION (day = 'c');
TRUNCATE TABLE t;
TRUNCATE TABLE missing;
INSERT INTO t VALUES (9, 'z', 9);

-- case: drop partitions by a part of their columns
CREATE TABLE t (id INT, day STRING, hour INT) PARTITIONED BY (day, hour);
INSERT INTO t VALUES (1, 'a', 1), (3, 'b', 1);
ALTER TABLE t DROP PARTITION (day = 'b');

-- case: time travel
CREATE TABLE t (id INT) TBLPROPERTIES ('bucket' = '1', 'bucket-key' = 'id');
INSERT INTO t VALUES (1);
INSERT INTO t VALUES (2);
ALTER TABLE t ADD COLUMN name STRING;
INSERT INTO t VALUES (3, 'three');
CALL sys.create_tag(table => 'd.t', tag => 'two', snapshot => 2);
SELECT * FROM t VERSION AS OF 1;
SELECT * FROM t VERSION AS OF 2;
SELECT * FROM t VERSION AS OF 'two';
SELECT * FROM t FOR SYSTEM_VERSION AS OF 3;
SELECT * FROM t VERSION AS OF 9;
SELECT * FROM t VERSION AS OF 'missing';
SELECT count(*) AS n FROM t TIMESTAMP AS OF '2000-01-01 00:00:00';
SELECT count(*) AS n FROM t TIMESTAMP AS OF '2100-01-01 00:00:00';
SELECT a.id FROM t VERSION AS OF 1 AS a JOIN t AS b ON a.id = b.id;
SELECT * FROM paimon_incremental_query('t', 1, 3);
SELECT * FROM paimon_incremental_query('t', '1', '2');

-- case: call procedures
CREATE TABLE t (id INT, day STRING) PARTITIONED BY (day) TBLPROPERTIES ('primary-key' = 'id,day', 'bucket' = '1');
INSERT INTO t VALUES (1, 'a'), (2, 'b');
INSERT INTO t VALUES (3, 'a');
CALL sys.create_tag(table => 'd.t', tag => 'first', snapshot => 1);
CALL sys.create_tag('d.t', 'latest');
CALL sys.create_tag(table => 'd.t', tag => 'first');
CALL sys.create_tag(table => 'd.t', tag => 'none', snapshot => 99);
CALL sys.create_tag(table => 'd.t');
CALL sys.create_tag(table => 'd.missing', tag => 'x');
SELECT tag_name, snapshot_id FROM `t$tags`;
INSERT INTO t VALUES (4, 'c');
CALL sys.rollback(table => 'd.t', version => 'first');
CALL sys.rollback(table => 'd.t', version => 'latest');
CALL sys.rollback(table => 'd.t', version => '7');
CALL sys.rollback(table => 'd.t', version => 'missing');
INSERT INTO t VALUES (5, 'd');
CALL sys.rollback(table => 'd.t', version => '1');
CALL sys.delete_tag(table => 'd.t', tag => 'first');
CALL sys.delete_tag(table => 'd.t', tag => 'missing');
CALL sys.missing(table => 'd.t');
CALL sys.compact(table => 'd.t', wrong => 'x');

-- case: call branches
CREATE TABLE t (id INT, name STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1');
INSERT INTO t VALUES (1, 'a');
CALL sys.create_tag(table => 'd.t', tag => 'first', snapshot => 1);
INSERT INTO t VALUES (2, 'b');
CALL sys.create_branch(table => 'd.t', branch => 'b', tag => 'first');
SELECT * FROM `t$branch_b`;
INSERT INTO `t$branch_b` VALUES (3, 'in the branch');
SELECT * FROM `t$branch_b`;
CALL sys.create_branch(table => 'd.t', branch => 'b', tag => 'first');
CALL sys.create_branch(table => 'd.t', branch => '12', tag => 'first');
CALL sys.create_branch(table => 'd.t', branch => 'main', tag => 'first');
CALL sys.create_branch(table => 'd.t', branch => 'c', tag => 'missing');
CALL sys.fast_forward(table => 'd.t', branch => 'b');
CALL sys.fast_forward(table => 'd.t', branch => 'missing');
CALL sys.create_branch(table => 'd.t', branch => 'empty');
CALL sys.delete_branch(table => 'd.t', branch => 'b');
CALL sys.delete_branch(table => 'd.t', branch => 'missing');

-- case: call compaction and expiry
CREATE TABLE t (id INT, day STRING) PARTITIONED BY (day) TBLPROPERTIES ('primary-key' = 'id,day', 'bucket' = '1', 'write-only' = 'true');
INSERT INTO t VALUES (1, 'a'), (2, 'b');
INSERT INTO t VALUES (1, 'a'), (3, 'b');
CALL sys.compact(table => 'd.t', where => "day = 'b'");
SELECT level, record_count FROM `t$files`;
CALL sys.compact(table => 'd.t');
SELECT level, record_count FROM `t$files`;
CALL sys.compact(table => 'd.t', where => "id = 1");
CALL sys.compact(table => 'd.missing');
CALL sys.expire_snapshots(table => 'd.t', retain_max => 1);
SELECT count(*) AS n FROM `t$snapshots`;
CALL sys.remove_orphan_files(table => 'd.t', older_than => '2020-01-01 00:00:00');

-- case: call compaction of partitions
CREATE TABLE t (id INT, day STRING) PARTITIONED BY (day) TBLPROPERTIES ('primary-key' = 'id,day', 'bucket' = '1', 'write-only' = 'true');
INSERT INTO t VALUES (1, 'a'), (2, 'b');
CALL sys.compact(table => 'd.t', partitions => 'day=a');

-- case: call expiry of partitions
CREATE TABLE t (id INT, day STRING) PARTITIONED BY (day);
INSERT INTO t VALUES (1, '2001-01-01'), (2, '2099-01-01');
CALL sys.expire_partitions(table => 'd.t', expiration_time => '1 d', timestamp_formatter => 'yyyy-MM-dd');

-- case: call expiry of partitions with a pattern
CREATE TABLE t (id INT, y STRING, m STRING) PARTITIONED BY (y, m);
INSERT INTO t VALUES (1, '2001', '01'), (2, '2099', '01');
CALL sys.expire_partitions(table => 'd.t', expiration_time => '1 d', timestamp_formatter => 'yyyy-MM-dd', timestamp_pattern => '$y-$m-01');

-- case: sorted compaction
CREATE TABLE t (a INT, b INT);
INSERT INTO t VALUES (3, 1), (1, 3), (2, 2);
INSERT INTO t VALUES (9, 1), (1, 9);
CALL sys.compact(table => 'd.t', order_strategy => 'order', order_by => 'a');
CALL sys.compact(table => 'd.t', order_strategy => 'zorder', order_by => 'a,b');
CALL sys.compact(table => 'd.t', order_strategy => 'order', order_by => 'missing');

-- case: metadata tables
CREATE TABLE t (id INT, day STRING) PARTITIONED BY (day) TBLPROPERTIES ('primary-key' = 'id,day', 'bucket' = '1');
INSERT INTO t VALUES (1, 'a'), (2, 'b');
INSERT INTO t VALUES (1, 'a');
SELECT snapshot_id, schema_id, commit_kind, total_record_count, delta_record_count FROM `t$snapshots`;
SELECT schema_id, fields, partition_keys, primary_keys FROM `t$schemas`;
SELECT * FROM `t$options`;
SELECT `partition`, record_count, file_count FROM `t$partitions`;
SELECT `partition`, bucket, file_format, level, record_count, min_key, max_key FROM `t$files`;
SELECT rowkind, id, day FROM `t$audit_log`;
SELECT * FROM `t$ro`;
SELECT * FROM `t$missing`;
SHOW COLUMNS FROM t;
DESCRIBE t;
SHOW TBLPROPERTIES t ('bucket');
SHOW CREATE TABLE t;

-- case: databases
CREATE DATABASE e;
CREATE DATABASE e;
CREATE DATABASE IF NOT EXISTS e;
CREATE TABLE e.t (id INT);
DROP DATABASE e;
DROP DATABASE e CASCADE;
DROP DATABASE e;
DROP DATABASE IF EXISTS e;
USE missing;
CREATE TABLE missing.t (id INT);

-- case: column names with other letters
CREATE TABLE t (Id INT, `a b` STRING, `ü` INT, `select` INT) TBLPROPERTIES ('primary-key' = 'Id', 'bucket' = '1');
INSERT INTO t VALUES (1, 'x', 2, 3);
INSERT INTO t (id, `ü`) VALUES (2, 5);
UPDATE t SET `a b` = 'changed' WHERE `ü` = 2;
DELETE FROM t WHERE `select` IS NULL;
SELECT `a b`, Id FROM t;

-- case: column names in another case
CREATE TABLE t (Id INT, `a b` STRING) TBLPROPERTIES ('primary-key' = 'Id', 'bucket' = '1');
INSERT INTO t VALUES (1, 'x'), (2, 'y');
UPDATE t SET `A B` = 'upper' WHERE ID = 1;
DELETE FROM t WHERE ID = 2;
SELECT ID FROM t;
ALTER TABLE t RENAME COLUMN ID TO key;

-- case: columns that differ in case
CREATE TABLE t (Id INT);
ALTER TABLE t ADD COLUMN ID INT;

-- case: dynamic buckets
CREATE TABLE t (id INT, name STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '-1', 'dynamic-bucket.target-row-num' = '2');
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c');
UPDATE t SET name = 'B' WHERE id = 2;
DELETE FROM t WHERE id = 3;
MERGE INTO t USING (SELECT 1 AS id, 'one' AS name UNION ALL SELECT 4, 'four') AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
INSERT OVERWRITE t VALUES (5, 'e');
