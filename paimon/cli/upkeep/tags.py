"""`paimon tag`: names that keep snapshots.

Law: each verb does one thing to one tag and prints the tag as it then is.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import Commands, opened_table
from paimon.cli.history import utc
from paimon.cli.output import print_records
from paimon.cli.upkeep.verbs import noun, verb
from paimon.domain.snapshot.snapshot import Tag

_RETAIN = "how long the tag lives, such as '30 d' (default: the option tag.default-time-retained, else for ever)"


def add_commands(commands: Commands) -> None:
    """Add this noun's commands."""
    verbs = noun(
        commands,
        "tag",
        "tags keep snapshots from expiring: list, create, replace, rename, delete",
        "paimon tag create lake/default.db/orders year-end --retain '730 d'",
    )
    verb(verbs, "list", "list the tags of a table", "paimon tag list lake/default.db/orders", _list)
    for name, what, run in (
        ("create", "name a snapshot, so that it does not expire", _create),
        ("replace", "let a tag name another snapshot, with a new time to live", _replace),
    ):
        parser = verb(verbs, name, what, f"paimon tag {name} lake/default.db/orders year-end --snapshot 12", run)
        parser.add_argument("name", metavar="NAME", help="the tag")
        parser.add_argument("--snapshot", type=int, metavar="ID", help="the snapshot (default: the latest)")
        if name == "create":
            parser.add_argument("--since", metavar="TIME", help="instead the first state of this time or later")
            parser.add_argument("--watermark", type=int, metavar="MILLIS", help="instead the first that reached this")
        parser.add_argument("--retain", metavar="AGE", help=_RETAIN)
    rename = verb(
        verbs, "rename", "give a tag another name", "paimon tag rename lake/default.db/orders year-end 2026", _rename
    )
    rename.add_argument("name", metavar="NAME", help="the tag")
    rename.add_argument("to", metavar="NEW", help="its new name")
    delete = verb(
        verbs,
        "delete",
        "delete a tag, and the files that only it kept",
        "paimon tag delete lake/default.db/orders year-end",
        _delete,
    )
    delete.add_argument("name", metavar="NAME", help="the tag")


def _list(given: argparse.Namespace) -> None:
    table = opened_table(given)
    print_records([_record(tag) for tag in table.tags.values()], given.output, f"tags of {table.name}")


def _create(given: argparse.Namespace) -> None:
    tags = opened_table(given).tags
    where = {"since": given.since, "watermark": given.watermark}
    tag = tags.create(given.name, given.snapshot, time_retained=given.retain, **where)
    print_records([_record(tag)], given.output)


def _replace(given: argparse.Namespace) -> None:
    tag = opened_table(given).tags.replace(given.name, given.snapshot, time_retained=given.retain)
    print_records([_record(tag)], given.output)


def _rename(given: argparse.Namespace) -> None:
    print_records([_record(opened_table(given).tags.rename(given.name, given.to))], given.output)


def _delete(given: argparse.Namespace) -> None:
    print_records([{"tag": given.name, "files deleted": opened_table(given).tags.delete(given.name)}], given.output)


def _record(tag: Tag) -> dict[str, object]:
    return {
        "tag": tag.name,
        "snapshot": tag.snapshot.id,
        "time": utc(tag.snapshot.time_millis),
        "records": tag.snapshot.total_record_count,
        "created": tag.create_time,
        "lives seconds": tag.retained_seconds,
    }
