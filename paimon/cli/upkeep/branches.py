"""`paimon branch`: second histories of a table.

Law: reading and writing a branch needs no verb: that is the option `branch` of any other command.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import Commands, opened_table
from paimon.cli.output import print_records
from paimon.cli.upkeep.verbs import noun, verb


def add_commands(commands: Commands) -> None:
    """Add this noun's commands."""
    verbs = noun(
        commands,
        "branch",
        "branches are histories of their own over the same files: list, create, rename, delete, fast-forward",
        "paimon branch create lake/default.db/orders trial --tag year-end",
    )
    verb(verbs, "list", "list the branches but main", "paimon branch list lake/default.db/orders", _list)
    create = verb(
        verbs,
        "create",
        "make a branch at a tag's state, or an empty one; it is then the table 'TABLE$branch_NAME'",
        "paimon branch create lake/default.db/orders trial --tag year-end",
        _create,
    )
    create.add_argument("name", metavar="NAME", help="the branch")
    create.add_argument("--tag", metavar="TAG", help="where it starts (default: empty, with the table's schemas)")
    rename = verb(
        verbs, "rename", "give a branch another name", "paimon branch rename lake/default.db/orders trial try2", _rename
    )
    rename.add_argument("name", metavar="NAME", help="the branch")
    rename.add_argument("to", metavar="NEW", help="its new name")
    for name, what, run in (
        ("delete", "delete a branch; files that only it had are orphans then", _delete),
        ("fast-forward", "let the table go on as the branch did; what it did since is forgotten", _fast_forward),
    ):
        parser = verb(verbs, name, what, f"paimon branch {name} lake/default.db/orders trial", run)
        parser.add_argument("name", metavar="NAME", help="the branch")


def _list(given: argparse.Namespace) -> None:
    table = opened_table(given)
    records = [
        {"branch": name, "snapshot": at.id if at else None, "records": at.total_record_count if at else None}
        for name, at in table.branches.items()
    ]
    print_records(records, given.output, f"branches of {table.name}")


def _create(given: argparse.Namespace) -> None:
    branches = opened_table(given).branches
    branches.create(given.name, given.tag)
    at = branches[given.name]
    print_records([{"branch": given.name, "snapshot": at.id if at else None}], given.output)


def _rename(given: argparse.Namespace) -> None:
    opened_table(given).branches.rename(given.name, given.to)
    print_records([{"branch": given.to}], given.output)


def _delete(given: argparse.Namespace) -> None:
    opened_table(given).branches.delete(given.name)
    print_records([{"branch": given.name, "deleted": True}], given.output)


def _fast_forward(given: argparse.Namespace) -> None:
    newest = opened_table(given).branches.fast_forward(given.name)
    print_records([{"branch": given.name, "snapshot": newest}], given.output)
