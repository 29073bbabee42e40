"""The page of the benchmarks fits on two screens and names all groups, and all its links resolve."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
PAGES = [BENCHMARKS / "README.md", *sorted((BENCHMARKS / "results").glob("*.md"))]


def test_links_resolve() -> None:
    links = [(page, link) for page in PAGES for link in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf8"))]
    assert [(page.name, link) for page, link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_each_log_is_listed() -> None:
    index = (BENCHMARKS / "results" / "README.md").read_text("utf8")
    assert [page.name for page in PAGES[1:] if page.name != "README.md" and f"({page.name})" not in index] == []


def test_the_page_is_short_and_names_all_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import run

    page = PAGES[0].read_text("utf8")
    assert len(page.splitlines()) <= 100
    listed = {name for cell in re.findall(r"^\| ([a-z, ]+) \|", page, re.M) for name in cell.split(", ")}
    assert set(run.GROUPS) <= listed
