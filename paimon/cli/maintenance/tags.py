"""The commands of `paimon tag`: list, get, create, replace, rename and delete.

Invariant: each command changes one tag and prints the tag afterwards.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import Commands, open_data_table
from paimon.cli.history import format_utc
from paimon.cli.maintenance.verbs import add_command_group, add_table_command
from paimon.cli.output import print_records
from paimon.domain.errors import NotFound, did_you_mean
from paimon.domain.snapshot.snapshot import Tag

_RETAIN = "retention time of the tag, such as '30 d' (default: the table option tag.default-time-retained, or no limit)"


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    verbs = add_command_group(
        commands,
        "tag",
        "manage tags, which protect snapshots from expiry: list, get, create, replace, rename, delete",
        "paimon tag create lake/default.db/orders year-end --retain '730 d'",
    )
    listing = add_table_command(
        verbs, "list", "list the tags of a table", "paimon tag list lake/default.db/orders --prefix year", _list
    )
    listing.add_argument("-p", "--prefix", default="", metavar="TEXT", help="only tags whose names begin so")
    one = add_table_command(verbs, "get", "print a tag", "paimon tag get lake/default.db/orders year-end", _get)
    one.add_argument("name", metavar="NAME", help="name of the tag")
    for name, what, run in (
        ("create", "create a tag of a snapshot, which then does not expire", _create),
        ("replace", "move a tag to another snapshot, with a new retention time", _replace),
    ):
        parser = add_table_command(
            verbs, name, what, f"paimon tag {name} lake/default.db/orders year-end --snapshot 12", run
        )
        parser.add_argument("name", metavar="NAME", help="name of the tag")
        parser.add_argument(
            "--snapshot-id",
            "--snapshot",
            dest="snapshot",
            type=int,
            metavar="ID",
            help="snapshot (default: the latest)",
        )
        if name == "create":
            parser.add_argument("-i", "--ignore-if-exists", action="store_true", help="succeed if it exists already")
            parser.add_argument("--since", metavar="TIME", help="take the first snapshot at or after this time instead")
            parser.add_argument(
                "--watermark",
                type=int,
                metavar="MILLIS",
                help="take the first snapshot with this watermark or a later one instead",
            )
        parser.add_argument("--retain", metavar="AGE", help=_RETAIN)
    rename = add_table_command(
        verbs, "rename", "rename a tag", "paimon tag rename lake/default.db/orders year-end 2026", _rename
    )
    rename.add_argument("name", metavar="NAME", help="name of the tag")
    rename.add_argument("to", metavar="NEW", help="new name of the tag")
    delete = add_table_command(
        verbs,
        "delete",
        "delete a tag, and the files that only it references",
        "paimon tag delete lake/default.db/orders year-end",
        _delete,
    )
    delete.add_argument("name", metavar="NAME", help="name of the tag")


def _list(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    found = [_to_record(tag) for name, tag in table.tags.items() if name.startswith(arguments.prefix)]
    print_records(found, arguments.output, f"tags of {table.name}")


def _get(arguments: argparse.Namespace) -> None:
    tags = open_data_table(arguments).tags
    if arguments.name not in tags:
        raise NotFound("tag", arguments.name, hint=did_you_mean(arguments.name, list(tags)))
    print_records([_to_record(tags[arguments.name])], arguments.output)


def _create(arguments: argparse.Namespace) -> None:
    tags = open_data_table(arguments).tags
    selection = {
        "since": arguments.since,
        "watermark": arguments.watermark,
        "exist_ok": arguments.ignore_if_exists,
    }
    tag = tags.create(arguments.name, arguments.snapshot, time_retained=arguments.retain, **selection)
    print_records([_to_record(tag)], arguments.output)


def _replace(arguments: argparse.Namespace) -> None:
    tag = open_data_table(arguments).tags.replace(arguments.name, arguments.snapshot, time_retained=arguments.retain)
    print_records([_to_record(tag)], arguments.output)


def _rename(arguments: argparse.Namespace) -> None:
    print_records([_to_record(open_data_table(arguments).tags.rename(arguments.name, arguments.to))], arguments.output)


def _delete(arguments: argparse.Namespace) -> None:
    print_records(
        [{"tag": arguments.name, "files deleted": open_data_table(arguments).tags.delete(arguments.name)}],
        arguments.output,
    )


def _to_record(tag: Tag) -> dict[str, object]:
    return {
        "tag": tag.name,
        "snapshot": tag.snapshot.id,
        "time": format_utc(tag.snapshot.time_millis),
        "records": tag.snapshot.total_record_count,
        "created": tag.create_time,
        "lives seconds": tag.retained_seconds,
    }
