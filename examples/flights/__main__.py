"""Command line of the flights pipeline, for people who try the library on real data.

Run it with `python3 dev.py flights`, which installs what it needs, or with `python examples/flights` in an environment
that has the extra `examples`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # run as a folder: Python then puts the folder itself on the path, not its parent
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from paimon.domain.errors import InvalidRequest, PaimonError

_DESCRIPTION = "Run a whole pipeline: 336,776 real flights as a change stream through Spark, checked and plotted."
_EPILOG = "example:\n  python3 dev.py flights --commits 4"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the pipeline with the options of a command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The options; by default those of this process.

    Returns
    -------
    int
        The exit code: 0 when all checks passed, 1 after an error, 130 when the user interrupted the run.
    """
    options = _build_parser().parse_args(arguments)
    try:
        _run_pipeline(options)
    except ModuleNotFoundError as missing:
        print(f"flights: the package {missing.name!r} is not installed", file=sys.stderr)
        print('hint: run python3 dev.py flights, or pip install ".[examples]" in a clone', file=sys.stderr)
        return 1
    except PaimonError as error:
        print(f"flights: {error.message.strip()}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("flights: interrupted", file=sys.stderr)
        return 130
    return 0


def _run_pipeline(options: argparse.Namespace) -> None:
    if options.commits < 2:
        raise InvalidRequest("Option --commits must be at least 2, because the pipeline travels in time.")
    from rich.console import Console

    from flights.pipeline import run

    run(Path(options.warehouse).resolve(), Path(options.out).resolve(), options.commits, Console())


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 dev.py flights",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--warehouse", default="demo-warehouse", metavar="PATH", help="directory of the tables (default: %(default)s)"
    )
    parser.add_argument(
        "--out",
        default="demo-out",
        metavar="PATH",
        help="directory of the plot and Spark's log (default: %(default)s)",
    )
    parser.add_argument(
        "--commits",
        type=int,
        default=6,
        metavar="N",
        help="number of commits in which the change stream is written, at least 2 (default: %(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
