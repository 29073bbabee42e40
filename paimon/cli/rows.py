"""Commands about rows: `cat`, `head` and `write`.

Invariant: rows stream, so tables and files can be larger than memory; a write is one commit. By default a terminal
shows the first rows, and a pipe gets all rows.
"""

from __future__ import annotations

import argparse
import sys

from paimon.cli.arguments import (
    Commands,
    add_command,
    add_option,
    add_output,
    add_table,
    open_data_table,
    open_table_or_system_table,
    parse_names,
)
from paimon.cli.inputs import FILE_HELP, FORMATS, open_inputs, show_progress
from paimon.cli.output import (
    TERMINAL_ROWS,
    describe_lost_compaction,
    print_lost_compaction,
    print_records,
    print_rows,
    print_with_total,
)
from paimon.display.row_formats import ROW_FORMATS
from paimon.domain.errors import InvalidRequest
from paimon.domain.markup import format_count
from paimon.scan import Scan
from paimon.system_table import SystemScan

_MOST_COUNTED_RECORDS = 5_000_000
"""Up to this number of stored records, rows are counted by merging; above it, the number of records is printed."""


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    cat = add_command(
        commands,
        "cat",
        "print rows of a table",
        'paimon cat lake/default.db/orders --where "amount > 5" --columns id,amount --output json',
    )
    _add_read_arguments(cat)
    amount = cat.add_mutually_exclusive_group()
    amount.add_argument(
        "-n",
        "--limit",
        type=int,
        metavar="N",
        help=f"largest number of rows (default: {TERMINAL_ROWS} on a terminal, all in a pipe)",
    )
    amount.add_argument("--all", action="store_true", help="print all rows, also on a terminal")
    cat.set_defaults(run=_cat)
    head = add_command(commands, "head", "print the first rows of a table", "paimon head lake/default.db/orders -n 5")
    _add_read_arguments(head)
    head.add_argument("-n", "--limit", type=int, default=10, metavar="N", help="largest number of rows (default: 10)")
    head.set_defaults(run=_cat, all=False)
    write = add_command(
        commands,
        "write",
        "write the rows of files to a table, in one commit",
        "paimon write lake/default.db/orders orders.csv",
    )
    add_table(write)
    write.add_argument("files", nargs="*", metavar="FILE", help=FILE_HELP)
    write.add_argument(
        "--input", dest="inputs", action="append", default=[], metavar="FILE", help="another file; can be repeated"
    )
    write.add_argument("--format", choices=FORMATS, help="format of the files (default: by their extension)")
    write.add_argument(
        "--kind-column", metavar="NAME", help="column of the files with row kinds (+I -U +U -D); it is not stored"
    )
    write.add_argument(
        "--overwrite",
        action="store_true",
        help="replace the written partitions, or the whole table if it has no partitions",
    )
    write.add_argument(
        "--missing-columns",
        choices=("error", "null"),
        help="whether rows without a nullable column of the table are refused (default: the table's option)",
    )
    add_option(write, "table option for this command only; can be repeated")
    add_output(write, has_format=True)
    write.set_defaults(run=_write)


def _add_read_arguments(parser: argparse.ArgumentParser) -> None:
    add_table(parser)
    parser.add_argument(
        "--select",
        "--columns",
        dest="columns",
        metavar="A,B",
        help="columns to print, in this order; a.b is a nested field",
    )
    parser.add_argument(
        "--where", metavar="CONDITION", help="SQL condition, such as \"amount > 5 AND day = '2026-01-01'\""
    )
    parser.add_argument("--snapshot", type=int, metavar="ID", help="read this snapshot")
    parser.add_argument("--tag", metavar="NAME", help="read the snapshot of this tag")
    parser.add_argument("--timestamp", metavar="TIME", help="read the latest snapshot at or before this time")
    parser.add_argument("--branch", metavar="NAME", help="read this branch")
    parser.add_argument(
        "--explain",
        action="store_true",
        help="print the plan of the read instead of rows: its files, and what is pruned",
    )
    add_option(parser, "table option for this command only; can be repeated")
    add_output(parser, *ROW_FORMATS)


def _cat(arguments: argparse.Namespace) -> None:
    if arguments.branch is not None:
        arguments.option.append(f"branch={arguments.branch}")
    table = open_table_or_system_table(arguments)
    travel = {k: getattr(arguments, k) for k in ("snapshot", "tag", "timestamp") if getattr(arguments, k) is not None}

    def _create_scan(limit: int | None) -> Scan | SystemScan:
        return table.scan(parse_names(arguments.columns), arguments.where, limit, **travel)

    if arguments.explain:
        planned = _create_scan(arguments.limit)
        if not isinstance(planned, Scan):
            raise InvalidRequest(
                f"System table {table.name!r} has no plan.", subject=table.name, hint="leave out --explain"
            )
        print(planned.explain())
    elif arguments.output == "table" and arguments.limit is None and not arguments.all and sys.stdout.isatty():
        first = _create_scan(TERMINAL_ROWS + 1).to_batches()
        print_with_total(first, TERMINAL_ROWS, lambda: _describe_total(_create_scan(None)))
    else:
        print_rows(_create_scan(arguments.limit).to_batches(), arguments.output)


def _describe_total(scan: Scan | SystemScan) -> str:
    """Describe the number of rows exactly, or by an upper bound."""
    if isinstance(scan, Scan) and (records := scan.plan().row_count) > _MOST_COUNTED_RECORDS:
        return f"at most {format_count(records, 'row')}"
    return format_count(scan.count(), "row")


def _write(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    if arguments.overwrite and arguments.kind_column is not None:
        raise InvalidRequest(
            "Option --kind-column cannot be combined with --overwrite, because an overwrite takes no row kinds.",
            subject="kind-column",
            hint="leave out --kind-column",
        )
    files = [*arguments.files, *arguments.inputs]
    if not files:
        raise InvalidRequest("The command needs a file.", subject="FILE", hint="pass FILE, or --input FILE")
    data = show_progress(open_inputs(files, arguments.format))
    missing = arguments.missing_columns
    result = (
        table.overwrite(data, missing_columns=missing)
        if arguments.overwrite
        else table.write(data, kind_column=arguments.kind_column, missing_columns=missing)
    )
    lost = describe_lost_compaction(result)
    record = {"snapshots": list(result.snapshot_ids), "rows": result.rows, "files": result.files, **lost}
    if arguments.output == "json":
        print_records([record], "json")
    elif result.snapshot_ids:
        ids = ", ".join(map(str, result.snapshot_ids))
        print(f"snapshot {ids}: {format_count(result.rows, 'row')} in {format_count(result.files, 'file')}")
        print_lost_compaction(lost)
    else:
        print("nothing to write: no snapshot was created")
