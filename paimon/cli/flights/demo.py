"""Commands that show the library at work: `demo flights`.

Law: what the demo needs beyond the library is imported when it runs, and named where it is missing.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from paimon.cli.arguments import Commands, command
from paimon.domain.errors import InvalidRequest
from paimon.domain.extras import missing_extra


def add_commands(commands: Commands) -> None:
    """Add this noun's commands."""
    demo = command(
        commands,
        "demo",
        "run a whole pipeline: 336,776 real flights as a change stream through Spark, checked and plotted",
        "paimon demo flights --commits 4",
    )
    demo.add_argument("name", choices=["flights"], help="which pipeline")
    demo.add_argument("--warehouse", default="demo-warehouse", metavar="PATH", help="where its tables go")
    demo.add_argument("--out", default="demo-out", metavar="PATH", help="where the plot goes")
    demo.add_argument("--commits", type=int, default=6, help="in how many commits the stream is written (default: 6)")
    demo.set_defaults(run=_demo)


def _demo(given: argparse.Namespace) -> None:
    if given.commits < 2:
        raise InvalidRequest("the demo travels in time and needs 2 commits or more", subject="commits")
    try:
        from rich.console import Console

        from paimon.cli.flights.pipeline import run
    except ModuleNotFoundError as missing:
        raise missing_extra("the demo", missing.name or "", "demo") from missing
    run(Path(given.warehouse).resolve(), Path(given.out).resolve(), given.commits, Console())
