"""`paimon`: parse arguments, run one command, turn errors into one sentence and a hint.

Law: exit code 0 is success, 1 a typed error of the library, 2 a wrong command line.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from paimon import __version__
from paimon.cli import changes, follow, history, rows, tables
from paimon.cli.flights import demo
from paimon.cli.upkeep import branches, compact, consumers, expire, fsck, orphans, rollback, tags
from paimon.domain.errors import PaimonError, PaimonWarning

_EPILOG = """
a first tour:
  paimon init lake                                         make a warehouse with a database 'default'
  paimon create lake/default.db/orders \\
      --columns "id BIGINT NOT NULL, day STRING, amount DECIMAL(10, 2)" \\
      --primary-key id --option bucket=2                   make a primary-key table
  paimon write lake/default.db/orders orders.csv           upsert rows of a file, in one commit
  paimon cat lake/default.db/orders --where "amount > 5"   read them
  paimon show lake/default.db/orders                       schema, options, files by bucket and level
  paimon cat 'lake/default.db/orders$snapshots'            a system table
  paimon tag create lake/default.db/orders first           keep this state; paimon rollback brings it back
  paimon demo flights                                      a whole pipeline on real data, on local Spark

A table is named by its path, or as database.table with --warehouse (or PAIMON_WAREHOUSE).
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is answered."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if not hasattr(given, "run"):
        parser.print_help()
        return 2
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", RuntimeWarning)
            warnings.simplefilter("default", PaimonWarning)
            warnings.showwarning = _print_warning
            given.run(given)
    except PaimonError as error:
        print(f"paimon: {error.message.strip()}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("paimon: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _print_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"paimon: warning: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="paimon",
        description="Tables of the Apache Paimon format: make, write, read and look into them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"paimon {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    upkeep = (compact, tags, branches, consumers, expire, orphans, rollback, fsck)
    for noun in (tables, rows, changes, follow, history, *upkeep, demo):
        noun.add_commands(commands)
    return parser
