"""The diagrams of `docs/explanation/` show what tables do now, and each page has its diagram."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from draw_explanations import FOLDER, PICTURES


@pytest.mark.parametrize("name", PICTURES)
def test_diagrams_are_up_to_date(name: str, tmp_path: Path) -> None:
    picture = PICTURES[name](tmp_path)
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert picture == (FOLDER / f"{name}.svg").read_text("utf8"), "draw again: python examples/draw_explanations.py"


@pytest.mark.parametrize("name", PICTURES)
def test_pages_show_their_diagram_and_their_links_resolve(name: str) -> None:
    page = (FOLDER / f"{name}.md").read_text("utf8")
    assert f"]({name}.svg)" in page
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", page) if "://" not in link]
    assert [link for link in links if not (FOLDER / link).exists()] == []


@pytest.mark.parametrize("name", PICTURES)
def test_code_of_the_pages_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (FOLDER / f"{name}.md").read_text("utf8"), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, f"{name}.md", "exec"), {})
