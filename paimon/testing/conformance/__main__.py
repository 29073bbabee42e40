"""Command line of the kit: `paimon-conformance --adapter MODULE:CLASS`."""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import NoReturn

import paimon
from paimon.domain.errors import InvalidRequest, PaimonError, suggest_or
from paimon.domain.extras import MissingExtra

_DESCRIPTION = """\
Test another implementation of the Apache Paimon table format against this library.

The kit draws small tables and their steps: writes, compactions, deletions, new columns.
For each feature that the adapter declares, it fills tables in three ways:

  read ours   this library writes, and the implementation reads
  write       the implementation writes, and both read
  in turns    both write one table alternately, and both read

What each one reads is compared with the rows that a row-wise merge of all written rows gives.
The table of features says right, wrong [n], or refused. For each wrong cell, the smallest
example follows: the table, the steps, the expected rows, and what each reader returned."""
_EPILOG = """\
An adapter is a class of yours:

  from paimon.testing.conformance import Capabilities, Refused

  class MyAdapter:
      version = "1.0"                          # optional, for the report
      capabilities = Capabilities(file_formats=("parquet",), features=("write", "partitions"))

      def write(self, table, rows):            # one commit; rows is a pyarrow.Table
          my_library.open(table.location).append(rows)

      def read(self, table, snapshot):         # snapshot is None for the newest
          return my_library.open(table.location).read()

examples:
  list the features that an adapter declares
    paimon-conformance --adapter my_module:MyAdapter --list
  test all of them for ten minutes, and write a page
    paimon-conformance --adapter my_module:MyAdapter --seconds 600 --format html --output page.html
  test merge engines and one more feature, with more examples each
    paimon-conformance --adapter my_module:MyAdapter --feature engine --feature type:DECIMAL --examples 200

exit status: 0 if no cell is wrong, 1 if one is wrong or none was run, 2 if the call or the adapter is at fault.
If the run was stopped, it prints what it knows, and the status is 124 after --timeout, and 130 after a signal."""


class _TimedOut(KeyboardInterrupt):
    """The run reached --timeout."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    options = _build_parser().parse_args(arguments)
    sys.path.insert(0, str(Path.cwd()))
    try:
        with _stop_by_signals(options.timeout):
            return _run(options)
    except KeyboardInterrupt as stop:
        return _status_of(stop)
    except (InvalidRequest, MissingExtra) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except PaimonError as error:
        print(f"error: this library failed: {error}", file=sys.stderr)
        return 2


@contextmanager
def _stop_by_signals(timeout: float | None) -> Iterator[None]:
    """End by SIGTERM as by Ctrl-C: Hypothesis takes a SystemExit for a wrong case, and the tables must be deleted.

    `_run` starts the clock of the timeout, which ends the run in the same way.
    """
    if threading.current_thread() is not threading.main_thread():
        if timeout is not None:
            raise InvalidRequest("--timeout works in the main thread only.", subject="--timeout")
        yield
        return
    terminated = signal.signal(signal.SIGTERM, signal.default_int_handler)
    alarm = signal.signal(signal.SIGALRM, _raise_timed_out)
    try:
        yield
    finally:
        _stop_clock()
        signal.signal(signal.SIGALRM, alarm)
        signal.signal(signal.SIGTERM, terminated)


def _stop_clock() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)


def _raise_timed_out(*_: object) -> NoReturn:
    raise _TimedOut


def _run(options: argparse.Namespace) -> int:
    # These modules need Hypothesis; --help does not.
    from paimon.testing.conformance.cases import features_of
    from paimon.testing.conformance.describe_results import Run, describe_progress, format_run
    from paimon.testing.conformance.golden import list_golden, list_golden_cells, open_golden_set
    from paimon.testing.conformance.implementation import load_implementation
    from paimon.testing.conformance.run_cases import OWN_NAME, Result, Runner, list_cells, run_cells

    theirs = load_implementation(options.adapter)
    name = options.adapter.partition(":")[2]
    name = f"{name} (adapter)" if name == OWN_NAME else name
    with tempfile.TemporaryDirectory(prefix="paimon-conformance-", dir=_find_fast_folder()) as folder:
        golden, drawn = dict[str, Path](), features_of(theirs.capabilities)
        if options.golden is not None:
            golden = list_golden(open_golden_set(options.golden, Path(folder, "golden")), theirs.capabilities)
        chosen = set(_choose_features(options.feature, [*golden, *drawn]))
        golden = {feature: table for feature, table in golden.items() if feature in chosen}
        drawn = {feature: shapes for feature, shapes in drawn.items() if feature in chosen}
        if options.list:
            print("\n".join([*golden, *drawn]))
            return 0
        if options.output is not None:
            _check_output(options.output)
        warehouse = _to_absolute(options.warehouse or folder)
        numbering = _number_tables(warehouse)
        runner = Runner(name, theirs, warehouse, numbering, keeps_tables=options.warehouse is not None)
        cells = list_golden_cells(runner, golden) | list_cells(runner, drawn, options.examples, options.seed)
        seen: list[Result] = []

        def show(result: Result) -> None:
            seen.append(result)
            if not options.quiet and result.status != "not run":
                print(describe_progress(seen, len(cells)), file=sys.stderr, flush=True)

        if options.timeout is not None:
            # repeated, because code of C can drop an exception
            signal.setitimer(signal.ITIMER_REAL, options.timeout, 1.0)
        stop = run_cells(cells, options.seconds, show, _stop_clock)
        _stop_clock()  # the report is printed whole
    versions = f"paimon {paimon.__version__}, Python {platform.python_version()}"
    why = None if stop is None else "by --timeout" if isinstance(stop, _TimedOut) else "by a signal"
    run = Run(name, str(getattr(theirs, "version", "")), versions, tuple(seen), why)
    text = format_run(run, options.format)
    if options.output is None:
        print(text)
    else:
        options.output.write_text(text + "\n", encoding="utf8")
    if stop is not None:
        return _status_of(stop)
    return int(bool(run.of_status("wrong")) or all(result.status == "not run" for result in seen))


def _status_of(stop: BaseException) -> int:
    """Return the exit status of a stopped run, and say so."""
    print("error: The run was stopped.", file=sys.stderr)
    return 124 if isinstance(stop, _TimedOut) else 130


def _number_tables(warehouse: str) -> Iterator[int]:
    """Create the database of the tables, and return their numbers, from the first free one on."""
    catalog = paimon.connect(warehouse)
    catalog.create_database("kit", exist_ok=True)
    numbers = [int(table[1:]) for table in catalog.tables("kit") if table[1:].isdecimal()]
    return itertools.count(max(numbers, default=0) + 1)


def _check_output(path: Path) -> None:
    """Create the file of the report before the run, whose results it must not lose."""
    try:
        path.touch()
    except OSError as error:
        raise InvalidRequest(f"Report {str(path)!r} cannot be written: {error.strerror}", subject=str(path)) from error


def _to_absolute(warehouse: str) -> str:
    """Return a directory as an adapter finds it that works in another one; a URI stays as it is."""
    return warehouse if "://" in warehouse else str(Path(warehouse).absolute())


def _find_fast_folder() -> str | None:
    """Return a folder in memory, unless TMPDIR is set: each commit flushes its files, which takes time on a disk."""
    memory = Path("/dev/shm")
    return str(memory) if "TMPDIR" not in os.environ and memory.is_dir() else None


def _choose_features(patterns: list[str], known: list[str]) -> list[str]:
    """Return the features that match a pattern; the word before the colon chooses the whole group."""
    for pattern in patterns:
        if not any(_matches(name, pattern) for name in known):
            groups = {name.partition(":")[0] for name in known}
            hint = suggest_or(pattern, [*known, *groups], "list them with --list")
            raise InvalidRequest(f"No declared feature matches {pattern!r}", subject=pattern, hint=hint)
    return [name for name in known if not patterns or any(_matches(name, pattern) for pattern in patterns)]


def _matches(name: str, pattern: str) -> bool:
    return fnmatch(name, pattern) or name.partition(":")[0] == pattern


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="paimon-conformance",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--adapter", metavar="MODULE:CLASS", required=True, help="the class that you supply")
    parser.add_argument(
        "--feature", metavar="PATTERN", action="append", default=[], help="test only these; repeatable, * matches any"
    )
    parser.add_argument("--list", action="store_true", help="list the features and test nothing")
    parser.add_argument("--examples", metavar="N", type=_count, default=20, help="examples of each cell (20)")
    parser.add_argument("--seconds", metavar="N", type=float, default=120.0, help="time of the whole run (120)")
    parser.add_argument(
        "--timeout", metavar="N", type=_seconds, help="stop the run after N seconds, also inside a call of the adapter"
    )
    parser.add_argument(
        "--golden", metavar="PATH", nargs="?", const="",
        help="read golden tables, too: of this folder or archive, or of the installed package paimon-golden",
    )  # fmt: skip
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="draws other examples (0)")
    parser.add_argument("--format", choices=("text", "json", "html"), default="text", help="form of the report (text)")
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the report there instead of stdout")
    parser.add_argument(
        "--warehouse", metavar="DIR", help="keep the tables in this directory; by default they are deleted"
    )
    parser.add_argument("--quiet", action="store_true", help="print no progress on stderr")
    return parser


def _seconds(text: str) -> float:
    if not re.fullmatch(r"\d+\.?\d*|\.\d+", text) or float(text) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return float(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
