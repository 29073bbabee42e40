"""Run commands as the shell of a user does."""

from __future__ import annotations

import pytest

from paimon.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """The output of a command: of the error stream if `code` expects a failure."""
    assert main(list(words)) == code
    printed = capsys.readouterr()
    return printed.err if code else printed.out
