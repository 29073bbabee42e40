-- Statements of the kinds that Java's Spark documents show, with tables of our own. Each ends with a semicolon.
-- "page" names the page of Java's documents. "refused" gives the beginning of the error of the next statement in an
-- attached catalog, and "connect" that of paimon.spark.connect(…).sql, which runs them through Spark Connect.

-- page: sql-ddl
CREATE DATABASE lake.shop;
USE lake.shop;
CREATE TABLE visits (id BIGINT, page STRING COMMENT 'address', day STRING) COMMENT 'web' PARTITIONED BY (day);
CREATE TABLE IF NOT EXISTS stock (item INT NOT NULL, day STRING NOT NULL, amount DECIMAL(10, 2), note STRING DEFAULT 'new')
    PARTITIONED BY (day) TBLPROPERTIES ('primary-key' = 'item,day', 'bucket' = '1');
-- refused: InvalidRequest: A table of this catalog takes no location
-- connect: Unsupported: Not supported: CREATE TABLE … LOCATION
CREATE TABLE elsewhere (id INT) LOCATION '/tmp/elsewhere';
-- refused: InvalidRequest: This catalog has no tables of 'csv'
-- connect: Unsupported: Not supported: CREATE TABLE … USING csv
CREATE TABLE texts (id INT) USING csv;
CREATE TABLE first_visits AS SELECT id, page FROM visits;
CREATE TABLE keyed TBLPROPERTIES ('primary-key' = 'item', 'bucket' = '1') AS SELECT item, note FROM stock;
CREATE TABLE stock_copy LIKE stock;
-- connect: Unsupported: Not supported: statement REPLACE
REPLACE TABLE first_visits AS SELECT id FROM visits;
CREATE OR REPLACE TABLE first_visits (id BIGINT, page STRING);
-- refused: Unsupported: Not supported: PARTITIONED BY bucket(2, id)
-- connect: Unsupported: Not supported: partition transform 'bucket'
CREATE TABLE hashed (id INT) PARTITIONED BY (bucket(2, id));

-- page: sql-write
INSERT INTO visits VALUES (1, 'a', 'mon'), (2, 'b', 'mon'), (3, 'a', 'tue');
INSERT INTO visits PARTITION (day = 'wed') SELECT 4, 'c';
INSERT INTO stock (day, item) VALUES ('mon', 1), ('tue', 2);
INSERT OVERWRITE visits PARTITION (day = 'wed') SELECT 5, 'd';
INSERT OVERWRITE visits PARTITION (day = NULL) SELECT 6, 'e';
-- connect: InvalidRequest: Setting 'spark.sql.sources.partitionOverwriteMode' is not known
SET spark.sql.sources.partitionOverwriteMode = dynamic;
INSERT OVERWRITE visits SELECT 7, 'f', 'tue';
-- connect: NotFound: Setting 'spark.sql.sources.partitionOverwriteMode' does not exist
RESET spark.sql.sources.partitionOverwriteMode;
-- connect: InvalidRequest: SQL syntax error in line 1, column 26
INSERT INTO first_visits REPLACE WHERE TRUE SELECT id, page FROM visits;
-- refused: Unsupported: Not supported: overwriting lake.shop.visits
-- connect: InvalidRequest: SQL syntax error in line 1, column 20
INSERT INTO visits REPLACE WHERE id > 5 SELECT 8, 'g', 'sun';
UPDATE visits SET page = upper(page) WHERE day = 'mon';
DELETE FROM visits WHERE id IN (SELECT item FROM stock WHERE day = 'tue');
-- connect: InvalidRequest: SQL syntax error in line 1, column 27: expected a table, or a query
MERGE INTO visits v USING (SELECT 1L AS id, 'x' AS page, 'mon' AS day) s ON v.id = s.id
    WHEN MATCHED THEN UPDATE SET page = s.page WHEN NOT MATCHED THEN INSERT *
    WHEN NOT MATCHED BY SOURCE AND v.day = 'tue' THEN DELETE;
MERGE INTO stock t USING (SELECT 1 AS item, 'mon' AS day, 5 AS amount) s ON t.item = s.item AND t.day = s.day
    WHEN MATCHED AND s.amount = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET t.amount = s.amount
    WHEN NOT MATCHED THEN INSERT (item, day, amount) VALUES (s.item, s.day, s.amount);
-- connect: InvalidRequest: SQL syntax error in line 1, column 7: expected INTO after MERGE
MERGE WITH SCHEMA EVOLUTION INTO first_visits t USING (SELECT 1L AS id, 'x' AS page, 3 AS times) s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;

-- page: sql-query
SELECT * FROM visits VERSION AS OF 1;
SELECT * FROM visits TIMESTAMP AS OF '2100-01-01';
SELECT page, count(*) FROM visits WHERE day = 'mon' GROUP BY page;
-- connect: InvalidRequest: SQL syntax error in line 1, column 50
SELECT * FROM visits WITH ('incremental-between' = '1,2');
SELECT snapshot_id, commit_kind FROM `visits$snapshots`;
SELECT rowkind, id FROM `visits$audit_log`;
-- connect: InvalidRequest: Setting 'spark.paimon.scan.snapshot-id' is not known
SET `spark.paimon.scan.snapshot-id` = 1;
SELECT count(*) FROM visits;
-- connect: NotFound: Setting 'spark.paimon.scan.snapshot-id' does not exist
RESET `spark.paimon.scan.snapshot-id`;

-- page: sql-alter
ALTER TABLE visits SET TBLPROPERTIES ('snapshot.num-retained.max' = '50');
ALTER TABLE visits UNSET TBLPROPERTIES ('snapshot.num-retained.max');
COMMENT ON TABLE visits IS 'pages';
ALTER TABLE visits SET TBLPROPERTIES ('comment' = 'pages of the shop');
ALTER TABLE visits UNSET TBLPROPERTIES ('comment');
ALTER TABLE visits ADD COLUMNS (origin STRING, place STRUCT<city: STRING>);
ALTER TABLE visits ADD COLUMN place.street STRING;
ALTER TABLE visits RENAME COLUMN origin TO source;
ALTER TABLE visits DROP COLUMN source;
ALTER TABLE visits ALTER COLUMN page COMMENT 'path';
ALTER TABLE visits ADD COLUMN before INT FIRST;
ALTER TABLE visits ALTER COLUMN before AFTER id;
ALTER TABLE visits ALTER COLUMN before TYPE BIGINT;
ALTER TABLE stock ALTER COLUMN note SET DEFAULT 'old';
-- refused: InvalidRequest: Column 'day' cannot be dropped
-- connect: InvalidRequest: Column 'day' cannot be dropped
ALTER TABLE visits DROP COLUMN day;
ALTER TABLE visits DROP PARTITION (day = 'mon');
-- refused: Unsupported: Not supported: ADD PARTITION
-- connect: Unsupported: Not supported: ALTER TABLE … ADD PARTITION
ALTER TABLE visits ADD PARTITION (day = 'sat');
ALTER TABLE stock_copy RENAME TO stock_old;

-- page: auxiliary
DESCRIBE TABLE EXTENDED visits;
SHOW CREATE TABLE stock;
SHOW COLUMNS FROM visits;
SHOW PARTITIONS visits;
SHOW TABLE EXTENDED LIKE 'visits';
ANALYZE TABLE visits COMPUTE STATISTICS;
ANALYZE TABLE visits COMPUTE STATISTICS FOR COLUMNS id, page;
REFRESH TABLE visits;

-- page: procedures
CALL sys.create_tag(table => 'shop.visits', tag => 'one');
CALL sys.create_branch(table => 'shop.visits', branch => 'try');
INSERT INTO `visits$branch_try` (id, day) VALUES (9, 'fri');
CALL sys.delete_branch(table => 'shop.visits', branch => 'try');
CALL sys.compact(table => 'shop.stock');
CALL sys.rollback(table => 'shop.visits', version => 'one');
CALL sys.delete_tag(table => 'shop.visits', tag => 'one');
CALL sys.expire_snapshots(table => 'shop.visits', retain_max => 1);
CALL sys.remove_orphan_files(table => 'shop.visits');
-- refused: NotFound: Procedure 'merge_branch' does not exist
-- connect: NotFound: Procedure 'merge_branch' does not exist
CALL sys.merge_branch(table => 'shop.visits');

-- page: sql-write, end
TRUNCATE TABLE visits PARTITION (day = 'tue');
TRUNCATE TABLE visits;
DROP TABLE visits;
-- connect: NotFound: Catalog 'spark_catalog' does not exist
USE spark_catalog.default;
