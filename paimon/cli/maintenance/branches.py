"""The commands of `paimon branch`: list, create, rename, delete and fast-forward.

Invariant: every other command reads and writes a branch through the table option `branch`.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import Commands, open_data_table
from paimon.cli.maintenance.verbs import add_command_group, add_confirmation, add_table_command, confirm
from paimon.cli.output import print_records


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    verbs = add_command_group(
        commands,
        "branch",
        "manage branches, which are separate histories over the same files: list, create, rename, delete, fast-forward",
        "paimon branch create lake/default.db/orders trial --tag year-end",
    )
    add_table_command(
        verbs, "list", "list all branches except main", "paimon branch list lake/default.db/orders", _list
    )
    create = add_table_command(
        verbs,
        "create",
        "create a branch from a tag, or an empty branch; it is read and written as the table 'TABLE$branch_NAME'",
        "paimon branch create lake/default.db/orders trial --tag year-end",
        _create,
    )
    create.add_argument("name", metavar="NAME", help="name of the branch")
    create.add_argument(
        "-t",
        "--tag",
        metavar="TAG",
        help="tag that the branch starts from (default: an empty branch with the schemas of the table)",
    )
    rename = add_table_command(
        verbs, "rename", "rename a branch", "paimon branch rename lake/default.db/orders trial try2", _rename
    )
    rename.add_argument("name", metavar="NAME", help="name of the branch")
    rename.add_argument("to", metavar="NEW", help="new name of the branch")
    for name, what, run in (
        ("delete", "delete a branch; files that only it references become orphan files", _delete),
        (
            "fast-forward",
            "replace the snapshots of a table after the common history by those of a branch",
            _fast_forward,
        ),
    ):
        parser = add_table_command(verbs, name, what, f"paimon branch {name} lake/default.db/orders trial", run)
        parser.add_argument("name", metavar="NAME", help="name of the branch")
        if name == "fast-forward":
            add_confirmation(parser)


def _list(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    records = [
        {"branch": name, "snapshot": at.id if at else None, "records": at.total_record_count if at else None}
        for name, at in table.branches.items()
    ]
    print_records(records, arguments.output, f"branches of {table.name}")


def _create(arguments: argparse.Namespace) -> None:
    branches = open_data_table(arguments).branches
    branches.create(arguments.name, arguments.tag)
    at = branches[arguments.name]
    print_records([{"branch": arguments.name, "snapshot": at.id if at else None}], arguments.output)


def _rename(arguments: argparse.Namespace) -> None:
    open_data_table(arguments).branches.rename(arguments.name, arguments.to)
    print_records([{"branch": arguments.to}], arguments.output)


def _delete(arguments: argparse.Namespace) -> None:
    open_data_table(arguments).branches.delete(arguments.name)
    print_records([{"branch": arguments.name, "deleted": True}], arguments.output)


def _fast_forward(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    latest = table.snapshot()
    if latest is not None:
        confirm(
            f"{table.name} is at snapshot {latest.id}. Fast-forward to branch {arguments.name}? Later snapshots, "
            "changelogs and tags that are not in the branch are deleted, and this cannot be undone.",
            has_agreed=arguments.yes,
        )
    newest = table.branches.fast_forward(arguments.name)
    print_records([{"branch": arguments.name, "snapshot": newest}], arguments.output)
