"""Commands that change rows where they stand: `delete`, `update`.

Law: rows change only where a condition is given, TRUE for all of them; one commit, or none where no row matches.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from paimon.cli.arguments import Commands, add_option, add_output, add_table, command, opened_table
from paimon.cli.output import lost_compaction, print_lost, print_records
from paimon.domain.errors import InvalidRequest
from paimon.table import WriteResult


def add_commands(commands: Commands) -> None:
    """Add this noun's commands."""
    delete = command(
        commands,
        "delete",
        "delete rows of a table, in one commit",
        'paimon delete lake/default.db/orders --where "id = 3"',
    )
    _add_shared(delete, "deleted")
    delete.set_defaults(run=_delete)
    update = command(
        commands,
        "update",
        "set columns of rows of a table, in one commit",
        "paimon update lake/default.db/orders --set \"amount=amount * 2\" --set \"day='tue'\" --where \"id = 3\"",
    )
    update.add_argument(
        "--set",
        action="append",
        required=True,
        metavar="COLUMN=SQL",
        help="what a column becomes: a number, 'text', NULL, or arithmetic over columns; may be repeated",
    )
    _add_shared(update, "updated")
    update.set_defaults(run=_update)


def _add_shared(parser: argparse.ArgumentParser, what: str) -> None:
    add_table(parser)
    parser.add_argument("--where", required=True, metavar="CONDITION", help=f"which rows are {what} (TRUE: all)")
    add_option(parser, "a table option for this command alone")
    add_output(parser)


def _delete(given: argparse.Namespace) -> None:
    _print(given, opened_table(given).delete(given.where), "deleted")


def _update(given: argparse.Namespace) -> None:
    _print(given, opened_table(given).update(_assignments(given.set), given.where), "updated")


def _assignments(texts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        column, equals, value = text.partition("=")
        if not equals or not column.strip() or not value.strip():
            raise InvalidRequest(f"{text!r} is not COLUMN=SQL", subject=text, hint='write --set "amount=amount * 2"')
        found[column.strip()] = value.strip()
    return found


def _print(given: argparse.Namespace, result: WriteResult, what: str) -> None:
    lost = lost_compaction(result)
    if given.output == "json":
        record = {"snapshots": list(result.snapshot_ids), what: result.rows, "files": result.files, **lost}
        print_records([record], "json")
    elif result.snapshot_ids:
        ids = ", ".join(map(str, result.snapshot_ids))
        print(f"snapshot {ids}: {result.rows:,} row{'' if result.rows == 1 else 's'} {what}")
        print_lost(lost)
    else:
        print(f"no row was {what}: no snapshot was made")
