#!/usr/bin/env python3
"""Write the generated pages of docs/reference.

    python docs/generate_reference.py            write all pages
    python docs/generate_reference.py --check    write nothing; list the pages that differ, and exit with 1 if any does

Needs the package with the extras `spark` and `cli`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from reference_generator import (
    command_line,
    errors,
    observers,
    options,
    python_interface,
    sql_statements,
    system_tables,
)

FOLDER = Path(__file__).resolve().parent / "reference"

PAGES: Mapping[str, Callable[[], str]] = {
    "command-line.md": command_line.generate_page,
    "errors.md": errors.generate_page,
    "observer.md": observers.generate_page,
    "options.md": options.generate_page,
    "sql.md": sql_statements.generate_page,
    "system-tables.md": system_tables.generate_page,
}
"""The function that generates each page, except those of the Python interface."""


def generate_pages() -> dict[str, str]:
    """Return the text of each page by its path in the folder."""
    return {**{name: generate() for name, generate in PAGES.items()}, **python_interface.generate_pages()}


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` compare them; return the exit code."""
    pages = {FOLDER / name: text for name, text in generate_pages().items()}
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text("utf8") != text]
    stale += [path for path in sorted(FOLDER.glob("*/*.md")) if path not in pages]
    for path in stale:
        print(path.relative_to(FOLDER.parents[1]))
        if "--check" in arguments:
            continue
        path.parent.mkdir(exist_ok=True)
        if path in pages:
            path.write_text(pages[path], "utf8")
        else:
            path.unlink()  # the page of a class that is gone
    return int("--check" in arguments and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
