"""The commands of the program, and the modules that have them.

Each module loads what its commands need. The program loads the module of the command that it runs, and none for the
list of commands.
"""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, tuple[str, str]] = {
    "init": ("tables", "create a warehouse with a database"),
    "create": ("tables", "create a table"),
    "ls": ("tables", "list the databases and tables of a warehouse"),
    "config": ("tables", "list the settings of commands, and where they come from"),
    "show": ("tables", "show the schema, the options and the files of a table, by partition, bucket and level"),
    "drop": ("tables", "delete a table with all its files"),
    "truncate": ("tables", "delete all rows of a table"),
    "rename": ("tables", "give a table another name"),
    "partitions": ("tables", "list the partitions of a table"),
    "alter": ("alter", "change options, columns or the comment of a table, in one new version of its schema"),
    "sql": ("sql", "run SQL statements, or open an interactive shell"),
    "cat": ("rows", "print rows of a table"),
    "head": ("rows", "print the first rows of a table"),
    "write": ("rows", "write the rows of files to a table, in one commit"),
    "delete": ("changes", "delete rows of a table, in one commit"),
    "update": ("changes", "set columns in rows of a table, in one commit"),
    "merge": ("changes", "update, delete and insert rows from files, in one commit"),
    "follow": (
        "history",
        "print the changes of new snapshots as they are committed; the table is checked at an interval",
    ),
    "snapshots": ("history", "list the snapshots of a table"),
    "outcome": (
        "history",
        "print the status of a commit: committed, not committed, open (a request can still publish it), or unknown",
    ),
    "maintain": (
        "maintenance",
        "compact tables and expire their tags, partitions, consumers, snapshots and changelogs, as far as it is due",
    ),
    "compact": ("maintenance", "compact a table: merge its sorted runs, or combine its small files"),
    "compact-manifest": ("maintenance", "merge the manifests of a table, so that scans plan faster"),
    "rescale": ("maintenance", "change the number of buckets of a table, and rewrite its partitions"),
    "analyze": (
        "maintenance",
        "count rows, distinct values and nulls of a table for the planners of queries, and store them with a snapshot",
    ),
    "fsck": (
        "maintenance",
        "check that all files of a table exist and match its metadata; report each fault and its repair",
    ),
    "orphans": (
        "maintenance",
        "list or delete orphan files, which no snapshot, tag or changelog of any branch references",
    ),
    "rewrite-file-index": (
        "maintenance",
        "build the file indexes of existing files again, by the options of the table now",
    ),
    "doctor": ("maintenance", "find what makes a table slow or large, and repair it with --fix"),
    "clone": (
        "maintenance",
        "copy a table, or all tables of a database, with their files to another name or warehouse",
    ),
    "migrate": ("maintenance", "make an append table of the Parquet, ORC or Avro files of a directory"),
    "tag": (
        "maintenance",
        "manage tags, which protect snapshots from expiry: list, get, create, replace, rename, create-due, delete",
    ),
    "branch": (
        "maintenance",
        "manage branches, which are separate histories over the same files: list, create, rename, delete, fast-forward",
    ),
    "consumer": (
        "maintenance",
        "manage consumers, which protect unread snapshots from expiry: list, reset, delete, clear, expire",
    ),
    "rollback": (
        "maintenance",
        "make an earlier snapshot the latest, and delete all later snapshots, changelogs and tags",
    ),
    "expire": (
        "maintenance",
        "remove old snapshots, changelogs, tags or partitions, by the table options or by arguments",
    ),
    "table": (
        "groups",
        "the commands of tables by the names of pypaimon: read, get, create, import, drop, rename and others",
    ),
    "db": ("groups", "manage the databases of a warehouse: list, create, get, list-tables, alter, drop"),
    "catalog": ("groups", "list the databases of a warehouse: list-dbs"),
}
"""By command, the module in `paimon.cli`, and the sentence in the list of commands."""
