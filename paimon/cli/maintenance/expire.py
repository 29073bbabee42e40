"""The commands of `paimon expire`: snapshots, changelogs, tags and partitions.

Invariant: the table options supply each limit that is not an argument. Where an argument keeps less than they do, the
command asks on a terminal. It always prints what was removed.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import Commands, open_data_table
from paimon.cli.maintenance.verbs import (
    AGE_HELP,
    add_command_group,
    add_confirmation,
    add_table_command,
    confirm,
    parse_moment,
)
from paimon.cli.output import print_records
from paimon.domain.maintenance.snapshot_expiry import Retention
from paimon.maintain import override_retention
from paimon.operations.expire.expire_snapshots import Expired
from paimon.references import age_millis, before_millis
from paimon.table import Table


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    verbs = add_command_group(
        commands,
        "expire",
        "remove old snapshots, changelogs, tags or partitions, by the table options or by arguments",
        "paimon expire snapshots lake/default.db/orders --retain-max 20 --older-than '7 d'",
    )
    for name, run in (("snapshots", _snapshots), ("changelogs", _changelogs)):
        what = f"remove the oldest {name}, and the files that only they reference"
        parser = add_table_command(
            verbs, name, what, f"paimon expire {name} lake/default.db/orders --retain-max 20", run
        )
        parser.add_argument("--retain-min", type=int, metavar="N", help="keep at least this number")
        parser.add_argument("--retain-max", type=int, metavar="N", help="keep at most this number, whatever their age")
        parser.add_argument("--older-than", metavar="AGE", help=f"remove older ones: {AGE_HELP}")
        parser.add_argument("--max-deletes", type=int, metavar="N", help="remove at most this number")
        add_confirmation(parser)
        if name == "snapshots":
            parser.add_argument("--dry-run", action="store_true", help="show which snapshots would go; remove nothing")
        if name == "changelogs":
            parser.add_argument("--all", action="store_true", help="remove all changelogs")
    tags = add_table_command(
        verbs,
        "tags",
        "delete the tags whose retention time is over",
        "paimon expire tags lake/default.db/orders",
        _tags,
    )
    tags.add_argument("--older-than", metavar="AGE", help=f"also delete tags that were created earlier: {AGE_HELP}")
    add_confirmation(tags)
    partitions = add_table_command(
        verbs,
        "partitions",
        "drop the partitions that are older than an age",
        "paimon expire partitions lake/default.db/orders --age '365 d'",
        _partitions,
    )
    partitions.add_argument(
        "--age", metavar="AGE", help="age, such as '365 d' (default: the table option partition.expiration-time)"
    )
    partitions.add_argument("--max", type=int, metavar="N", help="remove at most this number")
    add_confirmation(partitions)


def _snapshots(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    if not arguments.dry_run:
        _confirm_retention(arguments, table, Retention.of_snapshots(table.definition.options))
    done = table.maintain.expire_snapshots(
        retain_min=arguments.retain_min,
        retain_max=arguments.retain_max,
        older_than=parse_moment(arguments.older_than),
        max_deletes=arguments.max_deletes,
        dry_run=arguments.dry_run,
    )
    _print(done, "snapshots", arguments.output)


def _changelogs(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    _confirm_retention(arguments, table, Retention.of_changelogs(table.definition.options))
    done = table.maintain.expire_changelogs(
        retain_min=arguments.retain_min,
        retain_max=arguments.retain_max,
        older_than=parse_moment(arguments.older_than),
        max_deletes=arguments.max_deletes,
        delete_all=arguments.all,
    )
    _print(done, "changelogs", arguments.output)


def _tags(arguments: argparse.Namespace) -> None:
    table, older_than = open_data_table(arguments), parse_moment(arguments.older_than)
    if older_than is not None:
        retained = table.definition.options.tag_default_time_retained_millis
        age = table.engine.clock.now_millis() - before_millis(table.engine, older_than)
        _confirm_shorter(arguments, table, retained is None or age < retained)
    gone = table.maintain.expire_tags(older_than)
    print_records([{"tag": name, "deleted": True} for name in gone], arguments.output, "expired tags")


def _partitions(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    if arguments.age is not None:
        retained = table.definition.options.partition_expiration_millis
        _confirm_shorter(arguments, table, retained is None or age_millis(arguments.age) < retained)
    gone = table.maintain.expire_partitions(arguments.age, max_partitions=arguments.max)
    print_records(gone, arguments.output, "expired partitions")


def _confirm_retention(arguments: argparse.Namespace, table: Table, own: Retention) -> None:
    """Ask on a terminal if the arguments keep fewer snapshots or changelogs than the options of the table."""
    older_than = parse_moment(arguments.older_than)
    wanted = override_retention(table.context, own, arguments.retain_min, arguments.retain_max, older_than)
    _confirm_shorter(arguments, table, getattr(arguments, "all", False) or wanted.is_shorter_than(own))


def _confirm_shorter(arguments: argparse.Namespace, table: Table, is_shorter: bool) -> None:
    if is_shorter:
        question = f"The arguments keep less than the options of {table.name}. Delete the rest?"
        confirm(question, has_agreed=arguments.yes)


def _print(done: Expired, noun: str, output: str) -> None:
    last = done.until - 1 if done.snapshots else None
    print_records(
        [{noun: done.snapshots, "first": done.first if done.snapshots else None, "last": last, "files": done.files}],
        output,
    )
