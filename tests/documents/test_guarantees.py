"""The page of guarantees names tests and logs that exist, and fits on two screens."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text("utf8")


def test_tests_of_the_page_exist() -> None:
    paths = set(re.findall(r"\btests/[\w/.]+", PAGE))
    assert len(paths) >= 8
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_logs_of_the_page_exist() -> None:
    links = re.findall(r"\]\(\.\./([\w./-]+)\)", PAGE)
    assert len(links) >= 6
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_page_fits_on_two_screens() -> None:
    assert len(PAGE.splitlines()) <= 100
