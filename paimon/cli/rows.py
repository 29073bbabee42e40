"""Commands about rows: `cat`, `head`, `write`.

Law: rows stream: a table larger than memory is printed, and files are written, piece by piece, in one commit. A
terminal gets the first rows unless more are asked for; a pipe gets all.
"""

from __future__ import annotations

import argparse
import sys
from itertools import chain

from paimon.cli.arguments import Commands, add_option, add_output, add_table, command, names_of, opened, opened_table
from paimon.cli.inputs import FILE_HELP, FORMATS, STANDARD_INPUT, read_file
from paimon.cli.output import lost_compaction, print_lost, print_records, print_rows, print_with_total, quantity
from paimon.cli.progress import counted
from paimon.domain.errors import InvalidRequest
from paimon.scan import Scan
from paimon.system_table import SystemScan

_TERMINAL_ROWS = 40
_MOST_COUNTED_RECORDS = 5_000_000
"""So many stored records are merged to count rows; of more, the number of records is the bound that is told."""


def add_commands(commands: Commands) -> None:
    """Add this noun's commands."""
    cat = command(
        commands,
        "cat",
        "print rows of a table",
        'paimon cat lake/default.db/orders --where "amount > 5" --columns id,amount --output json',
    )
    _add_reading(cat)
    most = cat.add_mutually_exclusive_group()
    most.add_argument(
        "-n", "--limit", type=int, help=f"at most so many rows (default: {_TERMINAL_ROWS} on a terminal, all in a pipe)"
    )
    most.add_argument("--all", action="store_true", help="all rows, also on a terminal")
    cat.set_defaults(run=_cat)
    head = command(commands, "head", "print the first rows of a table", "paimon head lake/default.db/orders -n 5")
    _add_reading(head)
    head.add_argument("-n", "--limit", type=int, default=10, help="how many rows (default: 10)")
    head.set_defaults(run=_cat, all=False)
    write = command(
        commands,
        "write",
        "write rows of files to a table, in one commit",
        "paimon write lake/default.db/orders orders.csv",
    )
    add_table(write)
    write.add_argument("files", nargs="+", metavar="FILE", help=FILE_HELP)
    write.add_argument("--format", choices=FORMATS, help="instead of the ending")
    write.add_argument("--kind-column", metavar="NAME", help="a column with row kinds (+I -U +U -D), not stored")
    write.add_argument(
        "--overwrite", action="store_true", help="replace the partitions (or the table) that are written"
    )
    add_option(write, "a table option for this write alone")
    add_output(write)
    write.set_defaults(run=_write)


def _add_reading(parser: argparse.ArgumentParser) -> None:
    add_table(parser)
    parser.add_argument("--columns", metavar="A,B", help="columns to print, in order; a.b is a nested field")
    parser.add_argument(
        "--where", metavar="CONDITION", help="SQL condition, such as \"amount > 5 AND day = '2026-01-01'\""
    )
    parser.add_argument("--snapshot", type=int, metavar="ID", help="read at this snapshot")
    parser.add_argument("--tag", metavar="NAME", help="read at this tag")
    parser.add_argument("--timestamp", metavar="TIME", help="read at the last snapshot up to this time")
    parser.add_argument("--branch", metavar="NAME", help="read this branch")
    parser.add_argument("--explain", action="store_true", help="print what would be read, and what is pruned, instead")
    add_option(parser, "a table option for this read alone")
    add_output(parser, "csv")


def _cat(given: argparse.Namespace) -> None:
    if given.branch is not None:
        given.option.append(f"branch={given.branch}")
    table = opened(given)
    travel = {k: getattr(given, k) for k in ("snapshot", "tag", "timestamp") if getattr(given, k) is not None}

    def scan(limit: int | None) -> Scan | SystemScan:
        return table.scan(names_of(given.columns), given.where, limit, **travel)

    if given.explain:
        planned = scan(given.limit)
        if not isinstance(planned, Scan):
            raise InvalidRequest(f"{table.name} has no plan", subject=table.name, hint="leave out --explain")
        print(planned.explain())
    elif given.output == "table" and given.limit is None and not given.all and sys.stdout.isatty():
        first = scan(_TERMINAL_ROWS + 1).to_batches()
        print_with_total(first, _TERMINAL_ROWS, lambda: _total(scan(None)))
    else:
        print_rows(scan(given.limit).to_batches(), given.output)


def _total(scan: Scan | SystemScan) -> str:
    """How many rows there are, or at most are."""
    if isinstance(scan, Scan) and (records := scan.plan().row_count) > _MOST_COUNTED_RECORDS:
        return f"at most {quantity(records, 'row')}"
    return quantity(scan.count(), "row")


def _write(given: argparse.Namespace) -> None:
    table = opened_table(given)
    if given.overwrite and given.kind_column is not None:
        raise InvalidRequest("an overwrite takes no row kinds", subject="kind-column", hint="leave out --kind-column")
    if given.files.count(STANDARD_INPUT) > 1:
        raise InvalidRequest("standard input can be read only once", subject=STANDARD_INPUT, hint="name - once")
    pieces = chain.from_iterable([read_file(file, given.format, table.arrow_schema) for file in given.files])
    data = counted(pieces, "writing")
    result = table.overwrite(data) if given.overwrite else table.write(data, kind_column=given.kind_column)
    lost = lost_compaction(result)
    record = {"snapshots": list(result.snapshot_ids), "rows": result.rows, "files": result.files, **lost}
    if given.output == "json":
        print_records([record], "json")
    elif result.snapshot_ids:
        ids = ", ".join(map(str, result.snapshot_ids))
        print(f"snapshot {ids}: {quantity(result.rows, 'row')} in {quantity(result.files, 'file')}")
        print_lost(lost)
    else:
        print("nothing to write: no snapshot was made")
