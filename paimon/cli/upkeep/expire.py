"""`paimon expire`: snapshots, changelogs, tags and partitions that have had their time.

Law: what is not given comes from the table's options; what was removed is told, also where it is nothing.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import Commands, opened_table
from paimon.cli.output import print_records
from paimon.cli.upkeep.verbs import AGE_HELP, moment, noun, verb
from paimon.operations.maintain.retention.expire_snapshots import Expired


def add_commands(commands: Commands) -> None:
    """Add this noun's commands."""
    verbs = noun(
        commands,
        "expire",
        "remove what has had its time, as the table's options or these arguments say: "
        "snapshots, changelogs, tags, partitions",
        "paimon expire snapshots lake/default.db/orders --retain-max 20 --older-than '7 d'",
    )
    for name, run in (("snapshots", _snapshots), ("changelogs", _changelogs)):
        what = f"remove the oldest {name}, and the files that only they had"
        parser = verb(verbs, name, what, f"paimon expire {name} lake/default.db/orders --retain-max 20", run)
        parser.add_argument("--retain-min", type=int, metavar="N", help="keep at least so many")
        parser.add_argument("--retain-max", type=int, metavar="N", help="keep at most so many, whatever their age")
        parser.add_argument("--older-than", metavar="AGE", help=f"older ones go: {AGE_HELP}")
        parser.add_argument("--max-deletes", type=int, metavar="N", help="at most so many now")
        if name == "changelogs":
            parser.add_argument("--all", action="store_true", help="every one")
    tags = verb(
        verbs, "tags", "delete the tags whose time to live is over", "paimon expire tags lake/default.db/orders", _tags
    )
    tags.add_argument("--older-than", metavar="AGE", help=f"also tags made before: {AGE_HELP}")
    partitions = verb(
        verbs,
        "partitions",
        "drop the partitions that are older than an age",
        "paimon expire partitions lake/default.db/orders --age '365 d'",
        _partitions,
    )
    partitions.add_argument("--age", metavar="AGE", help="such as '365 d' (default: partition.expiration-time)")
    partitions.add_argument("--max", type=int, metavar="N", help="at most so many now")


def _snapshots(given: argparse.Namespace) -> None:
    done = opened_table(given).maintain.expire_snapshots(
        retain_min=given.retain_min,
        retain_max=given.retain_max,
        older_than=moment(given.older_than),
        max_deletes=given.max_deletes,
    )
    _print(done, "snapshots", given.output)


def _changelogs(given: argparse.Namespace) -> None:
    done = opened_table(given).maintain.expire_changelogs(
        retain_min=given.retain_min,
        retain_max=given.retain_max,
        older_than=moment(given.older_than),
        max_deletes=given.max_deletes,
        delete_all=given.all,
    )
    _print(done, "changelogs", given.output)


def _tags(given: argparse.Namespace) -> None:
    gone = opened_table(given).maintain.expire_tags(moment(given.older_than))
    print_records([{"tag": name, "deleted": True} for name in gone], given.output, "tags expired")


def _partitions(given: argparse.Namespace) -> None:
    gone = opened_table(given).maintain.expire_partitions(given.age, max_partitions=given.max)
    print_records(gone, given.output, "partitions expired")


def _print(done: Expired, what: str, output: str) -> None:
    last = done.until - 1 if done.snapshots else None
    print_records(
        [{what: done.snapshots, "first": done.first if done.snapshots else None, "last": last, "files": done.files}],
        output,
    )
