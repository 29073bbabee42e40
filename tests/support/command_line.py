"""Commands as a user's shell calls them."""

from __future__ import annotations

import pytest

from paimon.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """What a command prints: on the error stream where it fails, as `code` says it must."""
    assert main(list(words)) == code
    printed = capsys.readouterr()
    return printed.err if code else printed.out
