"""Run a program of pypaimon: ``python -m paimon.compat [--no-allow-unknown-options] program.py [arguments]``."""

from __future__ import annotations

import argparse
import os.path
import runpy
import sys

import paimon.compat


def main(arguments: list[str] | None = None) -> None:
    """Install the alias and run the program as `__main__`, with its own arguments."""
    parser = argparse.ArgumentParser("python -m paimon.compat", description="Run a program of pypaimon.")
    parser.add_argument(
        "--allow-unknown-options",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="accept options that this library does not know, with a warning (pypaimon ignores them)",
    )
    parser.add_argument("program", help="the file of the program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the arguments of the program")
    given = parser.parse_args(arguments)
    paimon.compat.install(allow_unknown_options=given.allow_unknown_options)
    sys.argv = [given.program, *given.arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(given.program)))  # noqa: PTH120, PTH100
    runpy.run_path(given.program, run_name="__main__")


if __name__ == "__main__":
    main()
