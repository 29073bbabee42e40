"""The page of SQL statements, and of the procedures from the table of verbs."""

from __future__ import annotations

from paimon.verbs.verb_table import PROCEDURES, TABLE
from reference_generator.markdown import code, page, paragraph, sentence, table

_INTRODUCTION = """`Catalog.sql`, `SqlSession.sql`, `paimon.spark.connect(…).sql` and `paimon sql` run these statements.
Keywords may be in upper or lower case. Names may be in back quotes or in double quotes, texts are in single quotes.
`--` and `/* */` are comments. A name has one to three parts: `table`, `database.table`, `catalog.database.table`.
[Use SQL](../how-to/sql.md) shows examples."""

STATEMENTS: dict[str, list[tuple[str, str]]] = {
    "Catalogs, databases and settings": [
        ("CREATE CATALOG [IF NOT EXISTS] name WITH ('type' = 'paimon', 'warehouse' = 'path', …)",
         "Open a warehouse under a name, for this session. Options are those of `paimon.connect`; `storage.X` is the "
         "storage option X. The database `default` is created."),
        ("DROP CATALOG [IF EXISTS] name", "Remove the name from the session. No table changes."),
        ("USE CATALOG name · USE [DATABASE] name · USE catalog.database",
         "Set the current catalog and database. Names without these parts use them."),
        ("SHOW CATALOGS · SHOW CURRENT CATALOG · SHOW CURRENT DATABASE", ""),
        ("CREATE DATABASE [IF NOT EXISTS] name · DROP DATABASE [IF EXISTS] name [CASCADE]",
         "`SCHEMA` means the same as `DATABASE`."),
        ("ALTER DATABASE name SET [PROPERTIES | DBPROPERTIES] ('key' = 'value', …) · "
         "ALTER DATABASE name UNSET PROPERTIES ('key', …)",
         "Only a JDBC catalog stores properties."),
        ("SHOW DATABASES [LIKE 'pattern'] · SHOW SCHEMAS", "In a pattern, `*` means the same as `%`."),
        ("SET 'paimon.option' = 'value' · SET · RESET ['key']",
         "A dynamic option of all tables of the session. Flink's settings of a cluster are accepted without effect, "
         "and the result says so. Other settings are refused."),
    ],
    "Tables": [
        ("CREATE TABLE [IF NOT EXISTS] name (column type [NOT NULL] [DEFAULT value] [COMMENT 'text'], …, "
         "PRIMARY KEY (columns) NOT ENFORCED) [COMMENT 'text'] [PARTITIONED BY (columns)] [WITH ('key' = 'value', …)]",
         "Spark's clauses are accepted, too: `TBLPROPERTIES`, `OPTIONS`, `USING paimon`, and columns with a type in "
         "`PARTITIONED BY`. A single key column may say `PRIMARY KEY NOT ENFORCED`. Types are those of Flink; "
         "`STRUCT<a: INT>` and `TIMESTAMP_NTZ` are accepted. The option `comment` is the comment of the table."),
        ("CREATE TABLE name [clauses] AS query", "A statement that fails leaves no table."),
        (
            "CREATE TABLE name LIKE name [WITH (…)]",
            "Copies columns, keys, options and the comment, but not `path` and `data-file.external-paths*`.",
        ),
        ("CREATE OR REPLACE TABLE name … [AS query | LIKE name]",
         "Replaces an existing table with all its rows and history; the query may read it. A statement that fails "
         "keeps it. Two moves of directories replace it: between them, readers see no table for a moment. If the "
         "process is killed there, the old table is the directory `.name.….replaced` next to its place: move it back. "
         "Object stores and JDBC catalogs, which cannot move directories, are refused."),
        ("ALTER TABLE [IF EXISTS] name clause",
         "`ADD`, `RENAME`, `DROP`, `MODIFY`, `ALTER COLUMN`, `SET`, `RESET`, `COMMENT`, as in `Table.alter`."),
        ("ALTER TABLE name RENAME TO name · COMMENT ON TABLE name IS 'text'", "`IS NULL` removes the comment."),
        ("ALTER TABLE name DROP [IF EXISTS] PARTITION (column = value, …), …",
         "Some of the partition columns suffice. Without `IF EXISTS`, each partition must exist."),
        ("DROP TABLE [IF EXISTS] name · TRUNCATE TABLE name [PARTITION (…)]", ""),
        ("ALTER TABLE name CREATE [OR REPLACE] TAG [IF NOT EXISTS] tag [AS OF VERSION n] [RETAIN n DAYS] · "
         "ALTER TABLE name REPLACE TAG tag … · ALTER TABLE name RENAME TAG tag TO new · "
         "ALTER TABLE name DROP TAG [IF EXISTS] tag · SHOW TAGS name", "As the methods of `Table.tags`."),
        ("SHOW TABLE EXTENDED [IN database] LIKE 'pattern' · REFRESH TABLE name",
         "Statements always read the newest state, so `REFRESH` only checks the name."),
        ("ANALYZE TABLE name COMPUTE STATISTICS [FOR COLUMNS a, b | FOR ALL COLUMNS]",
         "As `Table.analyze`. Without `FOR`, only rows and bytes are counted."),
        ("DESCRIBE [EXTENDED] name · DESC · SHOW COLUMNS FROM name", ""),
        ("SHOW TABLES [IN database] [LIKE 'pattern'] · SHOW CREATE TABLE name", ""),
        ("SHOW PARTITIONS name [PARTITION (…)] · SHOW TBLPROPERTIES name [('key')]", ""),
        ("CREATE [OR REPLACE] [TEMPORARY] VIEW [IF NOT EXISTS] name [(columns)] AS query · DROP VIEW · SHOW VIEWS",
         "A query with a name, for this session."),
    ],
    "Rows": [
        ("INSERT INTO name [PARTITION (…)] [(columns) | BY NAME] query",
         "Each column is cast to the type of the table. `BY NAME` takes the columns from the names in the query. "
         "In `VALUES`, `DEFAULT` is the default of the column, or null; so is a column that is left out."),
        ("INSERT OVERWRITE name [PARTITION (…)] [(columns) | BY NAME] query",
         "Replaces the partition of the clause, else the partitions of the rows, else the table."),
        ("UPDATE name [AS alias] SET column = expression, … [WHERE condition]",
         "As `Table.update`; values and the condition may contain subqueries, also over columns of the changed row. "
         "`SET column = DEFAULT` sets the default of the column, or null, here and in `MERGE INTO`."),
        ("DELETE FROM name [AS alias] [WHERE condition]",
         "As `Table.delete`; the condition may contain subqueries, also over columns of the deleted row."),
        ("MERGE INTO name [AS alias] USING source [AS alias] ON condition WHEN …",
         "As `Table.merge`. The source is a table, a data frame or a query in parentheses. Clauses, each with "
         "`[AND condition]`: `WHEN MATCHED THEN UPDATE SET * | UPDATE SET column = expression, … | DELETE`, "
         "`WHEN NOT MATCHED [BY TARGET] THEN INSERT * | INSERT (columns) VALUES (expressions)`, "
         "`WHEN NOT MATCHED BY SOURCE THEN UPDATE SET … | DELETE`."),
        ("EXPLAIN [PLAN FOR] statement",
         "The scans with their columns, conditions and limits, and the plan of the engine."),
    ],
    "Queries": [
        ("SELECT … · VALUES … · WITH … · FROM … · PIVOT … · UNPIVOT …",
         "DuckDB's dialect and functions. Bytes are `X'00FF'`. A number with an exponent, such as `1e3`, is a DOUBLE."),
        ("name VERSION AS OF n · name VERSION AS OF 'tag' · FOR VERSION AS OF",
         "A snapshot or a tag. An alias follows after it."),
        ("name TIMESTAMP AS OF 'time' · name FOR SYSTEM_TIME AS OF TIMESTAMP 'time'",
         "The last snapshot at that time."),
        ("name /*+ OPTIONS('key' = 'value', …) */", "Dynamic options of one table."),
        ("name$snapshots · name$branch_b", "System tables and branches."),
        ("read_parquet('path') · read_csv(['path', …]) · read_json('path') · read_orc, read_avro, read_arrow",
         "The rows of files below the directories that `allowed_files` of the call names. A path may be a pattern."),
        ("COPY name TO 'path' [(FORMAT format)] · COPY (query) TO 'path'",
         "Write a file below those directories: Parquet, CSV, JSON lines, Arrow or Markdown."),
        ("paimon_incremental_query('table', 'start', 'end')", "The rows between two snapshots or tags."),
        ("paimon_incremental_between_timestamp('table', 'start', 'end') · "
         "paimon_incremental_to_auto_tag('table', 'tag')",
         "The rows between two times, or between an automatic tag and the one before it."),
    ],
    "Procedures": [
        ("CALL sys.name(value, …) · CALL sys.name(parameter => value, …)", "`Table.call` does the same."),
        ("CALL sys.help() · CALL sys.help('name') · SHOW PROCEDURES", "The procedures, and the parameters of one."),
        ("CALL sys.repair('table')", "Register a table whose files exist, as `Catalog.repair_table`."),
    ],
}  # fmt: skip
"""Statements and their notes by section."""


_ON_SPARK = """`paimon.spark.connect(spark, warehouse).sql(text)` runs the same statements. Queries are written in
DuckDB's dialect, translated, and evaluated by Spark. A function that Spark lacks is refused by name. These parts have
other results:"""
SPARK_DIFFERENCES: list[tuple[str, str, str]] = [
    ("CAST of a `DOUBLE` such as 2.5 to an integer type", "2: to the even number",
     "3: away from zero; `INSERT` makes 2 on both"),
    ("CAST of a list of fractions to a list of integers", "rounds", "truncates"),
    ("CAST of text to `BLOB`", "ASCII, and `\\x41` for other bytes", "the bytes of the text in UTF-8"),
    ("CAST of structs and lists to text", "`{'a': 1}`", "`{1}`"),
    ("division by zero with `/`", "infinity", "fails"),
    ("a number beyond the largest DOUBLE, such as `1e400`", "infinity", "refused"),
    ("large and small numbers of type `DOUBLE` as text", "`1e+20`", "`1.0E20`"),
    ("`TIMESTAMP(7)` to `TIMESTAMP(9)`", "nanoseconds", "microseconds"),
    ("a date plus an interval of days", "`TIMESTAMP`", "`DATE`"),
    ("names of columns without an alias", "`count_star()`", "`count(1)`"),
    ("`regexp_replace` without the option `'g'`, `format`, `strftime` with `%j`", "supported", "refused"),
    ("`PIVOT` and `UNPIVOT` with `ON`, instead of `FOR … IN`", "supported", "refused"),
    ("`*` with `QUALIFY` or `DISTINCT ON`, `* REPLACE`, list comprehensions, negative list positions",
     "supported", "refused"),
    ("`substr` from position 0, `left` and `right` with negative lengths", "count from the other end", "do not"),
    ("`round` of `DOUBLE` where the digit after is 5", "the nearest value in binary", "away from zero in decimal"),
    ("`element_at` of a map", "a list", "the value; write `map[key]`"),
    ("`upper` of letters that become two, `hash`, `typeof`", "as DuckDB defines them", "as Spark defines them"),
    ("an error while rows are read", "an error of this library", "an exception of Spark, because the frame is lazy"),
]  # fmt: skip
"""Parts of queries with another result on Spark: the part, the result in DuckDB, and that on Spark."""


def generate_page() -> str:
    """Return the page."""
    parts = []
    for title, rows in STATEMENTS.items():
        cells = [[" ".join(code(part) for part in text.split(" · ")), note] for text, note in rows]
        parts += [f"## {title}", table(("Statement", "Notes"), cells)]
    listed = [_describe_procedure(name) for name in sorted(PROCEDURES)]
    parts += [
        "Optional parameters are in brackets. A time is a timestamp, or an age such as `'7 d'`.",
        table(("Procedure", "Parameters", "Effect"), listed),
        "## On Spark",
        _ON_SPARK,
        table(("Part", "DuckDB", "Spark"), SPARK_DIFFERENCES),
        "## Not supported",
        paragraph("`CREATE TEMPORARY TABLE`, grants and transactions are refused by name."),
    ]
    return page("SQL statements", _INTRODUCTION, *parts)


def _describe_procedure(name: str) -> list[str]:
    procedure = PROCEDURES[name]
    names = [code(p.call_name) if p.required else f"[{code(p.call_name)}]" for p in (TABLE, *procedure.call_parameters)]
    return [code(f"sys.{name}"), ", ".join(names), sentence(procedure.help)]
